package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The snippet for clients that start the program names everything by absolute
// paths, and can be started.
func TestStartSnippet(t *testing.T) {
	dir := t.TempDir()
	docs, data := filepath.Join(dir, "docs"), filepath.Join(dir, "data")
	if err := os.Mkdir(docs, 0o777); err != nil {
		t.Fatal(err)
	}
	out, done, stop := begin(t, []string{"serve", "--addr", "127.0.0.1:0", "--no-watch", "--embedder", "none", "--data",
		data, docs})
	defer stop()
	if !out.await("Clients that start the server themselves:", done) || !out.await("]}}}", done) {
		t.Fatalf("serve prints %s, want the snippet", out)
	}
	line := regexp.MustCompile(`(?m)^  (\{"mcpServers":.*"command".*)$`).FindStringSubmatch(out.String())
	var config struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		}
	}
	if line == nil || json.Unmarshal([]byte(line[1]), &config) != nil {
		t.Fatalf("serve prints %s, want a configuration in JSON", out)
	}
	s, ok := config.MCPServers["docs"]
	if info, err := os.Stat(s.Command); !ok || err != nil || !filepath.IsAbs(s.Command) || info.IsDir() {
		t.Errorf("the command is %q, %v, want the absolute path of the program", s.Command, err)
	}
	real, err := filepath.EvalSymlinks(docs)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Args) != 4 || s.Args[0] != "mcp" || s.Args[1] != "--data" || s.Args[2] != data || s.Args[3] != real {
		t.Errorf("the arguments are %q, want mcp --data %s %s", s.Args, data, real)
	}
}
