package mcpserver_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

func wantError(t testing.TB, m mcptest.Message, code int64, dataField, value string) {
	t.Helper()
	if m.Error == nil || m.Error.Code != code || m.Error.Field(dataField) != value {
		t.Errorf("got %s, want the error %d with data.%s = %q", m.Raw, code, dataField, value)
	}
}

func TestGateStdio(t *testing.T) {
	s := newKit(mcpserver.Options{}).stdio(t)
	wantError(t, s.Call("tools/call", map[string]any{"name": "echo"}), -32600, "reason", "notInitialized")
	wantError(t, s.Call("tools/list", nil), -32600, "reason", "notInitialized")
	if m := s.Call("ping", nil); m.Error != nil {
		t.Errorf("ping before initialize = %v", m.Error)
	}
	s.Handshake("2025-03-26")
	for _, method := range []string{"tools/list", "tools/call", "resources/list", "resources/read", "prompts/list"} {
		wantError(t, s.Call(method, nil), -32600, "reason", "notInitialized")
	}
	if m := s.Call("ping", nil); m.Error != nil {
		t.Errorf("ping before notifications/initialized = %v", m.Error)
	}
	s.Notify("notifications/initialized", nil)
	s.Notify("notifications/initialized", nil) // a second one changes nothing
	if m := s.Call("tools/list", nil); m.Error != nil {
		t.Errorf("tools/list after notifications/initialized = %v", m.Error)
	}
	if m := s.Handshake("2025-03-26"); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("second initialize = %s, want the error -32600", m.Raw)
	}
	if text, err := s.Tool("echo", nil); err != nil || text != `{"name":""}` {
		t.Errorf("echo = %q, %v", text, err)
	}
}

// Over HTTP a request may overtake the notification, by half a second.
func TestGateHTTP(t *testing.T) {
	for _, tc := range []struct {
		late time.Duration
		code int64
	}{{200 * time.Millisecond, 0}, {499 * time.Millisecond, 0}, {501 * time.Millisecond, -32600}} {
		t.Run(tc.late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := newKit(mcpserver.Options{Revision: mcpserver.Pinned}).http(t, mcpserver.HTTPOptions{})
				s, other := site.session(t), site.session(t)
				other.Initialize("2025-03-26")
				s.Handshake("2025-03-26")
				start := time.Now()
				id := s.Start("tools/call", map[string]any{"name": "echo"})
				timer := time.AfterFunc(tc.late, func() { s.Notify("notifications/initialized", nil) })
				defer timer.Stop()
				if _, err := other.Tool("echo", nil); err != nil {
					t.Errorf("another session = %v", err)
				}
				m := s.Wait(id)
				switch {
				case tc.code == 0 && m.Error != nil:
					t.Errorf("call %v ahead = %v, want a result", tc.late, m.Error)
				case tc.code != 0:
					wantError(t, m, tc.code, "reason", "notInitialized")
					if took := time.Since(start); took != 500*time.Millisecond {
						t.Errorf("refused after %v, want 500ms", took)
					}
				}
				time.Sleep(time.Second) // virtual: lets the notification arrive
				if _, err := s.Tool("echo", nil); err != nil {
					t.Errorf("afterwards = %v", err)
				}
			})
		})
	}
}

func TestGateHTTPWithoutSession(t *testing.T) {
	site := newKit(mcpserver.Options{}).http(t, mcpserver.HTTPOptions{})
	for _, method := range []string{"tools/list", "ping", "server/discover"} {
		status, _, body := site.request(t, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":"a","method":%q}`,
			method), nil)
		want := `{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"the Mcp-Session-Id header is required, initialize gives one","data":{"code":"NOT_INITIALIZED","reason":"noSession","retryable":true}}}`
		if status != 400 || body != want {
			t.Errorf("%s without a session = %d %s, want 400 %s", method, status, body, want)
		}
	}
}
