package searchmcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/search"

	"github.com/google/go-cmp/cmp"
)

// The two tools of a connector answer in the form that OpenAI documents.
func TestConnector(t *testing.T) {
	long := strings.Repeat("é", connectorChars+1)
	o := folders(&fakeBackend{docs: []fakeDoc{
		{id: "d1", label: "finance_docs", title: "Budget", text: "The budget of 2026.", address: "file:///docs/budget.md",
			facts: search.Hit{Path: "budget.md", FileType: "md"}},
		{id: "d2", label: "finance_docs", title: "Long", text: long, address: "https://example.com/long"},
		{id: "d3", label: "other", title: "Other", text: "The budget of others."},
	}})
	o.Groups = []Group{ConnectorTools}
	c := start(t, o, mcpserver.Latest)
	for _, tt := range []struct {
		tool string
		args args
		want string
	}{
		{"search", args{"query": "budget"},
			`{"results":[{"id":"d1","title":"Budget","url":"file:///docs/budget.md"}]}`},
		{"search", args{"query": "nothing"}, `{"results":[]}`},
		{"fetch", args{"id": "d1"}, `{"id":"d1","title":"Budget","text":"The budget of 2026.",` +
			`"url":"file:///docs/budget.md","metadata":{"path":"budget.md","filetype":"md"}}`},
		{"fetch", args{"id": "d2"}, `{"id":"d2","title":"Long","text":"` + long[:2*connectorChars] +
			`","url":"https://example.com/long","metadata":{"truncated":"true"}}`},
	} {
		var result struct {
			Content []struct{ Text string }
			IsError bool
		}
		a := c.Call("tools/call", args{"name": tt.tool, "arguments": tt.args})
		if err := json.Unmarshal(a.Result, &result); err != nil || len(result.Content) != 1 || result.IsError {
			t.Fatalf("%s %v = %.500s, want one text block", tt.tool, tt.args, a.Raw)
		}
		if diff := cmp.Diff(tt.want, result.Content[0].Text); diff != "" {
			t.Errorf("%s %v (-want +got):\n%.2000s", tt.tool, tt.args, diff)
		}
	}
	a := c.Call("tools/call", args{"name": "fetch", "arguments": args{"id": "d3"}})
	if !strings.Contains(string(a.Result), `"isError":true`) {
		t.Errorf("fetch of a document of another label = %s, want an error", a.Raw)
	}
}
