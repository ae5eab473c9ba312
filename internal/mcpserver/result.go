package mcpserver

import "github.com/modelcontextprotocol/go-sdk/mcp"

// A toolResult is the result of tools/call. The SDK's type escapes <, > and &.
type toolResult struct {
	mcp.ResultBase
	ResultType string        `json:"resultType,omitempty"` // 2026-07-28 only
	Content    []textContent `json:"content"`
	IsError    bool          `json:"isError,omitempty"`
}

// newToolResult returns a result with one block of text, for a revision.
func newToolResult(text, revision string) *toolResult {
	r := &toolResult{Content: []textContent{{Type: "text", Text: text}}}
	if revision >= statelessRevision {
		r.ResultType = "complete"
	}
	return r
}

// A textContent is a block of text.
type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}
