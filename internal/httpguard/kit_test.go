package httpguard_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// A memory is a loopback listener without a network, so that it works in a
// synctest bubble.
type memory struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { m.once.Do(func() { close(m.done) }); return nil }
func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// dial returns a connection, or an error if the listener is closed.
func (m *memory) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case m.conns <- theirs:
		return ours, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

// A served is a server that serves on a memory.
type served struct {
	*memory
	end    func() // ends the server
	done   chan error
	client *tls.Config // nil: without TLS
}

// dial returns a connection, or an error if the listener is closed.
func (s *served) dial() (net.Conn, error) {
	conn, err := s.memory.dial()
	if err == nil && s.client != nil {
		conn = encrypted{tls.Client(conn, s.client), conn}
	}
	return conn, err
}

// An encrypted is a TLS connection that is closed at once: on a memory, nothing is
// buffered, so both sides would wait for the other to read their last message.
type encrypted struct {
	net.Conn
	raw net.Conn
}

func (e encrypted) Close() error { return e.raw.Close() }

// serve serves until the test ends.
func serve(t *testing.T, o httpguard.Options) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &served{memory: &memory{conns: make(chan net.Conn), done: make(chan struct{})}, end: cancel,
		done: make(chan error, 1)}
	if o.TLS != nil {
		s.client = clientConfig()
	}
	go func() { s.done <- httpguard.New(o).Serve(ctx, s.memory) }()
	t.Cleanup(func() {
		cancel()
		if err := <-s.done; err != nil {
			t.Errorf("Serve() = %v, want nil", err)
		}
		s.done <- nil // for a second receiver
	})
	return s
}

// exchange sends bytes on a new connection and returns the status and the body
// of the response. The status is 0 if there is none.
func (s *served) exchange(t *testing.T, sent string) (int, string) {
	t.Helper()
	conn, err := s.dial()
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer conn.Close()
	return talk(conn, bufio.NewReader(conn), sent)
}

// talk sends bytes and reads a response.
func talk(conn io.Writer, from *bufio.Reader, sent string) (int, string) {
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(func() { _, _ = io.WriteString(conn, sent) }) // fails if the server does not read all of a refused body
	res, err := http.ReadResponse(from, nil)
	for err == nil && res.StatusCode == http.StatusContinue {
		res, err = http.ReadResponse(from, nil)
	}
	if err != nil {
		return 0, ""
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, string(body)
	}
	return res.StatusCode, string(body)
}

// challenge is the WWW-Authenticate of the refusals of authenticate.
const challenge = `Bearer resource_metadata="https://knowhow.example/.well-known/oauth-protected-resource"`

// caller is the context key of the token of a request that authenticate accepts.
type caller struct{}

// authenticate makes a server authenticate requests by a function that demands the
// same token.
func authenticate(o httpguard.Options) httpguard.Options {
	token := o.Token
	o.Token = "n0t compared"
	o.Authenticate = func(r *http.Request) (context.Context, *httpguard.Refusal) {
		if token != "" && httpguard.BearerToken(r) != token {
			return nil, &httpguard.Refusal{Reason: httpguard.NoToken, Status: 401,
				Message: "a token is required, and this request has none or a wrong one",
				Header:  http.Header{"Www-Authenticate": {challenge}}}
		}
		return context.WithValue(r.Context(), caller{}, token), nil
	}
	return o
}

// withUsers runs a test with options that demand a token, and with a function that
// demands the same one.
func withUsers(t *testing.T, o httpguard.Options, test func(*testing.T, httpguard.Options)) {
	t.Helper()
	t.Run("token", func(t *testing.T) { test(t, o) })
	t.Run("users", func(t *testing.T) { test(t, authenticate(o)) })
}

// everyWay runs a test of connections in bubbles: with a token and with users, without
// TLS and with it. way changes the options of the server.
func everyWay(t *testing.T, test func(t *testing.T, way func(httpguard.Options) httpguard.Options)) {
	t.Helper()
	cert, key := writeCertificate(t, newCertificate(t, nil))
	for _, withTLS := range []bool{false, true} {
		for _, users := range []bool{false, true} {
			t.Run(fmt.Sprintf("tls=%v,users=%v", withTLS, users), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					test(t, func(o httpguard.Options) httpguard.Options {
						if users {
							o = authenticate(o)
						}
						if withTLS {
							o.TLS = loadCertificate(t, cert, key)
						}
						return o
					})
				})
			})
		}
	}
}

// challengeOf returns the WWW-Authenticate of the refusals of a server.
func challengeOf(o httpguard.Options) string {
	if o.Authenticate != nil {
		return challenge
	}
	return "Bearer"
}

// newRequest returns a request that was received on the loopback address.
func newRequest(method, target string) *http.Request {
	return from(httptest.NewRequest(method, target, nil), net.IPv4(127, 0, 0, 1))
}

// from returns r as received on an address of this machine.
func from(r *http.Request, ip net.IP) *http.Request {
	r.Host = "localhost"
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: ip, Port: 80}))
}

// answer serves one request without a connection.
func answer(o httpguard.Options, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	httpguard.New(o).ServeHTTP(w, r)
	return w
}

// named returns a handler that answers with its name.
func named(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
}

// everything returns a route for all paths.
func everything(h http.Handler) []httpguard.Route {
	return []httpguard.Route{{Path: "/", Tree: true, Handler: h}}
}

// wait returns a handler that reads the body and, after some time, answers with
// its length.
func wait(d time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case <-time.After(d):
			fmt.Fprint(w, n)
		case <-r.Context().Done():
			http.Error(w, context.Cause(r.Context()).Error(), http.StatusServiceUnavailable)
		}
	})
}

// post returns the header of a POST with a body of a length.
func post(path string, length int, header ...string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s\r\n",
		path, length, strings.Join(header, ""))
}

// newRecorder serves a POST without a Server.
func newRecorder(h http.Handler, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(body)))
	return w
}

// discard is a response that nobody reads.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
