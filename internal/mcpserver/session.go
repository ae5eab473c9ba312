package mcpserver

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errShutdown is the cause of a context that ends because the server does.
var errShutdown = errors.New("server is shutting down")

// A session is what this package knows about one connection. The transports
// put it into the context that they connect the SDK with; the SDK hands that
// context's values on to every request of the connection.
type session struct {
	grace  time.Duration           // how long a request may be ahead of notifications/initialized
	opened func(id string)         // told the session's id once initialize has succeeded; may be nil
	header http.Header             // of the request that opened the older transport's stream, else nil
	old    *mcp.SSEServerTransport // the SDK's side of that stream, else nil
	ready  chan struct{}           // closed by notifications/initialized
	once   sync.Once               // guards the closing of ready

	directs sync.WaitGroup // the calls in direct

	mu       sync.Mutex // guards what follows
	sdk      *mcp.ServerSession
	revision string // negotiated by initialize, "" before it
	closed   bool
	running  map[*call]context.CancelCauseFunc
	hooks    []*cancelHook                          // oldest first
	direct   map[jsonrpc.ID]context.CancelCauseFunc // plain calls that run
	seen     time.Time                              // when the SDK last saw a call
	requests int                                    // HTTP requests, streams among them, that use it
	used     time.Time                              // when the last of them ended
}

func newSession(grace time.Duration) *session {
	return &session{grace: grace, ready: make(chan struct{}), running: map[*call]context.CancelCauseFunc{}}
}

type sessionKey struct{}

func withSession(ctx context.Context, ss *session) context.Context {
	return context.WithValue(ctx, sessionKey{}, ss)
}

// sessionFrom returns the session of a request's context, nil if it has none.
func sessionFrom(ctx context.Context) *session {
	ss, _ := ctx.Value(sessionKey{}).(*session)
	return ss
}

// negotiated notes the outcome of initialize.
func (ss *session) negotiated(sdk *mcp.ServerSession, revision string) {
	ss.mu.Lock()
	ss.sdk, ss.revision, ss.seen, ss.used = sdk, revision, time.Now(), time.Now()
	ss.mu.Unlock()
	if ss.opened != nil {
		ss.opened(sdk.ID())
	}
}

// revisionInUse returns the negotiated revision, "" before initialize.
func (ss *session) revisionInUse() string {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.revision
}

// initialized opens the gate.
func (ss *session) initialized() { ss.once.Do(func() { close(ss.ready) }) }

// isReady says whether the gate is open.
func (ss *session) isReady() bool {
	select {
	case <-ss.ready:
		return true
	default:
		return false
	}
}

// awaitReady says whether the gate is open, after the grace at most.
func (ss *session) awaitReady(ctx context.Context) bool {
	if ss.isReady() {
		return true
	}
	if ss.grace <= 0 {
		return false
	}
	t := time.NewTimer(ss.grace)
	defer t.Stop()
	select {
	case <-ss.ready:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// begin ties a call to the session: its context ends when the session is
// stopped. It fails with errShutdown once the session has been stopped.
func (ss *session) begin(ctx context.Context, c *call) (context.Context, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.closed {
		cancel(errShutdown)
		return nil, nil, errShutdown
	}
	ss.running[c] = cancel
	return ctx, func() {
		ss.mu.Lock()
		delete(ss.running, c)
		ss.mu.Unlock()
		cancel(nil)
	}, nil
}

// beginDirect notes a call that goes around the SDK, so that it can be cancelled
// and waited for. It says no if the id is taken, or the session has been stopped.
func (ss *session) beginDirect(ctx context.Context, id jsonrpc.ID) (context.Context, func(), bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.closed || ss.direct[id] != nil {
		cancel(nil)
		return nil, nil, false
	}
	if ss.direct == nil {
		ss.direct = map[jsonrpc.ID]context.CancelCauseFunc{}
	}
	ss.direct[id] = cancel
	ss.directs.Add(1)
	return ctx, func() {
		defer ss.directs.Done()
		ss.mu.Lock()
		delete(ss.direct, id)
		ss.mu.Unlock()
		cancel(nil)
	}, true
}

// runsDirectly says whether a call of that id runs that goes around the SDK.
func (ss *session) runsDirectly(id jsonrpc.ID) bool {
	if ss == nil {
		return false
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.direct[id] != nil
}

// mayBypass says whether a call may go around the SDK, which must see one every
// so often.
func (ss *session) mayBypass(every time.Duration) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if time.Since(ss.seen) < every {
		return true
	}
	ss.seen = time.Now()
	return false
}

// use adds n to the number of the HTTP requests that use the session.
func (ss *session) use(n int) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.requests, ss.used = ss.requests+n, time.Now()
}

// idleSince returns when the session was last used. It reports false if it is in
// use.
func (ss *session) idleSince() (time.Time, bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.used, ss.requests == 0 && len(ss.running) == 0
}

// stop ends the contexts of all running calls and refuses new ones.
func (ss *session) stop() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.closed = true
	for _, cancel := range ss.running {
		cancel(errShutdown)
	}
}

// stopped says whether stop was called.
func (ss *session) stopped() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.closed
}

// sdkSession returns the SDK's side of the session, nil before initialize.
func (ss *session) sdkSession() *mcp.ServerSession {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.sdk
}
