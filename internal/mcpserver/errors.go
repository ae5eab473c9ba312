package mcpserver

import (
	"context"

	"knowhow/internal/mcpserver/fault"
)

// An Error gives a failure a code and facts of its own in error.data. What it
// does not say comes from the kind of the error it wraps.
type Error = fault.Error

// An ErrorObject is the error member of a JSON-RPC answer.
type ErrorObject = fault.Object

// DescribeError returns the object that a peer would see if the handler of the
// request that ctx belongs to had returned err. Jobs use it for failures that
// come after the answer. An error of no kind becomes "internal error": the
// caller logs its text.
func DescribeError(ctx context.Context, err error) *ErrorObject {
	return fault.Describe(err, RevisionFrom(ctx))
}
