package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errShutdown is the cause of contexts that are cancelled because the server
// ends.
var errShutdown = errors.New("server is shutting down")

// errInterrupted is the error of calls that HTTPHandler.Interrupt ends.
var errInterrupted = fmt.Errorf("the rights of the caller have changed, send the request again: %w",
	errkind.Unavailable)

// closeTime is how long the end of a connection waits for handlers after their
// contexts have been cancelled.
const closeTime = 100 * time.Millisecond

// A conn is one connection to a client: a pair of pipes, the HTTP requests of a
// session, the stream of the older transport, or one request of 2026-07-28.
// Incoming messages are passed to take and deliver; outgoing messages are
// passed to a sink. All requests pass through the SDK, for which the links of a conn
// are connections.
type conn struct {
	server *Server
	id     string        // Mcp-Session-Id; "" if there are no sessions
	grace  time.Duration // how long a request may precede notifications/initialized
	alone  sink          // receives messages while no request waits for them; nil drops them

	linking sync.Mutex // guards what follows
	links   []*link    // the last one receives the messages
	shaken  bool       // initialize was passed to it

	ready   chan struct{}  // closed by notifications/initialized
	opens   sync.Once      // guards the closing of ready
	closed  chan struct{}  // closed by Close
	closes  sync.Once      // guards the closing of closed
	running sync.WaitGroup // handlers

	mu       sync.Mutex // guards what follows
	revision string     // negotiated by initialize; "" before
	client   string     // name of the client, as initialize gave it
	stopped  bool
	calls    map[jsonrpc.ID]*call // unanswered calls
	sending  int                  // answers that are no longer in calls and not yet sent
	quiet    chan struct{}        // closed when no answer is outstanding; nil if nothing waits for it
	hooks    []cancelHook         // oldest first
}

// A sink sends messages of the server. Its methods must be safe for concurrent
// use. They return no errors: if the client is gone, its connection ends, which
// the reader notices.
type sink interface {
	// send sends an answer, or an array of them. code is that of the error in a
	// single answer, otherwise 0. Without flush the answer may stay in a buffer
	// until end.
	send(data []byte, code int64, flush bool)

	// notify sends a message that is not an answer.
	notify(data []byte)

	// end is called after all answers of a group were sent.
	end()
}

// A group is the content of one line or body, with the answers to it.
type group struct {
	to       sink
	batch    bool
	together bool // the answers are sent as one message, after the last one is ready
	items    []item
	answers  []json.RawMessage // answers to refused messages, and those that wait for the others
	open     int               // unanswered calls
	unsent   int               // calls whose answers are not sent
	unknown  bool              // a call of an unknown method was refused
}

// An item is a message of a group, with its call if the message is a call.
type item struct {
	message jsonrpc.Message
	call    *call
}

func newConn(s *Server, id string, grace time.Duration) *conn {
	return &conn{server: s, id: id, grace: grace, ready: make(chan struct{}), closed: make(chan struct{}),
		calls: map[jsonrpc.ID]*call{}}
}

type connKey struct{}

// connFrom returns the connection of a request's context, or nil if there is
// none.
func connFrom(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

// A link connects a conn with a session of the SDK, for which it is an
// [mcp.Connection].
type link struct {
	*conn
	session  *mcp.ServerSession
	incoming chan jsonrpc.Message // to the session
}

// Connect implements [mcp.Transport].
func (l *link) Connect(context.Context) (mcp.Connection, error) { return l, nil }

// Read returns the next message for the SDK.
func (l *link) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case <-l.closed:
		return nil, io.EOF
	case m := <-l.incoming:
		return m, nil
	}
}

// SessionID implements [mcp.Connection].
func (c *conn) SessionID() string { return c.id }

// Close ends reading and sending.
func (c *conn) Close() error {
	c.closes.Do(func() { close(c.closed) })
	return nil
}

// Write sends a message of the SDK.
func (c *conn) Write(ctx context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		data, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return err
		}
		c.sendMessage(callFrom(ctx), data)
		return nil
	}
	c.mu.Lock()
	k := c.calls[r.ID]
	c.mu.Unlock()
	if k == nil {
		return nil
	}
	if r.Error != nil {
		c.fail(k, sdkError(r.Error))
		return nil
	}
	data, err := jsonrpc.EncodeMessage(r)
	if err != nil {
		c.fail(k, describe(err).wire())
		return nil
	}
	c.answer(k, data, 0)
	return nil
}

// take registers the calls of a payload before any of its messages is
// delivered, so that a cancellation in the same payload finds them. It answers
// messages that cannot be served. The payload must be permitted in the
// negotiated revision.
func (c *conn) take(p payload, header http.Header, to sink, together bool) *group {
	g := &group{to: to, batch: p.batch, together: together, answers: p.bad}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range p.messages {
		r, ok := m.(*jsonrpc.Request)
		if !ok {
			g.items = append(g.items, item{message: m})
			continue
		}
		e := checkRequest(r, p.modern)
		if e == nil && p.batch && r.Method == methodInitialize {
			e = newError(codeInvalidRequest, "initialize must not be part of a batch", nil)
		}
		switch {
		case e != nil && r.ID.IsValid():
			g.answers = append(g.answers, errorResponse(r.ID, e))
			g.unknown = g.unknown || e.Code == codeMethodNotFound
		case e != nil:
		case !r.IsCall():
			g.items = append(g.items, item{message: r})
		case c.calls[r.ID] != nil:
			g.answers = append(g.answers, duplicateID(r.ID))
		default:
			k := &call{conn: c, group: g, id: r.ID, method: r.Method, params: r.Params, header: header}
			c.calls[r.ID] = k
			g.items = append(g.items, item{r, k})
			g.open++
		}
	}
	g.unsent = g.open
	return g
}

// deliver starts processing the messages of a group. The handlers' contexts
// have the values of ctx.
func (c *conn) deliver(ctx context.Context, g *group) {
	ctx = context.WithValue(context.WithoutCancel(ctx), connKey{}, c)
	if !g.together {
		for _, a := range g.answers {
			g.to.send(a, 0, true)
		}
		g.answers = nil
	} else if g.open == 0 && len(g.answers) > 0 {
		g.to.send(array(g.answers), 0, true)
	}
	for _, i := range g.items {
		r, ok := i.message.(*jsonrpc.Request)
		switch {
		case !ok:
			c.pass(ctx, i.message)
		case r.Method == notifyCancelled:
			if id, ok := cancelTarget(r); ok {
				c.cancel(id)
			}
		default:
			adapt(r, c.server.opts.Revision.pinned())
			r.Extra = i.call.extra()
			c.pass(ctx, r)
		}
	}
}

// pass passes a message to the SDK.
func (c *conn) pass(ctx context.Context, m jsonrpc.Message) {
	select {
	case c.linkFor(ctx, m).incoming <- m:
	case <-c.closed:
	}
}

// linkFor returns the link for a message. The first initialize gets a new one: a
// session of the SDK that has received a request of 2026-07-28 refuses it.
func (c *conn) linkFor(ctx context.Context, m jsonrpc.Message) *link {
	r, ok := m.(*jsonrpc.Request)
	handshake := ok && r.Method == methodInitialize
	c.linking.Lock()
	defer c.linking.Unlock()
	if len(c.links) == 0 || handshake && !c.shaken {
		l := &link{conn: c, incoming: make(chan jsonrpc.Message)}
		l.session, _ = c.server.sdk.Connect(ctx, l, nil) // the only error is that of our Connect
		c.links = append(c.links, l)
	}
	c.shaken = c.shaken || handshake
	return c.links[len(c.links)-1]
}

// fail answers a call with an error.
func (c *conn) fail(k *call, e *jsonrpc.Error) { c.answer(k, errorResponse(k.id, e), e.Code) }

// answer sends the response to a call, or keeps it for the common response of
// its group. A cancelled call gets no response. Afterwards the client may reuse
// the id.
func (c *conn) answer(k *call, data []byte, code int64) {
	g := k.group
	c.mu.Lock()
	if c.calls[k.id] != k {
		c.mu.Unlock()
		return
	}
	delete(c.calls, k.id)
	if k.cancelled {
		data = nil
	}
	g.open--
	last := g.open == 0
	if g.together {
		if data != nil {
			g.answers = append(g.answers, data)
		}
		data = nil
		if last && len(g.answers) > 0 {
			if data = g.answers[0]; g.batch {
				data, code = array(g.answers), 0
			}
		}
	}
	c.sending++
	c.mu.Unlock()
	if data != nil {
		g.to.send(data, code, !last)
	}
	c.mu.Lock()
	g.unsent--
	end := g.unsent == 0
	c.mu.Unlock()
	if end {
		g.to.end()
	}
	c.mu.Lock()
	c.sending--
	c.checkQuietLocked()
	c.mu.Unlock()
}

// sendMessage sends a message that is not an answer: to the sink of the group of the
// call k while the group is open, otherwise, and if k is nil, to c.alone.
func (c *conn) sendMessage(k *call, data []byte) {
	c.mu.Lock()
	to := c.alone
	if k != nil && c.calls[k.id] == k {
		to = k.group.to
	}
	c.mu.Unlock()
	if to != nil {
		to.notify(data)
	}
}

// isBusy reports whether a call is unanswered.
func (c *conn) isBusy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls) > 0
}

// inUse reports whether a call with that id is unanswered.
func (c *conn) inUse(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[id] != nil
}

// negotiated records the outcome of initialize.
func (c *conn) negotiated(revision string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision = revision
}

// revisionInUse returns the negotiated revision, or "" before initialize.
func (c *conn) revisionInUse() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision
}

// setClient records the name of the client.
func (c *conn) setClient(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.client = name
}

// clientName returns the name of the client, "" before initialize.
func (c *conn) clientName() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client
}

// initialized opens the gate.
func (c *conn) initialized() { c.opens.Do(func() { close(c.ready) }) }

// isReady reports whether the gate is open.
func (c *conn) isReady() bool {
	select {
	case <-c.ready:
		return true
	default:
		return false
	}
}

// awaitReady reports whether the gate is open. It waits for it, at most for the
// grace period.
func (c *conn) awaitReady(ctx context.Context) bool {
	if c.isReady() || c.grace <= 0 {
		return c.isReady()
	}
	t := time.NewTimer(c.grace)
	defer t.Stop()
	select {
	case <-c.ready:
	case <-t.C:
	case <-ctx.Done():
	}
	return c.isReady()
}

// begin connects the handler of a call to the connection: its context is
// cancelled when the call is cancelled or the connection is stopped. If the
// connection has already been stopped, begin fails with errShutdown.
func (c *conn) begin(ctx context.Context, k *call) (context.Context, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		cancel(errShutdown)
		return nil, nil, errShutdown
	}
	if k.cancelled || k.interrupted {
		cancel(nil)
	}
	k.cancel = cancel
	c.running.Add(1)
	return ctx, func() {
		cancel(nil)
		c.running.Done()
	}, nil
}

// isCancelled reports whether the client has cancelled a call.
func (c *conn) isCancelled(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return k.cancelled
}

// stop cancels the contexts of all handlers and prevents new ones.
func (c *conn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	for _, k := range c.calls {
		if k.cancel != nil {
			k.cancel(errShutdown)
		}
	}
}

// interrupt cancels the contexts of all handlers, whose calls then fail, and drops
// the work that outlasts its call.
func (c *conn) interrupt() {
	c.mu.Lock()
	hooks := c.hooks
	c.hooks = nil
	for _, k := range c.calls {
		k.interrupted = true
		if k.cancel != nil {
			k.cancel(errInterrupted)
		}
	}
	c.mu.Unlock()
	for _, h := range hooks {
		h.f()
	}
}

// isInterrupted reports whether a call was interrupted.
func (c *conn) isInterrupted(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return k.interrupted
}

// isStopped reports whether stop was called.
func (c *conn) isStopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped
}

// drain waits until no answer is outstanding, or ctx ends.
func (c *conn) drain(ctx context.Context) {
	c.mu.Lock()
	if c.quiet == nil {
		c.quiet = make(chan struct{})
	}
	quiet := c.quiet
	c.checkQuietLocked()
	c.mu.Unlock()
	select {
	case <-quiet:
	case <-c.closed:
	case <-ctx.Done():
	}
}

// checkQuietLocked notifies drain if no answer is outstanding.
func (c *conn) checkQuietLocked() {
	if c.quiet == nil || c.sending > 0 {
		return
	}
	for _, k := range c.calls {
		if !k.cancelled && k.method != methodListen {
			return
		}
	}
	close(c.quiet)
	c.quiet = nil
}

// end stops and closes the connection. It waits for answers and handlers until
// ctx ends, and then at most closeTime. A handler that ignores its context is
// abandoned.
func (c *conn) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	c.stop()
	c.drain(ctx)
	_ = c.Close() // returns nil
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.running.Wait()
		c.linking.Lock()
		links := c.links
		c.linking.Unlock()
		for _, l := range links {
			_ = l.session.Wait() // the reason for its end is not relevant
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// extraKey is the key under which the SDK passes a call to our middleware.
const extraKey = "call"

// extra returns the data that the SDK passes on with the request of a call.
func (k *call) extra() *mcp.RequestExtra {
	if k == nil {
		return nil
	}
	return &mcp.RequestExtra{Header: k.header, TokenInfo: &auth.TokenInfo{Extra: map[string]any{extraKey: k}}}
}

// callOf returns the call of a request, or nil for a notification.
func callOf(req mcp.Request) *call {
	x := req.GetExtra()
	if x == nil || x.TokenInfo == nil {
		return nil
	}
	k, _ := x.TokenInfo.Extra[extraKey].(*call)
	return k
}
