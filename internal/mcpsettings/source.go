package mcpsettings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// maxDepth limits the nesting of values and the parts of a TOML key, because
// the parsers recurse and the time of the TOML parser grows more than linearly.
const maxDepth = 200

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
	if at := s.tooDeep(); at >= 0 {
		return node{}, s.fail(at, "", "values are nested more than %d deep", maxDepth)
	}
	if !s.toml {
		return s.parseJSON()
	}
	return s.parseTOML()
}

// tooDeep returns the position of a value that is nested too deep, or -1. For
// simplicity it also counts brackets and dots in strings and comments.
func (s *source) tooDeep() int {
	depth, dots := 0, 0 // the parts of a TOML key nest as well
	for i, c := range s.data {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		case '.':
			dots++
		case '=', '\n':
			dots = 0
		}
		if depth > maxDepth || s.toml && dots > maxDepth {
			return i
		}
	}
	return -1
}

// parseJSON reads JSON with comments and trailing commas.
func (s *source) parseJSON() (node, error) {
	s.toml, s.dialect = false, "claude"
	// The parser requires a line end after the last comment.
	lines := append(bytes.Clone(s.data), '\n')
	v, err := hujson.Parse(lines)
	if err == nil {
		return fromJSON(v), nil
	}
	var line, column int
	if _, scan := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); scan != nil {
		return node{}, s.fail(0, "", "invalid JSON")
	}
	at := 0
	for range line - 1 {
		at += bytes.IndexByte(lines[at:], '\n') + 1
	}
	what := "there is a word or a string that is not valid JSON"
	if cause := errors.Unwrap(err); errors.Is(err, io.ErrUnexpectedEOF) {
		what = "the file ends too early"
	} else if cause != nil && !strings.HasPrefix(cause.Error(), "invalid literal") { // which would show a secret
		what = cause.Error()
	}
	return node{}, s.fail(at+column-1, "", "invalid JSON: %s", what)
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
	var root map[string]any
	_, err := toml.Decode(string(s.data), &root)
	if err == nil {
		return fromTOML(root), nil
	}
	var parse toml.ParseError
	if !errors.As(err, &parse) {
		return node{}, s.fail(-1, "", "invalid TOML")
	}
	s.dialect = "codex"
	// The quoted text may be a secret.
	what, _, _ := strings.Cut(parse.Message, `"`)
	what = strings.TrimRight(what, " :.")
	if bad(what, "") != "" || what == "" {
		what = "the line cannot be read"
	}
	return node{}, s.fail(min(max(0, parse.Position.Start), len(s.data)), "", "invalid TOML: %s", what)
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
