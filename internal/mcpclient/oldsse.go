package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"

	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// An oldSSELink implements HTTP+SSE, the transport of MCP 2024-11-05. One
// stream of events contains all messages of the server. Its first event is the
// URL for POSTs.
type oldSSELink struct {
	*remote
	cancel   context.CancelFunc
	endpoint string
}

// startOldSSE opens the stream, waits for the URL and makes both the session's
// link.
func startOldSSE(ctx context.Context, srv *mcpsettings.Server, sess *session) error {
	l := &oldSSELink{remote: newRemote(srv, sess)}
	l.deliver = l.send
	sess.link = l
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	stop := context.AfterFunc(ctx, cancel)
	body, events, err := l.open(streamCtx)
	if !stop() && (err == nil || errors.Is(err, context.Canceled)) {
		if err == nil {
			_ = body.Close()
		}
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		return err
	}
	l.spawn(func() {
		defer body.Close()
		for {
			ev, err := events.next()
			if err != nil {
				sess.fail(fmt.Errorf("the server ended the stream of its answers: %w", err))
				return
			}
			if ev.name == "" || ev.name == "message" {
				sess.receive(streamCtx, nil, ev.data)
			}
		}
	})
	return nil
}

// open requests the stream and reads its first event.
func (l *oldSSELink) open(ctx context.Context) (io.ReadCloser, *eventReader, error) {
	resp, err := l.do(ctx, nil, http.MethodGet, l.srv.URL, nil,
		func(h http.Header) { h.Set("Accept", "text/event-stream") })
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, nil, l.rejected(resp, detail(resp))
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "text/event-stream" {
		_ = resp.Body.Close()
		return nil, nil, &fault{err: fmt.Errorf("the answer is of type %q, want a stream of events; check the URL",
			sanitize.Short(kind, 80, 320)), final: true}
	}
	events := newEventReader(resp.Body)
	ev, err := events.next()
	if err == nil && ev.name != "endpoint" {
		err = errors.New("the stream does not begin with an endpoint event")
	}
	if err == nil {
		l.endpoint, err = l.resolve(string(ev.data))
	}
	if err != nil {
		_ = resp.Body.Close()
		return nil, nil, fmt.Errorf("waiting for the address of the server: %w", err)
	}
	return resp.Body, events, nil
}

// resolve returns the URL for POSTs. It must be on the host of the settings,
// because it receives the headers of the settings.
func (l *oldSSELink) resolve(ref string) (string, error) {
	base, err := url.Parse(l.srv.URL)
	if err != nil {
		return "", errors.New("the URL in the settings cannot be used")
	}
	u, err := base.Parse(ref)
	if err != nil || u.Scheme != base.Scheme || u.Host != base.Host {
		return "", &fault{err: errors.New("the server sent a URL on another host"), final: true}
	}
	return u.String(), nil
}

func (l *oldSSELink) send(ctx context.Context, c *call, frame []byte) error {
	resp, err := l.do(ctx, c, http.MethodPost, l.endpoint, frame, func(h http.Header) {
		h.Set("Content-Type", "application/json")
	})
	if err != nil {
		return err
	}
	defer discard(resp.Body)
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		return nil
	}
	f := l.rejected(resp, detail(resp))
	if resp.StatusCode == http.StatusNotFound {
		f.refused, f.over = true, true // the session has ended
	}
	return f
}

func (l *oldSSELink) agreed(context.Context, string) {}

// close ends the stream, which ends the session.
func (l *oldSSELink) close(<-chan struct{}) {
	l.cancel()
	l.wait()
}
