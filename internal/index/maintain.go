package index

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
)

// Maintain rebuilds the postings that another version of package analysis made,
// from the stored texts. It works in short transactions, so that searches and
// writes are possible meanwhile. If it is interrupted, the next call continues
// where it stopped. Processes that call it at the same time share the work. If
// progress is not nil, it is called with the number of documents that are done.
func (x *Index) Maintain(ctx context.Context, progress func(done, total int)) error {
	var total int
	err := x.write(ctx, "preparing the postings", func(tx *sql.Tx) error {
		if err := resetTerms(ctx, tx); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT count(*) FROM docs WHERE posted<>?`, analysis.Version).Scan(&total)
	})
	if err != nil {
		return err
	}
	var last int64
	for done := 0; ; {
		var n int
		err := x.write(ctx, "rebuilding postings", func(tx *sql.Tx) error {
			var err error
			last, n, err = repost(ctx, tx, last)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
		done += n
		if progress != nil {
			progress(min(done, total), total)
		}
	}
}

// resetTerms deletes the document counts of words if another version of package
// analysis made them. They cannot be decremented one by one, because that
// version cut texts into other words.
func resetTerms(ctx context.Context, tx *sql.Tx) error {
	v, err := kvValue(ctx, tx, keyAnalyzer)
	if err != nil {
		return err
	}
	if of, err := strconv.Atoi(v); err == nil && of >= analysis.Version {
		return nil
	}
	for _, s := range []string{`DELETE FROM terms`, `UPDATE docs SET posted=0`} {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `UPDATE kv SET value=? WHERE key=?`, strconv.Itoa(analysis.Version), keyAnalyzer)
	return err
}

// repost rebuilds the postings of the next few documents with numbers above
// last. It returns the last number and how many documents it rebuilt.
func repost(ctx context.Context, tx *sql.Tx, last int64) (int64, int, error) {
	p, err := newPoster(ctx, tx)
	if err != nil {
		return last, 0, err
	}
	n := 0
	for chunks := 0; chunks < removeBatch; n++ {
		s := stored{}
		err := tx.QueryRowContext(ctx, `SELECT id, posted, text_size, label, title, lang FROM docs WHERE id>? AND posted<>? ORDER BY id LIMIT 1`,
			last, analysis.Version).Scan(&s.id, &s.posted, &s.textSize, &s.label, &s.title, &s.lang)
		if errors.Is(err, sql.ErrNoRows) {
			break
		}
		if err != nil {
			return last, 0, err
		}
		done, err := p.repost(ctx, s, s.label)
		if err != nil {
			return last, 0, err
		}
		chunks += done
		last = s.id
	}
	return last, n, p.finish(ctx)
}

// repost rebuilds the postings of one document under a label and returns how
// many chunks it has.
func (p *poster) repost(ctx context.Context, s stored, label string) (int, error) {
	if err := p.unpost(ctx, s); err != nil {
		return 0, err
	}
	text, err := window(ctx, p.tx, s.id, 0, s.textSize)
	if err != nil {
		return 0, err
	}
	var chunks []document.Chunk
	err = collect(ctx, p.tx, func(rows *sql.Rows) error {
		var c document.Chunk
		err := rows.Scan(&c.Offset, &c.Length)
		chunks = append(chunks, c)
		return err
	}, `SELECT off, len FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id`, rowOf(s.id, 0), rowOf(s.id, maxParts-1))
	if err != nil {
		return 0, err
	}
	if err := p.post(ctx, s.id, label, s.lang, s.title, text, chunks); err != nil {
		return 0, err
	}
	_, err = p.tx.ExecContext(ctx, `UPDATE docs SET posted=? WHERE id=?`, analysis.Version, s.id)
	return len(chunks), err
}
