package mcpclient

import (
	"errors"
	"fmt"

	"knowhow/internal/errkind"
)

// A ServerError is the failure of a server to be started, reached or to answer.
// None of its texts holds a value of the server's Env or Headers, or a secret
// that the settings took from a variable of the environment.
type ServerError struct {
	Server string // its id in the settings
	Op     string // what was being done: "connecting", or the method that was called
	Stderr string // the end of what it wrote to stderr, at most 2 KiB, without control characters; "" where there is none
	Kind   error  // errkind.Timeout for a deadline that passed; nil is errkind.Unavailable
	Err    error  // why, never nil
}

// Error says the server, the operation and the reason, then the end of stderr.
func (e *ServerError) Error() string {
	s := fmt.Sprintf("server %q: %s: %v", e.Server, e.Op, e.Err)
	if e.Stderr != "" {
		s += `; its stderr ends with "` + e.Stderr + `"`
	}
	return s
}

// Unwrap returns the kind and the reason.
func (e *ServerError) Unwrap() []error {
	if e.Kind == nil {
		return []error{errkind.Unavailable, e.Err}
	}
	return []error{e.Kind, e.Err}
}

var (
	errDeadline = errors.New("no answer in time")
	errIdle     = errors.New("the connection was not used for a while and was closed")
	errClosed   = errors.New("the program is ending")
	errHalted   = errors.New("the connection has ended")
)

// A fault is what a link says of a failure beyond its text.
type fault struct {
	err     error
	refused bool // the server did not take the request, so that it may be sent again
	over    bool // the session has ended
	final   bool // connecting once more is no use
	legacy  bool // an HTTP answer as of a server that speaks HTTP+SSE only
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// asFault returns the fault in err's chain, an empty one where there is none.
func asFault(err error) fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return *f
	}
	return fault{err: err}
}
