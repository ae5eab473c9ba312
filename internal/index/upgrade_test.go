package index_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/chunk"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/index/queue"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// version7 returns a data folder that a program with tables of version 7 wrote. It
// has four files of the source "handbook", two notes, a file that a user added, and
// a note in the queue.
func version7(t *testing.T) (dir string) {
	t.Helper()
	tables, err := os.ReadFile("testdata/version7.sql")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	db, err := database.Open(t.Context(), database.Options{Path: filepath.Join(dir, index.FileName),
		Schema: database.Schema{Application: 0x4b6e4877, First: 7, Create: string(tables)},
		Log:    slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestUpgradeIDs opens an index whose documents have IDs of 32 hex digits.
func TestUpgradeIDs(t *testing.T) {
	x := open(t, version7(t))
	if err := x.Maintain(t.Context(), nil); err != nil { // if the analysis of texts has changed
		t.Fatal(err)
	}
	const shed, pears, rules = ".notes/a06862fe86b1236a1b75af2bf8cb5289.md",
		".notes/ff4cc4fa36092a9d2584385b0963bbba.md", ".files/rules/compost.txt"
	type kept struct {
		Number                  int64
		Label, SourcePath, Type string
		Tags                    []string
	}
	want := map[string]kept{
		document.IDOf("handbook", "garden.md"): {1, "handbook", "garden.md", "markdown", nil},
		document.IDOf("handbook", "guides/compost-copy.txt"): {2, "handbook", "guides/compost-copy.txt",
			"text", nil},
		document.IDOf("handbook", "compost.txt"):       {3, "handbook", "compost.txt", "text", nil},
		document.IDOf("handbook", "guides/tools.html"): {4, "handbook", "guides/tools.html", "html", nil},
		document.IDOf("", shed):                        {9, "house", "", "note", []string{"secret"}},
		document.IDOf("", pears):                       {10, "handbook", "", "note", nil},
		document.IDOf("", rules):                       {11, "documents", "rules/compost.txt", "text", []string{"rule"}},
	}
	got := map[string]kept{}
	for id := range want {
		r, err := x.RecordOf(t.Context(), id)
		if err != nil {
			t.Errorf("RecordOf(%s) = %v", id, err)
			continue
		}
		var tags []string
		got[id] = kept{r.Number, r.Label, r.SourcePath, r.Type, append(tags, r.Tags...)}
		text, err := x.ReadText(t.Context(), id, nil, 0, 1<<20)
		if err != nil || chunk.Hash(text.Window) != r.Hash {
			t.Errorf("the text of %s is %+v, %v, want one with the hash %s", id, text, err, r.Hash)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if stats, err := x.Stats(t.Context()); err != nil || stats.Documents != len(want) {
		t.Errorf("Stats() = %+v, %v, want %d documents", stats, err, len(want))
	}
	if p := page(t, x, search.Query{Text: query.MustParse("shed key")}); len(p.Hits) != 1 ||
		p.Hits[0].ID != document.IDOf("", shed) {
		t.Errorf("a search for a note finds %+v", p.Hits)
	}
	jobs, err := x.Queue().Jobs(t.Context(), queue.Queued, 10)
	if err != nil || len(jobs) != 1 {
		t.Errorf("the queue has %+v, %v, want one job", jobs, err)
	}

	// A file that is indexed again is the same document.
	again := doc("handbook", "garden.md", "The garden", "Only quinces are left.")
	put(t, x, again)
	if r, err := x.RecordOf(t.Context(), again.ID); err != nil || r.Number != 1 {
		t.Errorf("after indexing it again, RecordOf() = %+v, %v, want document 1", r, err)
	}
	if _, err := x.RecordOf(t.Context(), "24eddae10c6abfbd8f378017353e1518"); !errors.Is(err, errkind.NotFound) {
		t.Errorf("RecordOf() of an old ID = %v, want an error of kind NotFound", err)
	}
}
