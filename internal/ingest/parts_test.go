package ingest

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/extract"
)

// zipOf returns a ZIP archive of files: names and contents in turn.
func zipOf(t testing.TB, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		w, err := z.Create(files[i])
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gzipOf(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// mailbox returns a mailbox with messages on these subjects.
func mailbox(subjects ...string) string {
	var b strings.Builder
	for _, s := range subjects {
		fmt.Fprintf(&b, "From a@example.com Mon Jan  1 00:00:00 2024\nFrom: a@example.com\nSubject: %s\n\nAbout %s.\n\n", s, s)
	}
	return b.String()
}

// A file with several documents is replaced and removed as one.
func TestSyncOfFilesWithSeveralDocuments(t *testing.T) {
	root := folder(t, map[string]string{
		"inbox.mbox": mailbox("one", "two", "three"),
		"docs.zip": zipOf(t, "a.md", "# A\n\na", "sub/b.txt", "b", "node_modules/x.md", "x", "node_modules/y.md", "y",
			"go.sum", "s", ".git/config", "c", "image.png", "\x89PNG\r\n\x1a\n", "../up.txt", "up"),
		"log.txt.gz": gzipOf(t, "a log"), "old.mbox.gz": gzipOf(t, mailbox("packed")),
		"images.zip": zipOf(t, "image.png", "\x89PNG\r\n\x1a\n"),
		"broken.zip": zipOf(t, "a.md", "# A\n\na")[:60],
	})
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	want := []string{"docs.zip/a.md", "docs.zip/sub/b.txt", "docs.zip/up.txt", "inbox.mbox/1", "inbox.mbox/2",
		"inbox.mbox/3", "log.txt.gz", "old.mbox.gz/1"}
	leftOut := map[Reason]int{NoText: 2, Damaged: 1, ThirdParty: 1, LockFile: 1, Hidden: 1}
	res := mustSync(t, g, docs(root), Result{Added: 8, SkippedTotal: 1, LeftOut: leftOut})
	if s := res.Skipped[0]; s.Path != "broken.zip" || !strings.Contains(s.Err.Error(), "damaged ZIP archive") {
		t.Errorf("skipped %v, want the damaged archive", s)
	}
	if diff := cmp.Diff(map[string]Reason{"broken.zip": Damaged, "docs.zip/.git/": Hidden, "docs.zip/go.sum": LockFile,
		"docs.zip/image.png": NoText, "docs.zip/node_modules/": ThirdParty, "images.zip": NoText}, leftOutOf(res)); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	d := sink.doc("docs.zip/sub/b.txt")
	if d.Text != "b" || d.Filename != "b.txt" || d.SourcePath != d.Path || d.ID != document.IDOf("docs", d.Path) ||
		!strings.HasSuffix(d.URL, "/docs.zip#sub/b.txt") || d.Size != 1 {
		t.Errorf("document in an archive = %+v", d)
	}
	if d := sink.doc("inbox.mbox/2"); d.Title != "two" || !strings.Contains(d.Text, "About two.") {
		t.Errorf("message = %+v", d)
	}
	mustSync(t, g, docs(root), Result{Unchanged: 8, SkippedTotal: 1, LeftOut: leftOut})
	// Another process continues with the state in the index.
	before := func(context.Context, string) ([]Skipped, error) {
		var list []Skipped
		for _, l := range res.LeftOutPaths {
			list = append(list, Skipped{Path: l.Path, Reason: l.Reason})
		}
		return list, nil
	}
	mustSync(t, New(Options{Sink: sink, LeftOut: before}), docs(root),
		Result{Unchanged: 8, SkippedTotal: 1, LeftOut: leftOut})

	write(t, root, "inbox.mbox", mailbox("one", "new"), anHourAgo())
	write(t, root, "docs.zip", "plain text", anHourAgo())
	if err := os.Remove(filepath.Join(root, "old.mbox.gz")); err != nil {
		t.Fatal(err)
	}
	mustSync(t, g, docs(root), Result{Added: 1, Changed: 2, Removed: 5, Unchanged: 1, SkippedTotal: 1,
		LeftOut: map[Reason]int{NoText: 1, Damaged: 1}})
	if diff := cmp.Diff([]string{"docs.zip", "inbox.mbox/1", "inbox.mbox/2", "log.txt.gz"}, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	write(t, root, "inbox.mbox", "\x00\x01\x02", anHourAgo())
	write(t, root, "docs.zip", zipOf(t, "a.md", "a"), anHourAgo())
	mustSync(t, g, docs(root), Result{Added: 1, Removed: 3, Unchanged: 1, SkippedTotal: 1,
		LeftOut: map[Reason]int{NoText: 2, Damaged: 1}})
	if diff := cmp.Diff([]string{"docs.zip/a.md", "log.txt.gz"}, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
}

// A file of which only some documents were applied is read again.
func TestSyncContinuesInsideAFile(t *testing.T) {
	root := folder(t, map[string]string{"inbox.mbox": mailbox("one", "two", "three")})
	sink := &memorySink{}
	failing := errors.New("the process was killed")
	n := 0
	sink.applying = func([]document.Change) error {
		if n++; n == 3 {
			return failing
		}
		return nil
	}
	if _, err := New(Options{Sink: sink, BatchBytes: 1}).Sync(t.Context(), docs(root)); !errors.Is(err, failing) {
		t.Fatalf("Sync = %v, want %v", err, failing)
	}
	if diff := cmp.Diff([]string{"inbox.mbox/1", "inbox.mbox/2"}, sink.paths()); diff != "" {
		t.Fatalf("documents (-want +got):\n%s", diff)
	}
	mustSync(t, New(Options{Sink: sink}), docs(root), Result{Added: 1, Changed: 2})
	mustSync(t, New(Options{Sink: sink}), docs(root), Result{Unchanged: 3})
}

// Documents in a file that cannot be read for now are kept.
func TestSyncKeepsDocumentsOfUnreadableFiles(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root can read everything")
	}
	root := folder(t, map[string]string{"inbox.mbox": mailbox("one", "two")})
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	mustSync(t, g, docs(root), Result{Added: 2})
	if err := os.Chmod(filepath.Join(root, "inbox.mbox"), 0); err != nil {
		t.Fatal(err)
	}
	write(t, root, "other.txt", "x", anHourAgo())
	mustSync(t, New(Options{Sink: sink}), docs(root), Result{Added: 1, Unchanged: 2})
}

func TestSyncOfArchivesThatUnpackToTooMuch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute under the race detector")
	}
	big := strings.Repeat("0123456789abcde\n", 70<<20/16)
	root := folder(t, map[string]string{"bomb.zip": zipOf(t, "a.txt", big), "bomb.txt.gz": gzipOf(t, big),
		"a.txt": "a"})
	g := New(Options{Sink: &memorySink{}, FileTimeout: time.Hour})
	res := mustSync(t, g, docs(root), Result{Added: 1, SkippedTotal: 2, LeftOut: left(TooComplex, 2)})
	for _, s := range res.Skipped {
		if !strings.Contains(s.Err.Error(), "it unpacks to more than 64 MiB: split it") {
			t.Errorf("skipped %v", s)
		}
	}
}

// damaged returns an archive in which the packed data of a file is changed.
func damaged(t testing.TB, archive, name string) string {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	data := []byte(archive)
	for _, f := range z.File {
		if at, err := f.DataOffset(); err == nil && f.Name == name {
			data[at+int64(f.CompressedSize64)/2] ^= 0x55
		}
	}
	return string(data)
}

// What cannot be read of a file that is indexed is left out by name, in every
// sync and in later processes.
func TestSyncLeavesOutPartsOfFiles(t *testing.T) {
	root := folder(t, map[string]string{
		"a.zip": damaged(t, zipOf(t, "good.md", "# Good", "d/bad.md", "# Bad and more", "x.png", "\x89PNG\r\n\x1a\n",
			"old.doc", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"+strings.Repeat("\x00", 600)), "d/bad.md"),
		"half.rtf": `{\rtf1 half of {\b it`,
		"half.pdf": "%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Kids[3 0 R 4 0 R]>> endobj\n" +
			"3 0 obj <</Type/Page/Contents 5 0 R/Resources<</Font<</F1<</Subtype/Type1>>>>>>>> endobj\n" +
			"4 0 obj <</Type/Page/Contents 5 0 R/Resources<</Font<</F1<</Subtype/Type0/Encoding/Identity-H>>>>>>>> endobj\n" +
			"5 0 obj <</Length 39>> stream\nBT /F1 10 Tf 72 700 Td (A page.) Tj ET\nendstream endobj trailer <</Root 1 0 R>>\n%%EOF",
		"cut.docx": "PK\x03\x04" + strings.Repeat("x", 100), "data": "PK\x03\x04" + strings.Repeat("x", 100),
	})
	want := map[string]Reason{"a.zip/d/bad.md": Damaged, "a.zip/x.png": NoText, "a.zip/old.doc": NoText,
		"half.rtf": Partly, "half.pdf": Illegible, "cut.docx": Damaged, "data": Damaged}
	sink := &memorySink{}
	var stored []Skipped
	leftOut := func(context.Context, string) ([]Skipped, error) { return stored, nil }
	check := func(g *Ingester, when string) *Result {
		t.Helper()
		res, err := g.Sync(t.Context(), docs(root))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, leftOutOf(res)); diff != "" || res.SkippedTotal != 6 || len(res.Skipped) != 6 {
			t.Errorf("%s: %d skipped, want 6; left out (-want +got):\n%s", when, res.SkippedTotal, diff)
		}
		return res
	}
	g := New(Options{Sink: sink, LeftOut: leftOut})
	res := check(g, "at first")
	if diff := cmp.Diff([]string{"a.zip/good.md", "half.pdf", "half.rtf"}, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	check(g, "again")
	check(g, "a third time")
	for _, l := range res.LeftOutPaths {
		s := Skipped{Path: l.Path, Reason: l.Reason}
		for _, k := range res.Skipped {
			if k.Path == l.Path {
				s.Err = errors.New(k.Err.Error())
			}
		}
		stored = append(stored, s)
	}
	g = New(Options{Sink: sink, LeftOut: leftOut})
	check(g, "in another process")
	check(g, "in another process again")

	write(t, root, "a.zip", zipOf(t, "good.md", "# Good"), anHourAgo().Add(time.Minute))
	delete(want, "a.zip/d/bad.md")
	delete(want, "a.zip/x.png")
	delete(want, "a.zip/old.doc")
	if res, err := New(Options{Sink: sink, LeftOut: leftOut}).Sync(t.Context(), docs(root)); err != nil ||
		res.SkippedTotal != 4 || !cmp.Equal(want, leftOutOf(res)) {
		t.Errorf("after a repair: left out %v, %v, want %v", leftOutOf(res), err, want)
	}
}

// A file with many parts that are left out names some of them: first those that
// should be indexed.
func TestSyncNamesSomeParts(t *testing.T) {
	files := []string{"good.txt", "good"}
	for i := range 3 * maxLeftParts {
		files = append(files, fmt.Sprintf("%03d.png", i), "\x89PNG\r\n\x1a\n")
	}
	files = append(files, "z.doc", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"+strings.Repeat("\x00", 600))
	root := folder(t, map[string]string{"a.zip": zipOf(t, files...)})
	res := mustSync(t, New(Options{Sink: &memorySink{}}), docs(root),
		Result{Added: 1, SkippedTotal: 1, LeftOut: left(NoText, 3*maxLeftParts+1)})
	if n := len(res.LeftOutPaths); n != maxLeftParts || res.LeftOutPaths[n-1].Path != "a.zip/z.doc" {
		t.Errorf("%d parts are named, the last one is %v; want %d with the document", n, res.LeftOutPaths[n-1],
			maxLeftParts)
	}
}

// TestLargePartsAreReadAlone checks that files that unpack to many bytes are read
// after all others and one at a time, and are complete.
func TestLargePartsAreReadAlone(t *testing.T) {
	large := strings.Repeat("text ", maxUnpacked/5+1)
	files := map[string]string{"a.txt": "a", "b.txt.gz": gzipOf(t, large),
		"c.zip": zipOf(t, "1.txt", large, "2.txt", "two"), "d.txt.gz": gzipOf(t, "d"), "e.txt.gz": gzipOf(t, large)}
	var atOnce, most atomic.Int32
	sink := &memorySink{}
	g := New(Options{Sink: sink, Pool: NewPool(4),
		Make: func(ctx context.Context, in extract.Input, known document.Document) ([]*document.Document, []Skipped,
			error) {
			if in.MaxUnpacked == 0 {
				most.Store(max(most.Load(), atOnce.Add(1)))
				defer atOnce.Add(-1)
			}
			return MakeAll(ctx, in, known)
		}})
	mustSync(t, g, docs(folder(t, files)), Result{Added: 6})
	if n := most.Load(); n != 1 {
		t.Errorf("%d large files were read at once", n)
	}
	for _, path := range []string{"b.txt.gz", "c.zip/1.txt", "e.txt.gz"} {
		if d := sink.docs[document.Ref{Label: "docs", Path: path}]; d == nil || len(d.Text) < maxUnpacked {
			t.Errorf("%s is not complete", path)
		}
	}
}
