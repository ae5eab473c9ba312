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

	"knowhow/internal/mcpsettings"
	"knowhow/internal/sanitize"
)

const (
	firstDelay = time.Second      // before a broken stream is taken up again, unless the server says otherwise
	maxDelay   = 30 * time.Second // the longest such delay
	maxResumes = 5                // attempts to take up a call's stream without anything new on it
)

// forgotten matches a text by which a server says that it does not know the
// session.
var forgotten = regexp.MustCompile(`(?i)\bsession`)

// A streamableLink speaks streamable HTTP (MCP 2025-11-25, Transports): each
// frame is a POST, which is answered with JSON or with a stream of events;
// another stream brings what the server says of its own accord.
type streamableLink struct {
	*remote
	cancel context.CancelFunc // ends the stream of the server's own messages

	mu       sync.Mutex
	session  string // Mcp-Session-Id, "" where the server gives none
	revision string // MCP-Protocol-Version, "" before the handshake
}

// newStreamable makes the session's link, which connects with the first send.
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
	// The request's context outlives the call for a moment, so that what is
	// left of a stream can be read and its connection used again.
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

// answer takes in the answer to a POST.
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
			err:   fmt.Errorf("the answer is of type %q, want JSON or a stream of events; check the URL", sanitize.Short(kind, 80, 320)),
			final: true,
		}
	}
	if !c.ended() {
		return errors.New("the server's answer does not belong to the request")
	}
	return nil
}

// refusal takes in an answer with a status that is no success. Its body may
// still be the JSON-RPC answer.
func (l *streamableLink) refusal(ctx context.Context, c *call, resp *http.Response) error {
	body := detail(resp)
	first := c != nil && c.method == "initialize"
	had := l.sessionID() != "" && !first
	lost := resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest && forgotten.Match(body)
	if had && lost {
		return &fault{err: errors.New("the server has forgotten the session"), refused: true, over: true}
	}
	denied := resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
	if c != nil && !denied && strings.Contains(resp.Header.Get("Content-Type"), "json") && (!first || saysNoHandshake(body)) {
		l.sess.receive(ctx, c, body)
		if c.ended() {
			return nil
		}
	}
	return l.rejected(resp, body)
}

// saysNoHandshake reports whether an answer to initialize is that of a server
// which knows no such request. Any other may be that of an old server.
func saysNoHandshake(body []byte) bool {
	var m message
	if json.Unmarshal(body, &m) != nil {
		return false
	}
	remote := m.failure()
	return remote != nil && (remote.Code == codeNoMethod || remote.Code == codeRevision)
}

// stream takes in the events of a POST's answer, until the call has its result.
// A stream that breaks before is taken up again where it stopped, if the
// server gave its events ids.
func (l *streamableLink) stream(ctx context.Context, c *call, body io.ReadCloser) error {
	first := body
	defer func() {
		if body != first || !c.ended() { // send reads the rest of the first
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
			return errors.New("the server ended its answer before the result")
		}
		if delay == 0 {
			delay = firstDelay
		}
		if !pause(ctx, min(delay, maxDelay)) {
			return context.Cause(ctx)
		}
		resp, err := l.listen(ctx, last)
		if err != nil {
			return fmt.Errorf("taking up the answer again: %w", err)
		}
		_ = body.Close()
		body = resp.Body
		events = newEventReader(body)
		events.lastID, events.retry = last, delay
	}
}

// consume hands events to the session until the stream ends or the call of the
// stream has its result. It counts the events.
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

// listen opens a stream of the server's own messages, or takes up one after the
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
		return nil, &fault{err: errors.New("the server has forgotten the session"), over: true}
	}
	f := l.rejected(resp, nil)
	f.final = f.final || resp.StatusCode < 300
	return nil, f
}

// agreed makes the headers say the revision and opens the stream of the server's
// own messages, which need not exist.
func (l *streamableLink) agreed(ctx context.Context, revision string) {
	l.mu.Lock()
	l.revision = revision
	l.mu.Unlock()
	if revision == revisionModern {
		return // that revision has no such stream
	}
	ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.spawn(func() { l.overhear(ctx) })
}

// overhear follows the stream of the server's own messages until ctx ends or the
// server will not have it.
func (l *streamableLink) overhear(ctx context.Context) {
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

// close ends the session on the server, too.
func (l *streamableLink) close(hurry <-chan struct{}) {
	l.cancel()
	if l.sessionID() != "" && !asFault(l.sess.reason()).over {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		done := make(chan struct{})
		l.spawn(func() {
			defer close(done)
			resp, err := l.do(ctx, nil, http.MethodDelete, l.srv.URL, nil, l.headers)
			if err == nil {
				discard(resp.Body) // 405 is an answer, too
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
