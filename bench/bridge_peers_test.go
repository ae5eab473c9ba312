package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// peers are the programs that bench/bridge-peers installs. BRIDGE_PEERS is
// their folder, by default bridge-peers in BENCH_DIR.
type peers struct {
	dir, node, everything, supergateway, mcporter string // paths
}

// findPeers skips the benchmark if the programs are not installed.
func findPeers(b *testing.B) *peers {
	b.Helper()
	dir := os.Getenv("BRIDGE_PEERS")
	if dir == "" {
		dir = filepath.Join(workDir(b), "bridge-peers")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "PACKAGES")); err != nil {
		b.Skip("Node and the other bridges are not installed: run bench/bridge-peers FOLDER, which needs npm, and set BRIDGE_PEERS to the folder")
	}
	modules := filepath.Join(dir, "node_modules")
	return &peers{
		dir:          dir,
		node:         filepath.Join(modules, "node", "bin", "node"),
		everything:   filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js"),
		supergateway: filepath.Join(modules, "supergateway", "dist", "index.js"),
		mcporter:     filepath.Join(modules, "mcporter", "dist", "cli.js"),
	}
}

// greeting is the request, echoed the text that the response must contain.
const (
	greeting = `{"server_id":"everything","tool_name":"echo","arguments":{"message":"hello"}}`
	echoed   = "Echo: hello"
)

// paths returns the ways to call a tool from one process.
func (p *peers) paths() []*path {
	const warm, sequential, parallel = 200, 400, 3200
	return []*path{
		{"floor", warm, sequential, parallel, p.direct, false},
		{"POST-invoke", warm, sequential, parallel, p.invoke, true},
		{"GET-health", warm, sequential, 0, p.health, false},
		{"supergateway-streamable", warm, sequential, parallel / 2, p.streamable, true},
		{"supergateway-SSE", warm, sequential, parallel / 2, p.sse, true},
		{"mcporter-serve", warm, sequential, parallel / 4, p.mcporterServe, true},
	}
}

// commands returns the ways to call it that start a process for each call.
func (p *peers) commands() []*path {
	return []*path{
		{"curl", 5, 100, 200, p.curl, false},
		{"knowhow-call", 5, 100, 200, p.knowhowCall, false},
		{"mcporter-call-daemon", 2, 20, 0, p.mcporterCall("keep-alive"), false},
		{"mcporter-call", 1, 5, 0, p.mcporterCall("ephemeral"), false},
	}
}

// listening matches the line by which the bridge reports that it serves.
const listening = `^Server listening on http://localhost:(\d+)`

// A running is a program that runs until end is called.
type running struct {
	pid  int
	dir  string
	port int
	end  func()
}

// launch starts a program in dir. It waits until a line of standard output
// matches ready, whose first group is the port, or, if ready is "", until port
// accepts connections.
func launch(b *testing.B, dir string, port int, ready, name string, args ...string) (*running, error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.Context()), maxWait)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Dir, cmd.Env = dir, environment(dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	lines := bufio.NewReader(stdout)
	r := &running{pid: cmd.Process.Pid, dir: dir, port: port}
	if ready != "" {
		r.port, err = awaitPort(lines, ready)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, lines) // until the program ends
	}()
	if ready == "" {
		err = awaitListener(port)
	}
	r.end = func() {
		cancel()
		<-read
		_ = cmd.Wait() // Node ends with the signal's status
	}
	if err != nil {
		r.end()
		return nil, fmt.Errorf("starting %s: %w: %s", filepath.Base(name), err, strings.Join(strings.Fields(stderr.String()), " "))
	}
	return r, nil
}

// environment returns the environment of programs that run in dir.
func environment(dir string) []string {
	return []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}
}

// awaitPort reads lines until one matches ready and returns the port in it.
func awaitPort(lines *bufio.Reader, ready string) (int, error) {
	re := regexp.MustCompile(ready)
	var seen strings.Builder
	for {
		line, err := lines.ReadString('\n')
		if m := re.FindStringSubmatch(line); m != nil {
			return strconv.Atoi(m[1])
		}
		if seen.WriteString(line); err != nil {
			return 0, fmt.Errorf("no line like %q: %w: %s", ready, err, seen.String())
		}
	}
}

// awaitListener waits until a port of this machine accepts connections.
func awaitListener(port int) error {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	var err error
	for range 600 {
		var c net.Conn
		if c, err = net.Dial("tcp", address); err == nil {
			return c.Close()
		}
		<-time.After(50 * time.Millisecond)
	}
	return err
}

// freePort returns a port that no program uses.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// direct is a client that starts the server itself: the lower bound for every
// bridge.
func (p *peers) direct(b *testing.B) (*openPath, error) {
	cmd := exec.Command(p.node, p.everything, "stdio")
	cmd.Env = environment(b.TempDir())
	return session(b, &mcp.CommandTransport{Command: cmd}, nil)
}

// session connects to an MCP server. If r is not nil, it ends with the session.
func session(b *testing.B, t mcp.Transport, r *running) (*openPath, error) {
	b.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"},
		&mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.Context()), maxWait)
	finish := func() {
		cancel()
		if r != nil {
			r.end()
		}
	}
	s, err := client.Connect(ctx, t, nil)
	if err != nil {
		finish()
		return nil, fmt.Errorf("connecting: %w", err)
	}
	o := &openPath{finish: func() {
		_ = s.Close() // fails if the process was ended by a signal
		finish()
	}}
	if r != nil {
		o.pids = []int{r.pid}
	}
	o.call = func() error {
		result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "hello"}})
		if err != nil {
			return err
		}
		if text, ok := result.Content[0].(*mcp.TextContent); result.IsError || !ok || text.Text != echoed {
			return fmt.Errorf("echo answered %v", result.Content[0])
		}
		return nil
	}
	return o, nil
}

// bridge starts `knowhow start` over the server.
func (p *peers) bridge(b *testing.B) (*running, error) {
	b.Helper()
	dir := b.TempDir()
	settings := p.settings(b, dir, "")
	return launch(b, dir, 0, listening, program(b), "start", "--mcp-settings", settings, "--port", "0", "--log-level", "WARN")
}

// settings writes a settings file with the server and returns its path.
func (p *peers) settings(b *testing.B, dir, lifecycle string) string {
	b.Helper()
	server := map[string]any{"command": p.node, "args": []string{p.everything, "stdio"}}
	if lifecycle != "" {
		server["lifecycle"] = lifecycle
	}
	return writeJSON(b, filepath.Join(dir, "mcp_settings.json"), map[string]any{"mcpServers": map[string]any{"everything": server}})
}

// writeJSON writes a file and returns its path.
func writeJSON(b *testing.B, path string, v any) string {
	b.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	return path
}

// invoke is a program that calls the bridge over HTTP with persistent
// connections.
func (p *peers) invoke(b *testing.B) (*openPath, error) {
	return p.over(b, http.MethodPost, "/invoke", greeting, echoed)
}

// health requests the bridge's health check.
func (p *peers) health(b *testing.B) (*openPath, error) {
	return p.over(b, http.MethodGet, "/", "", `"status":"ok"`)
}

func (p *peers) over(b *testing.B, method, path, body, want string) (*openPath, error) {
	b.Helper()
	r, err := p.bridge(b)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * callers, DisableCompression: true}}
	url := fmt.Sprintf("http://127.0.0.1:%d%s", r.port, path)
	return &openPath{
		pids: []int{r.pid},
		finish: func() {
			client.CloseIdleConnections()
			r.end()
		},
		call: func() error {
			req, err := http.NewRequest(method, url, strings.NewReader(body))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			res, err := client.Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			answer, err := io.ReadAll(res.Body)
			if err == nil && (res.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(want))) {
				err = fmt.Errorf("%s %s: %s %.300s", method, path, res.Status, answer)
			}
			return err
		},
	}, nil
}

// loopback makes a Node program listen on the loopback address only. By
// default supergateway listens on all addresses.
const loopback = `const p = require("net").Server.prototype, listen = p.listen
p.listen = function (port, ...rest) {
	if (typeof port !== "number") return listen.call(this, port, ...rest)
	return listen.call(this, {port, host: "127.0.0.1"}, ...rest.filter(x => typeof x === "function"))
}
`

// gateway starts supergateway.
func (p *peers) gateway(b *testing.B, flags ...string) (*running, error) {
	b.Helper()
	dir := b.TempDir()
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	preload := filepath.Join(dir, "loopback.cjs")
	if err := os.WriteFile(preload, []byte(loopback), 0o600); err != nil {
		return nil, err
	}
	return launch(b, dir, port, "", p.node, append([]string{"-r", preload, p.supergateway,
		"--stdio", p.node + " " + p.everything + " stdio", "--port", strconv.Itoa(port), "--logLevel", "none"}, flags...)...)
}

// streamable is supergateway with sessions. Without sessions, its default, it
// starts a server for every call.
func (p *peers) streamable(b *testing.B) (*openPath, error) {
	r, err := p.gateway(b, "--outputTransport", "streamableHttp", "--stateful")
	if err != nil {
		return nil, err
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/mcp", r.port)
	return session(b, &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, r)
}

// sse is supergateway with its older transport.
func (p *peers) sse(b *testing.B) (*openPath, error) {
	r, err := p.gateway(b, "--outputTransport", "sse")
	if err != nil {
		return nil, err
	}
	return session(b, &mcp.SSEClientTransport{Endpoint: fmt.Sprintf("http://127.0.0.1:%d/sse", r.port)}, r)
}

// mcporterServe is mcporter's bridge. The memory of its daemon is included.
func (p *peers) mcporterServe(b *testing.B) (*openPath, error) {
	dir := b.TempDir()
	settings := p.settings(b, dir, "keep-alive")
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	r, err := launch(b, dir, port, "", p.node, p.mcporter, "--config", settings, "serve", "--http", strconv.Itoa(port), "--servers", "everything")
	if err != nil {
		return nil, err
	}
	end := r.end
	r.end = func() {
		end()
		p.endDaemon(dir, settings)
	}
	o, err := session(b, &mcp.StreamableClientTransport{Endpoint: fmt.Sprintf("http://127.0.0.1:%d/mcp/everything", port), DisableStandaloneSSE: true}, r)
	if err != nil {
		return nil, err
	}
	if err := o.call(); err != nil { // this starts the daemon
		o.finish()
		return nil, err
	}
	out, _ := command(dir, p.node, p.mcporter, "--config", settings, "daemon", "status")() // an error shows in the output
	if m := regexp.MustCompile(`pid (\d+)`).FindStringSubmatch(out); m != nil {
		pid, _ := strconv.Atoi(m[1]) // digits
		o.pids = append(o.pids, pid)
	}
	return o, nil
}

// endDaemon stops the daemon of a folder.
func (p *peers) endDaemon(dir, settings string) {
	_, _ = command(dir, p.node, p.mcporter, "--config", settings, "daemon", "stop")() // there may be no daemon
}

// command returns a function that runs a program and returns its output.
func command(dir, name string, args ...string) func() (string, error) {
	return func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Env = dir, environment(dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s: %w: %.300s", filepath.Base(name), err, out)
		}
		return string(out), err
	}
}

// echoes returns a function that calls run and checks that the output contains
// the echoed text.
func echoes(run func() (string, error)) func() error {
	return func() error {
		out, err := run()
		if err == nil && !strings.Contains(out, echoed) {
			err = fmt.Errorf("no %q in %.300s", echoed, out)
		}
		return err
	}
}

// curl calls the bridge with curl, as skills instruct agents to.
func (p *peers) curl(b *testing.B) (*openPath, error) {
	name, err := exec.LookPath("curl")
	if err != nil {
		return nil, errors.New("curl is not installed")
	}
	r, err := p.bridge(b)
	if err != nil {
		return nil, err
	}
	run := command(r.dir, name, "-sS", "-X", "POST", fmt.Sprintf("http://127.0.0.1:%d/invoke", r.port),
		"-H", "Content-Type: application/json", "-d", greeting)
	return &openPath{call: echoes(run), finish: r.end}, nil
}

// knowhowCall calls the bridge with knowhow call.
func (p *peers) knowhowCall(b *testing.B) (*openPath, error) {
	r, err := p.bridge(b)
	if err != nil {
		return nil, err
	}
	run := command(r.dir, program(b), "call", "--bridge-url", fmt.Sprintf("http://127.0.0.1:%d", r.port), "everything/echo", "message=hello")
	return &openPath{call: echoes(run), finish: r.end}, nil
}

// mcporterCall calls the tool with mcporter. Depending on lifecycle, its daemon
// keeps the server running or every call starts one.
func (p *peers) mcporterCall(lifecycle string) func(b *testing.B) (*openPath, error) {
	return func(b *testing.B) (*openPath, error) {
		dir := b.TempDir()
		settings := p.settings(b, dir, lifecycle)
		return &openPath{
			call:   echoes(command(dir, p.node, p.mcporter, "--config", settings, "call", "everything.echo", "message=hello")),
			finish: func() { p.endDaemon(dir, settings) },
		}, nil
	}
}
