package oauth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/oauth"
)

// bubble is the time in a synctest bubble, which stands still.
var bubble = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func TestClaims(t *testing.T) {
	k := newKey("1")
	at := func(d time.Duration) int64 { return bubble.Add(d).Unix() }
	for name, c := range map[string]struct {
		change change
		want   string
	}{
		"nothing":                      {func(_, _ map[string]any) {}, accepted},
		"another issuer":               {claim("iss", "https://evil.example"), otherIssuer},
		"an issuer with a slash":       {claim("iss", issuerURL+"/"), otherIssuer},
		"no issuer":                    {claim("iss", nil), otherIssuer},
		"another audience":             {claim("aud", "https://other.example/mcp"), audience},
		"a longer audience":            {claim("aud", public+".evil.example"), audience},
		"no audience":                  {claim("aud", nil), audience},
		"an empty audience":            {claim("aud", ""), audience},
		"no audiences":                 {claim("aud", []string{}), audience},
		"one of several audiences":     {claim("aud", []string{"account", public}), accepted},
		"the audience of a parsed URL": {claim("aud", public+"/"), accepted},
		"an audience that is a number": {claim("aud", 1), damaged},
		"a token that never expires":   {claim("exp", nil), "does not say when it expires"},
		"expired now":                  {claim("exp", at(0)), accepted},
		"expired a minute ago":         {claim("exp", at(-time.Minute)), accepted},
		"expired a while ago":          {claim("exp", at(-61*time.Second)), expired},
		"expired in 1970":              {claim("exp", 0), expired},
		"a time that is a text":        {claim("exp", "tomorrow"), damaged},
		"a time out of range":          {claim("exp", 1e300), damaged},
		"valid in a minute":            {claim("nbf", at(time.Minute)), accepted},
		"valid in more than a minute":  {claim("nbf", at(61*time.Second)), early},
		"not before a time too far":    {claim("nbf", 1e18), early},
		"issued in a minute":           {claim("iat", at(time.Minute)), accepted},
		"issued later":                 {claim("iat", at(61*time.Second)), early},
		"no time of issue":             {claim("iat", nil), accepted},
		"no subject":                   {claim("sub", nil), noUser},
		"an empty subject":             {claim("sub", ""), noUser},
		"a long subject":               {claim("sub", strings.Repeat("x", 256)), noUser},
		"the longest subject":          {claim("sub", strings.Repeat("x", 255)), accepted},
		"a subject with lines":         {claim("sub", "anna\nroot"), noUser},
		"an invisible subject":         {claim("sub", "anna\u202e"), noUser},
		"a subject that is a number":   {claim("sub", 7), damaged},
		"at+jwt":                       {header("typ", "at+jwt"), accepted},
		"application/at+jwt":           {header("typ", "application/AT+JWT"), accepted},
		"JWT":                          {header("typ", "JWT"), accepted},
		"jwt":                          {header("typ", "jwt"), accepted},
		"no type":                      {header("typ", nil), accepted},
		"a logout token":               {header("typ", "logout+jwt"), wrongType},
		"an ID token of RFC 9068":      {header("typ", "id+jwt"), wrongType},
		"an empty type":                {header("typ", ""), wrongType},
		"a type that is a number":      {header("typ", 1), wrongType},
		"an extension":                 {header("crit", []string{"exp"}), extension},
		"no extension":                 {header("crit", []string{}), extension},
		"an unencoded payload":         {header("b64", false), extension},
		"a nested type":                {header("cty", "JWT"), accepted},
		"another key":                  {header("kid", "2"), noKey},
		"no key":                       {header("kid", nil), accepted},
		"a key that is a number":       {header("kid", 1), unsigned},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, _ := (&issuer{keys: []jose.JSONWebKey{k.public()}}).verifier(t)
				check(t, v, k.token(t, c.change), "/mcp", c.want)
			})
		})
	}
}

// The identity has the groups of the claim, and ends when the token is no longer accepted.
func TestIdentity(t *testing.T) {
	k := newKey("1")
	i := &issuer{keys: []jose.JSONWebKey{k.public()}}
	for name, c := range map[string]struct {
		claim, value string
		want         []string
	}{
		"a list":              {"groups", `{"groups":["sales","","hr",7,null,{"a":1},"hr"]}`, []string{"hr", "sales"}},
		"a string":            {"scope", `{"scope":" kb:read  kb:write kb:read "}`, []string{"kb:read", "kb:write"}},
		"names with blanks":   {"groups", `{"groups":["Human Resources"]}`, []string{"Human Resources"}},
		"an object":           {"groups", `{"groups":{"hr":true}}`, nil},
		"a path":              {"realm_access.roles", `{"realm_access":{"roles":["hr"]}}`, []string{"hr"}},
		"a name with dots":    {"a.b", `{"a.b":["1"],"a":{"b":["2"]}}`, []string{"1"}},
		"a deep path":         {"a.b.c", `{"a":{"b":{"c":"1"}}}`, []string{"1"}},
		"dots within a path":  {"a.b.c", `{"a":{"b.c":"1"}}`, []string{"1"}},
		"a path to nothing":   {"a.b", `{"a":["b"]}`, nil},
		"a URL":               {"https://x.example/groups", `{"https://x.example/groups":["hr"]}`, []string{"hr"}},
		"null":                {"groups", `{"groups":null}`, nil},
		"nothing":             {"", `{}`, nil},
		"the usual name":      {"", `{"groups":["hr"]}`, []string{"hr"}},
		"another letter case": {"", `{"Groups":["hr"]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, _ := i.verifier(t, func(o *oauth.Options) { o.Claim = c.claim })
				var more map[string]any
				if err := json.Unmarshal([]byte(c.value), &more); err != nil {
					t.Fatal(err)
				}
				got := check(t, v, k.token(t, func(_, claims map[string]any) {
					for name, value := range more {
						claims[name] = value
					}
				}), "/mcp", accepted)
				want := &oauth.Identity{Subject: "anna", Groups: c.want, Expires: time.Now().Add(61 * time.Minute)}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// A token for the MCP server of one label is accepted there only.
func TestAudiences(t *testing.T) {
	k := newKey("1")
	i := &issuer{keys: []jose.JSONWebKey{k.public()}}
	v, _ := i.verifier(t, func(o *oauth.Options) { o.Audience, o.PublicURL = "api://docs", "https://Docs.Example/" })
	paths := []string{"/", "/mcp", "/mcp/hr", "/mcp/hr/x", "/mcp/a b", "/kb/notes"}
	for aud, want := range map[string]string{
		"api://docs":       "111111",
		public:             "111111",
		public + "/":       "111111",
		public + "/mcp":    "111111",
		public + "/mcp/":   "111111",
		public + "/mcp/hr": "001000", public + "/mcp/a%20b": "000010",
		public + "/mcp/hr/": "000000", public + "/mcp/hr/x": "000000", public + "/kb": "000000", "api://docs/": "000000",
		"docs.example": "000000", "HTTPS://docs.example": "000000",
	} {
		for j, path := range paths {
			result := audience
			if want[j] == '1' {
				result = accepted
			}
			t.Run(aud+" at "+path, func(t *testing.T) { check(t, v, k.token(t, claim("aud", aud)), path, result) })
		}
	}
	v, _ = i.verifier(t)
	check(t, v, k.token(t, claim("aud", "api://docs")), "/mcp", audience)
}

// parts returns a token of encoded parts.
func parts(header, payload string, signature []byte) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(header)) + "." + encode([]byte(payload)) + "." + encode(signature)
}

func TestForged(t *testing.T) {
	k := newKey("1")
	private := newRSA()
	r := key{"2", jose.RS256, private}
	i := &issuer{keys: []jose.JSONWebKey{k.public(), r.public()}}
	v, _ := i.verifier(t)
	valid := k.token(t)
	check(t, v, valid, "/mcp", accepted)
	part := strings.Split(valid, ".")
	payload, err := base64.RawURLEncoding.DecodeString(part[1])
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	// hmac signs with a secret that everybody knows.
	hmac := func(secret []byte) string {
		return signWith(t, jose.SigningKey{Algorithm: jose.HS256, Key: secret}, map[string]any{"kid": "2", "typ": "at+jwt"}, payload)
	}
	own := newKey("1")
	embedded, err := json.Marshal(own.public())
	if err != nil {
		t.Fatal(err)
	}
	doubled := k.sign(t, map[string]any{"kid": "1"}, append([]byte(`{"sub":"root",`), payload[1:]...))
	for name, c := range map[string]struct{ token, want string }{
		"nothing":                   {"", unsigned},
		"a token of another kind":   {"kh_0123456789abcdef", unsigned},
		"dots":                      {"..", algorithm},
		"no signature":              {part[0] + "." + part[1] + ".", forged},
		"no part for the signature": {part[0] + "." + part[1], unsigned},
		"more parts":                {valid + "." + part[2], unsigned},
		"JSON": {`{"payload":"` + part[1] + `","protected":"` + part[0] + `","signature":"` + part[2] + `"}`,
			unsigned},
		"blanks":                       {" " + valid, unsigned},
		"a line end":                   {valid + "\n", unsigned},
		"padding":                      {part[0] + "." + part[1] + "==." + part[2], unsigned},
		"alg none":                     {parts(`{"alg":"none","kid":"1"}`, string(payload), nil), algorithm},
		"alg NONE":                     {parts(`{"alg":"NONE","kid":"1"}`, string(payload), nil), algorithm},
		"no alg":                       {parts(`{"kid":"1"}`, string(payload), nil), algorithm},
		"alg in capitals":              {parts(`{"ALG":"ES256","kid":"1"}`, string(payload), nil), algorithm},
		"two algs":                     {parts(`{"alg":"none","alg":"ES256","kid":"1"}`, string(payload), nil), unsigned},
		"the public key as secret":     {hmac(der), algorithm},
		"the PEM as secret":            {hmac(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), algorithm},
		"the modulus as secret":        {hmac(private.N.Bytes()), algorithm},
		"another key of the same name": {newKey("1").token(t), forged},
		"a key of another type":        {key{"2", jose.ES256, own.private}.token(t), noKey},
		"the key in the header":        {own.token(t, header("jwk", json.RawMessage(embedded))), forged},
		"the URL of the key":           {own.token(t, header("jku", "https://evil.example/keys")), forged},
		"another payload": {part[0] + "." + base64.RawURLEncoding.EncodeToString(payload[:len(payload)-1]) + "." + part[2],
			forged},
		"another header":           {parts(`{"alg":"ES256","kid":"1","typ":"JWT"}`, string(payload), nil), forged},
		"a nested token":           {k.sign(t, map[string]any{"cty": "JWT", "kid": "1"}, []byte(valid)), damaged},
		"a payload that is a list": {k.sign(t, map[string]any{"kid": "1"}, []byte("[]")), damaged},
		"a payload that is null":   {k.sign(t, map[string]any{"kid": "1"}, []byte("null")), otherIssuer},
		"an empty payload":         {k.sign(t, map[string]any{"kid": "1"}, nil), damaged},
		"two subjects":             {doubled, damaged},
		"a long token":             {k.token(t, claim("x", strings.Repeat("x", 16<<10))), "too long"},
		"a very long token":        {strings.Repeat(".", 1<<26), "too long"},
		"a deep header":            {parts(strings.Repeat(`{"a":`, 2000), "", nil), unsigned},
	} {
		t.Run(name, func(t *testing.T) { check(t, v, c.token, "/mcp", c.want) })
	}
	// Each character of the signature counts.
	for n := range part[2] {
		changed := []byte(part[2])
		changed[n] = "AB"[(changed[n]&1)^1]
		if string(changed) == part[2] {
			continue
		}
		if _, err := v.Verify(t.Context(), part[0]+"."+part[1]+"."+string(changed), "/mcp"); !errors.Is(err, errkind.Denied) {
			// The last character has bits that mean nothing, which decoders ignore.
			if n != len(part[2])-1 {
				t.Errorf("a token whose signature is changed at %d: %v", n, err)
			}
		}
	}
}

// Every algorithm with a public key is accepted, if the key is of its type.
func TestAlgorithms(t *testing.T) {
	curve := func(c elliptic.Curve) *ecdsa.PrivateKey {
		private, err := ecdsa.GenerateKey(c, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return private
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := newRSA()
	keys := []key{{"r1", "RS256", r}, {"r2", "RS384", r}, {"r3", "RS512", r}, {"p1", "PS256", r}, {"p2", "PS384", r},
		{"p3", "PS512", r}, {"e1", "ES256", curve(elliptic.P256())}, {"e2", "ES384", curve(elliptic.P384())},
		{"e3", "ES512", curve(elliptic.P521())}, {"d", "EdDSA", ed}}
	var published []jose.JSONWebKey
	for _, k := range keys {
		published = append(published, k.public())
	}
	i := &issuer{keys: published}
	v, _ := i.verifier(t)
	for n, k := range keys {
		check(t, v, k.token(t), "/mcp", accepted)
		check(t, v, k.token(t, header("kid", nil)), "/mcp", accepted)
		check(t, v, k.token(t, header("kid", keys[(n+1)%len(keys)].id)), "/mcp", noKey)
	}
	// Without alg in the key, its type decides.
	i.change(func(i *issuer) { i.keys = []jose.JSONWebKey{{Key: r.Public(), KeyID: "r"}} })
	v, _ = i.verifier(t)
	check(t, v, key{"r", "PS384", r}.token(t), "/mcp", accepted)
	check(t, v, key{"r", "EdDSA", ed}.token(t), "/mcp", noKey)
}

// Keys for other purposes, weak ones and secrets are not used, and do not matter for the
// others.
func TestKeySets(t *testing.T) {
	k, other := newKey("1"), newKey("1")
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	raw := func(k key, changes ...change) string {
		data, err := json.Marshal(k.public())
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(data, &members); err != nil {
			t.Fatal(err)
		}
		for _, f := range changes {
			f(members, nil)
		}
		if data, err = json.Marshal(members); err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	many := strings.Repeat(raw(k)+",", 100)
	for name, c := range map[string]struct {
		keys string
		key  key
		want string
	}{
		"the key":                    {raw(k), k, accepted},
		"no purpose":                 {raw(k, header("use", nil), header("alg", nil)), k, accepted},
		"for encryption":             {raw(k, header("use", "enc")), k, noKey},
		"for another algorithm":      {raw(k, header("alg", "ES384")), k, noKey},
		"for verification":           {raw(k, header("key_ops", []string{"verify"})), k, accepted},
		"for other operations":       {raw(k, header("key_ops", []string{"deriveKey"})), k, noKey},
		"for no operation":           {raw(k, header("key_ops", []string{})), k, noKey},
		"a private key":              {raw(k, header("d", "AAAA")), k, noKey},
		"a point that is not on it":  {raw(k, header("x", strings.Repeat("A", 43))), k, noKey},
		"an unknown type":            {`{"kty":"XYZ","kid":"1"},` + raw(k), k, accepted},
		"a secret":                   {`{"kty":"oct","kid":"1","k":"AAAA"},` + raw(k), k, accepted},
		"no objects":                 {`null,1,"x",[],{},` + raw(k), k, accepted},
		"two keys with one name":     {raw(other) + "," + raw(k), k, accepted},
		"two others with one name":   {raw(other) + "," + raw(other), k, forged},
		"a key without a name":       {raw(k, header("kid", nil)), k, noKey},
		"a key and a token without":  {raw(k, header("kid", nil)), key{"", k.alg, k.private}, accepted},
		"no names, and another key":  {raw(other), key{"", k.alg, k.private}, noKey},
		"a weak key":                 {raw(key{"w", jose.RS256, weak}), key{"w", jose.RS256, weak}, noKey},
		"no keys":                    {"", k, noKey},
		"as many keys as allowed":    {strings.TrimSuffix(many, ","), k, accepted},
		"more keys than are allowed": {many + raw(k), k, unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			if c.key.private == weak {
				t.Setenv("GODEBUG", "rsa1024min=0") // signs with it all the same
			}
			i := &issuer{answers: answers(keysPath, 200, `{"keys":[`+c.keys+`]}`)}
			v, _ := i.verifier(t)
			check(t, v, c.key.token(t), "/mcp", c.want)
		})
	}
}

func TestOptions(t *testing.T) {
	long := strings.Repeat("s", 1025)
	for name, c := range map[string]struct {
		change func(*oauth.Options)
		want   string
	}{
		"as they should be":      {func(*oauth.Options) {}, ""},
		"a loopback issuer":      {func(o *oauth.Options) { o.Issuer = "http://127.0.0.1:5556/dex" }, ""},
		"a local issuer":         {func(o *oauth.Options) { o.Issuer = "http://localhost:5556" }, ""},
		"a plain issuer":         {func(o *oauth.Options) { o.Issuer = "http://login.example" }, "want https"},
		"an issuer named so":     {func(o *oauth.Options) { o.Issuer = "http://localhost.evil.example" }, "want https"},
		"no issuer":              {func(o *oauth.Options) { o.Issuer = "" }, "the URL of the issuer"},
		"an issuer with query":   {func(o *oauth.Options) { o.Issuer += "?tenant=1" }, "no query"},
		"a password":             {func(o *oauth.Options) { o.Issuer = "https://u:p@login.example" }, "no user or password"},
		"no public URL":          {func(o *oauth.Options) { o.PublicURL = "" }, "the public URL"},
		"a public path":          {func(o *oauth.Options) { o.PublicURL += "/docs" }, "no path"},
		"a slash":                {func(o *oauth.Options) { o.PublicURL += "/" }, ""},
		"a public name":          {func(o *oauth.Options) { o.PublicURL = "https://bücher.example" }, "ASCII"},
		"scopes":                 {func(o *oauth.Options) { o.Scopes = []string{"openid", "audience:client_id:x"} }, ""},
		"a scope with a blank":   {func(o *oauth.Options) { o.Scopes = []string{"openid groups"} }, "a scope"},
		"a scope with a quote":   {func(o *oauth.Options) { o.Scopes = []string{`"`} }, "a scope"},
		"an empty scope":         {func(o *oauth.Options) { o.Scopes = []string{""} }, "a scope"},
		"a client":               {func(o *oauth.Options) { o.Client = oauth.Client{ID: "c 1", Secret: "s"} }, ""},
		"a secret without ID":    {func(o *oauth.Options) { o.Client.Secret = "s" }, "no ID"},
		"a client in two lines":  {func(o *oauth.Options) { o.Client.ID = "c\n1" }, "printable ASCII"},
		"a long secret":          {func(o *oauth.Options) { o.Client = oauth.Client{ID: "c", Secret: long} }, "at most 1024"},
		"a scope with an accent": {func(o *oauth.Options) { o.Scopes = []string{"é"} }, "a scope"},
	} {
		t.Run(name, func(t *testing.T) {
			o := oauth.Options{Issuer: issuerURL, PublicURL: public}
			c.change(&o)
			v, err := oauth.New(o)
			if v != nil {
				v.Close()
			}
			if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, errkind.Invalid) ||
				!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "u:p")) {
				t.Errorf("New() = %v, want %q", err, c.want)
			}
		})
	}
}

// A verifier that is closed does not keep requests waiting.
func TestClosed(t *testing.T) {
	k := newKey("1")
	v, _ := (&issuer{keys: []jose.JSONWebKey{k.public()}}).verifier(t)
	v.Close()
	check(t, v, k.token(t), "/mcp", unavailable)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := v.Verify(ctx, k.token(t), "/mcp"); err == nil {
		t.Error("a token is verified by a closed verifier")
	}
}
