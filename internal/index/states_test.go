package index

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// TestColumnsOfEarlierState checks that a search of an earlier state has the
// values of a document that was replaced meanwhile, after a search of the later
// state has read the columns of the same segment.
func TestColumnsOfEarlierState(t *testing.T) {
	x, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("Open() = %v", err)
	}
	defer x.Close()
	apply(t, x, dated("old.txt", 1), dated("changed.txt", 2), dated("new.txt", 3))
	newest := search.Query{Sort: []search.SortKey{{Field: "timestamp", Desc: true}}, Num: 10}
	order := func(p *search.Page, err error) string {
		if err != nil {
			t.Fatalf("Search() = %v", err)
		}
		var s string
		for _, h := range p.Hits {
			s += " " + h.Path
		}
		return s
	}
	var earlier, later string
	err = x.searching(t.Context(), "", nil, func(e *evaluator) error {
		apply(t, x, dated("changed.txt", 9))
		later = order(x.Search(t.Context(), newest))
		earlier = order(retrieval.Search(t.Context(), e, newest, e.options()))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := " new.txt changed.txt old.txt"; earlier != want {
		t.Errorf("before the change, the order is%s, want%s", earlier, want)
	}
	if want := " changed.txt new.txt old.txt"; later != want {
		t.Errorf("after the change, the order is%s, want%s", later, want)
	}
	if again := order(x.Search(t.Context(), newest)); again != later {
		t.Errorf("later, the order is%s, want%s", again, later)
	}
}

func dated(path string, day int) document.Change {
	c := simple(path, day)
	c.Put.Modified = time.Date(2025, 1, day, 0, 0, 0, 0, time.UTC)
	return c
}

func TestBest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int{0, 1, 2, 3, 10, 1000} {
		values := make([]int, size)
		for i := range values {
			values[i] = r.IntN(size)
		}
		sorted := slices.Sorted(slices.Values(values))
		for _, n := range []int{0, 1, 2, 7, size, size + 1} {
			for _, v := range [][]int{values, sorted} {
				if got := best(slices.Values(v), n, cmp.Compare[int]); !slices.Equal(got, sorted[:min(n, size)]) {
					t.Errorf("the first %d of %v are %v, want %v", n, v, got, sorted[:min(n, size)])
				}
			}
		}
	}
}

// TestOutdatedIsPartial checks that a list says that it is not complete while
// documents are only in segments of another version.
func TestOutdatedIsPartial(t *testing.T) {
	x := openIn(t, t.TempDir())
	defer closeIt(t, x)
	apply(t, x, simple("a.txt", 1))
	err := x.change(t.Context(), "", nil, func(w *writer) error {
		_, err := w.tx.ExecContext(t.Context(), `UPDATE segments SET format=format+1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		p, err := x.Search(t.Context(), search.Query{Num: 10})
		if err != nil {
			t.Fatal(err)
		}
		if p.Partial == (p.Total == 1) {
			t.Errorf("Search() = %d documents, partial: %t", p.Total, p.Partial)
		}
		if err := x.Maintain(t.Context(), nil); err != nil {
			t.Fatalf("Maintain() = %v", err)
		}
	}
}
