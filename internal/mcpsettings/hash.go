package mcpsettings

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// hash returns the hash of servers that are sorted by ID and not expanded; see
// [Settings]. Values that may be secrets are masked here.
func hash(servers []Server) string {
	var all []Server
	for _, s := range servers {
		c := Server{ID: s.ID, Disabled: s.Disabled}
		if !s.Disabled {
			c = s
			c.URL, c.Args = withoutSecrets(s.URL), publicArgs(s.Args)
			c.Env, c.Headers = publicTable(s.Env), publicTable(s.Headers)
			c.Include, c.Exclude = slices.Sorted(slices.Values(s.Include)), slices.Sorted(slices.Values(s.Exclude))
		}
		all = append(all, c)
	}
	h := sha256.New()
	fmt.Fprintln(h, "mcp settings 2")
	// Strings, numbers and maps of strings: encoding cannot fail.
	_ = json.NewEncoder(h).Encode(all)
	return hex.EncodeToString(h.Sum(nil))
}

// isSecret reports whether a name looks like that of a secret.
func isSecret(name string) bool {
	name = strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
	return slices.ContainsFunc([]string{"token", "secret", "passw", "authorization", "apikey", "accesskey",
		"privatekey", "cookie", "credential", "pat"},
		func(word string) bool {
			return strings.Contains(name, word) && (word != "pat" || strings.HasSuffix(name, word))
		})
}

// public returns only the placeholders in a text, without their defaults.
func public(s string) string {
	var b strings.Builder
	b.WriteString("*")
	for _, p := range pieces(s, true) {
		if p.name != "" {
			b.WriteString("${" + p.name + "}")
		}
	}
	return b.String()
}

// publicTable returns a table without secret values.
func publicTable(table map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range table {
		if isSecret(k) {
			v = public(v)
		} else {
			v = withoutSecrets(v)
		}
		out[k] = v
	}
	return out
}

// publicArgs returns arguments without secrets: --token=X, --api-key X,
// Authorization: X.
func publicArgs(args []string) []string {
	out := []string{}
	for i, a := range args {
		name, value, ok := cutName(a)
		switch {
		case ok && isSecret(name):
			a = name + "=" + public(value)
		case i > 0 && strings.HasPrefix(args[i-1], "-") && isSecret(args[i-1]) && !strings.ContainsAny(args[i-1], "=:"):
			a = public(a)
		default:
			a = withoutSecrets(a)
		}
		out = append(out, a)
	}
	return out
}

// cutName splits NAME=VALUE and NAME: VALUE.
func cutName(s string) (name, value string, ok bool) {
	i := strings.IndexAny(s, "=: ")
	if i <= 0 || s[i] == ' ' {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

// withoutSecrets returns a URL without its credentials and secret parameters,
// and any other text unchanged.
func withoutSecrets(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return s
	}
	address, query, hasQuery := strings.Cut(rest, "?")
	host, path, hasPath := strings.Cut(address, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = public(host[:at]) + host[at:]
	}
	s = scheme + "://" + host
	if hasPath {
		s += "/" + path
	}
	if !hasQuery {
		return s
	}
	params := strings.Split(query, "&")
	for i, p := range params {
		if name, value, ok := strings.Cut(p, "="); ok && (isSecret(name) || strings.EqualFold(name, "key")) {
			params[i] = name + "=" + public(value)
		}
	}
	return s + "?" + strings.Join(params, "&")
}
