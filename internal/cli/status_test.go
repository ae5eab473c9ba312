package cli

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/indexing"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
)

// indexFiles indexes files as the source docs, and returns the data folder and
// the folder of the files.
func indexFiles(t *testing.T, files map[string]string) (data, docs string) {
	t.Helper()
	data, docs = t.TempDir(), t.TempDir()
	for name, text := range files {
		path := filepath.Join(docs, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x, err := index.Open(t.Context(), index.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.AddSource(t.Context(), document.Source{Label: "docs", Path: docs}); err != nil {
		t.Fatal(err)
	}
	in := indexing.New(indexing.Options{Index: x, Dir: data, Lines: terminal.NewLines(io.Discard, nil),
		Log: slog.New(slog.DiscardHandler), Once: true})
	if err := in.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return data, docs
}

// run runs a command on a data folder and returns what it prints.
func run(t *testing.T, data string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	env := map[string]string{"KNOWHOW_DATA": data}
	lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	var out, errors bytes.Buffer
	status = Main(t.Context(), args, Env{Program: "knowhow", Lookup: lookup}, strings.NewReader(""), &out, &errors)
	return out.String(), errors.String(), status
}

// TestStatusOfProcesses shows which process indexes a source.
func TestStatusOfProcesses(t *testing.T) {
	data, _ := indexFiles(t, map[string]string{
		"en.md": "# Pears\n\nThe pears are grown on the trees that we have in our garden, and they are sweet.\n",
		"b.txt": "x",
	})
	out, _, _ := run(t, data, "status")
	if want := "docs: no process watches it\n"; !strings.Contains(out, want) {
		t.Errorf("status = %q, want %q", out, want)
	}
	x, err := index.Open(t.Context(), index.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if _, err := x.Lease(t.Context(), "my-host-42-ABCD", time.Hour, "indexing:docs", "merge"); err != nil {
		t.Fatal(err)
	}
	if err := x.SetProgress(t.Context(), index.Progress{Label: "docs", Done: 1, Total: 3}); err != nil {
		t.Fatal(err)
	}
	out, _, _ = run(t, data, "status")
	for _, want := range []string{"docs: process 42 on my-host watches it and has indexed 1 of 3 documents\n",
		"docs: languages: 1 en, 1 unknown\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("status = %q, want %q", out, want)
		}
	}
	out, _, _ = run(t, data, "status", "--json")
	if want := `"languages":{"en":1,"unknown":1},"process":{"host":"my-host","pid":42},"indexing":{"done":1,"total":3}`; !strings.Contains(out, want) {
		t.Errorf("status --json = %s, want %s", out, want)
	}
	_, stderr, status := run(t, data, "search", "nothingness")
	if want := "Indexing has done 1 of 3 documents: search again later.\n"; status != 1 ||
		!strings.Contains(stderr, want) {
		t.Errorf("search = %d with %q, want 1 with %q", status, stderr, want)
	}
}

// A process that serves a source which is removed finds nothing in it any more.
func TestRemoveServedSource(t *testing.T) {
	data, docs := indexFiles(t, map[string]string{"a.md": "pears"})
	x, err := index.Open(t.Context(), index.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if _, err := x.Lease(t.Context(), "my-host-42-ABCD", time.Hour, "indexing:docs"); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := run(t, data, "sources", "rm", "docs")
	if want := "Process 42 on my-host still serves docs, without documents. End it, or, to index the documents again, restart it with: knowhow serve " + docs + "\n"; status != 0 ||
		!strings.HasPrefix(stdout, "removed source docs and 1 document ") || stderr != want {
		t.Errorf("sources rm = %d with %q and %q, want %q", status, stdout, stderr, want)
	}
}

// JSON for people has no character of a file name that controls a terminal.
func TestStatusOfHostileNames(t *testing.T) {
	data, _ := indexFiles(t, map[string]string{"a\u202e\u009b\x7fb.bin": "\x00\x01", "c.md": "text"})
	for _, args := range [][]string{{"status", "--left-out", "--json"}, {"status", "--left-out"}} {
		out, _, status := run(t, data, args...)
		if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && sanitize.Invisible(r) }); status != 0 ||
			i >= 0 || !strings.Contains(out, `\u202e`) {
			t.Errorf("%q = %d, %q, want the name with escapes", args, status, out)
		}
	}
}

// Commands that messages advise are for the data folder that a flag names.
func TestAdviceForDataFolder(t *testing.T) {
	data, docs := indexFiles(t, map[string]string{"a.md": "pears", "b.bin": "\x00\x01"})
	empty := t.TempDir()
	advice := func(data string, args ...string) string {
		out, stderr, _ := run(t, t.TempDir(), append(args, "--data", data)...)
		return out + stderr
	}
	for _, tt := range []struct{ got, want string }{
		{advice(data, "search", "nothingness"), "knowhow serve --data " + data + " FOLDER\n"},
		{advice(data, "search", "nothingness"), "knowhow status --data " + data + " --left-out\n"},
		{advice(data, "search", "--label", "nope", "x"), "knowhow sources --data " + data + "\n"},
		{advice(data, "read", "b.bin"), "knowhow status --data " + data + " --left-out\n"},
		{advice(empty, "search", "x"), "knowhow serve --data " + empty + " FOLDER\n"},
		{advice(empty, "sources"), "knowhow serve --data " + empty + " FOLDER\n"},
	} {
		if !strings.Contains(tt.got, tt.want) {
			t.Errorf("wrote %q, want %q", tt.got, tt.want)
		}
	}
	x, err := index.Open(t.Context(), index.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.SetProgress(t.Context(), index.Progress{Label: "docs", Unchanged: 1, Total: 5,
		Stopped: search.Interrupted}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"status"}, {"search", "pears"}, {"search", "nothingness"}} {
		if got, want := advice(data, args...), "o continue: knowhow serve --data "+data+" "+docs+"\n"; !strings.Contains(got, want) {
			t.Errorf("%q wrote %q, want %q", args, got, want)
		}
	}
}

// TestIncomplete shows in status and search what is missing and why.
func TestIncomplete(t *testing.T) {
	data, docs := indexFiles(t, map[string]string{"a.md": "pears", "b.txt": "apples"})
	out, _, _ := run(t, data, "status")
	if strings.Contains(out, "incomplete") {
		t.Errorf("status after complete indexing = %q", out)
	}
	x, err := index.Open(t.Context(), index.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for _, tt := range []struct {
		progress index.Progress
		text     string
		json     string
	}{
		{index.Progress{Done: 0, Unchanged: 2, Total: 5, Stopped: search.Interrupted},
			"2 of 7 documents are indexed, then indexing was interrupted",
			`"incomplete":{"done":2,"total":7,"reason":"interrupted"}`},
		{index.Progress{Unchanged: 2, Total: 5, Stopped: search.DiskFull},
			"2 of 7 documents are indexed, then the disk was full: free some space on it",
			`"incomplete":{"done":2,"total":7,"reason":"disk-full"}`},
		{index.Progress{Unchanged: 2, Total: 5, Stopped: search.Failed, Message: "a\x1b[31mb"},
			"2 of 7 documents are indexed, then indexing failed: a[31mb",
			`"incomplete":{"done":2,"total":7,"reason":"failed","message":"a\u001b[31mb"}`},
	} {
		tt.progress.Label = "docs"
		if err := x.SetProgress(t.Context(), tt.progress); err != nil {
			t.Fatal(err)
		}
		out, _, _ := run(t, data, "status")
		if want := "docs: incomplete: " + tt.text + "\ndocs: to continue: knowhow serve " + docs +
			"\n"; !strings.Contains(out, want) || !strings.HasPrefix(out, "docs   2 of 7 documents ") {
			t.Errorf("status = %q, want %q", out, want)
		}
		out, _, _ = run(t, data, "status", "--json")
		if !strings.Contains(out, tt.json) {
			t.Errorf("status --json = %s, want %s", out, tt.json)
		}
		line := "Documents of docs are missing: 2 of 7 documents are indexed, then "
		for _, word := range []string{"nothingness", "pears"} {
			if _, stderr, _ := run(t, data, "search", word); !strings.Contains(stderr, line) ||
				!strings.Contains(stderr, ". To continue: knowhow serve "+docs+"\n") {
				t.Errorf("search %s prints %q, want %q", word, stderr, line)
			}
		}
	}
}

// TestNotUpToDate shows a source that was indexed completely and cannot be read now.
func TestNotUpToDate(t *testing.T) {
	data, _ := indexFiles(t, map[string]string{"a.md": "pears"})
	x, err := index.Open(t.Context(), index.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.SetProgress(t.Context(), index.Progress{Label: "docs", Stopped: search.Interrupted}); err != nil {
		t.Fatal(err)
	}
	out, _, _ := run(t, data, "status")
	if want := "docs: not up to date: it is not known what has changed, because indexing was interrupted\n"; !strings.Contains(out, want) {
		t.Errorf("status = %q, want %q", out, want)
	}
	if _, stderr, _ := run(t, data, "search", "pears"); stderr != "1 to 1 of 1 document\n" {
		t.Errorf("search prints %q, want nothing about indexing", stderr)
	}
}

// A page without a document that has all words says so in one way, and names words
// that no document has.
func TestNoneWithAllWords(t *testing.T) {
	data, _ := indexFiles(t, map[string]string{"a.md": "pears grow here", "b.md": "apples grow there"})
	for query, want := range map[string]string{
		"pears apples":       "",
		"pears apples plums": "No document has: plums. The hits are those of the other words.\n",
	} {
		want = "1 to 2 of 2 documents, none with all words\n" + want
		if _, stderr, _ := run(t, data, "search", query); stderr != want {
			t.Errorf("search %s prints %q, want %q", query, stderr, want)
		}
	}
}

// TestNothingFound shows what to do next.
func TestNothingFound(t *testing.T) {
	data, _ := indexFiles(t, map[string]string{"a.md": "pears", ".hidden": "x", "c.png": "\x00"})
	_, stderr, status := run(t, data, "search", "nothingness")
	want := "knowhow search: nothing found\nTry fewer or other words.\nSearched: docs. To search another folder, index it with: knowhow serve FOLDER\n" +
		"2 files and folders are left out of the index. List the reasons with: knowhow status --left-out\n"
	if status != 1 || stderr != want {
		t.Errorf("search = %d with %q, want 1 with %q", status, stderr, want)
	}
	if _, stderr, _ := run(t, data, "search", "filetype:xlsx"); !strings.Contains(stderr,
		"Try fewer or other words. The values of filetype are txt.") {
		t.Errorf("search for a type that no document has prints %q, want the types", stderr)
	}
}
