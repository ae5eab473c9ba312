package compact_test

import (
	"encoding/json"
	"math"
	"testing"

	"knowhow/internal/compact"
)

func TestMarshal(t *testing.T) {
	for _, tc := range []struct {
		value any
		want  string
	}{
		{nil, `null`},
		{"<a> & \"b\"\n", `"<a> & \"b\"\n"`},
		{"\xff", `"\ufffd"`},
		{map[string]any{"b": []int{1, 2}, "a": nil}, `{"a":null,"b":[1,2]}`},
		{[]json.RawMessage{json.RawMessage("{ \"<\" : 1 }")}, `[{"<":1}]`},
	} {
		if got, err := compact.Marshal(tc.value); err != nil || string(got) != tc.want {
			t.Errorf("Marshal(%v) = %s, %v, want %s", tc.value, got, err, tc.want)
		}
	}
	if got, err := compact.Marshal(math.NaN()); err == nil {
		t.Errorf("Marshal(NaN) = %s, want an error", got)
	}
}

func TestObject(t *testing.T) {
	type pair struct {
		name  string
		value any
	}
	inner := &compact.Object{}
	inner.Add("<", "&")
	for _, tc := range []struct {
		pairs []pair
		want  string
	}{
		{nil, `{}`},
		{[]pair{{"b", 1}, {"a", "<x>"}}, `{"b":1,"a":"<x>"}`},
		{[]pair{{"a\"\n>", nil}}, `{"a\"\n>":null}`},
		{[]pair{{"o", inner.Bytes()}, {"list", []string{}}}, `{"o":{"<":"&"},"list":[]}`},
		{[]pair{{"nan", math.NaN()}}, `{}`},
		{[]pair{{"a", 1}, {"nan", math.Inf(1)}, {"f", func() {}}, {"b", 2}}, `{"a":1,"b":2}`},
		{[]pair{{"n", json.Number("x")}, {"raw", json.RawMessage("{")}, {"b", 2}}, `{"b":2}`},
	} {
		o := &compact.Object{}
		for _, p := range tc.pairs {
			o.Add(p.name, p.value)
		}
		if got := string(o.Bytes()); got != tc.want {
			t.Errorf("Object of %v = %s, want %s", tc.pairs, got, tc.want)
		}
	}
}

// Bytes that were handed out do not change when the object grows.
func TestObjectBytesAreACopy(t *testing.T) {
	o := &compact.Object{}
	o.Add("a", 1)
	first := o.Bytes()
	o.Add("b", 2)
	if string(first) != `{"a":1}` || string(o.Bytes()) != `{"a":1,"b":2}` {
		t.Errorf("Bytes = %s, then %s, want {\"a\":1}, then {\"a\":1,\"b\":2}", first, o.Bytes())
	}
}
