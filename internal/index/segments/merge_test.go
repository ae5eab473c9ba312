package segments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A loop is a [Store.run] whose times the test sends.
type loop struct{ retry, sweep chan time.Time }

// startLoop runs the loop of a store until the test ends.
func startLoop(k *kit) loop {
	ctx, cancel := context.WithCancel(k.t.Context())
	l := loop{make(chan time.Time), make(chan time.Time)}
	done := make(chan struct{})
	go func() { defer close(done); k.run(ctx, l.retry, l.sweep) }()
	k.t.Cleanup(func() {
		cancel()
		<-done
	})
	return l
}

// tick lets the loop try again, and returns when it has finished that.
func (l loop) tick() {
	l.retry <- time.Now()
	l.sweep <- time.Now()
}

// TestMergeInChange checks that small segments become one in the transaction that
// fills a tier, without the documents that were removed.
func TestMergeInChange(t *testing.T) {
	k := open(t, t.TempDir(), Options{})
	for i := range tierLength - 1 {
		n := k.add("a", fmt.Sprint("walrus number", i), "clam")
		k.remove("a", n[1])
	}
	if n := k.check(); n != tierLength-1 {
		t.Errorf("%d segments, want %d", n, tierLength-1)
	}
	k.add("b", "another label")
	k.add("a", "the last walrus")
	if n := k.check(); n != 2 {
		t.Errorf("%d segments, want one for each label", n)
	}
	for word, want := range map[string]int{"walrus": tierLength, "clam": 0, "another": 1} {
		if n, _ := k.find(word); n != want {
			t.Errorf("%d documents have %q, want %d", n, word, want)
		}
	}
}

// TestMergeAgain checks that a merge that another process prevented is tried again.
func TestMergeAgain(t *testing.T) {
	k := open(t, t.TempDir(), Options{})
	k.leases.owners["merge"] = "dead"
	for i := range tierLength + 2 { // each too large to be merged in a change
		k.add("a", long(i, 8000))
	}
	if k.mergeAll(t.Context(), mergeable, false) {
		t.Error("segments were merged under the lease of another process")
	}
	if n := k.check(); n != tierLength+2 {
		t.Fatalf("%d segments are left, want %d", n, tierLength+2)
	}
	l := startLoop(k)
	l.retry <- time.Now() // accepted after the merge was refused
	if err := k.leases.Release(t.Context(), "dead", "merge"); err != nil {
		t.Fatal(err)
	}
	for n := k.check(); n >= tierLength; n = k.check() {
		l.tick()
	}
	if n, _ := k.find("walrus"); n != tierLength+2 {
		t.Errorf("%d documents are found, want %d", n, tierLength+2)
	}
	if files := k.files(); len(files) != 1 {
		t.Errorf("the files %v are left, want one", files)
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
			var rows []row
			for i, size := range test.sizes {
				rows = append(rows, row{id: int64(i + 1), docs: 1, size: size})
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
		want := []row{{id: 2, size: 5000, docs: 1000, removed: 300}}
		got := mergeableAtRest([]row{{id: 1, size: 5, docs: 1}, want[0]})
		if !slices.Equal(got, want) {
			t.Errorf("mergeableAtRest() = %+v, want %+v", got, want)
		}
	})
}

// TestMergeAtRestBounded checks how much is written when documents are added to a
// large segment one by one, with a rest after each.
func TestMergeAtRestBounded(t *testing.T) {
	const large, changes = 100_000, 10_000
	rows := []row{{docs: 1, size: large}}
	var written, most int64
	for range changes {
		rows = append(rows, row{docs: 1, size: 1})
		due := mergeableAtRest(rows)
		if due == nil {
			continue
		}
		size := sizeOf(due)
		rows = slices.DeleteFunc(rows, func(r row) bool { return slices.Contains(due, r) })
		rows = append(rows, row{docs: 1, size: size})
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
	k := open(t, t.TempDir(), Options{})
	const n = tierLength - 1
	for i := range n {
		k.add("a", fmt.Sprint("walrus number", i))
	}
	if got := k.check(); got != n {
		t.Fatalf("%d segments after %d changes", got, n)
	}
	l := startLoop(k)
	l.tick() // reads the generation
	l.tick() // merges
	if got := k.check(); got != 1 {
		t.Errorf("%d segments while nothing changes, want 1", got)
	}
	k.add("a", "another walrus")
	l.tick() // something has changed
	if got := k.check(); got != 2 {
		t.Errorf("%d segments after a change, want 2", got)
	}
	if got, _ := k.find("walrus"); got != n+1 {
		t.Errorf("%d documents are found, want %d", got, n+1)
	}
}

// TestRebuildOfOtherProcess checks that the words of a damaged segment are
// indexed again if the process that deleted it has ended.
func TestRebuildOfOtherProcess(t *testing.T) {
	k := open(t, t.TempDir(), Options{})
	k.add("a", "walrus")
	for _, s := range []string{`DELETE FROM segments`, markRebuild,
		`UPDATE kv SET value=value+1 WHERE key='generation'`} {
		k.execute(s)
	}
	if n, incomplete := k.find("walrus"); n != 0 || !incomplete {
		t.Fatalf("%d documents are found without a segment, incomplete: %t, want none and that it is", n, incomplete)
	}
	startLoop(k).tick()
	if n, incomplete := k.find("walrus"); n != 1 || incomplete {
		t.Errorf("%d documents are found after a retry, incomplete: %t, want 1 and that it is not", n, incomplete)
	}
}

// TestRemovedFiles removes the files of segments that a process has opened. The
// process builds them again without a search.
func TestRemovedFiles(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir, Options{})
	k.add("a", long(1, 30_000))
	if n, _ := k.find("walrus"); n != 1 || len(k.files()) != 1 {
		t.Fatalf("%d documents in the files %v, want one in one", n, k.files())
	}
	if err := os.Remove(k.files()[0]); err != nil {
		t.Fatal(err)
	}
	startLoop(k).tick()
	other := open(t, dir, Options{})
	if n, incomplete := other.find("walrus"); n != 1 || incomplete {
		t.Errorf("%d documents are found in another process, incomplete: %t, want 1", n, incomplete)
	}
}

// TestChangeDuringMerge removes documents, and then merges the same segments, while
// segments are merged outside of a transaction.
func TestChangeDuringMerge(t *testing.T) {
	for _, words := range []int{1, 30_000} { // in the database, and in files
		k := open(t, t.TempDir(), Options{})
		var numbers []int64
		for i := range 3 {
			numbers = append(numbers, k.add("a", long(i, words), fmt.Sprint("clam number", i))...)
		}
		view := func() (v *View) {
			err := k.db.Read(t.Context(), "listing segments", func(tx *sql.Tx) error {
				rows, err := rowsOf(t.Context(), tx, nil)
				if err == nil {
					v, err = k.viewOf(t.Context(), tx, rows)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(v.Close)
			return v
		}
		k.remove("a", numbers[0])
		merged, late := view(), view()
		k.remove("a", numbers[3], numbers[4])
		if err := k.merge(t.Context(), merged); err != nil {
			t.Fatal(err)
		}
		if err := k.merge(t.Context(), late); !errors.Is(err, errElsewhere) {
			t.Errorf("merging segments that were merged = %v, want %v", err, errElsewhere)
		}
		if n := k.check(); n != 1 {
			t.Errorf("%d segments, want 1", n)
		}
		for word, want := range map[string]int{"walrus": 1, "clam": 2} {
			if n, _ := k.find(word); n != want {
				t.Errorf("%d documents have %q, want %d", n, word, want)
			}
		}
	}
}
