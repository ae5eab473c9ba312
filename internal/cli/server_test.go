package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// TestServe serves until the context ends, which is while one request
// hangs.
func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hanging := make(chan struct{})
	var calls []string
	ready := make(chan string, 1)
	v, stderr := testInvocation(nil)
	s := &server{
		invocation: v, host: "127.0.0.1", path: "/some/mcp",
		guard: httpguard.Options{Routes: []httpguard.Route{
			{Path: "/hang", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(hanging)
				<-r.Context().Done()
			}), Shutdown: func(context.Context) error { calls = append(calls, "first"); return errors.New("cannot") }},
			{Path: "/none", Shutdown: func(ctx context.Context) error {
				calls = append(calls, "second")
				_, ok := ctx.Deadline()
				if !ok || ctx.Err() != nil {
					t.Errorf("shutdown got a context with deadline %v, error %v", ok, ctx.Err())
				}
				return nil
			}},
		}},
		ready: func(url string) { ready <- url },
		log:   slog.New(slog.DiscardHandler),
	}
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx) }()
	url := <-ready
	if got, want := stderr.String(), "listening on "+url+"\n"; got != want {
		t.Errorf("ready line %q, want %q", got, want)
	}
	base, ok := strings.CutSuffix(url, "/some/mcp")
	if !ok || !strings.HasPrefix(base, "http://127.0.0.1:") {
		t.Errorf("URL %q, want http://127.0.0.1:PORT/some/mcp", url)
	}
	for path, want := range map[string]int{"/healthz": 200, "/healthz/x": 404, "/": 200, "/x": 404, "/none": 404} {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("GET %s = %d %s, want %d", path, resp.StatusCode, body, want)
		}
	}
	hung := make(chan struct{})
	go func() {
		defer close(hung)
		if resp, err := http.Get(base + "/hang"); err == nil {
			resp.Body.Close()
		}
	}()
	<-hanging
	cancel()
	if err := <-served; err != nil {
		t.Errorf("serve = %v, want nil", err)
	}
	<-hung
	if got := strings.Join(calls, " "); got != "first second" {
		t.Errorf("shutdown called %q, want both in order", got)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(base, "http://")); err == nil {
		t.Errorf("%s still listens", base)
	}
}

// A server on all addresses prints a URL that clients of this machine can use.
func TestServeEverywhere(t *testing.T) {
	v, _ := testInvocation(nil)
	ready := make(chan string, 1)
	s := server{invocation: v, path: "/mcp", ready: func(url string) { ready <- url }, log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx) }()
	url := <-ready
	base, ok := strings.CutSuffix(strings.Replace(url, "http://localhost:", "http://127.0.0.1:", 1), "/mcp")
	if !ok || !strings.HasPrefix(url, "http://localhost:") {
		t.Fatalf("URL %q, want http://localhost:PORT/mcp", url)
	}
	resp, err := http.Get(base + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestServeTaken asks for a port that is taken.
func TestServeTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	v, stderr := testInvocation(nil)
	s := &server{
		invocation: v, host: "127.0.0.1", port: taken.Addr().(*net.TCPAddr).Port, path: "/mcp",
		portHint: "Take another.",
		log:      slog.New(slog.DiscardHandler),
	}
	err = s.serve(t.Context())
	want := "listening on " + taken.Addr().String() + ": the port is in use by another program"
	if hint, ok := errors.AsType[*hintError](err); !ok || errkind.Message(err) != want ||
		hint.hint != "End the program that uses it. Take another." {
		t.Errorf("serve = %v, want %q with the hint", err, want)
	}
	if stderr.Len() > 0 {
		t.Errorf("stderr has %q, want nothing", stderr)
	}
}

// TestServeTakenByKnowhow asks for a port that a server of this program has
// taken.
func TestServeTakenByKnowhow(t *testing.T) {
	ready := make(chan string, 1)
	v, _ := testInvocation(nil)
	first := server{invocation: v, host: "127.0.0.1", path: "/mcp", ready: func(url string) { ready <- url },
		log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- first.serve(ctx) }()
	addr := strings.TrimSuffix(strings.TrimPrefix(<-ready, "http://"), "/mcp")
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	second := first
	second.listener = nil
	if second.port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	err = second.serve(ctx)
	if hint, ok := errors.AsType[*hintError](err); !ok || errkind.Message(err) != "listening on "+addr+": a server of knowhow listens there already" ||
		!strings.HasPrefix(hint.hint, "Connect to it, or end it. ") {
		t.Errorf("serve = %v, want an error that names knowhow", err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestWarn(t *testing.T) {
	v, stderr := testInvocation(nil)
	v.warn("look\x1b[2J out")
	if got, want := stderr.String(), "knowhow test: warning: look\\x1b[2J out\n"; got != want {
		t.Errorf("stderr has %q, want %q", got, want)
	}
}
