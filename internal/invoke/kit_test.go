package invoke_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/invoke"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
)

// A farSide stands for a pool of MCP servers: "echo" answers with what it was
// sent, the others fail as their names say.
type farSide struct {
	calls []string // "server method params", in order
	call  func(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error)
}

var failures = map[string]error{
	"off":     fmt.Errorf("server off is disabled: %w", errkind.Denied),
	"choosy":  fmt.Errorf("server choosy: the settings leave out its tool \"add\": %w", errkind.Denied),
	"dead":    fmt.Errorf("starting the server: exit status 1; it wrote: \"no such file\": %w", errkind.Unavailable),
	"slow":    fmt.Errorf("no answer within 30s: %w", errkind.Timeout),
	"unset":   fmt.Errorf("the environment has no API_KEY: %w", errkind.Invalid),
	"crowded": fmt.Errorf("too many calls: %w", errkind.Busy),
	"broken":  fmt.Errorf("secret internals"),
	"picky":   &mcpclient.RemoteError{Code: -32602, Message: "no <b>tool", Data: json.RawMessage(`{"z":1,"a":[2]}`)},
	"terse":   &mcpclient.RemoteError{Code: 7, Message: "no"},
	"wrapped": fmt.Errorf("calling: %w", &mcpclient.RemoteError{Code: 8, Message: "deep"}),
}

func (f *farSide) Call(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
	if f.call != nil {
		return f.call(ctx, server, method, params)
	}
	f.calls = append(f.calls, server+" "+method+" "+string(params))
	if err := f.fail(server); err != nil {
		return nil, err
	}
	return json.RawMessage(`{"b":1.50, "a":"<é>"}`), nil
}

func (f *farSide) fail(server string) error {
	if server == "echo" {
		return nil
	}
	if err := failures[server]; err != nil {
		return err
	}
	return fmt.Errorf("no server %s: %w", server, errkind.NotFound)
}

func (f *farSide) Catalog(_ context.Context, server string) (*mcpclient.Catalog, error) {
	if err := f.fail(server); err != nil {
		return nil, err
	}
	return &mcpclient.Catalog{Server: server, Tools: []mcpclient.Tool{
		{Name: "add", Description: "Adds <b>", InputSchema: json.RawMessage(
			`{"type":"object","properties":{"b":{},"a":{}}}`)},
		{Name: "run", TaskSupport: "required"},
	}}, nil
}

func (f *farSide) Status() []mcpclient.Status {
	list := []mcpclient.Status{
		{ID: "dead", Transport: "stdio", State: "failed", Tools: -1, Error: "it did not start"},
		{ID: "echo", Transport: "http", State: "ready", Tools: 2},
		{ID: "off", Transport: "stdio", State: "idle", Tools: -1, Disabled: true},
		{ID: "picky", Transport: "sse", State: "idle", Tools: -1},
	}
	return slices.Clone(list)
}

// newRequest is a request as curl on this machine sends it.
func newRequest(method, path, body string) *http.Request {
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3333}
	ctx := context.WithValue(context.Background(), http.LocalAddrContextKey, local)
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:3333"
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// token is what a bridge asks for whose options say NeedsToken.
const token = "s3cret"

// guarded is a bridge as the program serves it, until it ends.
func guarded(o invoke.Options) *httpguard.Server {
	g := httpguard.Options{Routes: invoke.Routes(invoke.New(o)), Refuse: invoke.Refuse, Drain: 5 * time.Second,
		Grace: time.Second}
	if o.NeedsToken {
		g.Token = token
	}
	return httpguard.New(g)
}

// serve answers one request of a new bridge.
func serve(o invoke.Options, r *http.Request) *httptest.ResponseRecorder {
	if o.Servers == nil {
		o.Servers = &farSide{}
	}
	return record(guarded(o), r)
}

// An errorBody is the body of the answer to a failure.
type errorBody struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Detail string `json:"detail"`
}

// wantError checks that an answer is an error in the one shape that they have.
func wantError(t *testing.T, name string, w *httptest.ResponseRecorder, status int, text, detail string) {
	t.Helper()
	var e errorBody
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		t.Errorf("%s: answered %d %q, which is no JSON: %v", name, w.Code, w.Body, err)
		return
	}
	if w.Code != status || e.Status != "error" || e.Error != text || !strings.Contains(e.Detail, detail) ||
		e.Detail == "" {
		t.Errorf("%s: answered %d %s, want %d %q with a detail that contains %q", name, w.Code, w.Body, status, text,
			detail)
	}
	wantHeaders(t, name, w)
}

// wantHeaders checks what every answer carries and what none may.
func wantHeaders(t *testing.T, name string, w *httptest.ResponseRecorder) {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("%s: Content-Type = %q, want application/json", name, got)
	}
	if got := w.Header().Get("Content-Length"); got != fmt.Sprint(w.Body.Len()) {
		t.Errorf("%s: Content-Length = %q, want %d", name, got, w.Body.Len())
	}
	for key := range w.Header() {
		if strings.HasPrefix(key, "Access-Control-") {
			t.Errorf("%s: the answer has the CORS header %s, want none", name, key)
		}
	}
}
