package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxInteger is the largest integer that every JSON reader keeps exactly.
const maxInteger = 1 << 53

// checkArguments checks a tool's arguments against its schema and returns them
// as canonical JSON: defaults filled in, 5.0 written as 5, a single value made
// a list where the schema allows it. Nothing else is coerced. The error is a
// JSON-RPC error that names the argument, its value and what is allowed.
func checkArguments(s *Schema, raw json.RawMessage) (json.RawMessage, error) {
	var v any = map[string]any{}
	if len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			return nil, invalidParams("the arguments are not valid JSON", nil)
		}
	}
	if _, ok := v.(map[string]any); !ok {
		return nil, invalidParams("the arguments of a tool must be an object", nil)
	}
	checked, err := s.check("", v, true)
	if err != nil {
		return nil, err
	}
	return compactJSON(checked)
}

// check returns the canonical form of the value at path. The path of the root
// is empty.
func (s *Schema) check(path string, v any, root bool) (any, error) {
	switch s.Type {
	case "object":
		m, ok := v.(map[string]any)
		if !ok {
			return nil, s.mismatch(path, v)
		}
		return s.checkObject(path, m, root)
	case "array":
		return s.checkArray(path, v)
	case "string":
		text, ok := v.(string)
		if !ok || !s.allowsText(text) {
			return nil, s.mismatch(path, v)
		}
		return text, nil
	case "boolean":
		if _, ok := v.(bool); !ok {
			return nil, s.mismatch(path, v)
		}
	case "integer", "number":
		return s.checkNumber(path, v)
	}
	return v, nil
}

func (s *Schema) checkObject(path string, m map[string]any, root bool) (any, error) {
	if !root && len(s.Properties) == 0 {
		return m, nil // an open object: whatever the caller likes
	}
	for _, name := range sortedNames(m) {
		if s.property(name) == nil {
			return nil, s.unknownArgument(path, name)
		}
	}
	out := map[string]any{}
	for i := range s.Properties {
		p := &s.Properties[i]
		v, given := m[p.Name]
		switch {
		case given:
			checked, err := p.Schema.check(join(path, p.Name), v, false)
			if err != nil {
				return nil, err
			}
			out[p.Name] = checked
		case p.Required:
			name, want := join(path, p.Name), p.Schema.want()
			return nil, badArgument(name, fmt.Sprintf("argument %q is missing: want %s", name, want), want)
		case p.Schema.Default != nil:
			out[p.Name] = p.Schema.Default
		}
	}
	return out, nil
}

func (s *Schema) checkArray(path string, v any) (any, error) {
	list, ok := v.([]any)
	if _, isText := v.(string); !ok && s.OneOrMany && isText {
		list, ok = []any{v}, true
	}
	if !ok || s.MaxItems > 0 && len(list) > s.MaxItems {
		return nil, s.mismatch(path, v)
	}
	out := make([]any, len(list))
	for i, item := range list {
		out[i] = item
		if s.Items != nil {
			checked, err := s.Items.check(fmt.Sprintf("%s[%d]", path, i), item, false)
			if err != nil {
				return nil, err
			}
			out[i] = checked
		}
	}
	return out, nil
}

func (s *Schema) allowsText(text string) bool {
	n := utf8.RuneCountInString(text)
	return n >= s.MinLength && (s.MaxLength == 0 || n <= s.MaxLength) &&
		(len(s.Enum) == 0 || slices.Contains(s.Enum, text))
}

func (s *Schema) checkNumber(path string, v any) (any, error) {
	n, ok := v.(json.Number)
	if !ok {
		return nil, s.mismatch(path, v)
	}
	f, err := n.Float64()
	if err != nil || s.Minimum != nil && f < *s.Minimum || s.Maximum != nil && f > *s.Maximum {
		return nil, s.mismatch(path, v)
	}
	if s.Type == "number" {
		return n, nil
	}
	if f != math.Trunc(f) || math.Abs(f) > maxInteger {
		return nil, s.mismatch(path, v)
	}
	return int64(f), nil
}

// mismatch is the error for a value that the schema does not allow.
func (s *Schema) mismatch(path string, v any) error {
	want := s.want()
	return badArgument(path, fmt.Sprintf("argument %q: got %s, want %s", path, shown(v), want), want)
}

func (s *Schema) unknownArgument(path, name string) error {
	var known []string
	for _, p := range s.Properties {
		known = append(known, p.Name)
	}
	full, want := join(path, name), "no such argument"
	message := fmt.Sprintf("there is no argument %s", quoted(full))
	switch near := nearest(name, known, 1); {
	case len(near) > 0:
		want = join(path, near[0])
		message += fmt.Sprintf(", did you mean %q?", want)
	case len(known) > 0:
		message += ", there are " + strings.Join(known, ", ")
	}
	return badArgument(full, message, want)
}

// badArgument is the error of one argument. want is repeated in its data for
// programs.
func badArgument(name, message, want string) error {
	if r := []rune(name); len(r) > 80 {
		name = string(r[:80]) + "…"
	}
	return invalidParams(sentence(message), map[string]any{"argument": name, "want": want})
}

// want says what the schema allows, as the end of a sentence.
func (s *Schema) want() string {
	switch s.Type {
	case "string":
		return s.wantText()
	case "integer":
		return "an integer" + s.wantRange()
	case "number":
		return "a number" + s.wantRange()
	case "boolean":
		return "true or false"
	case "array":
		w := "a list"
		if s.MaxItems > 0 {
			w += fmt.Sprintf(" of at most %d items", s.MaxItems)
		}
		return w
	}
	return "an object"
}

func (s *Schema) wantText() string {
	switch {
	case len(s.Enum) > 0:
		return "one of " + orList(s.Enum)
	case s.MinLength > 1 && s.MaxLength > 0:
		return fmt.Sprintf("a string of %d to %d characters", s.MinLength, s.MaxLength)
	case s.MinLength > 1:
		return fmt.Sprintf("a string of at least %d characters", s.MinLength)
	case s.MinLength == 1 && s.MaxLength > 0:
		return fmt.Sprintf("a string of 1 to %d characters", s.MaxLength)
	case s.MinLength == 1:
		return "a string that is not empty"
	case s.MaxLength > 0:
		return fmt.Sprintf("a string of at most %d characters", s.MaxLength)
	}
	return "a string"
}

func (s *Schema) wantRange() string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return " from " + number(*s.Minimum) + " to " + number(*s.Maximum)
	case s.Minimum != nil:
		return " of at least " + number(*s.Minimum)
	case s.Maximum != nil:
		return " of at most " + number(*s.Maximum)
	}
	return ""
}

// shown writes a value that came from outside, cut to fit into a sentence.
func shown(v any) string {
	text, err := compactJSON(v)
	if err != nil {
		return "something else"
	}
	if r := []rune(string(text)); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return string(text)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func sortedNames(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
