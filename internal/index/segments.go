package index

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/edsrzf/mmap-go"

	"knowhow/internal/analysis"
	"knowhow/internal/errkind"
	"knowhow/internal/index/database"
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

	// verifiedSize is how many bytes of segments are verified before they are
	// searched. The others are verified in the background.
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

// Statements that list segments.
const (
	segmentsQuery      = `SELECT ` + segmentColumns + ` FROM segments ORDER BY id`
	labelSegmentsQuery = `SELECT ` + segmentColumns + ` FROM segments WHERE label IN (SELECT value FROM json_each(?)) ORDER BY id`
	deletionsQuery     = `SELECT deleted FROM segments WHERE id=?`
	bodyQuery          = `SELECT body FROM segment_bodies WHERE id=?`
)

// segmentRows returns the rows with one of the labels (nil: all), in the order
// of their numbers.
func segmentRows(ctx context.Context, q querier, labels []string) ([]segmentRow, error) {
	query, args := segmentsQuery, []any(nil)
	if labels != nil {
		list, _ := json.Marshal(labels) // strings always marshal
		query, args = labelSegmentsQuery, []any{string(list)}
	}
	var out []segmentRow
	err := collect(ctx, q, func(rows *sql.Rows) error {
		var r segmentRow
		err := r.scan(rows)
		out = append(out, r)
		return err
	}, query, args...)
	return out, err
}

// deletions returns the set of deleted documents of a segment, nil if none is
// deleted.
func deletions(ctx context.Context, q querier, r segmentRow) (segment.Bits, error) {
	if r.removed == 0 {
		return nil, nil
	}
	var raw []byte
	if err := q.QueryRowContext(ctx, deletionsQuery, r.id).Scan(&raw); err != nil {
		return nil, err
	}
	set := segment.NewBits(r.docs)
	if len(raw) != 8*len(set) {
		return nil, &damagedSegment{row: r, err: &segment.Damage{Reason: "its set of deleted documents has a wrong size"}}
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
	row    segmentRow // removed is that of the time of opening
	seg    *segment.Segment
	mapped mmap.MMap // nil for a segment in memory
	refs   int

	columns columns
	langs   atomic.Pointer[[]analysis.Language] // see languages; nil until then

	unverified bool // its checksums were not compared yet

	checking sync.Mutex
	info     fs.FileInfo // of the mapped file, when its checksums were compared or it was opened
	removed  bool        // the checksums were compared after the file was removed
	damage   error       // what the last comparison found
}

// verify compares the checksums of the segment; see [segment.Segment.Verify].
func (h *handle) verify() error {
	return h.seg.VerifyPieces(func() { forget(h.mapped) })
}

// openSegments are the segments and views of an Index that are open. The zero
// openSegments is ready for use.
type openSegments struct {
	mu      sync.Mutex
	handles map[int64]*handle
	damaged map[int64]bool   // segments that are not opened any more; see condemn
	views   map[string]*view // of one generation, by labels
	of      string           // the generation
}

// errGone is the error for a segment without its file. Another process may have
// merged the segment after the list of segments was read.
var errGone = errors.New("its file was removed")

// errCondemned is the error for a segment that was found to be damaged before.
var errCondemned = errors.New("it is damaged")

// openSegment returns the segment of a row and adds a reference to it. If the
// segment is damaged, the error is a *damagedSegment.
func (x *Index) openSegment(ctx context.Context, q querier, r segmentRow) (*handle, error) {
	left := x.verifiedSize
	return x.openWithin(ctx, q, r, &left)
}

// openWithin is openSegment for one of several segments. *left is how many bytes
// of them may still be verified at once, and is decremented.
func (x *Index) openWithin(ctx context.Context, q querier, r segmentRow, left *int) (*handle, error) {
	x.open.mu.Lock()
	defer x.open.mu.Unlock()
	if x.open.damaged[r.id] {
		return nil, &damagedSegment{row: r, err: errCondemned}
	}
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
	switch {
	case err != nil:
	case h.seg.Docs() != r.docs:
		err = &segment.Damage{Reason: fmt.Sprintf("it has %d documents instead of %d", h.seg.Docs(), r.docs)}
	case len(data) <= *left:
		*left -= len(data)
		err = h.verify()
	default:
		h.unverified = true
		signal(x.verifySoon)
	}
	if err != nil {
		if h.mapped != nil {
			err = errors.Join(err, h.mapped.Unmap())
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
	damage := func(format string, args ...any) error {
		return &damagedSegment{row: r, err: &segment.Damage{Reason: fmt.Sprintf(format, args...)}}
	}
	if r.file == "" {
		var body []byte
		err := q.QueryRowContext(ctx, bodyQuery, r.id).Scan(&body)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, damage("its row of segment_bodies is missing")
		}
		return body, err
	}
	// Opening a named pipe would wait for another program. The second look,
	// at the open file, is for a file that was replaced meanwhile.
	path := x.segmentPath(r.file)
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, damage("%s is %s and not a file", r.file, database.FileKind(info.Mode()))
	}
	var f *os.File
	if err == nil {
		if f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			defer f.Close()
			info, err = f.Stat()
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &damagedSegment{row: r, err: errGone}
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s cannot be read: allow it or choose another data folder: %w", path, errkind.Denied)
	case err != nil:
		return nil, fmt.Errorf("opening a search segment: %w", err)
	case !info.Mode().IsRegular():
		return nil, damage("%s is %s and not a file", r.file, database.FileKind(info.Mode()))
	case info.Size() != r.size:
		return nil, damage("it has %d bytes instead of %d", info.Size(), r.size)
	}
	m, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil { // for example on a network drive
		data := make([]byte, r.size)
		if _, err := io.ReadFull(f, data); err != nil {
			return nil, damage("it cannot be read: %v", err)
		}
		return data, nil
	}
	h.mapped, h.info = m, info
	return m, nil
}

// A damagedSegment is an error of kind Corrupt about the segment of a row.
type damagedSegment struct {
	row segmentRow
	err error
}

func (e *damagedSegment) Error() string { return fmt.Sprintf("segment %d: %v", e.row.id, e.err) }
func (e *damagedSegment) Unwrap() error { return e.err }

// condemn records that a segment is damaged. The segment is not read any more.
// Its documents are indexed again in the background, from the stored texts.
func (x *Index) condemn(d *damagedSegment) {
	x.open.mu.Lock()
	known := x.open.damaged[d.row.id]
	if !known {
		if x.open.damaged == nil {
			x.open.damaged = map[int64]bool{}
		}
		x.open.damaged[d.row.id] = true
	}
	x.closeViewsLocked()
	x.open.mu.Unlock()
	if !known {
		where := x.db.Path()
		if d.row.file != "" {
			where = x.segmentPath(d.row.file)
		}
		x.log.Error("a search segment is damaged: its documents are indexed again from the stored texts, and nothing is lost",
			"file", where, "segment", d.row.id, "label", d.row.label, "error", d.err)
	}
	signal(x.rebuildSoon)
}

// condemned reports whether a segment is condemned.
func (x *Index) condemned(id int64) bool {
	x.open.mu.Lock()
	defer x.open.mu.Unlock()
	return x.open.damaged[id]
}

// mend calls f, and calls it again each time that it meets a damaged segment,
// which is then condemned. f must ignore condemned segments.
func (x *Index) mend(ctx context.Context, f func() error) error {
	const attempts = 1000 // f meets at most one segment at a time
	var gone int64        // the last segment without its file
	var err error
	for range attempts {
		err = f()
		d, ok := errors.AsType[*damagedSegment](err)
		if !ok || ctx.Err() != nil {
			return err
		}
		if errors.Is(err, errGone) && gone != d.row.id {
			gone = d.row.id // if it was merged meanwhile, the next call reads a list without it
			continue
		}
		x.condemn(d)
	}
	return err
}

// checkFiles compares the checksums of those segments of a view whose files
// were changed since they were mapped. The error is a *damagedSegment.
func (x *Index) checkFiles(v *view) error {
	for _, h := range v.handles {
		if h.mapped == nil {
			continue
		}
		if err := x.checkFile(h); err != nil {
			return &damagedSegment{row: h.row, err: err}
		}
	}
	return nil
}

// checkFile is checkFiles for one segment. Searches that meet a changed file at the
// same time wait until its checksums are compared.
func (x *Index) checkFile(h *handle) error {
	h.checking.Lock()
	defer h.checking.Unlock()
	info, err := os.Lstat(x.segmentPath(h.row.file))
	if err == nil && info.Size() == h.info.Size() && info.ModTime().Equal(h.info.ModTime()) || err != nil && h.removed {
		return nil
	}
	if h.damage == nil {
		h.damage = h.verify()
	}
	switch {
	case h.damage != nil:
		return h.damage
	case err == nil:
		h.info = info
		return nil
	}
	h.removed = true // or merged
	x.open.mu.Lock()
	h.unverified = true
	x.open.mu.Unlock()
	signal(x.verifySoon)
	return nil
}

func (x *Index) segmentPath(file string) string {
	return filepath.Join(x.dir, segmentsDir, file)
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
	if h.mapped != nil {
		if err := h.mapped.Unmap(); err != nil {
			x.log.Debug("closing a search segment", "error", err)
		}
	}
}

// signal sends to a channel that has a place for one signal, unless there is one
// already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// verifyLoop verifies in the background until ctx ends. It does not wait for
// merges.
func (x *Index) verifyLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.verifySoon:
			x.verify(ctx)
		}
	}
}

// verify compares the checksums of large segments that were opened since the
// last call, and looks for files that were removed although they are listed.
// Damaged segments are built again.
func (x *Index) verify(ctx context.Context) {
	x.open.mu.Lock()
	var handles []*handle
	for _, h := range x.open.handles {
		if h.unverified {
			h.unverified = false
			h.refs++
			handles = append(handles, h)
		}
	}
	x.open.mu.Unlock()
	for _, h := range handles {
		err := ctx.Err()
		if err == nil {
			err = h.verify()
		}
		if err == nil && h.row.file != "" {
			err = x.checkListed(ctx, h.row)
		}
		if err != nil && ctx.Err() == nil {
			x.condemn(&damagedSegment{row: h.row, err: err})
		}
		x.release(h)
	}
}

// checkListed returns errGone if a segment is listed and its file is gone.
func (x *Index) checkListed(ctx context.Context, r segmentRow) error {
	// A merge removes the file after the row.
	if _, err := os.Lstat(x.segmentPath(r.file)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var n int
	err := x.read(ctx, "looking for a segment", func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT count(*) FROM segments WHERE id=?`, r.id).Scan(&n)
	})
	if err != nil || n == 0 {
		return nil // it will be found when it is opened again
	}
	return errGone
}

// A spoolFile is a segment.Spool on disk. It writes through a buffer.
type spoolFile struct {
	*bufio.Writer
	file *os.File
}

func (s spoolFile) WriteTo(w io.Writer) (int64, error) {
	if err := s.Flush(); err != nil {
		return 0, err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(w, struct{ io.Reader }{s.file})
}

// A failedSpool is a segment.Spool that could not be made.
type failedSpool struct{ err error }

func (s failedSpool) Write([]byte) (int, error)        { return 0, s.err }
func (s failedSpool) WriteTo(io.Writer) (int64, error) { return 0, s.err }

// Sizes of what is written to files, in bytes.
const (
	fileBuffer  = 1 << 18
	spoolBuffer = 1 << 16
	forgetEvery = 8 << 20 // that are written
)

// createTemporary creates a file in the folder of segments. If this process dies,
// removeOrphans removes it.
func (x *Index) createTemporary(kind string) (*os.File, error) {
	dir := filepath.Join(x.dir, segmentsDir)
	if err := database.CheckFolder(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of segments: %w", err)
	}
	name := strings.ToLower(rand.Text()[:16]) + "." + kind + ".tmp"
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("writing a segment: %w", err)
	}
	return f, nil
}

// A forgetting is a writer. While it is written to, the mapped files that are
// read meanwhile do not stay in the memory of this process.
type forgetting struct {
	io.Writer
	mapped []mmap.MMap
	left   *int // bytes until they are forgotten
}

func (f forgetting) Write(p []byte) (int, error) {
	if *f.left -= len(p); *f.left <= 0 {
		*f.left = forgetEvery
		for _, m := range f.mapped {
			forget(m)
		}
	}
	return f.Writer.Write(p)
}

// writeSegmentFile calls write with a new file in the folder of segments, and
// returns the name and the size of the file after it is on disk. write may get
// Spools on disk. mapped are files that it reads.
func (x *Index) writeSegmentFile(mapped []mmap.MMap, write func(w io.Writer, spool func() segment.Spool) error) (name string, size int64, err error) {
	out, err := x.createTemporary("new")
	if err != nil {
		return "", 0, err
	}
	files := []*os.File{out}
	defer func() {
		for _, f := range files {
			f.Close() // closed already unless there was an error
			if f.Name() != x.segmentPath(name) {
				os.Remove(f.Name())
			}
		}
	}()
	left := forgetEvery
	spool := func() segment.Spool {
		f, err := x.createTemporary("spool")
		if err != nil {
			return failedSpool{err}
		}
		files = append(files, f)
		return spoolFile{bufio.NewWriterSize(forgetting{f, mapped, &left}, spoolBuffer), f}
	}
	buffered := bufio.NewWriterSize(forgetting{out, mapped, &left}, fileBuffer)
	if err := write(buffered, spool); err != nil {
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
	final := strings.TrimSuffix(filepath.Base(out.Name()), ".new.tmp") + segmentSuffix
	if err := os.Rename(out.Name(), x.segmentPath(final)); err != nil {
		return "", 0, fmt.Errorf("writing a segment: %w", err)
	}
	syncDir(filepath.Dir(out.Name()))
	return final, info.Size(), nil
}

// syncDir makes the names in a folder durable, where the system can do that.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync() // not supported on Windows, where names are durable anyway
		d.Close()
	}
}

// newSegmentRow returns the row of a segment of this version.
func newSegmentRow(label string, docs int, size int64) segmentRow {
	return segmentRow{label: label, analyzer: analysis.Version, format: segment.Version, docs: docs, size: size}
}

// storeSegment stores the bytes of a new segment and returns its row.
func (x *Index) storeSegment(ctx context.Context, tx changer, label string, docs int, data []byte) (segmentRow, error) {
	r := newSegmentRow(label, docs, int64(len(data)))
	if len(data) > maxBody {
		var err error
		r.file, r.size, err = x.writeSegmentFile(nil, func(w io.Writer, _ func() segment.Spool) error {
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
func insertSegment(ctx context.Context, tx changer, r *segmentRow, body []byte) error {
	err := tx.QueryRowContext(ctx, `INSERT INTO segments(label, analyzer, format, docs, size, removed, file) VALUES(?, ?, ?, ?, ?, 0, ?) RETURNING id`,
		r.label, r.analyzer, r.format, r.docs, r.size, r.file).Scan(&r.id)
	if err != nil || body == nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO segment_bodies(id, body) VALUES(?, ?)`, r.id, body)
	return err
}

// dropSegment deletes the row of a segment. Its file is removed later.
func dropSegment(ctx context.Context, tx changer, id int64) error {
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
	dir := filepath.Join(x.dir, segmentsDir)
	if err := database.CheckFolder(dir); err != nil {
		return err
	}
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
		if err != nil || named[e.Name()] || !info.Mode().IsRegular() || time.Since(info.ModTime()).Abs() < orphanAge {
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
