package index

import (
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
	restFactor = 10      // while nothing changes, a segment of a label is more than so many times as large as all smaller ones together
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

// mergeableAtRest returns the segments of a label that should become one while
// nothing changes, because every word of a search is looked up in every segment:
// all, unless the rest is small beside the largest ones. So a small change does
// not rewrite a large segment, and what is written is at most restFactor+1 times
// as large as the segments without the largest one of them.
func mergeableAtRest(rows []segmentRow) []segmentRow {
	rows = slices.SortedFunc(slices.Values(rows), func(a, b segmentRow) int { return cmp.Compare(a.size, b.size) })
	for n := len(rows); n > 1; n-- {
		if rows[n-1].size <= restFactor*sizeOf(rows[:n-1]) {
			return rows[:n]
		}
	}
	return mergeable(rows)
}

func sizeOf(rows []segmentRow) (n int64) {
	for _, r := range rows {
		n += r.size
	}
	return n
}

// Times of the work in the background.
const (
	sweepEvery = 15 * time.Minute // files of merged segments and of processes that died are looked for
	retryEvery = 20 * time.Second // what another process prevented, or what failed, is tried again
)

// segmentLoop merges large segments, and builds damaged ones again, in the
// background until ctx ends.
func (x *Index) segmentLoop(ctx context.Context) {
	retry, sweep := time.NewTicker(retryEvery), time.NewTicker(sweepEvery)
	defer retry.Stop()
	defer sweep.Stop()
	x.segmentLoopAt(ctx, retry.C, sweep.C)
}

// segmentLoopAt is segmentLoop with the times of trying again, and of looking
// for unused files.
func (x *Index) segmentLoopAt(ctx context.Context, retry, sweep <-chan time.Time) {
	var mergeAgain, rebuildAgain bool
	var generation string // at the last retry
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-x.rebuildSoon:
			rebuildAgain = !x.rebuildMissing(ctx, rebuildAgain)
		case <-x.mergeSoon:
			mergeAgain = !x.mergeAll(ctx, mergeable, mergeAgain)
			x.sweep(ctx)
		case <-sweep:
			x.sweep(ctx)
		case <-retry:
			if mergeAgain {
				signal(x.mergeSoon)
			}
			if rebuildAgain || x.rebuildPending(ctx) || x.filesMissing(ctx) {
				rebuildAgain = !x.rebuildMissing(ctx, rebuildAgain)
			}
			if now := x.generation(ctx); now != "" && now == generation && !mergeAgain && !rebuildAgain {
				mergeAgain = !x.mergeAll(ctx, mergeableAtRest, true)
			}
			generation = x.generation(ctx)
		}
	}
}

// sweep removes files of segments that are not needed any more.
func (x *Index) sweep(ctx context.Context) {
	if err := x.removeOrphans(ctx); err != nil && ctx.Err() == nil {
		x.log.Debug("unused files of segments were not removed", "error", err)
	}
}

// progressEvery is how often the progress of work in the background is stored.
const progressEvery = 300 * time.Millisecond

// rebuildMissing builds missing segments and stores the progress for searches.
// It reports whether it is done. again says that it failed the last time, which
// is not logged twice.
func (x *Index) rebuildMissing(ctx context.Context, again bool) bool {
	var stored time.Time
	report := func(done, total int) {
		if time.Since(stored) >= progressEvery {
			stored = time.Now()
			_ = x.SetProgress(ctx, Progress{Done: done, Total: total}) // an error is met again by Maintain
		}
	}
	report(0, 1)
	err := x.Maintain(ctx, func(done, total int) { report(done, max(total, done+1)) })
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = x.SetProgress(limited, Progress{}) // otherwise it expires
	if err != nil && ctx.Err() == nil {
		x.log.Log(ctx, levelOf(slog.LevelError, again), "damaged or outdated search segments were not built again; this is tried again until it succeeds", "error", err)
	}
	return err == nil
}

// levelOf returns the level of a message, or Debug if it was logged before.
func levelOf(level slog.Level, again bool) slog.Level {
	if again {
		return slog.LevelDebug
	}
	return level
}

// rebuildPending reports whether documents are to be indexed again. The process
// that deleted their segments may have ended before it did that.
func (x *Index) rebuildPending(ctx context.Context) bool {
	var count string
	err := x.read(ctx, "looking for missing segments", func(tx *sql.Tx) (err error) {
		count, err = kvValue(ctx, tx, keyRebuild)
		return err
	})
	return err == nil && count != ""
}

// filesMissing reports whether files of segments are gone, and condemns these
// segments. This process may not have opened them, or still have them mapped.
func (x *Index) filesMissing(ctx context.Context) (missing bool) {
	var rows []segmentRow
	err := x.read(ctx, "listing segments", func(tx *sql.Tx) (err error) {
		rows, err = segmentRows(ctx, tx, nil)
		return err
	})
	if err != nil {
		return false
	}
	for _, r := range rows {
		if r.file != "" && x.checkListed(ctx, r) != nil {
			x.condemn(&damagedSegment{row: r, err: errGone})
			missing = true
		}
	}
	return missing
}

// generation returns the generation of the index, "" if it cannot be read.
func (x *Index) generation(ctx context.Context) (g string) {
	_ = x.read(ctx, "reading the generation", func(tx *sql.Tx) (err error) {
		g, err = kvValue(ctx, tx, keyGeneration)
		return err
	})
	return g
}

// mergeAll merges segments until no merge is due. It reports whether it is done.
// due chooses among the segments of a label. again says that it failed the last
// time, which is not logged twice.
func (x *Index) mergeAll(ctx context.Context, due func([]segmentRow) []segmentRow, again bool) bool {
	for {
		more, err := x.mergeOnce(ctx, due)
		d, damaged := errors.AsType[*damagedSegment](err)
		switch {
		case ctx.Err() != nil:
			return false
		case damaged && !errors.Is(err, errGone):
			x.condemn(d)
			return false // merge the rest when the segment is built again
		case errors.Is(err, errMerging) || errors.Is(err, errMerged) || errors.Is(err, errGone):
			return false // another process merges
		case err != nil:
			x.log.Log(ctx, levelOf(slog.LevelWarn, again), "segments were not merged; this is tried again until it succeeds", "error", err)
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
func (x *Index) mergeOnce(ctx context.Context, choose func([]segmentRow) []segmentRow) (more bool, err error) {
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
			due, rows = choose(usable), rows[n:]
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
	held, err := x.Lease(ctx, owner, mergeLease, "merge")
	if err != nil {
		return false, err
	}
	if len(held) == 0 {
		return false, errMerging
	}
	var renewal sync.WaitGroup
	ended := make(chan struct{})
	renewal.Go(func() { x.renewMerge(ctx, owner, ended) })
	err = x.mergeRows(ctx, due, handles, deleted)
	close(ended)
	renewal.Wait()
	return true, errors.Join(err, x.Release(context.WithoutCancel(ctx), owner, "merge"))
}

// renewMerge renews the lease of a merge until ended is closed.
func (x *Index) renewMerge(ctx context.Context, owner string, ended <-chan struct{}) {
	tick := time.NewTicker(mergeLease / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := x.Lease(ctx, owner, mergeLease, "merge"); err != nil {
				x.log.Debug("the lease of a merge was not renewed", "error", err)
			}
		case <-ended:
			return
		}
	}
}

// errMerging means that another process merges.
var errMerging = fmt.Errorf("another process merges segments: %w", errkind.Busy)

// mergeRows merges segments outside of any transaction, and replaces their rows.
func (x *Index) mergeRows(ctx context.Context, due []segmentRow, handles []*handle, deleted []segment.Bits) error {
	segments := make([]*segment.Segment, len(handles))
	for i, h := range handles {
		segments[i] = h.seg
		if err := h.verify(); err != nil { // or the merged segment would be wrong, with right checksums
			return &damagedSegment{row: h.row, err: err}
		}
	}
	r := newSegmentRow(due[0].label, 0, 0)
	var body []byte
	var err error
	if sizeOf(due) <= maxBody {
		body, err = mergeInMemory(ctx, segments, deleted)
		r.size = int64(len(body))
	} else {
		var mapped []mmap.MMap
		for _, h := range handles {
			mapped = append(mapped, h.mapped)
		}
		r.file, r.size, err = x.writeSegmentFile(mapped, func(w io.Writer, spool func() segment.Spool) error {
			_, err := segment.Merge(ctx, w, spool, segments, deleted)
			return err
		})
	}
	if d, ok := errors.AsType[*segment.Damage](err); ok {
		if i := slices.Index(segments, d.Segment); i >= 0 {
			return &damagedSegment{row: due[i], err: err}
		}
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
		err = segments[i].Rows(func(d int, row int64) {
			if set != nil && set.Has(d) && (deleted[i] == nil || !deleted[i].Has(d)) {
				gone = append(gone, row)
			}
		})
		if err != nil {
			return &damagedSegment{row: old, err: err}
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
			set, err := x.documentsOf(ctx, tx, r, gone)
			if err != nil {
				// Not a *damagedSegment: the number of the row may be used again.
				return fmt.Errorf("reading a segment that was just written: %v", err)
			}
			if err := writeDeletions(ctx, tx, r.id, set); err != nil {
				return err
			}
		}
	}
	return nextGeneration(ctx, tx)
}

// documentsOf returns the documents of a segment with some rows.
func (x *Index) documentsOf(ctx context.Context, q querier, r segmentRow, rows []int64) (segment.Bits, error) {
	h, err := x.openSegment(ctx, q, r)
	if err != nil {
		return nil, err
	}
	defer x.release(h)
	set := segment.NewBits(r.docs)
	for _, row := range rows {
		d, err := h.seg.Find(row)
		if err != nil {
			return nil, err
		}
		if d >= 0 {
			set.Set(d)
		}
	}
	return set, nil
}

// writeDeletions stores the set of deleted documents of a segment.
func writeDeletions(ctx context.Context, tx changer, id int64, set segment.Bits) error {
	_, err := tx.ExecContext(ctx, `UPDATE segments SET removed=?, deleted=? WHERE id=?`, set.Count(), deletionBytes(set), id)
	return err
}

// nextGeneration records that documents or segments have changed.
func nextGeneration(ctx context.Context, tx changer) error {
	_, err := tx.ExecContext(ctx, `UPDATE kv SET value=value+1 WHERE key=?`, keyGeneration)
	return err
}
