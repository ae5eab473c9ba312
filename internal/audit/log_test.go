package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A record is a line of the file.
type record struct {
	Time    time.Time `json:"time"`
	User    string    `json:"user"`
	Client  string    `json:"client"`
	Session string    `json:"session"`
	Path    string    `json:"path"`
	Tool    string    `json:"tool"`
	Query   string    `json:"query"`
	Labels  []string  `json:"labels"`
	Docs    []string  `json:"docs"`
	Status  int       `json:"status"`
	MS      float64   `json:"ms"`
}

// search is a call as searches make them.
func search() *audit.Call {
	c := &audit.Call{Time: time.Date(2026, 11, 27, 9, 30, 0, 123456789, time.FixedZone("", 3600)), User: "ann",
		Client: "claude-code", Session: "a1b2c3", Path: "/mcp", Tool: "knowhow_search", Status: 200,
		Took: 12345678 * time.Nanosecond}
	c.SetQuery("how do we deploy?")
	c.AddLabels("handbook", "docs", "handbook")
	c.AddDocuments("d1", "d2")
	c.AddDocuments("d2", "d3")
	return c
}

// open opens a log in a folder of its own.
func open(t testing.TB, o audit.Options) (*audit.Log, string) {
	t.Helper()
	o.Path = filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := audit.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, o.Path
}

// write writes a call.
func write(t *testing.T, l *audit.Log, c *audit.Call) {
	t.Helper()
	if err := l.Write(c); err != nil {
		t.Error(err)
	}
}

// lines returns the lines of a file.
func lines(t testing.TB, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		t.Errorf("%s ends within a line", path)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func TestLines(t *testing.T) {
	hostile := &audit.Call{User: "oauth:a\"b\\c", Client: "x\n{}\x1b[31m\u202e\U000e0041\xff",
		Tool: strings.Repeat("ä", 300), Path: "/kb/" + strings.Repeat("p", 2000), Status: -32002}
	hostile.SetQuery(strings.Repeat("語", 2001))
	l, path := open(t, audit.Options{})
	write(t, l, search())
	write(t, l, &audit.Call{})
	write(t, l, hostile)
	write(t, l, nil)
	var none *audit.Log
	if err := errors.Join(none.Write(search()), none.Check(), none.Close()); err != nil {
		t.Errorf("the nil Log fails: %v", err)
	}
	want := []string{
		`{"time":"2026-11-27T08:30:00.123Z","user":"ann","client":"claude-code","session":"a1b2c3",` +
			`"path":"/mcp","tool":"knowhow_search","query":"how do we deploy?","labels":["handbook","docs"],` +
			`"docs":["d1","d2","d3"],"status":200,"ms":12.345}`,
		`{"time":"0001-01-01T00:00:00.000Z","user":"","client":"","session":"","path":"","tool":"","labels":[],` +
			`"status":0,"ms":0}`,
		`{"time":"0001-01-01T00:00:00.000Z","user":"oauth:a\"b\\c",` +
			`"client":"x\n{}\u001b[31m\u202e\udb40\udc41�","session":"","path":"/kb/` + strings.Repeat("p", 996) +
			`…","tool":"` + strings.Repeat("ä", 200) + `…","query":"` + strings.Repeat("語", 2000) +
			`…","labels":[],"status":-32002,"ms":0}`,
	}
	if diff := cmp.Diff(want, lines(t, path)); diff != "" {
		t.Errorf("lines differ (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil {
		t.Error(err)
	} else if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %o, want 600", info.Mode().Perm())
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none", "audit.jsonl"): "opening the audit file: there is no folder " +
			filepath.Join(dir, "none") + ": create it: invalid",
		filepath.Join(dir, "file", "audit.jsonl"): "opening the audit file: there is no folder " +
			filepath.Join(dir, "file") + ": create it: invalid",
		dir: "opening the audit file: " + dir + " is not a file: invalid",
	} {
		if _, err := audit.Open(audit.Options{Path: path}); err == nil || err.Error() != want {
			t.Errorf("Open(%q) = %v, want %s", path, err, want)
		}
	}
	_, path := open(t, audit.Options{})
	if _, err := audit.Open(audit.Options{Path: path}); !errors.Is(err, errkind.Conflict) {
		t.Errorf("a second Open() = %v, want a Conflict", err)
	}
}

// Other programs rename or remove the file, and links lead to it.
func TestReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	dir := t.TempDir()
	path, link := filepath.Join(dir, "audit.jsonl"), filepath.Join(t.TempDir(), "link.jsonl")
	if err := errors.Join(os.WriteFile(path, []byte(`{"time":"cut`), 0o640), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	l, err := audit.Open(audit.Options{Path: link})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	write(t, l, &audit.Call{User: "one"})
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write(t, l, &audit.Call{User: "two"})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write(t, l, &audit.Call{User: "three"})
	if got := lines(t, path+".1"); len(got) != 2 || got[0] != `{"time":"cut` || !strings.Contains(got[1], `"one"`) {
		t.Errorf("the renamed file has %q", got)
	}
	if got := lines(t, path); len(got) != 1 || !strings.Contains(got[0], `"three"`) {
		t.Errorf("the file has %q", got)
	}
}

// 50 callers at once, files that are renamed often: every call is in exactly one line.
func TestRotation(t *testing.T) {
	const callers, calls = 50, 100
	l, path := open(t, audit.Options{MaxBytes: 64 << 10})
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for j := range calls {
				write(t, l, &audit.Call{User: fmt.Sprint(i), Tool: fmt.Sprint(j), Time: time.Now()})
			}
		})
	}
	all.Wait()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "audit*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[2]string]bool{}
	for _, file := range files {
		for _, line := range lines(t, file) {
			var r record
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			if key := [2]string{r.User, r.Tool}; seen[key] {
				t.Errorf("%v stands twice", key)
			} else {
				seen[key] = true
			}
		}
	}
	if len(seen) != callers*calls || len(files) < 5 {
		t.Errorf("%d calls in %d files, want %d in several", len(seen), len(files), callers*calls)
	}
}

// While the folder is gone, calls fail, and when it is back, they are recorded again.
func TestFailures(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a folder with an open file cannot be renamed")
	}
	var log bytes.Buffer
	l, path := open(t, audit.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	dir := filepath.Dir(path)
	if err := errors.Join(l.Check(), os.Rename(dir, dir+".away")); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); err != nil {
		t.Errorf("Check() before a failure = %v", err)
	}
	for range 2 {
		for _, err := range []error{l.Write(&audit.Call{User: "lost"}), l.Check()} {
			if !errors.Is(err, errkind.Unavailable) || strings.Contains(err.Error(), dir) ||
				!strings.Contains(err.Error(), "cannot be recorded") {
				t.Errorf("error = %v, want Unavailable without a path", err)
			}
		}
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	write(t, l, &audit.Call{User: "kept"})
	if got := lines(t, path); len(got) != 1 || !strings.Contains(got[0], `"kept"`) {
		t.Errorf("the file has %q", got)
	}
	if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "calls are refused") ||
		!strings.Contains(got, "recorded again") {
		t.Errorf("log = %s", got)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Write(&audit.Call{}); !errors.Is(err, errkind.Unavailable) {
		t.Errorf("Write() after Close() = %v", err)
	}
}

// Tokens are nowhere in a line, whatever has them.
func TestTokens(t *testing.T) {
	token, jwt := "kh_"+strings.Repeat("aB3_-", 8)+"xyz", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.c2ln"
	l, path := open(t, audit.Options{})
	c := &audit.Call{Path: "/fess/" + token, Tool: jwt, Client: "x " + token}
	c.SetQuery("find " + token + " and " + jwt + "?")
	c.AddLabels(token)
	write(t, l, c)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(data); strings.Contains(got, "aB3") || strings.Contains(got, "eyJ") ||
		!strings.Contains(got, `"query":"find *** and ***?"`) {
		t.Errorf("the line is %s", got)
	}
}

// A file of another kind is not written to.
func TestOtherFile(t *testing.T) {
	for text, ok := range map[string]bool{"": true, "\n": true, `{"time":"2026`: true, "{\n": false, "SQLite format 3": false} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := audit.Open(audit.Options{Path: path})
		if (err == nil) != ok || err != nil && !errors.Is(err, errkind.Invalid) {
			t.Errorf("Open of a file with %q: %v", text, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// FuzzLine checks that a call of any texts is one line, without characters that cannot be
// seen, that parses back to the same values.
func FuzzLine(f *testing.F) {
	f.Add("ann", "claude", "s", "/mcp", "search", "a query", "label", "d1", 200, int64(1500000))
	f.Add("\n\"\\", "\x00\x1b\x7f", "\xff\xfe", "\u2028\u202e", "\U000e0041", strings.Repeat("ä", 2100), "", "…",
		-1, int64(-5))
	l, file := open(f, audit.Options{})
	f.Fuzz(func(t *testing.T, user, client, session, path, tool, query, label, doc string, status int, took int64) {
		if err := os.Truncate(file, 0); err != nil {
			t.Fatal(err)
		}
		c := &audit.Call{Time: time.UnixMilli(1795771800123), User: user, Client: client, Session: session, Path: path,
			Tool: tool, Status: status, Took: time.Duration(took)}
		c.SetQuery(query)
		c.AddLabels(label)
		c.AddDocuments(doc)
		write(t, l, c)
		all := lines(t, file)
		if len(all) != 1 || !utf8.ValidString(all[0]) || strings.ContainsFunc(all[0], unicode.IsControl) {
			t.Fatalf("lines = %q, want one without control characters", all)
		}
		var got record
		decoder := json.NewDecoder(strings.NewReader(all[0]))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&got); err != nil {
			t.Fatal(err)
		}
		want := record{Time: c.Time, User: bounded(user, 200), Client: bounded(client, 200),
			Session: bounded(session, 200), Path: bounded(path, 1000),
			Tool: bounded(tool, 200), Query: bounded(query, 2000), Labels: []string{bounded(label, 200)},
			Docs: []string{bounded(doc, 1000)}, Status: status, MS: float64(took/1000) / 1000}
		if strings.Contains(all[0], "***") {
			return // there was a token
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the line differs (-want +got):\n%s", diff)
		}
	})
}

// bounded returns the first n runes of a text, with U+FFFD for each byte that is not UTF-8.
func bounded(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n]) + "…"
	} else {
		return string(runes)
	}
}

func BenchmarkWrite(b *testing.B) {
	l, _ := open(b, audit.Options{})
	c := search()
	for i := range 20 {
		c.AddDocuments(fmt.Sprintf("0123456789abcdef0123456789abcd%02d", i))
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := l.Write(c); err != nil {
				b.Error(err)
			}
		}
	})
}
