package mcpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/httpclient"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

const (
	postTime  = 2 * time.Second // time limit of a message without a response
	maxPosts  = 64              // concurrent messages without a response; further ones are dropped
	maxDetail = 300             // bytes of a response body in an error
)

// A remote is the common part of the two HTTP transports: it sends requests
// with the headers of the settings, and handles error responses.
type remote struct {
	srv     *mcpsettings.Server
	sess    *session
	client  *http.Client
	deliver func(ctx context.Context, c *call, frame []byte) error // the link's send
	posts   chan struct{}                                          // limits the messages without a response

	lifeMu sync.Mutex
	ended  bool // no new goroutines may start
	wg     sync.WaitGroup
}

func newRemote(srv *mcpsettings.Server, sess *session) *remote {
	return &remote{
		srv: srv, sess: sess, posts: make(chan struct{}, maxPosts),
		client: &http.Client{Transport: httpclient.NewTransport(64), CheckRedirect: sameHost},
	}
}

// sameHost permits redirects that keep the method and the host, because the
// headers of the settings are sent along and may contain credentials.
func sameHost(req *http.Request, via []*http.Request) error {
	from := via[0]
	switch {
	case len(via) > 5:
		return errors.New("the server redirects too often")
	case req.Method != from.Method, req.URL.Host != from.URL.Host,
		req.URL.Scheme != from.URL.Scheme && req.URL.Scheme != "https":
		return &fault{final: true, err: fmt.Errorf("the server has moved to %q; if you trust that address, put it "+
			"into the settings",
			sanitize.Cut(req.URL.Scheme+"://"+req.URL.Host, maxDetail, maxDetail))}
	}
	return nil
}

// do sends one request. It records in c when the server may have received some
// of it; c is nil for requests that belong to no call.
func (r *remote) do(ctx context.Context, c *call, method, target string, body []byte,
	set func(http.Header)) (*http.Response, error) {
	if c != nil {
		sent := func(httptrace.GotConnInfo) { c.sent.Store(true) }
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: sent})
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, &fault{err: errors.New("the URL in the settings cannot be used"), final: true}
	}
	set(req.Header)
	for name, v := range r.srv.Headers {
		if strings.EqualFold(name, "Host") {
			req.Host = v
		}
		req.Header.Set(name, v)
	}
	resp, err := r.client.Do(req)
	if err == nil {
		return resp, nil
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the URL may contain credentials
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if moved, ok := errors.AsType[*fault](err); ok {
		return nil, moved
	}
	// If one connection broke, the others are broken too, as after a restart. A
	// later request must not be sent on one of them.
	r.client.CloseIdleConnections()
	f := &fault{err: fmt.Errorf("the server was not reached: %s", r.sess.redact.Line([]byte(err.Error())))}
	// Nothing was sent: the server and its sessions have ended.
	f.over = c != nil && !c.sent.Load()
	return nil, f
}

// rejected returns the fault for a response with an error status.
func (r *remote) rejected(resp *http.Response, body []byte) *fault {
	text := ""
	if detail := strings.TrimSpace(string(body)); detail != "" {
		text = `: "` + sanitize.Cut(r.sess.redact.Line([]byte(detail)), maxDetail, maxDetail) + `"`
	}
	status := fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	switch code := resp.StatusCode; code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &fault{
			err: fmt.Errorf("the server refused the request with status %s; check the credentials in the "+
				"headers of its settings%s", status, text),
			refused: true, final: true,
		}
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return &fault{err: fmt.Errorf("the server answered with status %s; check the URL%s", status, text),
			final: true, legacy: true}
	default:
		retry := code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
		return &fault{err: fmt.Errorf("the server answered with status %s%s", status, text), final: !retry}
	}
}

// post sends a frame in a goroutine that close waits for. If too many are in
// progress, the frame is dropped.
func (r *remote) post(ctx context.Context, frame []byte) {
	select {
	case r.posts <- struct{}{}:
	default:
		return
	}
	r.spawn(func() {
		defer func() { <-r.posts }()
		ctx, cancel := context.WithTimeout(ctx, postTime)
		defer cancel()
		if err := r.deliver(ctx, nil, frame); err != nil {
			r.sess.log.DebugContext(ctx, "a message did not reach the server", "server", r.srv.ID, "err", err)
		}
	})
}

// spawn starts a goroutine that wait waits for. It returns false if waiting has
// begun.
func (r *remote) spawn(work func()) bool {
	r.lifeMu.Lock()
	defer r.lifeMu.Unlock()
	if !r.ended {
		r.wg.Go(work)
	}
	return !r.ended
}

// wait waits for all goroutines and closes connections.
func (r *remote) wait() {
	r.lifeMu.Lock()
	r.ended = true
	r.lifeMu.Unlock()
	r.wg.Wait()
	r.client.CloseIdleConnections()
}

// readBody reads a whole response body.
func readBody(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxMessage+1))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if len(body) > maxMessage {
		return nil, errTooLong
	}
	return body, nil
}

// discard reads a little of the rest of a body, so that its connection can be
// reused, and closes it.
func discard(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}

// detail returns the first 64 KiB of the body of a response with an error
// status, or nil if it cannot be read, because the status is sufficient.
func detail(resp *http.Response) []byte {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return nil
	}
	return body
}

func (r *remote) withdraw(c *call) bool { return !c.sent.Load() }

// halt does nothing: each request is sent by its caller and ends with the
// caller's context.
func (r *remote) halt() {}

// pause waits, and returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
