package invoke

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"knowhow/internal/errkind"
	"knowhow/internal/spell"
)

// An argumentSchema is what is known of one argument of a tool.
type argumentSchema struct {
	Type  json.RawMessage `json:"type"` // a name, or a list of names
	Items json.RawMessage `json:"items"`
}

// types returns the types that are allowed, none where nothing is said.
func (s argumentSchema) types() []string {
	var one string
	if json.Unmarshal(s.Type, &one) == nil {
		return []string{one}
	}
	var many []string
	_ = json.Unmarshal(s.Type, &many)
	return many
}

// Arguments makes the arguments of a tool of KEY=VALUE pairs. What a value means, the
// schema says: text stays as it is where text is allowed alone; else a value that
// is JSON is that, and any other is text. What the tool makes of it is its own
// affair: it knows its schema best. The error is of kind errkind.Invalid, where
// a key is given twice that takes no list.
func Arguments(inputSchema json.RawMessage, pairs []string) (json.RawMessage, error) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	// A schema that cannot be read says nothing.
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
			return nil, fmt.Errorf("%s is given %d times, and takes no list: %w", spell.Quote(key), len(given), errkind.Invalid)
		default:
			object[key] = given[0]
		}
	}
	return json.Marshal(object)
}

// typedValue returns one value as JSON.
func typedValue(types []string, value string) json.RawMessage {
	onlyText := len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return t != "string" && t != "null" })
	if !onlyText && json.Valid([]byte(value)) {
		return json.RawMessage(value)
	}
	text, _ := json.Marshal(value) // of a string: cannot fail
	return text
}
