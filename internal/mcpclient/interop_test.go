package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

// sdkServer returns a server made with the official SDK.
func sdkServer(*http.Request) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}}`)
	s.AddTool(&mcp.Tool{Name: "echo", Description: "says it", InputSchema: schema},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}},
				nil
		})
	return s
}

// TestSDKServers talks to the official SDK's servers.
func TestSDKServers(t *testing.T) {
	tests := map[string]struct {
		handler   http.Handler
		transport string
	}{
		"streams": {mcp.NewStreamableHTTPHandler(sdkServer, nil), mcpsettings.HTTP},
		"JSON": {mcp.NewStreamableHTTPHandler(sdkServer, &mcp.StreamableHTTPOptions{JSONResponse: true}),
			mcpsettings.HTTP},
		"stateless": {mcp.NewStreamableHTTPHandler(sdkServer, &mcp.StreamableHTTPOptions{Stateless: true}),
			mcpsettings.HTTP},
		"resumable": {mcp.NewStreamableHTTPHandler(sdkServer,
			&mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}), mcpsettings.HTTP},
		"HTTP+SSE":           {mcp.NewSSEHandler(sdkServer, nil), mcpsettings.SSE},
		"HTTP+SSE, unspoken": {mcp.NewSSEHandler(sdkServer, nil), mcpsettings.HTTP},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(tt.handler)
			defer web.Close()
			p := newPool(t, Options{}, mcpsettings.Server{ID: "sdk", Transport: tt.transport, URL: web.URL + "/sse"})
			c, err := p.Catalog(t.Context(), "sdk")
			if err != nil || len(c.Tools) != 1 || c.Tools[0].Description != "says it" {
				t.Fatalf("Catalog() = %+v, %v", c, err)
			}
			want := `{"content":[{"type":"text","text":"{\"x\":1}"}]}`
			for range 3 {
				if got := mustCall(t, p, "sdk", "echo", `{"x":1}`); got != want {
					t.Errorf("echo gave %s, want %s", got, want)
				}
			}
			_, err = p.Call(t.Context(), "sdk", "tools/call", toolCall("nothing", "{}"))
			if _, ok := errors.AsType[*RemoteError](err); !ok {
				t.Errorf("an unknown tool gave %v, want an error of the server", err)
			}
			if err := p.Close(t.Context()); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
	}
}

// TestDebugLog looks at what DEBUG shows of a conversation.
func TestDebugLog(t *testing.T) {
	log := &logBuffer{}
	p := newPool(t, Options{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))},
		fakeSettings("fake", "banner", "FAKE_SECRET", "hunter2-hunter2"))
	mustCall(t, p, "fake", "echo", `{"password":"pass-word","text":"it is hunter2-hunter2"}`)
	_, _ = p.Call(t.Context(), "fake", "tools/call", toolCall("crash", "1"))
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	got := log.String()
	for _, want := range []string{
		"Welcome to Fake Server", `msg=sent server=fake frame="{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"`,
		`msg=received`, `{\"password\":\"***\",\"text\":\"it is ***\"}`, "out of cheese error; token=***",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the log does not say %s:\n%s", want, got)
		}
	}
	if strings.Contains(got, "hunter2") || strings.Contains(got, "pass-word") {
		t.Errorf("the log contains a secret:\n%s", got)
	}
}
