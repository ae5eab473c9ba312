package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
