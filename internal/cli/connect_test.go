package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/cli"
)

// TestConnectRunning connects a client to a server that runs and requires a token.
func TestConnectRunning(t *testing.T) {
	const secret = "s3cret-token"
	home, docs := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(docs, "a.md"), []byte("# Apples\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir()) // without clients
	t.Chdir(t.TempDir())
	server := run(t, `listening on http://([^/]+)/mcp`, "serve", "--addr", "127.0.0.1:0", "--embedder", "none", "--data",
		t.TempDir(), "--token", secret, "--label", "fruit", docs)
	url := server.url + "/mcp/fruit"
	env := map[string]string{"HOME": home, "USERPROFILE": home, "TEAM_TOKEN": secret}
	connect := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
		got := cli.Main(context.Background(), append([]string{"connect"}, args...),
			cli.Env{Program: "knowhow", Lookup: lookup}, strings.NewReader(""), &out, &out)
		if got != want || strings.Contains(out.String(), secret) {
			t.Fatalf("connect %q ended with status %d, want %d, and printed %s", args, got, want, &out)
		}
		return out.String()
	}
	file := filepath.Join(home, ".cursor", "mcp.json")
	contains := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("got %s, want %q in it", text, part)
			}
		}
	}

	contains(connect(0, "cursor", "--url", url, "--token-env", "TEAM_TOKEN"),
		`Cursor: added "fruit"`, "The server answers: 1 document, 3 tools", `a search for "Apples" found 1 result`,
		"Set the variable TEAM_TOKEN before you start Cursor")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	contains(string(data), `"Bearer ${env:TEAM_TOKEN}"`, url)
	if strings.Contains(string(data), secret) {
		t.Errorf("%s has the token", file)
	}
	contains(connect(0), "fruit: "+url)
	contains(connect(0, "cursor", "--url", url, "--token-env", "TEAM_TOKEN"), "already connected")

	// Without the token the server does not answer, and without the variable it is not
	// asked. The entry stays.
	contains(connect(1, "windsurf", "--url", url), "the server does not answer as the client needs it", "401",
		"a token is required, and this request has none or a wrong one",
		"knowhow connect windsurf --remove --name fruit")
	delete(env, "TEAM_TOKEN")
	contains(connect(1, "cursor", "--url", url, "--token-env", "TEAM_TOKEN"),
		"the server was not asked, because the variable TEAM_TOKEN is not set here")
	contains(connect(0, "cursor", "--remove", "--name", "fruit"), `Cursor: removed "fruit"`)
	if _, err := os.Stat(file); err == nil {
		t.Errorf("%s is still there", file)
	}

	// A server that does not run can be removed, too.
	contains(connect(1, "cursor", "--url", "http://127.0.0.1:1/mcp", "--name", "gone"), `Cursor: added "gone"`)
	contains(connect(0, "cursor", "--remove", "--name", "gone"), `Cursor: removed "gone"`)
}
