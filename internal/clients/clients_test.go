package clients_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/clients"
)

var update = flag.Bool("update", false, "rewrite the golden files and the sections of docs/client-settings.md")

// systems are one machine of each kind.
var systems = []clients.System{
	{GOOS: "linux", Home: "/home/me", Dir: "/home/me/project"},
	{GOOS: "darwin", Home: "/Users/me", Dir: "/Users/me/project"},
	{GOOS: "windows", Home: `C:\Users\me`, Dir: `C:\Users\me\project`},
}

// machine returns a system with these variables, files and programs.
func machine(s clients.System, env map[string]string, files, programs []string) clients.System {
	s.Lookup = func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	s.Exists = func(path string) bool { return has(files, path) }
	s.Program = func(name string) string {
		if has(programs, name) {
			return "/usr/bin/" + name
		}
		return ""
	}
	return s
}

func has(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestFilesOnEverySystem compares the paths of the configuration files with a golden file.
func TestFilesOnEverySystem(t *testing.T) {
	var b strings.Builder
	for _, s := range systems {
		fmt.Fprintf(&b, "== %s\n", s.GOOS)
		for _, c := range clients.All() {
			for _, f := range c.Files(machine(s, nil, nil, nil)) {
				fmt.Fprintf(&b, "%s %s: %s, %s at %s\n", c.Name, f.Scope, f.Path, f.Format, strings.Join(f.Place.Keys, "."))
			}
		}
	}
	golden(t, "files.txt", b.String())
}

// TestEntries compares the entries and the commands of each client with a golden file.
func TestEntries(t *testing.T) {
	servers := []clients.Server{
		{Name: "handbook", Command: "/usr/bin/knowhow", Args: []string{"mcp", "/home/me/hand book"}},
		{Name: "notes", Command: "/usr/bin/knowhow", Args: []string{"kb"},
			Env: []clients.Variable{{"KNOWHOW_TRANSPORT", "stdio"}}},
		{Name: "team", URL: "http://127.0.0.1:7411/mcp"},
		{Name: "team", URL: "http://127.0.0.1:7411/mcp", TokenEnv: "KNOWHOW_TOKEN"},
	}
	var b strings.Builder
	for _, c := range clients.All() {
		fmt.Fprintf(&b, "== %s\n", c.Name)
		for _, s := range servers {
			if s.URL != "" && !c.HTTP || s.TokenEnv != "" && c.Variable == "" {
				continue
			}
			fmt.Fprintf(&b, "%v\n", c.Entry(s))
			for _, scope := range c.Scopes() {
				if add := c.Verb.Add(c, s, scope); add != nil {
					fmt.Fprintf(&b, "  %s: %q\n", scope, add)
				}
			}
		}
		for _, scope := range c.Scopes() {
			if remove := c.Verb.Remove("team", scope); remove != nil {
				fmt.Fprintf(&b, "  %s: %q\n", scope, remove)
			}
		}
	}
	golden(t, "entries.txt", b.String())
}

// TestTableIsComplete checks the rules of the table.
func TestTableIsComplete(t *testing.T) {
	names := map[string]bool{}
	for _, c := range clients.All() {
		for _, name := range append([]string{c.Name}, c.Synonyms...) {
			if names[name] || name != strings.ToLower(name) {
				t.Errorf("%s: the name %q is used twice or has capitals", c.Name, name)
			}
			names[name] = true
			if found, _ := clients.Find(strings.ToUpper(name)); found == nil || found.Name != c.Name {
				t.Errorf("Find(%q) does not find %s", name, c.Name)
			}
		}
		if (c.HTTP && c.Variable != "") != (c.Instead == "") || c.Variable != "" && c.NextToken == "" || c.Next == "" {
			t.Errorf("%s: advice is missing, or given for what the client can do", c.Name)
		}
		if !strings.HasPrefix(c.Docs, "https://") {
			t.Errorf("%s: the address of its documentation is %q", c.Name, c.Docs)
		}
		for _, s := range systems {
			if _, ok := c.File(machine(s, nil, nil, nil), clients.User); !ok {
				t.Errorf("%s has no file on %s", c.Name, s.GOOS)
			}
		}
	}
}

func TestFind(t *testing.T) {
	if c, near := clients.Find("cusror"); c != nil || len(near) == 0 || near[0] != "cursor" {
		t.Errorf("Find(cusror) = %v, %q", c, near)
	}
	if c, near := clients.Find("emacs"); c != nil || len(near) != 0 {
		t.Errorf("Find(emacs) = %v, %q", c, near)
	}
}

// TestFile checks which of several files counts.
func TestFile(t *testing.T) {
	for _, tc := range []struct {
		client string
		goos   int
		scope  clients.Scope
		env    map[string]string
		files  []string
		want   string
	}{
		{client: "codex", env: map[string]string{"CODEX_HOME": "/srv/codex"}, files: []string{"/home/me/.codex/config.toml"},
			want: "/srv/codex/config.toml"},
		{client: "claude-code", env: map[string]string{"CLAUDE_CONFIG_DIR": "/srv/claude"}, want: "/srv/claude/.claude.json"},
		{client: "opencode", files: []string{"/home/me/.config/opencode/opencode.jsonc"},
			want: "/home/me/.config/opencode/opencode.jsonc"},
		{client: "opencode", env: map[string]string{"OPENCODE_CONFIG": "/srv/o.json"}, want: "/srv/o.json"},
		{client: "lmstudio", files: []string{"/home/me/.cache/lm-studio/mcp.json"},
			want: "/home/me/.cache/lm-studio/mcp.json"},
		{client: "vscode", env: map[string]string{"XDG_CONFIG_HOME": "/srv/config"}, want: "/srv/config/Code/User/mcp.json"},
		{client: "vscode", env: map[string]string{"XDG_CONFIG_HOME": "config"}, want: "/home/me/.config/Code/User/mcp.json"},
		{client: "vscode", goos: 2, env: map[string]string{"APPDATA": `D:\Roaming`}, want: `D:\Roaming\Code\User\mcp.json`},
		{client: "cursor", goos: 2, scope: clients.Project, want: `C:\Users\me\project\.cursor\mcp.json`},
		{client: "windsurf", scope: clients.Project},
	} {
		c, _ := clients.Find(tc.client)
		if tc.scope == "" {
			tc.scope = clients.User
		}
		f, ok := c.File(machine(systems[tc.goos], tc.env, tc.files, nil), tc.scope)
		if ok != (tc.want != "") || ok && f.Path != tc.want {
			t.Errorf("%s %s: got %q, %t, want %q", tc.client, tc.scope, f.Path, ok, tc.want)
		}
	}
}

func TestNothingWithoutAHome(t *testing.T) {
	for _, s := range systems {
		s.Home, s.Dir = "", ""
		s = machine(s, nil, nil, nil)
		for _, c := range clients.All() {
			if files := c.Files(s); len(files) > 0 {
				t.Errorf("%s on %s: %v", c.Name, s.GOOS, files)
			}
			if c.Installed(s) {
				t.Errorf("%s is installed on an empty %s", c.Name, s.GOOS)
			}
		}
	}
}

func TestInstalled(t *testing.T) {
	for _, tc := range []struct {
		client          string
		goos            int
		files, programs []string
		want            bool
	}{
		{client: "claude-code", programs: []string{"claude"}, want: true},
		{client: "claude-code", files: []string{"/home/me/.claude"}, want: true},
		{client: "claude-code"},
		{client: "claude-desktop", goos: 1, files: []string{"/Applications/Claude.app"}, want: true},
		{client: "claude-desktop", programs: []string{"claude"}},
		{client: "cursor", goos: 2, files: []string{`C:\Users\me\AppData\Local\Programs\cursor`}, want: true},
		{client: "goose", goos: 2, files: []string{`C:\Users\me\AppData\Roaming\Block\goose`}, want: true},
	} {
		c, _ := clients.Find(tc.client)
		if got := c.Installed(machine(systems[tc.goos], nil, tc.files, tc.programs)); got != tc.want {
			t.Errorf("%s on %s with %q and %q: got %t", tc.client, systems[tc.goos].GOOS, tc.files, tc.programs, got)
		}
	}
}

// In the home folder, the files of the user and of the project can be the same.
func TestFilesInTheHomeFolder(t *testing.T) {
	s := systems[0]
	s.Dir = s.Home
	c, _ := clients.Find("cursor")
	if files := c.Files(machine(s, nil, nil, nil)); len(files) != 1 {
		t.Errorf("got %v, want one file", files)
	}
}

func TestRead(t *testing.T) {
	for _, tc := range []struct {
		entry map[string]any
		want  clients.Server
	}{
		{map[string]any{"command": "knowhow", "args": []any{"mcp", 1, "/d"},
			"env": map[string]any{"B": "b", "A": "a", "C": 1}},
			clients.Server{Command: "knowhow", Args: []string{"mcp", "/d"},
				Env: []clients.Variable{{"A", "a"}, {"B", "b"}}}},
		{map[string]any{"command": []any{"knowhow", "mcp"}, "environment": map[string]any{"A": "a"}},
			clients.Server{Command: "knowhow", Args: []string{"mcp"}, Env: []clients.Variable{{"A", "a"}}}},
		{map[string]any{"command": map[string]any{"path": "knowhow", "args": []any{"mcp"}}},
			clients.Server{Command: "knowhow", Args: []string{"mcp"}}},
		{map[string]any{"cmd": "knowhow", "args": "mcp"}, clients.Server{Command: "knowhow"}},
		{map[string]any{"serverUrl": "http://h/mcp", "headers": map[string]any{"Authorization": "secret"}},
			clients.Server{URL: "http://h/mcp"}},
		{map[string]any{"command": []any{}, "url": 5}, clients.Server{}},
		{nil, clients.Server{}},
	} {
		tc.want.Name = "x"
		if diff := cmp.Diff(tc.want, clients.Read("x", tc.entry)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.entry, diff)
		}
	}
}
