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

	"knowhow/internal/mcpsettings"
	"knowhow/internal/sanitize"
)

const (
	postTime  = 2 * time.Second // limit of a message that nobody waits for
	maxPosts  = 64              // such messages under way at once; more are dropped
	maxDetail = 300             // bytes of an answer's body that an error shows
)

// A remote is what the two HTTP transports share: requests with the headers of
// the settings, and what becomes of answers that are not what was asked for.
type remote struct {
	srv     *mcpsettings.Server
	sess    *session
	client  *http.Client
	deliver func(ctx context.Context, c *call, frame []byte) error // the link's send
	posts   chan struct{}                                          // a token for each message under way that nobody waits for

	lifeMu sync.Mutex
	ended  bool // no goroutine starts any more
	wg     sync.WaitGroup
}

func newRemote(srv *mcpsettings.Server, sess *session) *remote {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
	return &remote{
		srv: srv, sess: sess, posts: make(chan struct{}, maxPosts),
		client: &http.Client{Transport: transport, CheckRedirect: sameHost},
	}
}

// sameHost follows redirects that keep the method and stay on the host, because
// the headers of the settings go along and may hold credentials.
func sameHost(req *http.Request, via []*http.Request) error {
	from := via[0]
	switch {
	case len(via) > 5:
		return errors.New("the server redirects without end")
	case req.Method != from.Method, req.URL.Host != from.URL.Host, req.URL.Scheme != from.URL.Scheme && req.URL.Scheme != "https":
		return &fault{final: true, err: fmt.Errorf("the server has moved to %q; if you trust that address, put it into the settings",
			sanitize.Cut(req.URL.Scheme+"://"+req.URL.Host, maxDetail, maxDetail))}
	}
	return nil
}

// do sends one request. c notes when the server may have seen some of it; nil
// for requests that belong to no call.
func (r *remote) do(ctx context.Context, c *call, method, target string, body []byte, set func(http.Header)) (*http.Response, error) {
	if c != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { c.sent.Store(true) }})
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
		err = e.Err // the URL may hold credentials
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if moved, ok := errors.AsType[*fault](err); ok {
		return nil, moved
	}
	// Where one connection broke the others are dead too, as after a restart: a
	// later request must not be lost on one of them.
	r.client.CloseIdleConnections()
	f := &fault{err: fmt.Errorf("the server was not reached: %s", r.sess.redact.Line([]byte(err.Error())))}
	// Nothing was sent: the server is gone, and its sessions with it.
	f.over = c != nil && !c.sent.Load()
	return nil, f
}

// rejected turns an answer with a status that is no success into a fault.
func (r *remote) rejected(resp *http.Response, body []byte) *fault {
	text := ""
	if detail := strings.TrimSpace(string(body)); detail != "" {
		text = `: "` + sanitize.Cut(r.sess.redact.Line([]byte(detail)), maxDetail, maxDetail) + `"`
	}
	status := fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	switch code := resp.StatusCode; code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &fault{
			err:     fmt.Errorf("the server refused us with status %s; check the credentials in the headers of its settings%s", status, text),
			refused: true, final: true,
		}
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return &fault{err: fmt.Errorf("the server answered with status %s; check the URL%s", status, text), final: true, legacy: true}
	default:
		retry := code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
		return &fault{err: fmt.Errorf("the server answered with status %s%s", status, text), final: !retry}
	}
}

// post sends a frame in a goroutine that close waits for. If too many are under
// way, the frame is dropped.
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

// spawn starts work in a goroutine that wait waits for. It is false once that
// has begun.
func (r *remote) spawn(work func()) bool {
	r.lifeMu.Lock()
	defer r.lifeMu.Unlock()
	if !r.ended {
		r.wg.Go(work)
	}
	return !r.ended
}

// wait waits for all goroutines and lets go of connections.
func (r *remote) wait() {
	r.lifeMu.Lock()
	r.ended = true
	r.lifeMu.Unlock()
	r.wg.Wait()
	r.client.CloseIdleConnections()
}

// readBody reads a whole answer.
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

// discard reads a little of what is left of a body, so that its connection can
// be used again, and closes it.
func discard(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}

// detail returns the first 64 KiB of the body of an answer whose status is no
// success; nil if it cannot be read, because the status is enough.
func detail(resp *http.Response) []byte {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return nil
	}
	return body
}

func (r *remote) withdraw(c *call) bool { return !c.sent.Load() }

// halt does nothing: requests are sent by those who wait for them, and end with
// their contexts.
func (r *remote) halt() {}

// lastWords is empty: a remote server has no stderr for us.
func (r *remote) lastWords() string { return "" }

// pause waits, and is false where ctx ends before.
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
