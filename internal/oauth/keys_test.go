package oauth_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/oauth"
)

// answers returns an answer at one path.
func answers(path string, status int, body string) map[string]func() *http.Response {
	return map[string]func() *http.Response{path: func() *http.Response { return answer(status, body) }}
}

// A new key is found when a token names it, once a minute after the first re-reading.
func TestRotatedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, third := newKey("1"), newKey("2"), newKey("3")
		i := &issuer{keys: []jose.JSONWebKey{first.public()}}
		v, _ := i.verifier(t)
		read := func(want int) {
			t.Helper()
			if got := i.readings(); got != want {
				t.Errorf("the keys were read %d times, want %d", got, want)
			}
		}
		// The first reading is not repeated for a key that it did not bring.
		check(t, v, second.token(t), "/mcp", noKey)
		read(1)
		time.Sleep(time.Second) // virtual
		i.change(func(i *issuer) { i.keys = append(i.keys, second.public()) })
		check(t, v, first.token(t), "/mcp", accepted)
		read(1)
		check(t, v, second.token(t), "/mcp", accepted)
		read(2)
		i.change(func(i *issuer) { i.keys = append(i.keys, third.public()) })
		time.Sleep(59 * time.Second)
		check(t, v, third.token(t), "/mcp", noKey)
		read(2)
		time.Sleep(time.Second)
		check(t, v, third.token(t), "/mcp", accepted)
		check(t, v, first.token(t), "/mcp", accepted)
		read(3)
		// Tokens of nobody do not make more requests.
		for range 1000 {
			check(t, v, newKey("x").token(t), "/mcp", noKey)
			check(t, v, first.token(t), "/mcp", accepted)
		}
		read(3)
	})
}

// Only a key that is not known makes a reading: not a name that is known, with an algorithm
// of another key, and not a missing name if a key has the algorithm.
func TestKnownKeyNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, third := newKey("1"), newKey("2"), newKey("3")
		other := key{"1", jose.EdDSA, ed25519.NewKeyFromSeed(make([]byte, 32))}
		i := &issuer{keys: []jose.JSONWebKey{first.public()}}
		v, _ := i.verifier(t)
		check(t, v, first.token(t), "/mcp", accepted)
		i.change(func(i *issuer) { i.keys = append(i.keys, second.public()) })
		time.Sleep(time.Second) // virtual
		check(t, v, other.token(t), "/mcp", noKey)
		check(t, v, key{"1", second.alg, second.private}.token(t), "/mcp", forged)
		check(t, v, key{"", second.alg, second.private}.token(t), "/mcp", noKey)
		if got := i.readings(); got != 1 {
			t.Errorf("the keys were read %d times, want once", got)
		}
		check(t, v, second.token(t), "/mcp", accepted) // by the reading that may follow at any time
		i.change(func(i *issuer) { i.keys = append(i.keys, third.public()) })
		time.Sleep(time.Minute)
		check(t, v, other.token(t), "/mcp", noKey)
		check(t, v, third.token(t), "/mcp", accepted) // a minute is not used up
		i.change(func(i *issuer) { i.keys = append(i.keys, key{"4", other.alg, other.private}.public()) })
		time.Sleep(time.Minute)
		check(t, v, key{"", other.alg, other.private}.token(t), "/mcp", accepted)
		if got := i.readings(); got != 4 {
			t.Errorf("the keys were read %d times, want 4", got)
		}
	})
}

// A new key that has no name, as the one before, is known when the keys are old.
func TestRotatedKeyWithoutName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newKey(""), newKey("")
		i := &issuer{keys: []jose.JSONWebKey{first.public()}}
		v, _ := i.verifier(t)
		check(t, v, first.token(t), "/mcp", accepted)
		i.change(func(i *issuer) { i.keys = []jose.JSONWebKey{second.public()} })
		time.Sleep(time.Hour - time.Second) // virtual
		check(t, v, second.token(t), "/mcp", noKey)
		time.Sleep(time.Second)
		check(t, v, second.token(t), "/mcp", accepted)
		check(t, v, first.token(t), "/mcp", noKey)
	})
}

// A key that the issuer has removed is trusted for an hour at most, also after a long
// time without requests.
func TestRemovedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newKey("1"), newKey("2")
		i := &issuer{keys: []jose.JSONWebKey{first.public()}}
		v, _ := i.verifier(t)
		check(t, v, first.token(t), "/mcp", accepted)
		i.change(func(i *issuer) { i.keys = []jose.JSONWebKey{second.public()} })
		time.Sleep(time.Hour - time.Second) // virtual
		check(t, v, first.token(t), "/mcp", accepted)
		time.Sleep(time.Second)
		check(t, v, first.token(t), "/mcp", noKey)
		i.change(func(i *issuer) { i.keys = []jose.JSONWebKey{} })
		time.Sleep(100 * time.Hour)
		check(t, v, second.token(t), "/mcp", noKey)
	})
}

// Known keys stay usable while the issuer is down, and its requests are few. A key that
// is not known cannot be checked meanwhile.
func TestIssuerDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newKey("1"), newKey("2")
		i := &issuer{keys: []jose.JSONWebKey{first.public()}, down: true}
		v, log := i.verifier(t)
		for range 100 {
			check(t, v, first.token(t), "/mcp", unavailable)
		}
		if len(i.asked) != 3 || !strings.Contains(log.String(), "connection refused") {
			t.Errorf("the issuer was asked for %v, and the log is %s", i.asked, log)
		}
		i.change(func(i *issuer) { i.down = false })
		check(t, v, first.token(t), "/mcp", unavailable)
		time.Sleep(3 * time.Second) // virtual
		check(t, v, first.token(t), "/mcp", accepted)

		i.change(func(i *issuer) { i.down, i.keys, i.asked = true, []jose.JSONWebKey{second.public()}, nil })
		time.Sleep(24 * time.Hour)
		for range 100 {
			check(t, v, first.token(t), "/mcp", accepted)
			check(t, v, second.token(t), "/mcp", unavailable)
			check(t, v, first.token(t, claim("exp", 1)), "/mcp", expired)
		}
		if len(i.asked) != 3 {
			t.Errorf("the issuer was asked for %v", i.asked)
		}
		i.change(func(i *issuer) { i.down = false })
		time.Sleep(time.Minute)
		check(t, v, second.token(t), "/mcp", accepted)
		check(t, v, first.token(t), "/mcp", noKey)
		if strings.Contains(log.String(), second.token(t)[:20]) {
			t.Error("the log has a part of a token")
		}
	})
}

// Whatever else the issuer serves, tokens are not accepted, and the log says why.
func TestUnreadable(t *testing.T) {
	const meta = `{"issuer":"` + issuerURL + `","jwks_uri":"`
	endless := func() *http.Response {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(zeros{})}
	}
	moved := func() *http.Response {
		r := answer(302, "")
		r.Header.Set("Location", "https://evil.example/keys")
		return r
	}
	for name, c := range map[string]struct {
		answers map[string]func() *http.Response
		reason  string
	}{
		"no metadata": {answers(metadataPath, 404, ""), "the status is 404"},
		"broken":      {answers(metadataPath, 500, ""), "the status is 500"},
		"a page":      {answers(metadataPath, 200, "<!DOCTYPE html><p>Sign in"), "the metadata is not JSON"},
		"a list":      {answers(metadataPath, 200, "[]"), "the metadata is not JSON"},
		"nothing":     {answers(metadataPath, 200, ""), "the metadata is not JSON"},
		"another issuer": {answers(metadataPath, 200, `{"issuer":"https://evil.example"}`),
			`issuer \"https://evil.example\"`},
		"an issuer with a slash": {answers(metadataPath, 200, `{"issuer":"`+issuerURL+`/"}`), "acme/"},
		"no issuer": {answers(metadataPath, 200, `{"jwks_uri":"https://keys.example/keys"}`),
			"that of the issuer"},
		"no keys": {answers(metadataPath, 200, `{"issuer":"`+issuerURL+`"}`), "no secure URL of a key set"},
		"keys without TLS": {answers(metadataPath, 200, meta+`http://keys.example/keys"}`),
			"no secure URL of a key set"},
		"keys of this machine": {answers(metadataPath, 200, meta+`http://127.0.0.1/keys"}`),
			"no secure URL of a key set"},
		"keys of a file": {answers(metadataPath, 200, meta+`file:///etc/passwd"}`), "no secure URL of a key set"},
		"keys with a password": {answers(metadataPath, 200, meta+`https://u:p@keys.example/keys"}`),
			"no secure URL of a key set"},
		"metadata elsewhere":        {map[string]func() *http.Response{metadataPath: moved}, "the status is 302"},
		"endless metadata":          {map[string]func() *http.Response{metadataPath: endless}, "more than 524288 bytes"},
		"a page in place of keys":   {answers(keysPath, 200, "<html>"), "not a key set"},
		"null in place of keys":     {answers(keysPath, 200, "null"), "not a key set"},
		"no list of keys":           {answers(keysPath, 200, "{}"), "not a key set"},
		"an object as list of keys": {answers(keysPath, 200, `{"keys":{}}`), "not a key set"},
		"keys not found":            {answers(keysPath, 404, `{"keys":[]}`), "the status is 404"},
		"keys elsewhere":            {map[string]func() *http.Response{keysPath: moved}, "the status is 302"},
		"endless keys":              {map[string]func() *http.Response{keysPath: endless}, "more than 524288 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKey("1")
			v, log := (&issuer{keys: []jose.JSONWebKey{k.public()}, answers: c.answers}).verifier(t)
			check(t, v, k.token(t), "/mcp", unavailable)
			if got := log.String(); !strings.Contains(got, c.reason) || strings.Contains(got, "u:p") {
				t.Errorf("the log is %s, want %s", got, c.reason)
			}
		})
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// The metadata is looked for where the MCP specification says, and used from the first
// place that has that of the issuer.
func TestDiscovery(t *testing.T) {
	k := newKey("1")
	for name, c := range map[string]struct {
		issuer string
		at     string
		want   []string
	}{
		"RFC 8414": {"https://login.example", "/.well-known/oauth-authorization-server",
			[]string{"/.well-known/oauth-authorization-server", keysPath}},
		"OpenID": {"https://login.example/", "/.well-known/openid-configuration",
			[]string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", keysPath}},
		"RFC 8414 with a path": {issuerURL, "/.well-known/oauth-authorization-server/realms/acme",
			[]string{"/.well-known/oauth-authorization-server/realms/acme", keysPath}},
		"OpenID with a path within": {issuerURL + "/", "/.well-known/openid-configuration/realms/acme",
			[]string{"/.well-known/oauth-authorization-server/realms/acme",
				"/.well-known/openid-configuration/realms/acme", keysPath}},
		"OpenID with a path before": {issuerURL, metadataPath,
			[]string{"/.well-known/oauth-authorization-server/realms/acme",
				"/.well-known/openid-configuration/realms/acme", metadataPath, keysPath}},
	} {
		t.Run(name, func(t *testing.T) {
			i := &issuer{keys: []jose.JSONWebKey{k.public()}, answers: answers(metadataPath, 404, "")}
			i.answers[c.at] = func() *http.Response {
				return answer(200, `{"issuer":"`+c.issuer+`","jwks_uri":"https://keys.example/keys"}`)
			}
			v, _ := i.verifier(t, func(o *oauth.Options) { o.Issuer = c.issuer })
			check(t, v, k.token(t, claim("iss", c.issuer)), "/mcp", accepted)
			if diff := cmp.Diff(c.want, i.asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Requests at the same time cause one reading.
func TestStampede(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, second := newKey("1"), newKey("2")
		release := make(chan struct{})
		i := &issuer{keys: []jose.JSONWebKey{k.public(), second.public()}}
		wait := func() *http.Response { <-release; return answer(404, "") }
		i.answers = map[string]func() *http.Response{"/.well-known/oauth-authorization-server/realms/acme": wait}
		v, _ := i.verifier(t)
		token := k.token(t)
		var group sync.WaitGroup
		for range 1000 {
			group.Go(func() { check(t, v, token, "/mcp", accepted) })
		}
		synctest.Wait()
		close(release)
		group.Wait()
		if got := i.readings(); got != 1 {
			t.Errorf("the keys were read %d times, want once", got)
		}
		// Unknown names at the same time cause one more.
		time.Sleep(time.Second) // virtual
		for range 1000 {
			group.Go(func() { check(t, v, newKey("x").token(t), "/mcp", noKey) })
		}
		group.Wait()
		if got := i.readings(); got != 2 {
			t.Errorf("the keys were read %d times, want twice", got)
		}
	})
}

// A request that waits for a slow issuer ends with its context, and the reading with its
// time. Known keys are not waited for.
func TestSlowIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKey("1")
		i := &issuer{keys: []jose.JSONWebKey{k.public()}, slow: true}
		v, log := i.verifier(t)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := v.Verify(ctx, k.token(t), "/mcp"); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(start) != time.Second {
			t.Errorf("Verify() = %v after %v, want that of its context after a second", err, time.Since(start))
		}
		check(t, v, k.token(t), "/mcp", unavailable)
		if took := time.Since(start); took != 15*time.Second || !strings.Contains(log.String(), "no answer in time") {
			t.Errorf("a reading took %v, and the log is %s", took, log)
		}
		i.change(func(i *issuer) { i.slow = false })
		time.Sleep(3 * time.Second) // virtual
		check(t, v, k.token(t), "/mcp", accepted)
		i.change(func(i *issuer) { i.slow = true })
		time.Sleep(time.Second)
		start = time.Now()
		var group sync.WaitGroup
		group.Go(func() { check(t, v, newKey("x").token(t), "/mcp", unavailable) })
		synctest.Wait()
		check(t, v, k.token(t), "/mcp", accepted)
		if took := time.Since(start); took != 0 {
			t.Errorf("a token with a known key was verified after %v", took)
		}
		group.Wait()
		// After an hour, the keys are waited for, but not again while the issuer is slow.
		i.change(func(i *issuer) { i.slow = false })
		time.Sleep(time.Hour)
		check(t, v, k.token(t), "/mcp", accepted)
		synctest.Wait()
		i.change(func(i *issuer) { i.slow = true })
		time.Sleep(time.Hour)
		for _, want := range []time.Duration{15 * time.Second, 0, 0} {
			start = time.Now()
			check(t, v, k.token(t), "/mcp", accepted)
			if took := time.Since(start); took != want {
				t.Errorf("a token with an old key was verified after %v, want %v", took, want)
			}
			time.Sleep(2 * time.Minute)
		}
	})
}
