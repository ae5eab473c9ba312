package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

const (
	firstDelay = time.Second      // delay before a broken stream is resumed, unless the server sets another one
	maxDelay   = 30 * time.Second // maximum of such a delay
	maxResumes = 5                // attempts to resume the stream of a call without a new event
)

// forgotten matches the text of a server that does not know the session.
var forgotten = regexp.MustCompile(`(?i)\bsession`)

// A streamableLink implements streamable HTTP (MCP 2025-11-25, Transports).
// Each frame is a POST, and the response is JSON or a stream of events. A
// separate stream contains other messages of the server.
type streamableLink struct {
	*remote
	cancel context.CancelFunc // ends the stream of the server's own messages

	mu       sync.Mutex
	session  string // Mcp-Session-Id; "" if the server sends none
	revision string // MCP-Protocol-Version, "" before the handshake
}

// newStreamable creates the session's link, which connects with the first send.
func newStreamable(srv *mcpsettings.Server, sess *session) {
	l := &streamableLink{remote: newRemote(srv, sess), cancel: func() {}}
	l.deliver = l.send
	sess.link = l
}

func (l *streamableLink) headers(h http.Header) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != "" {
		h.Set("Mcp-Session-Id", l.session)
	}
	if l.revision != "" {
		h.Set("Mcp-Protocol-Version", l.revision)
	}
}

func (l *streamableLink) sessionID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

func (l *streamableLink) send(ctx context.Context, c *call, frame []byte) error {
	// The context of the request outlives the call for a short time, so that
	// the rest of a stream can be read and its connection reused.
	reqCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	resp, err := l.do(reqCtx, c, http.MethodPost, l.srv.URL, frame, func(h http.Header) {
		l.headers(h)
		h.Set("Content-Type", "application/json")
		h.Set("Accept", "application/json, text/event-stream")
		describe(h, c, frame)
	})
	if err != nil {
		stop()
		cancel(nil)
		return err
	}
	err = l.answer(reqCtx, c, resp)
	rest := func() {
		timer := time.AfterFunc(drain, func() { cancel(nil) })
		defer timer.Stop()
		discard(resp.Body)
		cancel(nil)
	}
	if !stop() || c == nil || !c.ended() || !l.spawn(rest) {
		_ = resp.Body.Close()
		cancel(nil)
	}
	return err
}

// answer handles the response to a POST.
func (l *streamableLink) answer(ctx context.Context, c *call, resp *http.Response) error {
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" && c != nil && c.method == "initialize" {
		l.mu.Lock()
		l.session = id
		l.mu.Unlock()
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return l.refusal(ctx, c, resp)
	}
	if c == nil {
		discard(resp.Body)
		return nil
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		return l.stream(ctx, c, resp.Body)
	case "application/json":
		body, err := readBody(resp.Body)
		if err != nil {
			return err
		}
		l.sess.receive(ctx, c, body)
	default:
		return &fault{
			err: fmt.Errorf("the answer is of type %q, want JSON or a stream of events; check the URL",
				sanitize.Short(kind, 80, 320)),
			final: true,
		}
	}
	if !c.ended() {
		return errors.New("the server's answer does not belong to the request")
	}
	return nil
}

// refusal handles a response with an error status. Its body may still be a
// JSON-RPC response.
func (l *streamableLink) refusal(ctx context.Context, c *call, resp *http.Response) error {
	body := detail(resp)
	first := c != nil && c.method == "initialize"
	had := l.sessionID() != "" && !first
	lost := resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest && forgotten.Match(body)
	if had && lost {
		return &fault{err: errors.New("the server does not know the session any more"), refused: true, over: true}
	}
	denied := resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
	if c != nil && !denied && strings.Contains(resp.Header.Get("Content-Type"), "json") &&
		(!first || lacksHandshake(body)) {
		l.sess.receive(ctx, c, body)
		if c.ended() {
			return nil
		}
	}
	return l.rejected(resp, body)
}

// lacksHandshake reports whether a response to initialize is that of a server
// that does not know this request. Any other response may be that of an old
// server.
func lacksHandshake(body []byte) bool {
	var m message
	if json.Unmarshal(body, &m) != nil {
		return false
	}
	remote := m.failure()
	return remote != nil && (remote.Code == codeNoMethod || remote.Code == codeRevision)
}

// stream handles the events in the response to a POST, until the call has its
// result. If the stream breaks before and its events have ids, it is resumed.
func (l *streamableLink) stream(ctx context.Context, c *call, body io.ReadCloser) error {
	first := body
	defer func() {
		if body != first || !c.ended() { // send reads the rest of the first body
			_ = body.Close()
		}
	}()
	events := newEventReader(body)
	for attempt := 0; ; attempt++ {
		n, err := l.consume(ctx, c, events)
		if c.ended() {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, errTooLong) {
			return err
		}
		if n > 0 {
			attempt = 0
		}
		last, delay := events.lastID, events.retry
		if last == "" || attempt >= maxResumes {
			return errors.New("the server's answer ended before the result")
		}
		if delay == 0 {
			delay = firstDelay
		}
		if !pause(ctx, min(delay, maxDelay)) {
			return context.Cause(ctx)
		}
		resp, err := l.listen(ctx, last)
		if err != nil {
			return fmt.Errorf("resuming the answer: %w", err)
		}
		_ = body.Close()
		body = resp.Body
		events = newEventReader(body)
		events.lastID, events.retry = last, delay
	}
}

// consume passes events to the session until the stream ends or its call has a
// result. It returns the number of events.
func (l *streamableLink) consume(ctx context.Context, c *call, events *eventReader) (n int, err error) {
	for {
		ev, err := events.next()
		if err != nil {
			return n, err
		}
		n++
		if ev.name == "" || ev.name == "message" {
			l.sess.receive(ctx, c, ev.data)
		}
		if c != nil && c.ended() {
			return n, nil
		}
	}
}

// listen opens a stream of the server's own messages, or resumes one after the
// event with the id last.
func (l *streamableLink) listen(ctx context.Context, last string) (*http.Response, error) {
	resp, err := l.do(ctx, nil, http.MethodGet, l.srv.URL, nil, func(h http.Header) {
		l.headers(h)
		h.Set("Accept", "text/event-stream")
		if last != "" {
			h.Set("Last-Event-ID", last)
		}
	})
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && kind == "text/event-stream" {
		return resp, nil
	}
	defer discard(resp.Body)
	if resp.StatusCode == http.StatusNotFound && l.sessionID() != "" {
		return nil, &fault{err: errors.New("the server does not know the session any more"), over: true}
	}
	f := l.rejected(resp, nil)
	f.final = f.final || resp.StatusCode < 300
	return nil, f
}

// agreed adds the revision to the headers and opens the stream of the server's
// own messages, which is optional.
func (l *streamableLink) agreed(ctx context.Context, revision string) {
	l.mu.Lock()
	l.revision = revision
	l.mu.Unlock()
	if revision == revisionModern {
		return // that revision has no such stream
	}
	ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.spawn(func() { l.readStream(ctx) })
}

// readStream reads the stream of the server's own messages until ctx ends or the
// server refuses it.
func (l *streamableLink) readStream(ctx context.Context) {
	last, delay := "", firstDelay
	for {
		resp, err := l.listen(ctx, last)
		if err == nil {
			events := newEventReader(resp.Body)
			events.lastID = last
			n, _ := l.consume(ctx, nil, events)
			_ = resp.Body.Close()
			last = events.lastID
			if n > 0 {
				delay = max(events.retry, firstDelay)
			}
		} else if f := asFault(err); f.over {
			l.sess.expire(err)
			return
		} else if f.final {
			return
		}
		if !pause(ctx, delay) {
			return
		}
		delay = min(2*delay, maxDelay)
	}
}

// close also ends the session on the server.
func (l *streamableLink) close(hurry <-chan struct{}) {
	l.cancel()
	if l.sessionID() != "" && !asFault(l.sess.reason()).over {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		done := make(chan struct{})
		l.spawn(func() {
			defer close(done)
			resp, err := l.do(ctx, nil, http.MethodDelete, l.srv.URL, nil, l.headers)
			if err == nil {
				discard(resp.Body) // 405 is a valid response
			}
		})
		select {
		case <-done:
		case <-hurry:
		}
		cancel()
	}
	l.wait()
}
