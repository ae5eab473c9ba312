package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/schema"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

// searching are arguments with everything that a schema can say.
type searching struct {
	Query  string              `json:"query" jsonschema:"Words & <b>phrases</b>" limits:"minLength=1 maxLength=5"`
	Size   int                 `json:"size,omitempty" limits:"minimum=1 maximum=100 default=20"`
	Boost  float64             `json:"boost,omitempty" limits:"maximum=10"`
	Exact  *bool               `json:"exact,omitempty"`
	Sort   string              `json:"sort,omitempty" limits:"enum=score|date|size"`
	Fields []string            `json:"fields,omitempty" limits:"maxItems=2 oneOrMany"`
	IDs    []any               `json:"ids,omitempty"`
	Extra  map[string]any      `json:"extra,omitempty"`
	Tags   map[string][]string `json:"tags,omitempty"`
	Geo    *place              `json:"geo,omitempty"`
}

type place struct {
	Point    string  `json:"point"`
	Distance float64 `json:"distance,omitempty" limits:"minimum=0.5 default=1.5"`
}

// of returns the schema of a T.
func of[T any](t *testing.T, adjust func(*jsonschema.Schema)) *schema.Schema {
	t.Helper()
	s, err := schema.For[T](adjust)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// longFields changes the schema of searching: a field has at least 2 characters.
func longFields(s *jsonschema.Schema) { s.Properties["fields"].Items.MinLength = jsonschema.Ptr(2) }

func TestMarshalJSON(t *testing.T) {
	type embedded struct {
		A []int `json:"a,omitempty" limits:"maxItems=3"`
	}
	type small struct {
		B string `json:"b" jsonschema:"an <x> & \\u003c" limits:"minLength=1 enum=x|y default=x"`
		embedded
		O      map[string]any          `json:"o,omitempty"`
		P      *struct{ Q, R *bool }   `json:"p,omitempty"`
		L      []struct{ M []float64 } `json:"l,omitempty"`
		Hidden bool                    `json:"-"`
	}
	const b = `"b":{"type":"string","description":"an <x> & \\u003c","default":"x","enum":["x","y"],"minLength":1}`
	const a = `"a":{"type":"array","items":{"type":"integer"},"maxItems":3}`
	const p = `"p":{"type":"object","properties":{"Q":{"type":"boolean"},"R":{"type":"boolean"}},"required":["Q","R"],"additionalProperties":false}`
	const l = `"l":{"type":"array","items":{"type":"object","properties":{"M":{"type":"array","items":{"type":"number"}}},"required":["M"],"additionalProperties":false}}`
	for _, tc := range []struct {
		schema *schema.Schema
		want   string
	}{
		{of[struct{}](t, nil), `{"type":"object","properties":{},"additionalProperties":false}`},
		{of[small](t, nil), `{"type":"object","properties":{` + b + `,` + a +
			`,"o":{"type":"object","additionalProperties":true},` +
			p + `,` + l + `},"required":["b"],"additionalProperties":false}`},
		{of[small](t, func(s *jsonschema.Schema) {
			s.Properties = map[string]*jsonschema.Schema{"a": s.Properties["a"]}
			s.Required = nil
		}), `{"type":"object","properties":{` + a + `},"additionalProperties":false}`},
	} {
		got, err := tc.schema.MarshalJSON()
		if d := cmp.Diff(tc.want, string(got)); d != "" || err != nil {
			t.Errorf("MarshalJSON() = %v (-want +got):\n%s", err, d)
		}
	}
}

func TestInvalidTags(t *testing.T) {
	for _, tc := range []struct {
		of   func(func(*jsonschema.Schema)) (*schema.Schema, error)
		want string
	}{
		{schema.For[int], "arguments of type integer are not an object"},
		{schema.For[struct {
			A chan int `json:"a"`
		}], "unsupported"},
		{schema.For[struct {
			A string `json:"a" limits:"minimum=1"`
		}], `limits of argument "a": a value of type "string" cannot have "minimum"`},
		{schema.For[struct {
			A string `json:"a" limits:"pattern=x"`
		}], `cannot have "pattern"`},
		{schema.For[struct {
			A int `json:"a" limits:"maximum=x"`
		}], `limits of argument "a": maximum=x: `},
		{schema.For[struct {
			A int `json:"a" limits:"maximum"`
		}], `limits of argument "a": maximum: `},
		{schema.For[struct {
			A int `json:"a" limits:"maximum=5 default=6"`
		}], `limits of argument "a": argument "a": got 6, want an integer of at most 5`},
		{schema.For[struct {
			A []struct {
				B bool `json:"b" limits:"default=1"`
			} `json:"a"`
		}], `argument "b": got 1, want true or false`},
	} {
		if _, err := tc.of(nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("For = %v, want an error with %s", err, tc.want)
		}
	}
}

func TestCheckAccepts(t *testing.T) {
	searching := of[searching](t, longFields)
	for _, tc := range []struct{ args, want string }{
		{`{"query":"x"}`, `{"query":"x","size":20}`},
		{` {"size" : 5.0, "query":"<a>&"} `, `{"query":"<a>&","size":5}`},
		{`{"query":"üüüüü","size":1e2}`, `{"query":"üüüüü","size":100}`},
		{`{"query":"x","boost":-1.50,"exact":false}`, `{"boost":-1.50,"exact":false,"query":"x","size":20}`},
		{`{"query":"x","fields":"ab","ids":[1,"a",null]}`,
			`{"fields":["ab"],"ids":[1,"a",null],"query":"x","size":20}`},
		{`{"query":"x","fields":[]}`, `{"fields":[],"query":"x","size":20}`},
		{`{"query":"x","extra":{"any":{"thing":1}}}`, `{"extra":{"any":{"thing":1}},"query":"x","size":20}`},
		{`{"query":"x","tags":{"a":["b"],"c":[]}}`, `{"query":"x","size":20,"tags":{"a":["b"],"c":[]}}`},
		{`{"query":"x","geo":{"point":"1,2"}}`, `{"geo":{"distance":1.5,"point":"1,2"},"query":"x","size":20}`},
	} {
		if got, err := searching.Check([]byte(tc.args)); err != nil || string(got) != tc.want {
			t.Errorf("Check(%s) = %s, %v, want %s", tc.args, got, err, tc.want)
		}
	}
	none := of[struct{}](t, nil)
	for _, args := range []string{``, `null`, `{}`} {
		if got, err := none.Check([]byte(args)); err != nil || string(got) != `{}` {
			t.Errorf("Check(%q) of a schema without properties = %s, %v, want {}", args, got, err)
		}
	}
}

func TestCheckErrors(t *testing.T) {
	searching := of[searching](t, longFields)
	const query, size, sort, list = "a string of 1 to 5 characters", "an integer from 1 to 100",
		`one of "score", "date" or "size"`, "a list of at most 2 items"
	long := strings.Repeat("ä", 100)
	for _, tc := range []struct{ args, argument, message, want string }{
		{`{`, "", "the arguments are not valid JSON", ""},
		{`[]`, "", "the arguments of a tool must be an object", ""},
		{`"x"`, "", "the arguments of a tool must be an object", ""},
		{``, "query", `argument "query" is missing: want ` + query, query},
		{`null`, "query", `argument "query" is missing: want ` + query, query},
		{`{"query":null}`, "query", `argument "query": got null, want ` + query, query},
		{`{"query":"123456"}`, "query", `argument "query": got "123456", want ` + query, query},
		{`{"query":"` + long + `"}`, "query", `argument "query": got "` + long[:2*79] + `…, want ` + query, query},
		{`{"query":"x","size":0}`, "size", `argument "size": got 0, want ` + size, size},
		{`{"query":"x","size":2.5}`, "size", `argument "size": got 2.5, want ` + size, size},
		{`{"query":"x","size":"5"}`, "size", `argument "size": got "5", want ` + size, size},
		{`{"query":"x","size":1e400}`, "size", `argument "size": got 1e400, want ` + size, size},
		{`{"query":"x","boost":11}`, "boost", `argument "boost": got 11, want a number of at most 10`,
			"a number of at most 10"},
		{`{"query":"x","exact":"true"}`, "exact", `argument "exact": got "true", want true or false`, "true or false"},
		{`{"query":"x","sort":"title"}`, "sort", `argument "sort": got "title", want ` + sort, sort},
		{`{"query":"x","fields":["ab","cd","ef"]}`, "fields", `argument "fields": got ["ab","cd","ef"], want ` + list,
			list},
		{`{"query":"x","fields":5}`, "fields", `argument "fields": got 5, want ` + list, list},
		{`{"query":"x","fields":["ab","c"]}`, "fields[1]",
			`argument "fields[1]": got "c", want a string of at least 2 characters`,
			"a string of at least 2 characters"},
		{`{"query":"x","ids":"a"}`, "ids", `argument "ids": got "a", want a list`, "a list"},
		{`{"query":"x","extra":[]}`, "extra", `argument "extra": got [], want an object`, "an object"},
		{`{"query":"x","tags":{"a":["b"],"c":[1]}}`, "tags.c[0]", `argument "tags.c[0]": got 1, want a string`,
			"a string"},
		{`{"query":"x","tags":{"` + long + `":null}}`, "tags." + long[:160] + "…",
			`argument "tags.` + long[:160] + `…": got null, want a list`, "a list"},
		{`{"query":"x","geo":{}}`, "geo.point", `argument "geo.point" is missing: want a string`, "a string"},
		{`{"query":"x","geo":{"point":"","distance":0}}`, "geo.distance",
			`argument "geo.distance": got 0, want a number of at least 0.5`, "a number of at least 0.5"},
		{`{"query":"x","geo":{"pont":1}}`, "geo.pont", `there is no argument "geo.pont", did you mean "geo.point"?`,
			"geo.point"},
		{`{"query":"x","Size":5}`, "Size", `there is no argument "Size", did you mean "size"?`, "size"},
		{`{"q":1}`, "q", `there is no argument "q", there are query, size, boost, exact, sort, fields, ids, extra, tags, geo`, "no such argument"},
		{`{"` + long + `":1}`, long[:160] + "…", `there is no argument "` + long[:160] +
			`…", there are query, size, boost, exact, sort, fields, ids, extra, tags, geo`, "no such argument"},
	} {
		_, err := searching.Check([]byte(tc.args))
		e, ok := errors.AsType[*schema.Error](err)
		if !ok || !errors.Is(err, errkind.Invalid) {
			t.Errorf("Check(%s) = %v, want a *schema.Error of kind Invalid", tc.args, err)
			continue
		}
		want := &schema.Error{Argument: tc.argument, Message: tc.message, Want: tc.want}
		if d := cmp.Diff(want, e); d != "" {
			t.Errorf("Check(%s) (-want +got):\n%s", tc.args, d)
		}
		if e.Error() != tc.message {
			t.Errorf("Check(%s) has the message %q, want %q", tc.args, e.Error(), tc.message)
		}
	}
}

// The error describes what is allowed.
func TestCheckWant(t *testing.T) {
	for _, tc := range []struct {
		schema *schema.Schema
		want   string
	}{
		{of[struct{ A string }](t, nil), "a string"},
		{of[struct {
			A string `json:"A" limits:"minLength=1"`
		}](t, nil), "a string that is not empty"},
		{of[struct {
			A string `json:"A" limits:"minLength=3"`
		}](t, nil), "a string of at least 3 characters"},
		{of[struct {
			A string `json:"A" limits:"maxLength=9"`
		}](t, nil), "a string of at most 9 characters"},
		{of[struct {
			A string `json:"A" limits:"minLength=2 maxLength=9"`
		}](t, nil), "a string of 2 to 9 characters"},
		{of[struct{ A int }](t, nil), "an integer"},
		{of[struct {
			A int `json:"A" limits:"minimum=-1"`
		}](t, nil), "an integer of at least -1"},
		{of[struct{ A float64 }](t, nil), "a number"},
		{of[struct{ A map[string]any }](t, nil), "an object"},
		{of[struct{ A any }](t, nil), "a value"},
	} {
		_, err := tc.schema.Check(nil)
		if e, ok := errors.AsType[*schema.Error](err); !ok || e.Want != tc.want {
			t.Errorf("Check of a missing argument = %v, want an error with Want %s", err, tc.want)
		}
	}
}
