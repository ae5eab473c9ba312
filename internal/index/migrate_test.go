package index

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
)

// storedFile copies the stored file of a version into a new data folder. The
// programs of these versions wrote the files: see testdata/README.md.
func storedFile(t *testing.T, version int) (dir string) {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("testdata/v%d.db.gz", version))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The documents and sources of the stored files. Two more documents, with the
// numbers 2 and 7, were removed.
var (
	storedDocuments = []numbered{
		{1, "9236b17a3cd9c9f054340fae74635768", "docs", "en.md"},
		{3, "bb6c34d8da29451796060deb58a8e456", "docs", "de.md"},
		{4, "d974be0cba344a9b2371e4c87b9b710e", "notes-2", "ja.md"},
		{5, "281d601705d398be2e892177a66a8139", "notes-2", "en.md"},
		{6, "5488525083f171db6300a0d80119daa8", "notes-2", "fr/été.md"},
	}
	storedSources = []document.Source{
		{Label: "docs", Path: "/srv/docs", Description: "How the program is used"},
		{Label: "notes-2", Path: "/srv/notes"},
	}
)

// A numbered is a document with its number.
type numbered struct {
	Number          int64
	ID, Label, Path string
}

// numberedDocuments returns the version of a file and all its documents.
func numberedDocuments(t *testing.T, dir string) (version int, docs []numbered) {
	t.Helper()
	// The connection of an Open that was cancelled may still roll back.
	db, err := sql.Open("sqlite", filepath.Join(dir, FileName)+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(`PRAGMA user_version`).Scan(&version); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(`SELECT id, doc_id, label, path FROM docs`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n numbered
		if err := rows.Scan(&n.Number, &n.ID, &n.Label, &n.Path); err != nil {
			t.Fatal(err)
		}
		docs = append(docs, n)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(docs, func(a, b numbered) int { return cmp.Compare(a.Number, b.Number) })
	return version, docs
}

// maintain builds missing segments.
func maintain(t *testing.T, x *Index) {
	t.Helper()
	if err := x.Maintain(t.Context(), nil); err != nil {
		t.Errorf("Maintain() = %v", err)
	}
}

// TestMigrate opens the files of all earlier versions.
func TestMigrate(t *testing.T) {
	for version := 1; version < len(migrations); version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			dir := storedFile(t, version)
			if v, _ := numberedDocuments(t, dir); v != version {
				t.Fatalf("the stored file has version %d", v)
			}
			x := openIn(t, dir)
			apply(t, x, simple("new", 1))
			maintain(t, x)
			sources := slices.Clone(storedSources)
			if version == 1 {
				sources[0].Description = ""
			}
			if got, err := x.Sources(t.Context()); err != nil || !gocmp.Equal(got, sources) {
				t.Errorf("Sources() = %v, %v, want %v", got, err, sources)
			}
			for _, test := range []struct {
				text string
				n    int
			}{{"installing", 2}, {"häuser", 1}, {"全文検索", 1}, {"fenêtre", 1}, {"removed", 0}} {
				if n := total(t, x, test.text); n != test.n {
					t.Errorf("Search(%s) = %d, want %d", test.text, n, test.n)
				}
			}
			text, err := x.ReadText(t.Context(), storedDocuments[1].ID, []string{"docs"}, 0, 100)
			if want := "Die Häuser stehen am Fluss.\n\nEin Schloss steht auf dem Hügel."; err != nil || text.Window != want {
				t.Errorf("ReadText() = %v, %v, want %q", text, err, want)
			}
			var kind, sourcePath string
			wantKind, wantPath := "text", "fr/été.md"
			if version >= 3 {
				wantKind, wantPath = "", "" // as they were stored
			}
			if err := x.w.QueryRow(`SELECT type, source_path FROM docs WHERE id=6 AND from_source`).Scan(&kind, &sourcePath); err != nil || kind != wantKind || sourcePath != wantPath {
				t.Errorf("document 6 has type %q and source path %q, %v, want %q and %q", kind, sourcePath, err, wantKind, wantPath)
			}
			closeIt(t, x)
			v, docs := numberedDocuments(t, dir)
			want := append(slices.Clone(storedDocuments), numbered{8, "id-new", "a", "new"})
			if v != len(migrations) || !gocmp.Equal(docs, want) {
				t.Errorf("version %d with %v, want version %d with %v", v, docs, len(migrations), want)
			}
		})
	}
}

// TestMigrateAtOnce opens an old file many times concurrently. One of the calls
// migrates it.
func TestMigrateAtOnce(t *testing.T) {
	dir := storedFile(t, 1)
	steps := slices.Concat(migrations, []migration{statements(`CREATE TABLE once(n)`)})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			x, err := open(t.Context(), Options{Dir: dir}, steps)
			if err != nil {
				t.Errorf("open() = %v", err)
				return
			}
			maintain(t, x)
			if n := total(t, x, "installing"); n != 2 {
				t.Errorf("Search(installing) = %d, want 2", n)
			}
			closeIt(t, x)
		})
	}
	group.Wait()
	if v, docs := numberedDocuments(t, dir); v != len(steps) || !gocmp.Equal(docs, storedDocuments) {
		t.Errorf("version %d with %v, want version %d with %v", v, docs, len(steps), storedDocuments)
	}
}

// TestMigrateFails checks that a migration that fails or is cancelled does not
// change the file.
func TestMigrateFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tests := []struct {
		name string
		step migration
		want error
	}{
		{"statement", statements(`CREATE TABLE more(n); INSERT INTO missing VALUES(1)`), nil},
		{"kind", func(context.Context, *sql.Tx) error { return errkind.Unavailable }, errkind.Unavailable},
		{"cancelled", func(ctx context.Context, _ *sql.Tx) error { cancel(); return ctx.Err() }, context.Canceled}, // the last
	}
	for _, test := range tests {
		dir := storedFile(t, 1)
		x, err := open(ctx, Options{Dir: dir}, slices.Concat(migrations, []migration{test.step}))
		if err == nil {
			closeIt(t, x)
		}
		if err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: open() = %v, want an error (%v)", test.name, err, test.want)
		}
		if v, docs := numberedDocuments(t, dir); v != 1 || !gocmp.Equal(docs, storedDocuments) {
			t.Errorf("%s: version %d with %v, want version 1 with %v", test.name, v, docs, storedDocuments)
		}
	}
}

// TestMigrateKilled kills a process during a migration while another call of
// Open waits for it.
func TestMigrateKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	dir := storedFile(t, 1)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "KNOWHOW_TEST_WRITER_DIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, waited := Open(short, Options{Dir: dir})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if line != "migrated\n" {
		t.Fatalf("the process printed %q (%v), want \"migrated\"", line, err)
	}
	if !errors.Is(waited, context.DeadlineExceeded) {
		t.Errorf("Open() during the migration = %v, want an error when the context ends", waited)
	}
	if v, docs := numberedDocuments(t, dir); v != 1 || !gocmp.Equal(docs, storedDocuments) {
		t.Errorf("version %d with %v, want version 1 with %v", v, docs, storedDocuments)
	}
	x := openIn(t, dir)
	defer closeIt(t, x)
	maintain(t, x)
	if n := total(t, x, "installing"); n != 2 {
		t.Errorf("Search(installing) = %d, want 2", n)
	}
}
