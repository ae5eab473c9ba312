package schema_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/schema"
)

// FuzzCheck checks arguments against a schema. Accepted arguments must decode
// into the struct of a handler, and errors must have a bounded length.
func FuzzCheck(f *testing.F) {
	type args struct {
		Q   string   `json:"q" limits:"minLength=1 maxLength=5"`
		N   int      `json:"n,omitempty" limits:"minimum=1 maximum=10 default=3"`
		Big int64    `json:"big,omitempty"`
		F   float64  `json:"f,omitempty"`
		L   []string `json:"l,omitempty" limits:"maxItems=2 oneOrMany"`
		O   struct {
			B bool `json:"b,omitempty"`
		} `json:"o,omitzero"`
		M map[string][]int `json:"m,omitempty"`
	}
	arguments, err := schema.For[args](nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{`{"q":"x"}`, `{"q":"x","n":5.0,"big":1e15,"f":-1e-7,"l":"a","o":{"b":true},"m":{"x":[1]}}`, `null`, `[]`, `{"n":1e400}`, `{"Q":""}`, `{"q":"x","big":9007199254740993}`} {
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
		var in args
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
