package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// A decoder decodes a file's tokens into a struct. The syntax of the file has
// already been checked.
type decoder struct {
	file  *File
	dec   *json.Decoder
	env   func(string) (string, bool)
	nulls bool // null counts as missing
	root  reflect.Type
}

// value decodes the next value into v; path is its key.
func (d *decoder) value(path string, v reflect.Value) error {
	start := d.skip()
	if d.nulls && d.file.data[start] == 'n' && path != "" {
		_, err := d.dec.Token()
		return err
	}
	d.file.values[path] = span{start, len(d.file.data)}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	want, err := d.wanted(v)
	if err != nil {
		return err
	}
	switch c := d.file.data[start]; {
	case c == '{' && v.Kind() == reflect.Struct:
		err = d.object(path, v)
	case c == '{' && v.Kind() == reflect.Slice && keyOf(v.Type().Elem()) >= 0:
		err = d.named(path, v)
	case c == '[' && v.Kind() == reflect.Slice && keyOf(v.Type().Elem()) < 0:
		err = d.list(path, v)
	default:
		return d.scalar(path, start, v, want)
	}
	d.file.values[path] = span{start, int(d.dec.InputOffset())}
	return err
}

// wanted describes the values that v accepts.
func (d *decoder) wanted(v reflect.Value) (string, error) {
	switch {
	case v.Kind() == reflect.Struct, v.Kind() == reflect.Slice && keyOf(v.Type().Elem()) >= 0:
		return "an object", nil
	case v.Kind() == reflect.Slice:
		return "a list", nil
	case v.Kind() == reflect.String:
		return "a string", nil
	case v.Kind() == reflect.Bool:
		return "true or false", nil
	case v.CanInt():
		return "an integer", nil
	case v.CanFloat():
		return "a number", nil
	}
	return "", fmt.Errorf("reading configuration %s: a field of type %s is not supported", d.file.name, v.Type())
}

// skip returns the offset of the next token, after the white space and
// separators that follow the last one.
func (d *decoder) skip() int {
	at := int(d.dec.InputOffset())
	return at + len(d.file.data[at:]) - len(bytes.TrimLeft(d.file.data[at:], " \t\r\n,:"))
}

// object decodes a JSON object into the struct v.
func (d *decoder) object(path string, v reflect.Value) error {
	fields := map[string]int{}
	var names []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[strings.ToLower(name)] = i
			names = append(names, name)
		}
	}
	if _, err := d.dec.Token(); err != nil { // the opening brace
		return fmt.Errorf("reading configuration %s: %w", d.file.name, err)
	}
	seen := map[int]int{} // offset of each field in the file
	for d.dec.More() {
		at := d.skip()
		token, err := d.dec.Token()
		if err != nil {
			return fmt.Errorf("reading configuration %s: %w", d.file.name, err)
		}
		key := token.(string)
		i, ok := fields[strings.ToLower(key)]
		if !ok {
			return d.file.errorAt(at, unknownKey(path, key, names, places(d.root, "", key)))
		}
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		below := join(path, name)
		if first, ok := seen[i]; ok {
			return d.file.twice(at, first, below)
		}
		seen[i] = at
		if err := d.value(below, v.Field(i)); err != nil {
			return err
		}
	}
	_, err := d.dec.Token() // the closing brace
	return err
}

// keyOf returns the field of a struct that has the name of a member of an object, or -1
// if there is none.
func keyOf(t reflect.Type) int {
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if t.Field(i).Tag.Get("config") == "key" {
				return i
			}
		}
	}
	return -1
}

// named decodes the members of a JSON object into the slice of structs v, replacing its
// elements.
func (d *decoder) named(path string, v reflect.Value) error {
	if _, err := d.dec.Token(); err != nil { // the opening brace
		return fmt.Errorf("reading configuration %s: %w", d.file.name, err)
	}
	element := v.Type().Elem()
	key, all := keyOf(element), reflect.MakeSlice(v.Type(), 0, 4)
	seen := map[string]int{} // offset of each member
	for d.dec.More() {
		at := d.skip()
		token, err := d.dec.Token()
		if err != nil {
			return fmt.Errorf("reading configuration %s: %w", d.file.name, err)
		}
		name := token.(string)
		below := Member(path, name)
		if first, ok := seen[name]; ok {
			return d.file.twice(at, first, below)
		}
		seen[name] = at
		member := reflect.New(element).Elem()
		if err := d.value(below, member); err != nil {
			return err
		}
		member.Field(key).SetString(name)
		all = reflect.Append(all, member)
	}
	v.Set(all)
	_, err := d.dec.Token() // the closing brace
	return err
}

// plainName matches names that are written in a path as they are.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_@+-]{1,80}$`)

// Member returns the path of the member of an object whose names are not those of
// fields. A name with other characters than letters, digits, "_", "@", "+" and "-" is
// quoted, and cut if it is long.
func Member(path, name string) string {
	if !plainName.MatchString(name) {
		name = spell.Quote(name)
	}
	return join(path, name)
}

// places returns where in a struct and the structs in it a key is known, in the form of
// `"key" in path`; path is that of the struct.
func places(t reflect.Type, path, key string) (found []string) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		switch {
		case !strings.EqualFold(name, key):
		case path == "":
			found = append(found, spell.Quote(name)+" at the top level")
		default:
			found = append(found, spell.Quote(name)+" in "+path)
		}
		if field.Type.Kind() == reflect.Struct {
			found = append(found, places(field.Type, join(path, name), key)...)
		}
	}
	return found
}

// unknownKey returns the error for a key that is not in names, but known at other
// places.
func unknownKey(path, key string, names, places []string) *Error {
	if r := []rune(key); len(r) > 40 {
		key = string(r[:40]) + "…"
	}
	e := &Error{Path: path, Reason: fmt.Sprintf("unknown key %q", key)}
	var want []string
	if near := spell.Near(key, names, 1); len(near) > 0 {
		want = append(want, spell.Quote(near[0]))
	}
	if want = append(want, places...); len(want) > 0 {
		e.Want = strings.Join(want, " or ")
		return e
	}
	e.Want = "one of " + strings.Join(names, ", ")
	return e
}

// list decodes a JSON list into the slice v, replacing its elements.
func (d *decoder) list(path string, v reflect.Value) error {
	if _, err := d.dec.Token(); err != nil { // the opening bracket
		return fmt.Errorf("reading configuration %s: %w", d.file.name, err)
	}
	all := reflect.MakeSlice(v.Type(), 0, 4)
	for i := 0; d.dec.More(); i++ {
		element := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(fmt.Sprintf("%s[%d]", path, i), element); err != nil {
			return err
		}
		all = reflect.Append(all, element)
	}
	v.Set(all)
	_, err := d.dec.Token() // the closing bracket
	return err
}

// scalar decodes a string, a number or a boolean into v. A value of another
// type is an error.
func (d *decoder) scalar(path string, start int, v reflect.Value, want string) error {
	var raw json.RawMessage
	if err := d.dec.Decode(&raw); err != nil {
		return fmt.Errorf("reading configuration %s: %w", d.file.name, err)
	}
	d.file.values[path] = span{start, int(d.dec.InputOffset())}
	if k := v.Kind(); k == reflect.Struct || k == reflect.Slice || string(raw) == "null" ||
		json.Unmarshal(raw, v.Addr().Interface()) != nil {
		return d.file.Bad(path, want)
	}
	if v.Kind() != reflect.String {
		return nil
	}
	expanded, err := d.expand(path, v.String())
	if expanded != v.String() {
		d.file.expanded[path] = expanded
	}
	v.SetString(expanded)
	return err
}

// variable matches a reference to a variable, escaped or not, and text that
// looks like the beginning of one.
var variable = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*\})?`)

// expand replaces the references to variables in the string at path.
func (d *decoder) expand(path, s string) (string, error) {
	var failure *Error
	at := d.file.values[path].start
	s = variable.ReplaceAllStringFunc(s, func(ref string) string {
		switch name := strings.TrimSuffix(strings.TrimPrefix(ref, "${"), "}"); {
		case strings.HasPrefix(ref, "$$"):
			return ref[1:]
		case ref == "${":
			failure = d.file.errorAt(at, &Error{Path: path, Reason: `"${" without a variable's name`,
				Want: `${NAME}, or $${ for a literal "${"`})
		default:
			if d.env != nil {
				if value, ok := d.env(name); ok {
					return value
				}
			}
			failure = d.file.errorAt(at, &Error{Path: path, Reason: "environment variable " + name + " is not set"})
		}
		return ""
	})
	if failure != nil {
		return "", failure
	}
	return s, nil
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
