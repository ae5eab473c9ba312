package bench

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// roleEnv is the environment variable with the name of the server that the test
// program should be.
const roleEnv = "BENCH_SERVE"

// TestServe makes the program a server if roleEnv is set: this program's MCP
// layer or the bare SDK, with the same tool, in a separate process.
func TestServe(t *testing.T) {
	serve, ok := map[string]func() error{"layer-stdio": layerStdio, "layer-http": layerHTTP, "sdk-stdio": sdkStdio, "sdk-http": sdkHTTP}[os.Getenv(roleEnv)]
	if !ok {
		t.Skip("not a server: " + roleEnv + " is not set")
	}
	if err := serve(); err != nil {
		t.Fatal(err)
	}
}

// A searchIn is the arguments of the tool of both servers.
type searchIn struct {
	Query string `json:"query"`
}

// hits returns the result of the tool: 20 hits, 6 KB.
func hits() *compact.Object {
	var list []*compact.Object
	for i := range 20 {
		h := &compact.Object{}
		h.Add("doc_id", fmt.Sprintf("%032x", i))
		h.Add("title", "Budget report of a department")
		h.Add("url", "https://intranet.example.com/finance/report.html")
		h.Add("digest", strings.Repeat("the budget of the quarter, ", 5))
		h.Add("score", 1.5)
		list = append(list, h)
	}
	all := &compact.Object{}
	all.Add("total", len(list))
	all.Add("results", list)
	return all
}

// layer returns a server with the tool on this program's MCP layer.
func layer() *mcpserver.Server {
	debug.SetGCPercent(400) // as the program does
	s := mcpserver.New(mcpserver.Options{Name: "bench", Version: "1"})
	answer := hits()
	mcpserver.AddTool(s, mcpserver.Tool{Name: "search", Description: "Searches.", ReadOnly: true},
		func(context.Context, searchIn) (any, error) { return answer, nil })
	return s
}

func layerStdio() error { return layer().ServeStdio(context.Background(), os.Stdin, os.Stdout) }

func layerHTTP() error { return listen(layer().HTTP(mcpserver.HTTPOptions{})) }

// sdk returns a server with the tool on the bare SDK, written as its
// documentation shows.
func sdk() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	answer := string(hits().Bytes())
	mcp.AddTool(s, &mcp.Tool{Name: "search", Description: "Searches."}, func(context.Context, *mcp.CallToolRequest, searchIn) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer}}}, nil, nil
	})
	return s
}

func sdkStdio() error {
	_ = sdk().Run(context.Background(), &mcp.StdioTransport{}) // ends with an error when the client has gone
	return nil
}

func sdkHTTP() error {
	s := sdk()
	return listen(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
}

// listen serves a handler until standard input ends, and prints its address.
func listen(h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(l) }() // always an error: closed
	fmt.Fprintf(os.Stderr, "listening on http://%s/mcp\n", l.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return server.Close()
}

// serveAs starts the test program as one of its servers. gogc is the value of
// GOGC, "" for the default.
func serveAs(b *testing.B, role, gogc string) *process {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(waitContext(b), self, "-test.run=^TestServe$")
	cmd.Env = []string{roleEnv + "=" + role, "GOGC=" + cmp.Or(gogc, "100")}
	return spawn(b, cmd)
}

// used returns how much processor time p has used, in seconds. It skips the
// benchmark if there is no /proc.
func (p *process) used() float64 {
	p.b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.b.Skip("processor time is read from /proc, which this system does not have")
	}
	// After the name of the program, the 12th and 13th fields are the times
	// in user and kernel mode, in hundredths of a second.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		p.b.Fatal(err)
	}
	kernel, err := strconv.ParseFloat(fields[12], 64)
	if err != nil {
		p.b.Fatal(err)
	}
	return (user + kernel) / 100
}
