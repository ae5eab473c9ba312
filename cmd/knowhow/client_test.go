//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// launch runs the program in a home folder of its own.
func launch(t *testing.T, home string, env []string, args ...string) (cmd *exec.Cmd, in io.WriteCloser, out,
	errs *bufio.Reader) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.Getenv("TMPDIR"),
		"KNOWHOW_EMBEDDER=none", beProgram + "=1"}, env...)
	cmd.Dir = home
	if in, err = cmd.StdinPipe(); err != nil {
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
	killer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	t.Cleanup(func() { killer.Stop(); cmd.Process.Kill(); cmd.Wait() })
	return cmd, in, bufio.NewReader(stdout), bufio.NewReader(stderr)
}

const initializeLine = `{"jsonrpc":"2.0","id":"first","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"

// refusal reads the answer to initializeLine, which must be an error.
func refusal(t *testing.T, out *bufio.Reader) string {
	t.Helper()
	line, err := out.ReadString('\n')
	var m struct {
		ID    string
		Error struct{ Message string }
	}
	if err != nil || json.Unmarshal([]byte(line), &m) != nil || m.ID != "first" || m.Error.Message == "" {
		t.Fatalf("response to initialize: %q, %v, want an error", line, err)
	}
	return m.Error.Message
}

// A server that cannot start tells its client why, and what to do.
func TestClientLearnsWhy(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	for _, tc := range []struct {
		name   string
		env    []string
		args   []string
		status int
		want   []string // in the message
	}{
		{"no folder", nil, []string{"mcp", "~/nothing"}, 1,
			[]string{"knowhow mcp cannot start", "/nothing", "Check the spelling"}},
		{"serve on stdio", nil, []string{"serve", "--transport", "stdio", "nothing"}, 1,
			[]string{"nothing", "Check the spelling"}},
		{"serve by the variable", []string{"KNOWHOW_TRANSPORT=stdio"}, []string{"serve", "nothing"}, 1,
			[]string{"nothing"}},
		{"mcp whatever the variable", []string{"KNOWHOW_TRANSPORT=http"}, []string{"mcp", "nothing"}, 1,
			[]string{"nothing"}},
		{"a file as data folder", nil, []string{"mcp", "--data", "~/file", "."}, 1, []string{"file"}},
		{"unknown flag", nil, []string{"mcp", "--nope", "."}, 2, []string{"unknown flag --nope", "--help"}},
		{"no source", nil, []string{"mcp"}, 2, []string{"nothing is indexed yet"}},
		{"fess", nil, []string{"fess"}, 1, []string{"config.json", ".mcp-feiss"}},
		{"fess with a file", nil, []string{"fess", "--config", "~/file"}, 1, []string{"file"}},
		{"datasets", nil, []string{"datasets", "--embedder", "nonsense"}, 2, []string{"embedder"}},
		{"kb", nil, []string{"kb", "--transport", "stdio", "--data", "~/file"}, 1, []string{"file"}},
		{"a port in use", nil, []string{"serve", "--addr", taken.Addr().String(), "."}, 1,
			[]string{"in use", "knowhow mcp"}},
		{"an unknown transport", []string{"KNOWHOW_TRANSPORT=tcp"}, []string{"serve", "."}, 2,
			[]string{`got "tcp"`, "for usage. To let a client start"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			if err := os.WriteFile(filepath.Join(home, "file"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			// The folder of sources is not the home folder, which would be refused.
			docs := filepath.Join(home, "docs")
			if err := os.Mkdir(docs, 0o700); err != nil {
				t.Fatal(err)
			}
			args := append([]string(nil), tc.args...)
			if args[len(args)-1] == "." {
				args[len(args)-1] = docs
			}
			cmd, in, out, errs := launch(t, home, tc.env, args...)
			if _, err := io.WriteString(in, initializeLine); err != nil {
				t.Fatal(err)
			}
			message := refusal(t, out)
			for _, want := range tc.want {
				if !strings.Contains(message, want) {
					t.Errorf("the client reads %q, want %q in it", message, want)
				}
			}
			if text, err := io.ReadAll(errs); err != nil || len(text) == 0 {
				t.Errorf("stderr has %q, %v, want the message too", text, err)
			}
			if got := status(cmd); got != tc.status {
				t.Errorf("exit status = %d, want %d", got, tc.status)
			}
		})
	}
}

// A client learns why also after a line that is no message.
func TestClientLearnsWhyLater(t *testing.T) {
	cmd, in, out, _ := launch(t, t.TempDir(), nil, "mcp", "nothing")
	if _, err := io.WriteString(in, "garbage\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, "-32700") {
		t.Fatalf("response to garbage: %q, %v, want an error", line, err)
	}
	if _, err := io.WriteString(in, initializeLine); err != nil {
		t.Fatal(err)
	}
	if message := refusal(t, out); !strings.Contains(message, "knowhow mcp cannot start") {
		t.Errorf("the client reads %q, want why the server cannot start", message)
	}
	if got := status(cmd); got != 1 {
		t.Errorf("exit status = %d, want 1", got)
	}
}

// A server that cannot start ends at once if nobody sends a request.
func TestNoClient(t *testing.T) {
	cmd, in, out, _ := launch(t, t.TempDir(), nil, "mcp", "nothing")
	in.Close()
	if text, err := io.ReadAll(out); err != nil || len(text) > 0 {
		t.Errorf("stdout has %q, %v, want nothing", text, err)
	}
	if got := status(cmd); got != 1 {
		t.Errorf("exit status = %d, want 1", got)
	}
}

// A client that started an HTTP server learns the command that it should start.
// The server is not affected by its stdin.
func TestStrayClient(t *testing.T) {
	home := t.TempDir()
	docs := filepath.Join(home, "docs")
	if err := os.Mkdir(docs, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"serve", "--port", "0", "~/docs"}, {"kb", "--addr", "127.0.0.1:0"},
		{"datasets", "--addr", "127.0.0.1:0"}} {
		cmd, in, out, errs := launch(t, home, []string{"KNOWHOW_TRANSPORT=http"}, args...)
		var line string
		for !strings.HasPrefix(line, "listening on http://") { // warnings may stand before it
			var err error
			if line, err = errs.ReadString('\n'); err != nil {
				t.Fatalf("%q: no ready line: %v", args, err)
			}
		}
		if _, err := io.WriteString(in, initializeLine); err != nil {
			t.Fatal(err)
		}
		if message := refusal(t, out); !strings.Contains(message, "knowhow mcp") ||
			!strings.Contains(message, strings.TrimSpace(strings.TrimPrefix(line, "listening on "))) {
			t.Errorf("%q: the client reads %q, want the command and the address", args, message)
		}
		in.Close()
		if conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(line,
			"listening on http://")), "/mcp")); err != nil {
			t.Errorf("%q: the server is gone: %v", args, err)
		} else {
			conn.Close()
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if got := status(cmd); got != 0 {
			t.Errorf("%q: exit status = %d, want 0", args, got)
		}
	}
}

// The command for the configuration of clients serves a folder whose name is
// written with a "~".
func TestMCP(t *testing.T) {
	home := t.TempDir()
	docs := filepath.Join(home, "My Documents")
	if err := os.Mkdir(docs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(docs, "a.md"), []byte("pears\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, in, out, _ := launch(t, home, []string{"KNOWHOW_TRANSPORT=http", "KNOWHOW_DATA=~/data"}, "mcp",
		"~/My Documents")
	initialize(t, in, out)
	in.Close()
	if got := status(cmd); got != 0 {
		t.Errorf("exit status = %d, want 0", got)
	}
	if _, err := os.Stat(filepath.Join(home, "data", "knowhow.db")); err != nil {
		t.Errorf("the data folder: %v", err)
	}
}
