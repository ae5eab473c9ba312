package schema_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"knowhow/internal/schema"
)

// FuzzCheck checks arguments against a schema. Accepted arguments must decode
// into the struct of a handler, and errors must have a bounded length.
func FuzzCheck(f *testing.F) {
	one, ten := 1.0, 10.0
	arguments := schema.Schema{Type: "object", Properties: []schema.Property{
		{Name: "q", Required: true, Schema: schema.Schema{Type: "string", MinLength: 1, MaxLength: 5}},
		{Name: "n", Schema: schema.Schema{Type: "integer", Minimum: &one, Maximum: &ten, Default: 3}},
		{Name: "big", Schema: schema.Schema{Type: "integer"}},
		{Name: "f", Schema: schema.Schema{Type: "number"}},
		{Name: "l", Schema: schema.Schema{Type: "array", Items: &schema.Schema{Type: "string"}, OneOrMany: true, MaxItems: 2}},
		{Name: "o", Schema: schema.Schema{Type: "object", Properties: []schema.Property{{Name: "b", Schema: schema.Schema{Type: "boolean"}}}}},
	}}
	for _, seed := range []string{`{"q":"x"}`, `{"q":"x","n":5.0,"big":1e15,"f":-1e-7,"l":"a","o":{"b":true}}`, `null`, `[]`, `{"n":1e400}`, `{"Q":""}`, `{"q":"x","big":9007199254740993}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		checked, err := arguments.Check(raw)
		if err != nil {
			if len(err.Error()) > 2000 {
				t.Fatalf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		var in struct {
			Q   string   `json:"q"`
			N   int      `json:"n"`
			Big int64    `json:"big"`
			F   float64  `json:"f"`
			L   []string `json:"l"`
			O   struct {
				B bool `json:"b"`
			} `json:"o"`
		}
		dec := json.NewDecoder(bytes.NewReader(checked))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&in); err != nil {
			t.Fatalf("Check(%s) = %s, which does not decode: %v", raw, checked, err)
		}
		if in.Q == "" || len([]rune(in.Q)) > 5 || in.N < 1 || in.N > 10 || len(in.L) > 2 {
			t.Fatalf("Check(%s) decodes to %+v, which is out of bounds", raw, in)
		}
		if again, err := arguments.Check(checked); err != nil || !bytes.Equal(again, checked) {
			t.Fatalf("Check(%s) = %s, but Check of that = %s, %v", raw, checked, again, err)
		}
	})
}
