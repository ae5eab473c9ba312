package schema_test

import (
	"errors"
	"strings"
	"testing"

	"knowhow/internal/errkind"
	"knowhow/internal/schema"

	"github.com/google/go-cmp/cmp"
)

func ptr(f float64) *float64 { return &f }

// searching are arguments with everything that a schema can say.
var searching = schema.Schema{Type: "object", Properties: []schema.Property{
	{Name: "query", Required: true, Schema: schema.Schema{Type: "string", Description: "Words & <b>phrases</b>", MinLength: 1, MaxLength: 5}},
	{Name: "size", Schema: schema.Schema{Type: "integer", Minimum: ptr(1), Maximum: ptr(100), Default: 20}},
	{Name: "boost", Schema: schema.Schema{Type: "number", Maximum: ptr(10)}},
	{Name: "exact", Schema: schema.Schema{Type: "boolean"}},
	{Name: "sort", Schema: schema.Schema{Type: "string", Enum: []string{"score", "date", "size"}}},
	{Name: "fields", Schema: schema.Schema{Type: "array", Items: &schema.Schema{Type: "string", MinLength: 2}, MaxItems: 2, OneOrMany: true}},
	{Name: "ids", Schema: schema.Schema{Type: "array"}},
	{Name: "extra", Schema: schema.Schema{Type: "object"}},
	{Name: "geo", Schema: schema.Schema{Type: "object", Properties: []schema.Property{
		{Name: "point", Required: true, Schema: schema.Schema{Type: "string"}},
		{Name: "distance", Schema: schema.Schema{Type: "number", Minimum: ptr(0.5), Default: 1.5}},
	}}},
}}

func TestRender(t *testing.T) {
	small := schema.Schema{Type: "object", Properties: []schema.Property{
		{Name: "b", Required: true, Schema: schema.Schema{Type: "string", Description: "<x>", MinLength: 1, Enum: []string{"x", "y"}}},
		{Name: "a", Schema: schema.Schema{Type: "array", MaxItems: 3, Items: &schema.Schema{Type: "integer", Minimum: ptr(1), Maximum: ptr(2)}, Default: []int{1}}},
		{Name: "o", Schema: schema.Schema{Type: "object"}},
		{Name: "p", Schema: schema.Schema{Type: "object", Properties: []schema.Property{{Name: "q", Schema: schema.Schema{Type: "boolean"}}}}},
	}}
	const b = `"b":{"type":"string","description":"<x>","minLength":1,"enum":["x","y"]}`
	const a = `"a":{"type":"array","items":{"type":"integer","minimum":1,"maximum":2},"maxItems":3,"default":[1]}`
	for _, tc := range []struct {
		schema schema.Schema
		want   string
	}{
		{schema.Schema{Type: "object"}, `{"type":"object","properties":{},"additionalProperties":false}`},
		{small, `{"type":"object","properties":{` + b + `,` + a + `,"o":{"type":"object"},` +
			`"p":{"type":"object","properties":{"q":{"type":"boolean"}},"additionalProperties":false}},"required":["b"],"additionalProperties":false}`},
	} {
		if d := cmp.Diff(tc.want, string(tc.schema.Render())); d != "" {
			t.Errorf("Render() (-want +got):\n%s", d)
		}
	}
}

func TestCheckAccepts(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{`{"query":"x"}`, `{"query":"x","size":20}`},
		{` {"size" : 5.0, "query":"<a>&"} `, `{"query":"<a>&","size":5}`},
		{`{"query":"üüüüü","size":1e2}`, `{"query":"üüüüü","size":100}`},
		{`{"query":"x","boost":-1.50,"exact":false}`, `{"boost":-1.50,"exact":false,"query":"x","size":20}`},
		{`{"query":"x","fields":"ab","ids":[1,"a",null]}`, `{"fields":["ab"],"ids":[1,"a",null],"query":"x","size":20}`},
		{`{"query":"x","fields":[]}`, `{"fields":[],"query":"x","size":20}`},
		{`{"query":"x","extra":{"any":{"thing":1}}}`, `{"extra":{"any":{"thing":1}},"query":"x","size":20}`},
		{`{"query":"x","geo":{"point":"1,2"}}`, `{"geo":{"distance":1.5,"point":"1,2"},"query":"x","size":20}`},
	} {
		if got, err := searching.Check([]byte(tc.args)); err != nil || string(got) != tc.want {
			t.Errorf("Check(%s) = %s, %v, want %s", tc.args, got, err, tc.want)
		}
	}
	none := schema.Schema{Type: "object"}
	for _, args := range []string{``, `null`, `{}`} {
		if got, err := none.Check([]byte(args)); err != nil || string(got) != `{}` {
			t.Errorf("Check(%q) of a schema without properties = %s, %v, want {}", args, got, err)
		}
	}
}

func TestCheckErrors(t *testing.T) {
	const query, size, sort, list = "a string of 1 to 5 characters", "an integer from 1 to 100", `one of "score", "date" or "size"`, "a list of at most 2 items"
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
		{`{"query":"x","boost":11}`, "boost", `argument "boost": got 11, want a number of at most 10`, "a number of at most 10"},
		{`{"query":"x","exact":"true"}`, "exact", `argument "exact": got "true", want true or false`, "true or false"},
		{`{"query":"x","sort":"title"}`, "sort", `argument "sort": got "title", want ` + sort, sort},
		{`{"query":"x","fields":["ab","cd","ef"]}`, "fields", `argument "fields": got ["ab","cd","ef"], want ` + list, list},
		{`{"query":"x","fields":5}`, "fields", `argument "fields": got 5, want ` + list, list},
		{`{"query":"x","fields":["ab","c"]}`, "fields[1]", `argument "fields[1]": got "c", want a string of at least 2 characters`, "a string of at least 2 characters"},
		{`{"query":"x","ids":"a"}`, "ids", `argument "ids": got "a", want a list`, "a list"},
		{`{"query":"x","extra":[]}`, "extra", `argument "extra": got [], want an object`, "an object"},
		{`{"query":"x","geo":{}}`, "geo.point", `argument "geo.point" is missing: want a string`, "a string"},
		{`{"query":"x","geo":{"point":"","distance":0}}`, "geo.distance", `argument "geo.distance": got 0, want a number of at least 0.5`, "a number of at least 0.5"},
		{`{"query":"x","geo":{"pont":1}}`, "geo.pont", `there is no argument "geo.pont", did you mean "geo.point"?`, "geo.point"},
		{`{"query":"x","Size":5}`, "Size", `there is no argument "Size", did you mean "size"?`, "size"},
		{`{"q":1}`, "q", `there is no argument "q", there are query, size, boost, exact, sort, fields, ids, extra, geo`, "no such argument"},
		{`{"` + long + `":1}`, long[:160] + "…", `there is no argument "` + long[:160] + `…", there are query, size, boost, exact, sort, fields, ids, extra, geo`, "no such argument"},
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
		schema schema.Schema
		want   string
	}{
		{schema.Schema{Type: "string"}, "a string"},
		{schema.Schema{Type: "string", MinLength: 1}, "a string that is not empty"},
		{schema.Schema{Type: "string", MaxLength: 9}, "a string of at most 9 characters"},
		{schema.Schema{Type: "string", MinLength: 2, MaxLength: 9}, "a string of 2 to 9 characters"},
		{schema.Schema{Type: "integer"}, "an integer"},
		{schema.Schema{Type: "integer", Minimum: ptr(-1)}, "an integer of at least -1"},
		{schema.Schema{Type: "number"}, "a number"},
		{schema.Schema{Type: "object"}, "an object"},
	} {
		s := schema.Schema{Type: "object", Properties: []schema.Property{{Name: "a", Required: true, Schema: tc.schema}}}
		_, err := s.Check(nil)
		if e, ok := errors.AsType[*schema.Error](err); !ok || e.Want != tc.want {
			t.Errorf("Check of a missing %+v = %v, want an error with Want %s", tc.schema, err, tc.want)
		}
	}
}
