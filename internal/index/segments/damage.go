package segments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// All damage takes one path. Whoever meets it, because checksums differ, because
// reading fails, or because a file is missing or has a wrong size, returns a
// *damaged. [Store.Retry] leaves the segment out: this process does not open it any
// more, and what has failed is tried again without it. [Store.Maintain] deletes the
// row in the background, and builds a segment of the documents from the stored
// texts.

// A damaged is an error of kind Corrupt about the segment of a row.
type damaged struct {
	row row
	err error
}

func (e *damaged) Error() string { return fmt.Sprintf("segment %d: %v", e.row.id, e.err) }
func (e *damaged) Unwrap() error { return e.err }

func damagef(r row, format string, args ...any) error {
	return &damaged{row: r, err: &segment.Damage{Reason: fmt.Sprintf(format, args...)}}
}

// errGone is the error for a segment without its file. Another process may have
// merged the segment after the list of segments was read.
var errGone = errors.New("its file was removed")

// errLeftOut is the error for a segment that was found to be damaged before.
var errLeftOut = errors.New("it is damaged")

// Retry calls f, which reads or changes segments in a transaction. It calls f again
// each time that f meets a damaged segment, which is then left out, and when another
// process has merged segments away meanwhile.
func (s *Store) Retry(ctx context.Context, f func() error) error {
	const attempts = 1000 // f meets at most one segment at a time
	var gone int64        // the last segment without its file
	var err error
	for range attempts {
		err = f()
		d, ok := errors.AsType[*damaged](err)
		if !ok || ctx.Err() != nil {
			return err
		}
		if errors.Is(err, errGone) && gone != d.row.id {
			gone = d.row.id // if it was merged meanwhile, the next call reads a list without it
			continue
		}
		s.leaveOut(d)
	}
	return err
}

// leaveOut records that a segment is damaged.
func (s *Store) leaveOut(d *damaged) {
	s.mu.Lock()
	known := s.leftOut[d.row.id]
	s.leftOut[d.row.id] = true
	s.closeViews()
	s.mu.Unlock()
	if !known {
		where := s.o.DB.Path()
		if d.row.file != "" {
			where = s.path(d.row.file)
		}
		s.o.Log.Error("a search segment is damaged: its documents are indexed again "+
			"from the stored texts, and nothing is lost",
			"file", where, "segment", d.row.id, "label", d.row.label, "error", d.err)
	}
	signal(s.rebuildSoon)
}

// isLeftOut reports whether a segment is left out.
func (s *Store) isLeftOut(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leftOut[id]
}

// Fault returns the error of an evaluation over the view in the form that
// [Store.Retry] understands, if a segment of the view is damaged.
func (v *View) Fault(err error) error {
	if d, ok := errors.AsType[*segment.Damage](err); ok {
		for _, g := range v.Segments {
			if g.Segment == d.Segment {
				return &damaged{row: g.row, err: err}
			}
		}
	}
	return err
}

// Verify compares the checksums of all segments of the view. It is called when
// what the view has contradicts the stored documents.
func (v *View) Verify() error {
	for _, g := range v.Segments {
		if err := g.verify(); err != nil {
			return &damaged{row: g.row, err: err}
		}
	}
	return nil
}

// checkFile compares the checksums of a segment if its file was changed since it was
// mapped. Searches that meet a changed file at the same time wait for that.
func (s *Store) checkFile(g *Segment) error {
	if g.mapped == nil {
		return nil
	}
	g.checking.Lock()
	defer g.checking.Unlock()
	info, err := os.Lstat(s.path(g.row.file))
	if err != nil { // it was removed; perhaps the segment was merged
		s.verifyLater(g)
		return nil
	}
	if info.Size() == g.info.Size() && info.ModTime().Equal(g.info.ModTime()) {
		return nil
	}
	if err := g.verify(); err != nil {
		return err
	}
	g.info = info
	return nil
}

// verifyLater lets the background verify a segment.
func (s *Store) verifyLater(g *Segment) {
	s.mu.Lock()
	g.unverified = true
	s.mu.Unlock()
	signal(s.verifySoon)
}

// verifyLoop verifies in the background until ctx ends. It does not wait for
// merges.
func (s *Store) verifyLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.verifySoon:
			s.verify(ctx)
		}
	}
}

// verify compares the checksums of large segments that were opened since the
// last call, and looks for files that were removed although they are listed.
// Damaged segments are left out. A call waits for another one, because the segments
// that this one verifies are not yet known to be damaged.
func (s *Store) verify(ctx context.Context) {
	s.checking.Lock()
	defer s.checking.Unlock()
	s.mu.Lock()
	var unverified []*Segment
	for _, g := range s.open {
		if g.unverified {
			g.unverified = false
			g.refs++
			unverified = append(unverified, g)
		}
	}
	s.mu.Unlock()
	for _, g := range unverified {
		err := ctx.Err()
		if err == nil {
			err = g.verify()
		}
		if err == nil {
			err = s.checkListed(ctx, g.row)
		}
		if err != nil && ctx.Err() == nil {
			s.leaveOut(&damaged{row: g.row, err: err})
		}
		s.release(g)
	}
}

// checkListed returns errGone if a segment is listed and its file is gone.
func (s *Store) checkListed(ctx context.Context, r row) error {
	if r.file == "" {
		return nil
	}
	// A merge removes the file after the row.
	if _, err := os.Lstat(s.path(r.file)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var n int
	err := s.o.DB.Read(ctx, "looking for a segment", func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT count(*) FROM segments WHERE id=?`, r.id).Scan(&n)
	})
	if err != nil || n == 0 {
		return nil // it will be found when it is opened again
	}
	return errGone
}

// Damaged returns the labels of damaged segments, one for each segment, after
// it has compared the checksums of all. incomplete reports whether documents are
// in no segment.
func (s *Store) Damaged(ctx context.Context, tx *sql.Tx) (labels []string, incomplete bool, err error) {
	rows, err := rowsOf(ctx, tx, nil)
	if err != nil {
		return nil, false, err
	}
	for _, r := range rows {
		if r.format != segment.Version {
			continue // Maintain builds it again
		}
		if s.use(ctx, tx, r, func(g *Segment, _ segment.Bits) error { return g.verify() }) != nil {
			labels = append(labels, r.label)
		}
	}
	rebuild, err := database.Value(ctx, tx, keyRebuild)
	return labels, rebuild != "", err
}
