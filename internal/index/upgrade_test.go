package index_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// folderOf returns a data folder that a program with tables of a version wrote. That
// of version 7 has four files of the source "handbook", two notes, a file that a user
// added, and a note in the queue.
func folderOf(t *testing.T, version int) (dir string) {
	t.Helper()
	tables, err := os.ReadFile(fmt.Sprintf("testdata/version%d.sql", version))
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	db, err := database.Open(t.Context(), database.Options{Path: filepath.Join(dir, index.FileName),
		Schema: database.Schema{Application: 0x4b6e4877, First: version, Create: string(tables)},
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
	x := open(t, folderOf(t, 7))
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
	jobs, err := x.Queue().Jobs(t.Context(), queue.Filter{State: queue.Queued}, 10)
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

// TestUpgradeJobs opens an index whose jobs have no users. They stay as they are and
// belong to none.
func TestUpgradeJobs(t *testing.T) {
	x := open(t, folderOf(t, 8))
	at := time.UnixMilli(1795771913682).UTC()
	want := []queue.Job{
		{ID: 4, Kind: "note", State: queue.Queued, Created: at, Updated: at},
		{ID: 3, Kind: "file", State: queue.Failed, Filename: "broken.pdf", Attempts: 1, Error: "extracting text: file that " +
			"is not a PDF document, whatever its name is: save or download it again",
			Created: time.UnixMilli(1795771913671).UTC(), Updated: time.UnixMilli(1795771913672).UTC()},
		{ID: 2, Kind: "file", State: queue.Done, Filename: "compost.txt", Attempts: 1, Document: 3,
			Created: time.UnixMilli(1795771913657).UTC(), Updated: time.UnixMilli(1795771913659).UTC()},
		{ID: 1, Kind: "note", State: queue.Done, Attempts: 1, Document: 2,
			Created: time.UnixMilli(1795771913645).UTC(), Updated: time.UnixMilli(1795771913648).UTC()},
	}
	jobs, err := x.Queue().Jobs(t.Context(), queue.Filter{}, 10)
	if diff := cmp.Diff(want, jobs); diff != "" || err != nil {
		t.Errorf("jobs (-want +got), %v:\n%s", err, diff)
	}
	if jobs, err := x.Queue().Jobs(t.Context(), queue.Filter{User: "ann"}, 10); err != nil || jobs != nil {
		t.Errorf("the jobs of ann are %+v, %v", jobs, err)
	}
	if id, err := x.Queue().Add(t.Context(), queue.NewJob{User: "ann", Kind: "note"}); err != nil || id != 5 {
		t.Errorf("Add() = %d, %v", id, err)
	}
	claimed, err := x.Queue().Claim(t.Context(), "note", "test", time.Minute, 10)
	if err != nil || len(claimed) != 2 || !strings.Contains(string(claimed[0].Payload), "The boiler is serviced") {
		t.Errorf("Claim() = %+v, %v, want the note of before and the new one", claimed, err)
	}
}
