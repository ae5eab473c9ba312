package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"knowhow/internal/compact"
)

// maxInteger is the largest integer that every JSON parser represents exactly.
const maxInteger = 1 << 53

// Check checks the arguments of a tool against its schema, which must be of
// type object. It returns them as canonical JSON: defaults are filled in, 5.0
// is written as 5, and a single value becomes a list if the schema allows it.
// No other value is converted. raw is one JSON value; an empty raw and null
// mean {}. The error is an [*Error].
func (s *Schema) Check(raw json.RawMessage) (json.RawMessage, error) {
	var v any = map[string]any{}
	if len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			return nil, &Error{Message: "the arguments are not valid JSON"}
		}
	}
	if _, ok := v.(map[string]any); !ok {
		return nil, &Error{Message: "the arguments of a tool must be an object"}
	}
	checked, err := s.check("", v, true)
	if err != nil {
		return nil, err
	}
	return compact.Marshal(checked)
}

// check returns the canonical form of the value at path. The path of the root
// is "".
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
		return m, nil // an object with any members
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
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
			return nil, &Error{Argument: name, Message: fmt.Sprintf("argument %q is missing: want %s", name, want), Want: want}
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

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
