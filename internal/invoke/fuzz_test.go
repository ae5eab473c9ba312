package invoke_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/invoke"
)

// record answers one request of a bridge.
func record(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// FuzzInvoke checks for any body that the response is JSON, and that a body which
// passes says the same to encoding/json as it said to us.
func FuzzInvoke(f *testing.F) {
	for _, seed := range []string{callBody, `{}`, `[`, `{"a`, "{\"\\u00\": \xff}",
		`{"server_id":"a","method":"tasks/get","params":{"task_id":[{"\"":"}"}]}}`,
		` {"tool_name" : "\ud800" , "server_id":"\\", "arguments": { } } `, `{"server_id":"a","server_id":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var server, method string
		var params json.RawMessage
		far := &farSide{call: func(_ context.Context, s, m string, p json.RawMessage) (json.RawMessage, error) {
			server, method, params = s, m, p
			return p, nil
		}}
		r := newRequest("POST", "/invoke", "")
		r.Body, r.ContentLength = http.NoBody, 0
		if len(body) > 0 {
			r = newRequest("POST", "/invoke", string(body))
		}
		w := record(invoke.New(invoke.Options{Servers: far}), r)
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("answered %d %q, want JSON", w.Code, w.Body)
		}
		if w.Code != 200 && w.Code != 400 {
			t.Fatalf("answered %d %s, want 200 or 400", w.Code, w.Body)
		}
		if w.Code != 200 {
			return
		}
		var want struct {
			ServerID  string          `json:"server_id"`
			ToolName  *string         `json:"tool_name"`
			Method    string          `json:"method"`
			Arguments json.RawMessage `json:"arguments"`
			Params    json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(body, &want); err != nil || want.ServerID != server {
			t.Fatalf("server = %q, want %q (%v)", server, want.ServerID, err)
		}
		if want.ToolName == nil {
			if method != want.Method && want.Method != "tasks/status" {
				t.Fatalf("method = %q, want %q", method, want.Method)
			}
			return
		}
		var call struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if err := json.Unmarshal(params, &call); err != nil || method != "tools/call" || call.Name != *want.ToolName {
			t.Fatalf("%s with %s, want tools/call of %q (%v)", method, params, *want.ToolName, err)
		}
		if given := want.Arguments; given != nil && string(given) != "null" && !bytes.Equal(given, call.Arguments) {
			t.Fatalf("arguments = %s, want %s", call.Arguments, given)
		}
	})
}
