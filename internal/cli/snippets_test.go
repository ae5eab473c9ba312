package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSnippets(t *testing.T) {
	for _, tc := range []struct {
		name      string
		installed []string // folders in the home folder
		label     string
		token     string
		own       []string
		want      string
	}{
		{"no client", nil, "docs", "", nil, `
To connect a client:
  knowhow connect CLIENT --url http://h/mcp --name docs

`},
		{"with a token", []string{".cursor", ".config/zed"}, "knowhow", "secret", []string{"/my docs"}, `
To connect a client:
  knowhow connect cursor --url http://h/mcp --token-env KNOWHOW_TOKEN
  knowhow connect zed '/my docs'
The clients take the token from the variable KNOWHOW_TOKEN, which must be set where they start.

`},
		{"without a way", []string{".config/Claude"}, "docs.en", "", nil, `
To connect a client:
  knowhow connect CLIENT --url http://h/mcp --name docs-en

`},
		{"three clients", []string{".claude", ".config/Claude", ".cursor", ".codex"}, "docs", "", []string{"/docs"}, `
To connect a client:
  knowhow connect claude-code --url http://h/mcp --name docs
  knowhow connect claude-desktop /docs
  knowhow connect cursor --url http://h/mcp --name docs
Claude Code has a command of its own:
  claude mcp add --scope user --transport http docs http://h/mcp

`},
		{"Claude Code", []string{".claude"}, "docs", "secret", nil, `
To connect a client:
  knowhow connect claude-code --url http://h/mcp --name docs --token-env KNOWHOW_TOKEN
Claude Code has a command of its own:
  claude mcp add --scope user --transport http docs http://h/mcp --header 'Authorization: Bearer ${KNOWHOW_TOKEN}'
The clients take the token from the variable KNOWHOW_TOKEN, which must be set where they start.

`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			home := t.TempDir()
			for _, dir := range tc.installed {
				if err := os.MkdirAll(filepath.Join(home, dir), 0o777); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", "")
			v, stderr := testInvocation(map[string]string{"HOME": home})
			s := &server{invocation: v}
			s.guard.Token = tc.token
			s.printSnippets(tc.label, "http://h/mcp", "KNOWHOW_TOKEN", tc.own)
			if diff := cmp.Diff(tc.want, stderr.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The programs with fewer commands print those of the whole program.
func TestConnectLineOfOtherPrograms(t *testing.T) {
	v, _ := testInvocation(nil)
	v.Program, v.Command = "mcp-fess", "fess"
	if got := v.connectLine("cursor", []string{"kb"}); !strings.HasPrefix(got, "knowhow connect cursor") {
		t.Errorf("got %q", got)
	}
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{
		"": "''", "/a/b-c.d": "/a/b-c.d", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'",
		"é/ü": "é/ü", "`x`": "'`x`'",
		`{"a":1}`: `'{"a":1}'`, "a\x1bb": `'a\x1bb'`,
	} {
		if got := shellWord(in); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", in, got, want)
		}
	}
}

// A link to the program stays, and another program of the same name does not count.
func TestStablePath(t *testing.T) {
	dir := t.TempDir()
	program, other := filepath.Join(dir, "1.0", "knowhow"), filepath.Join(dir, "other")
	link := filepath.Join(dir, "knowhow")
	if err := os.Mkdir(filepath.Dir(program), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{program, other} {
		if err := os.WriteFile(path, nil, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(program, link); err != nil {
		t.Skip("there are no links here")
	}
	t.Setenv("PATH", dir)
	t.Chdir(dir)
	for typed, want := range map[string]string{
		link: link, "knowhow": link, "./knowhow": link, other: program, "missing": program,
	} {
		if got := stablePath(program, typed); got != want {
			t.Errorf("typed as %q, the path is %s, want %s", typed, got, want)
		}
	}
}
