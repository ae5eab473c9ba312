package searchmcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

// Every tool has a title and all hints, and schemas that every client reads: each
// value has one type, and nothing is a union.
func TestPlainSchemas(t *testing.T) {
	jobs := job.New(job.Options{Threshold: time.Minute})
	for _, revision := range []mcpserver.Revision{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		c := start(t, Options{Domain: finance, Backend: corpus(), Jobs: jobs}, revision)
		var list struct{ Tools []map[string]json.RawMessage }
		c.Call("tools/list", nil).Decode(t, &list)
		if len(list.Tools) != len(toolNames)+1 {
			t.Fatalf("%d tools, want %d", len(list.Tools), len(toolNames)+1)
		}
		for _, tool := range list.Tools {
			name := string(tool["name"])
			if tool["outputSchema"] != nil {
				t.Errorf("%s: %s has an outputSchema, want none", revision, name)
			}
			var annotations map[string]any
			if err := json.Unmarshal(tool["annotations"], &annotations); err != nil || tool["title"] == nil {
				t.Errorf("%s: %s has the title %s and the annotations %s", revision, name, tool["title"],
					tool["annotations"])
			}
			for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
				if _, ok := annotations[hint].(bool); !ok {
					t.Errorf("%s: %s has no %s", revision, name, hint)
				}
			}
			checkPlain(t, fmt.Sprintf("%s: %s", revision, name), tool["inputSchema"])
		}
	}
}

// checkPlain reports what is more than one type in a schema and below.
func checkPlain(t *testing.T, at string, raw json.RawMessage) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Errorf("%s is %s, want a schema", at, raw)
		return
	}
	var kind string
	if json.Unmarshal(members["type"], &kind) != nil || !slices.Contains([]string{"object", "string", "integer",
		"number", "boolean", "array"}, kind) {
		t.Errorf("%s has the type %s, want one type that is not null", at, members["type"])
	}
	for name, value := range members {
		switch name {
		case "properties":
			var properties map[string]json.RawMessage
			if err := json.Unmarshal(value, &properties); err != nil {
				t.Errorf("%s: properties: %v", at, err)
			}
			for property, schema := range properties {
				checkPlain(t, at+"."+property, schema)
			}
		case "items":
			checkPlain(t, at+"[]", value)
		case "type", "description", "required", "additionalProperties", "minimum", "maximum", "minLength", "maxLength",
			"maxItems", "enum", "default":
		default:
			t.Errorf("%s has %s, want none of the words that make unions", at, name)
		}
	}
}
