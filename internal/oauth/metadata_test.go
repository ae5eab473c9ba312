package oauth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/oauth"
)

// ask sends a request of a foreign web page to the routes of a verifier, behind a guard
// that requires a token.
func ask(v *oauth.Verifier, method, path string) *httptest.ResponseRecorder {
	guard := httpguard.New(httpguard.Options{Token: "s3cret", Routes: v.Routes()})
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, "https://docs.example"+path, nil)
	r.Header.Set("Origin", "https://client.example")
	if method == http.MethodOptions {
		r.Header.Set("Access-Control-Request-Method", "GET")
		r.Header.Set("Access-Control-Request-Headers", "mcp-protocol-version")
	}
	guard.ServeHTTP(w, r)
	return w
}

func TestMetadata(t *testing.T) {
	v, _ := new(issuer).verifier(t)
	scoped, _ := new(issuer).verifier(t, func(o *oauth.Options) { o.Scopes = []string{"openid", "groups"} })
	for path, resource := range map[string]string{
		"":              public,
		"/mcp":          public + "/mcp",
		"/mcp/docs":     public + "/mcp/docs",
		"/mcp/a%20%22b": public + "/mcp/a%20%22b",
		"/mcp/nobody":   public + "/mcp/nobody",
	} {
		w := ask(v, "GET", oauth.MetadataPath+path)
		want := `{"resource":"` + resource + `","authorization_servers":["` + issuerURL +
			`"],"bearer_methods_supported":["header"],"resource_name":"knowhow"}` + "\n"
		if diff := cmp.Diff(want, w.Body.String()); w.Code != 200 || diff != "" ||
			w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("GET %s = %d %v %s", path, w.Code, w.Header(), diff)
		}
		w = ask(scoped, "GET", oauth.MetadataPath+path)
		want = strings.Replace(want, `["header"]`, `["header"],"scopes_supported":["openid","groups"]`, 1)
		if diff := cmp.Diff(want, w.Body.String()); diff != "" {
			t.Error(diff)
		}
		for method, status := range map[string]int{"HEAD": 200, "OPTIONS": 204, "POST": 403, "DELETE": 403} {
			w := ask(v, method, oauth.MetadataPath+path)
			if w.Code != status || w.Header().Get("Access-Control-Allow-Origin") != "*" ||
				(method == "OPTIONS") != (w.Header().Get("Access-Control-Allow-Headers") == "mcp-protocol-version") {
				t.Errorf("%s %s = %d %v", method, path, w.Code, w.Header())
			}
		}
	}
	for _, path := range []string{"/", "/mcp/", "/mcp/a/b", "/mcp/a%2Fb", "/mcpx", "/kb", "/fess", "//mcp"} {
		if w := ask(v, "GET", oauth.MetadataPath+path); w.Code != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", path, w.Code)
		}
	}
}

func TestChallenge(t *testing.T) {
	const root = `resource_metadata="https://docs.example/.well-known/oauth-protected-resource`
	v, _ := new(issuer).verifier(t)
	scoped, _ := new(issuer).verifier(t, func(o *oauth.Options) { o.Scopes = []string{"openid", "groups"} })
	_, err := v.Verify(t.Context(), "x", "/mcp")
	const wrong = `error="invalid_token", error_description="verifying the access token: it is not a signed JWT"`
	for _, c := range []struct{ got, want string }{
		{v.Challenge("/", nil), `Bearer ` + root + `"`},
		{v.Challenge("/kb/notes", nil), `Bearer ` + root + `"`},
		{v.Challenge("/mcp", nil), `Bearer ` + root + `/mcp"`},
		{v.Challenge("/mcp/docs", nil), `Bearer ` + root + `/mcp/docs"`},
		{v.Challenge("/mcp/docs/x", nil), `Bearer ` + root + `"`},
		{v.Challenge("/mcp/\"\r\nX: y\u202e", nil), `Bearer ` + root + `/mcp/%22%0D%0AX:%20y%E2%80%AE"`},
		{scoped.Challenge("/mcp", nil), `Bearer ` + root + `/mcp", scope="openid groups"`},
		{v.Challenge("/mcp", err), `Bearer ` + root + `/mcp", ` + wrong},
		{scoped.Challenge("/mcp", err), `Bearer ` + root + `/mcp", ` + wrong + `, scope="openid groups"`},
		{v.Challenge("/", errors.New("a \"b\"\\\r\n\u202e")), `Bearer ` + root + `", error="invalid_token", ` +
			`error_description="a b"`},
		{v.InsufficientScope("/mcp"), `Bearer ` + root + `/mcp", error="insufficient_scope"`},
		{scoped.InsufficientScope("/"), `Bearer ` + root + `", error="insufficient_scope", scope="openid groups"`},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Error(diff)
		}
	}
}
