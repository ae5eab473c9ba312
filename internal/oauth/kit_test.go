package oauth_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/oauth"
)

const (
	issuerURL = "https://login.example/realms/acme"
	public    = "https://docs.example"
)

// An issuer is a fake issuer without a network. Its fields may be changed between
// requests.
type issuer struct {
	mu    sync.Mutex
	keys  []jose.JSONWebKey
	asked []string // paths of the requests
	sent  []string // of each request with a body: the header Authorization, a blank and the body
	down  bool     // no answer
	slow  bool     // answers never
	// answers replaces answers at some paths
	answers map[string]func() *http.Response
}

const (
	metadataPath = "/realms/acme/.well-known/openid-configuration"
	keysPath     = "/keys"
)

// answer returns a response with a status and a body.
func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	i.mu.Lock()
	i.asked = append(i.asked, r.URL.Path)
	if r.Body != nil {
		i.sent = append(i.sent, r.Header.Get("Authorization")+" "+string(body))
	}
	down, slow, set := i.down, i.slow, jose.JSONWebKeySet{Keys: i.keys}
	replaced := i.answers[r.URL.Path]
	i.mu.Unlock()
	switch {
	case slow:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case down:
		return nil, errors.New("connection refused")
	case replaced != nil:
		return replaced(), nil
	}
	switch r.URL.String() {
	case "https://login.example" + metadataPath:
		return answer(200, `{"issuer":"`+issuerURL+`","jwks_uri":"https://keys.example`+keysPath+`"}`), nil
	case "https://keys.example" + keysPath:
		data, err := json.Marshal(set)
		return answer(200, string(data)), err
	}
	return answer(404, "<html>"), nil
}

// change changes the issuer.
func (i *issuer) change(f func(i *issuer)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f(i)
}

// readings returns how often the keys were asked for.
func (i *issuer) readings() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := 0
	for _, path := range i.asked {
		if path == keysPath {
			n++
		}
	}
	return n
}

// verifier returns a verifier of the issuer's tokens for one audience, and its log.
func (i *issuer) verifier(t testing.TB, change ...func(*oauth.Options)) (*oauth.Verifier, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	o := oauth.Options{Issuer: issuerURL, PublicURL: public, Transport: i, Log: slog.New(slog.NewTextHandler(log, nil))}
	for _, f := range change {
		f(&o)
	}
	v, err := oauth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v, log
}

// A key signs tokens.
type key struct {
	id      string
	alg     jose.SignatureAlgorithm
	private crypto.Signer
}

func newKey(id string) key {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key{id, jose.ES256, private}
}

// newRSA returns a key pair, which is made once.
var newRSA = sync.OnceValue(func() *rsa.PrivateKey {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return private
})

// public returns the key as the issuer publishes it.
func (k key) public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Use: "sig", Algorithm: string(k.alg)}
}

// A change changes the header and the claims of a token.
type change func(header, claims map[string]any)

// token returns a token that is valid for an hour, with changes.
func (k key) token(t testing.TB, changes ...change) string {
	t.Helper()
	header := map[string]any{"typ": "at+jwt", "kid": k.id}
	claims := map[string]any{"iss": issuerURL, "aud": public + "/mcp", "sub": "anna", "iat": time.Now().Unix(),
		"exp": time.Now().Add(time.Hour).Unix()}
	if k.id == "" {
		delete(header, "kid")
	}
	for _, f := range changes {
		f(header, claims)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return k.sign(t, header, payload)
}

// sign returns a token with a header and a payload.
func (k key) sign(t testing.TB, header map[string]any, payload []byte) string {
	t.Helper()
	return signWith(t, jose.SigningKey{Algorithm: k.alg, Key: k.private}, header, payload)
}

// signWith returns a payload in the compact form, signed with a key.
func signWith(t testing.TB, k jose.SigningKey, header map[string]any, payload []byte) string {
	t.Helper()
	o := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{}}
	for name, value := range header {
		o.ExtraHeaders[jose.HeaderKey(name)] = value
	}
	signer, err := jose.NewSigner(k, o)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// header sets a value of the header; nil removes it.
func header(name string, value any) change {
	return func(header, _ map[string]any) { set(header, name, value) }
}

// claim sets a claim; nil removes it.
func claim(name string, value any) change {
	return func(_, claims map[string]any) { set(claims, name, value) }
}

func set(in map[string]any, name string, value any) {
	in[name] = value
	if value == nil {
		delete(in, name)
	}
}

// The results of verifying: what a message contains.
const (
	accepted    = ""
	expired     = "it has expired"
	early       = "it is not valid yet"
	otherIssuer = "another issuer"
	audience    = "another audience"
	unsigned    = "not a signed JWT"
	algorithm   = "an algorithm that is not accepted"
	wrongType   = "not an access token by its type"
	extension   = "extensions that are not accepted"
	noKey       = "not signed with a key of the issuer"
	forged      = "its signature is wrong"
	damaged     = "its claims are damaged"
	noUser      = "it names no user"
	unavailable = "cannot be read now"
)

// check verifies a token at a path and requires a result.
func check(t testing.TB, v *oauth.Verifier, token, path, want string) *oauth.Identity {
	t.Helper()
	who, err := v.Verify(context.Background(), token, path)
	kind := error(errkind.Denied)
	if want == unavailable {
		kind = errkind.Unavailable
	}
	switch {
	case want == accepted && err != nil:
		t.Errorf("Verify() = %v, want no error", err)
	case want != accepted && (!errors.Is(err, kind) || !strings.Contains(err.Error(), want)):
		t.Errorf("Verify() = %v, want an error of kind %v with %q", cmp.Or(err, errors.New("no error")), kind, want)
	case (err == nil) != (who != nil):
		t.Errorf("Verify() = %v, %v", who, err)
	}
	return who
}
