package ingest

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"knowhow/internal/document"
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
		"docs.zip":   zipOf(t, "a.md", "# A\n\na", "sub/b.txt", "b", "node_modules/x.md", "x", "go.sum", "s", "image.png", "\x89PNG\r\n\x1a\n", "../up.txt", "up"),
		"log.txt.gz": gzipOf(t, "a log"), "old.mbox.gz": gzipOf(t, mailbox("packed")),
		"images.zip": zipOf(t, "image.png", "\x89PNG\r\n\x1a\n"),
		"broken.zip": zipOf(t, "a.md", "# A\n\na")[:60],
	})
	sink := &memorySink{}
	g := New(Options{Sink: sink})
	want := []string{"docs.zip/a.md", "docs.zip/sub/b.txt", "docs.zip/up.txt", "inbox.mbox/1", "inbox.mbox/2", "inbox.mbox/3", "log.txt.gz", "old.mbox.gz/1"}
	leftOut := map[Reason]int{NoText: 1, Unreadable: 1}
	res := mustSync(t, g, docs(root), Result{Added: 8, SkippedTotal: 1, LeftOut: leftOut})
	if s := res.Skipped[0]; s.Path != "broken.zip" || !strings.Contains(s.Err.Error(), "damaged ZIP archive") {
		t.Errorf("skipped %v, want the damaged archive", s)
	}
	if diff := cmp.Diff(want, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	d := sink.doc("docs.zip/sub/b.txt")
	if d.Text != "b" || d.Filename != "b.txt" || d.SourcePath != d.Path || d.ID != DocID("docs", d.Path) || !strings.HasSuffix(d.URL, "/docs.zip#sub/b.txt") || d.Size != 1 {
		t.Errorf("document in an archive = %+v", d)
	}
	if d := sink.doc("inbox.mbox/2"); d.Title != "two" || !strings.Contains(d.Text, "About two.") {
		t.Errorf("message = %+v", d)
	}
	mustSync(t, g, docs(root), Result{Unchanged: 8, SkippedTotal: 1, LeftOut: leftOut})
	// Another process continues with the state in the index.
	mustSync(t, New(Options{Sink: sink}), docs(root), Result{Unchanged: 8, SkippedTotal: 1, LeftOut: leftOut})

	write(t, root, "inbox.mbox", mailbox("one", "new"), anHourAgo())
	write(t, root, "docs.zip", "plain text", anHourAgo())
	if err := os.Remove(filepath.Join(root, "old.mbox.gz")); err != nil {
		t.Fatal(err)
	}
	mustSync(t, g, docs(root), Result{Added: 1, Changed: 2, Removed: 5, Unchanged: 1, SkippedTotal: 1, LeftOut: leftOut})
	if diff := cmp.Diff([]string{"docs.zip", "inbox.mbox/1", "inbox.mbox/2", "log.txt.gz"}, sink.paths()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	write(t, root, "inbox.mbox", "\x00\x01\x02", anHourAgo())
	write(t, root, "docs.zip", zipOf(t, "a.md", "a"), anHourAgo())
	mustSync(t, g, docs(root), Result{Added: 1, Removed: 3, Unchanged: 1, SkippedTotal: 1, LeftOut: map[Reason]int{NoText: 2, Unreadable: 1}})
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
	root := folder(t, map[string]string{"bomb.zip": zipOf(t, "a.txt", big), "bomb.txt.gz": gzipOf(t, big), "a.txt": "a"})
	g := New(Options{Sink: &memorySink{}, FileTimeout: time.Hour})
	res := mustSync(t, g, docs(root), Result{Added: 1, SkippedTotal: 2, LeftOut: left(TooComplex, 2)})
	for _, s := range res.Skipped {
		if !strings.Contains(s.Err.Error(), "it unpacks to more than 67108864 bytes: split it") {
			t.Errorf("skipped %v", s)
		}
	}
}
