package index

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
	"knowhow/internal/segment"
)

// Maintain builds the segments that are missing, from the stored texts: after a
// migration, for another version of package analysis or of the format, and in
// place of damaged ones. It works in short transactions, so that searches and
// writes are possible meanwhile. If it is interrupted, the next call continues
// where it stopped. If progress is not nil and there is something to do, it is
// called with the number of documents that are done, from 0.
func (x *Index) Maintain(ctx context.Context, progress func(done, total int)) error {
	// One call is enough: a later one finds nothing to do.
	select {
	case x.maintaining <- struct{}{}:
		defer func() { <-x.maintaining }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return x.mend(ctx, func() error { return x.maintain(ctx, progress) })
}

func (x *Index) maintain(ctx context.Context, progress func(done, total int)) error {
	var labels []string
	err := x.read(ctx, "listing labels", func(tx *sql.Tx) error {
		return collect(ctx, tx, func(rows *sql.Rows) error {
			var label string
			err := rows.Scan(&label)
			labels = append(labels, label)
			return err
		}, `SELECT label FROM docs UNION SELECT label FROM segments`)
	})
	if err != nil {
		return err
	}
	missing := map[string][]int64{}
	total := 0
	for _, label := range labels {
		if err := x.dropUnreadable(ctx, label); err != nil {
			return err
		}
	}
	var rebuild string
	err = x.read(ctx, "looking for missing segments", func(tx *sql.Tx) error {
		rebuild, err = kvValue(ctx, tx, keyRebuild)
		return err
	})
	if err != nil {
		return err
	}
	for _, label := range labels {
		if missing[label], err = x.missing(ctx, label); err != nil {
			return err
		}
		total += len(missing[label])
	}
	if total == 0 {
		return x.rebuilt(ctx, rebuild)
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	x.log.Warn("the words of stored documents are indexed again, because the index is of an older version or was damaged; "+
		"until this is done, searches may miss some", "documents", total)
	done := 0
	progress(done, total)
	for _, label := range labels {
		for ids := missing[label]; len(ids) > 0; {
			var n int
			err := x.change(ctx, "rebuilding segments", nil, func(p *poster) error {
				var err error
				n, err = p.rebuild(ctx, label, ids)
				return err
			})
			if err != nil {
				return err
			}
			ids = ids[n:]
			done += n
			progress(done, total)
		}
	}
	if err := x.rebuilt(ctx, rebuild); err != nil {
		return err
	}
	x.log.Warn("the words of all documents are indexed", "documents", total)
	return nil
}

// markRebuild records that documents are in no segment, if there are any.
const markRebuild = `INSERT INTO kv(key, value) SELECT '` + keyRebuild + `', 1
	WHERE (SELECT count(*) FROM docs) > (SELECT coalesce(sum(docs-removed), 0) FROM segments)
	ON CONFLICT DO UPDATE SET value=value+1`

// rebuilt records that the documents of the segments that were deleted are
// indexed again, unless another process deleted more since the count was read.
func (x *Index) rebuilt(ctx context.Context, count string) error {
	if count == "" {
		return nil
	}
	return x.write(ctx, "rebuilding segments", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM kv WHERE key=? AND value=?`, keyRebuild, count); err != nil {
			return err
		}
		return nextGeneration(ctx, tx)
	})
}

// dropUnreadable deletes the rows of segments of a label that cannot be opened.
func (x *Index) dropUnreadable(ctx context.Context, label string) error {
	var unreadable []segmentRow
	err := x.read(ctx, "checking the segments", func(tx *sql.Tx) error {
		unreadable = nil
		rows, err := segmentRows(ctx, tx, []string{label})
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.format == segment.Version {
				err := x.openable(ctx, tx, r)
				if err == nil {
					continue
				}
				if !errors.Is(err, errCondemned) {
					return err
				}
			}
			unreadable = append(unreadable, r)
		}
		return nil
	})
	if err != nil || len(unreadable) == 0 {
		return err
	}
	return x.write(ctx, "removing damaged segments", func(tx *sql.Tx) error {
		for _, r := range unreadable {
			if err := dropSegment(ctx, tx, r.id); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, markRebuild); err != nil {
			return err
		}
		return nextGeneration(ctx, tx)
	})
}

// openable returns nil if a segment can be opened.
func (x *Index) openable(ctx context.Context, q querier, r segmentRow) error {
	h, err := x.openSegment(ctx, q, r)
	if err != nil {
		return err
	}
	defer x.release(h)
	_, err = deletions(ctx, q, r)
	return err
}

// missing returns the numbers of the documents with a label that no current
// segment has.
func (x *Index) missing(ctx context.Context, label string) (ids []int64, err error) {
	err = x.read(ctx, "looking for missing segments", func(tx *sql.Tx) error {
		rows, err := segmentRows(ctx, tx, []string{label})
		if err != nil {
			return err
		}
		have := map[int64]bool{}
		for _, r := range rows {
			if r.format != segment.Version || r.analyzer != analysis.Version {
				continue
			}
			if err := x.liveRows(ctx, tx, r, have); err != nil {
				return err
			}
		}
		return collect(ctx, tx, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			if !have[id] {
				ids = append(ids, id)
			}
			return err
		}, `SELECT id FROM docs WHERE label=? ORDER BY id`, label)
	})
	return ids, err
}

// liveRows adds the rows of the documents of a segment that are not deleted.
func (x *Index) liveRows(ctx context.Context, q querier, r segmentRow, to map[int64]bool) error {
	h, err := x.openSegment(ctx, q, r)
	if err != nil {
		return err
	}
	defer x.release(h)
	deleted, err := deletions(ctx, q, r)
	if err != nil {
		return err
	}
	err = h.seg.Rows(func(d int, row int64) {
		if deleted == nil || !deleted.Has(d) {
			to[row] = true
		}
	})
	if err != nil {
		return &damagedSegment{row: r, err: err}
	}
	return nil
}

// rebuild adds the first few of some documents with a label to a segment, and
// returns how many it looked at.
func (p *poster) rebuild(ctx context.Context, label string, ids []int64) (int, error) {
	n := 0
	for chunks := 0; chunks < removeBatch && n < len(ids); n++ {
		s := stored{id: ids[n]}
		err := p.hot.QueryRowContext(ctx, `SELECT text_size, label, title, filename, lang FROM docs WHERE id=?`, s.id).
			Scan(&s.textSize, &s.label, &s.title, &s.filename, &s.lang)
		if errors.Is(err, sql.ErrNoRows) || err == nil && s.label != label {
			continue // deleted or retagged meanwhile
		}
		if err != nil {
			return n, err
		}
		if posted, err := p.posted(ctx, s.id, label); err != nil || posted {
			if err != nil {
				return n, err
			}
			continue // another process did it meanwhile
		}
		done, err := p.repost(ctx, s, label)
		if err != nil {
			return n, err
		}
		chunks += done
	}
	return n, nil
}

// posted reports whether a current segment of a label has a document.
func (p *poster) posted(ctx context.Context, id int64, label string) (bool, error) {
	s, err := p.segments(ctx, label)
	if err != nil {
		return false, err
	}
	for _, g := range s.stored {
		if g.row.analyzer != analysis.Version {
			continue
		}
		if err := p.open(ctx, g); err != nil {
			return false, err
		}
		d, err := g.h.seg.Find(id)
		if err != nil {
			return false, &damagedSegment{row: g.row, err: err}
		}
		if d >= 0 && (g.deleted == nil || !g.deleted.Has(d)) {
			return true, nil
		}
	}
	return false, nil
}

// repost adds the words of a document under a label, in place of those under
// its current label, and returns how many chunks it has.
func (p *poster) repost(ctx context.Context, s stored, label string) (int, error) {
	if err := p.unpost(ctx, s.id, s.label); err != nil {
		return 0, err
	}
	text, err := window(ctx, p.hot, s.id, 0, s.textSize)
	if err != nil {
		return 0, err
	}
	var chunks []document.Chunk
	err = collect(ctx, p.hot, func(rows *sql.Rows) error {
		var c document.Chunk
		err := rows.Scan(&c.Offset, &c.Length, &c.Heading)
		chunks = append(chunks, c)
		return err
	}, `SELECT off, len, heading FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id`, rowOf(s.id, 0), rowOf(s.id, maxParts-1))
	if err != nil {
		return 0, err
	}
	chunks = slices.DeleteFunc(chunks, func(c document.Chunk) bool { return c.Offset < 0 || c.Length < 0 || c.Offset+c.Length > len(text) })
	s.label, s.title, s.filename = label, strings.ToValidUTF8(s.title, " "), strings.ToValidUTF8(s.filename, " ")
	return len(chunks), p.post(ctx, posting{s, text, chunks})
}
