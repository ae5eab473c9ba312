package mcpsettings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/knowhow-mcp/knowhow/internal/configfile"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A fault is an error in a file, with its place.
type fault struct {
	file    string // with line and column if they are known
	path    string // of the key; "" if the error is not about a key
	what    string
	example string
}

// Error returns the place, the error and what is permitted.
func (f *fault) Error() string {
	where := f.file + ": "
	if f.path != "" {
		where += f.path + ": "
	}
	end := "."
	if strings.HasSuffix(f.what, "?") {
		end = ""
	}
	return where + f.what + end + " Example: " + f.example
}

// Unwrap returns errkind.Invalid.
func (f *fault) Unwrap() error { return errkind.Invalid }

// A source is the file that is being read.
type source struct {
	path    string
	data    []byte // without a byte order mark
	toml    bool
	dialect string
}

// fail returns an error about the key path, at the byte at.
func (s *source) fail(at int, path, format string, args ...any) error {
	file := s.path
	if at >= 0 {
		before := s.data[:min(at, len(s.data))]
		start := bytes.LastIndexByte(before, '\n') + 1
		file = fmt.Sprintf("%s:%d:%d", s.path, 1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(before[start:]))
	}
	return &fault{file: file, path: path, what: fmt.Sprintf(format, args...), example: examples[s.dialect]}
}

// mismatch returns the error for a value of a wrong kind.
func (s *source) mismatch(n node, path, want string) error {
	return s.fail(n.at, path, "got %s, want %s", n.kind, want)
}

// parse parses JSON or TOML.
func (s *source) parse(data []byte) (node, error) {
	if len(data) > MaxSize {
		return node{}, s.fail(-1, "", "the file is larger than %d bytes; give one that contains only the settings",
			MaxSize)
	}
	s.data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for i := 0; i < len(s.data); {
		r, n := utf8.DecodeRune(s.data[i:])
		if r == utf8.RuneError && n == 1 {
			return node{}, s.fail(i, "", "the file is not UTF-8; save it with that encoding")
		}
		i += n
	}
	first := bytes.TrimSpace(s.data)
	if len(first) == 0 {
		return node{}, s.fail(0, "", "the file is empty")
	}
	s.toml = first[0] != '{' && first[0] != '/' && first[0] != '"' && !json.Valid(first)
	if !s.toml {
		return s.parseJSON()
	}
	return s.parseTOML()
}

// parseJSON reads JSON with comments and trailing commas.
func (s *source) parseJSON() (node, error) {
	s.toml, s.dialect = false, "claude"
	v, err := configfile.ParseJSON(s.data)
	if err != nil {
		return node{}, s.syntaxError(err)
	}
	return fromJSON(v), nil
}

// syntaxError returns the error for an error of a parser.
func (s *source) syntaxError(err error) error {
	e, ok := errors.AsType[*configfile.Error](err)
	if !ok {
		return s.fail(-1, "", "the file cannot be read")
	}
	return &fault{file: fmt.Sprintf("%s:%d:%d", s.path, e.Line, e.Column), what: e.Reason, example: examples[s.dialect]}
}

// fromJSON turns the value of hujson into a node.
func fromJSON(v hujson.Value) node {
	n := node{at: v.StartOffset}
	switch t := v.Value.(type) {
	case *hujson.Object:
		n.kind = object
		for _, m := range t.Members {
			name := fromJSON(m.Name)
			n.members = append(n.members, member{name.text, name.at, fromJSON(m.Value)})
		}
	case *hujson.Array:
		n.kind = list
		for _, e := range t.Elements {
			n.items = append(n.items, fromJSON(e))
		}
	case hujson.Literal:
		switch t.Kind() {
		case '"':
			n.kind, n.text = text, t.String()
		case '0':
			n.kind, n.text = number, string(t)
		case 't', 'f':
			n.kind, n.truth = boolean, t.Bool()
		default:
			n.kind = null
		}
	}
	return n
}

// parseTOML reads TOML.
func (s *source) parseTOML() (node, error) {
	root, err := configfile.ParseTOML(s.data)
	if err != nil {
		s.dialect = "codex"
		return node{}, s.syntaxError(err)
	}
	return fromTOML(root), nil
}

// fromTOML turns the value of the TOML parser into a node.
func fromTOML(v any) node {
	n := node{at: -1, kind: date}
	switch t := v.(type) {
	case map[string]any:
		n.kind = object
		for _, name := range slices.Sorted(maps.Keys(t)) {
			n.members = append(n.members, member{name, -1, fromTOML(t[name])})
		}
	case []any:
		n.kind = list
		for _, e := range t {
			n.items = append(n.items, fromTOML(e))
		}
	case []map[string]any:
		n.kind = list
		for _, e := range t {
			n.items = append(n.items, fromTOML(e))
		}
	case string:
		n.kind, n.text = text, t
	case int64, float64:
		n.kind, n.text = number, fmt.Sprint(t)
	case bool:
		n.kind, n.truth = boolean, t
	}
	return n
}
