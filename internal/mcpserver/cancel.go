package mcpserver

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxAfterCancel bounds what a connection remembers of answered requests. The
// oldest is forgotten first.
const maxAfterCancel = 256

// A cancelHook is what to do when a request is cancelled.
type cancelHook struct {
	id jsonrpc.ID
	f  func()
}

// AfterCancel has f called when the client cancels the request that ctx or one of
// its parents belongs to, also where that has been answered long since: for work
// that the request started and that continues. f is called at most once, at once if
// the request has been cancelled already, and must not block. It is forgotten when
// stop is called, when the session ends, and when the session has answered many
// more requests that wait for this. Outside a request AfterCancel does nothing, as
// over HTTP with 2026-07-28, which has no sessions.
func AfterCancel(ctx context.Context, f func()) (stop func()) {
	k := callFrom(ctx)
	if k == nil {
		return func() {}
	}
	c, h := k.conn, &cancelHook{k.id, f}
	c.mu.Lock()
	late := k.cancelled
	if !late {
		c.hooks = slices.DeleteFunc(c.hooks, func(o *cancelHook) bool { return o.id == k.id })
		c.hooks = append(c.hooks[max(0, len(c.hooks)-maxAfterCancel+1):], h)
	}
	c.mu.Unlock()
	if late {
		f()
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.hooks = slices.DeleteFunc(c.hooks, func(o *cancelHook) bool { return o == h })
	}
}

// cancel notes that the client has cancelled the request of that id, ends the
// context of its handler, and calls its hook. initialize cannot be cancelled.
func (c *conn) cancel(id jsonrpc.ID) {
	c.mu.Lock()
	if k := c.calls[id]; k != nil {
		if k.method == methodInitialize {
			c.mu.Unlock()
			return
		}
		k.cancelled = true
		if k.cancel != nil {
			k.cancel(nil)
		}
		c.checkQuietLocked()
	}
	i := slices.IndexFunc(c.hooks, func(h *cancelHook) bool { return h.id == id })
	var f func()
	if i >= 0 {
		f = c.hooks[i].f
		c.hooks = slices.Delete(c.hooks, i, i+1)
	}
	c.mu.Unlock()
	if f != nil {
		f()
	}
}
