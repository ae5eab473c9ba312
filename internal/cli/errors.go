package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// fail reports err, if it is not nil, and returns the exit status.
func (v *invocation) fail(ctx context.Context, err error) int {
	var sig SignalError
	interrupted := errors.As(context.Cause(ctx), &sig) && sig.Signal == os.Interrupt
	err = v.inArguments(err)
	if errors.Is(err, errClientGone) {
		v.served = true // nobody reads an answer
		return exitOK
	}
	if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		text := v.name + ": " + printableLines(boundLines(message(err)))
		if hint := v.advice(err); hint != "" {
			text += "\n" + printableLines(hint)
		}
		if screen := terminal.NewScreen(v.stderr, v.Lookup); screen.Terminal() {
			fmt.Fprint(v.stderr, screen.Wrap(text, ""))
		} else {
			fmt.Fprintln(v.stderr, text)
		}
	}
	switch {
	case interrupted:
		return exitInterrupted
	case ctx.Err() != nil && errors.Is(err, context.Canceled) && isServer(v.command):
		return exitOK // SIGTERM while it started
	case errors.Is(err, errkind.Usage):
		return exitUsage
	case err != nil:
		return exitFailure
	}
	return exitOK
}

// usagef returns a [usageError] that refers to the command's help.
func (v *invocation) usagef(format string, args ...any) *hintError {
	return &hintError{usageError(fmt.Sprintf(format, args...)), fmt.Sprintf("Run %q for usage.", v.name+" --help")}
}

// printableLines returns a message that may contain foreign text. Line ends are
// kept, and everything else that could control a terminal is escaped.
func printableLines(message string) string {
	lines := strings.Split(message, "\n")
	for i, line := range lines {
		lines[i] = sanitize.Escape(line)
	}
	return strings.Join(lines, "\n")
}

// message returns the message of an error. The name of a file in it is on one
// line.
func message(err error) string {
	text := errkind.Message(err)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		text = strings.ReplaceAll(text, e.Path, sanitize.Escape(e.Path))
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		text = strings.ReplaceAll(text, e.New, sanitize.Escape(e.New))
	}
	return text
}

// boundLines returns a message that may contain very long operands and names
// of files, with lines of at most 800 characters and at most 200 lines. The
// middle is left out, because what is permitted is often at the end.
func boundLines(message string) string {
	const (
		lineStart, lineEnd = 300, 500
		mostLines          = 200
	)
	lines := strings.Split(message, "\n")
	if len(lines) > mostLines {
		lines = append(append(lines[:mostLines/2:mostLines/2], "…"), lines[len(lines)-mostLines/2:]...)
	}
	for i, line := range lines {
		if r := []rune(line); len(r) > lineStart+lineEnd {
			lines[i] = string(r[:lineStart]) + "…" + string(r[len(r)-lineEnd:])
		}
	}
	return strings.Join(lines, "\n")
}

// argumentNames has what the arguments of tools and of the knowledge base are
// called on the command line.
var argumentNames = map[string]string{
	"query": "QUERY", "start": "--start", "num": "--top", "top": "--top", "topK": "--top", "lang": "--lang",
	"sort": "--sort",
	"path": "PATH", "section": "--section", "from": "--from", "cursor": "--cursor",
	"text": "TEXT", "title": "--title", "collection": "--collection", "tags": "--tag",
}

// inArguments returns an error that is due to an argument in the words of the
// command line, as wrong usage. It returns other errors as they are.
func (v *invocation) inArguments(err error) error {
	a, ok := errors.AsType[*errkind.Argument](err)
	if !ok {
		return err
	}
	name, _, _ := strings.Cut(a.Name, "[") // of one of several
	if name = argumentNames[name]; name == "" {
		return err
	}
	return v.usagef("%s: got %q, want %s", name, fmt.Sprint(a.Value), strings.ReplaceAll(a.Want, "docId", "DOC_ID"))
}

// advice returns what the user can do about an error, or "" if its message
// contains that.
func (v *invocation) advice(err error) string {
	hinted, ok := errors.AsType[*hintError](err)
	_, ofPath := errors.AsType[*fs.PathError](err)
	_, ofLink := errors.AsType[*os.LinkError](err)
	switch {
	case ok:
		return hinted.hint
	case errors.Is(err, errkind.Usage):
		return fmt.Sprintf("Run %q for usage.", v.name+" --help")
	case errors.Is(err, fs.ErrPermission):
		return "Change the permissions, or name another file or folder."
	case ofPath, ofLink:
		return "Check the path, or name another file or folder."
	}
	return ""
}

// A usageError is an error in the command line.
type usageError string

func (e usageError) Error() string { return string(e) }
func (usageError) Unwrap() error   { return errkind.Usage }

// A hintError is an error with a line that states what to do next.
type hintError struct {
	error
	hint string
}

func (e *hintError) Unwrap() error { return e.error }

// An explainedError is an error with another text.
type explainedError struct {
	error
	text string
}

func (e *explainedError) Error() string { return e.text }
func (e *explainedError) Unwrap() error { return e.error }

// explainReason adds to an error how to set the option that it is due to.
func explainReason(err error, by map[errkind.Reason]string) error {
	advice := by[errkind.ReasonOf(err)]
	if advice == "" {
		return err
	}
	if own, ok := errors.AsType[*mcpserver.Error](err); ok {
		more := *own
		more.Err = explainReason(own.Err, by)
		return &more
	}
	if remote, ok := errors.AsType[*errkind.Remote](err); ok {
		more := *remote
		more.Message += "; " + advice
		return &more
	}
	return &explainedError{err, errkind.Message(err) + "; " + advice}
}
