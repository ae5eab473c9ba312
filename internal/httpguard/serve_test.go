package httpguard_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// The kind of the error of a listener decides what users are advised to do.
func TestListenError(t *testing.T) {
	inUse, reserved := syscall.EADDRINUSE, syscall.EACCES
	if runtime.GOOS == "windows" {
		inUse, reserved = 10048, 10013
	}
	for system, kind := range map[error]error{inUse: errkind.Conflict, reserved: errkind.Denied} {
		err := httpguard.ListenError("127.0.0.1:80",
			&net.OpError{Op: "listen", Err: os.NewSyscallError("bind", system)})
		if !errors.Is(err, kind) || !strings.HasPrefix(err.Error(), "listening on 127.0.0.1:80: ") {
			t.Errorf("the error for %v is %v, want kind %v", system, err, kind)
		}
	}
}

// The server does not wait for a client that sends its header or its body
// slowly.
func TestSlowClients(t *testing.T) {
	read := wait(0)
	unread := named("page")
	const auth = "Authorization: Bearer s3cret\r\n"
	for _, tc := range []struct {
		name   string
		h      http.Handler
		sent   string
		status int // 0: the connection ends without a response
		after  time.Duration
	}{
		{"nothing", read, "", 0, 10 * time.Second}, // as for a header
		{"header", read, "GET / HTTP/1.1\r\nHost: localhost\r\n", 0, 10 * time.Second},
		{"body", read, post("/", 100, auth) + "x", 400, 30 * time.Second},
		{"body that the handler does not read", unread, post("/", 100, auth) + "x", 200, 30 * time.Second},
		{"body of unknown length", read, "POST / HTTP/1.1\r\nHost: localhost\r\n" + auth +
			"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", 400, 30 * time.Second},
		{"body of a GET", unread, strings.Replace(post("/", 100, auth), "POST", "GET", 1) + "x", 200, 30 * time.Second},
		{"body of a refused request", read, post("/", 100) + "x", 401, 5 * time.Second},
		{"body to no path", read, post("*", 100) + "x", 401, 5 * time.Second},
		{"body to health", read, post("/healthz", 100) + "x", 405, 5 * time.Second},
		{"body with a request for health", read, strings.Replace(post("/healthz", 100), "POST", "GET", 1) + "x",
			200, 5 * time.Second},
		{"preflight with a body", read, strings.Replace(post("/",
			100, "Origin: http://localhost\r\nAccess-Control-Request-Method: POST\r\n"), "POST", "OPTIONS", 1), 204,
			5 * time.Second},
		{"refused body with Expect", read, post("/", 100, "Expect: 100-continue\r\n"), 401, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			everyWay(t, func(t *testing.T, way func(httpguard.Options) httpguard.Options) {
				routes := everything(tc.h)
				routes[0].Methods = "GET, POST"
				o := way(httpguard.Options{Token: "s3cret", Routes: routes})
				s := serve(t, o)
				start := time.Now()
				sent := tc.sent
				if o.TLS != nil {
					sent = strings.ReplaceAll(sent, "http://localhost", "https://localhost")
				}
				status, body := s.exchange(t, sent)
				if took := time.Since(start); status != tc.status || took != tc.after {
					t.Errorf("answered %d %s after %v, want %d after %v", status, body, took, tc.status,
						tc.after)
				}
			})
		})
	}
}

// The deadline of a body is removed after the body. It interrupts neither a
// long call nor a stream nor the next request on the connection.
func TestBodyDeadlineIsRemoved(t *testing.T) {
	everyWay(t, func(t *testing.T, way func(httpguard.Options) httpguard.Options) {
		long := wait(10 * time.Minute)
		stream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for i := range 5 {
				select {
				case <-time.After(time.Minute):
				case <-r.Context().Done():
					return
				}
				fmt.Fprintf(w, "%d\n", i)
				_ = http.NewResponseController(w).Flush()
			}
		})
		s := serve(t, way(httpguard.Options{Routes: []httpguard.Route{{Path: "/long", Handler: long}, {Path: "/stream",
			Handler: stream}}}))
		conn, err := s.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		chunked := "POST /long HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
		for _, tc := range []struct{ name, sent, body string }{
			{"call", post("/long", 3) + "abc", "3"},
			{"call with a chunked body", chunked, "3"},
			{"call that waits to send its body", post("/long", 3, "Expect: 100-continue\r\n") + "abc", "3"},
			{"call without a body", "GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n", "0"},
			{"stream", "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n", "0\n1\n2\n3\n4\n"},
			{"stream of a request with a body", "GET /stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc",
				"0\n1\n2\n3\n4\n"},
		} {
			if status, body := talk(conn, in, tc.sent); status != 200 || body != tc.body {
				t.Errorf("%s: answered %d %q, want 200 %q", tc.name, status, body, tc.body)
			}
			time.Sleep(time.Minute) // virtual: the connection is idle
		}
	})
}

// A client that closes its connection ends its request, with a deadline or
// without one.
func TestClientLeaves(t *testing.T) {
	everyWay(t, func(t *testing.T, way func(httpguard.Options) httpguard.Options) {
		left := make(chan error, 1)
		h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			left <- context.Cause(r.Context())
		})
		s := serve(t, way(httpguard.Options{Routes: everything(h)}))
		for _, sent := range []string{post("/", 3) + "abc", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"} {
			conn, err := s.dial()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, sent); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			conn.Close()
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("the request ended with %v, want %v", err, context.Canceled)
			}
		}
	})
}

// A client that sends all of its body before it reads the response gets the
// status of a refusal, not a broken connection.
func TestLargeRefusedBody(t *testing.T) {
	cert, key := writeCertificate(t, newCertificate(t, nil))
	o := httpguard.Options{Token: "s3cret", Routes: everything(wait(0))}
	withUsers(t, o, testLargeRefusedBody)
	o.TLS = loadCertificate(t, cert, key)
	withUsers(t, o, testLargeRefusedBody)
}

func testLargeRefusedBody(t *testing.T, o httpguard.Options) {
	l, err := httpguard.Listen(t.Context(), "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- httpguard.New(o).Serve(ctx, l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if o.TLS != nil {
		conn = tls.Client(conn, clientConfig())
	}
	defer conn.Close()
	const size = 7 << 20
	in := bufio.NewReader(conn)
	for _, header := range []string{"", "Authorization: Bearer s3cret\r\n", ""} { // on one connection
		want := map[string]int{"": 401}[header]
		if want == 0 {
			want = 200
		}
		if status, body := talk(conn, in, post("/", size, header)+strings.Repeat("x", size)); status != want {
			t.Errorf("answered %d %s, want %d", status, body, want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Serve() = %v, want nil", err)
	}
}

// "OPTIONS *" has no path of a route, so it must not be answered without the
// checks.
func TestGeneralOptions(t *testing.T) {
	everyWay(t, func(t *testing.T, way func(httpguard.Options) httpguard.Options) {
		o := way(httpguard.Options{Token: "s3cret", Routes: everything(named("page"))})
		s := serve(t, o)
		if status, body := s.exchange(t, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n"); status != 401 {
			t.Errorf("OPTIONS * = %d %s, want 401", status, body)
		}
	})
}

// Requests that run when the server ends may finish, are then cancelled, and
// are then cut off.
func TestServeEnds(t *testing.T) {
	stubborn := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Minute) })
	for _, tc := range []struct {
		name   string
		h      http.Handler
		status int // 0: the connection ends without a response
		answer string
		ended  time.Duration // at most
	}{
		{"short request", wait(time.Second), 200, "0", 2 * time.Second},
		{"long request", wait(time.Hour), 503, httpguard.ErrShutdown.Error(), 4 * time.Second},
		{"stubborn request", stubborn, 0, "", 5 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			everyWay(t, func(t *testing.T, way func(httpguard.Options) httpguard.Options) {
				var order []string
				routes := everything(tc.h)
				for _, name := range []string{"first", "second"} {
					routes = append(routes, httpguard.Route{Path: "/" + name,
						Shutdown: func(ctx context.Context) error {
							if end, ok := ctx.Deadline(); !ok || time.Until(end) != 3*time.Second || ctx.Err() != nil {
								t.Errorf("Shutdown got a context that ends at %v (%v), want after 3s", end, ctx.Err())
							}
							order = append(order, name)
							return errors.New("cannot")
						}})
				}
				s := serve(t, way(httpguard.Options{Routes: routes, Drain: 3 * time.Second, Grace: 2 * time.Second}))
				var client sync.WaitGroup
				client.Go(func() {
					status, answer := s.exchange(t, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
					if status != tc.status || strings.TrimSpace(answer) != tc.answer {
						t.Errorf("answered %d %q, want %d %q", status, answer, tc.status, tc.answer)
					}
				})
				synctest.Wait()
				start := time.Now()
				s.end()
				if err := <-s.done; err != nil {
					t.Errorf("Serve() = %v, want nil", err)
				}
				s.done <- nil // for the cleanup
				if took := time.Since(start); took > tc.ended {
					t.Errorf("Serve() ended after %v, want at most %v", took, tc.ended)
				}
				client.Wait()
				if got := strings.Join(order, " "); got != "first second" {
					t.Errorf("Shutdown was called in the order %q, want both in order", got)
				}
				if _, err := s.dial(); err == nil {
					t.Error("the listener still accepts connections, want it closed")
				}
				time.Sleep(time.Hour) // virtual: the stubborn handler returns
			})
		})
	}
}

// If the listener fails, Serve returns an error.
func TestServeFails(t *testing.T) {
	l, err := httpguard.Listen(t.Context(), "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := httpguard.New(httpguard.Options{}).Serve(t.Context(), l); err == nil || !strings.Contains(err.Error(),
		"serving on 127.0.0.1:") {
		t.Errorf("Serve() = %v, want an error that names the address", err)
	}
}

func TestListenTaken(t *testing.T) {
	l, err := httpguard.Listen(t.Context(), "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = httpguard.Listen(t.Context(), "127.0.0.1", l.Addr().(*net.TCPAddr).Port)
	if want := "listening on " + l.Addr().String() + ": the port is in use by another program"; !errors.Is(err,
		errkind.Conflict) || errkind.Message(err) != want {
		t.Errorf("Listen() on a port that is in use = %v, want %q of kind Conflict", err, want)
	}
}
