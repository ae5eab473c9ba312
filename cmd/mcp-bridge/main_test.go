//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// If this variable is set, the test binary is one of these programs.
const (
	role      = "TEST_MCP_BRIDGE_ROLE"
	beProgram = "program"
	beServer  = "server" // an MCP server that sends no responses and does not end by itself
)

// pidFile is the environment variable with the name of the file to which a
// server writes its process id.
const pidFile = "TEST_MCP_BRIDGE_PID"

// endTime is more than the program needs to end. Without it the tests would
// hang.
const endTime = 20 * time.Second

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case beProgram:
		main()
	case beServer:
		serve()
	default:
		os.Exit(m.Run())
	}
}

// serve reads requests and sends no responses.
func serve() {
	pid := strconv.Itoa(os.Getpid())
	if err := os.WriteFile(os.Getenv(pidFile), []byte(pid), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	select {} // also after the end of input
}

// start runs the program in a new folder, with settings of one server. It
// returns the program with its streams and the file to which the server writes
// its process id.
func start(t *testing.T, disabled bool, args ...string) (cmd *exec.Cmd, out, errs *bufio.Reader, pid string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	pid = filepath.Join(dir, "pid")
	text := fmt.Sprintf(`{"mcpServers": {"stuck": {"command": %q, "disabled": %v, "env": {%q: %q, %q: %q}}}}`, exe,
		disabled, role, beServer, pidFile, pid)
	if err := os.WriteFile(filepath.Join(dir, "settings.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe, append(args, "--mcp-settings", "settings.json")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), role+"="+beProgram, "TMPDIR="+dir) // for the lock of a sync
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
	return cmd, bufio.NewReader(stdout), bufio.NewReader(stderr), pid
}

// status waits for the program to end and returns its exit status, -1 if a
// signal ended it.
func status(cmd *exec.Cmd) int {
	cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

var signals = map[syscall.Signal]int{syscall.SIGTERM: 0, syscall.SIGINT: 130}

// TestStartEnds checks that a signal ends the bridge.
func TestStartEnds(t *testing.T) {
	for sig, want := range signals {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			cmd, out, _, _ := start(t, true, "start", "--port=0")
			var url string
			for url == "" {
				line, err := out.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if rest, ok := strings.CutPrefix(line, "Server listening on http://localhost:"); ok {
					url = "http://127.0.0.1:" + strings.TrimSpace(rest)
				}
			}
			// The client keeps its connection open, as most clients do.
			resp, err := http.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if got := status(cmd); got != want {
				t.Errorf("exit status = %d, want %d", got, want)
			}
		})
	}
}

// TestSyncEnds ends sync, and start before it serves, while they wait for a
// server, which must end with them.
func TestSyncEnds(t *testing.T) {
	for _, command := range [][]string{{"sync"}, {"start", "--port=0"}} {
		for sig, want := range signals {
			t.Run(command[0]+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				if sig == syscall.SIGTERM && command[0] == "sync" {
					want = 1 // it was interrupted
				}
				cmd, _, errs, pid := start(t, false, command...)
				id := awaitServer(t, pid)
				if err := cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(errs)
				if err != nil || strings.Contains(string(text), "mcp-bridge "+command[0]+":") {
					t.Errorf("stderr has %q, %v, want no warnings", text, err)
				}
				if !strings.Contains(string(text), "WARN Interrupted before anything was written") {
					t.Errorf("stderr has %q, want the line about the interruption", text)
				}
				if got := status(cmd); got != want {
					t.Errorf("exit status = %d, want %d", got, want)
				}
				if err := syscall.Kill(id, 0); err == nil {
					t.Errorf("the server, process %d, still runs", id)
				}
			})
		}
	}
}

// awaitServer waits until the server has written its process id.
func awaitServer(t *testing.T, file string) int {
	t.Helper()
	limit := time.After(endTime)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		data, err := os.ReadFile(file)
		if id, bad := strconv.Atoi(string(data)); err == nil && bad == nil {
			return id
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("the server has not started: %v", err)
		}
	}
}
