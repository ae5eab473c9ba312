package cli_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMemory is the example of the README with two clients of the MCP SDK: the
// first starts knowhow kb without configuration and adds a note. The second, which
// starts it again, finds the note by its meaning.
func TestMemory(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "knowhow")
	if err := os.Symlink(exe, program); err != nil { // testscript.Main runs a program by its name
		t.Skipf("no links here: %v", err)
	}
	home := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	// client calls a tool until the result has a text.
	client := func(name, tool string, arguments map[string]any, text string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, program, "kb", "--transport", "stdio")
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + home}
		session, err := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, nil).Connect(ctx,
			&mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer session.Close()
		for {
			res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
			if err != nil || res.IsError {
				t.Fatalf("%s: %s: %+v, %v", name, tool, res, err)
			}
			if strings.Contains(res.Content[0].(*mcp.TextContent).Text, text) {
				return
			}
		}
	}
	client("writer", "kb_addnote", map[string]any{"text": "Customer Acme wants invoices in Euro.",
		"collection": "memory"}, "job_id")
	client("reader", "kb_search", map[string]any{"query": "currency of bills", "collection": "memory"}, "Acme")
}
