package kb_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kb/kbtest"
)

// folderOf opens the base in a data folder that a program with tables of a version
// wrote.
func folderOf(t *testing.T, version int) *kb.Local {
	t.Helper()
	tables, err := os.ReadFile(fmt.Sprintf("../index/testdata/version%d.sql", version))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	db, err := database.Open(t.Context(), database.Options{Path: filepath.Join(dir, index.FileName),
		Schema: database.Schema{Application: 0x4b6e4877, First: version, Create: string(tables)},
		Log:    slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, _ := open(t, dir)
	return b
}

// TestUpgradedFolder works on what users wrote with a program with tables of version
// 7, when documents had longer IDs: a note is changed, a note that waited is stored,
// and a file replaces the one with its source path.
func TestUpgradedFolder(t *testing.T) {
	b := folderOf(t, 7)
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

// TestUpgradedJobs works on the jobs of a program whose servers had no users: the note
// that waited is stored, and no user sees a job of before, whatever the user may read.
func TestUpgradedJobs(t *testing.T) {
	b := folderOf(t, 8)
	const queued = 4
	if d := kbtest.Stored(t, b, queued); d.Title != "The boiler is serviced in March." {
		t.Errorf("the note of the queue is %+v", d)
	}
	jobs, err := b.Jobs(t.Context(), kb.JobFilter{Limit: 10})
	if err != nil || len(jobs) != 4 {
		t.Errorf("without users, there are the jobs %+v, %v, want 4", jobs, err)
	}
	all := []string{access.All}
	ann := access.With(t.Context(), &access.Caller{ID: "ann", Rights: access.Rights{Read: all, Write: all}})
	if jobs, err := b.Jobs(ann, kb.JobFilter{Limit: 10}); err != nil || len(jobs) != 0 {
		t.Errorf("the jobs of ann are %+v, %v", jobs, err)
	}
	if _, err := b.Job(ann, queued); !errors.Is(err, errkind.NotFound) {
		t.Errorf("Job() of ann = %v, want an error of kind NotFound", err)
	}
}
