package index

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// TestReadOnly reads an index on a disk that is read-only: after it was closed,
// while another process has it open, and after a process that died.
func TestReadOnly(t *testing.T) {
	if dir := os.Getenv("KNOWHOW_TEST_READ_ONLY"); dir != "" {
		readOnlyIndex(t, dir)
		return
	}
	dir := t.TempDir()
	read := func(when string) {
		t.Helper()
		// A mount that only the process and its children see.
		cmd := exec.Command("unshare", "-rm", "sh", "-c",
			`mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && echo mounted && exec "$@"`,
			dir, os.Args[0], "-test.run=^TestReadOnly$", "-test.v")
		cmd.Env = append(os.Environ(), "KNOWHOW_TEST_READ_ONLY="+dir)
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), "mounted") {
			t.Skipf("this process cannot mount: %v\n%s", err, out)
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", when, err, out)
		}
	}
	x := openIn(t, dir)
	apply(t, x, large(300)...)
	closeIt(t, x)
	read("closed")
	x = openIn(t, dir)
	apply(t, x, document.Change{Put: &document.Document{ID: "new", Label: "docs", Path: "new", Title: "Walrus",
		Text: "walrus"}})
	read("open")
	log, err := os.ReadFile(x.db.Path() + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	closeIt(t, x)
	// As after a crash: the log is there, and its index is not.
	if err := os.WriteFile(x.db.Path()+"-wal", log, 0o600); err != nil {
		t.Fatal(err)
	}
	read("without the index of the log")
}

// readOnlyIndex reads an index that cannot be written.
func readOnlyIndex(t *testing.T, dir string) {
	if _, err := Open(t.Context(), Options{Dir: dir}); !errors.Is(err, errkind.Denied) {
		t.Errorf("Open() for writing = %v", err)
	}
	x, err := Open(t.Context(), Options{Dir: dir, ReadOnly: true})
	if _, e := os.Stat(dir + "/" + FileName + "-shm"); e != nil && err != nil {
		if _, e := os.Stat(dir + "/" + FileName + "-wal"); e != nil || !errors.Is(err, errkind.Denied) ||
			!strings.Contains(err.Error(), "copy the data folder") {
			t.Errorf("Open() = %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer closeIt(t, x)
	page, err := x.Search(t.Context(), search.Query{Text: query.MustParse("happy"), Num: 10})
	if err != nil || page.Total != 300 || page.Partial {
		t.Errorf("Search() = %+v, %v", page, err)
	}
	if problems, err := x.Examine(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("Examine() = %v, %v", problems, err)
	}
	err = x.Apply(t.Context(), []document.Change{{Put: &document.Document{ID: "x", Label: "docs", Path: "x",
		Title: "x", Text: "x"}}})
	if !errors.Is(err, errkind.Denied) {
		t.Errorf("Apply() = %v", err)
	}
}
