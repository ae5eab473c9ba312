package invoke

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// An argumentSchema is the part of an argument's schema that is read.
type argumentSchema struct {
	Type  json.RawMessage `json:"type"` // a name, or a list of names
	Items json.RawMessage `json:"items"`
}

// types returns the permitted types, or none if the schema does not restrict
// them.
func (s argumentSchema) types() []string {
	var one string
	if json.Unmarshal(s.Type, &one) == nil {
		return []string{one}
	}
	var many []string
	_ = json.Unmarshal(s.Type, &many)
	return many
}

// Arguments returns the arguments of a tool from KEY=VALUE pairs. The schema
// determines how a value is read: if only strings are permitted, it is a
// string; otherwise it is JSON if it is valid JSON, and a string if not. Values
// are not checked further, because the tool checks them itself. If a key that
// takes no list is given twice, the error is of kind errkind.Invalid.
func Arguments(inputSchema json.RawMessage, pairs []string) (json.RawMessage, error) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	// A schema that cannot be read does not restrict the types.
	_ = json.Unmarshal(inputSchema, &schema)
	values := map[string][]json.RawMessage{}
	lists := map[string]bool{}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		var s argumentSchema
		_ = json.Unmarshal(schema.Properties[key], &s)
		raw := typedValue(s.types(), value)
		if slices.Contains(s.types(), "array") && !strings.HasPrefix(strings.TrimSpace(value), "[") {
			lists[key] = true
			var item argumentSchema
			_ = json.Unmarshal(s.Items, &item)
			raw = typedValue(item.types(), value)
		}
		values[key] = append(values[key], raw)
	}
	object := map[string]json.RawMessage{}
	for key, given := range values {
		switch {
		case lists[key]:
			list, err := json.Marshal(given)
			if err != nil {
				return nil, fmt.Errorf("writing argument %q: %w", key, err)
			}
			object[key] = list
		case len(given) > 1:
			return nil, fmt.Errorf("%s is given %d times, and takes no list: %w", spell.Quote(key), len(given),
				errkind.Invalid)
		default:
			object[key] = given[0]
		}
	}
	return json.Marshal(object)
}

// typedValue returns one value as JSON.
func typedValue(types []string, value string) json.RawMessage {
	onlyText := len(types) > 0 && !slices.ContainsFunc(types,
		func(t string) bool { return t != "string" && t != "null" })
	if !onlyText && json.Valid([]byte(value)) {
		return json.RawMessage(value)
	}
	text, _ := json.Marshal(value) // a string: cannot fail
	return text
}
