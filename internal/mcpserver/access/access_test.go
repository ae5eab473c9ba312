package access_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"knowhow/internal/mcpserver/access"
)

// The order is token, Host, Origin; the Host counts on loopback listeners only.
func TestAdmit(t *testing.T) {
	const token = "s3cret"
	a := access.New(access.Options{Token: token, AllowedOrigins: []string{"https://app.example/"}, AllowedHosts: []string{"Knowhow.local"}})
	local, outside := net.IPv4(127, 0, 0, 1), net.IPv4(192, 0, 2, 7)
	for _, tc := range []struct {
		name          string
		listener      net.IP
		authorization string
		host, origin  string
		status        int
	}{
		{"plain", local, "Bearer s3cret", "localhost:80", "", 200},
		{"scheme in capitals", local, "BEARER  s3cret ", "localhost:80", "", 200},
		{"no token", local, "", "localhost:80", "", 401},
		{"empty token", local, "Bearer ", "localhost:80", "", 401},
		{"token alone", local, "s3cret", "localhost:80", "", 401},
		{"token before Host", local, "Bearer x", "evil.example", "http://evil.example", 401},
		{"strange host", local, "Bearer s3cret", "evil.example", "", 403},
		{"strange host outside", outside, "Bearer s3cret", "evil.example", "", 200},
		{"allowed host", local, "Bearer s3cret", "KNOWHOW.LOCAL:1", "", 200},
		{"IPv6", local, "Bearer s3cret", "[::1]:80", "", 200},
		{"strange origin", local, "Bearer s3cret", "localhost", "http://evil.example", 403},
		{"null origin", local, "Bearer s3cret", "localhost", "null", 403},
		{"allowed origin", local, "Bearer s3cret", "localhost", "https://APP.example", 200},
		{"own origin by address", outside, "Bearer s3cret", "192.0.2.7:80", "http://192.0.2.7:80", 200},
		{"own origin by name", outside, "Bearer s3cret", "evil.example", "http://evil.example", 403},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: tc.listener, Port: 80}))
		r.Host = tc.host
		r.Header.Set("Authorization", tc.authorization)
		if tc.origin != "" {
			r.Header.Set("Origin", tc.origin)
		}
		if ok := a.Admit(w, r); ok != (tc.status == 200) || w.Code != tc.status {
			t.Errorf("%s: Admit() = %t with status %d, want %d", tc.name, ok, w.Code, tc.status)
		}
	}
}

func TestRefuse(t *testing.T) {
	w := httptest.NewRecorder()
	access.Refuse(w, http.StatusForbidden, `not "here" <b>`)
	want := `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"not \"here\" <b>"}}`
	if got := w.Body.String(); w.Code != 403 || got != want || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("Refuse() wrote %d %s, want 403 %s", w.Code, got, want)
	}
	w = httptest.NewRecorder()
	if access.RefuseMethod(w, "GET"); w.Code != 405 || w.Header().Get("Allow") != "GET" {
		t.Errorf("RefuseMethod() wrote %d with Allow %q, want 405 with GET", w.Code, w.Header().Get("Allow"))
	}
}
