package mcpserver_test

import (
	"net/http"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"

	"github.com/google/go-cmp/cmp"
)

// A page whose origin passes may ask, without a token, and read what it gets;
// all others get no permission from us.
func TestCORS(t *testing.T) {
	const ask, headers = "Access-Control-Request-Method", "Access-Control-Request-Headers"
	type cors struct{ Origin, Expose, Methods, Headers, MaxAge, Vary string }
	may := func(origin string) cors {
		return cors{Origin: origin, Expose: "Mcp-Session-Id, WWW-Authenticate, Retry-After", Vary: "Origin"}
	}
	preflight := func(origin, methods, asked string) cors {
		c := may(origin)
		c.Methods, c.Headers, c.MaxAge = methods, asked, "7200"
		return c
	}
	const all, app, local, evil, wanted = "GET, POST, DELETE", "https://app.example", "http://127.0.0.1:7411",
		"https://evil.example", "authorization,mcp-protocol-version"
	for _, tc := range []struct {
		name, method string
		header       map[string]string
		noStreams    bool
		status       int
		want         cors
	}{
		{"preflight", "OPTIONS", map[string]string{"Origin": app, ask: "POST", headers: wanted}, false, 204,
			preflight(app,
				all, wanted)},
		{"preflight of this machine", "OPTIONS", map[string]string{"Origin": local, ask: "DELETE"}, false, 204,
			preflight(local, all, "")},
		{"preflight without streams", "OPTIONS", map[string]string{"Origin": app, ask: "POST"}, true, 204,
			preflight(app,
				"POST, DELETE", "")},
		{"preflight with a token", "OPTIONS", map[string]string{"Origin": app, ask: "POST", "Authorization": "Bearer " +
			frontToken}, false, 204, preflight(app, all, "")},
		{"preflight of another", "OPTIONS", map[string]string{"Origin": evil, ask: "POST"}, false, 401, cors{}},
		{"preflight of null", "OPTIONS", map[string]string{"Origin": "null", ask: "POST"}, false, 401, cors{}},
		{"preflight of another port", "OPTIONS", map[string]string{"Origin": "http://localhost:6274", ask: "POST"},
			false,
			401, cors{}},
		{"preflight to a rebound name", "OPTIONS",
			map[string]string{"Origin": app, "Host": "evil.example", ask: "POST"},
			false, 401, cors{}},
		{"preflight elsewhere", "OPTIONS", map[string]string{"Origin": app, "Path": "/other", ask: "POST"}, false,
			401, cors{}},
		{"OPTIONS that asks nothing", "OPTIONS", map[string]string{"Origin": app}, false, 401, may(app)},
		{"request", "POST", map[string]string{"Origin": app, "Authorization": "Bearer " + frontToken}, false, 200,
			may(app)},
		{"request that asks like a preflight", "POST", map[string]string{"Origin": app, ask: "POST"}, false, 401,
			may(app)},
		{"request without a token", "POST", map[string]string{"Origin": local}, false, 401, may(local)},
		{"request of another", "POST", map[string]string{"Origin": evil, "Authorization": "Bearer " + frontToken},
			false,
			403, cors{}},
		{"request of no page", "POST", map[string]string{"Authorization": "Bearer " + frontToken}, false, 200, cors{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := httpguard.Options{Token: frontToken, AllowedOrigins: []string{app}}
			site := newKit(mcpserver.Options{}).guarded(t, mcpserver.HTTPOptions{DisableSSE: tc.noStreams}, g)
			status, h, body := site.request(t, tc.method, initializeBody, tc.header)
			if status != tc.status {
				t.Errorf("status = %d %s, want %d", status, body, tc.status)
			}
			got := cors{h.Get("Access-Control-Allow-Origin"), h.Get("Access-Control-Expose-Headers"),
				h.Get("Access-Control-Allow-Methods"),
				h.Get("Access-Control-Allow-Headers"), h.Get("Access-Control-Max-Age"), h.Get("Vary")}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("headers (-want +got):\n%s", d)
			}
			if id := h.Get("Mcp-Session-Id"); (id != "") != (status == http.StatusOK) {
				t.Errorf("Mcp-Session-Id = %q with status %d", id, status)
			}
		})
	}
}
