package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/schema"
	"github.com/knowhow-mcp/knowhow/internal/spell"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// JSON-RPC error codes. Those of this program are outside the range
// -32768..-32000, which JSON-RPC and MCP reserve, and end in the corresponding
// HTTP status.
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

// kinds maps the kinds of failures to codes. The first match counts.
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

// An Error adds a code and further members of error.data to a failure.
// Everything else depends on the kind of the wrapped error.
type Error struct {
	Err  error          // determines the kind and the message; must not be nil
	Code string         // data.code, for example "DATASET_NOT_FOUND"; "" means that of the kind
	Data map[string]any // more members of error.data
}

// Error returns the text of the wrapped error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// An ErrorObject is the error member of a JSON-RPC response.
type ErrorObject struct {
	Code    int64          `json:"code"`
	Message string         `json:"message"`
	Data    map[string]any `json:"data,omitempty"`
}

// describe returns the error object for err. An error without a kind becomes
// "internal error"; the caller must log its text.
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
	// data.code already contains the kind, so it is removed from the end of the
	// sentence.
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

// describeRemote adds the details of an upstream failure. NotFound keeps its
// code. Every other kind is a failure of the upstream, also Invalid, because
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

// DescribeError returns the error object for err and the peer of the request
// that ctx belongs to: the error of its response, or _meta.error of a tool's
// result. Jobs use it for failures after the response. An error without a kind
// becomes "internal error"; the caller must log its text.
func DescribeError(ctx context.Context, err error) *ErrorObject {
	return callFrom(ctx).describe(err)
}

// describe returns the error object of a call that failed with err. The call
// may be nil.
func (k *call) describe(err error) *ErrorObject {
	o := describe(err)
	if k == nil || k.method == methodCallTool || o.Code != codeNotFound {
		return o
	}
	if _, own := errors.AsType[*Error](err); !own && k.uri != "" {
		o.Data["uri"] = k.uri
	}
	if k.revision >= statelessRevision {
		o.Code = codeInvalidParams // 2026-07-28 has no code -32002, which earlier revisions have for resources
	}
	return o
}

// kindOf returns the index of err's kind in the table, or -1 if it has none.
func kindOf(err error) int {
	for i, k := range kinds {
		if errors.Is(err, k.kind) {
			return i
		}
	}
	return -1
}

// maxMessage is the maximum length of error.message, in characters. Parts of it
// may come from documents and from other servers.
const maxMessage = 1000

// sentence prepares a text for error.message: one line of limited length
// without invisible characters.
func sentence(text string) string { return sanitize.Cut(sanitize.Line(text), maxMessage, 4*maxMessage) }

// wire returns an error object as an error that the SDK sends unchanged.
func (o *ErrorObject) wire() *jsonrpc.Error {
	e := &jsonrpc.Error{Code: o.Code, Message: o.Message}
	if data, err := json.Marshal(o.Data); err == nil && len(o.Data) > 0 {
		e.Data = data
	}
	return e
}

// newError returns an error of the protocol layer with the given data.
func newError(code int64, message string, data map[string]any) *jsonrpc.Error {
	return (&ErrorObject{Code: code, Message: message, Data: data}).wire()
}

// invalidParams returns an error about params that were not passed to a tool.
func invalidParams(message string, more map[string]any) *jsonrpc.Error {
	data := map[string]any{"code": "INVALID_ARGUMENT", "retryable": false}
	maps.Copy(data, more)
	return newError(codeInvalidParams, message, data)
}

// notInitialized returns the error of a request that was sent before the end of
// the handshake.
func notInitialized(what string) *jsonrpc.Error {
	return newError(codeInvalidRequest, what+" is not allowed before notifications/initialized", map[string]any{
		"code": "NOT_INITIALIZED", "retryable": true, "reason": "notInitialized"})
}

// shuttingDown returns the error of a request that the ending server cannot
// answer.
func shuttingDown() error {
	return fmt.Errorf("the server is shutting down, try again when it is back: %w", errkind.Unavailable)
}

// errUnknownMethod returns the error of a call of an unknown method.
func errUnknownMethod(method string) *jsonrpc.Error {
	return newError(codeMethodNotFound, "there is no method "+spell.Quote(method), nil)
}
