package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// HTTPOptions configure an HTTPHandler. The zero value of a limit is its
// default.
type HTTPOptions struct {
	DisableSSE bool  // responses are plain JSON, and there are no server-to-client streams
	MaxBody    int64 // maximum size of a request's body in bytes; 0 is 4 MiB
	// maximum number of sessions; if it is reached, unused and idle sessions are
	// ended for new ones; 0 is 1000
	MaxSessions int
	SessionIdle time.Duration // how long a session lives without a request; 0 is 30 minutes

	// Refused, if set, is called for each HTTP request that is answered without passing
	// a request on to Options.Around, such as the end of a session. code is that of the
	// JSON-RPC error in the answer, 0 if there is none.
	Refused func(r *http.Request, status int, code int64)
}

const (
	httpGrace      = 500 * time.Millisecond // how long a request may precede notifications/initialized
	oldInitialize  = 30 * time.Second       // in which a session of the older transport must be initialized
	shutdownDrain  = 500 * time.Millisecond // for answering running requests
	shutdownCancel = 200 * time.Millisecond // for the end of cancelled requests
	headerSession  = "Mcp-Session-Id"
	headerRevision = "Mcp-Protocol-Version"
	headerResume   = "Last-Event-ID"
)

// An HTTPHandler is the MCP endpoint of a [Server]: Streamable HTTP for the
// revisions with and without a handshake, and the older HTTP+SSE transport, all
// on one path. Create one with [Server.HTTP].
//
// It does not check the token, Host or Origin: mount it with
// [HTTPHandler.Route] on a server that does. It checks, in this order, the
// method (405), and the size and type of the body (413, 415). Every refusal is
// a JSON-RPC error.
//
// A GET of a browser is redirected to "/", where the server should have a page.
// Another GET must ask for a stream, unless it belongs to a session.
//
// Clients should accept JSON and streams. Those that accept only JSON are
// answered in JSON, and do not receive messages that precede the answer.
//
// A client whose connection broke may resume a stream with Last-Event-ID. For
// this purpose, the latest 8 MiB of events, of all sessions together, are kept.
// So a call whose stream broke continues, while a call that is answered in JSON
// is cancelled when its client ends the request.
type HTTPHandler struct {
	server *Server
	opts   HTTPOptions
	pinned bool
	events *events // nil if there are no streams

	mu       sync.Mutex // guards what follows
	closed   bool
	sessions map[string]*session
	conns    map[*conn]struct{} // those of sessions, and of requests of 2026-07-28
}

// HTTP returns a handler that serves s. A server that does not mount its Route
// must call [HTTPHandler.Shutdown] when it ends, before it waits for running
// requests, and must not set WriteTimeout, because streams are long-lived.
func (s *Server) HTTP(o HTTPOptions) *HTTPHandler {
	if o.MaxBody <= 0 {
		o.MaxBody = 4 << 20
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = 1000
	}
	if o.SessionIdle <= 0 {
		o.SessionIdle = 30 * time.Minute
	}
	h := &HTTPHandler{server: s, opts: o, pinned: s.opts.Revision.pinned(),
		sessions: map[string]*session{}, conns: map[*conn]struct{}{}}
	if !o.DisableSSE {
		h.events = &events{}
	}
	return h
}

// Route mounts h at a path of a guarded listener.
func (h *HTTPHandler) Route(path string) httpguard.Route {
	return httpguard.Route{Path: path, Handler: h, Refuse: Refuse, Methods: h.methods(),
		Expose: headerSession + ", WWW-Authenticate, Retry-After", Shutdown: h.Shutdown}
}

// ServeHTTP implements [http.Handler].
func (h *HTTPHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.opts.Refused != nil {
		u := &untaken{Answer: httpguard.Answer{ResponseWriter: w}}
		defer func() {
			if !u.taken {
				h.opts.Refused(r, cmp.Or(u.Status, http.StatusOK), u.code)
			}
		}()
		w = u
	}
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		reply(w, http.StatusServiceUnavailable, jsonrpc.ID{}, describe(shuttingDown()).wire())
		return
	}
	if h.pinned {
		r.Header.Del(headerRevision) // the pinned revisions do not have this header
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodGet:
		h.get(w, r)
	case http.MethodDelete:
		h.delete(w, r)
	default:
		refuseMethod(w, h.methods())
	}
}

// An untaken is the response to an HTTP request until one of its calls is passed on.
type untaken struct {
	httpguard.Answer
	taken bool
	code  int64 // of the JSON-RPC error
}

// take registers the calls of a payload; see conn.take. w is the response to the HTTP
// request.
func (h *HTTPHandler) take(w http.ResponseWriter, c *conn, p payload, header http.Header, to sink,
	together bool) *group {
	g := c.take(p, header, to, together)
	if u, ok := w.(*untaken); ok && g.open > 0 {
		u.taken = true
	}
	return g
}

func (h *HTTPHandler) methods() string {
	if h.opts.DisableSSE {
		return "POST, DELETE"
	}
	return "GET, POST, DELETE"
}

// stateless reports whether a request belongs to a revision without sessions.
func (h *HTTPHandler) stateless(r *http.Request) bool {
	return !h.pinned && r.Header.Get(headerRevision) >= statelessRevision
}

// old reports whether the older transport, HTTP+SSE of 2024-11-05, is
// supported.
func (h *HTTPHandler) old() bool {
	return h.events != nil && h.server.opts.Revision != Pinned
}

// post answers a message, or a batch of them.
func (h *HTTPHandler) post(w http.ResponseWriter, r *http.Request) {
	p, ok := h.read(w, r)
	if !ok {
		return
	}
	one := p.single()
	if one != nil && one.Method == methodInitialize && !p.modern {
		r.Header.Del(headerRevision) // the revision is negotiated in the body, and the client may support a later one
	}
	switch stateless := h.stateless(r); {
	case stateless && p.batch:
		refuse(w, http.StatusBadRequest, jsonrpc.ID{}, noBatches)
	case stateless:
		h.postStateless(w, r, p, one)
	case h.old() && r.URL.Query().Has("sessionid"):
		h.postOld(w, r, p, one)
	default:
		h.postSession(w, r, p, one)
	}
}

// maxDrain is how much of a body that is too large is read, in bytes.
const maxDrain = 64 << 20

// read reads and parses the body. If it cannot be served, read answers the
// request.
func (h *HTTPHandler) read(w http.ResponseWriter, r *http.Request) (payload, bool) {
	limit := h.opts.MaxBody
	tooLarge := fmt.Sprintf("the body of a request must not exceed %d bytes", limit)
	if r.ContentLength > limit {
		httpguard.Drain(w, r, maxDrain)
		refuse(w, http.StatusRequestEntityTooLarge, jsonrpc.ID{}, tooLarge)
		return payload{}, false
	}
	if mt, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mt != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, jsonrpc.ID{},
			"the Content-Type of a request must be application/json")
		return payload{}, false
	}
	data, err := httpguard.ReadBody(r, limit)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		httpguard.Drain(w, r, maxDrain)
		refuse(w, http.StatusRequestEntityTooLarge, jsonrpc.ID{}, tooLarge)
		return payload{}, false
	}
	if errors.Is(err, httpguard.ErrBodies) {
		w.Header().Set("Retry-After", "5")
		reply(w, http.StatusServiceUnavailable, jsonrpc.ID{}, newError(codeBusy, errkind.Message(err),
			map[string]any{"code": "BUSY", "retryable": true, "retryAfterMs": 5000}))
		return payload{}, false
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, jsonrpc.ID{}, "the body of the request could not be read")
		return payload{}, false
	}
	p := parse(data, h.pinned)
	if len(p.bad) > 0 && !p.batch {
		writeJSON(w, http.StatusBadRequest, p.bad[0])
		return payload{}, false
	}
	return p, true
}

// revisionKnown reports whether the revision in a request's header, if any, is
// known to the SDK. If not, it answers the request.
func revisionKnown(w http.ResponseWriter, r *http.Request, id jsonrpc.ID) bool {
	revision, known := r.Header.Get(headerRevision), mcp.SupportedProtocolVersions()
	if revision == "" || slices.Contains(known, revision) {
		return true
	}
	refuse(w, http.StatusBadRequest, id, "Bad Request: Unsupported protocol version (supported versions: "+strings.Join(
		known, ",")+")")
	return false
}

// accepted reports whether the answer to a POST must be JSON and not a stream.
// If the client accepts neither, ok is false and the request has been answered.
func (h *HTTPHandler) accepted(w http.ResponseWriter, r *http.Request, id jsonrpc.ID) (asJSON, ok bool) {
	json, stream := accepts(r.Header.Values("Accept"))
	switch {
	case h.events == nil:
		return true, true
	case r.Header.Get("Accept") == "", stream: // RFC 9110, section 12.5.1: without the header the client accepts anything
		return false, true
	case !json:
		refuse(w, http.StatusBadRequest, id, "Accept must contain both 'application/json' and 'text/event-stream'")
	}
	return true, json
}

// accepts reports whether the values of an Accept header include JSON and
// streams. Like the SDK, it ignores weights.
func accepts(values []string) (asJSON, asStream bool) {
	for _, v := range values {
		for media := range strings.SplitSeq(v, ",") {
			media, _, _ = strings.Cut(media, ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "*/*":
				return true, true
			case "application/json", "application/*":
				asJSON = true
			case "text/event-stream", "text/*":
				asStream = true
			}
		}
	}
	return asJSON, asStream
}

// Interrupt makes all running calls fail, and drops the answers that clients could ask
// for again. Sessions continue. It is for a caller whose rights were reduced.
func (h *HTTPHandler) Interrupt() {
	h.mu.Lock()
	all := slices.Collect(maps.Keys(h.conns))
	h.mu.Unlock()
	for _, c := range all {
		c.interrupt()
	}
	if h.events != nil {
		h.events.closeAnswers()
	}
}

// Sessions returns the number of sessions, and of streams that carry messages of the
// server to them.
func (h *HTTPHandler) Sessions() (sessions, streams int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sessions {
		streams += s.streams
		if s.old {
			streams++
		}
	}
	return len(h.sessions), streams
}

// Shutdown refuses new requests, waits half a second for running requests, then
// cancels the contexts of their handlers, and closes all streams and sessions.
// It returns within a second. The error is nil, or that of ctx if ctx ended
// first.
func (h *HTTPHandler) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	all := slices.Collect(maps.Keys(h.conns))
	h.mu.Unlock()
	drain := func(d time.Duration) {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		for _, c := range all {
			c.drain(ctx)
		}
	}
	drain(shutdownDrain)
	for _, c := range all {
		c.stop()
	}
	drain(shutdownCancel)
	for _, c := range all {
		_ = c.Close() // returns nil
	}
	end, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	for _, c := range all {
		c.end(end)
	}
	return ctx.Err()
}
