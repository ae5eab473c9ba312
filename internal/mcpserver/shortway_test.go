package mcpserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"knowhow/internal/mcpserver/mcptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Plain calls do not go through the SDK, whatever the transport and the revision.
func TestPlainCallsAvoidTheSDK(t *testing.T) {
	s := New(Options{Name: "x", Version: "1"})
	AddTool(s, Tool{Name: "t"}, func(ctx context.Context, _ struct{}) (any, error) {
		Progress(ctx, 1, 2, "half")
		return "answer", nil
	})
	var seen atomic.Int64 // tool calls that the SDK sees
	s.sdk.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == methodCallTool {
				seen.Add(1)
			}
			return next(ctx, method, req)
		}
	})
	h := s.HTTP(HTTPOptions{})
	site := httptest.NewServer(h)
	defer site.Close()
	defer func() {
		if err := h.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	check := func(what, answer string, want int64) {
		t.Helper()
		if n := seen.Swap(0); n != want || !strings.Contains(answer, `answer`) {
			t.Errorf("%s = %s; the SDK saw %d of the calls, want %d", what, answer, n, want)
		}
	}
	token := map[string]any{"name": "t", "_meta": map[string]any{"progressToken": 1}}
	for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		for name, c := range map[string]*mcptest.Session{"stdio": mcptest.Stdio(t, s.ServeStdio), "http": mcptest.HTTP(t, site.URL+"/mcp", nil)} {
			c.Initialize(revision)
			if m := c.Call("tools/list", nil); m.Error != nil { // answered once notifications/initialized has been handled
				t.Fatal(m.Error)
			}
			seen.Store(0)
			check(name+" "+revision, c.Call("tools/call", token).Raw, 0)
			check(name+" "+revision+", out of the ordinary", c.Call("tools/call", map[string]any{"name": "t", "unheardOf": 1}).Raw, 1)
			if revision < "2025-06-18" {
				c.Send(`[{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"t"}}]`)
				check(name+" "+revision+", batch", c.Next().Raw, 0)
			}
		}
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequest(http.MethodPost, site.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", headerRevision: statelessRevision, "Mcp-Method": "tools/call", "Mcp-Name": "t"} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() // read to its end
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	check("http 2026-07-28", fmt.Sprint(res.StatusCode, string(b)), 0)
}
