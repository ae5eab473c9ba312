// Package config reads JSON configuration files strictly.
//
// A file is decoded into a struct with the defaults. Everything that
// could be a slip of the pen is an error that says where and what is allowed:
// an unknown or repeated key, a value of the wrong type, an environment
// variable that is not set, text after the end. Package cli uses it for every
// command that has a configuration file.
package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"unicode/utf8"

	"knowhow/internal/errkind"
)

// MaxSize is the largest file that is read, in bytes.
const MaxSize = 1 << 20

// Options say how a file is read. The zero Options expand no variables.
type Options struct {
	// Env looks up an environment variable for ${NAME} in strings, as
	// os.LookupEnv does. nil means that no variable is set.
	Env func(name string) (value string, ok bool)
}

// ReadFile reads the named file as [Read] does. An error of opening it wraps
// the system's error, so that errors.Is finds fs.ErrNotExist.
func ReadFile(name string, into any, o Options) (*File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	defer f.Close()
	return Read(name, f, into, o)
}

// Read decodes the JSON object that r gives over the struct that into points
// to; name is what errors call the file. Keys that the file leaves out keep
// their values, lists are replaced as a whole.
//
// A struct's fields are the keys that are allowed, named by their json tags;
// keys match without regard to case. Fields may be structs, pointers to them,
// strings, booleans, integers, floats and slices of these. In strings,
// ${NAME} stands for the environment variable NAME and $${ for "${". A byte
// order mark is skipped.
//
// What the file gets wrong is an [*Error]; it is of kind errkind.Invalid.
func Read(name string, r io.Reader, into any, o Options) (*File, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading configuration %s: %w", name, err)
	}
	f := &File{name: name, data: bytes.TrimPrefix(data, []byte("\ufeff")), values: map[string]span{}}
	if len(data) > MaxSize {
		return nil, &Error{File: name, Want: fmt.Sprintf("a file of at most %d bytes", MaxSize)}
	}
	if err := f.checkSyntax(); err != nil {
		return nil, err
	}
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("reading configuration %s: decoding into a %T, want a pointer to a struct", name, into)
	}
	d := &decoder{file: f, dec: json.NewDecoder(bytes.NewReader(f.data)), env: o.Env}
	if err := d.value("", v.Elem()); err != nil {
		return nil, err
	}
	return f, nil
}

// checkSyntax refuses what is not exactly one JSON value in UTF-8, so that
// decoding afterwards meets valid tokens only.
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

// An Error says what is wrong in a configuration file, where, and what is
// allowed there.
type Error struct {
	File   string
	Line   int    // from 1; 0 where there is no place to point at
	Column int    // from 1, in characters
	Path   string // the key, for example "limits.maxPageSize"; "" where it is about no key
	Value  string // the value as the file has it; "" where there is none or it is secret
	Reason string // what is wrong; "" means that the value is not what is wanted
	Want   string // what is allowed; may be ""
}

// Error gives the place, the key, what was found and what is allowed, as in
// `config.json:3:18: limits.maxPageSize: got 150, want an integer from 1 to 100`.
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

// Unwrap makes an Error one of kind errkind.Invalid.
func (e *Error) Unwrap() error { return errkind.Invalid }
