package invoke_test

import (
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/invoke"
)

// The token comes first, then Host, then Origin; GET / asks for no token.
func TestAccess(t *testing.T) {
	const good = "Bearer s3cret"
	for _, tc := range []struct {
		name          string
		path          string
		authorization string
		host          string
		origin, fetch string // "-" is an empty header
		status        int
	}{
		{"address", "/tools", good, "127.0.0.1:3333", "", "", 200},
		{"other port", "/tools", good, "127.0.0.1:80", "", "", 200},
		{"no port", "/tools", good, "127.0.0.1", "", "", 200},
		{"name", "/tools", good, "LocalHost:3333", "", "", 200},
		{"IPv6", "/tools", good, "[::1]:3333", "", "", 200},
		{"IPv6 without port", "/tools", good, "[::1]", "", "", 200},
		{"scheme in capitals", "/tools", "BEARER  s3cret ", "127.0.0.1", "", "", 200},

		{"no token", "/tools", "", "127.0.0.1", "", "", 401},
		{"wrong token", "/tools", "Bearer s3cre", "127.0.0.1", "", "", 401},
		{"empty token", "/tools", "Bearer ", "127.0.0.1", "", "", 401},
		{"token alone", "/tools", "s3cret", "127.0.0.1", "", "", 401},
		{"other scheme", "/tools", "Basic s3cret", "127.0.0.1", "", "", 401},
		{"no token, no such path", "/nothing", "", "127.0.0.1", "", "", 401},
		{"token before Host", "/tools", "Bearer x", "evil.example", "", "", 401},
		{"health without token", "/", "", "127.0.0.1", "", "", 200},
		{"health with a wrong token", "/", "Bearer x", "127.0.0.1", "", "", 200},

		{"rebinding", "/tools", good, "evil.example:3333", "", "", 403},
		{"rebinding of health", "/", "", "evil.example:3333", "", "", 403},
		{"our name in front", "/tools", good, "localhost.evil.example", "", "", 403},
		{"our address in front", "/tools", good, "127.0.0.1.evil.example:3333", "", "", 403},
		{"all addresses", "/tools", good, "0.0.0.0:3333", "", "", 403},
		{"address as a number", "/tools", good, "2130706433", "", "", 403},
		{"another machine", "/tools", good, "192.168.0.2:3333", "", "", 403},
		{"two ports", "/tools", good, "localhost:80:80", "", "", 403},
		{"no host", "/tools", good, "", "", "", 403},

		{"page of another port", "/tools", good, "127.0.0.1:3333", "http://localhost:8080", "same-site", 403},
		{"page of another port by IPv6", "/tools", good, "127.0.0.1:3333", "https://[::1]:8080", "", 403},
		{"image of another port", "/tools", good, "127.0.0.1:3333", "", "same-site", 403},
		{"own origin", "/tools", good, "127.0.0.1:3333", "http://localhost:3333", "", 200},
		{"cross site", "/tools", good, "127.0.0.1", "https://evil.example", "", 403},
		{"cross site to health", "/", "", "127.0.0.1", "https://evil.example", "", 403},
		{"null origin", "/tools", good, "127.0.0.1", "null", "", 403},
		{"empty origin", "/tools", good, "127.0.0.1", "-", "", 403},
		{"our name as user", "/tools", good, "127.0.0.1", "http://localhost@evil.example", "", 403},
		{"user", "/tools", good, "127.0.0.1", "http://x@localhost", "", 403},
		{"extension", "/tools", good, "127.0.0.1", "chrome-extension://localhost", "", 403},
		{"broken origin", "/tools", good, "127.0.0.1", "http://[::1", "", 403},
		{"image of another site", "/tools", good, "127.0.0.1", "", "cross-site", 403},
		{"address bar", "/tools", good, "127.0.0.1", "", "none", 200},
	} {
		r := newRequest("GET", tc.path, "")
		r.Host = tc.host
		for key, value := range map[string]string{"Authorization": tc.authorization, "Origin": tc.origin,
			"Sec-Fetch-Site": tc.fetch} {
			switch value {
			case "":
			case "-":
				r.Header.Set(key, "")
			default:
				r.Header.Set(key, value)
			}
		}
		w := serve(invoke.Options{NeedsToken: true}, r)
		if w.Code != tc.status {
			t.Errorf("%s: answered %d %s, want %d", tc.name, w.Code, w.Body, tc.status)
		}
		challenge := ""
		if tc.status == 401 {
			challenge = "Bearer"
		}
		if got := w.Header().Get("WWW-Authenticate"); got != challenge {
			t.Errorf("%s: WWW-Authenticate = %q, want %q", tc.name, got, challenge)
		}
		wantHeaders(t, tc.name, w)
	}
}

// A refused request reaches no server.
func TestAccessGuardsCalls(t *testing.T) {
	far := &farSide{}
	r := newRequest("POST", "/invoke", `{"server_id":"echo","tool_name":"t"}`)
	r.Header.Set("Origin", "https://evil.example")
	wantError(t, "cross site", serve(invoke.Options{Servers: far}, r), 403, "origin not allowed", "web pages")
	r = newRequest("POST", "/invoke", `{"server_id":"echo","tool_name":"t"}`)
	r.Header.Add("Origin", "http://localhost")
	r.Header.Add("Origin", "https://evil.example")
	wantError(t, "two origins", serve(invoke.Options{Servers: far}, r), 403, "origin not allowed", "web pages")
	wantError(t, "no token", serve(invoke.Options{Servers: far, NeedsToken: true}, newRequest("POST", "/invoke", `{`)),
		401, "unauthorized", "Authorization: Bearer")
	if len(far.calls) > 0 {
		t.Errorf("calls = %q, want none", far.calls)
	}
}
