package index

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

func openIn(t *testing.T, dir string) *Index {
	t.Helper()
	x, err := Open(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatalf("Open() = %v", err)
	}
	return x
}

func closeIt(t *testing.T, x *Index) {
	t.Helper()
	if err := x.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
}

// simple returns a document of n paragraphs.
func simple(path string, n int) document.Change {
	var b strings.Builder
	d := &document.Document{ID: "id-" + path, Label: "a", Path: path, Title: "Title", URL: "file:///" + path,
		Hash: "sha256:"}
	for i := range n {
		part := fmt.Sprintf("paragraph %d of happy %s\n\n", i, path)
		d.Chunks = append(d.Chunks, document.Chunk{Offset: b.Len(), Length: len(part)})
		b.WriteString(part)
	}
	d.Text = b.String()
	return document.Change{Put: d}
}

func apply(t *testing.T, x *Index, changes ...document.Change) {
	t.Helper()
	if err := x.Apply(t.Context(), changes); err != nil {
		t.Fatalf("Apply() = %v", err)
	}
}

func total(t *testing.T, x *Index, text string) int {
	t.Helper()
	p, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text)})
	if err != nil {
		t.Fatalf("Search(%q) = %v", text, err)
	}
	return p.Total
}

func TestOpenRefuses(t *testing.T) {
	exec := func(statements string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			closeIt(t, openIn(t, filepath.Dir(path)))
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(statements); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(content string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name string
		make func(t *testing.T, path string)
		kind error
		want string
	}{
		{"text", write("these are my notes, not an index"), errkind.Corrupt, "not an index of knowhow"},
		{"short text", write("x"), errkind.Corrupt, "not an index of knowhow"},
		{"half a header", write("SQLite format 3\x00"), errkind.Corrupt, "restore a backup"},
		{"garbage behind the header", write("SQLite format 3\x00" + strings.Repeat("garbage!", 1000)),
			errkind.Corrupt, "restore a backup"},
		{"another program's database", func(t *testing.T, path string) {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(`CREATE TABLE mine(x)`); err != nil {
				t.Fatal(err)
			}
		}, errkind.Corrupt, "not an index of knowhow"},
		{"newer schema", exec(`PRAGMA user_version=99`), errkind.Unsupported, "update knowhow"},
		{"damaged pages", func(t *testing.T, path string) {
			closeIt(t, openIn(t, filepath.Dir(path)))
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			copy(b[100:], strings.Repeat("\xa5", 3000))
			write(string(b))(t, path)
		}, errkind.Corrupt, "restore a backup"},
	}
	for _, test := range tests {
		dir := t.TempDir()
		path := filepath.Join(dir, FileName)
		test.make(t, path)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		x, err := Open(t.Context(), Options{Dir: dir})
		if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: Open() = %v, want an error of kind %v that says %q and names the file", test.name, err,
				test.kind, test.want)
		}
		if err == nil {
			closeIt(t, x)
		} else if strings.Contains(err.Error(), "away") || strings.Contains(err.Error(), "delete") {
			t.Errorf("%s: Open() = %v, want no advice to delete or move the file", test.name, err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("%s: the file has changed (%v)", test.name, err)
		}
	}
}

func TestOpenEmptyFileAndOddPath(t *testing.T) {
	name := "a b?c#d%20é"
	if runtime.GOOS == "windows" {
		name = "a b'c#d%20é" // names have no question mark
	}
	dir := filepath.Join(t.TempDir(), name)
	x := openIn(t, dir)
	apply(t, x, simple("one", 2))
	closeIt(t, x)
	if _, err := os.Stat(filepath.Join(dir, FileName)); err != nil {
		t.Errorf("the index is not where it should be: %v", err)
	}
	x = openIn(t, dir)
	if n := total(t, x, "happy"); n != 1 {
		t.Errorf("Search(happy) after reopening = %d, want 1", n)
	}
	closeIt(t, x)
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, FileName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closeIt(t, openIn(t, empty))
}

// TestNewerWhileOpen upgrades the file of an open index as a newer program
// would.
func TestNewerWhileOpen(t *testing.T) {
	dir := t.TempDir()
	x := openIn(t, dir)
	defer closeIt(t, x)
	apply(t, x, simple("one", 2))
	later := setup{schema: schema}
	later.schema.Upgrades = append(later.schema.Upgrades, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `ALTER TABLE queries RENAME COLUMN word TO text`)
		return err
	})
	newer, err := open(t.Context(), Options{Dir: dir}, later)
	if err != nil {
		t.Fatalf("open() = %v", err)
	}
	closeIt(t, newer)
	_, searched := x.Search(t.Context(), search.Query{Text: query.MustParse("happy")})
	for op, err := range map[string]error{"Search": searched, "Apply": x.Apply(t.Context(),
		[]document.Change{simple("two", 2)})} {
		if !errors.Is(err, errkind.Unsupported) || !strings.Contains(err.Error(), "update knowhow") {
			t.Errorf("%s() in a file that was upgraded meanwhile = %v, want an error of kind Unsupported that contains \"update knowhow\"", op, err)
		}
	}
}

// TestOpenAtOnce opens a new index many times concurrently.
func TestOpenAtOnce(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			x, err := Open(t.Context(), Options{Dir: dir})
			if err != nil {
				t.Errorf("Open() = %v", err)
				return
			}
			if err := x.Apply(t.Context(), []document.Change{simple(fmt.Sprint(i), 2)}); err != nil {
				t.Errorf("Apply() = %v", err)
			}
			closeIt(t, x)
		})
	}
	group.Wait()
	x := openIn(t, dir)
	defer closeIt(t, x)
	if n := total(t, x, "happy"); n != 8 {
		t.Errorf("Search(happy) = %d, want 8", n)
	}
}

func TestDamageWhileOpen(t *testing.T) {
	dir := t.TempDir()
	x := openIn(t, dir)
	for i := range 20 {
		apply(t, x, simple(fmt.Sprint(i), 50))
	}
	closeIt(t, x)
	path := filepath.Join(dir, FileName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for off := 32 * 4096; off < len(b); off++ { // keep the first pages of the tables
		b[off] = 0xa5
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	x = openIn(t, dir)
	defer closeIt(t, x)
	_, err = x.Search(t.Context(), search.Query{Text: query.MustParse("happy"), Num: 10})
	for i := 0; err == nil && i < 20; i++ {
		_, err = x.ReadText(t.Context(), "id-"+fmt.Sprint(i), nil, 0, 100)
	}
	if !errors.Is(err, errkind.Corrupt) || !strings.Contains(err.Error(), path) {
		t.Errorf("reading damaged pages = %v, want an error of kind Corrupt that names the file", err)
	}
	if h, err := x.Health(t.Context()); err != nil || h.Status != "red" {
		t.Errorf("Health() = %v, %v, want red", h, err)
	}
}

func TestDiskFull(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	apply(t, x, simple("kept", 10))
	execute(t, x, `PRAGMA max_page_count=120`)
	var err error
	stored := 0
	for i := 0; err == nil && i < 200; i++ {
		if err = x.Apply(t.Context(), []document.Change{simple(fmt.Sprint("more", i), 100)}); err == nil {
			stored++
		}
	}
	if !errors.Is(err, errkind.Unavailable) || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("Apply() on a full disk = %v, want an error of kind Unavailable that contains \"disk full\"", err)
	}
	if n := total(t, x, "happy"); n != stored+1 {
		t.Errorf("after the disk was full, the index has %d documents, want %d", n, stored+1)
	}
	execute(t, x, `PRAGMA max_page_count=1000000`)
	apply(t, x, simple("again", 10))
	if n := total(t, x, "again"); n != 1 {
		t.Errorf("after space was freed, Search(again) = %d, want 1", n)
	}
}

// stale counts the documents in segments of another version of package analysis.
func stale(t *testing.T, x *Index) (n int) {
	t.Helper()
	if err := scanRow(t, x, `SELECT coalesce(sum(docs-removed), 0) FROM segments WHERE analyzer=0`, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMaintain(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	for i := range 30 {
		apply(t, x, simple(fmt.Sprint(i), 20))
	}
	// As an older analyzer would have left it.
	for _, s := range []string{`UPDATE segments SET analyzer=0`, `UPDATE kv SET value=value+1 WHERE key='generation'`} {
		execute(t, x, s)
	}
	if n := stale(t, x); n != 30 {
		t.Errorf("%d documents are in segments of another version, want 30", n)
	}
	if n := total(t, x, "happy"); n != 30 {
		t.Errorf("before Maintain, Search(happy) = %d, want 30", n)
	}
	// Changes before or during Maintain are kept.
	apply(t, x, simple("7", 3), document.Change{Delete: &document.Ref{Label: "a", Path: "8"}})
	// After an interruption, the next call continues.
	ctx, cancel := context.WithCancel(t.Context())
	if err := x.Maintain(ctx, func(int, int) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("Maintain() = %v, want context.Canceled", err)
	}
	done, all := 0, 0
	if err := x.Maintain(t.Context(), func(d, n int) { done, all = d, n }); err != nil {
		t.Fatalf("Maintain() = %v", err)
	}
	if done != all || done == 0 || done >= 29 {
		t.Errorf("the second Maintain() reported %d of %d, want some but not all of 29", done, all)
	}
	if n := total(t, x, "happy"); n != 29 {
		t.Errorf("Search(happy) = %d, want 29", n)
	}
	list, err := x.Suggest(t.Context(), search.SuggestQuery{Prefix: "o", Num: 10})
	if err != nil || len(list) != 1 || list[0].Text != "of" {
		t.Errorf("Suggest(o) = %v, %v, want of alone", list, err)
	}
	if n := stale(t, x); n != 0 {
		t.Errorf("%d documents are in segments of another version, want none", n)
	}
}

// TestInterruptedRebuild checks that searches are partial after a rebuild that was
// interrupted, also in later processes, until all documents are indexed again.
func TestInterruptedRebuild(t *testing.T) {
	dir := largeFolder(t)
	for _, f := range segmentFiles(t, dir) {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	x := openIn(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	if err := x.Maintain(ctx, func(int, int) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("Maintain() = %v, want context.Canceled", err)
	}
	closeIt(t, x)
	checkPartial(t, dir)
}

// TestRestoredBackup checks that searches of a backup, which lacks the segments in
// files, are partial until all documents are indexed again.
func TestRestoredBackup(t *testing.T) {
	x := openIn(t, largeFolder(t))
	defer closeIt(t, x)
	dir := t.TempDir()
	if err := x.Backup(t.Context(), filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	checkPartial(t, dir)
}

// checkPartial checks that searches in largeFolder are partial before Maintain,
// and complete after it.
func checkPartial(t *testing.T, dir string) {
	t.Helper()
	x := openIn(t, dir)
	defer closeIt(t, x)
	for _, partial := range []bool{true, false} {
		if !partial {
			maintain(t, x)
		}
		p, err := x.Search(t.Context(), search.Query{Text: query.MustParse("happy"), Num: 10})
		if err != nil || p.Partial != partial || (p.Total == 301) == partial {
			t.Errorf("Search(happy) = %+v, %v, want partial %t", p, err, partial)
		}
		c, err := x.SearchChunks(t.Context(), search.ChunkQuery{Text: query.MustParse("happy"), Top: 10})
		if err != nil || c.Partial != partial {
			t.Errorf("SearchChunks(happy) = %+v, %v, want partial %t", c, err, partial)
		}
		problems, err := x.Examine(t.Context())
		if err != nil || len(problems) > 0 != partial || partial && !problems[0].Repairable {
			t.Errorf("Examine() = %v, %v, want problems that are repairable: %t", problems, err, partial)
		}
	}
}

// overwrite damages a file in the middle.
func overwrite(t *testing.T, path string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, 500), 20_000); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedSegments checks that damaged segments are built again from the
// texts, and that nothing is lost.
func TestDamagedSegments(t *testing.T) {
	damage := map[string]func(t *testing.T, path string){
		"removed": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
		"truncated": func(t *testing.T, path string) {
			if err := os.Truncate(path, 1000); err != nil {
				t.Fatal(err)
			}
		},
		"overwritten":                  overwrite,
		"overwritten, and found later": overwrite,
	}
	for name, harm := range damage {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var log bytes.Buffer
			x, err := Open(t.Context(), Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				apply(t, x, simple(fmt.Sprint(i), 3))
			}
			var many []document.Change
			for i := range 300 {
				c := simple(fmt.Sprint("large", i), 2)
				c.Put.Text += fmt.Sprintf(" unique%d", i)
				for n := range 40 { // words that make the segment large
					c.Put.Text += fmt.Sprintf(" w%dx%d", i, n)
				}
				c.Put.Chunks[len(c.Put.Chunks)-1].Length = len(c.Put.Text) - c.Put.Chunks[len(c.Put.Chunks)-1].Offset
				many = append(many, c)
			}
			apply(t, x, many...)
			closeIt(t, x)
			files, err := filepath.Glob(filepath.Join(dir, segments.Dir, "*.segment"))
			if err != nil || len(files) != 1 {
				t.Fatalf("the segments in files are %v, %v, want one", files, err)
			}
			harm(t, files[0])
			later := setup{schema: schema}
			if strings.HasSuffix(name, "later") {
				later.segments.VerifiedSize = 1
			}
			x, err = open(t.Context(), Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))}, later)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "later") {
				if n := total(t, x, "title:title"); n < 3 {
					t.Errorf("with a damaged segment, Search(title) = %d, want at least the rest", n)
				}
			}
			if n := total(t, x, "happy"); n < 3 {
				t.Errorf("with a damaged segment, Search(happy) = %d, want the rest", n)
			}
			if err := x.Maintain(t.Context(), nil); err != nil {
				t.Errorf("Maintain() = %v", err)
			}
			if n := total(t, x, "happy"); n != 303 {
				t.Errorf("after Maintain, Search(happy) = %d, want 303", n)
			}
			if n := total(t, x, "unique299"); n != 1 {
				t.Errorf("after Maintain, Search(unique299) = %d, want 1", n)
			}
			closeIt(t, x)
			if !strings.Contains(log.String(), filepath.Base(files[0])) {
				t.Errorf("the log does not name the file:\n%s", log.String())
			}
		})
	}
}
