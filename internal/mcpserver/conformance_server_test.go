//lint:file-ignore SA1019 the suite still asks for sampling and logging

package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/errkind"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A suiteServer is a [Server] with everything that the conformance suite looks
// for. What this package has words for comes from its API; prompts, images,
// sampling and the like come from the SDK's server behind the same layer.
type suiteServer struct {
	*Server
	rest  mcp.MethodHandler // the SDK's own, behind everything of ours
	tools map[string]bool   // those of the SDK's server

	requests sync.Map // what ends each HTTP request, by a name in its header
}

const (
	suiteText    = "test://static-text"
	suiteBinary  = "test://static-binary"
	suiteWatched = "test://watched-resource"
)

func newSuiteServer() *suiteServer {
	s := &suiteServer{Server: New(Options{Name: "knowhow-conformance", Version: "1"}), tools: map[string]bool{}}
	s.sdk = mcp.NewServer(s.offer.Load().info, &mcp.ServerOptions{
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	s.sdk.AddReceivingMiddleware(s.guard, s.declare, s.identify, s.route, s.dispatch,
		func(next mcp.MethodHandler) mcp.MethodHandler {
			s.rest = next
			return next
		})
	s.SetResources(suiteResources{}, Template{URITemplate: "test://template/{id}/data", Name: "template",
		MIMEType: "application/json"})
	s.sdk.AddResource(&mcp.Resource{URI: suiteBinary, Name: "static-binary", MIMEType: "image/png"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "image/png",
				Blob: suiteImage()}}}, nil
		})
	s.sdk.AddResource(&mcp.Resource{URI: suiteWatched, Name: "watched-resource"}, nil) // read through ours
	s.addOwnTools()
	s.addTools()
	s.addInputTools()
	s.addPrompts()
	return s
}

// declare says what the SDK's server has besides.
func (s *suiteServer) declare(next mcp.MethodHandler) mcp.MethodHandler {
	add := func(c *mcp.ServerCapabilities) {
		c.Tools.ListChanged = true
		c.Resources.ListChanged, c.Resources.Subscribe = true, true
		c.Prompts = &mcp.PromptCapabilities{ListChanged: true}
		c.Completions, c.Logging = &mcp.CompletionCapabilities{}, &mcp.LoggingCapabilities{}
	}
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		switch r := res.(type) {
		case *initializeResult:
			add(r.Capabilities)
		case *mcp.DiscoverResult:
			add(r.Capabilities)
		}
		return res, err
	}
}

// route passes by dispatch what only the SDK's server has.
func (s *suiteServer) route(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch p := req.GetParams().(type) {
		case *mcp.ListToolsParams:
			return s.listAllTools(ctx, req, next)
		case *mcp.CallToolParamsRaw:
			if e := suiteHeader(req, p); e != nil {
				return nil, e
			}
			if s.tools[p.Name] {
				return s.rest(ctx, method, req)
			}
		case *mcp.ReadResourceParams:
			if p.URI == suiteBinary {
				return s.rest(ctx, method, req)
			}
		case *mcp.ListPromptsParams, *mcp.GetPromptParams, *mcp.CompleteParams, *mcp.SetLoggingLevelParams,
			*mcp.SubscribeParams, *mcp.UnsubscribeParams:
			return s.rest(ctx, method, req)
		}
		return next(ctx, method, req)
	}
}

// suiteHeader checks the header of the one argument that has one (SEP-2243). No
// tool of ours has such arguments, so this package does not look at them.
func suiteHeader(req mcp.Request, p *mcp.CallToolParamsRaw) error {
	k := callOf(req)
	if p.Name != "test_x_mcp_header" || k.revision < statelessRevision || k.header == nil {
		return nil
	}
	var in struct{ Region *string }
	if err := json.Unmarshal(p.Arguments, &in); err != nil {
		return err
	}
	region, sent := k.header.Get("Mcp-Param-Region"), k.header.Values("Mcp-Param-Region") != nil
	bad := false
	if encoded, ok := strings.CutPrefix(region, "=?base64?"); ok && strings.HasSuffix(encoded, "?=") {
		b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(encoded, "?="))
		region, bad = string(b), err != nil
	}
	if bad || sent != (in.Region != nil) || in.Region != nil && region != *in.Region {
		return &jsonrpc.Error{Code: mcp.CodeHeaderMismatch, Message: "header mismatch: Mcp-Param-Region"}
	}
	return nil
}

// serve gives tools the means to end the HTTP request that they answer.
func (s *suiteServer) serve(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		name := rand.Text()
		s.requests.Store(name, cancel)
		defer s.requests.Delete(name)
		r.Header.Set("Suite-Request", name)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// breakOff ends the HTTP request of a call, and tells the client when to come back
// for the answer.
func (s *suiteServer) breakOff(r *mcp.CallToolRequest) {
	k := callOf(r)
	if st, ok := k.group.to.(*stream); ok {
		st.mu.Lock()
		st.writeLocked([]byte("retry: 10\ndata: \n\n"), true)
		st.mu.Unlock()
	}
	if cancel, ok := s.requests.Load(k.header.Get("Suite-Request")); ok {
		cancel.(context.CancelFunc)()
	}
}

func (s *suiteServer) listAllTools(ctx context.Context, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	res, err := next(ctx, methodListTools, req)
	if err != nil {
		return nil, err
	}
	more, err := s.rest(ctx, methodListTools, req)
	if err != nil {
		return nil, err
	}
	ours := res.(*toolsResult)
	for _, t := range more.(*mcp.ListToolsResult).Tools {
		input, err := json.Marshal(t.InputSchema)
		if err != nil {
			return nil, err
		}
		ours.Tools = append(ours.Tools, listedTool{Name: t.Name, Description: t.Description, InputSchema: input})
	}
	return ours, nil
}

// addOwnTools adds the tools that this package has words for.
func (s *suiteServer) addOwnTools() {
	AddTool(s.Server, Tool{Name: "test_simple_text", Description: "Answers with text."},
		func(context.Context, struct{}) (any, error) {
			return "This is a simple text response for testing.", nil
		})
	AddTool(s.Server, Tool{Name: "test_tool_with_progress", Description: "Reports progress."},
		func(ctx context.Context, _ struct{}) (any, error) {
			for _, done := range []float64{0, 50, 100} {
				Progress(ctx, done, 100, fmt.Sprintf("Completed step %g of 100", done))
				suitePause(ctx)
			}
			return "done", nil
		})
}

// suiteResources are those with a text.
type suiteResources struct{}

func (suiteResources) ListResources(context.Context, string) (*ResourceList, error) {
	return &ResourceList{Resources: []Resource{
		{URI: suiteText, Name: "static-text", MIMEType: "text/plain"},
		{URI: suiteBinary, Name: "static-binary", MIMEType: "image/png"},
		{URI: suiteWatched, Name: "watched-resource", MIMEType: "text/plain"},
	}}, nil
}

func (suiteResources) ReadResource(_ context.Context, uri, _ string) (*Contents, error) {
	if uri == suiteText || uri == suiteWatched {
		return &Contents{MIMEType: "text/plain", Text: "This is the content of the resource.", IsLast: true}, nil
	}
	if id, ok := strings.CutPrefix(uri, "test://template/"); ok {
		if id, ok = strings.CutSuffix(id, "/data"); ok {
			return &Contents{MIMEType: "application/json", IsLast: true,
				Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)}, nil
		}
	}
	return nil, fmt.Errorf("there is no resource %q: %w", uri, errkind.NotFound)
}

// addPrompts adds prompts of every kind.
func (s *suiteServer) addPrompts() {
	text := func(t string) *mcp.PromptMessage {
		return &mcp.PromptMessage{Role: "user", Content: &mcp.TextContent{Text: t}}
	}
	add := func(name string, args []string, h func(r *mcp.GetPromptParams) []*mcp.PromptMessage) {
		p := &mcp.Prompt{Name: name, Title: name, Description: name}
		for _, a := range args {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Description: a, Required: true})
		}
		s.sdk.AddPrompt(p, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: h(r.Params)}, nil
		})
	}
	add("test_simple_prompt", nil, func(*mcp.GetPromptParams) []*mcp.PromptMessage {
		return []*mcp.PromptMessage{text("This is a simple prompt for testing.")}
	})
	add("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(p *mcp.GetPromptParams) []*mcp.PromptMessage {
		return []*mcp.PromptMessage{text(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", p.Arguments["arg1"],
			p.Arguments["arg2"]))}
	})
	add("test_prompt_with_embedded_resource", []string{"resourceUri"},
		func(p *mcp.GetPromptParams) []*mcp.PromptMessage {
			return []*mcp.PromptMessage{{Role: "user", Content: suiteEmbedded(p.Arguments["resourceUri"])},
				text("Please process the resource above.")}
		})
	add("test_prompt_with_image", nil, func(*mcp.GetPromptParams) []*mcp.PromptMessage {
		return []*mcp.PromptMessage{{Role: "user", Content: suitePicture()}, text("Please analyze the image above.")}
	})
	s.sdk.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "Asks for its context."},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			if c := accepted(r.Params.InputResponses, "user_context"); c != nil {
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{text(fmt.Sprintf("Context: %v",
					c["context"]))}}, nil
			}
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": elicit("What is the context?",
				"context", "string")}}, nil
		})
}
