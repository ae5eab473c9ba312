package mcpserver

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// keepAlive is the interval of comments on an idle stream, which keep proxies
// from closing it.
const keepAlive = 15 * time.Second

// A stream is a sink that sends events to a client: the answers to a POST,
// messages without a request, or, in the older transport, all messages. It may
// outlive the HTTP request that carries it.
type stream struct {
	events      *events // keeps them for resuming; nil if they are not kept and have no ids
	name        streamName
	first, next int // numbers of the event with the index 0, and of the next one; guarded by events.mu

	lasting bool // does not end with the answers to a group
	status  bool // an error that is the only answer is sent with an HTTP status instead

	mu      sync.Mutex          // guards the following fields and the writer
	w       http.ResponseWriter // of the HTTP request that carries the stream; nil if there is none
	started bool                // its header has been written
	ended   bool                // nothing more will be sent
	over    chan struct{}       // closed when ended is set
}

// newStream returns a stream that is carried by w.
func newStream(w http.ResponseWriter) *stream {
	return &stream{w: w, over: make(chan struct{})}
}

// send implements sink.
func (s *stream) send(data []byte, code int64, flush bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if status := statusOf(code); s.status && status != 0 && !s.started && s.w != nil {
		s.started = true
		writeJSON(s.w, status, data)
		return
	}
	s.eventLocked("message", data, flush || s.lasting)
}

// notify implements sink.
func (s *stream) notify(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eventLocked("message", data, true)
}

// attach makes w carry the stream. It calls first before anything else is sent.
// It returns false if another request carries the stream, or if first does.
func (s *stream) attach(w http.ResponseWriter, first func() bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w != nil {
		return false
	}
	s.w, s.started = w, false
	if !first() {
		s.w = nil
		return false
	}
	return true
}

// end implements sink.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lasting && !s.ended {
		s.ended = true
		close(s.over)
	}
}

// prime begins the stream with an event that has only an id, from which a
// client can resume before the first message. The event has no name, because
// Python's SDK complains about any name except "message".
func (s *stream) prime() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eventLocked("", nil, true)
}

// eventLocked stores and sends an event.
func (s *stream) eventLocked(kind string, data []byte, flush bool) {
	b := make([]byte, 0, len(data)+100)
	if kind != "" {
		b = append(append(append(b, "event: "...), kind...), '\n')
	}
	if s.events != nil {
		b = append(append(b, "id: "...), s.name.name...)
		b = append(strconv.AppendInt(append(b, '_'), int64(s.events.add(s, data)), 10), '\n')
	}
	s.writeLocked(append(append(append(b, "data: "...), data...), "\n\n"...), flush)
}

// replayLocked sends a stored event.
func (s *stream) replayLocked(index int, data []byte) {
	s.writeLocked(fmt.Appendf(nil, "event: message\nid: %s_%d\ndata: %s\n\n", s.name.name, index, data), false)
}

func (s *stream) writeLocked(b []byte, flush bool) {
	if s.w == nil {
		return
	}
	s.startLocked()
	_, _ = s.w.Write(b) // an error means that the client is gone, which ends the request
	if flush {
		s.flushLocked()
	}
}

// openLocked sends a comment, because proxies wait for the first bytes.
func (s *stream) openLocked() { s.writeLocked([]byte(": ok\n\n"), true) }

func (s *stream) flushLocked() {
	_ = http.NewResponseController(s.w).Flush() // an error means that the client is gone
}

// startLocked sends the header, once.
func (s *stream) startLocked() {
	if s.started {
		return
	}
	s.started = true
	h := s.w.Header()
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("Content-Type", "text/event-stream")
	s.w.WriteHeader(http.StatusOK)
}

// carry keeps the HTTP request that carries the stream open, until the stream,
// the connection or ctx ends. silence is the status of a response without
// events. If comments is set, comments are sent in idle times.
func (s *stream) carry(ctx context.Context, closed <-chan struct{}, silence int, comments bool) {
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for open := true; open; {
		select {
		case <-s.over:
			open = false
		case <-closed:
			open = false
		case <-ctx.Done():
			open = false
		case <-tick.C:
			if comments {
				s.keepAlive()
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.started:
	case silence == http.StatusOK:
		s.startLocked()
	default:
		s.w.WriteHeader(silence)
	}
	s.w, s.started = nil, false
}

// keepAlive sends a comment.
func (s *stream) keepAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.writeLocked([]byte(": keep-alive\n\n"), true)
	}
}

// A body is a sink that sends the answers as one JSON body. Other messages are
// dropped.
type body struct {
	data []byte
	code int64
	over chan struct{}
}

// send implements sink. It is called at most once, because the answers of a
// body are sent together.
func (b *body) send(data []byte, code int64, _ bool) { b.data, b.code = data, code }

// notify implements sink.
func (b *body) notify([]byte) {}

// end implements sink.
func (b *body) end() { close(b.over) }

// wait writes the answers when they are ready. If the connection or ctx ends
// first, it writes nothing and returns false. If status is set, errors have
// their own HTTP status.
func (b *body) wait(ctx context.Context, w http.ResponseWriter, closed <-chan struct{}, status bool) bool {
	select {
	case <-b.over:
	case <-ctx.Done():
		return false
	case <-closed:
		select {
		case <-b.over: // both at the same time
		default:
			return false
		}
	}
	switch code := statusOf(b.code); {
	case b.data == nil: // all were cancelled
		w.WriteHeader(http.StatusAccepted)
	case status && code != 0:
		writeJSON(w, code, b.data)
	default:
		w.Header().Set("Cache-Control", "no-cache, no-transform")
		writeJSON(w, http.StatusOK, b.data)
	}
	return true
}

// statusOf returns the HTTP status that 2026-07-28 requires for an error code,
// or 0 for none.
func statusOf(code int64) int {
	switch code {
	case codeMethodNotFound:
		return http.StatusNotFound
	case codeInvalidParams, mcp.CodeHeaderMismatch, mcp.CodeMissingRequiredClientCapabilities,
		mcp.CodeUnsupportedProtocolVersion:
		return http.StatusBadRequest
	}
	return 0
}
