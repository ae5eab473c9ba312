package remote

import (
	"context"
	"fmt"
	"net/http"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpclient"
)

// maxEndpoint is the maximum length of the path in an error, in bytes.
const maxEndpoint = 200

// unreachable is the message for a call without an answer.
const unreachable = "the embedding service cannot be reached; check that it runs and that its address is right"

// fault returns an error about the service. A nil kind means Unavailable.
func (e *Embedder) fault(kind error, status int, message string, reason errkind.Reason) *errkind.Remote {
	path := e.endpoint.EscapedPath()
	return &errkind.Remote{Kind: kind, Endpoint: path[:min(len(path), maxEndpoint)], Status: status, Message: message,
		Reason: reason}
}

// malformed returns the error for an answer with status 200 that cannot be used.
func (e *Embedder) malformed(what string, reason errkind.Reason) *errkind.Remote {
	return e.fault(nil, http.StatusBadGateway, "the embedding service "+what, reason)
}

// callError returns the error of a call without an answer. It does not contain the
// text of err, which contains the address.
func (e *Embedder) callError(ctx, call context.Context, err error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if httpclient.TimedOut(call, err) {
		return e.fault(errkind.Timeout, http.StatusGatewayTimeout, fmt.Sprintf(
			"the embedding service did not answer within %v; allow it more time, or choose a smaller model",
			e.options.Timeout), TimeoutReason)
	}
	return e.fault(nil, http.StatusBadGateway, httpclient.CauseOf(err).Message("the embedding service", unreachable),
		URLReason)
}

// statusError returns the error for another status than 200. The text of the answer
// is not passed on, because it may contain the key.
func (e *Embedder) statusError(resp *http.Response) error {
	model := "the model"
	if e.options.Model != "" {
		model = fmt.Sprintf("the model %.100q", e.options.Model)
	}
	r := e.fault(nil, resp.StatusCode, "", "")
	r.Retry = httpclient.RetryAfter(resp.Header)
	switch s := resp.StatusCode; {
	case 300 <= s && s < 400:
		r.Status, r.Reason = http.StatusBadGateway, URLReason
		r.Kind, r.Message = errkind.Unsupported, fmt.Sprintf("the embedding service answered with a redirect (%d); check its address", s)
	case s == http.StatusUnauthorized, s == http.StatusProxyAuthRequired:
		r.Kind, r.Reason, r.Message = errkind.Unauthorized, KeyReason,
			"the embedding service refuses the key; set a valid one"
		if e.options.Key == "" {
			r.Message = "the embedding service requires a key; set one"
		}
	case s == http.StatusForbidden, s == http.StatusPaymentRequired:
		r.Kind, r.Reason, r.Message = errkind.Denied, KeyReason,
			"the embedding service forbids the call; check what the key permits"
	case s == http.StatusNotFound, s == http.StatusMethodNotAllowed:
		r.Kind, r.Reason = errkind.NotFound, ModelReason
		r.Message = "the embedding service does not know this call or " + model +
			"; check its address, and load the model there"
	case s == http.StatusRequestEntityTooLarge:
		r.Kind, r.Message = errkind.TooLarge, "the embedding service refuses texts of this length; choose a model that reads longer texts"
	case s == http.StatusTooManyRequests:
		r.Kind, r.Message = errkind.Busy, "the embedding service receives too many requests; wait a little and try again"
	case s == http.StatusRequestTimeout, s == http.StatusGatewayTimeout:
		r.Kind, r.Status, r.Reason = errkind.Timeout, http.StatusGatewayTimeout, TimeoutReason
		r.Message = "the embedding service did not answer in time; try again, or choose a smaller model"
	case s >= 500:
		r.Message = "the embedding service failed; see its log"
	case s >= 400:
		r.Kind, r.Reason = errkind.Invalid, ModelReason
		r.Message = "the embedding service refuses the request; check that " + model + " is one for embeddings"
	default:
		r.Status, r.Reason = http.StatusBadGateway, URLReason
		r.Message = fmt.Sprintf("the embedding service answered with an unexpected status (%d); check its address", s)
	}
	return r
}
