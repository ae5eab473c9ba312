package invoke_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/invoke"
)

// bridge starts a far side that answers each path as the map says.
func bridge(t *testing.T, answers map[string]http.HandlerFunc) *invoke.Client {
	t.Helper()
	mux := http.NewServeMux()
	for path, h := range answers {
		mux.HandleFunc(path, h)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	c, err := invoke.NewClient(invoke.ClientOptions{URL: s.URL + "/", Token: "hunter2", Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// says answers with a status and a body.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		w.Write([]byte(body))
	}
}

func TestClientCall(t *testing.T) {
	c := bridge(t, map[string]http.HandlerFunc{"POST /invoke": func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Server    string          `json:"server_id"`
			Tool      string          `json:"tool_name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Server != "a" || body.Tool != `b"c` ||
			string(body.Arguments) != `{"n":1.0}` {
			t.Errorf("the bridge got %+v, error %v", body, err)
		}
		if r.Header.Get("Authorization") != "Bearer hunter2" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("the bridge got the header %v", r.Header)
		}
		w.Write([]byte(`{"status":"success","result":{"b":1.50,"a":[]}}`))
	}})
	got, err := c.Call(t.Context(), "a", `b"c`, json.RawMessage(`{"n":1.0}`))
	if err != nil || string(got) != `{"b":1.50,"a":[]}` {
		t.Errorf("Call = %s, %v, want the result as it was written", got, err)
	}
}

func TestClientErrors(t *testing.T) {
	long := `{"status":"error","error":"server unavailable","detail":"it died: ` + strings.Repeat("x", 20000) + `"}`
	tests := []struct {
		name   string
		status int
		body   string
		kind   error
		says   string
	}{
		{"unknown", 404, `{"status":"error","error":"unknown server","detail":"there is no \"a\""}`, errkind.NotFound,
			`unknown server: there is no "a"`},
		{"disabled", 403, `{"status":"error","error":"server is disabled","detail":"d"}`, errkind.Denied, "disabled"},
		{"refused", 400, `{"status":"error","error":"invalid request","detail":"d"}`, errkind.Invalid,
			"invalid request"},
		{"token", 401, `{"status":"error","error":"unauthorized","detail":"d"}`, errkind.Unauthorized,
			"requires a token"},
		{"late", 504, `{"status":"error","error":"server timed out","detail":"d"}`, errkind.Timeout, "timed out"},
		{"dead", 502, long, errkind.Unavailable, "it died"},
		{"another program", 200, `<html>`, errkind.Unavailable, "not a bridge"},
		{"another program's error", 500, `<html>`, errkind.Unavailable, "status 500"},
		{"redirect", 302, ``, errkind.Unavailable, "status 302"},
	}
	for _, tt := range tests {
		c := bridge(t, map[string]http.HandlerFunc{"POST /invoke": says(tt.status, tt.body)})
		_, err := c.Call(t.Context(), "a", "b", json.RawMessage(`{}`))
		if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) || len(err.Error()) > 10000 {
			t.Errorf("%s: Call = %.200v, want %v that says %q", tt.name, err, tt.kind, tt.says)
		}
	}
}

func TestClientProbe(t *testing.T) {
	tests := []struct {
		body string
		ok   bool
	}{
		{`{"status":"ok","name":"knowhow","version":"1"}`, true},
		{`{"status":"ok"}`, false},
		{`hello`, false},
	}
	for _, tt := range tests {
		err := bridge(t, map[string]http.HandlerFunc{"GET /{$}": says(200, tt.body)}).Probe(t.Context())
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, errkind.Unavailable) {
			t.Errorf("Probe of %s = %v, want ok %v", tt.body, err, tt.ok)
		}
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c, err := invoke.NewClient(invoke.ClientOptions{URL: gone.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Probe(t.Context()); !errors.Is(err, errkind.Unavailable) {
		t.Errorf("Probe of nothing = %v, want %v", err, errkind.Unavailable)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Probe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Probe, cancelled = %v, want %v", err, context.Canceled)
	}
}

func TestClientTools(t *testing.T) {
	c := bridge(t, map[string]http.HandlerFunc{"GET /tools": func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("server"); got != "a&b" {
			t.Errorf("the bridge was asked for server %q, want a&b", got)
		}
		w.Write([]byte(`{"tools":[{"server_id":"a&b","name":"t","inputSchema":{"type":"object"}}],"errors":[]}`))
	}})
	tools, err := c.Tools(t.Context(), "a&b")
	if err != nil || len(tools) != 1 || tools[0].Name != "t" || string(tools[0].InputSchema) != `{"type":"object"}` {
		t.Errorf("Tools = %v, %v, want the one tool", tools, err)
	}
}

func TestNewClient(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:3333", "ftp://x", "http://", "://"} {
		if _, err := invoke.NewClient(invoke.ClientOptions{URL: bad}); !errors.Is(err, errkind.Invalid) {
			t.Errorf("NewClient(%q) = %v, want %v", bad, err, errkind.Invalid)
		}
	}
}
