package wire_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"knowhow/internal/mcpserver/wire"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestFrame holds responses against those that the SDK writes.
func TestFrame(t *testing.T) {
	text := "{\"a\":\"<b> & \\\"c\\\" \u2028 検索 \xff\n\"}"
	block := []wire.TextContent{{Type: "text", Text: text}}
	meta := mcp.ResultBase{Meta: mcp.Meta{"b": "<", "a": map[string]any{"n": 1.5, "l": []int{}}}}
	for _, id := range []any{"a<\"\u2028", float64(0), float64(-7), float64(1 << 53)} {
		id, err := jsonrpc.MakeID(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*wire.ToolResult{
			{Content: block}, {Content: []wire.TextContent{}}, {Content: append(block, block...), ResultBase: meta},
			{Content: block, ResultType: "complete", IsError: true},
			{Content: block, ResultBase: meta, IsError: true},
		} {
			want, err := sdkFrame(id, r)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := wire.Frame(id, r); !ok || string(got) != string(want) {
				t.Errorf("Frame(%v, %+v) =\n%s, %t, want\n%s", id.Raw(), r, got, ok, want)
			}
		}
	}
	if got, ok := wire.Frame(jsonrpc.ID{}, &wire.ToolResult{ResultBase: mcp.ResultBase{Meta: mcp.Meta{"f": func() {}}}}); ok {
		t.Errorf("Frame of what is no JSON = %s", got)
	}
	if got, ok := wire.Frame(jsonrpc.ID{}, &mcp.ListToolsResult{}); ok {
		t.Errorf("Frame of a list of tools = %s", got)
	}
}

// sdkFrame is a response as the SDK makes it: it writes the result, then the
// message around it.
func sdkFrame(id jsonrpc.ID, r *wire.ToolResult) ([]byte, error) {
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
		{`{"name":"x","_meta":{"io.modelcontextprotocol\\/protocolVersion":"2026-07-28"}}`, false, false},
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
		p := wire.Parse([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":`+tt.message+`}`), tt.pinned)
		got := wire.PlainCall(p.Msgs[0].(*jsonrpc.Request), tt.pinned)
		if (got != nil) != tt.want {
			t.Errorf("PlainCall(%.100s, %t) = %+v, want one: %t", tt.message, tt.pinned, got, tt.want)
		}
		if got != nil && (got.Name != "x" || got.Meta[wire.MetaRequest] != 7.0 || got.Meta[mcp.MetaKeyProtocolVersion] != nil) {
			t.Errorf("PlainCall(%.100s, %t) = %+v, want the name x, the id 7 and no revision", tt.message, tt.pinned, got)
		}
	}
	for _, message := range []string{`"method":"tools/call"`, `"id":1,"method":"tools/list"`, `"id":1,"method":"tools/call"`} {
		p := wire.Parse([]byte(`{"jsonrpc":"2.0",`+message+`}`), true)
		if got := wire.PlainCall(p.Msgs[0].(*jsonrpc.Request), true); got != nil {
			t.Errorf("PlainCall({%s}) = %+v, want none", message, got)
		}
	}
}
