package compact_test

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/compact"
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

// Bytes that were returned do not change when the object grows.
func TestObjectBytesAreACopy(t *testing.T) {
	o := &compact.Object{}
	o.Add("a", 1)
	first := o.Bytes()
	o.Add("b", 2)
	if string(first) != `{"a":1}` || string(o.Bytes()) != `{"a":1,"b":2}` {
		t.Errorf("Bytes = %s, then %s, want {\"a\":1}, then {\"a\":1,\"b\":2}", first, o.Bytes())
	}
}

// encoded returns the encoding of v by encoding/json.
func encoded(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// The values that are encoded without encoding/json have the same encoding.
func TestMarshalAlike(t *testing.T) {
	var all bytes.Buffer
	for r := range rune(0x3000) {
		all.WriteRune(r)
	}
	for _, v := range []any{
		nil, true, false, 0, -7, int64(math.MinInt64), int64(math.MaxInt64), "", all.String(), "\xff\xc3(\xe2\x80",
		"a\u2028\u2029b", "\U0001F600",
		[]string(nil), []string{}, []string{"a", "\"<\n"},
		0.0, math.Copysign(0, -1), 1.5, -2.25, 1e-6, 9.9e-7, 1e20, 1e21, 100.0, 1.0865598, math.MaxFloat64,
		math.SmallestNonzeroFloat64, json.Number("1.50"), map[string]any{"b": "<", "a": 1},
	} {
		if got, err := compact.Marshal(v); err != nil || string(got) != encoded(t, v) {
			t.Errorf("Marshal(%#v) = %s, %v, want %s", v, got, err, encoded(t, v))
		}
	}
}

// FuzzString compares AppendString with encoding/json.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "a\"b\\c", "\x00\x1f\x7f\x80", "\u2027\u2028\u2029\u202a", "検索 \xe6\xa4", "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := string(compact.AppendString(nil, s)), encoded(t, s); got != want {
			t.Errorf("AppendString(%q) = %s, want %s", s, got, want)
		}
	})
}

func TestAppend(t *testing.T) {
	b := []byte("x")
	if got, err := compact.Append(b, math.NaN()); err == nil || string(got) != "x" {
		t.Errorf("Append(x, NaN) = %s, %v, want x and an error", got, err)
	}
	if got, err := compact.Append(b, []any{1}); err != nil || string(got) != "x[1]" {
		t.Errorf("Append(x, [1]) = %s, %v, want x[1]", got, err)
	}
}

// An object in an object has the same encoding as its bytes.
func TestObjectInside(t *testing.T) {
	inner := &compact.Object{}
	inner.Add("<", "&")
	var none *compact.Object
	for _, v := range []any{inner, inner.Bytes(), none, []*compact.Object{inner, inner}, []*compact.Object{},
		[]*compact.Object(nil),
		map[string]any{"a": inner}, struct{ O *compact.Object }{inner}} {
		o := &compact.Object{}
		o.Add("v", v)
		want := `{"v":` + encoded(t, v) + `}`
		if got := string(o.Bytes()); got != want || o.Len() != len(want) {
			t.Errorf("Object of %#v = %s of %d bytes, want %s", v, got, o.Len(), want)
		}
		if got, err := compact.Marshal(o); err != nil || string(got) != want {
			t.Errorf("Marshal of an Object = %s, %v, want %s", got, err, want)
		}
	}
}
