package mcpserver

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
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":""}}`,
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
		if len(p.messages) == 0 {
			if len(p.bad) == 0 {
				t.Fatalf("%q gives neither messages nor answers", data)
			}
			return
		}
		for _, m := range p.messages {
			r, ok := m.(*jsonrpc.Request)
			if !ok {
				continue
			}
			cancelTarget(r)
			if e := checkRequest(r, !pinned); e != nil {
				continue // refused before it is written again
			}
			adapt(r, pinned)
			again, err := jsonrpc.EncodeMessage(r)
			if err != nil {
				t.Fatalf("encoding what %q says: %v", data, err)
			}
			if q := parse(again, pinned); len(q.messages) != 1 || len(q.bad) > 0 {
				t.Fatalf("%q became %q, which says something else", data, again)
			}
		}
	})
}

// What a client accepts in two headers, or in one list, is what it accepts in
// either.
func FuzzAccepts(f *testing.F) {
	for _, s := range []string{"", "*/*", "application/json", "text/event-stream;q=0.1, a/b", "text/*,",
		" APPLICATION/* ;x=\",\""} {
		f.Add(s, "application/json")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		aJSON, aStream := accepts([]string{a})
		bJSON, bStream := accepts([]string{b})
		for _, values := range [][]string{{a, b}, {b, a}, {a + "," + b}} {
			asJSON, asStream := accepts(values)
			if asJSON != (aJSON || bJSON) || asStream != (aStream || bStream) {
				t.Errorf("accepts(%q) = %t, %t; want %t, %t", values, asJSON, asStream, aJSON || bJSON, aStream ||
					bStream)
			}
		}
	})
}
