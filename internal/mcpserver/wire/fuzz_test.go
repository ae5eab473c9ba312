package wire

import (
	"encoding/json"
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
		p := Parse(data, pinned)
		for _, b := range p.Bad {
			if !json.Valid(b) {
				t.Fatalf("answer %q is no JSON", b)
			}
		}
		if len(p.Msgs) == 0 {
			if len(p.Bad) == 0 {
				t.Fatalf("%q gives neither messages nor answers", data)
			}
			return
		}
		for _, m := range p.Msgs {
			if r, ok := m.(*jsonrpc.Request); ok {
				CancelTarget(r)
				if r.Method == "" {
					return // refused as unknown before it is written again
				}
			}
		}
		again, err := p.Encode()
		if err != nil {
			t.Fatalf("encoding what %q says: %v", data, err)
		}
		if q := Parse(again, pinned); len(q.Msgs) != len(p.Msgs) || len(q.Bad) > 0 {
			t.Fatalf("%q became %q, which says something else", data, again)
		}
	})
}
