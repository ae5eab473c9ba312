package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bareSDK is the echo tool without this package.
func bareSDK() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context,
		r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	return s
}

func benchmark(b *testing.B, s *mcptest.Session, revision string) {
	s.Initialize(revision)
	args := map[string]any{"name": "a search of ordinary length, with <signs>"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Tool("echo", args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStdio(b *testing.B) {
	b.Run("knowhow", func(b *testing.B) { benchmark(b, newKit(mcpserver.Options{}).stdio(b), "2025-11-25") })
	b.Run("sdk", func(b *testing.B) {
		benchmark(b, mcptest.Stdio(b, func(ctx context.Context, in io.Reader, out io.Writer) error {
			return bareSDK().Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{out}})
		}), "2025-11-25")
	})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func BenchmarkHTTP(b *testing.B) {
	handlers := map[string]http.Handler{
		"knowhow": newKit(mcpserver.Options{}).server.HTTP(mcpserver.HTTPOptions{}),
		"sdk":     mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return bareSDK() }, nil),
	}
	for name, h := range handlers {
		for _, revision := range []string{"2025-03-26", "2025-11-25"} {
			b.Run(name+"/"+revision, func(b *testing.B) {
				ts := httptest.NewServer(h)
				b.Cleanup(ts.Close)
				benchmark(b, mcptest.HTTP(b, ts.URL+"/mcp", nil), revision)
			})
		}
	}
}

func BenchmarkManyTools(b *testing.B) {
	s := newKit(mcpserver.Options{}).stdio(b)
	s.Initialize("2025-03-26")
	for b.Loop() {
		if m := s.Call("tools/list", nil); !strings.Contains(m.Raw, "search") {
			b.Fatal(m.Raw)
		}
	}
}
