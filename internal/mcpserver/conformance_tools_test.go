//lint:file-ignore SA1019 the suite still asks for sampling and logging

package mcpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the suite accepts for an image and for audio.
const (
	suitePNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	suiteWAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)

func suiteBytes(encoded string) []byte {
	b, _ := base64.StdEncoding.DecodeString(encoded) // constants
	return b
}

func suiteImage() []byte { return suiteBytes(suitePNG) }

func suitePicture() *mcp.ImageContent {
	return &mcp.ImageContent{Data: suiteImage(), MIMEType: "image/png"}
}

func suiteEmbedded(uri string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain",
		Text: "This is an embedded resource."}}
}

// suitePause lets the client see what was sent before the next.
func suitePause(ctx context.Context) {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
	}
}

func suiteResult(content ...mcp.Content) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: content}
}

func suiteSays(format string, args ...any) *mcp.CallToolResult {
	return suiteResult(&mcp.TextContent{Text: fmt.Sprintf(format, args...)})
}

// plain is the schema of a tool that looks at no argument.
const plain = `{"type":"object"}`

// add adds a tool to the SDK's server.
func (s *suiteServer) add(name, input string, h mcp.ToolHandler) {
	s.tools[name] = true
	s.sdk.AddTool(&mcp.Tool{Name: name, Description: name, InputSchema: json.RawMessage(input)}, h)
}

// says adds a tool that always gives the same.
func (s *suiteServer) says(name, input string, r *mcp.CallToolResult) {
	s.add(name, input, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return r, nil })
}

// addTools adds the tools that only the SDK has words for.
func (s *suiteServer) addTools() {
	s.says("test_image_content", plain, suiteResult(suitePicture()))
	s.says("test_audio_content", plain, suiteResult(&mcp.AudioContent{Data: suiteBytes(suiteWAV),
		MIMEType: "audio/wav"}))
	s.says("test_embedded_resource", plain, suiteResult(suiteEmbedded("test://embedded-resource")))
	s.says("test_multiple_content_types", plain, suiteResult(&mcp.TextContent{Text: "text"}, suitePicture(),
		suiteEmbedded("test://mixed")))
	s.says("test_error_handling", plain, &mcp.CallToolResult{IsError: true,
		Content: suiteSays("this tool always fails").Content})
	s.says("json_schema_2020_12_tool", suiteSchema, suiteSays("called"))
	s.says("test_x_mcp_header",
		`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`,
		suiteSays("called"))
	s.says("test_streaming_elicitation", plain, suiteSays("no requests on this stream"))
	s.add("test_tool_with_logging", plain, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult,
		error) {
		for _, m := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: m}); err != nil {
				return nil, err
			}
			suitePause(ctx)
		}
		return suiteSays("done"), nil
	})
	s.add("test_logging_tool", plain, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return suiteSays("done"), r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info",
			Data: "said to those who asked"})
	})
	s.add("test_reconnection", plain, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.breakOff(r)
		suitePause(ctx)
		suitePause(ctx)
		return suiteSays("told after a reconnection"), nil
	})
	s.add("test_missing_capability", plain, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult,
		error) {
		if c := r.ClientCapabilities(); c != nil && c.Sampling != nil {
			return suiteSays("the client can sample"), nil
		}
		return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities,
			Message: "this tool needs a client that can sample",
			Data:    json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`)}
	})
	s.add("test_trigger_tool_change", plain, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.sdk.AddTool(&mcp.Tool{Name: "transient", Description: "Comes and goes.", InputSchema: json.RawMessage(plain)},
			nil)
		return suiteSays("done"), nil
	})
	s.add("test_trigger_prompt_change", plain, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult,
		error) {
		s.sdk.AddPrompt(&mcp.Prompt{Name: "transient", Description: "Comes and goes."}, nil)
		return suiteSays("done"), nil
	})
	s.addAskingTools()
}

// addAskingTools adds the tools that ask the client while they are called, as
// up to 2025-11-25.
func (s *suiteServer) addAskingTools() {
	s.add("test_sampling", `{"type":"object","properties":{"prompt":{"type":"string"}}}`,
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var in struct{ Prompt string }
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			res, err := r.Session.CreateMessage(ctx, ask(in.Prompt))
			if err != nil {
				return nil, err
			}
			return suiteResult(res.Content), nil
		})
	for name, properties := range map[string]string{
		"test_elicitation":                  `{"username":{"type":"string"}}`,
		"test_elicitation_sep1034_defaults": suiteDefaults,
		"test_elicitation_sep1330_enums":    suiteEnums,
	} {
		s.add(name, `{"type":"object","properties":{"message":{"type":"string"}}}`,
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: name,
					RequestedSchema: json.RawMessage(`{"type":"object","properties":` + properties + `}`)})
				if err != nil {
					return nil, err
				}
				return suiteSays("action=%s, content=%v", res.Action, res.Content), nil
			})
	}
}

// suiteDefaults has a default of every primitive type (SEP-1034).
const suiteDefaults = `{
	"name": {"type": "string", "default": "John Doe"},
	"age": {"type": "integer", "default": 30},
	"score": {"type": "number", "default": 95.5},
	"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
	"verified": {"type": "boolean", "default": true}
}`

// suiteEnums has an enumeration of every kind (SEP-1330).
const suiteEnums = `{
	"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
	"titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"},
		{"const": "value3", "title": "Third Option"}]},
	"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
	"untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
	"titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": [{"const": "value1", "title": "First Choice"},
		{"const": "value2", "title": "Second Choice"}, {"const": "value3", "title": "Third Choice"}]}}
}`

// suiteSchema has the keywords that must come through unchanged (SEP-1613,
// SEP-2106).
const suiteSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false,
	"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]}, "else": {"required": ["email"]}
}`
