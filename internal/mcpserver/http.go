package mcpserver

import (
	"context"
	"net/http"
	"sync"
	"time"

	"knowhow/internal/httpguard"
	"knowhow/internal/mcpserver/fault"
	"knowhow/internal/mcpserver/stream"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// HTTPOptions says how a server is reached over HTTP. The zero value of a
// bound is its default.
type HTTPOptions struct {
	DisableSSE  bool          // answers are plain JSON, and there are no server-to-client streams
	MaxBody     int64         // bytes of a request's body; 0 is 4 MiB
	MaxSessions int           // sessions at once, of which the idle make room for new ones; 0 is 1000
	SessionIdle time.Duration // how long a session lives without a request; 0 is 30 minutes
}

const (
	httpGrace      = 500 * time.Millisecond // how far a request may overtake notifications/initialized
	keepAlive      = 15 * time.Second       // between comments on an idle stream
	shutdownDrain  = 500 * time.Millisecond // for running requests to be answered
	shutdownCancel = 200 * time.Millisecond // for cancelled ones to say so
	headerSession  = "Mcp-Session-Id"
	headerRevision = "Mcp-Protocol-Version"
	headerResume   = "Last-Event-ID"
)

// An HTTPHandler is the MCP endpoint of a [Server]: Streamable HTTP for the
// revisions with a handshake and for those without, and the older HTTP+SSE
// transport, all on one path. Make one with [Server.HTTP].
//
// It checks neither token nor Host nor Origin: mount it with [HTTPHandler.Route]
// on a server that does. It checks, in this order, the method (405), size and
// type of the body (413, 415). Every refusal is a JSON-RPC error.
//
// Clients should accept JSON and streams. Those that accept JSON alone are
// answered in JSON, and miss what would have come before the answer.
//
// A client whose connection broke may resume a stream with Last-Event-ID; the
// latest 8 MiB of events, of all sessions together, are kept for that.
type HTTPHandler struct {
	server *Server
	opts   HTTPOptions
	pinned bool

	events *stream.Events // nil where there are no streams
	legacy http.Handler   // Streamable HTTP with sessions
	modern http.Handler   // 2026-07-28, without; nil where a revision is pinned

	mu       sync.Mutex // guards what follows
	closed   bool
	posts    int                      // requests that are being answered
	quiet    chan struct{}            // closed when posts is 0 after closed; nil before
	requests map[*http.Request]func() // ends the HTTP requests that run
	sessions map[string]*session      // by id
	old      map[string]*session      // those of HTTP+SSE of 2024-11-05, by the id in their endpoint; nil where it is not served
	opening  map[*session]struct{}    // those that have no id yet, or never will
	passing  map[*session]struct{}    // those of requests that bring everything along
}

// HTTP returns a handler that serves s. A server that does not mount its Route
// calls [HTTPHandler.Shutdown] when it ends, before it waits for the requests
// that run, and sets no WriteTimeout, because streams last.
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
		requests: map[*http.Request]func(){}, sessions: map[string]*session{},
		opening: map[*session]struct{}{}, passing: map[*session]struct{}{}}
	get := func(*http.Request) *mcp.Server { return s.sdk }
	// Host is checked before the SDK sees a request, with the hosts that are
	// allowed besides loopback.
	legacy := &mcp.StreamableHTTPOptions{JSONResponse: o.DisableSSE,
		SessionTimeout: o.SessionIdle + o.SessionIdle/idleShare, MaxRequestBodyBytes: -1, DisableLocalhostProtection: true}
	if !o.DisableSSE {
		h.events = &stream.Events{}
		legacy.EventStore = h.events
	}
	h.legacy = anyAccept(mcp.NewStreamableHTTPHandler(get, legacy))
	if !h.pinned {
		h.modern = anyAccept(mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: o.DisableSSE, Stateless: true,
			PropagateRequestCancellation: true, MaxRequestBodyBytes: -1, DisableLocalhostProtection: true}))
	}
	if !o.DisableSSE && s.opts.Revision != Pinned {
		h.old = map[string]*session{}
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
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r = r.WithContext(ctx)
	if !h.enter(r, cancel) {
		reply(w, http.StatusServiceUnavailable, jsonrpc.ID{}, fault.Describe(fault.ShuttingDown()).Wire())
		return
	}
	defer h.leave(r)
	if h.pinned {
		r.Header.Del(headerRevision) // the pinned revisions do not have this header
	}
	defer h.use(r.Header.Get(headerSession))()
	x := &exchange{handler: h, filter: newFilter(w), request: r}
	switch r.Method {
	case http.MethodPost:
		x.post()
	case http.MethodGet:
		x.get()
	case http.MethodDelete:
		x.delete()
	default:
		refuseMethod(w, h.methods())
	}
}

func (h *HTTPHandler) methods() string {
	if h.opts.DisableSSE {
		return "POST, DELETE"
	}
	return "GET, POST, DELETE"
}

// enter notes that a request is served. It says no after Shutdown.
func (h *HTTPHandler) enter(r *http.Request, cancel func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.requests[r] = cancel
	if r.Method == http.MethodPost {
		h.posts++
	}
	return true
}

func (h *HTTPHandler) leave(r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.requests, r)
	if r.Method == http.MethodPost {
		h.posts--
	}
	if h.closed && h.posts == 0 {
		h.quietLocked()
	}
}

// quietLocked tells Shutdown that no request is being answered.
func (h *HTTPHandler) quietLocked() {
	select {
	case <-h.quiet:
	default:
		close(h.quiet)
	}
}

// Shutdown refuses new requests, gives the running ones half a second to be
// answered, then ends the contexts of their handlers, and closes all streams
// and sessions. It returns in well under a second, nil, or ctx's error if that
// ended first.
func (h *HTTPHandler) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	if !h.closed {
		h.closed, h.quiet = true, make(chan struct{})
		if h.posts == 0 {
			h.quietLocked()
		}
	}
	h.mu.Unlock()
	h.awaitQuiet(ctx, shutdownDrain)
	all := h.allSessions()
	for _, ss := range all {
		ss.stop()
	}
	h.awaitQuiet(ctx, shutdownCancel)
	h.mu.Lock()
	for _, cancel := range h.requests {
		cancel()
	}
	h.mu.Unlock()
	closeSessions(all)
	return ctx.Err()
}

func (h *HTTPHandler) awaitQuiet(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-h.quiet:
	case <-t.C:
	case <-ctx.Done():
	}
}

// closeSessions closes the SDK's sides of sessions. That waits for handlers, so
// one that ignores its context is left behind.
func closeSessions(all []*session) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		var wg sync.WaitGroup
		for _, ss := range all {
			if sdk := ss.sdkSession(); sdk != nil {
				wg.Go(func() { _ = sdk.Close() })
			}
			wg.Go(ss.directs.Wait)
		}
		wg.Wait()
	}()
	waitFor(done, closeTime)
}
