package ignore

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// cases has patterns and paths (folders with a slash at the end), and whether
// git ignores them. TestMatchLikeGit checks the table with git itself.
var cases = []struct {
	patterns string
	ignored  string // paths separated by blanks
	kept     string
}{
	{"foo", "foo foo/ a/foo a/b/foo/", "foobar a/foobar Foo"},
	{"foo/", "foo/ a/foo/", "foo a/foo"},
	{"/foo", "foo foo/", "a/foo"},
	{"/foo/", "foo/", "foo a/foo/"},
	{"a/b", "a/b", "x/a/b b"},
	{"a/b/", "a/b/", "a/b x/a/b/"},
	{"*.log", "x.log a/x.log .log", "x.log.txt log"},
	{"*.log\n!keep.log", "x.log", "keep.log a/keep.log"},
	{"!keep.log\n*.log", "keep.log", ""},
	{"/*.txt", "a.txt", "a/a.txt"},
	{"a/*", "a/b a/b/", "a x/a/b"},
	{"a/*/c", "a/b/c", "a/c a/b/b/c"},
	{"**/foo", "foo a/foo a/b/foo", "foobar"},
	{"**/foo/bar", "foo/bar a/foo/bar", "foo/x/bar bar"},
	{"foo/**", "foo/a foo/a/ foo/a/b", "foo foo/ a/foo/b"},
	{"a/**/b", "a/b a/x/b a/x/y/b", "ab a/bc x/a/b"},
	{"a/**/b/**/c", "a/b/c a/x/b/y/z/c", "a/c a/b a/b/b"},
	{"**", "a a/b a/", ""},
	{"**/", "a/ a/b/", "a"},
	{"/**", "a a/b", ""},
	{"a**b", "ab axxb x/ab", "a/b"},
	{"x/a**b", "x/ab x/acb", "x/a/b"},
	{"a**/b", "ax/b a/b", "x/a/b"},
	{"?at", "cat bat a/cat", "at chat"},
	{"[abc]x", "ax bx", "dx x"},
	{"[!abc]x", "dx", "ax"},
	{"[^abc]x", "dx", "ax"},
	{"[a-c]x", "bx", "dx -x"},
	{"[]x]y", "]y xy", "y"},
	{"[a-]y", "ay -y", "by"},
	{`[\]]y`, "]y", `\y`},
	{"[[:digit:]]x", "1x", "ax"},
	{"[[:alpha:][:digit:]_]x", "1x ax _x", "-x"},
	{"[[:nonsense:]]x", "", "nx :x"},
	{"[ab", "", "[ab a"},
	{"a[/]b", "", "a/b"},
	{`\#x`, "#x", `\#x x`},
	{"#x", "", "#x x"},
	{`\!x`, "!x", "x"},
	{`a\*b`, "a*b", "axb"},
	{`a\\b`, `a\b`, "ab"},
	{`x\`, "", `x x\`},
	{"trail   ", "trail", ""},
	{"one \ntwo\\ ", "one", "two"},
	{"crlf\r\nother\r\n", "crlf other", ""},
	{"\ufeffbom", "bom", ""},
	{"\n\n/\n", "", "a a/"},
	{"*\n!*/\n!*.go", "a.txt a/b.md", "a/ a.go a/b.go"},
	{"doc/frotz", "doc/frotz doc/frotz/", "a/doc/frotz"},
	{"build/\n!build/keep", "build/", ""},
	{"é?", "éa", "é"},
	{"*a*a*a*b", "xaaab aaaaaaab", "aaaaaaaa"},
	{"**/a/**/a/**/b", "a/a/b x/a/y/a/z/b", "a/b"},
	{"*", "a a/ .x", ""},
	{"*.*", "a.b .a", "a"},
	{"a/b/**/*.c", "a/b/x.c a/b/y/z.c", "a/x.c"},
	{"logs/**/debug.log", "logs/debug.log logs/a/debug.log logs/a/b/debug.log", "debug.log"},
}

func TestMatch(t *testing.T) {
	for _, tt := range cases {
		p := Parse(tt.patterns)
		check := func(paths string, want bool) {
			for path := range strings.FieldsSeq(paths) {
				name, dir := strings.CutSuffix(path, "/")
				if got := p.Match(name, dir) == Ignored; got != want {
					t.Errorf("%q ignores %q = %v, want %v", tt.patterns, path, got, want)
				}
			}
		}
		check(tt.ignored, true)
		check(tt.kept, false)
	}
}

// TestMatchLikeGit compares the table with git.
func TestMatchLikeGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil || testing.Short() {
		t.Skip("needs git")
	}
	root := t.TempDir()
	run := func(in string, args ...string) string {
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Stdin = root, strings.NewReader(in)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		var out, msg bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &msg
		if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: nothing is ignored
			t.Fatalf("git %v: %v: %s", args, err, msg.Bytes())
		}
		return out.String()
	}
	run("", "init", "-q")
	for _, tt := range cases {
		if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte(tt.patterns), 0o600); err != nil {
			t.Fatal(err)
		}
		check := func(paths string, want bool) {
			for path := range strings.FieldsSeq(paths) {
				file := filepath.Join(root, filepath.FromSlash(path))
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				var err error
				if strings.HasSuffix(path, "/") {
					err = os.MkdirAll(file, 0o700)
				} else {
					err = os.WriteFile(file, nil, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				out := run(strings.TrimSuffix(path, "/")+"\x00", "check-ignore", "--no-index", "-z", "-v", "--stdin")
				fields := strings.Split(out, "\x00")
				got := len(fields) > 2 && !strings.HasPrefix(fields[2], "!")
				if err := os.RemoveAll(filepath.Join(root, strings.Split(path, "/")[0])); err != nil {
					t.Fatal(err)
				}
				if got != want {
					t.Errorf("git: %q ignores %q = %v (%q), want %v", tt.patterns, path, got, out, want)
				}
			}
		}
		check(tt.ignored, true)
		check(tt.kept, false)
	}
}

func FuzzMatch(f *testing.F) {
	for _, tt := range cases {
		f.Add(tt.patterns, "a/b.log", false)
	}
	f.Fuzz(func(t *testing.T, patterns, path string, dir bool) {
		Parse(patterns).Match(path, dir)
	})
}

// Patterns that can match nothing are errors where a user types them.
func TestCheck(t *testing.T) {
	for _, line := range []string{"*.md", "docs/", "/a/**/b", "!keep", "[a-c]x", "[]x]y", "[[:alpha:]_]", `\[ab`, `a\ `,
		`\#x`, "a]"} {
		if err := Check(line); err != nil {
			t.Errorf("Check(%q) = %v", line, err)
		}
	}
	for _, line := range []string{"", "  ", "#x", "/", "!", "[bad", "a/[bad/b", "a[/]b", "[[:nonsense:]]x",
		"[[:alpha:]", `x\`, "[a-", "a\nb", strings.Repeat("a", maxPattern+1)} {
		if err := Check(line); !errors.Is(err, errkind.Invalid) {
			t.Errorf("Check(%q) = %v, want an error of kind Invalid", line, err)
		}
	}
}
