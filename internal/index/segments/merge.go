package segments

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/edsrzf/mmap-go"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// tierOf returns the group of sizes that a segment belongs to: the number of
// digits of its size in kilobytes.
func tierOf(size int64) int {
	n := 0
	for size /= 1000; size > 0; size /= 10 {
		n++
	}
	return n
}

// Rules of merging.
const (
	tierLength = 10 // segments of one tier that are merged
	// while nothing changes, a segment of a label is more than so many times as large as all smaller
	// ones together
	restFactor = 10
	inlineSize = 1 << 20 // bytes that are merged inside the transaction of a change
)

// mergeable returns the segments that should become one: all of a tier that is
// full, or one segment with many deleted documents. Those of the smallest tier
// come first.
func mergeable(rows []row) []row {
	tiers := map[int][]row{}
	least := -1
	for _, r := range rows {
		t := tierOf(r.size)
		tiers[t] = append(tiers[t], r)
		if len(tiers[t]) >= tierLength && (least < 0 || t < least) {
			least = t
		}
	}
	if least >= 0 {
		return tiers[least]
	}
	for _, r := range rows {
		if r.removed*5 > r.docs && r.docs >= 100 {
			return []row{r}
		}
	}
	return nil
}

// mergeableAtRest returns the segments of a label that should become one while
// nothing changes, because every word of a search is looked up in every segment:
// all, unless the rest is small beside the largest ones. So a small change does
// not rewrite a large segment, and what is written is at most restFactor+1 times
// as large as the segments without the largest one of them.
func mergeableAtRest(rows []row) []row {
	rows = slices.SortedFunc(slices.Values(rows), func(a, b row) int { return cmp.Compare(a.size, b.size) })
	for n := len(rows); n > 1; n-- {
		if rows[n-1].size <= restFactor*sizeOf(rows[:n-1]) {
			return rows[:n]
		}
	}
	return mergeable(rows)
}

func sizeOf(rows []row) (n int64) {
	for _, r := range rows {
		n += r.size
	}
	return n
}

// mergeAll merges segments until no merge is due. It reports whether it is done.
// due chooses among the segments of a label. again says that it failed the last
// time, which is not logged twice.
func (s *Store) mergeAll(ctx context.Context, due func([]row) []row, again bool) bool {
	for {
		more, err := s.mergeOnce(ctx, due)
		d, damaged := errors.AsType[*damaged](err)
		switch {
		case ctx.Err() != nil:
			return false
		case damaged && !errors.Is(err, errGone):
			s.leaveOut(d)
			return false // merge the rest when the segment is built again
		case errors.Is(err, errElsewhere) || errors.Is(err, errGone):
			return false
		case err != nil:
			s.o.Log.Log(ctx, levelOf(slog.LevelWarn, again),
				"segments were not merged; this is tried again until it succeeds", "error", err)
			return false
		case !more:
			return true
		}
	}
}

// mergeLease is how long a process has the right to merge.
const mergeLease = time.Minute

// mergeOnce merges the segments of one label once if that is due, and no other
// process does.
func (s *Store) mergeOnce(ctx context.Context, choose func([]row) []row) (more bool, err error) {
	var v *View
	err = s.o.DB.Read(ctx, "merging segments", func(tx *sql.Tx) error {
		rows, err := rowsOf(ctx, tx, nil)
		if err != nil {
			return err
		}
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.label, b.label) })
		for len(rows) > 0 && v == nil {
			n := slices.IndexFunc(rows, func(r row) bool { return r.label != rows[0].label })
			if n < 0 {
				n = len(rows)
			}
			usable := slices.DeleteFunc(slices.Clone(rows[:n]), func(r row) bool { return !r.current() })
			if due := choose(usable); due != nil {
				if v, err = s.viewOf(ctx, tx, due); err != nil {
					return err
				}
			}
			rows = rows[n:]
		}
		return nil
	})
	if v == nil {
		return false, err
	}
	defer v.Close()
	if err != nil {
		return false, err
	}
	owner := rand.Text()
	held, err := s.o.Leases.Lease(ctx, owner, mergeLease, "merge")
	if err != nil {
		return false, err
	}
	if len(held) == 0 {
		return false, errElsewhere
	}
	var renewal sync.WaitGroup
	ended := make(chan struct{})
	renewal.Go(func() { s.renewMerge(ctx, owner, ended) })
	err = s.merge(ctx, v)
	close(ended)
	renewal.Wait()
	return true, errors.Join(err, s.o.Leases.Release(context.WithoutCancel(ctx), owner, "merge"))
}

// renewMerge renews the lease of a merge until ended is closed.
func (s *Store) renewMerge(ctx context.Context, owner string, ended <-chan struct{}) {
	tick := time.NewTicker(mergeLease / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := s.o.Leases.Lease(ctx, owner, mergeLease, "merge"); err != nil {
				s.o.Log.Debug("the lease of a merge was not renewed", "error", err)
			}
		case <-ended:
			return
		}
	}
}

// errElsewhere means that another process merges, or has merged, the same segments.
var errElsewhere = fmt.Errorf("another process merges segments: %w", errkind.Busy)

// merge merges the segments of a view outside of any transaction, and replaces their
// rows.
func (s *Store) merge(ctx context.Context, v *View) error {
	if err := v.Verify(); err != nil { // or the merged segment would be wrong, with right checksums
		return err
	}
	var segments []*segment.Segment
	var mapped []mmap.MMap
	var size int64
	for _, g := range v.Segments {
		segments, mapped, size = append(segments, g.Segment), append(mapped, g.mapped), size+g.row.size
	}
	r := newRow(v.Segments[0].Label, 0, 0)
	var body []byte
	var err error
	if size <= maxBody {
		body, err = mergeInMemory(ctx, segments, v.deleted)
		r.size = int64(len(body))
	} else {
		r.file, r.size, err = s.writeFile(mapped, func(w io.Writer, spool func() segment.Spool) error {
			_, err := segment.Merge(ctx, w, spool, segments, v.deleted)
			return err
		})
	}
	if err := v.Fault(err); err != nil {
		return err
	}
	err = s.o.DB.Write(ctx, "merging segments", func(tx *sql.Tx) error {
		return s.replaceMerged(ctx, tx, v, r, body)
	})
	if err != nil {
		if r.file != "" {
			os.Remove(s.path(r.file))
		}
		return err
	}
	for _, g := range v.Segments {
		if g.row.file != "" { // a search that still needs it reads the list again
			os.Remove(s.path(g.row.file)) // Sweep tries again
		}
	}
	return nil
}

// replaceMerged replaces the rows of merged segments by one for the result, and
// carries over the deletions that came meanwhile.
func (s *Store) replaceMerged(ctx context.Context, tx *sql.Tx, v *View, r row, body []byte) error {
	var gone []int64 // rows of documents that were deleted since
	for i, g := range v.Segments {
		var now row
		err := database.Collect(ctx, tx, now.scan, `SELECT `+segmentColumns+` FROM segments WHERE id=?`, g.row.id)
		if err != nil {
			return err
		}
		if now.id == 0 {
			return errElsewhere
		}
		r.docs += g.Docs() - v.deleted[i].Count()
		set, err := deletions(ctx, tx, now)
		if err != nil {
			return err
		}
		err = g.Rows(func(d int, row int64) {
			if set != nil && set.Has(d) && (v.deleted[i] == nil || !v.deleted[i].Has(d)) {
				gone = append(gone, row)
			}
		})
		if err != nil {
			return &damaged{row: g.row, err: err}
		}
		if err := drop(ctx, tx, g.row.id); err != nil {
			return err
		}
	}
	if r.docs > 0 {
		if err := insert(ctx, tx, &r, body); err != nil {
			return err
		}
		if len(gone) > 0 {
			set := segment.NewBits(r.docs)
			if err := s.use(ctx, tx, r, func(g *Segment, _ segment.Bits) error {
				return places(g, gone, set)
			}); err != nil {
				// Not a *damaged: the number of the row may be used again.
				return fmt.Errorf("reading a segment that was just written: %v", err)
			}
			if err := writeDeletions(ctx, tx, r.id, set); err != nil {
				return err
			}
		}
	}
	return nextGeneration(ctx, tx)
}

// places adds the places of documents of a segment to a set.
func places(g *Segment, numbers []int64, to segment.Bits) error {
	for _, n := range numbers {
		place, err := g.Find(n)
		if err != nil {
			return err
		}
		if place >= 0 {
			to.Set(place)
		}
	}
	return nil
}

// mergeInMemory merges small segments.
func mergeInMemory(ctx context.Context, segments []*segment.Segment, deleted []segment.Bits) ([]byte, error) {
	var out bytes.Buffer
	_, err := segment.Merge(ctx, &out, segment.InMemory, segments, deleted)
	return out.Bytes(), err
}
