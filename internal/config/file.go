package config

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// A File is a configuration file that was read. It contains the position of
// each value, so that later checks can report it.
type File struct {
	name   string
	data   []byte
	values map[string]span // by path, in the spelling of the struct's tags

	expanded map[string]string // by path, the strings in which variables were expanded
}

// A span is the position of a value in the file.
type span struct{ start, end int }

// Has reports whether the file contains a value for the key at path, for
// example "security.httpAuthToken".
func (f *File) Has(path string) bool {
	_, ok := f.values[path]
	return ok
}

// Bad returns the error for a key with a value that is not permitted. path is
// spelled as in the struct's tags, with [i] for the elements of lists; want
// completes "want ...". The position in the error is that of the value or, if
// the key is not in the file, that of the nearest object around it.
func (f *File) Bad(path, want string) *Error {
	if at, ok := f.values[path]; ok {
		return f.errorAt(at.start, &Error{Path: path, Value: f.show(path, at), Want: want})
	}
	e := &Error{File: f.name, Path: path, Reason: "missing", Want: want}
	for parent := path; parent != ""; {
		parent = parent[:max(0, strings.LastIndexByte(parent, '.'))]
		if at, ok := f.values[parent]; ok {
			return f.errorAt(at.start, e)
		}
	}
	return e
}

// Refuse returns the error for a key whose value is well formed but cannot be
// used; reason is a clause with the reason and what to do. The position is that
// of [File.Bad].
func (f *File) Refuse(path, reason string) *Error {
	e := f.Bad(path, "")
	e.Value, e.Reason = "", reason
	return e
}

// twice returns the error for a key at an offset that is in the file before, at first.
func (f *File) twice(at, first int, path string) *Error {
	line := f.errorAt(first, &Error{}).Line
	return f.errorAt(at, &Error{Path: path, Reason: fmt.Sprintf("given twice, first in line %d", line)})
}

// errorAt adds the position of the byte at off to e.
func (f *File) errorAt(off int, e *Error) *Error {
	off = min(off, len(f.data))
	before := f.data[:off]
	e.File = f.name
	e.Line = 1 + bytes.Count(before, []byte("\n"))
	e.Column = 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return e
}

// userinfo matches the part of a string that may be the user name and password
// of a URL.
var userinfo = regexp.MustCompile(`(?s)^".*@`)

// query matches what may be the query of a URL.
var query = regexp.MustCompile(`(?s)\?.*"$`)

// show returns a value for an error: as written in the file, on one line, shortened,
// and without secrets. If variables were expanded in it, what it became comes first,
// without the query of a URL, which may be secret too.
func (f *File) show(path string, at span) string {
	if secret(path) {
		return "a value that is not shown"
	}
	raw := f.data[at.start:at.end]
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	written := shorten(string(raw))
	if s, ok := f.expanded[path]; ok {
		became := shorten(query.ReplaceAllLiteralString(strconv.Quote(s), `?..."`))
		if became != written {
			return became + " (from " + written + ")"
		}
	}
	return written
}

// shorten returns a quoted string without the user name and password of a URL, on one
// line and shortened.
func shorten(quoted string) string {
	const most = 80
	return sanitize.Short(userinfo.ReplaceAllLiteralString(quoted, `"...@`), most, 4*most)
}

// secret reports whether the value of a key must not be shown: the name contains
// token, key, password, secret or sha256, in any case. In a path with dots the
// last element counts.
func secret(path string) bool {
	name := strings.ToLower(path[strings.LastIndexByte(path, '.')+1:])
	for _, word := range []string{"token", "key", "password", "secret", "sha256"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
