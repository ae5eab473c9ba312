package users_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/oauth"
	"github.com/knowhow-mcp/knowhow/internal/users"
)

const issuerURL = "https://login.example"

// An issuer is a fake issuer without a network, which is reached unless it is down.
type issuer struct {
	key  *ecdsa.PrivateKey
	down bool
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{key: key}
}

// verifier returns a verifier of the tokens of the issuer.
func (i *issuer) verifier(t testing.TB) *oauth.Verifier {
	t.Helper()
	v, err := oauth.New(oauth.Options{Issuer: issuerURL, PublicURL: "https://docs.example", Transport: i})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// RoundTrip implements [http.RoundTripper].
func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	body := `{"issuer":"` + issuerURL + `","jwks_uri":"` + issuerURL + `/keys"}`
	switch {
	case i.down:
		return nil, io.ErrUnexpectedEOF
	case r.URL.Path == "/keys":
		public, err := i.key.PublicKey.Bytes()
		if err != nil {
			return nil, err
		}
		body = fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"1","x":%q,"y":%q}]}`,
			base64.RawURLEncoding.EncodeToString(public[1:33]), base64.RawURLEncoding.EncodeToString(public[33:]))
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// token returns a token of a user that is valid for some time.
func (i *issuer) token(t testing.TB, subject string, d time.Duration, groups ...string) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{"iss": issuerURL, "aud": "https://docs.example/mcp", "sub": subject,
		"groups": groups, "iat": time.Now().Unix(), "exp": time.Now().Add(d).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"at+jwt","alg":"ES256","kid":"1"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(append(r.FillBytes(make([]byte, 32)),
		s.FillBytes(make([]byte, 32))...))
}

// setGroups makes the groups those of the access file.
func (m *team) setGroups(t testing.TB, groups ...access.Group) {
	t.Helper()
	m.edit(t, func(c *access.Content) { c.Groups = groups })
}

// Streams end with the token with which they were opened. The session goes on with the
// next token of the user.
func TestTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		m := newTeam(t, users.Options{Issuer: i.verifier(t)})
		m.setGroups(t, access.Group{Name: "sales", Read: []string{"a"}})
		token := i.token(t, "anna", time.Minute, "sales")
		s := m.session(t, "", "/mcp")
		s.SetHeader("Authorization", "Bearer "+token)
		s.Initialize("2025-11-25")
		listening := m.start(t, token, "GET", "/mcp", "", inSession(s)...)
		running, event := m.call(t, token, s, 70)
		began := time.Now()
		for _, res := range []*http.Response{listening, running} {
			read(t, res)
		}
		// 60 s is what clocks may differ by.
		if took := time.Since(began); took < 100*time.Second || took > 2*time.Minute+soon {
			t.Errorf("the streams ended after %v, want two minutes", took)
		}
		close(m.release)
		time.Sleep(time.Second)
		for _, path := range []string{"/mcp", "/fess", "/none"} {
			res := m.start(t, token, "GET", path, "")
			if body := read(t, res); res.StatusCode != 401 || !strings.Contains(body, "expired") ||
				!strings.Contains(res.Header.Get("WWW-Authenticate"), `error="invalid_token"`) {
				t.Errorf("%s with the old token = %d %v %s", path, res.StatusCode, res.Header, body)
			}
		}
		token = i.token(t, "anna", time.Minute, "sales")
		header := append(inSession(s), "Last-Event-ID: "+event)
		if got := m.send(t, token, "GET", "/mcp", "", header...); !strings.Contains(got, "held a") {
			t.Errorf("resuming the call with the next token = %s", got)
		}
	})
}

// The sessions of one user with different groups are separate, because so are the
// rights. A user of the access file with the name of a subject is another user.
func TestUsersOfIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		m := newTeam(t, users.Options{Issuer: i.verifier(t)}, user("anna", []string{"c"}, nil))
		m.setGroups(t, access.Group{Name: "sales", Read: []string{"a"}}, access.Group{Name: "legal", Read: []string{"b"}})
		sales, both := i.token(t, "anna", time.Hour, "sales"), i.token(t, "anna", time.Hour, "legal", "sales")
		for token, want := range map[string]string{sales: "200 a", both: "200 a,b", "token-anna": "200 c"} {
			if got := m.send(t, token, "GET", "/fess", ""); got != want {
				t.Errorf("/fess = %s, want %s", got, want)
			}
		}
		s := m.session(t, "", "/mcp")
		s.SetHeader("Authorization", "Bearer "+both)
		s.Initialize("2025-11-25")
		for _, token := range []string{sales, "token-anna"} {
			if got := m.send(t, token, "POST", "/mcp", tool(1, "read"), inSession(s)...); !strings.HasPrefix(got, "404 ") {
				t.Errorf("the session of a token with other groups = %s", got)
			}
		}
		m.recorded()

		listening := m.start(t, both, "GET", "/mcp", "", inSession(s)...)
		m.setGroups(t, access.Group{Name: "sales", Read: []string{"a"}})
		read(t, listening) // ends
		if got := text(t, s, "read"); got != "a a" {
			t.Errorf("without a group, the tool answers %q", got)
		}
		m.setGroups(t)
		if got := m.send(t, both, "GET", "/fess", ""); !strings.HasPrefix(got, "403 ") {
			t.Errorf("/fess of a user without rights = %s", got)
		}
		m.recorded()
		res := m.start(t, i.token(t, "ben", time.Hour), "GET", "/fess", "")
		if read(t, res); res.StatusCode != 403 || !strings.Contains(res.Header.Get("WWW-Authenticate"), "insufficient_scope") {
			t.Errorf("/fess of a user without rights = %d %v", res.StatusCode, res.Header)
		}
		if got := m.recorded(); len(got) != 1 || got[0] != "ben /fess GET 403" {
			t.Errorf("recorded are %q", got)
		}
	})
}

// While the keys of the issuer cannot be read, its users are not admitted, and others are.
func TestIssuerIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		i.down = true
		m := newTeam(t, users.Options{Issuer: i.verifier(t)}, user("anna", []string{"a"}, nil))
		res := m.start(t, i.token(t, "ben", time.Hour), "GET", "/fess", "")
		if body := read(t, res); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" ||
			strings.Contains(body, "login.example") {
			t.Errorf("/fess = %d %v %s", res.StatusCode, res.Header, body)
		}
		if got := m.send(t, "token-anna", "GET", "/fess", ""); got != "200 a" {
			t.Errorf("/fess of a user of the access file = %s", got)
		}
	})
}
