package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/schema"
	"github.com/knowhow-mcp/knowhow/internal/spell"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Tool describes a tool to clients.
type Tool struct {
	Name        string
	Title       string
	Description string
	ReadOnly    bool // changes nothing
	Destructive bool // may delete or overwrite data
	Idempotent  bool // a repeated call has no further effect
	OpenWorld   bool // accesses systems outside of the server
	Meta        map[string]any
	Unlisted    bool // not in tools/list, because the caller may never use it; a call gives its error

	// Adjust changes the parts of the schema of the arguments that depend on
	// options; see [schema.For]. nil changes nothing.
	Adjust func(input *jsonschema.Schema)

	// Brief shortens the schema that clients are shown. Arguments are checked
	// against the whole schema. nil shows the whole schema.
	Brief func(input *jsonschema.Schema)

	// Refuse returns the error of a call whose arguments do not match the
	// schema, for example with a code of its own. nil returns the error
	// unchanged.
	Refuse func(*schema.Error) error
}

// A Result is a tool's result with _meta. A handler returns a pointer to it
// instead of the plain value.
type Result struct {
	Value any
	Meta  map[string]any
}

// A tool is a registered Tool with its encoded schema and its handler.
type tool struct {
	Tool
	input  json.RawMessage // its JSON Schema
	handle func(ctx context.Context, arguments json.RawMessage) (any, error)
}

// AddTool adds a tool, or replaces the tool with the same name. It must be
// called before the server is served.
//
// In is a struct, whose fields and tags define the arguments that clients are
// shown and the limits that they are checked against; see [schema.For]. Other
// arguments are refused. AddTool panics if a tag is invalid, which is a mistake
// in the program, as does [regexp.MustCompile].
//
// h is called with arguments that match the schema, after defaults are filled
// in. The result of h is sent as one text block of compact JSON. There is no
// structuredContent, because a client that passes both to its model doubles the
// cost of the result. The errkind of an error determines its code: in revisions
// up to 2025-06-18 it is a JSON-RPC error, in later revisions a result with
// isError. An error without a kind is an internal error, and its text is only
// logged. The context of h is cancelled when the client cancels the request. In
// that case, the result of h is not sent. Work that outlives the response needs
// [context.WithoutCancel].
func AddTool[In any](s *Server, t Tool, h func(ctx context.Context, in In) (any, error)) {
	rt := &tool{Tool: t}
	input, err := schema.For[In](t.Adjust)
	shown := input
	if err == nil && t.Brief != nil {
		shown, err = schema.For[In](func(s *jsonschema.Schema) {
			if t.Adjust != nil {
				t.Adjust(s)
			}
			t.Brief(s)
		})
	}
	if err == nil {
		rt.input, err = shown.MarshalJSON()
	}
	if err != nil {
		panic(fmt.Sprintf("arguments of tool %s: %v", t.Name, err))
	}
	rt.handle = func(ctx context.Context, arguments json.RawMessage) (any, error) {
		checked, err := input.Check(arguments)
		if e, ok := errors.AsType[*schema.Error](err); ok && t.Refuse != nil {
			return nil, t.Refuse(e)
		}
		if err != nil {
			return nil, err
		}
		var in In
		if err := json.Unmarshal(checked, &in); err != nil {
			return nil, fmt.Errorf("decoding the arguments of tool %s: %w", t.Name, err)
		}
		return h(ctx, in)
	}
	offer := s.offer.Load()
	if _, replaced := offer.byName[t.Name]; replaced {
		offer.tools = slices.DeleteFunc(offer.tools, func(o *tool) bool { return o.Name == t.Name })
	}
	offer.tools, offer.byName[t.Name] = append(offer.tools, rt), rt
}

// toolsResult is the result of tools/list. The SDK's type would send
// outputSchema and ttlMs to clients whose revision has neither.
type toolsResult struct {
	mcp.ResultBase
	freshness
	Tools []listedTool `json:"tools"`
}

type listedTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations annotations     `json:"annotations"`
	Meta        map[string]any  `json:"_meta,omitempty"`
}

// annotations contains every hint, because the defaults in the specification
// assume the worst case.
type annotations struct {
	Title       string `json:"title,omitempty"` // for revisions before 2025-06-18
	ReadOnly    bool   `json:"readOnlyHint"`
	Destructive bool   `json:"destructiveHint"`
	Idempotent  bool   `json:"idempotentHint"`
	OpenWorld   bool   `json:"openWorldHint"`
}

func (o *offer) listTools(revision string) *toolsResult {
	res := &toolsResult{freshness: freshnessFor(revision), Tools: make([]listedTool, 0, len(o.tools))}
	for _, t := range o.tools {
		if t.Unlisted {
			continue
		}
		res.Tools = append(res.Tools, listedTool{Name: t.Name, Title: t.Title, Description: t.Description,
			InputSchema: t.input, Meta: t.Meta,
			Annotations: annotations{t.Title, t.ReadOnly, t.Destructive, t.Idempotent, t.OpenWorld}})
	}
	return res
}

func (o *offer) callTool(ctx context.Context, p *mcp.CallToolParamsRaw, revision string) (mcp.Result, error) {
	t := o.byName[p.Name]
	if t == nil {
		return nil, o.unknownTool(p.Name)
	}
	value, err := t.handle(ctx, p.Arguments)
	if err != nil {
		return nil, err
	}
	var meta map[string]any
	if r, ok := value.(*Result); ok && r != nil {
		value, meta = r.Value, r.Meta
	}
	text, err := compact.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing the result of tool %s: %w", t.Name, err)
	}
	res := newToolResult(string(text), revision)
	res.Meta = meta
	return res, nil
}

// unknownTool returns the error of a call of an unknown tool.
func (o *offer) unknownTool(name string) error {
	names := make([]string, 0, len(o.tools))
	for _, t := range o.tools {
		if !t.Unlisted {
			names = append(names, t.Name)
		}
	}
	message, data := fmt.Sprintf("unknown tool %s", spell.Quote(name)), map[string]any{"code": "UNKNOWN_TOOL"}
	switch near := spell.Near(name, names, 3); {
	case len(near) > 0:
		message += ", did you mean " + spell.List(near) + "?"
		data["suggestions"] = near
	default:
		message += ", see tools/list for the known tools"
	}
	return invalidParams(message, data)
}

// ToolNames returns the names of the tools.
func (s *Server) ToolNames() []string {
	offer := s.offer.Load()
	names := make([]string, len(offer.tools))
	for i, t := range offer.tools {
		names[i] = t.Name
	}
	return names
}
