package segments

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/index/database"
)

// TestRebuildProgress checks that the progress is reported while damaged segments
// are built again in the background.
func TestRebuildProgress(t *testing.T) {
	k := open(t, t.TempDir(), Options{})
	k.add("a", long(1, 30_000), "walrus")
	k.find("walrus")
	k.maintaining <- struct{}{} // stops Maintain
	flip(t, k.files()[0], 8, 2400)
	if _, incomplete := k.find("walrus"); !incomplete {
		t.Error("the view of a damaged segment is complete")
	}
	startLoop(k)
	for k.reported() <= 0 {
		runtime.Gosched()
	}
	<-k.maintaining
	if err := k.Maintain(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for k.reported() != 0 {
		runtime.Gosched()
	}
	if n, incomplete := k.find("walrus"); n != 2 || incomplete {
		t.Errorf("%d documents are found, incomplete: %t, want 2", n, incomplete)
	}
	k.check()
}

// TestChangeBesideDamage changes documents of a damaged segment before it is built
// again, in a process that ends then.
func TestChangeBesideDamage(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir, Options{})
	n := k.add("a", long(1, 30_000), "walrus and clam", "walrus")
	flip(t, k.files()[0], 8, 2400)
	k.change(func(tx *database.Prepared, c *Change) error {
		if err := c.Remove(t.Context(), n[1], "a"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(t.Context(), `UPDATE docs SET text='seal' WHERE id=?`, n[1]); err != nil {
			return err
		}
		d, err := k.Document(t.Context(), tx, n[1])
		if err != nil {
			return err
		}
		return c.Add(t.Context(), *d)
	})
	k.remove("a", n[2])
	other := open(t, dir, Options{})
	if n, incomplete := other.find("seal"); n != 1 || !incomplete {
		t.Errorf("%d documents are found in another process, incomplete: %t, want 1 and that it is", n, incomplete)
	}
	startLoop(other).tick()
	for word, want := range map[string]int{"walrus": 1, "clam": 0, "seal": 1} {
		if n, incomplete := other.find(word); n != want || incomplete {
			t.Errorf("%d documents have %q, incomplete: %t, want %d", n, word, incomplete, want)
		}
	}
	other.check()
}

// TestVerifiedBeforeSearch checks how many bytes of segments are verified before a
// search, and that the others are verified after it.
func TestVerifiedBeforeSearch(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir, Options{})
	for i := range 3 {
		k.add("a", fmt.Sprint("walrus number", i))
	}
	var sizes []int
	all := 0
	k.view(func(v *View) error {
		for _, g := range v.Segments {
			sizes = append(sizes, g.Size())
			all += g.Size()
		}
		return nil
	})
	for _, c := range []struct{ bytes, unverified int }{{all, 0}, {all - sizes[2], 1},
		{min(sizes[0], sizes[1], sizes[2]) - 1, 3}} {
		k := open(t, dir, Options{VerifiedSize: c.bytes})
		count := func() (unverified int) {
			k.view(func(v *View) error {
				for _, g := range v.Segments {
					if g.unverified {
						unverified++
					}
				}
				return nil
			})
			return unverified
		}
		if n := count(); n != c.unverified {
			t.Errorf("with %d of %d bytes to verify, %d segments are not verified, want %d", c.bytes, all, n,
				c.unverified)
		}
		k.verify(t.Context())
		if n := count(); n != 0 {
			t.Errorf("%d segments are not verified in the background", n)
		}
	}
}
