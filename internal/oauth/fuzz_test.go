package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/oauth"
)

// No token but those of the issuer is accepted, and no error has a part of one.
func FuzzVerify(f *testing.F) {
	k := newKey("1")
	v, _ := (&issuer{keys: []jose.JSONWebKey{k.public()}}).verifier(f)
	valid := k.token(f)
	part := strings.Split(valid, ".")
	f.Add(valid)
	f.Add(part[0] + "." + part[1] + ".")
	f.Add(parts(`{"alg":"none"}`, `{"sub":"root"}`, nil))
	f.Add(parts(`{"alg":"ES256","kid":"1","crit":["x"],"jwk":{},"x5c":["AA"]}`, `{}`, make([]byte, 64)))
	f.Fuzz(func(t *testing.T, token string) {
		who, err := v.Verify(context.Background(), token, "/mcp")
		if err == nil && !strings.HasPrefix(token, part[0]+"."+part[1]+".") {
			t.Errorf("Verify(%q) = %v", token, who)
		}
		if err != nil && !errors.Is(err, errkind.Denied) {
			t.Errorf("Verify(%q) = %v, want an error of kind Denied", token, err)
		}
		if err != nil && len(token) > 20 && strings.Contains(err.Error(), token) {
			t.Errorf("the error %q has the token", err)
		}
	})
}

// Claims that the issuer signs are foreign, too. What is accepted is within its bounds.
func FuzzClaims(f *testing.F) {
	k := newKey("1")
	v, _ := (&issuer{keys: []jose.JSONWebKey{k.public()}}).verifier(f, func(o *oauth.Options) { o.Claim = "a.b" })
	const valid = `{"iss":"` + issuerURL + `","aud":["` + public + `"],"exp":9000000000,"sub":"anna"`
	f.Add(valid + `,"a":{"b":["hr"]}}`)
	f.Add(valid + `,"a.b":"x y"}`)
	f.Add(valid + `,"nbf":1e99,"iat":-1,"a":[[[[]]]]}`)
	f.Add(`{"exp":null,"aud":{}}`)
	f.Fuzz(func(t *testing.T, claims string) {
		token := k.sign(t, map[string]any{"kid": "1"}, []byte(claims))
		who, err := v.Verify(context.Background(), token, "/mcp")
		if err != nil && !errors.Is(err, errkind.Denied) {
			t.Errorf("Verify(%q) = %v, want an error of kind Denied", claims, err)
		}
		if err == nil && (who.Subject == "" || len(who.Subject) > 255 || !utf8.ValidString(who.Subject) ||
			strings.ContainsAny(who.Subject, "\r\n\x00") || who.Expires.IsZero()) {
			t.Errorf("Verify(%q) = %v", claims, who)
		}
	})
}

// Whatever the issuer serves, no token of others is accepted.
func FuzzIssuer(f *testing.F) {
	k := newKey("1")
	token := k.token(f)
	f.Add(`{"issuer":"`+issuerURL+`","jwks_uri":"https://keys.example/keys"}`,
		`{"keys":[{"kty":"EC","kid":"1","crv":"P-256","x":"AA","y":"AA"}]}`)
	f.Add(`{"issuer":"`+issuerURL+`","jwks_uri":"https:///"}`, `{"keys":[{"kty":"RSA","n":"","e":"","kid":"1"}]}`)
	f.Add(`{"issuer":"`+issuerURL+`","jwks_uri":"https://keys.example/keys"}`,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA"},{"kty":"oct","k":"AA"},{"x5c":["AA"],"kty":"EC"}]}`)
	f.Fuzz(func(t *testing.T, metadata, keys string) {
		i := &issuer{answers: map[string]func() *http.Response{
			metadataPath: func() *http.Response { return answer(200, metadata) },
			keysPath:     func() *http.Response { return answer(200, keys) },
		}}
		v, _ := i.verifier(t)
		if who, err := v.Verify(context.Background(), token, "/mcp"); err == nil ||
			!errors.Is(err, errkind.Denied) && !errors.Is(err, errkind.Unavailable) {
			t.Errorf("Verify() = %v, %v", who, err)
		}
	})
}
