package skill

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

// read returns the document of a schema.
func read(t *testing.T, schema string) *document {
	t.Helper()
	root, err := parseValue([]byte(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return &document{root: root}
}

func TestExample(t *testing.T) {
	for _, tc := range []struct{ schema, want string }{
		{`{}`, `{}`},
		{`true`, `{}`},
		{`{"type":"object","properties":{"a":{},"b":{"type":"string"}}}`, `{}`},
		{`{"properties":{"b":{},"a":{}},"required":["a","b","c"]}`, `{"b":"example","a":"example","c":"example"}`},

		// What the schema gives beats what is made up, if it has the type.
		{`{"properties":{"a":{"type":"integer","default":7,"examples":[8],"enum":[9]}},"required":["a"]}`, `{"a":7}`},
		{`{"properties":{"a":{"type":"integer","default":null,"examples":["x",8],"enum":[9]}},"required":["a"]}`,
			`{"a":9}`},
		{`{"properties":{"a":{"type":"integer","default":"x","examples":["x",8]}},"required":["a"]}`, `{"a":8}`},
		{`{"properties":{"a":{"type":"integer","example":8}},"required":["a"]}`, `{"a":8}`},
		{`{"properties":{"a":{"enum":[null,"x"]}},"required":["a"]}`, `{"a":"x"}`},
		{`{"properties":{"a":{"const":{"k":1.50}}},"required":["a"]}`, `{"a":{"k":1.50}}`},
		{`{"properties":{"a":{"type":"string","default":"` + strings.Repeat("x", 2000) + `"}},"required":["a"]}`,
			`{"a":"example"}`},

		// Types.
		{`{"properties":{"a":{"type":["null","boolean"]}},"required":["a"]}`, `{"a":false}`},
		{`{"properties":{"a":{"type":"null"}},"required":["a"]}`, `{"a":null}`},
		{`{"properties":{"a":{"type":"number","minimum":2.5}},"required":["a"]}`, `{"a":3}`},
		{`{"properties":{"a":{"type":"integer","exclusiveMinimum":10,"maximum":12}},"required":["a"]}`, `{"a":11}`},
		{`{"properties":{"a":{"type":"integer","maximum":-3}},"required":["a"]}`, `{"a":-3}`},
		{`{"properties":{"a":{"type":"integer","multipleOf":25,"minimum":60}},"required":["a"]}`, `{"a":75}`},
		{`{"properties":{"when":{"type":"string","format":"date-time"}},"required":["when"]}`,
			`{"when":"2026-01-31T12:00:00Z"}`},
		{`{"properties":{"a":{"type":"integer","multipleOf":10,"maximum":-3}},"required":["a"]}`, `{"a":-10}`},
		{`{"properties":{"a":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}},"required":["a"]}`,
			`{"a":0.5}`},
		{`{"properties":{"a":{"type":"integer","minimum":1e300}},"required":["a"]}`, `{"a":1}`},

		// Names and descriptions mean nothing.
		{`{"properties":{"city":{"type":"string"},"email":{"description":"e.g. 'a@b.c'"},"limit":{"type":"integer"}},` +
			`"required":["city","email","limit"]}`, `{"city":"example","email":"example","limit":1}`},
		{`{"properties":{"a":{"type":"string","minLength":10},"b":{"type":"string","maxLength":3}},` +
			`"required":["a","b"]}`, `{"a":"examplexxx","b":"exa"}`},
		{`{"properties":{"a":{"type":"string","pattern":"^[0-9a-f]{4}-(x|y)+$"},"b":{"type":"string",` +
			`"pattern":"(?<=x)"}},"required":["a","b"]}`,
			`{"a":"aaaa-x","b":"example"}`},

		// Arrays and objects.
		{`{"properties":{"a":{"type":"array","items":{"type":"integer"}}},"required":["a"]}`, `{"a":[1]}`},
		{`{"properties":{"a":{"type":"array","items":{"type":"string"},"minItems":2}},"required":["a"]}`,
			`{"a":["example","example 2"]}`},
		{`{"properties":{"a":{"type":"array","items":{"enum":["x","y"]},"minItems":2}},"required":["a"]}`,
			`{"a":["x","y"]}`},
		{`{"properties":{"a":{"type":"array","maxItems":0}},"required":["a"]}`, `{"a":[]}`},
		{`{"properties":{"a":{"type":"object","properties":{"x":{"type":"integer"},"y":{}},"required":["x"]}},` +
			`"required":["a"]}`, `{"a":{"x":1}}`},
		{`{"properties":{"a":{"type":"object","properties":{"x":{"type":"integer"},"y":{}},"minProperties":1}},` +
			`"required":["a"]}`, `{"a":{"x":1}}`},

		// References and combinations.
		{`{"$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"},"b":{"$ref":"other.json"}},` +
			`"required":["a","b"]}`, `{"a":1,"b":"example"}`},
		{`{"definitions":{"a/b %":{"type":"boolean"}},"properties":{"a":{"$ref":"#/definitions/a~1b%20%25"}},` +
			`"required":["a"]}`, `{"a":false}`},
		{`{"allOf":[{"properties":{"a":{"type":"integer"}}},{"required":["a"]}]}`, `{"a":1}`},
		{`{"properties":{"a":{"anyOf":[{"type":"null"},{"type":"integer"}]}},"required":["a"]}`, `{"a":1}`},
		{`{"properties":{"a":{"oneOf":[{"type":"object","properties":{"k":{"const":"v"}},"required":["k"]},` +
			`{"type":"string"}]}},"required":["a"]}`, `{"a":{"k":"v"}}`},
		{`{"properties":{"a":{"type":"string"},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"a":"example"}`},

		// Schemas that no value fits or that have no end.
		{`{"properties":{"a":{"$ref":"#"}},"required":["a"]}`, strings.Repeat(`{"a":`, 9) + `{}` +
			strings.Repeat(`}`, 9)},
		{`{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}`, `{}`},
		{`{"properties":{"a":{"$ref":"#/properties/a"}},"required":["a"]}`, `{"a":"example"}`},
	} {
		if got := objectJSON(read(t, tc.schema).arguments()); got != tc.want {
			t.Errorf("example for %s = %s, want %s", tc.schema, got, tc.want)
		}
	}
}

// TestExampleBound gives schemas that ask for an enormous example.
func TestExampleBound(t *testing.T) {
	var names, props []string
	for i := range 40 {
		name := `"` + strings.Repeat("n", 50+i) + `"`
		names, props = append(names, name), append(props, name+`:{"$ref":"#"}`)
	}
	schema := `{"properties":{` + strings.Join(props, ",") + `},"required":[` + strings.Join(names, ",") + `]}`
	if got := objectJSON(read(t, schema).arguments()); len(got) > 2*maxExample || !json.Valid([]byte(got)) {
		t.Errorf("an example of %d bytes, want at most %d", len(got), 2*maxExample)
	}
	if got := read(t, strings.ReplaceAll(schema, `"#"`,
		`"#","description":"`+strings.Repeat("d", 500)+`"`)).list(); len(got) > maxList+100 ||
		!strings.HasSuffix(got, "\n- … more in the exact schema\n") {
		t.Errorf("a list of %d bytes that ends in %q, want at most %d", len(got), got[max(0, len(got)-100):],
			maxList+100)
	}
}

// TestExampleValid checks the examples for all recorded tools against their
// schemas.
func TestExampleValid(t *testing.T) {
	catalogs, _ := recorded(t)
	for _, c := range catalogs {
		for _, tool := range c.Tools {
			var schema jsonschema.Schema
			if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
				t.Errorf("%s/%s: %v", c.Server, tool.Name, err)
				continue
			}
			schema.Schema = "" // one validator for all drafts will do
			resolved, err := schema.Resolve(nil)
			if err != nil {
				t.Errorf("%s/%s: %v", c.Server, tool.Name, err)
				continue
			}
			example := objectJSON(read(t, string(tool.InputSchema)).arguments())
			var arguments map[string]any
			if err := json.Unmarshal([]byte(example), &arguments); err != nil {
				t.Errorf("%s/%s: %s: %v", c.Server, tool.Name, example, err)
				continue
			}
			if err := resolved.Validate(arguments); err != nil {
				t.Errorf("%s/%s: example %s: %v", c.Server, tool.Name, example, err)
			}
		}
	}
}

func TestList(t *testing.T) {
	for _, tc := range []struct{ schema, want string }{
		{`{}`, ``},
		{`true`, ``},
		{`false`, ``},
		{`[]`, ``},
		{`{"type":"object","properties":{},"additionalProperties":false}`, ``},
		{`{"properties":{"b":{"type":"string","description":"What\n it is."},"a":{"type":"integer","title":"A",` +
			`"default":5,"minimum":1,"maximum":10}},"required":["b"]}`,
			"- `b` (string; required): What it is.\n- `a` (integer; default 5; at least 1; at most 10): A\n"},
		{`{"properties":{"a":{"enum":["x","y z",1,null]},"b":{"const":"c"},"c":true,"d":false,"e":{}}}`,
			"- `a` (string or integer or null; one of x, \"y z\", 1, null)\n- `b` (string; always c)\n- `c` " +
				"(any)\n- `d` (nothing)\n- `e` (any)\n"},
		{`{"properties":{"a":{"type":["string","null"],"format":"uri"},"b":{"type":"string","nullable":true,` +
			`"pattern":"^a` + "`" + `$"},"c":{"type":"null"}}}`,
			"- `a` (string or null; format uri)\n- `b` (string or null; matches ``^a`$``)\n- `c` (null)\n"},
		{`{"properties":{"a":{"type":"array","items":{"type":"string","enum":["x","y"]},"minItems":1},` +
			`"b":{"items":{"type":"array","items":{"properties":{"k":{"type":"integer"}}}}}}}`,
			"- `a` (array of string; each one of x, y; items at least 1)\n- `b` (array of array of object)\n  - " +
				"`k` (integer)\n"},
		{`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]},` +
			`"b":{"anyOf":[{"type":"null"},{"type":"integer","description":"N"}]},"c":{"oneOf":[{"const":"x"},` +
			`{"const":"y"}]}}}`,
			"- `a` (string or integer or null)\n- `b` (integer or null): N\n- `c` (string; one of x, y)\n"},
		{`{"properties":{"a":{"oneOf":[{"type":"object","title":"T","properties":{"k":{}},"required":["k"]},` +
			`{"type":"string"}]}}}`,
			"- `a` (object or string)\n  - variant 1 (object): T\n    - `k` (any; required)\n"},
		{`{"properties":{"a":{},"b":{}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`,
			"- `a` (any)\n- `b` (any)\n- variant 1 (any): with `a`\n- variant 2 (any): with `b`\n"},
		{`{"allOf":[{"properties":{"a":{"$ref":"#/$defs/x"}}},{"required":["a"]}],"$defs":{"x":{"type":"boolean",` +
			`"description":"D"}}}`,
			"- `a` (boolean; required): D\n"},
		{`{"additionalProperties":{"type":"string","description":"D"},"patternProperties":{"^x-":{"type":"integer"}}}`,
			"- any other name (string): D\n- names that match `^x-` (integer)\n"},
		{`{"properties":{"a":{"properties":{"b":{"properties":{"c":{"properties":{"d":{"properties":{"e":{}}}}}}}}}}}`,
			"- `a` (object)\n  - `b` (object)\n    - `c` (object)\n      - `d` (object)\n"},
		{`{"properties":{"a":{"$ref":"#"}}}`,
			"- `a` (object)\n  - `a` (object)\n    - `a` (object)\n      - `a` (object)\n"},
		{"{\"properties\":{\"a`\\n## Usage\":{\"type\":\"str\\u202eing\",\"description\":\"x\\n\\n## " +
			"Usage\\n```\",\"default\":\"a\\nb\"}}}",
			"- ``a` ## Usage`` (string; default \"a\\nb\"): x ## Usage ```\n"},
	} {
		if diff := cmp.Diff(tc.want, read(t, tc.schema).list()); diff != "" {
			t.Errorf("list of %s differs (-want +got):\n%s", tc.schema, diff)
		}
	}
}

// TestPretty checks that the exact schema is exact.
func TestPretty(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"b":1.50,"a":[1e400,"\u00e9/\/"],"b":{}}`,
			"{\n  \"b\": 1.50,\n  \"a\": [\n    1e400,\n    \"\\u00e9/\\/\"\n  ],\n  \"b\": {}\n}\n"},
		{"\"\u202e\x7f\U000e0041\"", `"\u202e\u007f\udb40\udc41"` + "\n"},
		{strings.Repeat("[", 40) + strings.Repeat(" ]", 40), strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n"},
	} {
		if got := string(pretty([]byte(tc.in))); got != tc.want {
			t.Errorf("pretty(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}
