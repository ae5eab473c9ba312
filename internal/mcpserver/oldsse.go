package mcpserver

import (
	"context"
	"crypto/rand"
	"net/http"

	"knowhow/internal/mcpserver/wire"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// openOld serves the stream of a session of the HTTP+SSE transport of 2024-11-05.
// The SDK has a handler for all such sessions, but that takes no batches.
func (x *exchange) openOld(ss *session) {
	h, id := x.handler, rand.Text()
	ss.old = &mcp.SSEServerTransport{Endpoint: x.request.URL.EscapedPath() + "?sessionid=" + id, Response: x.filter, MaxRequestBodyBytes: -1}
	h.mu.Lock()
	h.old[id] = ss
	h.mu.Unlock()
	for name, value := range streamHeader {
		x.filter.Header().Set(name, value)
	}
	x.pass(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sdk, err := h.server.sdk.Connect(r.Context(), ss.old, nil)
		if err != nil { // of the first event: the client is gone
			return
		}
		stop := context.AfterFunc(r.Context(), func() { _ = sdk.Close() }) // why it ended says nothing to the client
		_ = sdk.Wait()
		stop()
	}))
	h.mu.Lock()
	delete(h.old, id)
	h.mu.Unlock()
}

// oldSession returns the session of the older transport that a message is for,
// nil if there is none.
func (x *exchange) oldSession() *session {
	x.handler.mu.Lock()
	defer x.handler.mu.Unlock()
	return x.handler.old[x.request.URL.Query().Get("sessionid")]
}

// postOld passes the messages of a body on to their session, one by one.
func (x *exchange) postOld(p wire.Payload) {
	ss := x.oldSession()
	x.pass(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ss == nil {
			http.Error(w, "session not found", http.StatusNotFound)
			return
		}
		for one := p; len(p.Msgs) > 0 && x.filter.status == 0; p.Msgs = p.Msgs[1:] {
			if one.Batch, one.Msgs = false, p.Msgs[:1]; x.rewind(one) {
				ss.old.ServeHTTP(w, r)
			}
		}
		if x.filter.status == 0 {
			w.WriteHeader(http.StatusAccepted)
		}
	}))
}
