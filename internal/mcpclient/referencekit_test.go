//go:build linux

package mcpclient

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

// referenceMark is a variable in the environment of every process that one of
// these tests starts, by which they are found again.
const referenceMark = "KNOWHOW_REFERENCE_MARK"

// references returns the folder of the reference servers of MCP.
func references(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("KNOWHOW_REFERENCE_SERVERS")
	if dir == "" {
		t.Skip("no reference servers: .ci/bridge installs them")
	}
	return dir
}

// reference returns the settings of a reference server that is started by its
// file, or by npx. Its processes bear the test's name.
func reference(t *testing.T, name string, npx bool, args ...string) mcpsettings.Server {
	t.Helper()
	dir := references(t)
	s := mcpsettings.Server{ID: name, Transport: mcpsettings.Stdio, Command: "node", Dir: dir,
		Env: map[string]string{referenceMark: mark(t)}}
	if npx {
		s.Command, s.Args = "npx", append([]string{"--no-install", "mcp-server-" + name}, args...)
		return s
	}
	script := filepath.Join(dir, "node_modules/@modelcontextprotocol/server-"+name, "dist/index.js")
	s.Args = append([]string{script}, args...)
	return s
}

// mark returns a test's name, in which no other test's is.
func mark(t *testing.T) string { return t.Name() + ";" + strconv.Itoa(os.Getpid()) }

// processes returns the ids of the processes that bear a mark and are alive.
func processes(t *testing.T, mark string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, file := range files {
		env, err := os.ReadFile(file) // empty for a zombie; it may have gone
		if err == nil && slices.Contains(strings.Split(string(env), "\x00"), referenceMark+"="+mark) {
			ids = append(ids, strings.Split(file, "/")[2])
		}
	}
	return ids
}

// serveReference runs server-everything as an HTTP server, which it returns with
// its port.
func serveReference(t *testing.T, transport, port string) *exec.Cmd {
	t.Helper()
	s := reference(t, "everything", false, transport)
	cmd := exec.Command(s.Command, s.Args...)
	cmd.Env = append(os.Environ(), "PORT="+port, referenceMark+"="+mark(t))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have been killed before
		<-drained
		_ = cmd.Wait()
	})
	ready := make(chan bool, 1)
	go func() {
		defer close(drained)
		output := bufio.NewScanner(stderr)
		for output.Scan() {
			if strings.HasSuffix(output.Text(), "on port "+port) {
				ready <- true
			}
		}
		close(ready)
	}()
	select {
	case ok := <-ready:
		if !ok {
			t.Fatal("the server ended before it was ready")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the server is not ready")
	}
	return cmd
}

// freePort returns a port without a listener.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// mustCallText returns the text of a tool's result.
func mustCallText(t *testing.T, p *Pool, id, tool, arguments string) string {
	t.Helper()
	raw, err := p.Call(t.Context(), id, "tools/call", toolCall(tool, arguments))
	if err != nil {
		t.Fatalf("Call(%s) = %v", tool, err)
	}
	var r struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal(raw, &r); err != nil || r.IsError || len(r.Content) == 0 {
		t.Fatalf("Call(%s) = %s, %v, want a text", tool, raw, err)
	}
	return r.Content[0].Text
}

// closeInTime closes a pool and checks that it was quick and left no process.
func closeInTime(t *testing.T, p *Pool, mark string) {
	t.Helper()
	begin := time.Now()
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if took := time.Since(begin); took > 4*time.Second { // with roots, a server takes 5 s
		t.Errorf("Close() took %v", took)
	}
	gone(t, mark)
}

// gone waits until no process bears a mark, at most two seconds.
func gone(t *testing.T, mark string) {
	t.Helper()
	limit := time.After(2 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left := processes(t, mark)
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Errorf("processes %v are left", left)
			return
		}
	}
}
