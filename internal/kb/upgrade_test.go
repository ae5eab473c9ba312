package kb_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kb/kbtest"
)

// TestUpgradedFolder works on what users wrote with a program with tables of version
// 7, when documents had longer IDs: a note is changed, a note that waited is stored,
// and a file replaces the one with its source path.
func TestUpgradedFolder(t *testing.T) {
	tables, err := os.ReadFile("../index/testdata/version7.sql")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	db, err := database.Open(t.Context(), database.Options{Path: filepath.Join(dir, index.FileName),
		Schema: database.Schema{Application: 0x4b6e4877, First: 7, Create: string(tables)},
		Log:    slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, _ := open(t, dir)

	text := "The key of the shed is in the kitchen."
	const note, file, queued = 9, 11, 4 // documents, and a job
	d, err := b.UpdateNote(t.Context(), note, kb.NoteChange{Text: &text})
	if err != nil || d.Title != "Shed key" || !cmp.Equal(d.Tags, []string{"collection:house", "secret"}) ||
		len(d.Chunks) != 1 || d.Chunks[0].Text != text {
		t.Errorf("UpdateNote() = %+v, %v", d, err)
	}
	if d := kbtest.Stored(t, b, queued); d.Type != "note" || d.Title != "The boiler is serviced in March." {
		t.Errorf("the note of the queue is %+v", d)
	}
	d = kbtest.File(t, b, kb.File{Filename: "rules.txt", SourcePath: "rules/compost.txt"}, "Compost needs worms.")
	if d.ID != file || !cmp.Equal(d.Tags, []string{"collection:documents", "rule"}) {
		t.Errorf("the file is %+v, want document %d with its tags", d, file)
	}
}
