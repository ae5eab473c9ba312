package fetch

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

	"knowhow/internal/errkind"
)

// maxEndpoint is the maximum length of the path in an error, in bytes.
const maxEndpoint = 200

// maxRetryAfter is the maximum time to wait that is taken over from a server.
const maxRetryAfter = time.Hour

// remote returns an error about the server of u. A nil kind means Unavailable.
func remote(u *url.URL, status int, kind error, message string) *errkind.Remote {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return &errkind.Remote{Kind: kind, Endpoint: path[:min(len(path), maxEndpoint)], Status: status, Message: message}
}

// Messages for failures without a more specific explanation.
const (
	unreachable = "the document's server cannot be reached or gives no proper answer; try again later"
	brokenOff   = "the document's server ended its answer early or sent damaged data; try again"
)

// callError describes why a request failed. It does not contain the text of err,
// which contains addresses. Without a more specific message, it uses otherwise.
func (f *Fetcher) callError(ctx, call context.Context, u *url.URL, err error, otherwise string) error {
	if e := ctx.Err(); e != nil {
		return e
	}
	var timeout interface{ Timeout() bool }
	if call.Err() != nil || errors.As(err, &timeout) && timeout.Timeout() {
		r := remote(u, http.StatusGatewayTimeout, errkind.Timeout, "the document did not arrive in time; try again")
		r.Reason = TimeReason
		return r
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.restriction()
	}
	r := remote(u, http.StatusBadGateway, nil, otherwise)
	if f.transport.Proxy != nil {
		r.Reason = ProxyReason
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok || errors.Is(err, errNoAddress) {
		r.Message = "the name of the document's host cannot be resolved; check the document's address"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		r.Message = "the certificate of the document's server is not trusted; ask its operator"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		r.Message = "the document's server does not speak TLS on this port; correct the scheme of the document's address"
	}
	return r
}

// statusError describes a response with another status than 200. The body is
// not included.
func statusError(u *url.URL, resp *http.Response) error {
	r := remote(u, resp.StatusCode, nil, "")
	switch s := resp.StatusCode; {
	case s == http.StatusNotFound, s == http.StatusGone:
		r.Kind, r.Message = errkind.NotFound, "the document is no longer at its address"
	case s == http.StatusForbidden:
		r.Kind, r.Message = errkind.Denied, "the document's server forbids content fetch to read it; ask its operator"
	case s == http.StatusUnauthorized, s == http.StatusProxyAuthRequired:
		r.Kind, r.Message = errkind.Unauthorized, "the document's server requires credentials, which content fetch does not send"
	case s == http.StatusTooManyRequests:
		r.Kind, r.Message = errkind.Busy, "the document's server receives too many requests; wait a little and try again"
	case s == http.StatusRequestTimeout, s == http.StatusGatewayTimeout:
		r.Kind, r.Status, r.Message = errkind.Timeout, http.StatusGatewayTimeout, "the document's server did not answer in time; try again"
	case errkind.Retryable(r):
		r.Message = "the document's server failed; try again later"
	case s >= 500:
		r.Message = "the document's server failed; ask its operator"
	default:
		r.Message = fmt.Sprintf("the document's server answered %d instead of the document", s)
	}
	r.Retry = retryAfter(resp.Header)
	return r
}

// retryAfter reads the Retry-After header, in seconds or as a date.
func retryAfter(h http.Header) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.Atoi(v); err == nil {
		return time.Duration(min(max(n, 0), int(maxRetryAfter/time.Second))) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return min(max(time.Until(t), 0), maxRetryAfter)
	}
	return 0
}
