package invoke

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// A token is what callers must know.
type token struct {
	hash [sha256.Size]byte // of equal length, so that comparing tells nothing
	open bool              // nothing is asked for
}

func newToken(s string) token { return token{hash: sha256.Sum256([]byte(s)), open: s == ""} }

// shown reports whether a request carries the token.
func (t *token) shown(header http.Header) bool {
	if t.open {
		return true
	}
	scheme, given, _ := strings.Cut(header.Get("Authorization"), " ")
	hash := sha256.Sum256([]byte(strings.TrimSpace(given)))
	return subtle.ConstantTimeCompare(hash[:], t.hash[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// admit returns why a request may not pass, or nil. A browser lets every web
// page send requests to this machine, so a loopback listener alone protects
// nothing: the Host must be ours (else a page may have pointed its own name
// here, which is called DNS rebinding), and so must be the page's origin.
func (h *handler) admit(r *http.Request) *failure {
	switch {
	case r.URL.Path != "/" && !h.token.shown(r.Header):
		return &failure{status: http.StatusUnauthorized, text: "unauthorized",
			detail: "this bridge asks for a token, and the request has none or a wrong one: send Authorization: Bearer TOKEN",
			header: "WWW-Authenticate", value: "Bearer"}
	case !loopback(r.Host):
		return &failure{status: http.StatusForbidden, text: "host not allowed",
			detail: "the bridge serves this machine only: reach it as 127.0.0.1 or localhost"}
	case !originAllowed(r.Header):
		return &failure{status: http.StatusForbidden, text: "origin not allowed",
			detail: "the bridge serves no web pages but those of this machine"}
	}
	return nil
}

// originAllowed checks what only browsers send. Where they leave out Origin,
// which they do for simple reads, Sec-Fetch-Site tells pages apart.
func originAllowed(header http.Header) bool {
	origins := header["Origin"]
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || !loopback(u.Host) {
			return false
		}
	}
	return len(origins) > 0 || !strings.EqualFold(header.Get("Sec-Fetch-Site"), "cross-site")
}

// loopback reports whether a host, with or without a port, is this machine.
func loopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
