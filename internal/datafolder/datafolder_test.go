package datafolder

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// newFolder returns a new data folder with a source of two documents.
func newFolder(t *testing.T) *Folder {
	t.Helper()
	f := &Folder{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	if found, err := HasIndex(f.Dir); err != nil || found {
		t.Fatalf("HasIndex of an empty folder = %v, %v", found, err)
	}
	if err := f.OpenIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := f.Index.AddSource(t.Context(), document.Source{Label: "docs", Path: "/a/docs",
		Description: "About pears"}); err != nil {
		t.Fatal(err)
	}
	var changes []document.Change
	for _, d := range []document.Document{
		{ID: "1", Label: "docs", Path: "a.md", FromSource: true, Title: "a.md", Text: "pears",
			Chunks: []document.Chunk{{Length: 5}}},
		{ID: "2", Label: "docs", Path: "b.md", FromSource: true, Title: "b.md", Text: "plums",
			Chunks: []document.Chunk{{Length: 5}}},
	} {
		changes = append(changes, document.Change{Put: &d})
	}
	if err := f.Sink(nil).Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestStatus(t *testing.T) {
	f := newFolder(t)
	for _, labels := range [][]string{nil, {"docs"}} {
		status, err := f.Status(t.Context(), labels, false)
		if err != nil {
			t.Fatal(err)
		}
		if len(status.Sources) != 1 || status.Sources[0].Label != "docs" || status.Sources[0].Documents != 2 ||
			status.Store != nil {
			t.Errorf("Status of %q = %+v, want one source with two documents", labels, status)
		}
	}
	if status, err := f.Status(t.Context(), []string{}, false); err != nil || len(status.Sources) != 0 {
		t.Errorf("Status of no labels = %+v, %v", status, err)
	}
}

func TestRemoveSource(t *testing.T) {
	f := newFolder(t)
	got, err := f.RemoveSource(t.Context(), "docs")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Removed{Path: "/a/docs", Documents: 2}, got); diff != "" {
		t.Errorf("RemoveSource (-want +got):\n%s", diff)
	}
	if _, err := f.RemoveSource(t.Context(), "docs"); !errors.Is(err, errkind.NotFound) {
		t.Errorf("RemoveSource of a source that was removed: %v, want kind NotFound", err)
	}
}

// The ID of a data folder stays the same.
func TestIdentify(t *testing.T) {
	dir := t.TempDir()
	first, err := identify(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := identify(dir); err != nil || again != first || first == "" {
		t.Errorf("identify = %q, then %q, %v", first, again, err)
	}
}
