package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// A Caller calls the tools of servers: a [Client] through a bridge, a [Direct]
// through its own connections. Errors are of the kinds of [mcpclient.Pool].
type Caller interface {
	Tools(ctx context.Context, server string) ([]Tool, error)
	Call(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, error)
}

// A Direct calls tools through its own connections.
type Direct struct{ Pool *mcpclient.Pool }

// Tools returns the tools of a server.
func (d Direct) Tools(ctx context.Context, server string) ([]Tool, error) {
	catalog, err := d.Pool.Catalog(ctx, server)
	if err != nil {
		return nil, err
	}
	tools := make([]Tool, 0, len(catalog.Tools))
	for _, t := range catalog.Tools {
		tools = append(tools, Tool{Name: t.Name, InputSchema: t.InputSchema})
	}
	return tools, nil
}

// Call calls a tool and returns the result as the server wrote it.
func (d Direct) Call(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	params, err := json.Marshal(map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		return nil, err
	}
	return d.Pool.Call(ctx, server, "tools/call", params)
}

// An UnknownToolError reports that a server does not have a tool. It is of kind
// errkind.NotFound.
type UnknownToolError struct {
	Server, Tool string
	Near         []string // similar names of its tools
	Tools        []string // names of its other tools
}

// Error returns a message with the names of the server and the tool.
func (e *UnknownToolError) Error() string {
	return fmt.Sprintf("server %q has no tool %q", e.Server, e.Tool)
}

// Unwrap returns errkind.NotFound.
func (e *UnknownToolError) Unwrap() error { return errkind.NotFound }

// FindTool returns a tool of a server. If there is no tool with that name, the
// error is an [*UnknownToolError].
func FindTool(ctx context.Context, c Caller, server, name string) (*Tool, error) {
	tools, err := c.Tools(ctx, server)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(tools))
	for i, t := range tools {
		if t.Name == name {
			return &tools[i], nil
		}
		names = append(names, t.Name)
	}
	near := spell.Near(name, names, 3)
	others := slices.DeleteFunc(names, func(s string) bool { return slices.Contains(near, s) })
	return nil, &UnknownToolError{Server: server, Tool: name, Near: near, Tools: others}
}

// A Result contains the parts of a tool's result that are printed.
type Result struct {
	Content []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		MIMEType string `json:"mimeType"`
	} `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"` // the tool reports a failure
}
