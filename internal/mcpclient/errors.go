package mcpclient

import (
	"errors"
	"fmt"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A ServerError reports that a server failed to start, connect or answer. Its
// texts contain no values of the server's Env or Headers, and no secrets that
// the settings took from environment variables.
type ServerError struct {
	Server string // its id in the settings
	Op     string // the operation: "connecting", or the method of the call
	Stderr string // the end of the stderr output, at most 2 KiB, without control characters; "" if there is none
	Kind   error  // errkind.Timeout for an exceeded deadline; nil is errkind.Unavailable
	Err    error  // the reason, never nil
}

// Error returns a message with the server, the operation, the reason and the
// end of stderr.
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

// A fault contains the facts about a link's failure that are not in its text.
type fault struct {
	err     error
	refused bool // the server did not accept the request, so it may be sent again
	over    bool // the session has ended
	final   bool // connecting again cannot succeed
	legacy  bool // an HTTP response like that of a server with HTTP+SSE only
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// asFault returns the fault in err's chain, or an empty one if there is none.
func asFault(err error) fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return *f
	}
	return fault{err: err}
}
