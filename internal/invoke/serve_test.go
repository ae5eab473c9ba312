package invoke_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/invoke"
)

const callBody = `{"server_id":"echo","tool_name":"t"}`

// A pipeListener accepts connections within the process, which synctest can see
// through.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3333} }

// dial returns a connection to what serves the listener.
func (l *pipeListener) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// exchange sends a request on a new connection and returns status and body.
func (l *pipeListener) exchange(t *testing.T, body string) (int, string) {
	conn, err := l.dial()
	if err != nil {
		t.Errorf("dialling: %v", err)
		return 0, ""
	}
	defer conn.Close()
	r, _ := http.NewRequest("POST", "http://127.0.0.1:3333/invoke", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if err := r.Write(conn); err != nil {
		t.Errorf("sending a request: %v", err)
		return 0, ""
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("reading an answer: %v", err)
	}
	return response.StatusCode, string(answer)
}

// lasting is a far side whose calls take some time, or until they are cancelled.
func lasting(took time.Duration) *farSide {
	return &farSide{call: func(ctx context.Context, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(took):
			return json.RawMessage(`1`), nil
		}
	}}
}

// stubborn is a far side whose calls take 10 seconds, cancelled or not.
func stubborn() *farSide {
	return &farSide{call: func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
		<-time.After(10 * time.Second)
		return json.RawMessage(`1`), nil
	}}
}

// A call under way when the bridge ends is waited for, but not for long.
func TestServeEnds(t *testing.T) {
	for _, tc := range []struct {
		name   string
		far    *farSide
		status int // 0: the connection just ends
		answer string
		ended  time.Duration // at most, after the end was asked for
	}{
		{"idle", lasting(0), 200, `"success"`, time.Second},
		{"short call", lasting(3 * time.Second), 200, `"success"`, 4 * time.Second},
		{"long call", lasting(time.Hour), 502, `"shutting down"`, 6 * time.Second},
		{"stubborn call", stubborn(), 0, "", 6 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipeListener()
				ctx, cancel := context.WithCancel(t.Context())
				served := make(chan error)
				go func() {
					served <- guarded(invoke.Options{Servers: tc.far}).Serve(ctx, l)
				}()
				var client sync.WaitGroup
				client.Go(func() {
					status, answer := l.exchange(t, callBody)
					if status != tc.status || !strings.Contains(answer, tc.answer) {
						t.Errorf("answered %d %s, want %d with %s", status, answer, tc.status, tc.answer)
					}
				})
				synctest.Wait()
				asked := time.Now()
				cancel()
				if err := <-served; err != nil {
					t.Errorf("Serve() = %v, want nil", err)
				}
				if took := time.Since(asked); took > tc.ended {
					t.Errorf("Serve() ended after %s, want at most %s", took, tc.ended)
				}
				client.Wait()
				if _, err := l.dial(); err == nil {
					t.Error("the listener still accepts connections, want it closed")
				}
				time.Sleep(10 * time.Second) // virtual: the stubborn call returns
			})
		})
	}
}

// A call outlasts every deadline that a connection has for its request, and a
// client that leaves ends it.
func TestServeLongCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		ended := make(chan error, 1)
		far := lasting(10 * time.Minute)
		call := far.call
		far.call = func(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
			result, err := call(ctx, server, method, params)
			ended <- err
			return result, err
		}
		go func() { served <- guarded(invoke.Options{Servers: far}).Serve(ctx, l) }()
		if status, answer := l.exchange(t, callBody); status != 200 {
			t.Errorf("a call of 10 minutes was answered with %d %s, want 200", status, answer)
		}
		if err := <-ended; err != nil {
			t.Errorf("a call of 10 minutes ended with %v, want nil", err)
		}
		conn, err := l.dial()
		if err != nil {
			t.Fatal(err)
		}
		r, _ := http.NewRequest("POST", "http://localhost/invoke", strings.NewReader(callBody))
		r.Header.Set("Content-Type", "application/json")
		if err := r.Write(conn); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		conn.Close()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a call whose client left ended with %v, want %v", err, context.Canceled)
		}
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve() = %v, want nil", err)
		}
	})
}

// A client that is slow with its body, or with its header, is not waited for.
func TestServeSlowClients(t *testing.T) {
	for _, tc := range []struct {
		name, sent string
		status     int // 0: the connection just ends
		within     time.Duration
	}{
		{"header", "POST /invoke HTTP/1.1\r\nHost: localhost\r\n", 0, 11 * time.Second},
		{"body", "POST /invoke HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
			"100\r\n\r\n{", 400, 31 * time.Second},
		{"refused body", "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", 404,
			6 * time.Second},
		{"nothing", "", 0, 2*time.Minute + time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipeListener()
				ctx, cancel := context.WithCancel(t.Context())
				served := make(chan error)
				go func() { served <- guarded(invoke.Options{Servers: &farSide{}}).Serve(ctx, l) }()
				conn, err := l.dial()
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				if _, err := io.WriteString(conn, tc.sent); err != nil {
					t.Fatal(err)
				}
				status := 0
				if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
					status = response.StatusCode
				}
				if took := time.Since(start); status != tc.status || took > tc.within {
					t.Errorf("answered %d after %s, want %d within %s", status, took, tc.status, tc.within)
				}
				conn.Close()
				cancel()
				if err := <-served; err != nil {
					t.Errorf("Serve() = %v, want nil", err)
				}
			})
		})
	}
}

// More than 1,000 requests at once are refused, but GET / is not.
func TestServeBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := invoke.New(invoke.Options{Servers: lasting(time.Minute)})
		var clients sync.WaitGroup
		for range 1000 {
			clients.Go(func() { record(h, newRequest("POST", "/invoke", callBody)) })
		}
		synctest.Wait()
		w := record(h, newRequest("POST", "/invoke", callBody))
		wantError(t, "one more", w, 502, "busy", "try again")
		if got := w.Header().Get("Retry-After"); got != "1" {
			t.Errorf("Retry-After = %q, want 1", got)
		}
		if w := record(h, newRequest("GET", "/", "")); w.Code != 200 {
			t.Errorf("GET / answered %d while busy, want 200", w.Code)
		}
		clients.Wait()
		if w := record(h, newRequest("GET", "/servers", "")); w.Code != 200 {
			t.Errorf("GET /servers answered %d after all calls had ended, want 200", w.Code)
		}
	})
}

// A listener that fails ends the serving with an error.
func TestServeFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := guarded(invoke.Options{Servers: &farSide{}}).Serve(t.Context(), l); err == nil ||
		!strings.Contains(err.Error(), "serving on 127.0.0.1:") {
		t.Errorf("Serve() = %v, want an error that names the address", err)
	}
}

// Over a real connection: a refused body that is too large is still answered,
// and a connection is used again.
func TestServeTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- guarded(invoke.Options{Servers: &farSide{}}).Serve(ctx, l) }()
	client := &http.Client{Transport: &http.Transport{}}
	for _, tc := range []struct {
		body   string
		status int
	}{{callBody, 200}, {strings.Repeat(" ", 6<<20), 413}, {callBody, 200}, {"{", 400}, {callBody, 200}} {
		response, err := client.Post("http://"+l.Addr().String()+"/invoke", "application/json",
			strings.NewReader(tc.body))
		if err != nil {
			t.Fatalf("posting %d bytes: %v", len(tc.body), err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Error(err)
		}
		response.Body.Close()
		if response.StatusCode != tc.status {
			t.Errorf("posting %d bytes was answered with %d, want %d", len(tc.body), response.StatusCode, tc.status)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve() = %v, want nil", err)
	}
}
