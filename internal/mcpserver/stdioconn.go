package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"knowhow/internal/mcpserver/fault"
	"knowhow/internal/mcpserver/stream"
	"knowhow/internal/mcpserver/wire"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stdioConn implements [mcp.Connection] over lines. The SDK's own ends the
// process at the first malformed line, loses the answers to what was read
// before the end of input, and answers cancelled requests.
type stdioConn struct {
	out     io.Writer
	session *session
	handle  mcp.MethodHandler // answers plain calls
	pinned  bool
	end     <-chan struct{} // closed when nothing more shall be read
	lines   chan stream.Line
	closed  chan struct{} // closed by Close
	drained chan struct{} // closed when input has ended and answers have been waited for
	idle    chan struct{} // told when no call is open
	queue   []jsonrpc.Message

	noBatch atomic.Bool // the negotiated revision has no batches
	once    sync.Once   // guards the closing of closed

	mu      sync.Mutex // guards calls, the batches in them, and writing
	calls   map[jsonrpc.ID]*openCall
	writing int // answers that have left calls and are not yet written

	turn chan struct{} // holds a value while somebody writes to out
}

// An openCall is a request that has not been answered.
type openCall struct {
	method    string
	cancelled bool
	batch     *openBatch // nil if it came alone
}

// waitedFor says whether the end of the input waits for the answer.
func (c *openCall) waitedFor() bool { return !c.cancelled && c.method != methodListen }

// methodListen is a request of 2026-07-28 that lasts until it is cancelled.
const methodListen = "subscriptions/listen"

// An openBatch collects the answers that go out together.
type openBatch struct {
	open int
	out  []json.RawMessage
}

func newStdioConn(t *stdioTransport) *stdioConn {
	return &stdioConn{out: t.out, handle: t.handle, pinned: t.pinned, end: t.end, lines: make(chan stream.Line), closed: make(chan struct{}),
		drained: make(chan struct{}), idle: make(chan struct{}, 1), turn: make(chan struct{}, 1), calls: map[jsonrpc.ID]*openCall{}}
}

// SessionID returns "": stdio has one session.
func (c *stdioConn) SessionID() string { return "" }

// Close ends reading and writing.
func (c *stdioConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// Read returns the next message for the SDK, and answers what is none itself.
// It is called by one goroutine.
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		for len(c.queue) > 0 {
			m := c.queue[0]
			c.queue = c.queue[1:]
			if c.admit(ctx, m) {
				wire.Adapt(m, c.pinned)
				return m, nil
			}
		}
		var l stream.Line
		select {
		case <-c.closed:
			return nil, io.EOF
		case <-c.end:
			l.Err = io.EOF
		case l = <-c.lines:
		}
		switch {
		case errors.Is(l.Err, stream.ErrTooLong):
			c.write(wire.ErrorLine(fault.CodeInvalidRequest, fmt.Sprintf("invalid request: a message must not exceed %d bytes", maxLine)))
		case l.Err != nil:
			c.drain()
			return nil, l.Err
		default:
			c.accept(wire.Parse(l.Data, c.pinned))
		}
	}
}

// accept queues the messages of one line, and answers what is wrong with it.
func (c *stdioConn) accept(p wire.Payload) {
	if p.Batch && (c.noBatch.Load() || p.Modern) {
		c.write(wire.ErrorLine(fault.CodeInvalidRequest, "invalid request: the negotiated revision has no batches"))
		return
	}
	var b *openBatch
	if p.Batch {
		b = &openBatch{}
	}
	answers := p.Bad
	c.mu.Lock()
	for _, m := range p.Msgs {
		if bad := c.register(m, b); bad != nil {
			answers = append(answers, bad)
			continue
		}
		c.queue = append(c.queue, m)
	}
	if b != nil {
		b.out = append(b.out, answers...)
		answers = nil
		if whole := b.whole(); whole != nil {
			answers = []json.RawMessage{whole}
		}
	}
	c.mu.Unlock()
	for _, a := range answers {
		c.write(a)
	}
}

// register notes a call before any message of its line is delivered, so that a
// cancellation in the same line finds it. It returns the answer to a call that
// is refused.
func (c *stdioConn) register(m jsonrpc.Message, b *openBatch) json.RawMessage {
	r, ok := m.(*jsonrpc.Request)
	if !ok || !r.IsCall() {
		return nil
	}
	if b != nil && r.Method == methodInitialize {
		return wire.Refusal(r.ID, fault.BatchedInitialize())
	}
	if c.calls[r.ID] != nil {
		return wire.DuplicateID(r.ID)
	}
	c.calls[r.ID] = &openCall{method: r.Method, batch: b}
	if b != nil {
		b.open++
	}
	return nil
}

// admit says whether the SDK shall see a message. It starts plain calls itself
// and marks the call that a cancellation names. It keeps from the SDK those
// that name nothing, and those of initialize, which cannot be cancelled.
func (c *stdioConn) admit(ctx context.Context, m jsonrpc.Message) bool {
	r, ok := m.(*jsonrpc.Request)
	if !ok || r.Method != notifyCancelled {
		return !ok || !c.callDirectly(ctx, r)
	}
	id, ok := wire.CancelTarget(r)
	if !ok {
		return false
	}
	c.mu.Lock()
	open := c.calls[id]
	pass := open != nil && open.method != methodInitialize
	if pass {
		open.cancelled = true
	}
	c.mu.Unlock()
	if open == nil {
		c.session.cancelled(id) // answered already, or never heard of
	}
	return pass
}

// Write sends what the SDK has to say, except answers to cancelled requests.
func (c *stdioConn) Write(_ context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		b, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return err
		}
		return c.write(b)
	}
	cancelled := wire.IsCancelled(r)
	wire.MendError(r)
	data, err := jsonrpc.EncodeMessage(r)
	if err != nil {
		return err
	}
	return c.send(r, data, cancelled)
}

// send writes data, which is the response r, if it shall be written.
func (c *stdioConn) send(r *jsonrpc.Response, data []byte, cancelled bool) error {
	var err error
	if data = c.answer(r, data, cancelled); data != nil {
		err = c.write(data)
	}
	c.written()
	return err
}

// answer returns what to write for a response: itself, the whole batch that it
// completes, or nothing. From then on the client may use the id again.
func (c *stdioConn) answer(r *jsonrpc.Response, data []byte, cancelled bool) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing++
	open := c.calls[r.ID]
	if open == nil {
		return data
	}
	delete(c.calls, r.ID)
	if open.method == methodInitialize {
		var res struct{ ProtocolVersion string }
		if json.Unmarshal(r.Result, &res) == nil {
			c.noBatch.Store(res.ProtocolVersion >= unbatchedRevision)
		}
	}
	if cancelled || open.cancelled {
		data = nil
	}
	if open.batch == nil {
		return data
	}
	if data != nil {
		open.batch.out = append(open.batch.out, data)
	}
	open.batch.open--
	return open.batch.whole()
}

// whole returns the answer to a batch when its last call is done, if there is
// anything to say.
func (b *openBatch) whole() json.RawMessage {
	if b.open > 0 || len(b.out) == 0 {
		return nil
	}
	data := wire.Batch(b.out)
	b.out = nil
	return data
}

// written ends what answer began.
func (c *stdioConn) written() {
	c.mu.Lock()
	c.writing--
	c.mu.Unlock()
	select {
	case c.idle <- struct{}{}:
	default:
	}
}

// write sends one line. After Close there is nobody to send it to, also for
// those that wait for their turn.
func (c *stdioConn) write(b []byte) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-c.closed:
		return io.ErrClosedPipe
	}
	select {
	case <-c.closed:
		return io.ErrClosedPipe
	default:
	}
	_, err := c.out.Write(append(b, '\n'))
	return err
}

// drain waits after the end of input until the open calls are answered.
func (c *stdioConn) drain() {
	defer close(c.drained)
	deadline := time.NewTimer(drainTime)
	defer deadline.Stop()
	for c.waiting() {
		select {
		case <-c.idle:
		case <-deadline.C:
			return
		case <-c.closed:
			return
		}
	}
}

// waiting says whether any answer is worth waiting for.
func (c *stdioConn) waiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing > 0 {
		return true
	}
	for _, open := range c.calls {
		if open.waitedFor() {
			return true
		}
	}
	return false
}
