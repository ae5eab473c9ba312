package index

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
	"knowhow/internal/segment"
)

// Maintain builds the segments that are missing, from the stored texts: after a
// migration, for another version of package analysis or of the format, and in
// place of damaged ones. It works in short transactions, so that searches and
// writes are possible meanwhile. If it is interrupted, the next call continues
// where it stopped. If progress is not nil, it is called with the number of
// documents that are done.
func (x *Index) Maintain(ctx context.Context, progress func(done, total int)) error {
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
		if err := x.write(ctx, "preparing the segments", func(tx *sql.Tx) error { return x.dropUnreadable(ctx, tx, label) }); err != nil {
			return err
		}
		if missing[label], err = x.missing(ctx, label); err != nil {
			return err
		}
		total += len(missing[label])
	}
	done := 0
	for _, label := range labels {
		for ids := missing[label]; len(ids) > 0; {
			var n int
			err := x.change(ctx, "rebuilding segments", func(p *poster) error {
				var err error
				n, err = p.rebuild(ctx, label, ids)
				return err
			})
			if err != nil {
				return err
			}
			ids = ids[n:]
			if done += n; progress != nil {
				progress(done, total)
			}
		}
	}
	return nil
}

// dropUnreadable deletes the rows of segments of a label that cannot be opened.
func (x *Index) dropUnreadable(ctx context.Context, tx *sql.Tx, label string) error {
	rows, err := segmentRows(ctx, tx, []string{label})
	if err != nil {
		return err
	}
	dropped := false
	for _, r := range rows {
		if r.format == segment.Version {
			h, err := x.openSegment(ctx, tx, r)
			if err == nil {
				_, err = deletions(ctx, tx, r)
				x.release(h)
			}
			if err == nil {
				continue
			}
			if !isDamage(err) {
				return err
			}
			x.log.Warn("a search segment is damaged and is built again", "segment", r.id, "file", r.file, "error", err)
		}
		if err := dropSegment(ctx, tx, r.id); err != nil {
			return err
		}
		dropped = true
	}
	if !dropped {
		return nil
	}
	return nextGeneration(ctx, tx)
}

// isDamage reports whether err is about a segment that can be built again.
func isDamage(err error) bool {
	if _, ok := errors.AsType[*damagedSegment](err); ok {
		return true
	}
	_, ok := errors.AsType[*segment.Damage](err)
	return ok
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
	for d := range h.seg.Docs() {
		if deleted == nil || !deleted.Has(d) {
			to[h.seg.Row(d)] = true
		}
	}
	return nil
}

// rebuild adds the first few of some documents with a label to a segment, and
// returns how many it looked at.
func (p *poster) rebuild(ctx context.Context, label string, ids []int64) (int, error) {
	n := 0
	for chunks := 0; chunks < removeBatch && n < len(ids); n++ {
		s := stored{id: ids[n]}
		err := p.tx.QueryRowContext(ctx, `SELECT text_size, label, title, filename, lang FROM docs WHERE id=?`, s.id).
			Scan(&s.textSize, &s.label, &s.title, &s.filename, &s.lang)
		if errors.Is(err, sql.ErrNoRows) || err == nil && s.label != label {
			continue // deleted or retagged meanwhile
		}
		if err != nil {
			return n, err
		}
		done, err := p.repost(ctx, s, label)
		if err != nil {
			return n, err
		}
		chunks += done
	}
	return n, nil
}

// repost adds the words of a document under a label, in place of those under
// its current label, and returns how many chunks it has.
func (p *poster) repost(ctx context.Context, s stored, label string) (int, error) {
	if err := p.unpost(ctx, s.id, s.label); err != nil {
		return 0, err
	}
	text, err := window(ctx, p.tx, s.id, 0, s.textSize)
	if err != nil {
		return 0, err
	}
	var chunks []document.Chunk
	err = collect(ctx, p.tx, func(rows *sql.Rows) error {
		var c document.Chunk
		err := rows.Scan(&c.Offset, &c.Length, &c.Heading)
		chunks = append(chunks, c)
		return err
	}, `SELECT off, len, heading FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id`, rowOf(s.id, 0), rowOf(s.id, maxParts-1))
	if err != nil {
		return 0, err
	}
	chunks = slices.DeleteFunc(chunks, func(c document.Chunk) bool { return c.Offset < 0 || c.Length < 0 || c.Offset+c.Length > len(text) })
	s.label = label
	return len(chunks), p.post(ctx, s, text, chunks)
}
