package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/chunk"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// memorySink keeps documents in memory.
type memorySink struct {
	applying func(changes []document.Change) error // called before changes are made; nil: nothing

	mu      sync.Mutex
	docs    map[document.Ref]*document.Document
	batches [][]document.Change
	asked   int // calls of Stamps
}

func (m *memorySink) Apply(ctx context.Context, changes []document.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.applying != nil {
		if err := m.applying(changes); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.docs == nil {
		m.docs = map[document.Ref]*document.Document{}
	}
	for _, c := range changes {
		if c.Put != nil {
			m.docs[document.Ref{Label: c.Put.Label, Path: c.Put.Path}] = c.Put
		} else {
			delete(m.docs, *c.Delete)
		}
	}
	m.batches = append(m.batches, changes)
	return nil
}

func (m *memorySink) Stamps(ctx context.Context, label string) (map[string]document.Stamp, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	stamps := map[string]document.Stamp{}
	for ref, d := range m.docs {
		if ref.Label == label {
			stamps[ref.Path] = d.Stamp
		}
	}
	return stamps, nil
}

func (m *memorySink) Generation(context.Context) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint(len(m.batches)), nil
}

func (m *memorySink) doc(path string) *document.Document {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.docs[document.Ref{Label: "docs", Path: path}]
}

// paths returns the paths of all documents, sorted.
func (m *memorySink) paths() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var paths []string
	for ref := range m.docs {
		paths = append(paths, ref.Path)
	}
	slices.Sort(paths)
	return paths
}

// puts returns the paths of all documents that were ever put, in order.
func (m *memorySink) puts() []string {
	var paths []string
	for _, b := range m.batches {
		for _, c := range b {
			if c.Put != nil {
				paths = append(paths, c.Put.Path)
			}
		}
	}
	return paths
}

// anHourAgo is a modification time that is settled.
func anHourAgo() time.Time { return time.Now().Add(-time.Hour).Truncate(time.Second) }

// write makes a file that was last changed at mtime.
func write(t testing.TB, root, name, text string, mtime time.Time) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, mtime, mtime); err != nil {
		t.Fatal(err)
	}
}

// folder makes a folder with files that are settled.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		write(t, root, name, text, anHourAgo())
	}
	return root
}

func docs(root string) document.Source { return document.Source{Label: "docs", Path: root} }

// mustSync syncs and compares the counts of the result.
func mustSync(t *testing.T, g *Ingester, src document.Source, want Result) *Result {
	t.Helper()
	res, err := g.Sync(t.Context(), src)
	if err != nil {
		t.Fatalf("Sync: %v", err)
	}
	got := *res
	got.Skipped, got.LeftOutPaths, got.Bytes = nil, nil, 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("Sync (-want +got):\n%s", diff)
	}
	return res
}

// left counts n files that are left out for one reason.
func left(reason Reason, n int) map[Reason]int { return map[Reason]int{reason: n} }

func TestSyncFollowsChanges(t *testing.T) {
	root := folder(t, map[string]string{"a.md": "# A\n\ntext", "b.txt": "bbb", "sub/c.html": "<title>C</title>x"})
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	mustSync(t, g, docs(root), Result{Added: 3})
	mustSync(t, g, docs(root), Result{Unchanged: 3})

	write(t, root, "b.txt", "BBBB", anHourAgo())             // another size
	write(t, root, "a.md", "# B\n\ntext", time.Unix(1e9, 0)) // another time
	write(t, root, "sub/d.txt", "new", anHourAgo())          // new
	if err := os.Remove(root + "/sub/c.html"); err != nil {  // gone
		t.Fatal(err)
	}
	mustSync(t, g, docs(root), Result{Added: 1, Changed: 2, Removed: 1})
	if diff := cmp.Diff([]string{"a.md", "b.txt", "sub/d.txt"}, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	if got := sink.doc("a.md").Title; got != "B" {
		t.Errorf("title of the changed file = %q, want B", got)
	}
	// Another process continues with the state in the index.
	mustSync(t, New(Options{Sink: sink}), docs(root), Result{Unchanged: 3})
}

func TestSyncMakesDocuments(t *testing.T) {
	mtime := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	root := folder(t, nil)
	write(t, root, "sub/my notes.md", "# First\n\nThe text of the first is in it.\n\n# Second\n\nEnd.\n", mtime)
	sink := &memorySink{}
	mustSync(t, New(Options{Sink: sink}), docs(root), Result{Added: 1})

	body := "# First\n\nThe text of the first is in it.\n\n# Second\n\nEnd."
	want := &document.Document{
		ID: document.IDOf("docs", "sub/my notes.md"), Label: "docs", Path: "sub/my notes.md", SourcePath: "sub/my notes.md",
		FromSource: true, Type: "markdown",
		URL: fileURL(root) + "/sub/my%20notes.md", Title: "First", Lang: "en",
		MIMEType: "text/markdown", FileType: "txt", Filename: "my notes.md", Modified: mtime,
		Hash: chunk.Hash(body), Text: body,
		Chunks: []document.Chunk{{Offset: 0, Length: len(body), Heading: "First"}},
		Sections: []document.Section{{Offset: 0, Heading: "First"},
			{Offset: strings.Index(body, "# Second"), Heading: "Second"}},
		Size:  int64(len(body)) + 1,
		Stamp: document.Stamp{Size: int64(len(body)) + 1, ModTime: mtime},
	}
	got := sink.doc("sub/my notes.md")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}

func TestSyncLeavesOut(t *testing.T) {
	outside := folder(t, map[string]string{"secret.txt": "s", "dir/x.txt": "x"})
	root := folder(t, map[string]string{
		"a.txt": "a", "Makefile": "all:\n\tgo build\n", ".hidden.txt": "h", ".git/config": "c",
		"node_modules/x/y.js": "y",
		"__pycache__/z.txt":   "z", "image.png": "\x89PNG\r\n\x1a\n", "blob": "a\x00\x01\x02b",
		".store/only.md": "# Only",
		"sub/b.txt":      "b", ".gitignore": "*.tmp\n", "left.tmp": "l",
	})
	for _, l := range [][2]string{
		{filepath.Join(outside, "secret.txt"), "out.txt"}, {filepath.Join(outside, "dir"), "outdir"},
		{"sub", "subdir"}, {"a.txt", "again.txt"}, {".store/only.md", "only.md"},
		{filepath.Join(root, ".store/only.md"), "second.md"},
		{"nowhere", "dangling"}, {"loop", "loop"}, {"a.txt/x", "through.txt"}, {".", "self"},
		{"sub/../subdir/../circle", "circle"},
		{"left.tmp", "left.txt"}, {"a.txt", "again.tmp"},
	} {
		if err := os.Symlink(l[0], filepath.Join(root, l[1])); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	sink := &memorySink{}
	res, err := New(Options{Sink: sink}).Sync(t.Context(), docs(root))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Makefile", "a.txt", "only.md", "sub/b.txt"}, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[Reason]int{NoText: 2, Hidden: 4, ThirdParty: 1, Generated: 1, Link: 9, Ignored: 2},
		res.LeftOut); diff != "" || res.SkippedTotal != 0 {
		t.Errorf("skipped %v, want nothing; left out (-want +got):\n%s", res.Skipped, diff)
	}
	var links []string
	for _, l := range res.LeftOutPaths {
		if l.Reason == Link {
			links = append(links, l.Path)
		}
	}
	if diff := cmp.Diff([]string{"circle", "dangling", "left.txt", "loop", "out.txt", "outdir", "self", "subdir",
		"through.txt"}, links); diff != "" {
		t.Errorf("links that are not followed (-want +got):\n%s", diff)
	}
	if d := sink.doc("only.md"); d != nil && !strings.HasSuffix(d.URL, "/only.md") {
		t.Errorf("URL of a linked file = %q, want the link's", d.URL)
	}
}

func TestSyncSkipsLargeFiles(t *testing.T) {
	root := folder(t, map[string]string{"big.txt": strings.Repeat("x", 101), "fits.txt": strings.Repeat("x", 100)})
	sink := &memorySink{}
	g := New(Options{Sink: sink, MaxFileSize: 100})
	res := mustSync(t, g, docs(root), Result{Added: 1, SkippedTotal: 1, LeftOut: left(TooLarge, 1)})
	if s := res.Skipped[0]; s.Path != "big.txt" || s.Reason != TooLarge {
		t.Errorf("Skipped = %v, want big.txt for TooLarge", s)
	}
	// What has grown too large must not be found with its old text.
	write(t, root, "fits.txt", strings.Repeat("x", 102), anHourAgo())
	mustSync(t, g, docs(root), Result{Removed: 1, SkippedTotal: 2, LeftOut: left(TooLarge, 2)})
}

func TestSyncRemovesWhatTurnedBinary(t *testing.T) {
	root := folder(t, map[string]string{"f": "text"})
	g := New(Options{Sink: &memorySink{}})
	mustSync(t, g, docs(root), Result{Added: 1})
	write(t, root, "f", "\x00\x01\x02", anHourAgo())
	mustSync(t, g, docs(root), Result{Removed: 1, LeftOut: left(NoText, 1)})
	mustSync(t, g, docs(root), Result{LeftOut: left(NoText, 1)})
}

func TestSyncOfOneFile(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a", "b.txt": "b", ".profile": "p", "image.png": "\x89PNG\r\n\x1a\n"})
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	mustSync(t, g, docs(filepath.Join(root, "b.txt")), Result{Added: 1})
	if diff := cmp.Diff([]string{"b.txt"}, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	// Who names a hidden file wants it.
	mustSync(t, g, document.Source{Label: "hidden", Path: filepath.Join(root, ".profile")}, Result{Added: 1})
	// Who names an image should hear why nothing is found.
	mustSync(t, g, document.Source{Label: "image", Path: filepath.Join(root, "image.png")},
		Result{SkippedTotal: 1, LeftOut: left(NoText, 1)})

	if err := os.Remove(filepath.Join(root, "b.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Sync(t.Context(), docs(filepath.Join(root, "b.txt"))); !errors.Is(err, errkind.NotFound) {
		t.Errorf("Sync of a file that is gone = %v, want kind NotFound", err)
	}
	if sink.doc("b.txt") == nil {
		t.Error("the document of a source that cannot be read is gone, want it kept")
	}
}

func TestSyncOfMissingFolderRemovesNothing(t *testing.T) {
	root := folder(t, map[string]string{"d/a.txt": "a"})
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	src := docs(filepath.Join(root, "d"))
	mustSync(t, g, src, Result{Added: 1})
	if err := os.RemoveAll(src.Path); err != nil {
		t.Fatal(err)
	}
	_, err := g.Sync(t.Context(), src)
	if !errors.Is(err, errkind.NotFound) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Sync of a missing folder = %v, want kind NotFound", err)
	}
	if sink.doc("a.txt") == nil {
		t.Error("document is gone, want it kept")
	}
}

func TestSyncWithStrangeNames(t *testing.T) {
	root := folder(t, nil)
	for _, name := range []string{"bad\xffname.txt", "bad\xfename.txt", "new\nline.txt", "q?#%.txt", "d\xff/x.txt",
		"日本.txt"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Skipf("the file system refuses such names: %v", err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Skipf("the file system refuses such names: %v", err)
		}
		if err := os.Chtimes(path, anHourAgo(), anHourAgo()); err != nil {
			t.Fatal(err)
		}
	}
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	res := mustSync(t, g, docs(root), Result{Added: 5, SkippedTotal: 1, LeftOut: left(Unreadable, 1)})
	want := []string{"bad\ufffdname.txt", "d\ufffd/x.txt", "new\nline.txt", "q?#%.txt", "日本.txt"}
	if diff := cmp.Diff(want, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	if got := res.Skipped[0].Path; got != "bad\ufffdname.txt" {
		t.Errorf("skipped %q, want the second of two names that read alike", got)
	}
	if got, want := sink.doc("bad\ufffdname.txt").URL, "/bad%FEname.txt"; !strings.HasSuffix(got, want) {
		t.Errorf("URL = %q, want it to end with %q", got, want)
	}
	if got := sink.doc("new\nline.txt").Title; got != "new line.txt" {
		t.Errorf("title = %q, want no control characters", got)
	}
	mustSync(t, g, docs(root), Result{Unchanged: 5, SkippedTotal: 1, LeftOut: left(Unreadable, 1)})
}

// A file that is only in the cloud is not opened. Its documents of before stay, and it is
// read as soon as it has been downloaded, although it has the same stamp then.
func TestCloud(t *testing.T) {
	root := folder(t, map[string]string{"a.txt": "a", "new.txt": "new", "old.txt": "old"})
	g := New(Options{Sink: &memorySink{}})
	s := &syncing{g: g, src: docs(root), res: &Result{}, mem: memory{}}
	plan := func(away ...string) (todo []string) {
		t.Helper()
		s.res = &Result{}
		tr, closeTree, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		defer closeTree()
		w, err := s.walk(t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		stored := map[string]document.Stamp{}
		for i, e := range w.files {
			w.files[i].cloud = slices.Contains(away, e.path)
			switch e.path {
			case "a.txt":
				stored[e.path] = e.stamp
			case "old.txt":
				stored[e.path] = document.Stamp{Size: 1}
			}
		}
		tasks, gone := s.plan(w, stored, nil)
		if len(gone) > 0 {
			t.Errorf("%q are removed", gone)
		}
		for _, k := range tasks {
			todo = append(todo, k.path)
		}
		s.old, s.mem = s.mem, memory{}
		return todo
	}
	if got := plan("a.txt", "new.txt", "old.txt"); got != nil {
		t.Errorf("%q are read, want nothing", got)
	}
	if diff := cmp.Diff(left(Unreadable, 2), s.res.LeftOut); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"new.txt", "old.txt"}, plan()); diff != "" {
		t.Errorf("read after the download (-want +got):\n%s", diff)
	}
}
