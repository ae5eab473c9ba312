package users

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// The causes for which the context of a request ends.
var (
	errRights  = fmt.Errorf("the rights of the caller were reduced: %w", errkind.Denied)
	errExpired = fmt.Errorf("the access token has expired: %w", errkind.Unauthorized)
)

// A request is one that is being served. It ends when its caller loses rights.
type request struct {
	caller *access.Caller
	token  string // of the access file; "" if the caller is of an issuer
	cancel context.CancelCauseFunc
}

// Authenticate finds out who sent a request; see [httpguard.Options]. The context that
// it returns ends when the caller loses rights, or with the token. With a refusal, it says
// who the caller is, if that is known.
func (t *Table) Authenticate(r *http.Request) (context.Context, *httpguard.Refusal) {
	if !t.haveUsers() {
		if !httpguard.HasToken(r, t.o.Token) {
			return nil, t.noToken(r, nil)
		}
		return t.admit(r, &request{}, time.Time{})
	}
	token := httpguard.BearerToken(r)
	if token == "" {
		return nil, t.noToken(r, nil)
	}
	if c := t.o.File.ByToken(token); c != nil {
		return t.admit(r, &request{caller: c, token: token}, time.Time{})
	}
	if t.o.Issuer == nil || strings.Count(token, ".") != 2 { // no JWT
		return nil, t.noToken(r, errWrongToken)
	}
	id, err := t.o.Issuer.Verify(r.Context(), token, r.URL.Path)
	switch {
	case errors.Is(err, errkind.Denied):
		return nil, t.noToken(r, err)
	case err != nil:
		return nil, &httpguard.Refusal{Reason: httpguard.Unavailable, Status: http.StatusServiceUnavailable,
			Message: "the keys of the issuer of access tokens cannot be read now, try again later",
			Header:  http.Header{"Retry-After": {"5"}}}
	}
	c := t.o.File.OfIssuer(id.Subject, id.Groups)
	if c == nil || !c.Any() {
		return access.With(r.Context(), c), &httpguard.Refusal{Reason: httpguard.NoRight, Status: http.StatusForbidden,
			Message: "this user has no rights here, ask the administrator for some",
			Header:  http.Header{"Www-Authenticate": {t.o.Issuer.InsufficientScope(r.URL.Path)}}}
	}
	return t.admit(r, &request{caller: c}, id.Expires)
}

// haveUsers reports whether the server has users. Once it has, it has them for ever: if
// the access file is removed, nobody is admitted.
func (t *Table) haveUsers() bool {
	switch {
	case t.o.File == nil:
		return false
	case t.o.Optional && !t.started.Load():
		if errors.Is(t.o.File.Err(), fs.ErrNotExist) {
			return false
		}
		t.started.Store(true)
	}
	return true
}

var errWrongToken = fmt.Errorf("the token is not known: %w", errkind.Denied)

// noToken returns the refusal of a request without a valid token. err says what is wrong
// with its token, and is nil if there is none.
func (t *Table) noToken(r *http.Request, err error) *httpguard.Refusal {
	f := &httpguard.Refusal{Reason: httpguard.NoToken, Status: http.StatusUnauthorized,
		Message: httpguard.TokenRequired}
	if t.o.Issuer != nil {
		f.Header = http.Header{"Www-Authenticate": {t.o.Issuer.Challenge(r.URL.Path, err)}}
		if err != nil {
			f.Message = errkind.Message(err)
		}
	}
	return f
}

// admit returns the context of a request that may be served until a time; 0 is for ever.
func (t *Table) admit(r *http.Request, q *request, until time.Time) (context.Context, *httpguard.Refusal) {
	ctx, cancel := context.WithCancelCause(access.With(r.Context(), q.caller))
	q.cancel = cancel
	if !until.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, until, errExpired)
		context.AfterFunc(ctx, stop)
	}
	t.requests.Lock()
	t.open[q] = struct{}{}
	t.requests.Unlock()
	context.AfterFunc(r.Context(), func() { // net/http cancels it when the request ends
		cancel(nil)
		t.requests.Lock()
		delete(t.open, q)
		t.requests.Unlock()
	})
	return ctx, nil
}

// watchInterval is how often the access file is looked at for streams that are open. A
// new request is always checked against the file as it is.
const watchInterval = time.Second

// watch ends what callers do when they lose their rights, until ctx ends.
func (t *Table) watch(ctx context.Context) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	var seen uint64
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			t.forget(now)
			if !t.haveUsers() {
				continue
			}
			if version := t.o.File.Version(); version != seen {
				seen = version
				t.review()
			}
		}
	}
}

// review gives all users the rights that they have now.
func (t *Table) review() {
	file := t.o.File
	t.requests.Lock()
	for q := range t.open {
		var c *access.Caller
		switch {
		case q.caller == nil: // admitted before there were users
		case q.token != "":
			c = file.ByToken(q.token)
		default:
			c = file.Now(q.caller)
		}
		if c == nil || c.ID != q.caller.ID || !c.Covers(q.caller) {
			q.cancel(errRights)
		} else {
			q.caller = c // what was given can be taken away again
		}
	}
	t.requests.Unlock()
	for _, u := range t.all() {
		if c := file.Now(u.current()); c != nil {
			u.change(c)
		} else {
			t.drop(u)
		}
	}
}
