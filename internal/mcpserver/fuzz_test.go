package mcpserver

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// FuzzParse feeds lines to the reader of messages. Whatever it takes for
// JSON-RPC must survive being written and read again, and everything else must
// have an answer that is JSON.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		``, `{`, `[]`, `[1]`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":"a","method":"resources/read","params":{"uri":"x","cursor":"1","_meta":null}}`,
		`{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`, `{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":""}}`,
		`[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}},{"jsonrpc":"2.0","id":2,"result":{}}]`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, pinned bool) {
		p := parse(data, pinned)
		for _, b := range p.bad {
			if !json.Valid(b) {
				t.Fatalf("answer %q is no JSON", b)
			}
		}
		if len(p.msgs) == 0 {
			if len(p.bad) == 0 {
				t.Fatalf("%q gives neither messages nor answers", data)
			}
			return
		}
		for _, m := range p.msgs {
			if r, ok := m.(*jsonrpc.Request); ok {
				cancelTarget(r)
				if r.Method == "" {
					return // refused as unknown before it is written again
				}
			}
		}
		again, err := p.encode()
		if err != nil {
			t.Fatalf("encoding what %q says: %v", data, err)
		}
		if q := parse(again, pinned); len(q.msgs) != len(p.msgs) || len(q.bad) > 0 {
			t.Fatalf("%q became %q, which says something else", data, again)
		}
	})
}

// FuzzArguments feeds arguments to the check. What it passes must be what a
// handler's struct takes, and what it refuses must be explained in bounds.
func FuzzArguments(f *testing.F) {
	one, ten := 1.0, 10.0
	schema := Schema{Type: "object", Properties: []Property{
		{Name: "q", Required: true, Schema: Schema{Type: "string", MinLength: 1, MaxLength: 5}},
		{Name: "n", Schema: Schema{Type: "integer", Minimum: &one, Maximum: &ten, Default: 3}},
		{Name: "big", Schema: Schema{Type: "integer"}},
		{Name: "f", Schema: Schema{Type: "number"}},
		{Name: "l", Schema: Schema{Type: "array", Items: &Schema{Type: "string"}, OneOrMany: true, MaxItems: 2}},
		{Name: "o", Schema: Schema{Type: "object", Properties: []Property{{Name: "b", Schema: Schema{Type: "boolean"}}}}},
	}}
	for _, seed := range []string{`{"q":"x"}`, `{"q":"x","n":5.0,"big":1e15,"f":-1e-7,"l":"a","o":{"b":true}}`, `null`, `[]`, `{"n":1e400}`, `{"Q":""}`, `{"q":"x","big":9007199254740993}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		checked, err := checkArguments(&schema, raw)
		if err != nil {
			if len(err.Error()) > 4*maxMessage+200 {
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
			t.Fatalf("%s passed as %s, which does not decode: %v", raw, checked, err)
		}
		if in.Q == "" || len([]rune(in.Q)) > 5 || in.N < 1 || in.N > 10 || len(in.L) > 2 {
			t.Fatalf("%s passed as %+v, which is out of bounds", raw, in)
		}
		if again, err := checkArguments(&schema, checked); err != nil || !bytes.Equal(again, checked) {
			t.Fatalf("%s became %s, which became %s, %v", raw, checked, again, err)
		}
	})
}

func TestNearest(t *testing.T) {
	known := []string{"fess_docs_search", "fess_docs_suggest", "kb_search", "kb_upload_start"}
	for _, tc := range []struct{ name, want string }{
		{"fess_docs_serach", "fess_docs_search"}, {"search", "fess_docs_search kb_search"}, {"kbSearch", "kb_search"},
		{"kb-upload-start", "kb_upload_start"}, {"zzzzzz", ""}, {"", ""}, {strings.Repeat("x", 1<<20), ""},
	} {
		if got := strings.Join(nearest(tc.name, known, 2), " "); got != tc.want {
			t.Errorf("nearest(%.20q) = %q, want %q", tc.name, got, tc.want)
		}
	}
}
