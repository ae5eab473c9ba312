package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/terminal/terminaltest"
)

// The first steps end with a question if they are on a terminal and a client can be
// connected.
func TestFirstStepsOffer(t *testing.T) {
	t.Setenv("PATH", "")
	t.Chdir(t.TempDir())
	connected := `{"mcpServers": {"docs": {"command": "/usr/bin/knowhow", "args": ["mcp", "/docs"]}}}`
	for _, tt := range []struct {
		name   string
		files  map[string]string // below the home folder
		answer string
		want   string // the question; "" for none
		stderr string // what connect prints
		status int
	}{
		{"no client", nil, "", "", "", 0},
		{"empty", map[string]string{".cursor/x": ""}, "\n", "Connect Cursor to a folder now? Folder (empty for no): ", "", 0},
		{"no", map[string]string{".cursor/x": ""}, "No\n", "Connect Cursor to a folder now?", "", 0},
		{"end of input", map[string]string{".cursor/x": ""}, "\x04", "Connect Cursor to a folder now?", "", 0},
		{"a folder", map[string]string{".cursor/x": "", ".claude/x": ""}, "  'missing folder' \n",
			"Connect Claude Code, Cursor to a folder now?", `knowhow connect: source "missing folder" cannot be read`, 1},
		{"not a flag", map[string]string{".cursor/x": ""}, "--remove\n", "Connect Cursor to a folder now?",
			`source "./--remove" cannot be read`, 1},
		{"one is connected", map[string]string{".cursor/mcp.json": connected, ".kiro/x": ""}, "missing\n",
			"Connect Kiro to a folder now?", `source "missing" cannot be read`, 1},
		{"all are connected", map[string]string{".cursor/mcp.json": connected}, "", "", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			for name, text := range tt.files {
				path := filepath.Join(home, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			master, slave := terminaltest.New(t, 200, 50)
			if _, err := master.WriteString(tt.answer); err != nil {
				t.Fatal(err)
			}
			env := map[string]string{"HOME": home}
			lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
			var stderr strings.Builder
			status := Main(context.Background(), nil, Env{Program: "knowhow", Lookup: lookup}, slave, slave, &stderr)
			if _, err := slave.WriteString("\x00"); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for buf := make([]byte, 1000); !strings.Contains(out.String(), "\x00"); {
				n, err := master.Read(buf)
				if err != nil {
					t.Fatal(err)
				}
				out.Write(buf[:n])
			}
			if diff := cmp.Diff(tt.status, status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if asked := strings.Contains(out.String(), "? Folder"); asked != (tt.want != "") ||
				!strings.Contains(out.String(), tt.want) {
				t.Errorf("the terminal gets %q, want %q in it", out.String(), tt.want)
			}
			if !strings.Contains(stderr.String(), tt.stderr) || tt.stderr == "" && stderr.String() != "" {
				t.Errorf("stderr is %q, want %q in it", stderr.String(), tt.stderr)
			}
		})
	}
}
