package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpclient"
)

// maxEndpoint is the maximum length of the path in an error, in bytes.
const maxEndpoint = 200

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
	if httpclient.TimedOut(call, err) {
		r := remote(u, http.StatusGatewayTimeout, errkind.Timeout, "the document did not arrive in time; try again")
		r.Reason = TimeReason
		return r
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.restriction()
	}
	cause := httpclient.CauseOf(err)
	if errors.Is(err, errNoAddress) {
		cause = httpclient.NoHost
	}
	r := remote(u, http.StatusBadGateway, nil, cause.Message("the document's server", otherwise))
	if f.transport.Proxy != nil {
		r.Reason = ProxyReason
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
		r.Kind, r.Message = errkind.Unauthorized,
			"the document's server requires credentials, which content fetch does not send"
	case s == http.StatusTooManyRequests:
		r.Kind, r.Message = errkind.Busy, "the document's server receives too many requests; wait a little and try again"
	case s == http.StatusRequestTimeout, s == http.StatusGatewayTimeout:
		r.Kind, r.Status, r.Message = errkind.Timeout, http.StatusGatewayTimeout,
			"the document's server did not answer in time; try again"
	case errkind.Retryable(r):
		r.Message = "the document's server failed; try again later"
	case s >= 500:
		r.Message = "the document's server failed; ask its operator"
	default:
		r.Message = fmt.Sprintf("the document's server answered %d instead of the document", s)
	}
	r.Retry = httpclient.RetryAfter(resp.Header)
	return r
}
