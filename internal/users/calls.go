package users

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

// around records a request to an MCP server of the user. Its handler has the rights
// that the caller has now.
func (u *User) around(ctx context.Context, path string, r mcpserver.Request,
	answer func(context.Context) mcpserver.Outcome) error {
	if err := u.table.o.Calls.check(); err != nil {
		return err
	}
	caller := u.current()
	call := &audit.Call{Time: time.Now(), User: nameOf(caller), Client: r.Client, Session: r.Session, Path: path,
		Tool: r.Method}
	if r.Method == "tools/call" {
		call.Tool = r.Name
	}
	o := answer(audit.With(access.With(ctx, caller), call))
	call.Status, call.Took = int(o.Code), time.Since(call.Time)
	if o.Code == 0 {
		call.Status = http.StatusOK
	}
	return u.table.o.Calls.record(call, o.Name)
}

// nameOf returns the name of a caller in records.
func nameOf(c *access.Caller) string {
	if c == nil {
		return ""
	}
	return c.Name
}

// Calls are told about the calls of a server. The zero value ignores them.
type Calls struct {
	// Check returns an error while calls cannot be recorded. It is asked before each
	// call.
	Check func() error

	// Record is called at the end of each call, before it is answered, with the name of
	// its error, as in error.data.code; "" for none, and for a status of HTTP. If it
	// returns an error, that is the answer.
	Record func(c *audit.Call, failure string) error
}

func (c Calls) check() error {
	if c.Check == nil {
		return nil
	}
	return c.Check()
}

func (c Calls) record(call *audit.Call, failure string) error {
	if c.Record == nil {
		return nil
	}
	return c.Record(call, failure)
}

// refused records a request over HTTP that no MCP server has answered.
func (u *User) refused(r *http.Request, status int, code int64) {
	if status == http.StatusAccepted {
		return // a notification
	}
	call := u.table.requested(r)
	call.Session, call.Status = r.Header.Get("Mcp-Session-Id"), status
	if status < 400 && code != 0 {
		call.Status = int(code)
	}
	u.table.note(call)
}

// note records a call that has been answered already.
func (t *Table) note(call *audit.Call) {
	if err := t.o.Calls.record(call, ""); err != nil {
		t.o.Log.Error("recording a request", "path", call.Path, "error", err)
	}
}

// requested returns the record of a request over HTTP.
func (t *Table) requested(r *http.Request) *audit.Call {
	return &audit.Call{Time: time.Now(), User: nameOf(access.From(r.Context())), Path: r.URL.Path, Tool: r.Method}
}

// Requests that are refused before they reach a route, and whose sender is not known, are
// recorded at most so often: anyone can send them, and they must not fill a disk.
const (
	refusedRate  = 10 // in a second
	refusedBurst = 100
)

// Refused records a request that was refused before it reached a route. Of very many
// whose sender is not known, it records some.
func (t *Table) Refused(r *http.Request, status int) {
	if access.From(r.Context()) == nil && !t.refusals.Allow() {
		return
	}
	call := t.requested(r)
	call.Status = status
	t.note(call)
}

// Limited returns the route with a handler that is subject to the limits of the caller
// and whose calls are recorded.
func (t *Table) Limited(route httpguard.Route) httpguard.Route {
	next := route.Handler
	recorded := audit.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := t.User(r.Context()).limit
		if err := limit.Acquire(r.Context()); err != nil {
			t.refuse(w, r, route.Refuse, err)
			return
		}
		defer limit.Release()
		next.ServeHTTP(w, r)
	}), audit.HandlerOptions{
		Begin: t.requested,
		Check: t.o.Calls.check,
		Record: func(c *audit.Call) error {
			return t.o.Calls.record(c, "")
		},
		Refuse: func(w http.ResponseWriter, r *http.Request, err error) { t.refuse(w, r, route.Refuse, err) },
	})
	route.Handler = recorded
	return route
}

// maxStreams is how many streams of routes of [Table.Stream] a caller may have open.
const maxStreams = 32

// Stream returns the route with a handler of streams. They are not subject to the limits
// of the caller, because they last, but a caller may have only some open at the same time.
// Each is recorded when it ends.
func (t *Table) Stream(route httpguard.Route) httpguard.Route {
	next := route.Handler
	route.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := t.o.Calls.check(); err != nil {
			t.refuse(w, r, route.Refuse, err)
			return
		}
		u, call, out := t.User(r.Context()), t.requested(r), &httpguard.Answer{ResponseWriter: w}
		defer func() {
			call.Status, call.Took = cmp.Or(out.Status, http.StatusOK), time.Since(call.Time)
			t.note(call)
		}()
		defer u.streams.Add(-1)
		if u.streams.Add(1) > maxStreams {
			t.refuse(out, r, route.Refuse, fmt.Errorf("too many streams are open: %w", errkind.Busy))
			return
		}
		next.ServeHTTP(out, r)
	})
	return route
}

// refuse refuses a request because of an error.
func (t *Table) refuse(w http.ResponseWriter, r *http.Request, write httpguard.RefuseFunc, err error) {
	f := httpguard.Refusal{Reason: httpguard.Unavailable, Status: http.StatusServiceUnavailable,
		Message: errkind.Message(err)}
	if errors.Is(err, errkind.Busy) {
		f.Reason, f.Status = httpguard.Overloaded, http.StatusTooManyRequests
	}
	seconds := math.Ceil(cmp.Or(mcpserver.RetryAfter(err), time.Second).Seconds())
	w.Header().Set("Retry-After", fmt.Sprint(int(seconds)))
	httpguard.Drain(w, r, httpguard.MaxDrained)
	write(w, r, f)
}
