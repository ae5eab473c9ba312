package fess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/httpclient"
)

// Options that an error can be due to; see [errkind.ReasonOf].
const (
	AddressReason errkind.Reason = "fess: BaseURL"
	TokenReason   errkind.Reason = "fess: AccessToken"
	CAReason      errkind.Reason = "fess: CAFile"
)

// transportError returns the error for a call without an answer. It does not
// contain the text of err, which contains the server's address.
func transportError(path string, err error) error {
	cause := httpclient.CauseOf(err)
	r := &errkind.Remote{Kind: errkind.Unavailable, Endpoint: path, Status: http.StatusBadGateway,
		Reason: AddressReason,
		Message: cause.Message("the Fess server",
			"the Fess server cannot be reached; check that it runs and that its address is right")}
	if cause == httpclient.NotTrusted {
		r.Reason = CAReason
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		r.Message, r.Reason = "the Fess server ended its answer early; try again, then see its log", ""
	}
	return r
}

// noJSON returns the error for an answer that no Fess API sends.
func noJSON(a *answer) error {
	r := &errkind.Remote{Kind: errkind.Unavailable, Endpoint: a.path, Status: a.status,
		Retry: httpclient.RetryAfter(a.header)}
	switch s := a.status; {
	case 300 <= s && s < 400:
		r.Status = http.StatusBadGateway
		r.Reason = AddressReason
		r.Message = fmt.Sprintf("the Fess server answered with a redirect (%d): check that its API is enabled (v1 is "+
			"in Fess 14.8 to 15.6 "+
			"and in the plugin fess-webapp-v1-api, v2 in Fess 15.7 and later), and check the path of its address", s)
	case s == http.StatusBadRequest:
		// Tomcat sends this answer if a request line is longer than 8 KB.
		r.Kind, r.Message = errkind.Invalid, "the Fess server could not read the request; make the query shorter"
	case s == http.StatusUnauthorized || s == http.StatusProxyAuthRequired:
		r.Kind, r.Message = errkind.Unauthorized,
			"something in front of the Fess server requires credentials; ask its operator"
	case s == http.StatusForbidden:
		r.Kind, r.Message = errkind.Denied,
			"something in front of the Fess server forbids the request; ask its operator"
	case s == http.StatusNotFound || s == http.StatusMethodNotAllowed:
		r.Kind, r.Message, r.Reason = errkind.Unsupported,
			"there is no Fess server at this address; check the path of its address", AddressReason
	case s == http.StatusTooManyRequests:
		r.Kind, r.Message = errkind.Busy, "the Fess server receives too many requests; wait a little and try again"
	case s == http.StatusGatewayTimeout || s == http.StatusRequestTimeout:
		r.Kind, r.Status, r.Message = errkind.Timeout, http.StatusGatewayTimeout,
			"a proxy in front of the Fess server got no answer in time; try again"
	case s >= 500:
		r.Message = "the Fess server or a proxy in front of it failed; " + afterFailure(r)
	default:
		r.Status = http.StatusBadGateway
		r.Message, r.Reason = "the Fess server answered with something other than JSON: check that its API is "+
			"enabled and that its address is right", AddressReason
	}
	return r
}

// refusal returns the error for a JSON answer without success. The message of
// the answer is not passed on: it may contain a stack trace (Fess 15.4,
// api.json.response.exception.included) or the query in the language of the
// engine (Fess 15.7).
func (c *Client) refusal(ctx context.Context, a *answer) error {
	f := readFault(a.body)
	r := &errkind.Remote{Kind: errkind.Unavailable, Endpoint: a.path, Status: a.status, Code: f.code,
		Retry: httpclient.RetryAfter(a.header)}
	switch s := a.status; {
	case s == http.StatusBadRequest && (f.message == "Unsupported operation." || a.path == paths[popularCall][v2]):
		r.Kind, r.Message = errkind.Unsupported, "this function is disabled on the Fess server; ask its operator"
	case s == http.StatusBadRequest && f.message == "Referer is invalid.":
		r.Kind, r.Message = errkind.Denied,
			"the Fess server accepts requests of certain pages only; clear its api.search.accept.referers"
	case s == http.StatusBadRequest && a.is(documentsCall):
		r.Kind, r.Message = errkind.Invalid,
			"the Fess server cannot understand the query; check its quotes, operators and sort order"
	case s == http.StatusUnauthorized:
		c.badToken(r, "the Fess server refuses the access token")
	case s == http.StatusForbidden:
		r.Kind, r.Message = errkind.Denied, "the Fess server forbids the request; ask its operator"
	case s == http.StatusNotFound:
		r.Kind, r.Message, r.Reason = errkind.Unsupported,
			"the Fess server does not know this call; check its version and the path of its address", AddressReason
	case s == http.StatusTooManyRequests:
		r.Kind, r.Message = errkind.Busy, "the Fess server is busy; wait a little and try again"
	case s == http.StatusGatewayTimeout || s == http.StatusRequestTimeout:
		r.Kind, r.Status, r.Message = errkind.Timeout, http.StatusGatewayTimeout,
			"the Fess server did not answer in time; try again"
	case s == http.StatusInternalServerError && a.is(healthCall):
		r.Message = "the Fess server's search engine does not answer; see the server's log"
	case s == http.StatusInternalServerError && c.refusedToken(ctx, a):
		c.badToken(r, "the Fess server seems to refuse the access token")
	case s >= 500:
		r.Message = "the Fess server failed; " + afterFailure(r)
	case s >= 400:
		r.Kind, r.Message = errkind.Invalid, "the Fess server refuses the request"
	default:
		r.Status = http.StatusBadGateway
		r.Message = fmt.Sprintf("the Fess server answered with an unexpected status (%d): check that its address is "+
			"right", s)
		r.Reason = AddressReason
	}
	return r
}

// afterFailure returns the advice after a server's failure. It suggests trying
// again only if that may help.
func afterFailure(r *errkind.Remote) string {
	if errkind.Retryable(r) {
		return "try again, then see its log"
	}
	return "see its log"
}

// badToken makes r an error about the access token, which either the operator
// or the caller can correct.
func (c *Client) badToken(r *errkind.Remote, message string) {
	r.Kind, r.Message, r.Reason = errkind.Unauthorized, message+"; set a valid one", TokenReason
	if c.passThrough {
		r.Message, r.Reason = message+"; send a valid one in the header X-Fess-Token", ""
	}
}

// A fault is the content of the answer to a refused request.
type fault struct{ code, message string }

// maxCode is the maximum length of Fess's error codes, in bytes: UUIDs in API
// v1, names such as invalid_request in v2. Longer text is not a code.
const maxCode = 64

// readFault reads as much as possible of an answer with status 400 or above.
func readFault(body []byte) fault {
	code, message := wire.ReadFault(body)
	if !isName(code, maxCode, "_-") {
		code = ""
	}
	return fault{code, message}
}
