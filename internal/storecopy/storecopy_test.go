package storecopy_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/storecopy"
)

// open returns an index with documents.
func open(t *testing.T, docs ...*document.Document) *index.Index {
	t.Helper()
	x, err := index.Open(t.Context(), index.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	for _, d := range docs {
		if err := x.Apply(t.Context(), []document.Change{{Put: d}}); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func note(id, label, text string, tags ...string) *document.Document {
	return &document.Document{ID: id, Label: label, Path: ".notes/" + id, Title: id, Type: "note", Text: text,
		Hash: "sha256:" + text, Tags: append([]string{}, tags...),
		Chunks: []document.Chunk{{Length: len(text)}}}
}

// copied copies and returns the result.
func copied(t *testing.T, from, to storecopy.Store) *storecopy.Result {
	t.Helper()
	r, err := storecopy.Copy(t.Context(), storecopy.Options{From: from, To: to})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCopy(t *testing.T) {
	from := open(t, note("a", "memory", "walrus", "one", "two"), note("b", "memory", "penguin"),
		note("c", "archive", "lemur"))
	// The copy has an older state of two documents, and one of its own.
	to := open(t, note("a", "memory", "walrus", "two"), note("b", "other", "an older text"),
		note("own", "memory", "stays"))
	for _, want := range []storecopy.Result{{Copied: 3, Compared: 3}, {Unchanged: 3, Compared: 3}} {
		if diff := cmp.Diff(&want, copied(t, from, to)); diff != "" {
			t.Errorf("Copy() (-want +got)\n%s", diff)
		}
	}
	for _, id := range []string{"a", "b", "c", "own"} {
		if _, err := to.RecordOf(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// interrupted is a store that fails after some changes.
type interrupted struct {
	storecopy.Store
	left int
}

var errInterrupted = errors.New("interrupted")

func (s *interrupted) Apply(ctx context.Context, changes []document.Change) error {
	if s.left--; s.left < 0 {
		return errInterrupted
	}
	return s.Store.Apply(ctx, changes)
}

// TestResume checks that a copy continues where it was interrupted.
func TestResume(t *testing.T) {
	// Each document has so many chunks that it is applied alone.
	long := func(id string) *document.Document {
		d := note(id, "l", strings.Repeat(id+" ", 500))
		d.Chunks = nil
		for i := range 500 {
			d.Chunks = append(d.Chunks, document.Chunk{Offset: 2 * i, Length: 2})
		}
		return d
	}
	from := open(t, long("a"), long("b"), long("c"))
	to := open(t)
	_, err := storecopy.Copy(t.Context(), storecopy.Options{From: from, To: &interrupted{to, 2}})
	if !errors.Is(err, errInterrupted) {
		t.Fatalf("Copy() = %v, want the interruption", err)
	}
	if diff := cmp.Diff(&storecopy.Result{Copied: 1, Unchanged: 2, Compared: 3}, copied(t, from, to)); diff != "" {
		t.Errorf("Copy() again (-want +got)\n%s", diff)
	}
}

// forgetful is a store that loses the text of a document.
type forgetful struct{ storecopy.Store }

func (s forgetful) Document(ctx context.Context, number int64) (*document.Document, error) {
	d, err := s.Store.Document(ctx, number)
	if err == nil && d.ID == "b" {
		d.Text = "lost"
	}
	return d, err
}

// TestDifferences checks that the comparison finds a text that differs although
// everything that is recorded of it is equal.
func TestDifferences(t *testing.T) {
	from := open(t, note("a", "l", "walrus"), note("b", "l", "penguin"))
	want := &storecopy.Result{Copied: 2, Compared: 2, Differing: 1, Different: []string{"l/.notes/b"}}
	if diff := cmp.Diff(want, copied(t, from, forgetful{open(t)})); diff != "" {
		t.Errorf("Copy() (-want +got)\n%s", diff)
	}
}
