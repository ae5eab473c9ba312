package mcpserver

import (
	"context"
	"errors"

	"knowhow/internal/mcpserver/fault"
)

// An Error gives a failure a code and facts of its own in error.data. What it
// does not say comes from the kind of the error it wraps.
type Error = fault.Error

// An ErrorObject is the error member of a JSON-RPC answer.
type ErrorObject = fault.Object

// DescribeError returns the error object that describes err to the peer whose
// request ctx belongs to: the error of its answer, or what _meta.error of a tool's
// result holds. Jobs use it for failures that come after the answer. An error of no kind becomes "internal error": the
// caller logs its text.
func DescribeError(ctx context.Context, err error) *ErrorObject {
	return callFrom(ctx).describe(err)
}

// describe returns the error object of a call that failed with err, nil being any
// call.
func (c *call) describe(err error) *fault.Object {
	o := fault.Describe(err)
	if c == nil || c.method == methodCallTool || o.Code != fault.CodeNotFound {
		return o
	}
	if _, own := errors.AsType[*Error](err); !own && c.uri != "" {
		o.Data["uri"] = c.uri
	}
	if c.revision >= statelessRevision {
		o.Code = fault.CodeInvalidParams // it gave up -32002, which MCP had for resources
	}
	return o
}
