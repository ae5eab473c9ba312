package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/clients"
)

// A command of a client that fails is reported with what it printed, and one that does
// not end with how to run it.
func TestVerbError(t *testing.T) {
	client, _ := clients.Find("claude-code")
	f := clients.File{Path: "/home/me/.claude.json"}
	verb := []string{"claude", "mcp", "add", "docs", "--", "/bin/knowhow", "mcp", "/my docs"}
	for _, tt := range []struct {
		err           error
		printed, want string
	}{
		{errors.New("exit status 3"), "boom\n",
			"It printed:\nboom\nChange /home/me/.claude.json yourself; --print shows what to add."},
		{errVerbTime, "", "It may be waiting for an answer. Run it yourself: claude mcp add docs -- /bin/knowhow mcp '/my docs'\n" +
			"Or change /home/me/.claude.json; --print shows what to add."},
	} {
		var hinted *hintError
		err := verbError(client, f, verb, tt.err, tt.printed)
		if !errors.As(err, &hinted) || hinted.Error() != "the command of Claude Code failed: "+tt.err.Error() {
			t.Fatalf("verbError() = %v", err)
		}
		if diff := cmp.Diff(tt.want, hinted.hint); diff != "" {
			t.Errorf("%v (-want +got)\n%s", tt.err, diff)
		}
	}
}

// A program in the cache of a package runner is started by the runner.
func TestRunner(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"npx", "uvx"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".cmd"), nil, 0o700); err != nil { // Windows
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	for _, tt := range []struct {
		program, want string
		args          []string
	}{
		{"/usr/local/bin/knowhow", "/usr/local/bin/knowhow", nil},
		{"/home/me/.npm/_npx/0a1b/node_modules/@knowhow-mcp/linux-x64/bin/knowhow", "npx", []string{"-y", "knowhow"}},
		{"/home/me/.cache/uv/archive-v0/x/bin/knowhow", "uvx", []string{"knowhow-mcp"}},
		{"/home/me/.local/share/pipx/.cache/0a1b/bin/knowhow", "/home/me/.local/share/pipx/.cache/0a1b/bin/knowhow", nil}, // no pipx
	} {
		command, args := runner(tt.program)
		if tt.args != nil {
			command = programName(command)
		}
		if diff := cmp.Diff(append([]string{tt.want}, tt.args...), append([]string{command}, args...)); diff != "" {
			t.Errorf("runner(%q) (-want +got):\n%s", tt.program, diff)
		}
	}
}
