package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/spell"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxInteger is the largest integer that every JSON parser represents exactly.
const maxInteger = 1 << 53

// Check checks the arguments of a tool. It returns them as canonical JSON:
// defaults are filled in, 5.0 is written as 5, and a single string becomes a
// list if the schema allows it. No other value is converted. raw is one JSON
// value; an empty raw and null mean {}. The error is an [*Error].
func (s *Schema) Check(raw json.RawMessage) (json.RawMessage, error) {
	var v any = map[string]any{}
	if len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		var err error
		if v, err = decode(raw); err != nil {
			return nil, &Error{Message: "the arguments are not valid JSON"}
		}
	}
	if _, ok := v.(map[string]any); !ok {
		return nil, &Error{Message: "the arguments of a tool must be an object"}
	}
	checked, err := s.check(s.root, "", v)
	if err != nil {
		return nil, err
	}
	return compact.Marshal(checked)
}

// decode decodes one JSON value, without rounding numbers.
func decode(raw json.RawMessage) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

// check returns the canonical form of the value at path, whose schema is n. The
// path of the root is "".
func (s *Schema) check(n *jsonschema.Schema, path string, v any) (any, error) {
	switch n.Type {
	case "object":
		if m, ok := v.(map[string]any); ok {
			return s.checkObject(n, path, m)
		}
	case "array":
		return s.checkArray(n, path, v)
	case "string":
		if text, ok := v.(string); ok && allowsText(n, text) {
			return v, nil
		}
	case "boolean":
		if _, ok := v.(bool); ok {
			return v, nil
		}
	case "integer", "number":
		return checkNumber(n, path, v)
	case "":
		return v, nil // any value
	}
	return nil, mismatch(n, path, v)
}

func (s *Schema) checkObject(n *jsonschema.Schema, path string, m map[string]any) (any, error) {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if n.Properties == nil { // a map
			checked, err := s.check(n.AdditionalProperties, join(path, spell.Cut(name)), m[name])
			if err != nil {
				return nil, err
			}
			out[name] = checked
		} else if n.Properties[name] == nil {
			return nil, unknownArgument(n, path, name)
		}
	}
	for _, name := range names(n) {
		p, full := n.Properties[name], join(path, name)
		v, given := m[name]
		switch {
		case given:
			checked, err := s.check(p, full, v)
			if err != nil {
				return nil, err
			}
			out[name] = checked
		case slices.Contains(n.Required, name):
			want := want(p)
			return nil, &Error{Argument: full, Message: fmt.Sprintf("argument %q is missing: want %s", full, want),
				Want: want}
		case p.Default != nil:
			out[name] = p.Default
		}
	}
	return out, nil
}

func (s *Schema) checkArray(n *jsonschema.Schema, path string, v any) (any, error) {
	list, ok := v.([]any)
	if _, isText := v.(string); isText && s.oneOrMany[n] {
		list, ok = []any{v}, true
	}
	if !ok || n.MaxItems != nil && len(list) > *n.MaxItems {
		return nil, mismatch(n, path, v)
	}
	out := make([]any, len(list))
	for i, item := range list {
		checked, err := s.check(n.Items, fmt.Sprintf("%s[%d]", path, i), item)
		if err != nil {
			return nil, err
		}
		out[i] = checked
	}
	return out, nil
}

// names returns the names of the properties of an object, in their order.
func names(n *jsonschema.Schema) []string {
	return slices.DeleteFunc(slices.Clone(n.PropertyOrder), func(name string) bool { return n.Properties[name] == nil })
}

func allowsText(n *jsonschema.Schema, text string) bool {
	length := utf8.RuneCountInString(text)
	return (n.MinLength == nil || length >= *n.MinLength) && (n.MaxLength == nil || length <= *n.MaxLength) &&
		(n.Enum == nil || slices.Contains(n.Enum, any(text)))
}

func checkNumber(n *jsonschema.Schema, path string, v any) (any, error) {
	number, ok := v.(json.Number)
	if !ok {
		return nil, mismatch(n, path, v)
	}
	f, err := number.Float64()
	if err != nil || n.Minimum != nil && f < *n.Minimum || n.Maximum != nil && f > *n.Maximum {
		return nil, mismatch(n, path, v)
	}
	if n.Type == "number" {
		return number, nil
	}
	if f != math.Trunc(f) || math.Abs(f) > maxInteger {
		return nil, mismatch(n, path, v)
	}
	return int64(f), nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
