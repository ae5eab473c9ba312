package kbclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpclient"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// callError returns the error of a call without an answer: that of the caller's
// context, a timeout, or a failed connection. It does not contain the text of
// err, which contains the engine's address.
func (c *Client) callError(ctx, call context.Context, endpoint string, err error) error {
	if e := ctx.Err(); e != nil {
		return e
	}
	if httpclient.TimedOut(call, err) {
		return &errkind.Remote{Kind: errkind.Timeout, Endpoint: endpoint, Status: http.StatusGatewayTimeout,
			Reason:  TimeoutReason,
			Message: fmt.Sprintf("the engine did not answer within %v; try again", c.options.Timeout)}
	}
	return &errkind.Remote{Kind: errkind.Unavailable, Endpoint: endpoint, Status: http.StatusBadGateway,
		Reason: AddressReason,
		Message: httpclient.CauseOf(err).Message("the engine",
			"the engine cannot be reached; try again, and check that it runs and that its address is right")}
}

// Limits on what is taken over from an engine's error.
const (
	maxMessage = 500 // characters
	maxCode    = 64  // bytes
)

// refusal returns the error for an answer without success. What the engine says
// about the request itself has the kind that [kb.Base] defines. Everything else
// is a failure of the engine or of something in front of it.
func (q request) refusal(resp *http.Response, answer []byte) error {
	// A wrong address gives the same answer.
	if q.about != "" && resp.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%s does not exist: %w", q.about, errkind.NotFound)
	}
	var v struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(answer, &v) // the zero value means that another server answered
	message := strings.TrimSuffix(sanitize.Short(v.Error.Message, maxMessage, 4*maxMessage), ".")
	if message != "" {
		kind, ok := map[int]error{
			http.StatusBadRequest:            errkind.Invalid,
			http.StatusUnprocessableEntity:   errkind.Invalid,
			http.StatusConflict:              errkind.Conflict,
			http.StatusRequestEntityTooLarge: errkind.TooLarge,
			http.StatusNotImplemented:        errkind.Unsupported,
		}[resp.StatusCode]
		if kind == errkind.Invalid && v.Error.Code == "unsupported" {
			kind = errkind.Unsupported
		}
		if ok {
			return fmt.Errorf("%s: %w", message, kind)
		}
	}
	r := &errkind.Remote{Kind: errkind.Unavailable, Endpoint: q.endpoint(), Status: resp.StatusCode,
		Retry: httpclient.RetryAfter(resp.Header)}
	if isCode(v.Error.Code) {
		r.Code = v.Error.Code
	}
	if message != "" {
		message = ": " + message
	}
	switch s := resp.StatusCode; {
	case s == http.StatusUnauthorized || s == http.StatusProxyAuthRequired:
		r.Kind, r.Reason, r.Message = errkind.Unauthorized, KeyReason,
			"the engine refuses the key; set the key that it requires"
	case s == http.StatusForbidden:
		r.Kind, r.Message = errkind.Denied, "the engine forbids the request"+message+"; ask its operator"
	case s == http.StatusTooManyRequests:
		r.Kind, r.Message = errkind.Busy, "the engine is busy; wait a little and try again"
	case s == http.StatusRequestTimeout || s == http.StatusGatewayTimeout:
		r.Kind, r.Status, r.Reason = errkind.Timeout, http.StatusGatewayTimeout, TimeoutReason
		r.Message = "the engine did not answer in time; try again"
	case s == http.StatusRequestEntityTooLarge:
		r.Kind, r.Message = errkind.TooLarge, "the engine or a proxy in front of it refuses a request of this size; send less"
	case s >= 500:
		r.Message = "the engine failed" + message + "; see its log"
		if errkind.Retryable(r) {
			r.Message = "the engine is not available" + message + "; try again, then see its log"
		}
	case 300 <= s && s < 400, s == http.StatusNotFound, s == http.StatusMethodNotAllowed:
		r.Reason = AddressReason
		r.Message = fmt.Sprintf("the server at the engine's address has no API of an engine (status %d); check the address "+
			"and its path", s)
	default:
		r.Kind, r.Message = errkind.Invalid, fmt.Sprintf("the engine refuses the request (status %d)%s", s, message)
	}
	return r
}

// isCode reports whether s is an error code, and not text.
func isCode(s string) bool {
	return s != "" && len(s) <= maxCode && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
