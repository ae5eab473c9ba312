package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// If this variable is set, the test binary is the program itself.
const beProgram = "TEST_MCP_FESS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(beProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestName checks that the program is the bridge and uses its own name in
// messages.
func TestName(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args   []string
		want   int
		output string
	}{
		{[]string{"--help"}, 0, "Usage: mcp-fess [FLAGS]"},
		{[]string{"--config", "nowhere.json"}, 1, "mcp-fess: reading configuration: open nowhere.json"},
		{[]string{"--bogus"}, 2, "mcp-fess: unknown flag --bogus"},
	}
	for _, tt := range tests {
		cmd := exec.Command(exe, tt.args...)
		cmd.Env = append(os.Environ(), beProgram+"=1")
		out, err := cmd.CombinedOutput()
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != tt.want || !strings.Contains(string(out), tt.output) {
			t.Errorf("mcp-fess %q = %d with %q, want %d with %q", tt.args, got, out, tt.want, tt.output)
		}
	}
}
