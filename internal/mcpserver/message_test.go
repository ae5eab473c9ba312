package mcpserver

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
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
			plainCall(r, pinned)
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

// TestFrame compares responses with those of the SDK.
func TestFrame(t *testing.T) {
	text := "{\"a\":\"<b> & \\\"c\\\" \u2028 検索 \xff\n\"}"
	block := []textContent{{Type: "text", Text: text}}
	meta := mcp.ResultBase{Meta: mcp.Meta{"b": "<", "a": map[string]any{"n": 1.5, "l": []int{}}}}
	for _, id := range []any{"a<\"\u2028", float64(0), float64(-7), float64(1 << 53)} {
		id, err := jsonrpc.MakeID(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*toolResult{
			{Content: block}, {Content: []textContent{}}, {Content: append(block, block...), ResultBase: meta},
			{Content: block, ResultType: "complete", IsError: true},
			{Content: block, ResultBase: meta, IsError: true},
		} {
			want, err := sdkFrame(id, r)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := frame(id, r); !ok || string(got) != string(want) {
				t.Errorf("frame(%v, %+v) =\n%s, %t, want\n%s", id.Raw(), r, got, ok, want)
			}
		}
	}
	if got, ok := frame(jsonrpc.ID{}, &toolResult{ResultBase: mcp.ResultBase{Meta: mcp.Meta{"f": func() {}}}}); ok {
		t.Errorf("frame of what is no JSON = %s", got)
	}
	if got, ok := frame(jsonrpc.ID{}, &mcp.ListToolsResult{}); ok {
		t.Errorf("frame of a list of tools = %s", got)
	}
}

// sdkFrame is a response as the SDK makes it: it writes the result, then the
// message around it.
func sdkFrame(id jsonrpc.ID, r *toolResult) ([]byte, error) {
	var result bytes.Buffer
	enc := json.NewEncoder(&result)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	return jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Result: bytes.TrimSpace(result.Bytes())})
}

// TestPlainCall names what goes through the SDK.
func TestPlainCall(t *testing.T) {
	for _, tt := range []struct {
		message string
		pinned  bool
		want    bool
	}{
		{`{"name":"x"}`, true, true},
		{`{"name":"x","arguments":{"a":[1]}}`, false, true},
		{`{"name":"x","arguments":null,"_meta":{"progressToken":1}}`, false, true},
		{`{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, true, true},
		{`{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, false, false},
		{`{"name":"x","_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28"}}`, false, false},
		{`{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`, false, true},
		{`{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":null}}`, false, false},
		{`{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}}`, false, false},
		{`{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":5}}`, false, false},
		{`{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01","io.modelcontextprotocol/clientCapabilities":{}}}`, false, false},
		{`{"name":"x","_meta":null}`, true, false},
		{`{"name":"x","_meta":[]}`, true, false},
		{`{"name":null}`, true, false},
		{`{"name":1}`, true, false},
		{`{"Name":"x"}`, true, false},
		{`{"arguments":{}}`, true, false},
		{`{"name":"x","task":{}}`, true, false},
		{`{"name":"x","arguments":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, true, false},
		{`["x"]`, true, false},
		{`null`, true, false},
	} {
		p := parse([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":`+tt.message+`}`), tt.pinned)
		got := plainCall(p.messages[0].(*jsonrpc.Request), tt.pinned)
		if (got != nil) != tt.want {
			t.Errorf("plainCall(%.100s, %t) = %+v, want one: %t", tt.message, tt.pinned, got, tt.want)
		}
		if got != nil && (got.Name != "x" || tt.pinned && got.Meta[mcp.MetaKeyProtocolVersion] != nil) {
			t.Errorf("plainCall(%.100s, %t) = %+v, want the name x, and no revision where one is pinned", tt.message, tt.pinned, got)
		}
	}
	for _, message := range []string{`"id":1,"method":"tools/list"`, `"id":1,"method":"tools/call"`} {
		p := parse([]byte(`{"jsonrpc":"2.0",`+message+`}`), true)
		if got := plainCall(p.messages[0].(*jsonrpc.Request), true); got != nil {
			t.Errorf("plainCall({%s}) = %+v, want none", message, got)
		}
	}
}

// What a client accepts in two headers, or in one list, is what it accepts in
// either.
func FuzzAccepts(f *testing.F) {
	for _, s := range []string{"", "*/*", "application/json", "text/event-stream;q=0.1, a/b", "text/*,", " APPLICATION/* ;x=\",\""} {
		f.Add(s, "application/json")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		aJSON, aStream := accepts([]string{a})
		bJSON, bStream := accepts([]string{b})
		for _, values := range [][]string{{a, b}, {b, a}, {a + "," + b}} {
			asJSON, asStream := accepts(values)
			if asJSON != (aJSON || bJSON) || asStream != (aStream || bStream) {
				t.Errorf("accepts(%q) = %t, %t; want %t, %t", values, asJSON, asStream, aJSON || bJSON, aStream || bStream)
			}
		}
	})
}
