package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"knowhow/internal/errkind"
	"knowhow/internal/sanitize"
	"knowhow/internal/schema"
	"knowhow/internal/spell"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The codes of JSON-RPC errors. Those of this program lie outside the range
// -32768..-32000 that JSON-RPC and MCP keep for themselves, and end in the HTTP
// status that says the same.
const (
	codeParse          = jsonrpc.CodeParseError
	codeInvalidRequest = jsonrpc.CodeInvalidRequest
	codeMethodNotFound = jsonrpc.CodeMethodNotFound
	codeInvalidParams  = jsonrpc.CodeInvalidParams
	codeInternal       = jsonrpc.CodeInternalError
	codeNotFound       = -32002 // MCP's own, up to 2025-11-25

	codeUnauthorized = -31401
	codeDenied       = -31403
	codeConflict     = -31409
	codeTooLarge     = -31413
	codeBusy         = -31429
	codeCorrupt      = -31500
	codeUnsupported  = -31501
	codeUpstream     = -31502
	codeUnavailable  = -31503
	codeTimeout      = -31504
)

// kinds is the one table from kinds of failure to codes. The first that
// matches counts.
var kinds = []struct {
	kind error
	code int64
	name string
}{
	{errkind.Invalid, codeInvalidParams, "INVALID_ARGUMENT"},
	{errkind.NotFound, codeNotFound, "NOT_FOUND"},
	{errkind.Conflict, codeConflict, "CONFLICT"},
	{errkind.Denied, codeDenied, "DENIED"},
	{errkind.Unauthorized, codeUnauthorized, "UNAUTHORIZED"},
	{errkind.TooLarge, codeTooLarge, "TOO_LARGE"},
	{errkind.Unsupported, codeUnsupported, "UNSUPPORTED"},
	{errkind.Busy, codeBusy, "BUSY"},
	{errkind.Timeout, codeTimeout, "TIMEOUT"},
	{errkind.Unavailable, codeUnavailable, "UNAVAILABLE"},
	{errkind.Corrupt, codeCorrupt, "CORRUPT"},
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

// An ErrorObject is the error member of a JSON-RPC answer.
type ErrorObject struct {
	Code    int64          `json:"code"`
	Message string         `json:"message"`
	Data    map[string]any `json:"data,omitempty"`
}

// describe returns the object that a peer sees of err. An error of no kind becomes
// "internal error": the caller logs its text.
func describe(err error) *ErrorObject {
	o := &ErrorObject{Code: codeInternal, Message: "internal error",
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
	o.Message = sentence(errkind.Message(err))
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
func describeRemote(o *ErrorObject, r *errkind.Remote) {
	o.Message = sentence(r.Error())
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
		o.Code, o.Data["code"] = codeTimeout, "UPSTREAM_TIMEOUT"
	case errors.Is(r, errkind.Unavailable) && (r.Status == http.StatusBadGateway || r.Status == 0):
		o.Code, o.Data["code"] = codeUnavailable, "UPSTREAM_UNREACHABLE"
	default:
		o.Code, o.Data["code"] = codeUpstream, "UPSTREAM_ERROR"
	}
}

// DescribeError returns the error object that describes err to the peer whose
// request ctx belongs to: the error of its answer, or what _meta.error of a tool's
// result holds. Jobs use it for failures that come after the answer. An error of
// no kind becomes "internal error": the caller logs its text.
func DescribeError(ctx context.Context, err error) *ErrorObject {
	return callFrom(ctx).describe(err)
}

// describe returns the error object of a call that failed with err, nil being any
// call.
func (k *call) describe(err error) *ErrorObject {
	o := describe(err)
	if k == nil || k.method == methodCallTool || o.Code != codeNotFound {
		return o
	}
	if _, own := errors.AsType[*Error](err); !own && k.uri != "" {
		o.Data["uri"] = k.uri
	}
	if k.revision >= statelessRevision {
		o.Code = codeInvalidParams // it gave up -32002, which MCP had for resources
	}
	return o
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

// sentence makes a text fit for error.message: one line of bounded length
// without invisible characters.
func sentence(text string) string { return sanitize.Cut(sanitize.Line(text), maxMessage, 4*maxMessage) }

// wire turns an error object into what the SDK sends as it stands.
func (o *ErrorObject) wire() *jsonrpc.Error {
	e := &jsonrpc.Error{Code: o.Code, Message: o.Message}
	if data, err := json.Marshal(o.Data); err == nil && len(o.Data) > 0 {
		e.Data = data
	}
	return e
}

// newError returns an error of the protocol layer itself, with its facts.
func newError(code int64, message string, data map[string]any) *jsonrpc.Error {
	return (&ErrorObject{Code: code, Message: message, Data: data}).wire()
}

// invalidParams returns one about params that no tool has seen yet.
func invalidParams(message string, more map[string]any) *jsonrpc.Error {
	data := map[string]any{"code": "INVALID_ARGUMENT", "retryable": false}
	maps.Copy(data, more)
	return newError(codeInvalidParams, message, data)
}

// notInitialized is the error of a request that came before the handshake was
// over.
func notInitialized(what string) *jsonrpc.Error {
	return newError(codeInvalidRequest, what+" is not allowed before notifications/initialized", map[string]any{
		"code": "NOT_INITIALIZED", "retryable": true, "reason": "notInitialized"})
}

// shuttingDown is the error of a request that came too late, or takes too long.
func shuttingDown() error {
	return fmt.Errorf("the server is shutting down, try again when it is back: %w", errkind.Unavailable)
}

// errUnknownMethod is the error of a call of a method that there is not.
func errUnknownMethod(method string) *jsonrpc.Error {
	return newError(codeMethodNotFound, "there is no method "+spell.Quote(method), nil)
}
