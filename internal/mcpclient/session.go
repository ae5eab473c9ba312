package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient/redact"
)

// longestCall is the time limit of a call that keeps reporting progress, unless
// its own limit is longer: a server must not be able to block a caller for
// ever.
const longestCall = time.Hour

// A link transmits frames to one server. It passes messages of the server to
// [session.receive], and reports the end of the link to [session.fail].
type link interface {
	// send sends the frame of a request, or of a notification if c is nil. It
	// may return before or after the response has arrived.
	send(ctx context.Context, c *call, frame []byte) error

	// post sends a frame without a response, asynchronously and if possible.
	post(ctx context.Context, frame []byte)

	// withdraw reports whether c's frame was not sent and will not be sent.
	withdraw(c *call) bool

	// agreed informs the link of the MCP revision that the handshake agreed on.
	agreed(ctx context.Context, revision string)

	// halt prevents any further sending.
	halt()

	// close ends the link and waits for all its resources. When hurry is
	// closed, it ends them at once.
	close(hurry <-chan struct{})
}

// A call is one request in flight.
type call struct {
	id      int64
	method  string
	token   json.RawMessage // the caller's progress token, or nil
	sent    atomic.Bool     // the server may have received some of it
	start   time.Time
	timeout time.Duration
	timer   *time.Timer
	cancel  context.CancelCauseFunc

	done   chan struct{} // closed when result and err are set
	result json.RawMessage
	err    error
}

// ended reports whether the call has its response.
func (c *call) ended() bool { return isClosed(c.done) }

// A session is the JSON-RPC layer of one connection. It multiplexes calls.
type session struct {
	server  string
	log     *slog.Logger
	redact  *redact.Redactor
	link    link
	tail    *redact.Tail   // of the server's stderr; nil if there is none
	changed func()         // called for notifications/tools/list_changed
	meta    map[string]any // members of the _meta of every request; nil before MCP 2026-07-28

	nextID  atomic.Int64
	answers atomic.Int64 // number of responses to requests so far

	mu      sync.Mutex
	pending map[int64]*call
	err     error // the reason for its end

	over chan struct{} // closed when it has ended
}

func newSession(server string, log *slog.Logger, r *redact.Redactor, changed func()) *session {
	return &session{
		server: server, log: log, redact: r, changed: changed,
		pending: map[int64]*call{}, over: make(chan struct{}),
	}
}

// expire ends the session for new calls. Calls in flight continue, because each
// of them learns separately whether the server accepted it.
func (s *session) expire(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		close(s.over)
	}
}

// fail ends the session and every call in flight.
func (s *session) fail(err error) {
	s.expire(err)
	// Frames that the link has not sent by now are never sent. The decision to
	// send a request again depends on it.
	s.link.halt()
	s.mu.Lock()
	calls := s.pending
	s.pending = map[int64]*call{}
	s.mu.Unlock()
	for _, c := range calls {
		c.err = err
		close(c.done)
		c.cancel(errHalted)
	}
}

// reason returns the reason for the end of the session, or nil if it has not
// ended.
func (s *session) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// call sends one request and waits for the response, which is returned as the
// server wrote it. With an error, unsent reports whether the server received
// nothing of the request, or refused to process it, so that it may be sent
// again.
func (s *session) call(ctx context.Context, method string, params json.RawMessage, timeout time.Duration) (
	result json.RawMessage, unsent bool, err error) {
	if s.meta != nil {
		if params, err = withMeta(params, s.meta); err != nil {
			return nil, false, err
		}
	}
	c := &call{
		id: s.nextID.Add(1), method: method, token: progressToken(params), start: time.Now(), timeout: timeout,
		done: make(chan struct{}),
	}
	frame, err := requestFrame(c.id, method, params)
	if err != nil {
		return nil, false, err
	}
	callCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.cancel = cancel
	c.timer = time.AfterFunc(timeout, func() { cancel(errDeadline) })
	defer c.timer.Stop()
	if err := s.register(c); err != nil {
		return nil, true, s.failed(method, err)
	}
	s.trace(ctx, "sent", frame)
	if err := s.link.send(callCtx, c, frame); err != nil {
		mine := callCtx.Err() == nil && s.forget(c)
		if asFault(err).over {
			s.expire(err)
		}
		if mine {
			return nil, asFault(err).refused || !c.sent.Load(), s.failed(method, err)
		}
	}
	select {
	case <-c.done:
	case <-callCtx.Done():
		if s.forget(c) {
			return nil, false, s.abandon(ctx, c, context.Cause(callCtx))
		}
		<-c.done // the response arrived at the same time
	}
	return s.outcome(c)
}

// outcome returns the result of a call.
func (s *session) outcome(c *call) (json.RawMessage, bool, error) {
	if c.err == nil {
		return c.result, false, nil
	}
	if _, ok := errors.AsType[*RemoteError](c.err); ok {
		return nil, false, c.err
	}
	return nil, !c.sent.Load(), s.failed(c.method, c.err)
}

// lastWords returns the end of the server's stderr, or "" if there is none.
func (s *session) lastWords() string {
	if s.tail == nil {
		return ""
	}
	return s.tail.String()
}

// failed returns the ServerError of a failure.
func (s *session) failed(op string, err error) error {
	if e, ok := errors.AsType[*ServerError](err); ok {
		return &ServerError{Server: e.Server, Op: op, Stderr: e.Stderr, Kind: e.Kind, Err: e.Err}
	}
	return &ServerError{Server: s.server, Op: op, Stderr: s.lastWords(), Err: err}
}

// abandon ends a call that is no longer waited for, notifies the server and
// returns the caller's error.
func (s *session) abandon(ctx context.Context, c *call, cause error) error {
	if !s.link.withdraw(c) && c.method != "initialize" {
		params := fmt.Appendf(nil, `{"requestId":%d,"reason":%q}`, c.id, cancelReason(cause))
		if frame, err := requestFrame(0, "notifications/cancelled", params); err == nil {
			s.trace(ctx, "sent", frame)
			s.link.post(context.WithoutCancel(ctx), frame)
		}
	}
	switch {
	case errors.Is(cause, errDeadline):
		err := fmt.Errorf("no answer and no sign of progress for %v; set a longer timeout, if the work may take "+
			"that long", c.timeout)
		return &ServerError{Server: s.server, Op: c.method, Stderr: s.lastWords(), Kind: errkind.Timeout, Err: err}
	case errors.Is(cause, context.DeadlineExceeded):
		return &ServerError{Server: s.server, Op: c.method, Stderr: s.lastWords(), Kind: errkind.Timeout,
			Err: cause}
	}
	return fmt.Errorf("calling %s of server %q: %w", c.method, s.server, cause)
}

func cancelReason(cause error) string {
	if errors.Is(cause, errDeadline) || errors.Is(cause, context.DeadlineExceeded) {
		return "timeout"
	}
	return "the caller gave up"
}

// notify sends a notification and waits until it is sent.
func (s *session) notify(ctx context.Context, method string) error {
	frame, err := requestFrame(0, method, nil)
	if err != nil {
		return err
	}
	s.trace(ctx, "sent", frame)
	return s.link.send(ctx, nil, frame)
}

func (s *session) register(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.pending[c.id] = c
	return nil
}

// forget removes c from the calls in flight. It returns false if c already has
// its response.
func (s *session) forget(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[c.id] != c {
		return false
	}
	delete(s.pending, c.id)
	return true
}

// receive handles a message of the server, or a batch of them. via is the call
// whose own stream contained it, or nil if the link has only one stream. The
// frame is not kept. Invalid messages are skipped, because some servers print
// other text.
func (s *session) receive(ctx context.Context, via *call, frame []byte) {
	frame = bytes.TrimSpace(frame)
	if len(frame) == 0 {
		return
	}
	if frame[0] == '[' {
		var batch []json.RawMessage
		if json.Unmarshal(frame, &batch) == nil {
			for _, part := range batch {
				s.receive(ctx, via, part)
			}
			return
		}
	}
	var m message
	if frame[0] != '{' || json.Unmarshal(frame, &m) != nil || len(m.Method) == 0 && len(m.ID) == 0 {
		s.skipped(ctx, frame)
		return
	}
	s.trace(ctx, "received", frame)
	switch {
	case len(m.Method) == 0:
		s.complete(via, &m)
	case m.asks():
		answer := answerFrame(&m)
		s.trace(ctx, "sent", answer)
		s.link.post(context.WithoutCancel(ctx), answer)
	default:
		s.notified(&m)
	}
}

// complete passes a response to its call. A late response is ignored.
func (s *session) complete(via *call, m *message) {
	id, ok := m.number()
	if !ok && via != nil && m.failure() != nil {
		id = via.id // servers use id null in the response to a request that they could not read
	}
	s.mu.Lock()
	c := s.pending[id]
	delete(s.pending, id)
	s.mu.Unlock()
	if c == nil {
		return
	}
	s.answers.Add(1)
	switch e := m.failure(); {
	case e != nil:
		c.err = &RemoteError{Code: e.Code, Message: s.redact.Text(e.Message), Data: s.redact.JSON(e.Data)}
	case m.Result == nil:
		c.err = errors.New("the server answered with neither a result nor an error")
	default:
		c.result = m.Result
	}
	close(c.done)
	if via != c {
		c.cancel(nil) // the call may be waiting for its own stream
	}
}

// notified handles a notification. Unknown ones are ignored.
func (s *session) notified(m *message) {
	switch string(m.Method) {
	case `"notifications/tools/list_changed"`:
		s.changed()
	case `"notifications/progress"`:
		var p struct {
			Token json.RawMessage `json:"progressToken"`
		}
		if json.Unmarshal(m.Params, &p) != nil || len(p.Token) == 0 {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range s.pending {
			if bytes.Equal(c.token, p.Token) && time.Since(c.start) < longestCall {
				c.timer.Reset(c.timeout)
			}
		}
	}
}

// trace logs a frame at DEBUG. At other levels it returns at once.
func (s *session) trace(ctx context.Context, what string, frame []byte) {
	if s.log.Enabled(ctx, slog.LevelDebug) {
		s.log.DebugContext(ctx, what, "server", s.server, "frame", s.redact.Frame(frame))
	}
}

// skipped logs output that is not a message.
func (s *session) skipped(ctx context.Context, line []byte) {
	if s.log.Enabled(ctx, slog.LevelDebug) {
		s.log.DebugContext(ctx, "skipped output that is not a message", "server", s.server, "line", s.redact.Line(line))
	}
}
