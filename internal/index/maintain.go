package index

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
)

// Maintain makes the postings of all documents anew from their texts that are
// of another version of package analysis. It works in short transactions, so
// that others can search and write meanwhile; cut short, it goes on where it
// was the next time. progress, unless nil, is told how many documents are done.
// Processes that call it at the same time share the work.
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
		err := x.write(ctx, "making postings anew", func(tx *sql.Tx) error {
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

// resetTerms forgets the counts of words where they were made by an older
// version: they cannot be taken away one by one, because the words of a text
// are others now.
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

// repost makes the postings of the next few documents after number last. It
// returns the number it came to and how many it did.
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

// repost makes the postings of one document under a label and returns how many
// chunks it has.
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
