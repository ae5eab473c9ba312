package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/terminal/terminaltest"
)

// onTerminal runs a command on a terminal of 40 columns and 100 rows, and returns
// what the terminal gets.
func onTerminal(t *testing.T, env map[string]string, args ...string) string {
	t.Helper()
	master, slave := terminaltest.New(t, 40, 100)
	got := make(chan string)
	go func() {
		var b strings.Builder
		for buf := make([]byte, 1000); !strings.Contains(b.String(), "\x00"); {
			n, err := master.Read(buf)
			if err != nil {
				break
			}
			b.Write(buf[:n])
		}
		got <- b.String()
	}()
	lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	Main(context.Background(), args, Env{Program: "knowhow", Lookup: lookup}, strings.NewReader(""), slave, io.Discard)
	if _, err := slave.WriteString("\x00"); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(strings.ReplaceAll(<-got, "\r\n", "\n"), "\x00")
}

func TestSearchOnATerminal(t *testing.T) {
	data, docs := indexFiles(t, map[string]string{
		"sub/guide.md": "# Guide\n\n## Growing\n\nPears are grown on trees, and a pear tree needs much water in summer.\n",
	})
	info, err := os.Stat(filepath.Join(docs, "sub/guide.md"))
	if err != nil {
		t.Fatal(err)
	}
	date := info.ModTime().Local().Format(time.DateOnly)
	want := "1. \x1b[1mGuide\x1b[22m\n" +
		"\x1b]8;;file://" + docs + "/sub/guide.md\x1b\\\x1b[36msub/guide.md\x1b[39m\x1b]8;;\x1b\\\x1b[2m  " + date +
		"\x1b[22m\n" +
		strings.NewReplacer("[", "\x1b[1m", "]", "\x1b[22m").Replace("  # Guide\n\n  ## Growing\n\n  [Pears] are grown on trees, and a [pear]\n  tree needs much water in summer.\n")
	env := map[string]string{"KNOWHOW_DATA": data, "PAGER": ""}
	if diff := cmp.Diff(want, onTerminal(t, env, "search", "pear")); diff != "" {
		t.Errorf("the terminal differs (-want +got):\n%s", diff)
	}
	env["NO_COLOR"] = "1"
	want = "1. Guide\nsub/guide.md  " + date + "\n  # Guide\n\n  ## Growing\n\n  Pears are grown on trees, and a pear\n  tree needs much water in summer.\n"
	if diff := cmp.Diff(want, onTerminal(t, env, "search", "pear")); diff != "" {
		t.Errorf("the terminal with NO_COLOR differs (-want +got):\n%s", diff)
	}
}

// TestFirstSteps checks what the program without a command prints on a terminal.
func TestFirstSteps(t *testing.T) {
	home := t.TempDir()
	t.Setenv("PATH", "") // where clients are looked for, too
	env := map[string]string{"HOME": home}
	const steps = "  knowhow connect claude-code ~/my-documents "
	got := onTerminal(t, env)
	if n := strings.Count(got, "\n"); n > 10 || !strings.Contains(got, steps) || strings.Contains(got, "Found") {
		t.Errorf("knowhow prints %d lines, want at most 10 with the first steps, and no client:\n%s", n, got)
	}
	for _, tt := range []struct{ folder, want string }{
		{".cursor", "\nFound Cursor: knowhow connect cursor ~/my-documents\n"},
		{".claude", "\nFound Claude Code, Cursor: knowhow connect all ~/my-documents\n"},
	} {
		if err := os.Mkdir(filepath.Join(home, tt.folder), 0o700); err != nil {
			t.Fatal(err)
		}
		got := onTerminal(t, env)
		if n := strings.Count(got, "\n"); n > 10 || !strings.HasSuffix(got, tt.want) {
			t.Errorf("knowhow prints %d lines, want at most 10 that end with %q:\n%s", n, tt.want, got)
		}
	}
}

// TestHostileDocuments prints documents whose names, titles and texts contain
// sequences that control terminals, on a terminal and in a pipe.
func TestHostileDocuments(t *testing.T) {
	const evil = "\x1b]0;owned\x07\x1b[31mred\x1b[2J\u009b31m\u202ereversed\u2066\u0090q\u009c\r\b\x7f"
	data, docs := indexFiles(t, map[string]string{
		"a\x1b]8;;http:evil\x1b\\\u202e\nb.md": "# Pears " + evil + "\n\nPears " + evil + " and\u2028more\n\n## Sub " +
			evil + "\n\npears\n",
		"plain.txt":       "pears " + evil + "\n",
		".hidden\x1b[31m": "x",
		"page.html":       "<title>pears \u009b31m &#27;[31m &#x9b;31m</title><p>pears &#27;]0;x&#7;</p>",
	})
	env := map[string]string{"KNOWHOW_DATA": data, "PAGER": "", "NO_COLOR": "1"}
	lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	for _, args := range [][]string{
		{"search", "pears"}, {"search", "--json", "pears"}, {"search", "--max-chars", "0", "pears"},
		{"read", "plain.txt"}, {"read", "--json", "plain.txt"}, {"read", "page.html"},
		{"read", docs + "/a\x1b]8;;http:evil\x1b\\\u202e\nb.md"}, {"read", evil},
		{"read", "plain.txt", "--section", evil},
		{"status"}, {"status", "--left-out"}, {"status", "--json"},
	} {
		var out bytes.Buffer
		Main(t.Context(), args, Env{Program: "knowhow", Lookup: lookup}, strings.NewReader(""), &out, &out)
		for what, text := range map[string]string{"a pipe": out.String(), "a terminal": onTerminal(t, env, args...)} {
			if i := strings.IndexFunc(text, controls); i >= 0 {
				t.Errorf("%q in %s prints the control character %q in %q", args, what, []rune(text[i:])[0],
					text[max(0, i-20):min(len(text), i+20)])
			}
			if what == "a pipe" && text == "" {
				t.Errorf("%q printed nothing", args)
			}
		}
	}
	// With styles, the only sequences are those of the program.
	delete(env, "NO_COLOR")
	text := onTerminal(t, env, "search", "pears")
	for _, sequence := range []string{"\x1b[1m", "\x1b[2m", "\x1b[22m", "\x1b[36m", "\x1b[39m", "\x1b]8;;file:///",
		"\x1b]8;;\x1b\\", "\x1b\\"} {
		if !strings.Contains(text, sequence) {
			t.Errorf("no %q in %q", sequence, text)
		}
		text = strings.ReplaceAll(text, sequence, "")
	}
	if i := strings.IndexFunc(text, controls); i >= 0 {
		t.Errorf("the terminal gets the control character %q in %q", []rune(text[i:])[0], text)
	}
}

var scorePattern = regexp.MustCompile(`bm25 0\.\d\d`)

// TestPassagesOnATerminal searches a note whose title and text are wider than the
// terminal, in the knowledge base and as a dataset.
func TestPassagesOnATerminal(t *testing.T) {
	data, docs := t.TempDir(), t.TempDir()
	const note = "A note about pears that is much longer than a line of this terminal, with an \x1b]0;evil\a sequence"
	if err := os.WriteFile(filepath.Join(docs, "pears.md"), []byte(note), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"KB_DATA_DIR": data, "KNOWHOW_DATASETS": data, "KNOWHOW_EMBEDDER": "none", "PAGER": ""}
	onTerminal(t, env, "note", "add", note)
	onTerminal(t, env, "datasets", "create", "--id", "pears", "--source", docs, "--embedder", "none")
	for args, want := range map[string]string{
		"kb search pears": "1. A note about pears that is much\nlonger than a line of this terminal,\nwith an… (document 1)\n" +
			"   A note about pears that is much\n   longer than a line of this terminal,\n   with an ]0;evil sequence\n",
		"datasets search --embedder none pears pears": "1. pears.md (bm25 SCORE)\n   pears.md\n" +
			"   A note about pears that is much\n   longer than a line of this terminal,\n   with an ]0;evil sequence\n",
		"note get 1": "A note about pears that is much longer\nthan a line of this terminal, with an\n]0;evil sequence\n",
	} {
		got := scorePattern.ReplaceAllString(onTerminal(t, env, strings.Fields(args)...), "bm25 SCORE")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the terminal differs (-want +got):\n%s", args, diff)
		}
	}
}
