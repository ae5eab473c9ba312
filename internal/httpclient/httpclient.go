// Package httpclient has what the clients of HTTP services have in common: checks
// of their addresses and keys, a client that follows no redirects, and what
// failed calls and the header Retry-After mean.
//
// Nothing in it returns the address of a service, which may contain a password or
// the name of a host that a caller must not learn.
package httpclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// New returns a client that follows no redirects: it returns the response that
// redirects. A redirect would send a key and texts to another address. A nil
// transport is that of [NewTransport] for 16 connections.
func New(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = NewTransport(16)
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// NewTransport returns a transport for one service that uses the proxy of the
// environment. It keeps that many idle connections.
func NewTransport(idle int) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   idle,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// ParseURL returns the address of a service, named what in errors: an absolute
// http or https URL without a user and without a fragment. Errors are of kind
// Invalid.
func ParseURL(what, s string) (*url.URL, error) {
	u, err := url.Parse(s)
	want := ""
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Opaque != "":
		want = "an absolute http or https URL such as http://localhost:8080"
	case u.User != nil:
		want = "no user or password in it; set the key or token instead"
	case u.Fragment != "":
		want = "no fragment in it"
	default:
		return u, nil
	}
	return nil, fmt.Errorf("reading %s: want %s: %w", what, want, errkind.Invalid)
}

// ParseBaseURL is ParseURL for a URL to which the paths of an API are added: it
// has no query.
func ParseBaseURL(what, s string) (*url.URL, error) {
	u, err := ParseURL(what, s)
	if err == nil && (u.RawQuery != "" || u.ForceQuery) {
		return nil, fmt.Errorf("reading %s: want no query in it: %w", what, errkind.Invalid)
	}
	return u, err
}

// maxKey is the maximum length of a key, in bytes. Many servers accept header
// lines of up to 8 KB.
const maxKey = 4096

// ValidKey reports whether a key can be sent in a header: it consists of printable
// ASCII characters without blanks, at most 4096. "" is valid.
func ValidKey(key string) bool {
	return len(key) <= maxKey && !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
}

// CheckKey returns an error of kind Invalid if a key, named what in the error, is
// not valid.
func CheckKey(what, key string) error {
	if !ValidKey(key) {
		return fmt.Errorf("reading %s: want printable ASCII without blanks, at most %d characters: %w", what, maxKey,
			errkind.Invalid)
	}
	return nil
}

// TimedOut reports whether a call failed with err because its time was over. call
// is the context of the call.
func TimedOut(call context.Context, err error) bool {
	var timeout interface{ Timeout() bool }
	return call.Err() != nil || errors.As(err, &timeout) && timeout.Timeout()
}

// A Cause is why a call got no answer.
type Cause int

// The causes that an error shows.
const (
	Unknown    Cause = iota
	NoHost           // the name of the host cannot be resolved
	NotTrusted       // the certificate is not trusted
	NoTLS            // the server does not speak TLS, or does so where it is not expected
)

// CauseOf returns the cause of an error of [http.Client.Do].
func CauseOf(err error) Cause {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return NoHost
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return NotTrusted
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return NoTLS
	}
	return Unknown
}

// Message returns the message for a call to a server that got no answer, such as
// "the engine": the cause and what to do. If the cause is unknown, it returns
// otherwise.
func (c Cause) Message(server, otherwise string) string {
	switch c {
	case NoHost:
		return server + " cannot be reached, because its host name cannot be resolved; check its address"
	case NotTrusted:
		return server + " cannot be reached, because its certificate is not trusted; trust the authority of the certificate, or ask the operator"
	case NoTLS:
		return server + " cannot be reached, because it does not speak TLS on this port; check the scheme of its address"
	}
	return otherwise
}

// maxRetryAfter is the maximum time to wait that is taken over from a server.
const maxRetryAfter = time.Hour

// RetryAfter returns how long to wait by the header Retry-After, which has seconds
// or a date: at most an hour, and 0 if the header is missing or not valid.
func RetryAfter(h http.Header) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		return time.Duration(min(max(n, 0), int64(maxRetryAfter/time.Second))) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return min(max(time.Until(t), 0), maxRetryAfter)
	}
	return 0
}
