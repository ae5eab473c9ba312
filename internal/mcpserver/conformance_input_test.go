//lint:file-ignore SA1019 the suite still asks for sampling and roots

package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// These tools ask the client by their results, as 2026-07-28 does it
// (SEP-2322): a result names what is wanted, and the call comes again with it.

func elicit(message, property, kind string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(
		fmt.Sprintf(`{"type":"object","properties":{%q:{"type":%q}},"required":[%q]}`, property, kind, property))}
}

func ask(prompt string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: 100,
		Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: prompt}}}}
}

// accepted returns what the user entered, nil if nothing.
func accepted(in mcp.InputResponseMap, key string) map[string]any {
	if r, ok := in[key].(*mcp.ElicitResult); ok && r != nil && r.Action == "accept" {
		return r.Content
	}
	return nil
}

// sampled returns what the client's model said.
func sampled(in mcp.InputResponseMap, key string) (string, bool) {
	r, ok := in[key].(*mcp.CreateMessageWithToolsResult)
	if !ok || r == nil {
		return "", false
	}
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			return t.Text, true
		}
	}
	return "", true
}

func roots(in mcp.InputResponseMap) (int, bool) {
	r, ok := in["client_roots"].(*mcp.ListRootsResult)
	if !ok || r == nil {
		return 0, false
	}
	return len(r.Roots), true
}

const tampered = "-TAMPERED" // what the suite adds to a requestState

func wants(state string, in mcp.InputRequestMap) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: in, RequestState: state}
}

// addInputTools adds the tools of the suite's input-required scenarios.
func (s *suiteServer) addInputTools() {
	add := func(name string, h func(p *mcp.CallToolParamsRaw) *mcp.CallToolResult) {
		s.add("test_input_required_result_"+name, plain, func(_ context.Context,
			r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return h(r.Params), nil
		})
	}
	name := elicit("What is your name?", "name", "string")
	add("elicitation", func(p *mcp.CallToolParamsRaw) *mcp.CallToolResult {
		if n, _ := accepted(p.InputResponses, "user_name")["name"].(string); n != "" {
			return suiteSays("Hello, %s!", n)
		}
		return wants("", mcp.InputRequestMap{"user_name": name})
	})
	add("sampling", func(p *mcp.CallToolParamsRaw) *mcp.CallToolResult {
		if text, ok := sampled(p.InputResponses, "capital_question"); ok {
			return suiteSays("The model said: %s", text)
		}
		return wants("", mcp.InputRequestMap{"capital_question": ask("What is the capital of France?")})
	})
	add("list_roots", func(p *mcp.CallToolParamsRaw) *mcp.CallToolResult {
		if n, ok := roots(p.InputResponses); ok {
			return suiteSays("The client has %d roots", n)
		}
		return wants("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}})
	})
	add("multiple_inputs", func(p *mcp.CallToolParamsRaw) *mcp.CallToolResult {
		text, greeted := sampled(p.InputResponses, "greeting")
		n, listed := roots(p.InputResponses)
		if who := accepted(p.InputResponses, "user_name"); who != nil && greeted && listed {
			return suiteSays("%s %v, %d roots", text, who["name"], n)
		}
		return wants("multiple_inputs", mcp.InputRequestMap{"user_name": name, "greeting": ask("Write a greeting"),
			"client_roots": &mcp.ListRootsParams{}})
	})
	add("multi_round", func(p *mcp.CallToolParamsRaw) *mcp.CallToolResult {
		switch who, second := strings.CutPrefix(p.RequestState, "round=2;name="); {
		case second:
			return suiteSays("%s likes %v", who, accepted(p.InputResponses, "step2")["color"])
		case p.RequestState != "":
			return wants(fmt.Sprintf("round=2;name=%v", accepted(p.InputResponses, "step1")["name"]),
				mcp.InputRequestMap{"step2": elicit("What is your favorite color?", "color", "string")})
		}
		return wants("round=1", mcp.InputRequestMap{"step1": name})
	})
	s.addStateTools()
}

// addStateTools adds those that check what comes back.
func (s *suiteServer) addStateTools() {
	for _, name := range []string{"request_state", "tampered_state"} {
		s.add("test_input_required_result_"+name, plain, func(_ context.Context,
			r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			p := r.Params
			switch {
			case strings.HasSuffix(p.RequestState, tampered):
				return nil, &jsonrpc.Error{Code: codeInvalidParams, Message: "the requestState was changed"}
			case p.RequestState != "" && accepted(p.InputResponses, "confirm") != nil:
				return suiteSays("state-ok"), nil
			}
			return wants(name, mcp.InputRequestMap{"confirm": elicit("Please confirm", "ok", "boolean")}), nil
		})
	}
	s.add("test_input_required_result_capabilities",
		plain, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			want, c := mcp.InputRequestMap{}, r.ClientCapabilities()
			if c != nil && c.Elicitation != nil {
				want["user_name"] = elicit("What is your name?", "name", "string")
			}
			if c != nil && c.Sampling != nil {
				want["greeting"] = ask("Write a greeting")
			}
			if c != nil && (c.RootsV2 != nil || c.Roots.ListChanged) {
				want["client_roots"] = &mcp.ListRootsParams{}
			}
			if len(r.Params.InputResponses) > 0 || len(want) == 0 {
				return suiteSays("nothing to ask"), nil
			}
			return wants("", want), nil
		})
}
