package cli_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/knowhow-mcp/knowhow/internal/cli"
)

// bridgeTime is more than a bridge may take for what a script waits for.
const bridgeTime = 2 * time.Minute

// mcpBridge is the program mcp-bridge, signals included.
func mcpBridge() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { cancel(cli.SignalError{Signal: <-signals}) }()
	stdout := cli.Prepare()
	env := cli.Env{Program: "mcp-bridge", Commands: []string{"sync", "start", "call"}, Lookup: os.LookupEnv}
	os.Exit(cli.Main(ctx, os.Args[1:], env, os.Stdin, stdout, os.Stderr))
}

// bridgeKey is where a script's bridge is kept.
type bridgeKey struct{}

// A runningBridge is a program that runs while its script continues.
type runningBridge struct {
	cmd       *exec.Cmd
	out, errs *transcript
	done      chan struct{} // closed when it has ended
}

// A transcript is the output of a program, which others wait for.
type transcript struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed with each write
}

func newTranscript() *transcript { return &transcript{changed: make(chan struct{})} }

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.changed)
	t.changed = make(chan struct{})
	return t.text.Write(p)
}

// String returns what was written so far.
func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// await waits until the transcript contains a text. It returns false if the program
// ends before, or takes too long.
func (t *transcript) await(text string, done <-chan struct{}) bool {
	limit := time.After(bridgeTime)
	for ended := false; ; {
		t.mu.Lock()
		found, changed := strings.Contains(t.text.String(), text), t.changed
		t.mu.Unlock()
		if found || ended {
			return found
		}
		select {
		case <-changed:
		case <-done:
			ended = true
		case <-limit:
			return false
		}
	}
}

// scriptCommands are commands by name.
type scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string)

// Scripts about the bridge have these commands besides:
//
//	bridge ARG...         run "mcp-bridge start --port 0 ARG..." until it is ready; set BRIDGE_URL and BRIDGE_PORT
//	bridgelog TEXT        wait until TEXT is in its log; with "!", it is not there
//	endbridge SIG STATUS  end it by INT or TERM, check the status, write bridge.out and bridge.log
//	gone N|some FILE      all N processes whose ids are in FILE, one a line, have ended
//	mcpweb                serve MCP with another implementation: set MCP_WEB; see serveMCP
//	linked TARGET LINK    LINK is a symbolic link to TARGET
//
// The programs are fakemcp, a server on stdio, and ask, which sends a request.
//
// The condition [bridge:PORT] is true if a program listens on the port.
//
// bridgeCommands adds them to the others.
func bridgeCommands(cmds scriptCommands) scriptCommands {
	cmds["bridge"] = startBridge
	cmds["bridgelog"] = awaitBridgeLog
	cmds["endbridge"] = endBridge
	cmds["gone"] = checkGone
	cmds["mcpweb"] = serveMCP
	cmds["linked"] = checkLink
	return cmds
}

// bridgeCondition is the condition of scripts about bridges.
func bridgeCondition(cond string) (bool, error) {
	port, ok := strings.CutPrefix(cond, "bridge:")
	if !ok {
		return false, fmt.Errorf("unknown condition %q", cond)
	}
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return false, nil
	}
	return true, conn.Close()
}

func startBridge(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("unsupported: ! bridge")
	}
	b := runBridge(ts, append([]string{"start", "--port", "0"}, args...))
	*ts.Value(bridgeKey{}).(*runningBridge) = *b
	if !b.out.await("Server listening on ", b.done) {
		ts.Fatalf("the bridge is not ready: %s%s", b.out, b.errs)
	}
	_, after, _ := strings.Cut(b.out.String(), "Server listening on http://localhost:")
	port, _, _ := strings.Cut(after, "\n")
	ts.Setenv("BRIDGE_PORT", port)
	ts.Setenv("BRIDGE_URL", "http://127.0.0.1:"+port)
}

// runBridge runs mcp-bridge in the background until the script ends.
func runBridge(ts *testscript.TestScript, args []string) *runningBridge {
	b := &runningBridge{out: newTranscript(), errs: newTranscript(), done: make(chan struct{})}
	path, err := exec.LookPath("mcp-bridge")
	ts.Check(err)
	b.cmd = exec.Command(path, args...)
	b.cmd.Dir = ts.MkAbs(".")
	b.cmd.Stdout, b.cmd.Stderr = b.out, b.errs
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "WORK", "MCP_BRIDGE_TOKEN", "GORACE", "FAKE_DIR",
		"MY_TOKEN", "SERVERS"} {
		b.cmd.Env = append(b.cmd.Env, name+"="+ts.Getenv(name))
	}
	ts.Check(b.cmd.Start())
	go func() {
		defer close(b.done)
		_ = b.cmd.Wait() // the state says it all
	}()
	ts.Defer(func() {
		_ = b.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		killer := time.AfterFunc(bridgeTime, func() { _ = b.cmd.Process.Kill() })
		defer killer.Stop()
		<-b.done
	})
	return b
}

func awaitBridgeLog(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] bridgelog TEXT")
	}
	b := ts.Value(bridgeKey{}).(*runningBridge)
	switch {
	case neg && strings.Contains(b.errs.String(), args[0]):
		ts.Fatalf("the bridge's log has %q: %s", args[0], b.errs)
	case !neg && !b.errs.await(args[0], b.done):
		ts.Fatalf("the bridge's log lacks %q: %s", args[0], b.errs)
	}
}

func endBridge(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM}
	if neg || len(args) != 2 || signals[args[0]] == nil {
		ts.Fatalf("usage: endbridge INT|TERM STATUS")
	}
	b := ts.Value(bridgeKey{}).(*runningBridge)
	ts.Check(b.cmd.Process.Signal(signals[args[0]]))
	select {
	case <-b.done:
	case <-time.After(bridgeTime):
		ts.Fatalf("the bridge has not ended after %v: %s", bridgeTime, b.errs)
	}
	ts.Check(os.WriteFile(ts.MkAbs("bridge.out"), []byte(b.out.String()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("bridge.log"), []byte(b.errs.String()), 0o600))
	if got := strconv.Itoa(b.cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("exit status of the bridge = %s, want %s: %s", got, args[1], b.errs)
	}
}

func checkGone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: gone N|some FILE")
	}
	ids := strings.Fields(ts.ReadFile(args[1]))
	if got := strconv.Itoa(len(ids)); got != args[0] && (args[0] != "some" || got == "0") {
		ts.Fatalf("%s processes in %s, want %s", got, args[1], args[0])
	}
	limit := time.After(bridgeTime)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for slices.ContainsFunc(ids, alive) {
		select {
		case <-tick.C:
		case <-limit:
			ts.Fatalf("a process of %v is still there", ids)
		}
	}
}

// alive reports whether a process runs: one that waits to be reaped does not.
func alive(id string) bool {
	pid, err := strconv.Atoi(id)
	if err != nil {
		return true // not a process id, which is a bug in the program that wrote it
	}
	p, err := os.FindProcess(pid)
	if err != nil || errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err != nil || !strings.HasPrefix(state, "Z")
}

func checkLink(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: linked TARGET LINK")
	}
	got, err := os.Readlink(ts.MkAbs(args[1]))
	ts.Check(err)
	if got != args[0] {
		ts.Fatalf("%s leads to %s, want %s", args[1], got, args[0])
	}
}

// serveMCP serves MCP with the official SDK: streamable HTTP at $MCP_WEB/mcp,
// HTTP+SSE at $MCP_WEB/sse. Callers need the header "X-Key: let-me-in".
func serveMCP(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: mcpweb")
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "greet", Description: "Greets a person."},
		func(_ context.Context, _ *mcp.CallToolRequest, in struct {
			Name string `json:"name" jsonschema:"whom to greet"`
		}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name}}}, nil, nil
		})
	pick := func(*http.Request) *mcp.Server { return s }
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(pick, nil))
	mux.Handle("/sse", mcp.NewSSEHandler(pick, nil))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "let-me-in" {
			http.Error(w, "no key", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
	})
	ts.Setenv("MCP_WEB", server.URL)
}

// ask [-H HEADER]... METHOD URL [BODY] sends a request and prints the status,
// the type and the body of the answer. BODY is JSON unless a header says
// otherwise; @FILE reads it.
func ask() {
	var headers []string
	flag.Func("H", "a header", func(h string) error { headers = append(headers, h); return nil })
	flag.Parse()
	body := flag.Arg(2)
	if name, ok := strings.CutPrefix(body, "@"); ok {
		data, err := os.ReadFile(name)
		check(err)
		body = string(data)
	}
	req, err := http.NewRequest(flag.Arg(0), flag.Arg(1), strings.NewReader(body))
	check(err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		value = strings.TrimSpace(value)
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	check(err)
	defer resp.Body.Close()
	fmt.Printf("%d %s\n", resp.StatusCode, resp.Header.Get("Content-Type"))
	_, err = io.Copy(os.Stdout, resp.Body)
	check(err)
}

// TestAlive checks what the scripts' "gone" rests on.
func TestAlive(t *testing.T) {
	if !alive(strconv.Itoa(os.Getpid())) {
		t.Error("alive(own id) = false")
	}
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Skip(err)
	}
	if alive(strconv.Itoa(cmd.Process.Pid)) {
		t.Error("alive(id of a process that ended) = true")
	}
}
