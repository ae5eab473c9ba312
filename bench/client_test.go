package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A process is a running program whose client is the benchmark.
type process struct {
	b      *testing.B
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	lines  chan string // of the standard error
	stop   func() error
	id     int
}

// start starts the program with a home folder of its own.
func start(b *testing.B, args ...string) *process {
	b.Helper()
	return startProgram(b, program(b), args...)
}

// startProgram is like start for another program.
func startProgram(b *testing.B, program string, args ...string) *process {
	b.Helper()
	cmd := exec.CommandContext(waitContext(b), program, args...)
	home := b.TempDir()
	// Results must not depend on how many vectors are there.
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "KNOWHOW_EMBEDDER=" + cmp.Or(os.Getenv("KNOWHOW_EMBEDDER"), "none"),
		"EMBED_MODEL=" + os.Getenv("EMBED_MODEL")}
	return spawn(b, cmd)
}

// spawn starts a command and stops it by closing its input.
func spawn(b *testing.B, cmd *exec.Cmd) *process {
	b.Helper()
	p := &process{b: b, cmd: cmd, lines: make(chan string, 1000)}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		b.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	p.stdout = bufio.NewReaderSize(stdout, 1<<20)
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.lines)
		for sc := bufio.NewScanner(stderr); sc.Scan(); {
			select {
			case p.lines <- sc.Text():
			default: // no benchmark waits for so many lines
			}
		}
	}()
	p.stop = sync.OnceValue(func() error {
		defer func() { <-read }()
		if err := p.stdin.Close(); err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, p.stdout) // until the program ends
		<-read
		return p.cmd.Wait()
	})
	b.Cleanup(func() {
		if err := p.stop(); err != nil {
			b.Errorf("the program failed: %v", err)
		}
	})
	return p
}

// await returns the first match of pattern in a line of standard error, with
// its groups.
func (p *process) await(pattern string) []string {
	p.b.Helper()
	re := regexp.MustCompile(pattern)
	var seen []string
	for line := range p.lines {
		if m := re.FindStringSubmatch(line); m != nil {
			return m
		}
		seen = append(seen, line)
	}
	p.b.Fatalf("the program ended without a line like %q; it wrote\n%s", pattern, strings.Join(seen, "\n"))
	return nil
}

// A reply is the part of a message that the benchmarks read.
type reply struct {
	ID     json.RawMessage
	Method string // "" for a response
	Result json.RawMessage
	Error  json.RawMessage
}

// A caller sends a request. It returns the result, the size of the response in
// bytes, and the time from the first byte sent to the last one received.
type caller interface {
	call(method string, params any) (result json.RawMessage, size int, took time.Duration)
}

// request returns an encoded request, or a notification if id is 0.
func request(b *testing.B, id int, method string, params any) []byte {
	b.Helper()
	m := map[string]any{"jsonrpc": "2.0", "method": method}
	if id != 0 {
		m["id"] = id
	}
	if params != nil {
		m["params"] = params
	}
	line, err := json.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	return append(line, '\n')
}

// call implements caller over pipes.
func (p *process) call(method string, params any) (json.RawMessage, int, time.Duration) {
	p.b.Helper()
	p.id++
	line := request(p.b, p.id, method, params)
	began := time.Now()
	if _, err := p.stdin.Write(line); err != nil {
		p.b.Fatalf("sending %s: %v", method, err)
	}
	for {
		answer, err := p.stdout.ReadBytes('\n')
		took := time.Since(began)
		if err != nil {
			p.b.Fatalf("waiting for the answer to %s: %v", method, err)
		}
		if r := decode(p.b, answer); r.Method == "" {
			if string(r.ID) != strconv.Itoa(p.id) {
				p.b.Fatalf("the answer to request %d has the id %s", p.id, r.ID)
			}
			return r.Result, len(answer), took
		}
	}
}

// decode parses a message and fails the benchmark if it is an error.
func decode(b *testing.B, data []byte) reply {
	b.Helper()
	var r reply
	if err := json.Unmarshal(data, &r); err != nil {
		b.Fatalf("reading %.200q: %v", data, err)
	}
	if r.Error != nil {
		b.Fatalf("the program answered with the error %s", r.Error)
	}
	return r
}

// hello returns the params of initialize.
func hello() any {
	return map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "bench", "version": "1"}}
}

// initialize does the handshake and returns how long the response took.
func (p *process) initialize() time.Duration {
	p.b.Helper()
	_, _, took := p.call("initialize", hello())
	if _, err := p.stdin.Write(request(p.b, 0, "notifications/initialized", nil)); err != nil {
		p.b.Fatal(err)
	}
	return took
}

// A webClient is a client of an MCP endpoint over HTTP.
type webClient struct {
	b       *testing.B
	url     string
	client  *http.Client
	session string
	version string
	id      int
}

// connect does the handshake with the endpoint at url.
func connect(b *testing.B, url string) *webClient {
	b.Helper()
	c := &webClient{b: b, url: url, client: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	b.Cleanup(c.client.CloseIdleConnections)
	result, _, _ := c.call("initialize", hello())
	var r struct{ ProtocolVersion string }
	if err := json.Unmarshal(result, &r); err != nil {
		b.Fatal(err)
	}
	c.version = r.ProtocolVersion
	c.post(request(b, 0, "notifications/initialized", nil))
	return c
}

// post sends a message and returns the body of the response.
func (c *webClient) post(message []byte) []byte {
	c.b.Helper()
	req, err := http.NewRequestWithContext(c.b.Context(), http.MethodPost, c.url, bytes.NewReader(message))
	if err != nil {
		c.b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.version >= "2025-06-18" {
		req.Header.Set("Mcp-Protocol-Version", c.version)
	}
	res, err := c.client.Do(req)
	if err != nil {
		c.b.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close() // the body was read to its end
	if err != nil || res.StatusCode >= 300 {
		c.b.Fatalf("POST %s: %s %v %s", c.url, res.Status, err, body)
	}
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	return body
}

// call implements caller over HTTP.
func (c *webClient) call(method string, params any) (json.RawMessage, int, time.Duration) {
	c.b.Helper()
	c.id++
	message := request(c.b, c.id, method, params)
	began := time.Now()
	body := c.post(message)
	took := time.Since(began)
	for line := range bytes.Lines(body) {
		line = bytes.TrimPrefix(line, []byte("data: "))
		if line[0] != '{' {
			continue
		}
		if r := decode(c.b, line); string(r.ID) == strconv.Itoa(c.id) {
			return r.Result, len(body), took
		}
	}
	c.b.Fatalf("no answer to %s in %.200q", method, body)
	return nil, 0, 0
}

// tool returns the name of the tool with a suffix.
func tool(b *testing.B, c caller, suffix string) string {
	b.Helper()
	result, _, _ := c.call("tools/list", nil)
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(result, &list); err != nil {
		b.Fatal(err)
	}
	for _, t := range list.Tools {
		if strings.HasSuffix(t.Name, suffix) {
			return t.Name
		}
	}
	b.Fatalf("no tool ends with %s", suffix)
	return ""
}

// A found is a search result.
type found struct {
	Total   int
	Results []struct {
		DocID    string `json:"doc_id"`
		Filename string
	}
}

// search calls the search tool and returns its result.
func search(b *testing.B, c caller, name string, args map[string]any) (found, time.Duration) {
	b.Helper()
	result, _, took := c.call("tools/call", map[string]any{"name": name, "arguments": args})
	var r struct{ Content []struct{ Text string } }
	var f found
	err := json.Unmarshal(result, &r)
	if err == nil && len(r.Content) != 1 {
		err = fmt.Errorf("want one text block")
	}
	if err == nil {
		err = json.Unmarshal([]byte(r.Content[0].Text), &f)
	}
	if err != nil {
		b.Fatalf("reading the result %.200s: %v", result, err)
	}
	return f, took
}

// memory returns a value of the process from /proc in MB (10^6 bytes). It skips
// the benchmark if there is no /proc.
func (p *process) memory(name string) float64 {
	p.b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.b.Skip("memory is read from /proc, which this system does not have")
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); f[0] == name+":" {
			kib, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				p.b.Fatal(err)
			}
			return kib * 1024 / 1e6
		}
	}
	p.b.Fatalf("/proc has no %s", name)
	return 0
}
