package mcpserver

import (
	"context"
	"math"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxAfterCancel bounds what a session remembers of answered requests. The
// oldest is forgotten first.
const maxAfterCancel = 256

// A cancelHook is what to do when a request is cancelled.
type cancelHook struct {
	id jsonrpc.ID
	f  func()
}

// AfterCancel has f called when the client cancels the request that ctx or one
// of its parents belongs to, also where that has been answered long since: for
// work that the request started and that goes on. f is called at most once, at
// once if the request has been cancelled already, and must not block. It is
// forgotten when stop is called, when the session ends, and when the session has
// answered many more requests that wait for this. Outside a request AfterCancel
// does nothing, as over HTTP with 2026-07-28, which has no sessions.
func AfterCancel(ctx context.Context, f func()) (stop func()) {
	c, ss := callFrom(ctx), sessionFrom(ctx)
	if c == nil || ss == nil || !c.id.IsValid() {
		return func() {}
	}
	h := &cancelHook{c.id, f}
	ss.mu.Lock()
	late := c.cancelled
	if !late {
		ss.hooks = slices.DeleteFunc(ss.hooks, func(o *cancelHook) bool { return o.id == c.id })
		ss.hooks = append(ss.hooks[max(0, len(ss.hooks)-maxAfterCancel+1):], h)
	}
	ss.mu.Unlock()
	if late {
		f()
	}
	return func() {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		ss.hooks = slices.DeleteFunc(ss.hooks, func(o *cancelHook) bool { return o == h })
	}
}

// cancelled notes that the client has cancelled a request.
func (ss *session) cancelled(id jsonrpc.ID) {
	if ss == nil || !id.IsValid() {
		return
	}
	ss.mu.Lock()
	for c := range ss.running {
		c.cancelled = c.cancelled || c.id == id
	}
	if cancel := ss.direct[id]; cancel != nil {
		cancel(nil)
	}
	i := slices.IndexFunc(ss.hooks, func(h *cancelHook) bool { return h.id == id })
	var f func()
	if i >= 0 {
		f = ss.hooks[i].f
		ss.hooks = slices.Delete(ss.hooks, i, i+1)
	}
	ss.mu.Unlock()
	if f != nil {
		f()
	}
}

// cancelledID returns the id that a notifications/cancelled names; it is not
// valid where there is none.
func cancelledID(req mcp.Request) jsonrpc.ID {
	if p, ok := req.GetParams().(*mcp.CancelledParams); ok && p != nil {
		return metaID(p.RequestID)
	}
	return jsonrpc.ID{}
}

// metaID reads an id as JSON gives it.
func metaID(v any) jsonrpc.ID {
	if f, ok := v.(float64); ok && f != math.Trunc(f) {
		return jsonrpc.ID{}
	}
	id, err := jsonrpc.MakeID(v)
	if err != nil {
		return jsonrpc.ID{}
	}
	return id
}
