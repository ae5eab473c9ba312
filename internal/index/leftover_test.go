package index

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"knowhow/internal/document"
	"knowhow/internal/query"
	"knowhow/internal/search"
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
		path := filepath.Join(dir, segmentsDir, name)
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
	gone := []string{make("a.tmp", week), make("a.positions.tmp", time.Hour), make("b.segment", 11*time.Minute), make("future.tmp", -week)}
	kept := []string{make("c.tmp", 0), make("c.positions.tmp", 9*time.Minute), make("d.segment", time.Minute), make("mine.txt", week)}
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
const leftDocs = tierLength + 2

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
	if x.mergeAll(t.Context(), mergeable, false) {
		t.Error("segments were merged under the lease of another process")
	}
	execute(t, x, `UPDATE leases SET until=?`, time.Now().Add(-time.Second).UnixMilli())
	closeIt(t, x)
	x = openIn(t, dir)
	defer closeIt(t, x)
	for segmentCount(t, x) >= tierLength && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if n := total(t, x, "happy"); n != leftDocs {
		t.Errorf("Search(happy) = %d, want %d", n, leftDocs)
	}
}

// openStopped opens an index and ends its work in the background.
func openStopped(t *testing.T, dir string) *Index {
	t.Helper()
	x := openIn(t, dir)
	x.stop()
	x.done.Wait()
	return x
}

// A segmentLoop is an [Index.segmentLoopAt] whose times the test sends.
type segmentLoop struct{ retry, sweep chan time.Time }

// startSegmentLoop runs the loop of an index. At the end of the test, it ends the
// loop and closes the index.
func startSegmentLoop(t *testing.T, x *Index) segmentLoop {
	ctx, cancel := context.WithCancel(t.Context())
	loop := segmentLoop{make(chan time.Time), make(chan time.Time)}
	done := make(chan struct{})
	go func() { defer close(done); x.segmentLoopAt(ctx, loop.retry, loop.sweep) }()
	t.Cleanup(func() {
		cancel()
		<-done
		closeIt(t, x)
	})
	return loop
}

// tick lets the loop try again, and returns when it has finished that.
func (l segmentLoop) tick() {
	l.retry <- time.Now()
	l.sweep <- time.Now()
}

// TestMergeAgain checks that a merge that another process prevented is tried
// again.
func TestMergeAgain(t *testing.T) {
	dir := t.TempDir()
	unmerged(t, dir)
	x := openStopped(t, dir)
	loop := startSegmentLoop(t, x)
	signal(x.mergeSoon)
	loop.retry <- time.Now() // accepted after the merge was refused
	execute(t, x, `DELETE FROM leases`)
	for segmentCount(t, x) >= tierLength && t.Context().Err() == nil {
		select {
		case loop.retry <- time.Now():
		default:
			time.Sleep(time.Millisecond)
		}
	}
}

func TestMergeableAtRest(t *testing.T) {
	tests := []struct {
		name  string
		sizes []int64
		want  []int64 // of the segments that are merged
	}{
		{"none", nil, nil},
		{"one", []int64{5}, nil},
		{"two of one size", []int64{5, 5}, []int64{5, 5}},
		{"after a first indexing", []int64{2291, 64, 2206, 97, 1356, 94}, []int64{64, 94, 97, 1356, 2206, 2291}},
		{"a small one beside a large one", []int64{51, 5}, nil},
		{"a change beside a large one", []int64{5, 5000, 5}, []int64{5, 5}},
		{"at the bound", []int64{50, 5}, []int64{5, 50}},
		{"small ones beside the largest", []int64{1000, 99, 1}, []int64{1, 99, 1000}},
		{"a gap between others", []int64{2000, 2100, 3}, []int64{3, 2000, 2100}},
		{"far apart", []int64{10_000, 1, 20, 500}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var rows []segmentRow
			for i, size := range test.sizes {
				rows = append(rows, segmentRow{id: int64(i + 1), docs: 1, size: size})
			}
			var got []int64
			for _, r := range mergeableAtRest(rows) {
				got = append(got, r.size)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("mergeableAtRest(%v): (-want +got)\n%s", test.sizes, diff)
			}
		})
	}
	t.Run("many deleted documents", func(t *testing.T) {
		want := []segmentRow{{id: 2, size: 5000, docs: 1000, removed: 300}}
		got := mergeableAtRest([]segmentRow{{id: 1, size: 5, docs: 1}, want[0]})
		if !slices.Equal(got, want) {
			t.Errorf("mergeableAtRest() = %+v, want %+v", got, want)
		}
	})
}

// TestMergeAtRestBounded checks how much is written when documents are added to a
// large segment one by one, with a rest after each.
func TestMergeAtRestBounded(t *testing.T) {
	const large, changes = 100_000, 10_000
	rows := []segmentRow{{docs: 1, size: large}}
	var written, most int64
	for range changes {
		rows = append(rows, segmentRow{docs: 1, size: 1})
		due := mergeableAtRest(rows)
		if due == nil {
			continue
		}
		size := sizeOf(due)
		rows = slices.DeleteFunc(rows, func(r segmentRow) bool { return slices.Contains(due, r) })
		rows = append(rows, segmentRow{docs: 1, size: size})
		written, most = written+size, max(most, int64(len(rows)))
	}
	if most > 6 {
		t.Errorf("%d segments remained, want at most 6", most)
	}
	if written > 60*changes {
		t.Errorf("%d bytes were written for %d", written, changes)
	}
}

// While nothing changes, the segments of a label become one, and everything is
// still found.
func TestMergeAtRest(t *testing.T) {
	x := openStopped(t, t.TempDir())
	const n = tierLength - 1
	add := func(i int) {
		d := document.Document{ID: fmt.Sprint("d", i), Label: "a", Path: fmt.Sprint(i), Title: "Note", Text: fmt.Sprint("walrus number", i)}
		if err := x.Apply(t.Context(), []document.Change{{Put: &d}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		add(i)
	}
	if got := segmentCount(t, x); got != n {
		t.Fatalf("%d segments after %d changes", got, n)
	}
	loop := startSegmentLoop(t, x)
	loop.tick() // reads the generation
	loop.tick() // merges
	if got := segmentCount(t, x); got != 1 {
		t.Errorf("%d segments while nothing changes, want 1", got)
	}
	add(n)
	loop.tick() // something has changed
	if got := segmentCount(t, x); got != 2 {
		t.Errorf("%d segments after a change, want 2", got)
	}
	page, err := x.Search(t.Context(), search.Query{Text: query.MustParse("walrus"), Num: 100})
	if err != nil || page.Total != n+1 {
		t.Errorf("Search = %+v, %v, want %d documents", page, err, n+1)
	}
}

// TestRebuildOfOtherProcess checks that the words of a damaged segment are
// indexed again if the process that deleted it has ended.
func TestRebuildOfOtherProcess(t *testing.T) {
	x := openStopped(t, t.TempDir())
	apply(t, x, document.Change{Put: &document.Document{ID: "d", Label: "a", Path: "d", Title: "Note", Text: "walrus"}})
	err := x.write(t.Context(), "removing a segment as another process does", func(tx *sql.Tx) error {
		rows, err := segmentRows(t.Context(), tx, []string{"a"})
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := dropSegment(t.Context(), tx, r.id); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(t.Context(), markRebuild); err != nil {
			return err
		}
		return nextGeneration(t.Context(), tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := total(t, x, "walrus"); n != 0 {
		t.Fatalf("Search(walrus) = %d without a segment, want 0", n)
	}
	startSegmentLoop(t, x).tick()
	if n := total(t, x, "walrus"); n != 1 {
		t.Errorf("Search(walrus) = %d after a retry, want 1", n)
	}
}

// TestRemovedFiles removes the files of segments that a process has opened. The
// process builds them again without a search.
func TestRemovedFiles(t *testing.T) {
	dir := largeFolder(t)
	x := openStopped(t, dir)
	want := total(t, x, "happy")
	if want == 0 {
		t.Fatal("Search(happy) finds nothing")
	}
	for _, file := range segmentFiles(t, dir) {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	startSegmentLoop(t, x).tick()
	other := openIn(t, dir)
	if n := total(t, other, "happy"); n != want {
		t.Errorf("Search(happy) = %d in another process, want %d", n, want)
	}
	closeIt(t, other)
}
