package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

const (
	maxToken   = 16 << 10 // bytes; issuers cut the list of groups long before
	maxSubject = 255      // bytes (OpenID Connect Core, section 2)

	leeway = time.Minute // by which the clocks of this machine and of the issuer may differ
)

// algorithms are those of the signatures that are accepted: all with public keys. With
// the others, the public key could serve as the secret, or there is no signature.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// Verify verifies an access token that a request to a path carries, and returns its
// user. The path matters for tokens whose audience is the MCP server of one label.
//
// Tokens are JWTs in the compact serialization, whose signature, iss, aud and exp are
// required, and whose nbf and iat are respected. Their typ is at+jwt or JWT, as in RFC
// 9068, or missing: RFC 7519 makes it optional, and Dex, for example, sets none. ID
// tokens, which are not meant for servers, have the ID of a client as their audience,
// so they are refused unless the accepted audience is the ID of a client.
//
// An error is of kind Denied if the token is not valid, and of kind Unavailable while
// the keys of the issuer cannot be read. It has nothing of the token. If ctx ends, the
// error is that of ctx.
func (v *Verifier) Verify(ctx context.Context, token, path string) (*Identity, error) {
	if len(token) > maxToken {
		return nil, invalid("it is too long")
	}
	if strings.ContainsAny(token, "\r\n") { // which encoding/base64 ignores
		return nil, invalid("it is not a signed JWT")
	}
	parsed, err := jwt.ParseSigned(token, algorithms)
	if _, ok := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); ok {
		return nil, invalid("its signature has an algorithm that is not accepted")
	}
	if err != nil || len(parsed.Headers) != 1 {
		return nil, invalid("it is not a signed JWT")
	}
	header := parsed.Headers[0]
	if err := checkHeader(header); err != nil {
		return nil, err
	}
	claims, err := v.verified(ctx, parsed, header)
	if err != nil {
		return nil, err
	}
	return v.identity(claims, path)
}

// invalid returns the error for a token that is not valid.
func invalid(why string) error {
	return fmt.Errorf("verifying the access token: %s: %w", why, errkind.Denied)
}

// checkHeader checks the parts of a header that need no key.
func checkHeader(h jose.Header) error {
	for _, extension := range []jose.HeaderKey{"crit", "b64"} { // RFC 7515, section 4.1.11, and RFC 7797
		if _, ok := h.ExtraHeaders[extension]; ok {
			return invalid("its header has extensions that are not accepted")
		}
	}
	switch typ := h.ExtraHeaders[jose.HeaderType].(type) {
	case nil:
		return nil
	case string:
		switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
		case "at+jwt", "jwt":
			return nil
		}
	}
	return invalid("it is not an access token by its type")
}

// verified returns the claims of a token whose signature is that of a key of the issuer.
func (v *Verifier) verified(ctx context.Context, token *jwt.JSONWebToken, h jose.Header) (*claims, error) {
	begin := time.Now()
	set, err := v.keys.current(ctx)
	if err != nil {
		return nil, err
	}
	claims, err := verifyWith(set, token, h)
	if !errors.Is(err, errUnknownKey) || !set.failed && !set.read.Before(begin) {
		return claims, err
	}
	// The issuer may have a new key.
	if set, err = v.keys.newer(ctx, set); err != nil {
		return nil, err
	}
	claims, err = verifyWith(set, token, h)
	if errors.Is(err, errUnknownKey) && set.failed {
		return nil, errUnavailable // it cannot be known whether the key is one of the issuer
	}
	return claims, err
}

// errNoKey is the error for a token that no known key has signed, and errUnknownKey that
// for one whose key is not known, but may be a new one of the issuer.
var (
	errNoKey      = invalid("it is not signed with a key of the issuer")
	errUnknownKey = fmt.Errorf("%w", errNoKey)
)

// verifyWith returns the claims of a token that is signed with one of some keys. If the
// token names no key of them, or names none and no key has its algorithm, the error is
// errUnknownKey.
func verifyWith(set *keySet, token *jwt.JSONWebToken, h jose.Header) (*claims, error) {
	named, tried := false, false
	for _, key := range set.keys {
		if h.KeyID != "" && key.KeyID != h.KeyID {
			continue
		}
		named = h.KeyID != ""
		if !suits(key, jose.SignatureAlgorithm(h.Algorithm)) {
			continue
		}
		tried = true
		c := new(claims)
		switch err := token.Claims(key.Key, &c.Claims, &c.all); {
		case err == nil:
			return c, nil
		case !errors.Is(err, jose.ErrCryptoFailure):
			return nil, invalid("its claims are damaged")
		}
	}
	switch {
	case named && tried:
		return nil, invalid("its signature is wrong")
	case named || tried:
		return nil, errNoKey
	}
	return nil, errUnknownKey
}

// suits reports whether a key may be used with an algorithm, by its type and by what
// the issuer says.
func suits(key jose.JSONWebKey, alg jose.SignatureAlgorithm) bool {
	if key.Algorithm != "" && key.Algorithm != string(alg) {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return slices.Contains(algorithms[:6], alg)
	case *ecdsa.PublicKey:
		return alg == jose.ES256 && public.Curve == elliptic.P256() ||
			alg == jose.ES384 && public.Curve == elliptic.P384() ||
			alg == jose.ES512 && public.Curve == elliptic.P521()
	case ed25519.PublicKey:
		return alg == jose.EdDSA
	}
	return false
}

// claims are the claims of a token.
type claims struct {
	jwt.Claims
	all map[string]any
}

// identity checks the claims of a token and returns its user.
func (v *Verifier) identity(c *claims, path string) (*Identity, error) {
	expected := jwt.Expected{Issuer: v.issuer, AnyAudience: v.audiences}
	if label, ok := labelOf(path); ok {
		expected.AnyAudience = append(slices.Clip(v.audiences), v.resource(label))
	}
	err := c.ValidateWithLeeway(expected, leeway)
	switch {
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return nil, invalid("it is from another issuer")
	case errors.Is(err, jwt.ErrInvalidAudience):
		return nil, invalid("it is for another audience")
	case errors.Is(err, jwt.ErrExpired):
		return nil, invalid("it has expired")
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return nil, invalid("it is not valid yet")
	case err != nil:
		return nil, invalid("its claims are not accepted")
	case c.Expiry == nil:
		return nil, invalid("it does not say when it expires")
	case c.Subject == "" || len(c.Subject) > maxSubject || sanitize.Line(c.Subject) != c.Subject:
		return nil, invalid("it names no user, or has a name that is not accepted")
	}
	return &Identity{
		Subject: c.Subject,
		Groups:  names(lookUp(c.all, v.claim)),
		Expires: c.Expiry.Time().Add(leeway),
	}, nil
}

// lookUp returns the claim of a name. If there is none, a name with dots is a path
// through objects.
func lookUp(claims map[string]any, name string) any {
	for {
		if value, ok := claims[name]; ok {
			return value
		}
		first, rest, ok := strings.Cut(name, ".")
		if !ok {
			return nil
		}
		inner, ok := claims[first].(map[string]any)
		if !ok {
			return nil
		}
		claims, name = inner, rest
	}
}

// names returns the names that a claim has: a list, or a string with blanks. Other
// values are ignored.
func names(claim any) []string {
	var out []string
	switch claim := claim.(type) {
	case string:
		out = strings.Fields(claim)
	case []any:
		for _, v := range claim {
			if s, ok := v.(string); ok && s != "" {
				out = append(out, s)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
