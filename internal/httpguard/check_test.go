package httpguard_test

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// The token is checked first, then the Host, then the Origin. The Host is
// checked only on loopback listeners.
func TestChecks(t *testing.T) {
	local, outside := net.IPv4(127, 0, 0, 1), net.IPv4(192, 0, 2, 7)
	o := httpguard.Options{Token: "s3cret", AllowedOrigins: []string{"https://app.example/"},
		AllowedHosts: []string{"Knowhow.local"},
		Routes:       everything(named("page"))}
	tests := []struct {
		name          string
		listener      net.IP
		authorization string
		host          string
		origin, fetch string // "-" is an empty header
		status        int
	}{
		{"plain", local, "Bearer s3cret", "localhost:80", "", "", 200},
		{"scheme in capitals", local, "BEARER  s3cret ", "localhost:80", "", "", 200},
		{"no token", local, "", "localhost:80", "", "", 401},
		{"empty token", local, "Bearer ", "localhost:80", "", "", 401},
		{"prefix of the token", local, "Bearer s3cre", "localhost:80", "", "", 401},
		{"token alone", local, "s3cret", "localhost:80", "", "", 401},
		{"other scheme", local, "Basic s3cret", "localhost:80", "", "", 401},
		{"token before Host and Origin", local, "Bearer x", "evil.example", "http://evil.example", "cross-site", 401},

		{"foreign host", local, "Bearer s3cret", "evil.example", "", "", 403},
		{"foreign host outside", outside, "Bearer s3cret", "evil.example", "", "", 200},
		{"allowed host", local, "Bearer s3cret", "KNOWHOW.LOCAL:1", "", "", 200},
		{"no host", local, "Bearer s3cret", "", "", "", 403},
		{"IPv6", local, "Bearer s3cret", "[::1]:80", "", "", 200},
		{"IPv6 without port", local, "Bearer s3cret", "[::1]", "", "", 200},
		{"name of this machine as a prefix", local, "Bearer s3cret", "localhost.evil.example", "", "", 403},
		{"address of this machine as a prefix", local, "Bearer s3cret", "127.0.0.1.evil.example", "", "", 403},

		{"foreign origin", local, "Bearer s3cret", "localhost", "http://evil.example", "", 403},
		{"null origin", local, "Bearer s3cret", "localhost", "null", "", 403},
		{"empty origin", local, "Bearer s3cret", "localhost", "-", "", 403},
		{"own page", local, "Bearer s3cret", "localhost:7411", "http://localhost:7411", "same-origin", 200},
		{"own page under another name of this machine", local, "Bearer s3cret", "127.0.0.1:7411",
			"http://localhost:7411",
			"cross-site", 200},
		{"own page by an address", local, "Bearer s3cret", "localhost:7411", "http://127.0.0.1:7411", "cross-site", 200},
		{"own page by an address that is not the listener's", local, "Bearer s3cret", "[::1]:7411", "http://[::1]:7411",
			"same-origin", 200},
		{"own page by IPv6", net.IPv6loopback, "Bearer s3cret", "localhost:7411", "http://[::1]:7411", "cross-site", 200},
		{"page of another address of this machine", local, "Bearer s3cret", "127.0.0.1:7411", "http://[::1]:7411",
			"cross-site", 403},
		{"page of another loopback address", local, "Bearer s3cret", "localhost:7411", "http://127.0.0.2:7411",
			"cross-site", 403},
		{"page of another scheme", local, "Bearer s3cret", "127.0.0.1:7411", "https://127.0.0.1:7411", "", 403},
		{"page of another scheme at the default port", local, "Bearer s3cret", "localhost", "https://localhost", "", 403},
		{"page at an allowed name through a proxy with TLS", local, "Bearer s3cret", "knowhow.local",
			"https://knowhow.local", "same-origin", 200},
		{"page of another port of this machine", local, "Bearer s3cret", "localhost:7411", "http://localhost:8080",
			"same-site", 403},
		{"page of the default port of this machine", local, "Bearer s3cret", "localhost:7411", "http://localhost",
			"same-site", 403},
		{"page of another port, under another name", local, "Bearer s3cret", "127.0.0.1:7411", "http://[::1]:8080",
			"cross-site", 403},
		{"page of this machine", outside, "Bearer s3cret", "192.0.2.7:80", "http://localhost:80", "cross-site", 403},
		{"name of this machine as user", local, "Bearer s3cret", "localhost", "http://localhost@evil.example", "", 403},
		{"user", local, "Bearer s3cret", "localhost", "http://x@localhost", "", 403},
		{"extension", local, "Bearer s3cret", "localhost", "chrome-extension://localhost", "", 403},
		{"broken origin", local, "Bearer s3cret", "localhost", "http://[::1", "", 403},
		{"allowed origin", local, "Bearer s3cret", "localhost", "https://APP.example", "cross-site", 200},
		{"own origin by address", outside, "Bearer s3cret", "192.0.2.7:80", "http://192.0.2.7:80", "same-origin", 200},
		{"own origin by name", outside, "Bearer s3cret", "evil.example", "http://evil.example", "same-origin", 403},
		{"own origin by allowed name", outside, "Bearer s3cret", "knowhow.local", "http://knowhow.local", "same-origin",
			200},
		{"foreign origin outside", outside, "Bearer s3cret", "192.0.2.7:80", "http://evil.example", "", 403},

		{"image of another site", local, "Bearer s3cret", "localhost", "", "cross-site", 403},
		{"cross-site in capitals", local, "Bearer s3cret", "localhost", "", "Cross-Site", 403},
		{"unknown value", local, "Bearer s3cret", "localhost", "", "new-site", 403},
		{"address bar", local, "Bearer s3cret", "localhost", "", "none", 200},
		{"own page", local, "Bearer s3cret", "localhost", "", "same-origin", 200},
		{"image of another port of this machine", local, "Bearer s3cret", "localhost", "", "same-site", 403},
		{"other name of the domain", local, "Bearer s3cret", "knowhow.local", "", "same-site", 403},
		{"other name of the domain outside", outside, "Bearer s3cret", "search.example", "", "same-site", 403},
		{"image of another site outside", outside, "Bearer s3cret", "search.example", "", "cross-site", 403},
	}
	withUsers(t, o, func(t *testing.T, o httpguard.Options) {
		for _, tc := range tests {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				r := from(httptest.NewRequest(method, "/", nil), tc.listener)
				r.Host = tc.host
				r.Header.Set("Authorization", tc.authorization)
				for key, value := range map[string]string{"Origin": tc.origin, "Sec-Fetch-Site": tc.fetch} {
					if value != "" {
						r.Header.Set(key, strings.TrimPrefix(value, "-"))
					}
				}
				w := answer(o, r)
				want := map[bool]string{true: challengeOf(o)}[tc.status == 401]
				if got := w.Header().Get("WWW-Authenticate"); w.Code != tc.status || got != want {
					t.Errorf("%s: %s = %d with WWW-Authenticate %q, want %d %q", tc.name, method, w.Code, got, tc.status,
						want)
				}
			}
		}
	})
}

// With TLS, the pages of the server have the scheme https.
func TestOriginWithTLS(t *testing.T) {
	for origin, want := range map[string]int{"https://localhost:7411": 200, "https://127.0.0.1:7411": 200,
		"http://localhost:7411": 403, "https://localhost": 403} {
		r := newRequest("POST", "/")
		r.Host = "localhost:7411"
		r.Header.Set("Origin", origin)
		o := httpguard.Options{TLS: new(httpguard.Certificate), Routes: everything(named("page"))}
		if w := answer(o, r); w.Code != want {
			t.Errorf("a request from %s = %d, want %d", origin, w.Code, want)
		}
	}
}

func TestTwoOrigins(t *testing.T) {
	r := newRequest("POST", "/")
	r.Header["Origin"] = []string{"http://localhost", "https://evil.example"}
	if w := answer(httpguard.Options{Routes: everything(named("page"))}, r); w.Code != 403 {
		t.Errorf("a request with two origins = %d, want 403", w.Code)
	}
}

// A refusal contains the hints of the caller and is written by the function of
// its route.
func TestRefusals(t *testing.T) {
	var log bytes.Buffer
	write := func(name string) httpguard.RefuseFunc {
		return func(w http.ResponseWriter, _ *http.Request, f httpguard.Refusal) {
			http.Error(w, name+": "+f.Message, f.Status)
		}
	}
	o := httpguard.Options{Token: "s3cret", HostHint: "set hosts", OriginHint: "set origins", Refuse: write("server"),
		Routes: []httpguard.Route{{Path: "/a", Handler: named("a"), Refuse: write("route")}, {Path: "/b",
			Handler: named("b")}, {Path: "/c"}},
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, tc := range []struct {
		method, path, token, host, origin string
		status                            int
		body                              string
	}{
		{"GET", "/a", "wrong", "", "", 401, "route: a token is required, and this request has none or a wrong one"},
		{"GET", "/b", "wrong", "", "", 401, "server: a token is required, and this request has none or a wrong one"},
		{"GET", "/a", "s3cret", "evil.example", "",
			403, "route: the Host header names another host than this one, set hosts"},
		{"GET", "/a", "s3cret", "", "https://evil.example", 403,
			"route: requests from this web origin are not allowed, " +
				"set origins"},
		{"GET", "/c", "", "", "", 401, "server: a token is required, and this request has none or a wrong one"},
		{"GET", "/c", "s3cret", "", "", 404, "server: nothing is served at this path, use /a or /b or /healthz"},
		{"GET", "/nothing", "", "", "", 401,
			"server: a token is required, and this request has none or a wrong one"},
		{"POST", "/a/", "wrong", "", "", 401,
			"server: a token is required, and this request has none or a wrong one"},
		{"GET", "/nothing", "s3cret", "evil.example", "",
			403, "server: the Host header names another host than this one, set hosts"},
		{"GET", "/nothing", "s3cret", "", "", 404, "server: nothing is served at this path, use /a or /b or /healthz"},
		{"POST", "/healthz", "", "", "", 405, "server: this method is not allowed here, use GET or HEAD"},
	} {
		r := newRequest(tc.method, tc.path)
		r.Header.Set("Authorization", "Bearer "+tc.token)
		if tc.host != "" {
			r.Host = tc.host
		}
		if tc.origin != "" {
			r.Header.Set("Origin", tc.origin)
		}
		w := answer(o, r)
		if got := strings.TrimSpace(w.Body.String()); w.Code != tc.status || got != tc.body {
			t.Errorf("%s %s = %d %q, want %d %q", tc.method, tc.path, w.Code, got, tc.status, tc.body)
		}
		if allow := w.Header().Get("Allow"); (w.Code == 405) != (allow == "GET, HEAD") {
			t.Errorf("%s %s = %d with Allow %q", tc.method, tc.path, w.Code, allow)
		}
	}
	if got := log.String(); strings.Count(got, "refused a request") != 11 || strings.Contains(got, "s3cret") ||
		strings.Contains(got, "wrong\"") {
		t.Errorf("the log is %s, want a line for each refusal, without tokens", got)
	}
}

// The health check requires no token, but refuses web pages.
func TestHealth(t *testing.T) {
	o := httpguard.Options{Token: "s3cret", Routes: everything(named("page"))}
	withUsers(t, o, testHealth)
}

func testHealth(t *testing.T, o httpguard.Options) {
	for _, tc := range []struct {
		method, host, header string
		status               int
	}{
		{"GET", "localhost", "", 200},
		{"HEAD", "localhost", "", 200},
		{"GET", "", "", 200}, // HTTP/1.0
		{"POST", "localhost", "", 405},
		{"OPTIONS", "localhost", "", 405},
		{"GET", "evil.example", "", 403},
		{"GET", "localhost", "Origin: https://evil.example", 403},
		{"GET", "", "Origin: https://evil.example", 403},
		{"GET", "localhost", "Sec-Fetch-Site: cross-site", 403},
	} {
		r := newRequest(tc.method, httpguard.HealthPath)
		r.Host = tc.host
		if name, value, ok := strings.Cut(tc.header, ": "); ok {
			r.Header.Set(name, value)
		}
		w := answer(o, r)
		if w.Code != tc.status {
			t.Errorf("%s of %q with %q = %d, want %d", tc.method, tc.host, tc.header, w.Code, tc.status)
		}
		if w.Code == 200 && (w.Body.String() != "{\"status\":\"ok\"}\n" ||
			w.Header().Get("Content-Type") != "application/json") {
			t.Errorf("%s = %s %q, want the status as JSON", tc.method, w.Header().Get("Content-Type"), w.Body)
		}
	}
}

// Paths are compared unchanged, and nothing is redirected.
func TestRoutes(t *testing.T) {
	o := httpguard.Options{Token: "s3cret", Routes: []httpguard.Route{
		{Path: "/mcp", Handler: named("all")}, {Path: "/mcp", Tree: true, Handler: named("one")},
		{Path: "/fess", Tree: true, Handler: named("fess")}, {Path: "/fess/deep", Tree: true, Handler: named("deep")},
		{Path: "/", Open: true, Handler: named("root")}, {Path: "/", Tree: true, Handler: named("rest")},
		{Path: httpguard.HealthPath, Handler: named("not reached")},
	}}
	withUsers(t, o, testRoutes)
}

func testRoutes(t *testing.T, o httpguard.Options) {
	for path, want := range map[string]string{
		"/mcp": "all", "/mcp/": "one", "/mcp/x": "one", "/mcp//x": "one", "/mcp/../fess": "one", "/mcpx": "rest",
		"/fess": "fess", "/fess/": "fess", "/fess//api": "fess", "/fess/deep": "deep", "/fess/deep/er": "deep",
		"/fess/deeper": "fess",
		"//fess":       "rest", "/healthz/": "rest", "//healthz": "rest", "/x": "rest",
		"/healthz": "{\"status\":\"ok\"}\n", "/": "root",
	} {
		r := newRequest("GET", "/")
		r.URL.Path = path
		open := path == "/" || path == "/healthz"
		if w := answer(o, r); (w.Code == 200) != open {
			t.Errorf("GET %s without a token = %d %s", path, w.Code, w.Body)
		}
		r.Header.Set("Authorization", "Bearer s3cret")
		if w := answer(o, r); w.Code != 200 || w.Body.String() != want {
			t.Errorf("GET %s = %d %q, want %q", path, w.Code, w.Body, want)
		}
	}
}

// A route without Methods has no CORS headers.
func TestNoCORS(t *testing.T) {
	withUsers(t, httpguard.Options{Token: "s3cret", Routes: everything(named("page"))}, testNoCORS)
}

func testNoCORS(t *testing.T, o httpguard.Options) {
	for _, token := range []string{"", "s3cret"} {
		r := newRequest("OPTIONS", "/")
		r.Header.Set("Origin", "http://localhost")
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Authorization", "Bearer "+token)
		w := answer(o, r)
		for name := range w.Header() {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("the response has the header %s, want no CORS headers", name)
			}
		}
		if want := map[string]int{"": 401, "s3cret": 200}[token]; w.Code != want {
			t.Errorf("OPTIONS with the token %q = %d, want %d", token, w.Code, want)
		}
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.1.2.3": true, "::1": true, "localhost": true, "LocalHost": true,
		"::ffff:127.0.0.1": true,
		"127.0.0.1:80":     true, "[::1]:80": true, "[::1]": true, "localhost:80": true,
		"0.0.0.0": false, "::": false, "": false, "192.168.0.1": false, "example.com": false,
		"localhost.example.com": false,
		"localhost:80:80":       false, "2130706433": false, "pipe": false,
	} {
		if got := httpguard.Loopback(host); got != want {
			t.Errorf("Loopback(%q) = %v, want %v", host, got, want)
		}
	}
}
