// Package config reads JSON configuration files strictly.
//
// A file is decoded into a struct with the defaults. Possible mistakes are
// errors that name the place and what is permitted: an unknown or repeated key,
// a value of a wrong type, an environment variable that is not set, text after
// the end. Package cli uses it for every command that has a configuration file.
package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// MaxSize is the maximum size of a file, in bytes, unless [Options] name another.
const MaxSize = 1 << 20

// Options configure how a file is read. The zero Options expand no variables.
type Options struct {
	// Env looks up an environment variable for ${NAME} in strings, like
	// os.LookupEnv. nil means that no variable is set.
	Env func(name string) (value string, ok bool)

	MaxSize int // of the file, in bytes; 0 means MaxSize

	// Nulls means that a key with the value null counts as a missing key.
	Nulls bool
}

// ReadFile reads the named file like [Read]. If the file cannot be opened, the
// error wraps the system's error, so that errors.Is finds fs.ErrNotExist.
func ReadFile(name string, into any, o Options) (*File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	defer f.Close()
	return Read(name, f, into, o)
}

// Read decodes the JSON object from r into the struct that into points to; name
// is the name of the file in errors. Keys that are not in the file keep their
// values. Lists are replaced as a whole.
//
// A struct's fields are the permitted keys, named by their json tags. Keys
// match without regard to case. Fields may be structs, pointers to them,
// strings, booleans, integers, floats and slices of these. A slice of structs of which
// a string has the tag `config:"key"` is an object in the file: each of its members is
// an element of the slice, in their order, and its name, in which case matters, is that
// string. In strings, ${NAME}
// stands for the environment variable NAME and $${ for "${". A byte order mark
// is skipped.
//
// An error in the file is an [*Error]. It is of kind errkind.Invalid.
func Read(name string, r io.Reader, into any, o Options) (*File, error) {
	most := cmp.Or(o.MaxSize, MaxSize)
	data, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("reading configuration %s: %w", name, err)
	}
	f := &File{name: name, data: bytes.TrimPrefix(data, []byte("\ufeff")), values: map[string]span{},
		expanded: map[string]string{}}
	if len(data) > most {
		return nil, &Error{File: name, Want: fmt.Sprintf("a file of at most %d bytes", most)}
	}
	if err := f.checkSyntax(); err != nil {
		return nil, err
	}
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("reading configuration %s: decoding into a %T, want a pointer to a struct", name, into)
	}
	d := &decoder{file: f, dec: json.NewDecoder(bytes.NewReader(f.data)), env: o.Env, nulls: o.Nulls,
		root: v.Elem().Type()}
	if err := d.value("", v.Elem()); err != nil {
		return nil, err
	}
	return f, nil
}

// checkSyntax refuses anything except exactly one JSON value in UTF-8, so that
// decoding finds only valid tokens.
func (f *File) checkSyntax() error {
	for i := 0; i < len(f.data); {
		r, n := utf8.DecodeRune(f.data[i:])
		if r == utf8.RuneError && n == 1 {
			return f.errorAt(i, &Error{Reason: "the file is not UTF-8", Want: "text in UTF-8"})
		}
		i += n
	}
	var whole json.RawMessage
	err := json.Unmarshal(f.data, &whole)
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return fmt.Errorf("reading configuration %s: %w", f.name, err)
	}
	at := max(0, int(syntax.Offset)-1)
	if strings.HasPrefix(syntax.Error(), "unexpected end") {
		at = len(f.data)
	}
	return f.errorAt(at, &Error{Reason: "invalid JSON: " + syntax.Error()})
}

// An Error is an error in a configuration file, with its place and what is
// permitted there.
type Error struct {
	File   string
	Line   int    // from 1; 0 if there is no place
	Column int    // from 1, in characters
	Path   string // the key, for example "limits.maxPageSize"; "" if the error is not about a key
	Value  string // the value; "" if there is none
	Reason string // the error; "" means that the value is not permitted
	Want   string // what is permitted; may be ""
}

// Error returns the place, the key, the value and what is permitted, as in
// `config.json:3:18: limits.maxPageSize: got 150, want an integer from 1 to
// 100`.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	var what []string
	switch {
	case e.Reason != "":
		what = append(what, e.Reason)
	case e.Value != "":
		what = append(what, "got "+e.Value)
	}
	if e.Want != "" {
		what = append(what, "want "+e.Want)
	}
	b.WriteString(strings.Join(what, ", "))
	return b.String()
}

// Unwrap returns errkind.Invalid.
func (e *Error) Unwrap() error { return errkind.Invalid }
