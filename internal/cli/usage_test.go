package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runMain runs a command with a data folder and a home folder of its own.
func runMain(t *testing.T, data string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	env := map[string]string{"HOME": data, "KNOWHOW_DATA": data, "KB_DATA_DIR": data, "KNOWHOW_DATASETS": data,
		"KNOWHOW_EMBEDDER": "none"}
	lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	var out, errs bytes.Buffer
	status = Main(t.Context(), args, Env{Program: "knowhow", Lookup: lookup}, strings.NewReader(""), &out, &errs)
	return status, out.String(), errs.String()
}

// TestWrongUsage checks the one rule for invalid operands and values of flags:
// status 2, nothing on stdout, and what to do.
func TestWrongUsage(t *testing.T) {
	data, _ := indexFiles(t, map[string]string{"a.md": "text"})
	long := strings.Repeat("word ", 2000)
	commands := [][]string{
		{"search", ""}, {"search", " "}, {"search", "--lang", "x y", "a"},
		{"read", ""}, {"read", " "}, {"read", "a", "b"},
		{"sources", "rm"}, {"sources", "rm", ""}, {"sources", "rm", "a", "b"}, {"sources", "remove", "a"},
		{"kb", "search"}, {"kb", "search", ""}, {"kb", "search", " "}, {"kb", "search", long},
		{"note", "add", ""}, {"note", "add", " "}, {"note", "add", "--title", long, "a"},
		{"note", "add", "--tag", "a\nb", "c"},
		{"note", "get", ""}, {"note", "get", "x"}, {"note", "rm", ""}, {"note", "rm"},
		{"note", "list", "--collection", "a b"},
		{"datasets", "search", "a", ""}, {"datasets", "search", "a", long}, {"datasets", "search", "", "a"},
		{"datasets", "search", ",", "a"},
		{"datasets", "search", "a"}, {"datasets", "check", ""}, {"datasets", "delete", ""}, {"datasets", "export", ""},
		{"datasets", "create", "--id", "a", "--source", "b", "--embedder", "nonsense"},
		{"datasets", "list", "--datasets", ""},
		{"engine", "backup", ""}, {"engine", "backup", " "}, {"engine", "backup", "a", "b"},
		{"health", ""}, {"health", "a", "b"}, {"doctor", ""}, {"doctor", "nonsense"}, {"doctor", "cursr"},
		{"doctor", "a", "b"}, {"doctor", "--addr", "a"}, {"call", ""}, {"completion", ""}, {"completion", "csh"},
		{"help", "nonsense"},
		{"serve", ""}, {"serve", "--embedder", "nonsense", "."}, {"serve", "--embedder", "http://", "."},
		{"serve", "--addr", "a", "."},
		{"serve", "--embedder", "ftp://a", "."}, {"kb", "--embedder", "http://"}, {"engine", "--embedder", "http://"},
		{"datasets", "search", "--embedder", "http://", "a", "b"},
		{"call", "a/b", "--bridge-url", "nourl"}, {"store", "copy", "--from", "nourl", "--to", "file:a"},
		{"kb", "--json", "a"}, {"kb", "--data", data, "search", "a"}, {"datasets", "crate"}, {"note", "move"},
		{"store", "--to", "a"}, {"engine", "--data", data, "check"},
		{"access"}, {"access", "remove", "a"}, {"access", "add", ""}, {"access", "add", "a:b"}, {"access", "add", long},
		{"access", "add", "--group", "a\nb"}, {"access", "add", "--read", "", "a"}, {"access", "add", "--read", long, "a"},
		{"access", "set", "a"}, {"access", "rm"}, {"access", "rotate", "a", "b"}, {"access", "list", "a"},
	}
	for _, command := range [][]string{{"kb"}, {"kb", "search", "a"}, {"note", "list"}, {"note", "add", "a"},
		{"note", "get", "1"}, {"note", "rm", "1"}} {
		for _, url := range []string{"nourl", "http://", "ftp://host", "http://user:hunter2@host"} {
			commands = append(commands, append(command[:len(command):len(command)], "--engine-url", url))
		}
		commands = append(commands, append(command[:len(command):len(command)], "--store", "nourl"))
	}
	for _, args := range commands {
		status, stdout, stderr := runMain(t, data, args...)
		lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
		if status != exitUsage || stdout != "" || len(lines) != 2 || lines[1] == "" || len(stderr) > 1000 ||
			strings.Contains(stderr, "hunter2") {
			t.Errorf("%.60q ends with %d and prints %q, %q; want status 2, and a message and advice on stderr", args,
				status, stdout, stderr)
		}
	}
}

// TestAdvice checks what is suggested after typical mistakes.
func TestAdvice(t *testing.T) {
	data, docs := indexFiles(t, map[string]string{"a.md": "text"})
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{docs}, fmt.Sprintf("unknown command %q", docs) + "\nTo index it and serve it to agents: knowhow serve " + docs},
		{[]string{"~/Documents"}, "To index it and serve it to agents: knowhow serve ~/Documents"},
		{[]string{"search", "-n", "3", "text"}, "unknown flag -n\nDid you mean --top? "},
		{[]string{"search", "-q", "text"}, "unknown flag -q\nFlags have no short forms. "},
		{[]string{"serch"}, "Did you mean \"search\"? "},
	} {
		if status, _, stderr := runMain(t, data, tc.args...); status != exitUsage ||
			!strings.Contains(stderr, tc.want) {
			t.Errorf("%q ends with %d and prints %q, want %q", tc.args, status, stderr, tc.want)
		}
	}
}

// TestHostileArguments checks that messages do not repeat very long operands and
// values, and none of their control characters.
func TestHostileArguments(t *testing.T) {
	data, _ := indexFiles(t, map[string]string{"a.md": "text"})
	hostile := strings.Repeat("\x1b]0;owned\x07\u202e\r\nA", 2000)
	for _, args := range [][]string{
		{hostile}, {"help", hostile}, {"version", hostile}, {"completion", hostile}, {"--" + hostile},
		{"search", "--" + hostile},
		{"search", hostile}, {"search", "--label", hostile, "a"}, {"search", "--sort", hostile, "a"},
		{"search", "--lang", hostile, "a"}, {"search", "--data", hostile, "a"},
		{"read", hostile}, {"read", "--section", hostile, "a.md"}, {"read", "--cursor", hostile, "--json", "a.md"},
		{"read", "--max-chars", hostile, "a.md"},
		{"sources", hostile}, {"sources", "rm", hostile}, {"sources", "--data", hostile},
		{"doctor", hostile}, {"doctor", "--addr", hostile},
		{"status", "--label", hostile}, {"status", "--data", hostile},
		{"serve", hostile}, {"serve", "--label", hostile, "."}, {"serve", "--label", strings.Repeat("a", 10_000)},
		{"serve", "--domain", hostile, "."},
		{"serve", "--domain", strings.Repeat("a", 10_000), "."}, {"serve", "--tools", hostile, "."},
		{"serve", "--include", "[" + hostile, "."}, {"serve", "--addr", hostile, "."},
		{"serve", "--embedder", hostile, "."}, {"serve", "--description", hostile, "."},
		{"serve", "--token", hostile, "."}, {"serve", "--revision", hostile, "."},
		{"kb", hostile}, {"kb", "search", hostile}, {"kb", "--addr", hostile}, {"kb", "--engine-url", hostile},
		{"kb", "--store", hostile},
		{"note", hostile}, {"note", "get", hostile}, {"note", "rm", hostile}, {"note", "list", "--collection", hostile},
		{"note", "add", "--tag", hostile, "a"}, {"note", "list", "--top", hostile},
		{"engine", hostile}, {"engine", "backup", "/" + hostile}, {"engine", "check", "--data", hostile},
		{"datasets", hostile}, {"datasets", "search", hostile, "a"}, {"datasets", "check", hostile},
		{"datasets", "delete", hostile}, {"datasets", "export", hostile},
		{"datasets", "list", "--datasets", hostile}, {"datasets", "create", "--id", hostile},
		{"datasets", "create", "--id", "a", "--source", hostile},
		{"store", hostile}, {"store", "copy", "--from", hostile, "--to", "file:" + data},
		{"store", "copy", "--from", "file:" + hostile, "--to", "file:" + data},
		{"access", hostile}, {"access", "add", hostile}, {"access", "add", "--sso", hostile}, {"access", "rm", hostile},
		{"access", "set", hostile, "--no-read"}, {"access", "rotate", hostile}, {"access", "add", "a", "--read", hostile},
		{"access", "list", "--data", data + "/a.md/" + hostile}, {"access", "add", "a", "--access", data + "/a.md/" + hostile},
		{"sync", hostile}, {"call", hostile}, {"call", "a/b", hostile}, {"call", "--bridge-url", hostile, "a/b"},
		{"call", "--mcp-settings", hostile, "a/b"},
		{"fess", "--config", hostile}, {"fess", hostile}, {"health", hostile}, {"health", "http://" + hostile},
	} {
		status, stdout, stderr := runMain(t, data, args...)
		i := strings.IndexFunc(stderr, controls)
		if status != exitFailure && status != exitUsage || stderr == "" || len(stderr) > 2000 || stdout != "" ||
			i >= 0 {
			t.Errorf("%.60q ends with %d and prints %d bytes, beginning with %.300q; want at most 2000 without control characters", args, status, len(stderr), stderr)
		}
		if strings.Count(stderr, "\n") < 2 && !strings.Contains(stderr, "want ") {
			t.Errorf("%.60q prints no advice: %.300q", args, stderr)
		}
	}
}

// controls reports whether a terminal may obey a character.
func controls(r rune) bool {
	return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// TestReadComposed reads documents whose names have separate accents, as macOS
// writes them, by their names with composed letters, and the other way round.
func TestReadComposed(t *testing.T) {
	data, _ := indexFiles(t, map[string]string{"sub/U\u0308bersicht.md": "pears", "caf\u00e9.md": "apples"})
	for name, want := range map[string]string{
		"\u00dcbersicht.md": "pears", "sub/\u00dcbersicht.md": "pears", "sub/U\u0308bersicht.md": "pears",
		"cafe\u0301.md": "apples", "caf\u00e9.md": "apples",
	} {
		if status, stdout, stderr := runMain(t, data, "read", name); status != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("read %q ends with %d and prints %q%s, want %s", name, status, stdout, stderr, want)
		}
	}
}

// TestReadingCreatesNothing checks that commands that only read do not create the
// data folder.
func TestReadingCreatesNothing(t *testing.T) {
	for _, tt := range []struct {
		args   string
		status int
		stdout string
		stderr string // part of it
	}{
		{"note list", 0, "", "There are no documents. Add a note with: knowhow note add TEXT\n"},
		{"note list --json", 0, `{"documents":[],"total":0}` + "\n", ""},
		{"note get 1", 1, "", "Add a note with: knowhow note add TEXT\n"},
		{"note rm 1", 1, "", "Add a note with: knowhow note add TEXT\n"},
		{"kb search a", 1, "", "Add a note with: knowhow note add TEXT\n"},
		{"kb search --json a", 1, "", "there is no knowledge base"},
		{"engine check", 1, "", "Name its data folder with --data or KNOWHOW_DATA.\n"},
		{"search a", 1, "", "Index a folder with: knowhow serve FOLDER\n"},
		{"read a", 1, "", "Index a folder with: knowhow serve FOLDER\n"},
		{"status", 0, "", "Index a folder with: knowhow serve FOLDER\n"},
		{"sources", 0, "", "Index a folder with: knowhow serve FOLDER\n"},
		{"sources rm a", 1, "", "List the sources with: knowhow sources\n"},
		{"datasets list", 0, "", "Create one with: knowhow datasets create"},
		{"datasets check", 0, "", "Create one with: knowhow datasets create"},
		{"datasets search a b", 1, "", "knowhow datasets list\n"},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		status, stdout, stderr := runMain(t, dir, strings.Fields(tt.args)...)
		if status != tt.status || stdout != tt.stdout || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%s: status %d, %q, %q; want %d, %q, %q", tt.args, status, stdout, stderr, tt.status, tt.stdout,
				tt.stderr)
		}
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s created the data folder", tt.args)
		}
	}
}

// TestCommandsBelow checks the advice for an operand of a command that has
// commands below it.
func TestCommandsBelow(t *testing.T) {
	for args, want := range map[string]string{
		"kb --top 3 search a":    "unknown flag --top",
		"kb --addr a search b":   `Did you mean "knowhow kb search"? A command comes before its flags. Run "knowhow kb --help" for usage.`,
		"datasets crate":         `Did you mean "knowhow datasets create"?`,
		"note move":              `Commands: add, list, get, rm. Run "knowhow note --help" for usage.`,
		"store xyz":              `Commands: copy.`,
		"engine --addr a backup": `Did you mean "knowhow engine backup"?`,
	} {
		if status, _, stderr := runMain(t, t.TempDir(), strings.Fields(args)...); status != exitUsage ||
			!strings.Contains(stderr, want) {
			t.Errorf("%s ends with %d and prints %q, want %q", args, status, stderr, want)
		}
	}
}
