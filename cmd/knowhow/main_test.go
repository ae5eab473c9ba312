//go:build unix

package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// If this variable is set, the test binary is the program itself.
const beProgram = "TEST_KNOWHOW_MAIN"

// endTime is more than a server needs to end. Without it the tests would hang.
const endTime = 10 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(beProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start runs the program as an MCP bridge and returns it with its streams.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, in io.WriteCloser, out, errs *bufio.Reader) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.json")
	text := `{"fessBaseUrl": "http://127.0.0.1:1", "domain": {"id": "a", "name": "A", "labelFilter": "a"}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe, append([]string{"fess", "--config", file}, args...)...)
	cmd.Env = append(os.Environ(), beProgram+"=1")
	in, err = cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killer := time.AfterFunc(endTime, func() { cmd.Process.Kill() })
	t.Cleanup(func() { killer.Stop(); cmd.Process.Kill() })
	return cmd, in, bufio.NewReader(stdout), bufio.NewReader(stderr)
}

// status waits for the program to end and returns its exit status, -1 if a
// signal ended it.
func status(cmd *exec.Cmd) int {
	cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// initialize sends a request and waits for the response. After that the program
// handles signals.
func initialize(t *testing.T, in io.Writer, out *bufio.Reader) {
	t.Helper()
	_, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
	if err != nil {
		t.Fatal(err)
	}
	if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, `"id":1,"result"`) {
		t.Fatalf("response to initialize: %q, %v", line, err)
	}
}

func TestStdioEnds(t *testing.T) {
	tests := []struct {
		name string
		end  func(cmd *exec.Cmd, in io.Closer) error
		want int
	}{
		{"end of input", func(_ *exec.Cmd, in io.Closer) error { return in.Close() }, 0},
		{"SIGTERM", func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(syscall.SIGTERM) }, 0},
		{"SIGINT", func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(syscall.SIGINT) }, 130},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd, in, out, errs := start(t)
			initialize(t, in, out)
			if err := tt.end(cmd, in); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(errs); err != nil || len(rest) > 0 {
				t.Errorf("stderr has %q, %v, want nothing", rest, err)
			}
			if got := status(cmd); got != tt.want {
				t.Errorf("exit status = %d, want %d", got, tt.want)
			}
		})
	}
}

// advice matches what a server prints after its ready line.
var advice = regexp.MustCompile(`^\nTo connect a client:\n(  .+\n|Claude Code has a command of its own:\n)+\n$`)

func TestHTTPEnds(t *testing.T) {
	for sig, want := range map[syscall.Signal]int{syscall.SIGTERM: 0, syscall.SIGINT: 130} {
		t.Run(sig.String(), func(t *testing.T) {
			cmd, in, _, errs := start(t, "--transport", "http")
			line, err := errs.ReadString('\n')
			url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
			if err != nil || !ok {
				t.Fatalf("ready line %q, %v", line, err)
			}
			in.Close() // has no effect on an HTTP server
			// The client keeps its connection open, as most clients do.
			resp, err := http.Get(strings.TrimSuffix(url, "/mcp") + "/healthz")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(errs); err != nil || !advice.Match(rest) {
				t.Errorf("stderr has %q, %v, want only how to connect clients", rest, err)
			}
			if got := status(cmd); got != want {
				t.Errorf("exit status = %d, want %d", got, want)
			}
		})
	}
}
