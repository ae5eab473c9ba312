package index

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edsrzf/mmap-go"

	"knowhow/internal/analysis"
	"knowhow/internal/errkind"
	"knowhow/internal/segment"
)

// The words of the documents are in segments (package segment). Every segment
// has documents of one label only, so that a search under some labels sees
// nothing of other labels: no word, no frequency and no length. A small segment
// is a row of segment_bodies, a large one is a file in the folder segmentsDir.
// The rows of table segments, the deletions among them, change in the
// transaction that changes the documents.
const (
	segmentsDir   = "segments"
	segmentSuffix = ".segment"
	maxBody       = 256 << 10 // bytes of a segment that is stored in the database

	// verifiedSize is the greatest size of a segment that is verified before
	// it is searched. Larger ones are verified in the background.
	verifiedSize = 32 << 20
)

// A segmentRow is a row of table segments.
type segmentRow struct {
	id       int64
	label    string
	analyzer int // version of package analysis
	format   int // version of package segment
	docs     int
	size     int64
	removed  int    // documents that are deleted
	file     string // name in the folder; "" if the segment is in the database
}

const segmentColumns = `id, label, analyzer, format, docs, size, removed, file`

func (r *segmentRow) scan(rows *sql.Rows) error {
	return rows.Scan(&r.id, &r.label, &r.analyzer, &r.format, &r.docs, &r.size, &r.removed, &r.file)
}

// segmentRows returns the rows with one of the labels (nil: all), in the order
// of their numbers.
func segmentRows(ctx context.Context, q querier, labels []string) ([]segmentRow, error) {
	var out []segmentRow
	where, args := conditions{labels: labels}.where()
	err := collect(ctx, q, func(rows *sql.Rows) error {
		var r segmentRow
		err := r.scan(rows)
		out = append(out, r)
		return err
	}, `SELECT `+segmentColumns+` FROM segments d WHERE `+where+` ORDER BY id`, args...)
	return out, err
}

// deletions returns the set of deleted documents of a segment, nil if none is
// deleted.
func deletions(ctx context.Context, q querier, r segmentRow) (segment.Bits, error) {
	if r.removed == 0 {
		return nil, nil
	}
	var raw []byte
	if err := q.QueryRowContext(ctx, `SELECT deleted FROM segments WHERE id=?`, r.id).Scan(&raw); err != nil {
		return nil, err
	}
	set := segment.NewBits(r.docs)
	if len(raw) != 8*len(set) {
		return nil, &segment.Damage{Reason: "its set of deleted documents has a wrong size"}
	}
	for i := range set {
		for b := range 8 {
			set[i] |= uint64(raw[8*i+b]) << (8 * b)
		}
	}
	return set, nil
}

// deletionBytes returns a set in the form that [deletions] reads.
func deletionBytes(set segment.Bits) []byte {
	raw := make([]byte, 8*len(set))
	for i, w := range set {
		for b := range 8 {
			raw[8*i+b] = byte(w >> (8 * b))
		}
	}
	return raw
}

// A handle is an open segment. It is closed when nothing refers to it.
type handle struct {
	row   segmentRow // removed is that of the time of opening
	seg   *segment.Segment
	unmap func() error // nil for a segment in memory
	refs  int
}

// openSegments are the segments and views of an Index that are open. The zero
// openSegments is ready for use.
type openSegments struct {
	mu      sync.Mutex
	handles map[int64]*handle
	views   map[string]*view // of one generation, by labels
	of      string           // the generation
}

// errGone is the error for a segment whose file another process removed after
// the list of segments was read.
var errGone = errors.New("a segment was merged meanwhile")

// open returns the segment of a row and adds a reference to it.
func (x *Index) openSegment(ctx context.Context, q querier, r segmentRow) (*handle, error) {
	x.open.mu.Lock()
	defer x.open.mu.Unlock()
	if h := x.open.handles[r.id]; h != nil {
		h.refs++
		return h, nil
	}
	h := &handle{row: r, refs: 1}
	data, err := x.segmentData(ctx, q, r, h)
	if err != nil {
		return nil, err
	}
	h.seg, err = segment.Open(data)
	if err == nil && len(data) <= verifiedSize {
		err = h.seg.Verify()
	}
	if err != nil {
		if h.unmap != nil {
			err = errors.Join(err, h.unmap())
		}
		return nil, &damagedSegment{row: r, err: err}
	}
	if x.open.handles == nil {
		x.open.handles = map[int64]*handle{}
	}
	x.open.handles[r.id] = h
	return h, nil
}

// segmentData returns the bytes of a segment.
func (x *Index) segmentData(ctx context.Context, q querier, r segmentRow, h *handle) ([]byte, error) {
	if r.file == "" {
		var body []byte
		err := q.QueryRowContext(ctx, `SELECT body FROM segment_bodies WHERE id=?`, r.id).Scan(&body)
		return body, err
	}
	f, err := os.Open(x.segmentPath(r.file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &damagedSegment{row: r, err: errGone}
	}
	if err != nil {
		return nil, fmt.Errorf("opening a search segment: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("opening a search segment: %w", err)
	}
	if info.Size() != r.size {
		return nil, &damagedSegment{row: r, err: &segment.Damage{Reason: fmt.Sprintf("it has %d bytes instead of %d", info.Size(), r.size)}}
	}
	m, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil { // for example on a network drive
		data := make([]byte, r.size)
		_, err := io.ReadFull(f, data)
		return data, err
	}
	h.unmap = m.Unmap
	return m, nil
}

// A damagedSegment is an error of kind Corrupt about the segment of a row.
type damagedSegment struct {
	row segmentRow
	err error
}

func (e *damagedSegment) Error() string { return fmt.Sprintf("segment %d: %v", e.row.id, e.err) }
func (e *damagedSegment) Unwrap() error { return e.err }

func (x *Index) segmentPath(file string) string {
	return filepath.Join(filepath.Dir(x.path), segmentsDir, file)
}

// release removes a reference to a segment.
func (x *Index) release(h *handle) {
	x.open.mu.Lock()
	defer x.open.mu.Unlock()
	x.releaseLocked(h)
}

func (x *Index) releaseLocked(h *handle) {
	if h.refs--; h.refs > 0 {
		return
	}
	delete(x.open.handles, h.row.id)
	if h.unmap != nil {
		if err := h.unmap(); err != nil {
			x.log.Debug("closing a search segment", "error", err)
		}
	}
}

// A view is what a search under some labels sees of one generation of the
// index.
type view struct {
	*segment.Collection
	handles []*handle
	refs    int

	mu   sync.Mutex
	sets map[string]segment.Docs // by condition
}

// maxViews is how many views are kept, and maxViewSets how many sets of
// documents each of them keeps.
const (
	maxViews    = 32
	maxViewSets = 64
)

// view returns the view of the documents with one of the labels (nil: all) in a
// transaction. The caller must call closeView.
func (x *Index) view(ctx context.Context, q querier, labels []string) (*view, error) {
	generation, err := kvValue(ctx, q, keyGeneration)
	if err != nil {
		return nil, err
	}
	key := conditions{}.key()
	if labels != nil { // an empty list admits no document
		key = conditions{labels: slices.Compact(append([]string{}, slices.Sorted(slices.Values(labels))...))}.key()
	}
	x.open.mu.Lock()
	if x.open.of == generation {
		if v := x.open.views[key]; v != nil {
			v.refs++
			x.open.mu.Unlock()
			return v, nil
		}
	}
	x.open.mu.Unlock()
	v, err := x.makeView(ctx, q, labels)
	if err != nil {
		return nil, err
	}
	x.open.mu.Lock()
	defer x.open.mu.Unlock()
	if x.open.of != generation || len(x.open.views) >= maxViews {
		// A search that began before the last change may bring back an older
		// generation. Then the views alternate, which is only slower.
		for _, old := range x.open.views {
			x.closeLocked(old)
		}
		x.open.views, x.open.of = map[string]*view{}, generation
	}
	if other := x.open.views[key]; other != nil {
		x.closeLocked(other)
	}
	v.refs++
	x.open.views[key] = v
	return v, nil
}

func (x *Index) makeView(ctx context.Context, q querier, labels []string) (*view, error) {
	rows, err := segmentRows(ctx, q, labels)
	if err != nil {
		return nil, err
	}
	v := &view{refs: 1, sets: map[string]segment.Docs{}}
	var segments []*segment.Segment
	var deleted []segment.Bits
	for _, r := range rows {
		if r.format != segment.Version {
			continue // Maintain builds it again
		}
		h, err := x.openSegment(ctx, q, r)
		if err == nil {
			v.handles = append(v.handles, h)
			var set segment.Bits
			if set, err = deletions(ctx, q, r); err == nil {
				segments, deleted = append(segments, h.seg), append(deleted, set)
				continue
			}
		}
		for _, h := range v.handles {
			x.release(h)
		}
		return nil, err
	}
	v.Collection = segment.NewCollection(segments, deleted)
	return v, nil
}

// closeView ends the use of a view.
func (x *Index) closeView(v *view) {
	x.open.mu.Lock()
	defer x.open.mu.Unlock()
	x.closeLocked(v)
}

func (x *Index) closeLocked(v *view) {
	if v.refs--; v.refs > 0 {
		return
	}
	for _, h := range v.handles {
		x.releaseLocked(h)
	}
}

// closeSegments closes all segments. Nothing may use them any more.
func (x *Index) closeSegments() {
	x.open.mu.Lock()
	defer x.open.mu.Unlock()
	for _, v := range x.open.views {
		x.closeLocked(v)
	}
	x.open.views = nil
}

// set returns the cached documents of a condition, or else those that make
// returns. The result must not be changed.
func (v *view) set(key string, make func() (segment.Docs, error)) (segment.Docs, error) {
	v.mu.Lock()
	d, ok := v.sets[key]
	v.mu.Unlock()
	if ok {
		return d, nil
	}
	d, err := make()
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.sets) < maxViewSets {
		v.sets[key] = d
	}
	return d, nil
}

// rowOfSegment returns the row of a segment of the view.
func (v *view) rowOfSegment(s *segment.Segment) (segmentRow, bool) {
	for _, h := range v.handles {
		if h.seg == s {
			return h.row, true
		}
	}
	return segmentRow{}, false
}

// A spoolFile is a segment.Spool on disk.
type spoolFile struct{ *os.File }

func (s spoolFile) WriteTo(w io.Writer) (int64, error) {
	if _, err := s.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(w, struct{ io.Reader }{s.File})
}

// writeSegmentFile calls write with a new file in the folder of segments, and
// returns the name and the size of the file after it is on disk.
func (x *Index) writeSegmentFile(write func(w io.Writer, spool segment.Spool) error) (name string, size int64, err error) {
	dir := filepath.Join(filepath.Dir(x.path), segmentsDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", 0, fmt.Errorf("making the folder of segments: %w", err)
	}
	base := strings.ToLower(rand.Text()[:16])
	var files []*os.File
	defer func() {
		for _, f := range files {
			f.Close() // closed already unless there was an error
			if f.Name() != x.segmentPath(name) {
				os.Remove(f.Name())
			}
		}
	}()
	for _, suffix := range []string{".tmp", ".positions.tmp"} {
		f, err := os.OpenFile(filepath.Join(dir, base+suffix), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return "", 0, fmt.Errorf("writing a segment: %w", err)
		}
		files = append(files, f)
	}
	out := files[0]
	buffered := bufio.NewWriterSize(out, 1<<20)
	if err := write(buffered, spoolFile{files[1]}); err != nil {
		return "", 0, err
	}
	if err := errors.Join(buffered.Flush(), out.Sync()); err != nil {
		return "", 0, fmt.Errorf("writing a segment: %w", err)
	}
	info, err := out.Stat()
	if err != nil {
		return "", 0, fmt.Errorf("writing a segment: %w", err)
	}
	if err := out.Close(); err != nil {
		return "", 0, fmt.Errorf("writing a segment: %w", err)
	}
	final := base + segmentSuffix
	if err := os.Rename(out.Name(), filepath.Join(dir, final)); err != nil {
		return "", 0, fmt.Errorf("writing a segment: %w", err)
	}
	syncDir(dir)
	return final, info.Size(), nil
}

// syncDir makes the names in a folder durable, where the system can do that.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync() // not supported on Windows, where names are durable anyway
		d.Close()
	}
}

// storeSegment stores the bytes of a new segment and returns its row.
func (x *Index) storeSegment(ctx context.Context, tx *sql.Tx, label string, docs int, data []byte) (segmentRow, error) {
	r := segmentRow{label: label, analyzer: analysis.Version, format: segment.Version, docs: docs, size: int64(len(data))}
	if len(data) > maxBody {
		var err error
		r.file, r.size, err = x.writeSegmentFile(func(w io.Writer, _ segment.Spool) error {
			_, err := w.Write(data)
			return err
		})
		if err != nil {
			return r, err
		}
		return r, insertSegment(ctx, tx, &r, nil)
	}
	return r, insertSegment(ctx, tx, &r, data)
}

// insertSegment inserts the row of a segment and sets its id. body is nil if the
// segment is in a file.
func insertSegment(ctx context.Context, tx *sql.Tx, r *segmentRow, body []byte) error {
	err := tx.QueryRowContext(ctx, `INSERT INTO segments(label, analyzer, format, docs, size, removed, file) VALUES(?, ?, ?, ?, ?, 0, ?) RETURNING id`,
		r.label, r.analyzer, r.format, r.docs, r.size, r.file).Scan(&r.id)
	if err != nil || body == nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO segment_bodies(id, body) VALUES(?, ?)`, r.id, body)
	return err
}

// dropSegment deletes the row of a segment. Its file is removed later.
func dropSegment(ctx context.Context, tx *sql.Tx, id int64) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM segment_bodies WHERE id=?`, id); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM segments WHERE id=?`, id)
	return err
}

// orphanAge is the least age of a file that no row names and that is removed.
const orphanAge = 10 * time.Minute

// removeOrphans removes files of segments that no row names: those that were
// merged, and those of a process that died.
func (x *Index) removeOrphans(ctx context.Context) error {
	dir := filepath.Join(filepath.Dir(x.path), segmentsDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing merged segments: %w", err)
	}
	named := map[string]bool{}
	err = x.read(ctx, "listing segments", func(tx *sql.Tx) error {
		return collect(ctx, tx, func(rows *sql.Rows) error {
			var name string
			err := rows.Scan(&name)
			named[name] = true
			return err
		}, `SELECT file FROM segments WHERE file<>''`)
	})
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || named[e.Name()] || !info.Mode().IsRegular() || time.Since(info.ModTime()) < orphanAge {
			continue
		}
		if ext := filepath.Ext(e.Name()); ext != segmentSuffix && ext != ".tmp" {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			x.log.Debug("removing a merged segment", "error", err) // on Windows, another process may have it open
		}
	}
	return nil
}

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
