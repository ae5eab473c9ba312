package wire

import (
	"knowhow/internal/compact"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A ToolResult is the answer to tools/call. The SDK's own escapes <, > and &.
type ToolResult struct {
	mcp.ResultBase
	ResultType string        `json:"resultType,omitempty"` // 2026-07-28 only
	Content    []TextContent `json:"content"`
	IsError    bool          `json:"isError,omitempty"`
}

// NewToolResult returns a result of one block of text, for a revision.
func NewToolResult(text, revision string) *ToolResult {
	r := &ToolResult{Content: []TextContent{{Type: "text", Text: text}}}
	if revision >= "2026-07-28" {
		r.ResultType = "complete"
	}
	return r
}

// A TextContent is a block of text.
type TextContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Frame returns the response to a call as the SDK would write it. It says no to
// results that are not those of tools.
func Frame(id jsonrpc.ID, res mcp.Result) ([]byte, bool) {
	r, ok := res.(*ToolResult)
	if !ok {
		return nil, false
	}
	size := 256
	for _, c := range r.Content {
		size += len(c.Text) + len(c.Text)/4
	}
	b := append(make([]byte, 0, size), `{"jsonrpc":"2.0","id":`...)
	b, err := compact.Append(b, id.Raw())
	if err != nil {
		return nil, false
	}
	b = append(b, `,"result":`...)
	if b, err = r.appendTo(b); err != nil {
		return nil, false
	}
	return append(b, '}'), true
}

// appendTo appends the result as encoding/json would write it.
func (r *ToolResult) appendTo(b []byte) ([]byte, error) {
	b = append(b, '{')
	if len(r.Meta) > 0 {
		var err error
		if b, err = compact.Append(append(b, `"_meta":`...), r.Meta); err != nil {
			return nil, err
		}
		b = append(b, ',')
	}
	if r.ResultType != "" {
		b = append(compact.AppendString(append(b, `"resultType":`...), r.ResultType), ',')
	}
	b = append(b, `"content":[`...)
	for i, c := range r.Content {
		if i > 0 {
			b = append(b, ',')
		}
		b = compact.AppendString(append(b, `{"type":`...), c.Type)
		b = compact.AppendString(append(b, `,"text":`...), c.Text)
		b = append(b, '}')
	}
	b = append(b, ']')
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	return append(b, '}'), nil
}
