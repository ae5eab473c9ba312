// Package configfile changes single entries of the configuration files of other
// programs. Everything else in a file stays as it is, byte for byte: comments,
// order, indentation, line ends, unknown members. A new entry follows the style
// of its neighbours.
//
// [Set] and [Remove] work on bytes. They check what they have done: the new file
// must parse, and its values must be those of the old one, except for the entry.
// [Change] applies a change to a file on disk, and keeps a backup.
//
// # The backup
//
// Remove(Set(file)) is the file again if the object with the entries was not
// empty. Otherwise the file does not tell whether the object, or the file, was
// there before. [Undo] finds that out with the backup, FILE.knowhow.bak.
//
// The backup is the file as it was before the first entry of this program was added,
// or a text that says that there was none. It stays as it is while the file has
// entries of this program, so that they can be added, replaced and removed in any
// order, whatever else changes in the file meanwhile. It is removed with the last of
// them, which the caller names with [Options], and when a change makes the file equal
// to it.
package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A Format is the syntax of a configuration file.
type Format string

// The formats.
const (
	JSON Format = "json" // with comments and trailing commas
	TOML Format = "toml"
	YAML Format = "yaml"
)

const (
	// MaxSize is the maximum size of a file, in bytes.
	MaxSize = 4 << 20

	// maxDepth limits the nesting of values, because the parsers recurse.
	maxDepth = 200
)

// A Place is where a file has the entry of a server.
type Place struct {
	// Keys lead from the root to the object (table, mapping, list) with the
	// entries, for example "projects", "/home/me/x", "mcpServers". Missing ones
	// are added.
	Keys []string

	// Name is the name of the entry.
	Name string

	// List means that the entries are the elements of a list, which have the
	// name in their member "name". Only YAML files have such lists.
	List bool
}

// A Member is a member of an entry. Members are written in their order.
type Member struct {
	Name  string
	Value any // a string, bool, int, []string or []Member
}

// An Error is an error in a file, with its place. It is of kind errkind.Invalid.
type Error struct {
	File   string // "" until Change adds it
	Line   int    // from 1; 0 if there is no place
	Column int    // from 1, in characters; 0 if it is not known
	Reason string // what is wrong, and what to do
}

// Error returns the place and the reason, as in `mcp.json:3:18: ...`.
func (e *Error) Error() string {
	switch {
	case e.File == "" && e.Line == 0:
		return e.Reason
	case e.File == "":
		return fmt.Sprintf("line %d, column %d: %s", e.Line, max(e.Column, 1), e.Reason)
	case e.Line == 0:
		return e.File + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, max(e.Column, 1), e.Reason)
}

// Unwrap returns errkind.Invalid.
func (e *Error) Unwrap() error { return errkind.Invalid }

// tooDeep is the reason for values that are nested too deep.
var tooDeep = fmt.Sprintf("values are nested more than %d deep", maxDepth)

// advise adds what to do to an error of a parser.
func advise(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	advice := "; correct it with an editor"
	if e.Reason == tooDeep {
		advice = "; change the file with an editor"
	}
	return &Error{Line: e.Line, Column: e.Column, Reason: e.Reason + advice}
}

// errorAt returns the error at the byte at of data.
func errorAt(data []byte, at int, format string, args ...any) error {
	before := data[:min(max(at, 0), len(data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return &Error{
		Line:   1 + bytes.Count(before, []byte("\n")),
		Column: 1 + utf8.RuneCount(before[start:]),
		Reason: fmt.Sprintf(format, args...),
	}
}
