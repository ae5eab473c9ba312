// Package errkind defines the kinds of errors that packages return to each
// other.
//
// An error is of a kind if [errors.Is] finds the kind in its tree. Packages add
// a kind with %w or with one of the error types in this package. Only packages
// that answer peers (mcpserver, the HTTP servers, the command line) turn kinds
// into JSON-RPC codes, HTTP statuses and exit statuses, each with one table.
package errkind

//lint:file-ignore ST1012 the names are used with the package name: errkind.NotFound

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The kinds. An error without a kind is internal: its text is logged and never
// sent to a peer.
var (
	// Invalid means that the request can never succeed: an argument is out of
	// bounds, or a query does not parse.
	Invalid = errors.New("invalid")

	// NotFound means that something that the caller named does not exist.
	NotFound = errors.New("not found")

	// Conflict means that the request contradicts the current state, for
	// example that a name is already in use.
	Conflict = errors.New("conflict")

	// Denied means that a policy or the configuration forbids the request.
	// Only the operator can change that.
	Denied = errors.New("denied")

	// Unauthorized means that credentials are missing or wrong.
	Unauthorized = errors.New("unauthorized")

	// TooLarge means that a size limit was exceeded.
	TooLarge = errors.New("too large")

	// Unsupported means that this backend or build cannot do what was
	// requested.
	Unsupported = errors.New("unsupported")

	// Busy means that a limit on concurrent work was reached. Retrying later
	// helps.
	Busy = errors.New("busy")

	// Unavailable means that a service or resource that the program depends
	// on is down. Retrying may help.
	Unavailable = errors.New("unavailable")

	// Timeout means that a service that the program depends on did not answer
	// in time. Retrying may help.
	Timeout = errors.New("timeout")

	// Corrupt means that stored data is damaged.
	Corrupt = errors.New("corrupt")

	// Usage means that the command line was wrong (exit status 2).
	Usage = errors.New("usage")
)

// An Argument is an [Invalid] error that names the invalid argument.
type Argument struct {
	Name  string // as the caller spells it, for example "pageSize" or "facets.size"
	Value any    // the value; nil if the argument is missing
	Want  string // what is allowed, for example "an integer from 1 to 100"
}

// Error returns a message with the argument, its value if there is one, and
// what is allowed. A long value is cut, because it comes from outside.
func (e *Argument) Error() string {
	if e.Value == nil {
		return fmt.Sprintf("argument %q: want %s", e.Name, e.Want)
	}
	v := fmt.Sprintf("%v", e.Value)
	if s, ok := e.Value.(string); ok {
		v = fmt.Sprintf("%q", s)
	}
	if r := []rune(v); len(r) > 80 {
		v = string(r[:80]) + "…"
	}
	return fmt.Sprintf("argument %q: got %s, want %s", e.Name, v, e.Want)
}

// Unwrap makes an Argument an [Invalid] error.
func (e *Argument) Unwrap() error { return Invalid }

// DiskFull is an Unavailable that is due to a full disk.
var DiskFull error = diskFull{}

type diskFull struct{}

func (diskFull) Error() string { return Unavailable.Error() }
func (diskFull) Unwrap() error { return Unavailable }

// A Remote is the failure of a call to another server. Its fields contain
// nothing that a caller must not see: no host, no credential, no stack trace.
type Remote struct {
	Kind     error         // Unavailable, Timeout, Invalid, Unauthorized, NotFound, ...; nil means Unavailable
	Endpoint string        // the path only, for example "/api/v1/documents"
	Status   int           // HTTP status; 502 if the server was not reached, 504 after a timeout
	Code     string        // the server's own opaque error code, "" if it sent none
	Message  string        // one sanitized sentence that says what to do next
	Retry    time.Duration // how long the server asked to wait; 0 if unknown
	Reason   Reason        // option that it may be due to; "" for none

	// Unanswered means that there was no answer, so that the text of the error has no
	// status, which would look like one.
	Unanswered bool
}

// Error returns the message with the endpoint, the status and the code.
func (e *Remote) Error() string {
	if e.Unanswered {
		return e.Message
	}
	s := fmt.Sprintf("%s (%s, status %d)", e.Message, e.Endpoint, e.Status)
	if e.Code != "" {
		s += ", error code " + e.Code
	}
	return s
}

// Unwrap returns the kind.
func (e *Remote) Unwrap() error {
	if e.Kind == nil {
		return Unavailable
	}
	return e.Kind
}

// A Reason is an option of a package that an error is due to: with another value
// of it the error would not occur. Packages declare theirs. The edge that knows
// how the operator sets the option adds that to the message.
type Reason string

// A Restriction is an error that is due to an option.
type Restriction struct {
	Reason Reason
	Err    error // says what is wrong, and has a kind; must not be nil
}

// Error returns the text of the wrapped error.
func (e *Restriction) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Restriction) Unwrap() error { return e.Err }

// ReasonOf returns the option that err is due to, "" if there is none.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Restriction](err); ok {
		return e.Reason
	}
	if e, ok := errors.AsType[*Remote](err); ok {
		return e.Reason
	}
	return ""
}

// Message returns the text of err for users, without the name of its kind at
// the end. If err joins errors, that applies to each of them.
func Message(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && err.Error() == errors.Join(joined.Unwrap()...).Error() {
		var lines []string
		for _, err := range joined.Unwrap() {
			lines = append(lines, Message(err))
		}
		return strings.Join(lines, "\n")
	}
	text := err.Error()
	for _, kind := range kinds() {
		if short, ok := strings.CutSuffix(text, ": "+kind.Error()); ok {
			return short
		}
	}
	return text
}

// kinds returns all kinds.
func kinds() []error {
	return []error{Invalid, NotFound, Conflict, Denied, Unauthorized, TooLarge, Unsupported, Busy, Unavailable, Timeout,
		Corrupt, Usage}
}

// Known reports whether err has a kind. The text of an error without one is internal.
func Known(err error) bool {
	return slices.ContainsFunc(kinds(), func(kind error) bool { return errors.Is(err, kind) })
}

// Retryable reports whether the same request may succeed later without a change
// by the caller or the operator. For a Remote, only the status counts.
func Retryable(err error) bool {
	if r, ok := errors.AsType[*Remote](err); ok {
		switch r.Status {
		case 429, 502, 503, 504:
			return true
		}
		return false
	}
	return errors.Is(err, Busy) || errors.Is(err, Unavailable) || errors.Is(err, Timeout)
}
