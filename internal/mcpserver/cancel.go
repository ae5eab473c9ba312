package mcpserver

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxAfterCancel limits the hooks that a connection keeps for answered
// requests. The oldest is dropped first.
const maxAfterCancel = 256

// A cancelHook is called when a request is cancelled.
type cancelHook struct {
	id jsonrpc.ID
	f  func()
}

// AfterCancel arranges for f to be called when the client cancels the request
// that ctx or one of its parents belongs to, also after the request was
// answered: for work that the request started and that continues. f is called
// at most once, must not block, and is called immediately if the request has
// already been cancelled. It is dropped when the session ends, and when many more
// requests with hooks have been answered. AfterCancel has no effect outside a
// request, nor over HTTP with 2026-07-28, which has no sessions.
func AfterCancel(ctx context.Context, f func()) {
	k := callFrom(ctx)
	if k == nil {
		return
	}
	c := k.conn
	c.mu.Lock()
	late := k.cancelled
	if !late {
		c.hooks = slices.DeleteFunc(c.hooks, func(o cancelHook) bool { return o.id == k.id })
		c.hooks = append(c.hooks[max(0, len(c.hooks)-maxAfterCancel+1):], cancelHook{k.id, f})
	}
	c.mu.Unlock()
	if late {
		f()
	}
}

// abandon cancels the unanswered calls of a group whose client is gone.
func (c *conn) abandon(g *group) {
	for _, i := range g.items {
		if i.call == nil {
			continue
		}
		c.mu.Lock()
		unanswered := c.calls[i.call.id] == i.call // and no later call with that id
		c.mu.Unlock()
		if unanswered {
			c.cancel(i.call.id)
		}
	}
}

// cancel records that the client has cancelled the request with that id,
// cancels the context of its handler, and calls its hook. initialize cannot be
// cancelled.
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
	i := slices.IndexFunc(c.hooks, func(h cancelHook) bool { return h.id == id })
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
