// Package users serves the users of a server. It finds out who sends a request, gives
// each user MCP servers of their own, whose sessions and jobs no other user can reach,
// applies limits to each user, records calls, and ends what users do when their rights
// are taken away.
//
// A server without users has one, whose caller is nil and may do everything.
package users

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/oauth"
)

// A View is what a server shows to one caller.
type View interface {
	// MCP returns the MCP server with a name, which is part of its path, or nil if the
	// caller has none of that name.
	MCP(name string) *MCP
}

// An MCP is an MCP server of one user.
type MCP struct {
	Path    string // of its endpoint
	Options mcpserver.Options
	Add     func(*mcpserver.Server)     // adds the tools and resources
	Close   func(context.Context) error // ends the work that outlasts calls; nil for nothing
}

// Options configure a Table.
type Options struct {
	// View returns what a caller sees. It is called again when the rights of the
	// caller change. nil means that there are no MCP servers.
	View func(*access.Caller) View

	File     *access.File    // nil if the server has no users
	Optional bool            // the server has users from the moment on when File exists
	Token    string          // that requests need while the server has no users; "" for none
	Issuer   *oauth.Verifier // of access tokens; nil for none

	Limits mcpserver.LimiterOptions // of each user
	Calls  Calls
	Log    *slog.Logger // nil discards
}

// A Table has the users of a server who have sent requests. Create one with [New]. Its
// methods are safe for concurrent use.
type Table struct {
	o Options

	requests sync.Mutex // guards open
	open     map[*request]struct{}
	started  atomic.Bool // whether an Optional file was there
	refusals *rate.Limiter

	mu    sync.Mutex // guards users; locked before User.mu
	users map[string]*User

	ending     sync.Mutex // guards what follows; locked after the others
	ended      bool
	background sync.WaitGroup // what ends in the background
}

// New returns a table without users.
func New(o Options) *Table {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.View == nil {
		o.View = func(*access.Caller) View { return noMCP{} }
	}
	return &Table{o: o, users: map[string]*User{}, open: map[*request]struct{}{},
		refusals: rate.NewLimiter(refusedRate, refusedBurst)}
}

// noMCP is a view without MCP servers.
type noMCP struct{}

func (noMCP) MCP(string) *MCP { return nil }

// A User is what a server keeps for one caller.
type User struct {
	table   *Table
	limit   *mcpserver.Limiter
	streams atomic.Int64 // that are open; see [Table.Stream]
	used    time.Time    // when the last request came; guarded by Table.mu

	mu     sync.Mutex // guards what follows
	caller *access.Caller
	view   View
	mcp    map[string]*endpoint // by name
	closed bool
}

// An endpoint is an MCP server of a user.
type endpoint struct {
	server *mcpserver.Server
	http   *mcpserver.HTTPHandler
	close  func(context.Context) error
}

// nobody is a caller without rights.
var nobody = &access.Caller{ID: "?"}

// User returns what is kept for the caller of a request, with the rights that the caller
// has now.
func (t *Table) User(ctx context.Context) *User {
	c := access.From(ctx)
	if c == nil && t.haveUsers() {
		c = nobody // the request was admitted before there were users
	}
	t.mu.Lock()
	u := t.users[c.Key()]
	if u == nil {
		u = &User{table: t, limit: mcpserver.NewLimiter(t.o.Limits), caller: c, view: t.o.View(c),
			mcp: map[string]*endpoint{}}
		t.users[c.Key()] = u
	}
	u.used = time.Now()
	t.mu.Unlock()
	u.change(c)
	return u
}

// View returns what the user sees now.
func (u *User) View() View {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.view
}

// current returns the caller with the present rights.
func (u *User) current() *access.Caller {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.caller
}

// change gives the caller other rights. Sessions continue, unless their MCP server is
// no longer there. If something is taken away, running calls fail, their results are
// dropped, and the work that outlasts them ends.
func (u *User) change(c *access.Caller) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || u.caller.Equal(c) || c.Version < u.caller.Version {
		return
	}
	reduced := !c.Covers(u.caller)
	u.caller, u.view = c, u.table.o.View(c)
	for name, e := range u.mcp {
		next := u.makeLocked(name)
		if next == nil {
			delete(u.mcp, name)
			u.table.later(func() { u.table.end(e) })
			continue
		}
		e.server.Replace(next.server)
		old := &endpoint{close: e.close}
		if !reduced { // running calls continue
			e.close = both(e.close, next.close)
			continue
		}
		e.close = next.close
		e.http.Interrupt()
		u.table.later(func() { u.table.end(old) })
	}
}

// both returns a function that calls two functions, each of which may be nil.
func both(a, b func(context.Context) error) func(context.Context) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(ctx context.Context) error { return errors.Join(a(ctx), b(ctx)) }
}

// endTime is the time limit for the end of an endpoint.
const endTime = time.Second

// end ends an endpoint.
func (t *Table) end(e *endpoint) {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	var errs []error
	if e.http != nil {
		errs = append(errs, e.http.Shutdown(ctx))
	}
	if e.close != nil {
		errs = append(errs, e.close(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		t.o.Log.Warn("leaving work behind that does not end", "error", err)
	}
}

// MCP returns the MCP server of the user with a name, which exists.
func (u *User) MCP(name string) *mcpserver.Server { return u.endpoint(name).server }

// endpoint returns the MCP server with a name, or nil if the user has none.
func (u *User) endpoint(name string) *endpoint {
	u.mu.Lock()
	defer u.mu.Unlock()
	e := u.mcp[name]
	if e == nil && !u.closed {
		if e = u.makeLocked(name); e != nil {
			e.http = e.server.HTTP(mcpserver.HTTPOptions{Refused: u.refused})
			u.mcp[name] = e
		}
	}
	return e
}

// makeLocked returns a new MCP server with a name, without a handler, or nil.
func (u *User) makeLocked(name string) *endpoint {
	m := u.view.MCP(name)
	if m == nil {
		return nil
	}
	o := m.Options
	o.Limit = u.limit
	o.Around = func(ctx context.Context, r mcpserver.Request, answer func(context.Context) mcpserver.Outcome) error {
		return u.around(ctx, m.Path, r, answer)
	}
	e := &endpoint{server: mcpserver.New(o), close: m.Close}
	m.Add(e.server)
	return e
}

// ServeMCP serves the MCP server with a name to the caller. It reports whether the
// caller has one; otherwise it does nothing.
func (t *Table) ServeMCP(w http.ResponseWriter, r *http.Request, name string) bool {
	e := t.User(r.Context()).endpoint(name)
	if e == nil {
		return false
	}
	e.http.ServeHTTP(w, r)
	return true
}

// Route returns a route for an MCP server of each user. The handler should call
// [Table.ServeMCP].
func (t *Table) Route(path string, handler http.HandlerFunc) httpguard.Route {
	route := new(mcpserver.HTTPHandler).Route(path)
	route.Handler, route.Shutdown = handler, t.shutdown
	return route
}

// shutdown ends the MCP servers of all users.
func (t *Table) shutdown(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, u := range t.all() {
		u.mu.Lock()
		u.closed = true
		for _, e := range u.mcp {
			wg.Go(func() { _ = e.http.Shutdown(ctx) }) // the error is that of ctx
		}
		u.mu.Unlock()
	}
	wg.Wait()
	return ctx.Err()
}

// all returns the users that are kept.
func (t *Table) all() []*User {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.users))
}

// Sessions returns the number of sessions of all users, and of their streams.
func (t *Table) Sessions() (sessions, streams int) {
	for _, u := range t.all() {
		u.mu.Lock()
		for _, e := range u.mcp {
			n, m := e.http.Sessions()
			sessions, streams = sessions+n, streams+m
		}
		u.mu.Unlock()
	}
	return sessions, streams
}

// Calls returns the number of calls of all users that do work now.
func (t *Table) Calls() (n int) {
	for _, u := range t.all() {
		n += u.limit.Active()
	}
	return n
}

// idleTime is how long a user without a session is kept.
const idleTime = time.Hour

// forget drops users without sessions that have not sent a request for some time.
func (t *Table) forget(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, u := range t.users {
		if now.Sub(u.used) > idleTime && u.closeIdle() {
			delete(t.users, key)
		}
	}
}

// closeIdle ends the endpoints of a user without sessions. It reports whether the user
// has none.
func (u *User) closeIdle() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range u.mcp {
		if sessions, _ := e.http.Sessions(); sessions > 0 {
			return false
		}
	}
	u.endLocked()
	return true
}

// endLocked ends the endpoints of a user.
func (u *User) endLocked() {
	u.closed = true
	for _, e := range u.mcp {
		u.table.later(func() { u.table.end(e) })
	}
}

// drop ends all that is kept for a user.
func (t *Table) drop(u *User) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	if key := u.caller.Key(); t.users[key] == u {
		delete(t.users, key)
	}
	u.endLocked()
}

// later runs f in the background. The caller may hold other locks.
func (t *Table) later(f func()) {
	t.ending.Lock()
	defer t.ending.Unlock()
	if !t.ended { // otherwise all that f could end has ended
		t.background.Go(f)
	}
}

// Run does what is due from time to time until ctx ends, and then ends all work of
// users that outlasts its calls. It must be called once.
func (t *Table) Run(ctx context.Context) {
	t.watch(ctx)
	t.ending.Lock()
	t.ended = true
	t.ending.Unlock()
	t.background.Wait()
	var wg sync.WaitGroup
	for _, u := range t.all() {
		u.mu.Lock()
		for _, e := range u.mcp {
			if e.close != nil {
				wg.Go(func() { t.end(&endpoint{close: e.close}) })
			}
		}
		u.mu.Unlock()
	}
	wg.Wait()
}
