package index

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/index/segments"
)

// TestLeftovers checks that files of processes that died are removed when the
// index is opened, and that new files and those of others are kept.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	x := openIn(t, dir)
	apply(t, x, large(300)...)
	listed := segmentFiles(t, dir)
	closeIt(t, x)
	make := func(name string, age time.Duration) string {
		path := filepath.Join(dir, segments.Dir, name)
		if err := os.WriteFile(path, []byte("left over"), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		return path
	}
	week := 7 * 24 * time.Hour
	gone := []string{make("a.tmp", week), make("a.positions.tmp", time.Hour), make("b.segment", 11*time.Minute),
		make("future.tmp", -week)}
	kept := []string{make("c.tmp", 0), make("c.positions.tmp", 9*time.Minute), make("d.segment", time.Minute),
		make("mine.txt", week)}
	for _, path := range listed {
		at := time.Now().Add(-week)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	x = openIn(t, dir)
	defer closeIt(t, x)
	for _, path := range gone {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s still exists", filepath.Base(path))
		}
	}
	for _, path := range slices.Concat(kept, listed) {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	}
	if n := total(t, x, "happy"); n != 300 {
		t.Errorf("Search(happy) = %d, want 300", n)
	}
}

// segmentCount returns the number of segments.
func segmentCount(t *testing.T, x *Index) (n int) {
	t.Helper()
	if err := scanRow(t, x, `SELECT count(*) FROM segments`, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// leftDocs is how many documents, and segments, unmerged makes.
const leftDocs = 12

// unmerged makes an index with more segments than merging would leave, as a
// process that is killed leaves it.
func unmerged(t *testing.T, dir string) {
	t.Helper()
	x := openIn(t, dir)
	defer closeIt(t, x)
	if held, err := x.Lease(t.Context(), "dead", time.Hour, "merge"); err != nil || len(held) != 1 {
		t.Fatalf("Lease() = %v, %v", held, err)
	}
	for i := range leftDocs { // each too large to be merged in a change
		c := simple(fmt.Sprint(i), 2)
		var words strings.Builder
		for n := range 8000 {
			fmt.Fprintf(&words, " w%dx%d", i, n)
		}
		c.Put.Text += words.String()
		c.Put.Chunks[1].Length = len(c.Put.Text) - c.Put.Chunks[1].Offset
		apply(t, x, c)
	}
	if n := segmentCount(t, x); n < leftDocs {
		t.Fatalf("%d segments are left, want %d", n, leftDocs)
	}
}

// TestMergeAtOpen checks that merging continues when an index is opened, without
// any change, and that the expired lease of a dead process is taken over.
func TestMergeAtOpen(t *testing.T) {
	dir := t.TempDir()
	unmerged(t, dir)
	x := openIn(t, dir)
	execute(t, x, `UPDATE leases SET until=?`, time.Now().Add(-time.Second).UnixMilli())
	closeIt(t, x)
	x = openIn(t, dir)
	defer closeIt(t, x)
	for segmentCount(t, x) >= 10 && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if n := total(t, x, "happy"); n != leftDocs {
		t.Errorf("Search(happy) = %d, want %d", n, leftDocs)
	}
}
