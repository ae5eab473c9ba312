package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/doctor"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// TestDoctorHostile checks that hostile operands and files of clients are printed without
// control characters, and that no line is very long.
func TestDoctorHostile(t *testing.T) {
	data := t.TempDir()
	hostile := strings.Repeat("\x1b]0;owned\x07\u202e\r\nA", 2000)
	file := filepath.Join(data, ".cursor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		hostile: map[string]any{"command": "/opt/knowhow", "args": []string{"mcp", "--" + hostile}},
		"b":     map[string]any{"command": "/" + hostile + "/knowhow", "args": []string{hostile}},
		"c": map[string]any{"command": "knowhow", "args": []string{"mcp", "--token", "hunter2-hunter2",
			"/" + hostile}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"/" + hostile}, {"http://" + hostile}, {"http://a/" + hostile}, {"cursor"},
		{"--token", hostile}, {"--config", hostile}, {"--embedder", hostile}, {"--verbose"}, {"--json"}} {
		status, stdout, stderr := runMain(t, data, append([]string{"doctor"}, args...)...)
		i := strings.IndexFunc(stdout+stderr, controls)
		if status != exitFailure || i >= 0 || strings.Contains(stdout+stderr, "hunter2") {
			t.Errorf("doctor %.60q ends with %d and prints a control character at %d, or a secret", args, status, i)
		}
		for line := range strings.Lines(stdout) {
			if len(line) > 5000 && !strings.HasPrefix(line, "{") {
				t.Errorf("doctor %.60q prints a line of %d bytes: %.200q", args, len(line), line)
			}
		}
	}
}

// TestParseEntry reads arguments as the configuration of clients has them.
func TestParseEntry(t *testing.T) {
	v, _ := testInvocation(map[string]string{"KNOWHOW_TRANSPORT": "stdio"})
	for _, tc := range []struct {
		program string
		args    string
		env     map[string]string
		want    doctor.CommandLine
		start   string // the arguments of a start; "" for none
	}{
		{"knowhow", "mcp /a --label x /b", nil,
			doctor.CommandLine{Command: "mcp", Stdio: true, Paths: []string{"/a", "/b"}, Started: true},
			"mcp /a --label x /b --data DIR --embedder none"},
		{"knowhow", "mcp --data /d -- /a", nil,
			doctor.CommandLine{Command: "mcp", Stdio: true, Paths: []string{"/a"}, Started: true},
			"mcp --data /d --data DIR --embedder none -- /a"},
		{"knowhow", "mcp", nil, doctor.CommandLine{Command: "mcp", Stdio: true}, ""},
		{"knowhow", "mcp --store opensearch+http://a:1/b /a", nil,
			doctor.CommandLine{Command: "mcp", Stdio: true, Paths: []string{"/a"}}, ""},
		{"knowhow", "serve /a", nil, doctor.CommandLine{Command: "serve", Paths: []string{"/a"}}, ""},
		{"knowhow", "serve --transport stdio /a", nil,
			doctor.CommandLine{Command: "serve", Stdio: true, Paths: []string{"/a"}, Started: true},
			"serve --transport stdio /a --data DIR --embedder none"},
		{"knowhow", "serve /a", map[string]string{"KNOWHOW_TRANSPORT": "stdio"},
			doctor.CommandLine{Command: "serve", Stdio: true, Paths: []string{"/a"}, Started: true},
			"serve /a --data DIR --embedder none"},
		{"knowhow", "kb --transport stdio", nil, doctor.CommandLine{Command: "kb", Stdio: true, Started: true},
			"kb --transport stdio --data DIR --embedder none"},
		{"mcp-fess", "--config /f.json", nil,
			doctor.CommandLine{Command: "fess", Stdio: true, Paths: []string{"/f.json"}, Started: true},
			"--config /f.json --data DIR"},
		{"knowhow", "search leave", nil, doctor.CommandLine{Command: "search"}, ""},
	} {
		got, err := v.parseEntry(tc.program, strings.Fields(tc.args), tc.env)
		if err != nil {
			t.Errorf("parseEntry(%s %s): %v", tc.program, tc.args, err)
			continue
		}
		start := ""
		if got.Started {
			start = strings.Join(got.Harmless("DIR"), " ")
		}
		got.Harmless = nil
		if diff := cmp.Diff(tc.want, got); diff != "" || start != tc.start {
			t.Errorf("parseEntry(%s %s) starts %q, want %q (-want +got):\n%s", tc.program, tc.args, start, tc.start,
				diff)
		}
	}
	for _, args := range []string{"", "nonsense", "mcp --fodler /a", "mcp --label", "serve --addr"} {
		if got, err := v.parseEntry("knowhow", strings.Fields(args), nil); err == nil {
			t.Errorf("parseEntry(knowhow %s) = %+v, want an error", args, got)
		}
	}
}

// TestRewriteEntry writes another command into an entry. Everything else stays.
func TestRewriteEntry(t *testing.T) {
	for _, tc := range []struct{ client, before, want string }{
		{"cursor", "{\n  // mine\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}, // keep\n" +
			"    \"docs\": {\n      \"command\": \"~/knowhow\",\n      \"args\": [\"serve\"],\n" +
			"      \"env\": {\"A\": \"b\"},\n      \"timeout\": 60\n    }\n  }\n}\n",
			"{\n  // mine\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}, // keep\n" +
				"    \"docs\": {\n      \"command\": \"/opt/knowhow\",\n      \"args\": [\"mcp\", \"/a\"],\n" +
				"      \"env\": {\n        \"A\": \"b\"\n      },\n      \"timeout\": 60\n    }\n  }\n}\n"},
		{"codex", "# mine\nmodel = \"x\"\n\n[mcp_servers.docs]\ncommand = \"knowhow\"\nargs = [\"serve\"]\n",
			"# mine\nmodel = \"x\"\n\n[mcp_servers.docs]\ncommand = \"/opt/knowhow\"\nargs = [\"mcp\", \"/a\"]\n"},
		{"opencode", `{"mcp":{"docs":{"type":"local","command":["knowhow","serve"],"enabled":true}}}` + "\n",
			`{"mcp":{"docs":{"type":"local","command":["/opt/knowhow","mcp","/a"],"enabled":true}}}` + "\n"},
	} {
		c, _ := clients.Find(tc.client)
		noVariable := func(string) (string, bool) { return "", false }
		system := clients.System{GOOS: "linux", Home: t.TempDir(), Lookup: noVariable, Exists: fileExists}
		f, ok := c.File(system, clients.User)
		if !ok {
			t.Fatal(tc.client)
		}
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Path, []byte(tc.before), 0o600); err != nil {
			t.Fatal(err)
		}
		server := clients.Server{Name: "docs", Command: "/opt/knowhow", Args: []string{"mcp", "/a"}}
		if err := rewriteEntry(c, f, "docs", server); err != nil {
			t.Errorf("%s: %v", tc.client, err)
		}
		got, err := os.ReadFile(f.Path)
		if diff := cmp.Diff(tc.want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tc.client, err, diff)
		}
		if err := rewriteEntry(c, f, "gone", server); !errors.Is(err, errkind.NotFound) {
			t.Errorf("%s: rewriteEntry of an entry that is gone = %v, want kind NotFound", tc.client, err)
		}
	}
}
