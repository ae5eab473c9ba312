// Package fault gives failures the form in which MCP clients get them: a code, one
// sentence, and facts. The MCP server and its parts make all of their errors with
// it.
package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"unicode"

	"knowhow/internal/errkind"
	"knowhow/internal/schema"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The codes of JSON-RPC errors. Those of this program lie outside the range
// -32768..-32000 that JSON-RPC and MCP keep for themselves, and end in the HTTP
// status that says the same.
const (
	CodeParse          = jsonrpc.CodeParseError
	CodeInvalidRequest = jsonrpc.CodeInvalidRequest
	CodeMethodNotFound = jsonrpc.CodeMethodNotFound
	CodeInvalidParams  = jsonrpc.CodeInvalidParams
	CodeInternal       = jsonrpc.CodeInternalError
	CodeNotFound       = -32002 // MCP's own, up to 2025-11-25

	CodeUnauthorized = -31401
	CodeDenied       = -31403
	CodeConflict     = -31409
	CodeTooLarge     = -31413
	CodeBusy         = -31429
	CodeCorrupt      = -31500
	CodeUnsupported  = -31501
	CodeUpstream     = -31502
	CodeUnavailable  = -31503
	CodeTimeout      = -31504

	// CodeCancelled marks the answer to a cancelled request for the
	// transports, which drop it. It is never sent.
	CodeCancelled = -31999
)

// kinds is the one table from kinds of failure to codes. The first that
// matches counts.
var kinds = []struct {
	kind error
	code int64
	name string
}{
	{errkind.Invalid, CodeInvalidParams, "INVALID_ARGUMENT"},
	{errkind.NotFound, CodeNotFound, "NOT_FOUND"},
	{errkind.Conflict, CodeConflict, "CONFLICT"},
	{errkind.Denied, CodeDenied, "DENIED"},
	{errkind.Unauthorized, CodeUnauthorized, "UNAUTHORIZED"},
	{errkind.TooLarge, CodeTooLarge, "TOO_LARGE"},
	{errkind.Unsupported, CodeUnsupported, "UNSUPPORTED"},
	{errkind.Busy, CodeBusy, "BUSY"},
	{errkind.Timeout, CodeTimeout, "TIMEOUT"},
	{errkind.Unavailable, CodeUnavailable, "UNAVAILABLE"},
	{errkind.Corrupt, CodeCorrupt, "CORRUPT"},
}

// An Error gives a failure a code and facts of its own in error.data. What it
// does not say comes from the kind of the error it wraps.
type Error struct {
	Err  error          // says the kind and the sentence; must not be nil
	Code string         // data.code, for example "DATASET_NOT_FOUND"; "" keeps the kind's
	Data map[string]any // more members of error.data
}

// Error returns the text of the wrapped error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// An Object is the error member of a JSON-RPC answer.
type Object struct {
	Code    int64          `json:"code"`
	Message string         `json:"message"`
	Data    map[string]any `json:"data,omitempty"`
}

// Describe returns the object that a peer sees of err. An error of no kind becomes
// "internal error": the caller logs its text.
func Describe(err error) *Object {
	o := &Object{Code: CodeInternal, Message: "internal error",
		Data: map[string]any{"code": "INTERNAL", "retryable": false}}
	if errors.Is(err, context.DeadlineExceeded) && kindOf(err) < 0 {
		err = fmt.Errorf("the work did not finish in time, try again or ask for less: %w", errkind.Timeout)
	}
	i := kindOf(err)
	if i < 0 {
		return o
	}
	o.Code = kinds[i].code
	// data.code says the kind already; as the end of a sentence it is noise.
	o.Message = Sentence(errkind.Message(err))
	o.Data["code"], o.Data["retryable"] = kinds[i].name, errkind.Retryable(err)
	if arg, ok := errors.AsType[*errkind.Argument](err); ok {
		o.Data["argument"], o.Data["want"] = arg.Name, arg.Want
	}
	if arg, ok := errors.AsType[*schema.Error](err); ok && arg.Want != "" {
		o.Data["argument"], o.Data["want"] = arg.Argument, arg.Want
	}
	if remote, ok := errors.AsType[*errkind.Remote](err); ok {
		describeRemote(o, remote)
	}
	if own, ok := errors.AsType[*Error](err); ok {
		maps.Copy(o.Data, own.Data)
		if own.Code != "" {
			o.Data["code"] = own.Code
		}
	}
	return o
}

// describeRemote adds what an upstream said. That a thing does not exist keeps
// its code; all else is a failure of the upstream, also what it calls invalid:
// the arguments have passed our own checks.
func describeRemote(o *Object, r *errkind.Remote) {
	o.Message = Sentence(r.Error())
	o.Data["endpoint"], o.Data["httpStatus"] = r.Endpoint, r.Status
	if r.Code != "" {
		o.Data["remoteCode"] = r.Code
	}
	if r.Retry > 0 {
		o.Data["retryAfterMs"] = r.Retry.Milliseconds()
	}
	switch {
	case errors.Is(r, errkind.NotFound):
	case errors.Is(r, errkind.Timeout), r.Status == http.StatusGatewayTimeout:
		o.Code, o.Data["code"] = CodeTimeout, "UPSTREAM_TIMEOUT"
	case errors.Is(r, errkind.Unavailable) && (r.Status == http.StatusBadGateway || r.Status == 0):
		o.Code, o.Data["code"] = CodeUnavailable, "UPSTREAM_UNREACHABLE"
	default:
		o.Code, o.Data["code"] = CodeUpstream, "UPSTREAM_ERROR"
	}
}

// kindOf returns the place of err's kind in the table, -1 if it has none.
func kindOf(err error) int {
	for i, k := range kinds {
		if errors.Is(err, k.kind) {
			return i
		}
	}
	return -1
}

// maxMessage bounds error.message, in characters: parts of it may come from
// documents and from other servers.
const maxMessage = 1000

// Sentence makes a text fit for error.message: one line of bounded length
// without control characters.
func Sentence(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if r := []rune(text); len(r) > maxMessage {
		return string(r[:maxMessage-1]) + "…"
	}
	return text
}

// Wire turns an error object into what the SDK sends as it stands.
func (o *Object) Wire() *jsonrpc.Error {
	e := &jsonrpc.Error{Code: o.Code, Message: o.Message}
	if data, err := json.Marshal(o.Data); err == nil && len(o.Data) > 0 {
		e.Data = data
	}
	return e
}

// New returns an error of the protocol layer itself, with its facts.
func New(code int64, message string, data map[string]any) *jsonrpc.Error {
	return (&Object{Code: code, Message: message, Data: data}).Wire()
}

// InvalidParams returns one about params that no tool has seen yet.
func InvalidParams(message string, more map[string]any) *jsonrpc.Error {
	data := map[string]any{"code": "INVALID_ARGUMENT", "retryable": false}
	maps.Copy(data, more)
	return New(CodeInvalidParams, message, data)
}

// NotInitialized is the error of a request that came before the handshake was
// over.
func NotInitialized(what string) *jsonrpc.Error {
	return New(CodeInvalidRequest, what+" is not allowed before notifications/initialized", map[string]any{
		"code": "NOT_INITIALIZED", "retryable": true, "reason": "notInitialized"})
}

// ShuttingDown is the error of a request that came too late, or takes too long.
func ShuttingDown() error {
	return fmt.Errorf("the server is shutting down, try again when it is back: %w", errkind.Unavailable)
}

// Cancelled marks the answer to a cancelled request, which is not sent.
func Cancelled() *jsonrpc.Error { return &jsonrpc.Error{Code: CodeCancelled, Message: "cancelled"} }

// BatchedInitialize is the answer to an initialize in a batch.
func BatchedInitialize() *jsonrpc.Error {
	return New(CodeInvalidRequest, "initialize must not be part of a batch", nil)
}

// NoCursor refuses the cursor of a list that is never cut.
func NoCursor(at string) error {
	return &errkind.Argument{Name: "cursor", Value: at, Want: "none: the list comes at once"}
}

// NoResult is the error of a call whose handler gave nothing that can be sent.
func NoResult() *jsonrpc.Error { return Describe(errors.New("no result")).Wire() }
