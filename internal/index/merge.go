package index

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"knowhow/internal/analysis"
	"knowhow/internal/errkind"
	"knowhow/internal/segment"
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
	tierLength = 10      // segments of one tier that are merged
	inlineSize = 1 << 20 // bytes that are merged inside the transaction of a change
)

// mergeable returns the segments that should become one: all of a tier that is
// full, or one segment with many deleted documents. Those of the smallest tier
// come first.
func mergeable(rows []segmentRow) []segmentRow {
	tiers := map[int][]segmentRow{}
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
			return []segmentRow{r}
		}
	}
	return nil
}

func sizeOf(rows []segmentRow) (n int64) {
	for _, r := range rows {
		n += r.size
	}
	return n
}

// segmentLoop merges large segments, and builds damaged ones again, in the
// background until ctx ends.
func (x *Index) segmentLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.rebuildSoon:
			if err := x.Maintain(ctx, nil); err != nil && ctx.Err() == nil {
				x.log.Error("a damaged search segment was not built again", "error", err)
			}
			continue
		case <-x.verifySoon:
			x.verify(ctx)
			continue
		case <-x.mergeSoon:
		}
		for {
			more, err := x.mergeOnce(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				x.log.Warn("segments were not merged", "error", err)
			}
			if err != nil || !more {
				break
			}
		}
		if err := x.removeOrphans(ctx); err != nil && ctx.Err() == nil {
			x.log.Debug("merged segments were not removed", "error", err)
		}
	}
}

// mergeLease is how long a process has the right to merge.
const mergeLease = time.Minute

// mergeOnce merges the segments of one label once if that is due, and no other
// process does.
func (x *Index) mergeOnce(ctx context.Context) (more bool, err error) {
	var due []segmentRow
	var handles []*handle
	var deleted []segment.Bits
	defer func() {
		for _, h := range handles {
			x.release(h)
		}
	}()
	err = x.read(ctx, "merging segments", func(tx *sql.Tx) error {
		rows, err := segmentRows(ctx, tx, nil)
		if err != nil {
			return err
		}
		slices.SortStableFunc(rows, func(a, b segmentRow) int { return cmp.Compare(a.label, b.label) })
		for len(rows) > 0 && due == nil {
			n := slices.IndexFunc(rows, func(r segmentRow) bool { return r.label != rows[0].label })
			if n < 0 {
				n = len(rows)
			}
			usable := slices.DeleteFunc(slices.Clone(rows[:n]), func(r segmentRow) bool {
				return r.format != segment.Version || r.analyzer != analysis.Version
			})
			due, rows = mergeable(usable), rows[n:]
		}
		for _, r := range due {
			h, err := x.openSegment(ctx, tx, r)
			if err != nil {
				return err
			}
			handles = append(handles, h)
			set, err := deletions(ctx, tx, r)
			if err != nil {
				return err
			}
			deleted = append(deleted, set)
		}
		return nil
	})
	if err != nil || due == nil {
		return false, err
	}
	owner := rand.Text()
	if held, err := x.Lease(ctx, owner, mergeLease, "merge"); err != nil || len(held) == 0 {
		return false, err
	}
	defer x.Release(context.WithoutCancel(ctx), owner, "merge")
	return true, x.mergeRows(ctx, due, handles, deleted)
}

// mergeRows merges segments outside of any transaction, and replaces their rows.
func (x *Index) mergeRows(ctx context.Context, due []segmentRow, handles []*handle, deleted []segment.Bits) error {
	segments := make([]*segment.Segment, len(handles))
	for i, h := range handles {
		segments[i] = h.seg
	}
	r := segmentRow{label: due[0].label, analyzer: analysis.Version, format: segment.Version}
	var body []byte
	var err error
	if sizeOf(due) <= maxBody {
		body, err = mergeInMemory(ctx, segments, deleted)
		r.size = int64(len(body))
	} else {
		r.file, r.size, err = x.writeSegmentFile(func(w io.Writer, spool segment.Spool) error {
			_, err := segment.Merge(ctx, w, spool, segments, deleted)
			return err
		})
	}
	if err != nil {
		return err
	}
	err = x.write(ctx, "merging segments", func(tx *sql.Tx) error {
		return x.replaceMerged(ctx, tx, due, segments, deleted, r, body)
	})
	if err != nil {
		if r.file != "" {
			os.Remove(x.segmentPath(r.file))
		}
		return err
	}
	for _, old := range due {
		if old.file != "" { // a search that still needs it reads the list again
			os.Remove(x.segmentPath(old.file)) // removeOrphans tries again
		}
	}
	return nil
}

// errMerged means that the segments of a merge have changed meanwhile.
var errMerged = fmt.Errorf("another process has merged the same segments: %w", errkind.Busy)

// replaceMerged replaces the rows of merged segments by one for the result, and
// carries over the deletions that came meanwhile.
func (x *Index) replaceMerged(ctx context.Context, tx *sql.Tx, due []segmentRow, segments []*segment.Segment, deleted []segment.Bits, r segmentRow, body []byte) error {
	var gone []int64 // rows of documents that were deleted since
	for i, old := range due {
		var now segmentRow
		err := collect(ctx, tx, now.scan, `SELECT `+segmentColumns+` FROM segments WHERE id=?`, old.id)
		if err != nil {
			return err
		}
		if now.id == 0 {
			return errMerged
		}
		r.docs += old.docs - old.removed
		set, err := deletions(ctx, tx, now)
		if err != nil {
			return err
		}
		for d := set.Next(0); d >= 0; d = set.Next(d + 1) {
			if deleted[i] == nil || !deleted[i].Has(d) {
				gone = append(gone, segments[i].Row(d))
			}
		}
		if err := dropSegment(ctx, tx, old.id); err != nil {
			return err
		}
	}
	if r.docs > 0 {
		if err := insertSegment(ctx, tx, &r, body); err != nil {
			return err
		}
		if len(gone) > 0 {
			h, err := x.openSegment(ctx, tx, r)
			if err != nil {
				return err
			}
			defer x.release(h)
			set := segment.NewBits(r.docs)
			for _, row := range gone {
				if d, ok := h.seg.DocOfRow(row); ok {
					set.Set(d)
				}
			}
			if err := writeDeletions(ctx, tx, r.id, set); err != nil {
				return err
			}
		}
	}
	return nextGeneration(ctx, tx)
}

// writeDeletions stores the set of deleted documents of a segment.
func writeDeletions(ctx context.Context, tx *sql.Tx, id int64, set segment.Bits) error {
	_, err := tx.ExecContext(ctx, `UPDATE segments SET removed=?, deleted=? WHERE id=?`, set.Count(), deletionBytes(set), id)
	return err
}

// nextGeneration records that documents or segments have changed.
func nextGeneration(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `UPDATE kv SET value=value+1 WHERE key=?`, keyGeneration)
	return err
}
