package oauth_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/oauth"
)

const (
	tokenPath = "/token"
	authorize = `"authorization_endpoint":"https://login.example/authorize"`
	tokenURL  = `"token_endpoint":"https://login.example` + tokenPath + `"`
	redirect  = "https%3A%2F%2Fdocs.example%2F" // the redirect URI
	verifier  = "0123456789-0123456789.0123456789_0123456789~abc"
	code      = `{"code":"c0de","verifier":"` + verifier + `"}`
	codeForm  = "code=c0de&code_verifier=" + verifier + "&grant_type=authorization_code&redirect_uri=" + redirect +
		"&resource=https%3A%2F%2Fdocs.example%2Fmcp"
)

// provider returns an issuer whose metadata has more members, and which answers requests
// for tokens with a status and a body.
func provider(k key, members string, status int, body string) *issuer {
	return &issuer{keys: []jose.JSONWebKey{k.public()}, answers: map[string]func() *http.Response{
		metadataPath: func() *http.Response {
			return answer(200, `{"issuer":"`+issuerURL+`","jwks_uri":"https://keys.example`+keysPath+`"`+members+`}`)
		},
		tokenPath: func() *http.Response { return answer(status, body) },
	}}
}

// withClient adds a client.
func withClient(id, secret string) func(*oauth.Options) {
	return func(o *oauth.Options) { o.Client = oauth.Client{ID: id, Secret: secret} }
}

// A signOnServer is a guarded server at which people sign in.
type signOnServer struct {
	http.Handler
	log *bytes.Buffer
}

func newSignOnServer(t testing.TB, i *issuer, change ...func(*oauth.Options)) signOnServer {
	t.Helper()
	v, log := i.verifier(t, change...)
	return signOnServer{httpguard.New(httpguard.Options{Token: "s3cret", AllowedHosts: []string{"docs.example"},
		Routes: v.Routes()}), log}
}

// send sends a request of the page. Headers replace those that a browser sends.
func (s signOnServer) send(method, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, public+oauth.SignOnPath, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", public)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// got returns the status and the body of a response.
func got(w *httptest.ResponseRecorder) string {
	return fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String()))
}

// The page learns where people sign in, if they can.
func TestSignOn(t *testing.T) {
	const (
		noEndpoints = `502 {"error":"the metadata of the identity provider names no secure endpoints for signing in"}`
		query       = "client_id=c+1\\u0026code_challenge_method=S256\\u0026redirect_uri=" + redirect +
			"\\u0026resource=https%3A%2F%2Fdocs.example%2Fmcp\\u0026response_type=code"
		offered = `200 {"url":"https://login.example/authorize?` + query + `","page":"https://docs.example/"}`
	)
	for name, c := range map[string]struct{ members, want string }{
		"endpoints": {"," + authorize + "," + tokenURL, offered},
		"S256":      {"," + authorize + "," + tokenURL + `,"code_challenge_methods_supported":["plain","S256"]`, offered},
		"no S256": {"," + authorize + "," + tokenURL + `,"code_challenge_methods_supported":["plain"]`,
			`502 {"error":"the identity provider does not support PKCE with S256"}`},
		"with a query": {`,"authorization_endpoint":"https://login.example/a?tenant=1",` + tokenURL,
			`200 {"url":"https://login.example/a?` + query + `\u0026tenant=1","page":"https://docs.example/"}`},
		"none":              {"", noEndpoints},
		"no token endpoint": {"," + authorize, noEndpoints},
		"without TLS":       {`,"authorization_endpoint":"http://login.example/a",` + tokenURL, noEndpoints},
		"a script":          {`,"authorization_endpoint":"javascript:alert(1)",` + tokenURL, noEndpoints},
		"with a password":   {`,"authorization_endpoint":"https://u:p@login.example",` + tokenURL, noEndpoints},
		"on this machine":   {"," + authorize + `,"token_endpoint":"http://127.0.0.1/token"`, noEndpoints},
		"damaged":           {"," + authorize + "," + tokenURL + `,"code_challenge_methods_supported":"S256"`, noEndpoints},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSignOnServer(t, provider(newKey("1"), c.members, 0, ""), withClient("c 1", ""))
			w := s.send("GET", "")
			if diff := cmp.Diff(c.want, got(w)); diff != "" {
				t.Error(diff)
			}
			if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("the headers are %v", w.Header())
			}
		})
	}
	i := provider(newKey("1"), ","+authorize+","+tokenURL, 0, "")
	s := newSignOnServer(t, i, withClient("c 1", ""), func(o *oauth.Options) { o.Scopes = []string{"openid", "a"} })
	if w := s.send("GET", ""); !strings.Contains(w.Body.String(), "scope=openid+a") {
		t.Errorf("GET = %s, want the scopes", got(w))
	}
	for range 100 { // nobody can make the server send many requests
		s.send("GET", "")
	}
	if n := i.readings(); n != 1 {
		t.Errorf("the metadata was read %d times, want once", n)
	}
	// Without a client, there is no sign-on, and the path needs a token as all others do.
	if w := newSignOnServer(t, i).send("GET", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("GET without a client = %s", got(w))
	}
	i.change(func(i *issuer) { i.down = true })
	s = newSignOnServer(t, i, withClient("c 1", ""))
	const away = `503 {"error":"the identity provider cannot be reached now, try again later"}`
	if w := s.send("GET", ""); got(w) != away || w.Header().Get("Retry-After") == "" {
		t.Errorf("GET = %s, want %s", got(w), away)
	}
}

// Codes and refresh tokens are exchanged with what identifies the client.
func TestExchange(t *testing.T) {
	k := newKey("1")
	token := k.token(t)
	basic := `,"token_endpoint_auth_methods_supported":["client_secret_post","client_secret_basic"]`
	post := `,"token_endpoint_auth_methods_supported":["client_secret_post"]`
	const (
		refresh     = `{"refresh_token":"r 1"}`
		refreshForm = "grant_type=refresh_token&refresh_token=r+1&resource=https%3A%2F%2Fdocs.example%2Fmcp"
	)
	for name, c := range map[string]struct{ members, secret, body, sent string }{
		"public":        {"", "", code, " client_id=c+1&" + codeForm},
		"secret":        {"", "s:&1", code, "Basic YysxOnMlM0ElMjYx " + codeForm}, // c+1:s%3A%261
		"basic":         {basic, "s:&1", code, "Basic YysxOnMlM0ElMjYx " + codeForm},
		"post":          {post, "s:&1", code, " client_id=c+1&client_secret=s%3A%261&" + codeForm},
		"refresh":       {"", "", refresh, " client_id=c+1&" + refreshForm},
		"refresh basic": {"", "s:&1", refresh, "Basic YysxOnMlM0ElMjYx " + refreshForm},
		"issuer": {`,"authorization_response_iss_parameter_supported":true`, "",
			strings.Replace(code, "{", `{"iss":"`+issuerURL+`",`, 1), " client_id=c+1&" + codeForm},
	} {
		t.Run(name, func(t *testing.T) {
			i := provider(k, ","+authorize+","+tokenURL+c.members, 200,
				`{"access_token":"`+token+`","token_type":"bearer","expires_in":"soon","refresh_token":"r2","id_token":{}}`)
			s := newSignOnServer(t, i, withClient("c 1", c.secret))
			w := s.send("POST", c.body)
			want := `200 {"access_token":"` + token + `","expires_in":3`
			if !strings.HasPrefix(got(w), want) || !strings.HasSuffix(got(w), `,"refresh_token":"r2"}`) ||
				w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("POST = %s", got(w))
			}
			// url.Values.Encode sorts the names.
			parts := strings.Split(c.sent, " ")
			sent := strings.Split(i.sent[0], " ")
			if diff := cmp.Diff(parts[0], sent[0]); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(sortedForm(parts[1]), sortedForm(sent[1])); diff != "" {
				t.Error(diff)
			}
			if s.log.Len() > 0 {
				t.Errorf("the log has %s", s.log)
			}
		})
	}
}

// sortedForm returns the parameters of a form.
func sortedForm(form string) map[string]string {
	m := map[string]string{}
	for pair := range strings.SplitSeq(form, "&") {
		name, value, _ := strings.Cut(pair, "=")
		m[name] = value
	}
	return m
}

// What the issuer answers is foreign. Nothing of it but its tokens and clean messages
// reaches the page, and nothing that is secret reaches the log.
func TestHostileTokens(t *testing.T) {
	k := newKey("1")
	const (
		away    = `503 {"error":"the identity provider cannot be reached now, try again later"}`
		no      = `502 {"error":"the identity provider gives no tokens: `
		noToken = no + `its answer has no bearer token"}`
		refuses = `"the identity provider refuses the sign-on`
	)
	bearer := func(token string) string { return `{"token_type":"Bearer","access_token":"` + token + `"}` }
	for name, c := range map[string]struct {
		status     int
		body, want string
		logged     string // "" for nothing
	}{
		"code used": {400, `{"error":"invalid_grant","error_description":"c0de is\u202e\u0000\n used <b>"}`,
			`400 {"error":` + refuses + `: invalid_grant: c0de is used \u003cb\u003e"}`, ""},
		"long text": {400, `{"error":"invalid_grant","error_description":"` + strings.Repeat("a ", 1e5) + `"}`,
			`400 {"error":` + refuses + `: invalid_grant: ` + strings.Repeat("a ", 98) + `a…"}`, ""},
		"no description": {400, `{"error":"invalid_grant"}`, `400 {"error":` + refuses + `: invalid_grant"}`, ""},
		"wrong client": {401, `{"error":"invalid_client","error_description":"c0de"}`,
			`502 {"error":` + refuses + `: invalid_client: c0de"}`, "invalid_client"},
		"unknown error": {400, `{"error":"c0de","error_description":"x"}`, `502 {"error":` + refuses + `: x"}`,
			"refuses the sign-on"},
		"200 with error": {200, `{"error":"invalid_grant"}`, `400 {"error":` + refuses + `: invalid_grant"}`, ""},
		"redirect":       {302, "", no + `the status is 302"}`, "302"},
		"not found":      {404, "<html>", no + `the status is 404"}`, "404"},
		"broken":         {500, "<html>", away, "500"},
		"no JSON":        {200, "<html>", noToken, "no bearer token"},
		"empty":          {200, "{}", noToken, "no bearer token"},
		"a list":         {200, "[]", noToken, "no bearer token"},
		"no token":       {200, `{"token_type":"Bearer"}`, noToken, "no bearer token"},
		"other type":     {200, strings.Replace(bearer(k.token(t)), "Bearer", "DPoP", 1), noToken, "no bearer token"},
		"number":         {200, `{"token_type":"Bearer","access_token":1}`, noToken, "no bearer token"},
		"opaque": {200, bearer("opaque"), `502 {"error":"signing in: verifying the access token: it is not a signed JWT"}`,
			"not a signed JWT"},
		"other audience": {200, bearer(k.token(t, claim("aud", "x"))),
			`502 {"error":"signing in: verifying the access token: it is for another audience"}`, "another audience"},
		"forged": {200, bearer(newKey("1").token(t)),
			`502 {"error":"signing in: verifying the access token: its signature is wrong"}`, "signature is wrong"},
		"huge": {200, `{"token_type":"Bearer","x":"` + strings.Repeat("a", 1<<20) + `"}`, away, "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			i := provider(k, ","+authorize+","+tokenURL, c.status, c.body)
			s := newSignOnServer(t, i, withClient("console", "cl1ent-secret"))
			if diff := cmp.Diff(c.want, got(s.send("POST", code))); diff != "" {
				t.Error(diff)
			}
			if i.asked[len(i.asked)-1] != tokenPath {
				t.Errorf("the issuer was asked for %q", i.asked)
			}
			log := s.log.String()
			if (c.logged == "") != (log == "") || !strings.Contains(log, c.logged) {
				t.Errorf("the log has %q, want %q", log, c.logged)
			}
			for _, secret := range []string{"c0de", verifier, "cl1ent-secret", "opaque", "eyJ"} {
				if strings.Contains(log, secret) {
					t.Errorf("the log has %q: %s", secret, log)
				}
			}
			s.send("POST", code)
			if n := strings.Count(s.log.String(), "signing in on the console failed"); n > 1 {
				t.Errorf("the log has %d lines", n)
			}
		})
	}
	// Refresh tokens that cannot be sent are left out.
	for _, bad := range []string{strings.Repeat("r", 20<<10), "\u00e9", `a\nb`} {
		body := strings.Replace(bearer(k.token(t)), "{", `{"refresh_token":"`+bad+`",`, 1)
		s := newSignOnServer(t, provider(k, ","+authorize+","+tokenURL, 200, body), withClient("console", ""))
		if w := s.send("POST", code); w.Code != 200 || strings.Contains(w.Body.String(), "refresh") {
			t.Errorf("POST = %s", got(w))
		}
	}
}

// Anyone can send requests for tokens. Those that cannot succeed are not sent on.
func TestGrants(t *testing.T) {
	k := newKey("1")
	i := provider(k, ","+authorize+","+tokenURL+`,"authorization_response_iss_parameter_supported":true`, 200, "{}")
	s := newSignOnServer(t, i, withClient("console", ""))
	const damaged = `400 {"error":"reading the sign-on: it is damaged"}`
	const other = `400 {"error":"the sign-on came from another identity provider"}`
	issued := `"iss":"` + issuerURL + `",`
	for _, c := range []struct {
		method, body string
		header       []string
		want         string
	}{
		{"POST", "", nil, damaged},
		{"POST", "{}", nil, damaged},
		{"POST", "[]", nil, damaged},
		{"POST", `{"code":1}`, nil, damaged},
		{"POST", `{` + issued + `"code":"c0de"}`, nil, damaged},
		{"POST", `{` + issued + `"code":"c0de","verifier":"short"}`, nil, damaged},
		{"POST", `{` + issued + `"code":"c0de","verifier":"` + strings.Repeat("&", 43) + `"}`, nil, damaged},
		{"POST", `{` + issued + `"code":"c0de","verifier":"` + strings.Repeat("a", 129) + `"}`, nil, damaged},
		{"POST", `{` + issued + `"code":"c\n","verifier":"` + verifier + `"}`, nil, damaged},
		{"POST", `{` + issued + `"code":"c","refresh_token":"r","verifier":"` + verifier + `"}`, nil, damaged},
		{"POST", `{"refresh_token":"é"}`, nil, damaged},
		{"POST", `{"refresh_token":"` + strings.Repeat("r", 33<<10) + `"}`, nil, damaged},
		{"POST", code, []string{"Content-Type", "text/plain"}, damaged},
		{"POST", "code=c0de", []string{"Content-Type", "application/x-www-form-urlencoded"}, damaged},
		{"POST", code, nil, other}, // the issuer says that it names itself
		{"POST", strings.Replace(code, "{", `{"iss":"https://evil.example",`, 1), nil, other},
		{"POST", strings.Replace(code, "{", `{"iss":"",`, 1), nil, other},
		{"POST", code, []string{"Origin", "https://evil.example"}, "403 requests from this web origin are not allowed"},
		{"GET", "", []string{"Origin", "https://evil.example"}, "403 requests from this web origin are not allowed"},
		{"DELETE", "", nil, "405 this method is not allowed here, use GET, HEAD or POST"},
	} {
		if w := s.send(c.method, c.body, c.header...); got(w) != c.want {
			t.Errorf("%s %.100s = %s, want %s", c.method, c.body, got(w), c.want)
		}
	}
	if len(i.sent) > 0 {
		t.Errorf("the issuer got %q", i.sent)
	}
}

// The rate of requests for tokens is limited, and so is the time for an answer.
func TestGrantLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := provider(newKey("1"), ","+authorize+","+tokenURL, 400, `{"error":"invalid_grant"}`)
		s := newSignOnServer(t, i, withClient("console", ""))
		var last *httptest.ResponseRecorder
		for range 100 {
			last = s.send("POST", code)
		}
		if want := `429 {"error":"too many people sign in now, try again in a few seconds"}`; got(last) != want ||
			last.Header().Get("Retry-After") == "" || len(i.sent) > 60 {
			t.Errorf("POST = %s after %d requests, want %s", got(last), len(i.sent), want)
		}
		time.Sleep(time.Minute) // virtual
		i.change(func(i *issuer) { i.slow = true })
		begin := time.Now()
		want := `503 {"error":"the identity provider cannot be reached now, try again later"}`
		if w := s.send("POST", code); got(w) != want || time.Since(begin) != 10*time.Second {
			t.Errorf("POST = %s after %v, want %s", got(w), time.Since(begin), want)
		}
	})
}

// Whatever the issuer serves, the page gets JSON that is within its bounds.
func FuzzTokens(f *testing.F) {
	k := newKey("1")
	f.Add(","+authorize+","+tokenURL, 200, `{"token_type":"bearer","access_token":"`+k.token(f)+`","refresh_token":"r"}`)
	f.Add(`,"authorization_endpoint":"https://a?b#c","token_endpoint":"https:///"`, 400,
		`{"error":"x","error_description":"\ud800"}`)
	f.Fuzz(func(t *testing.T, members string, status int, body string) {
		s := newSignOnServer(t, provider(k, members, status, body), withClient("console", ""))
		for _, w := range []*httptest.ResponseRecorder{s.send("GET", ""), s.send("POST", code)} {
			text := w.Body.String()
			if !json.Valid([]byte(text)) || !utf8.ValidString(text) || w.Code != 200 && len(text) > 2000 {
				t.Errorf("%d %.300q", w.Code, text)
			}
		}
	})
}
