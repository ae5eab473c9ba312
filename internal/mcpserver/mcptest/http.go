package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// HTTP returns a client of the Streamable HTTP endpoint at url. header is sent
// with every request; it may be nil. Each message is a separate POST, so
// messages may overtake each other unless the test waits for responses. The
// client waits for the response to each notification.
func HTTP(t testing.TB, url string, header http.Header) *Session {
	t.Helper()
	return HTTPClient(t, http.DefaultClient, url, header)
}

// HTTPClient is like HTTP, but uses client, for example one that connects to
// the server without a network.
func HTTPClient(t testing.TB, client *http.Client, url string, header http.Header) *Session {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &httpClient{client: client, url: url, header: header.Clone(), cancel: cancel}
	s := newSession(t)
	s.http = c
	s.send = func(line string) { c.post(ctx, s, line) }
	s.end = sync.OnceValue(func() error {
		err := c.delete(ctx)
		cancel()
		c.wg.Wait()
		return err
	})
	t.Cleanup(func() {
		cancel() // no DELETE is sent unless the test calls Close
		c.wg.Wait()
	})
	return s
}

type httpClient struct {
	client *http.Client
	url    string
	header http.Header
	cancel func()
	wg     sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	id       string     // Mcp-Session-Id
	statuses []int
}

// SetHeader sets a header of all later requests.
func (s *Session) SetHeader(name, value string) {
	s.http.mu.Lock()
	defer s.http.mu.Unlock()
	if s.http.header == nil {
		s.http.header = http.Header{}
	}
	s.http.header.Set(name, value)
}

// SessionID returns the session's id, "" before initialize and on stdio.
func (s *Session) SessionID() string {
	if s.http == nil {
		return ""
	}
	s.http.mu.Lock()
	defer s.http.mu.Unlock()
	return s.http.id
}

// Statuses returns the HTTP status of every response that has arrived, in order.
func (s *Session) Statuses() []int {
	s.http.mu.Lock()
	defer s.http.mu.Unlock()
	return append([]int(nil), s.http.statuses...)
}

// Listen opens the server-to-client stream, whose messages are received with
// the others. It returns when the server has accepted the request.
func (s *Session) Listen() {
	s.t.Helper()
	c := s.http
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(cancel)
	res, err := c.do(ctx, http.MethodGet, "")
	if err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s: %v, want a stream", c.url, describe(res, err))
	}
	c.wg.Go(func() {
		defer res.Body.Close() // the body was read to its end or is abandoned
		_ = readEvents(res.Body, s.receive)
	})
	s.t.Cleanup(func() { cancel(); c.wg.Wait() })
}

func (c *httpClient) do(ctx context.Context, method, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	c.mu.Lock()
	for name, values := range c.header {
		req.Header[name] = values
	}
	if c.id != "" {
		req.Header.Set("Mcp-Session-Id", c.id)
	}
	c.mu.Unlock()
	return c.client.Do(req)
}

// post sends a message. It waits for the whole response to a notification,
// because later messages depend on it. For a request, it waits only for the
// beginning of the response.
func (c *httpClient) post(ctx context.Context, s *Session, line string) {
	exchange := func() {
		res, err := c.do(ctx, http.MethodPost, line)
		if err != nil {
			if ctx.Err() == nil {
				s.t.Errorf("POST %s: %v", c.url, err)
			}
			return
		}
		defer res.Body.Close() // the body was read to its end or is abandoned
		c.note(res)
		if err := c.read(res, s); err != nil && ctx.Err() == nil {
			s.t.Errorf("reading the response to %s: %v", line, err)
		}
	}
	if isNotification(line) {
		exchange()
		return
	}
	c.wg.Go(exchange)
}

func (c *httpClient) note(res *http.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statuses = append(c.statuses, res.StatusCode)
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		c.id = id
	}
}

func (c *httpClient) read(res *http.Response, s *Session) error {
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return readEvents(res.Body, s.receive)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if body = bytes.TrimSpace(body); len(body) > 0 {
		s.receive(string(body))
	}
	return nil
}

func (c *httpClient) delete(ctx context.Context) error {
	res, err := c.do(ctx, http.MethodDelete, "")
	if err != nil {
		return err
	}
	defer res.Body.Close() // the body is not used
	if res.StatusCode != http.StatusNoContent {
		return fmt.Errorf("DELETE %s: %s", c.url, res.Status)
	}
	return nil
}

// readEvents calls f with the data of every event of a stream that has data.
// The first event of a stream may have only an id.
func readEvents(r io.Reader, f func(data string)) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok && data != "" {
			f(data)
		}
	}
	return sc.Err()
}

// isNotification reports whether a line is one notification.
func isNotification(line string) bool {
	return strings.HasPrefix(line, "{") && strings.Contains(line, `"method"`) && !strings.Contains(line, `"id":`)
}

func describe(res *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	return res.Status
}
