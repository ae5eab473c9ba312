package mcpserver

import (
	"knowhow/internal/compact"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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

// frame returns the response to a call in the form of the SDK. It returns false
// for results that are not those of tools.
func frame(id jsonrpc.ID, res mcp.Result) ([]byte, bool) {
	r, ok := res.(*toolResult)
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

// appendTo appends the result in the form of encoding/json.
func (r *toolResult) appendTo(b []byte) ([]byte, error) {
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
