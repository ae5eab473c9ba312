package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"knowhow/internal/errkind"
	"knowhow/internal/search"
	"knowhow/internal/segment"
)

// Of a document, chunksOfHit chunks precede other documents at most; the others
// fill the page.
const chunksOfHit = 3

// SearchChunks returns the chunks that match a query best. It finds the documents
// that [Index.Search] finds. A document that matches without one of its chunks
// has its first chunk in the result.
func (x *Index) SearchChunks(ctx context.Context, q search.ChunkQuery) (*search.ChunkPage, error) {
	documents := search.Query{Text: q.Text, Labels: q.Labels, Tags: q.Tags, Num: q.Top}
	if err := documents.Validate(nil); err != nil {
		return nil, err
	}
	var page *search.ChunkPage
	err := x.searching(ctx, q.Text, q.Labels, func(e *evaluator) error {
		var err error
		page, err = e.findChunks(ctx, documents)
		return err
	})
	return page, err
}

// findChunks returns the best q.Num chunks for a query.
func (e *evaluator) findChunks(ctx context.Context, q search.Query) (*search.ChunkPage, error) {
	limited, cancel := context.WithDeadlineCause(ctx, e.until, errTooLong)
	defer cancel()
	page := &search.ChunkPage{}
	m, err := e.match(limited, q)
	if e.timedOut(limited, err) {
		return page, nil
	}
	if err != nil {
		return nil, err
	}
	page.Total, page.Staged = m.n, m.words >= 0
	list, err := e.list(limited, m, q)
	if err != nil && !e.timedOut(limited, err) {
		return nil, err
	}
	chunks, err := e.rankChunks(limited, m, list, q.Num)
	if err != nil {
		return nil, err
	}
	page.Hits, err = e.chunkHits(ctx, chunks, q.Labels)
	return page, err
}

// rankChunks returns up to n chunks of documents that match. list is the best of
// these documents.
func (e *evaluator) rankChunks(ctx context.Context, m *matched, list []ranked, n int) ([]ranked, error) {
	var first, more []ranked
	of := map[int64]int{} // how many chunks of a document
	if len(m.leaves) > 0 {
		var leaves []*segment.Leaf
		for _, l := range rarest(slices.Clone(m.leaves), maxRanked) {
			leaves = append(leaves, l.Leaf)
		}
		hits, err := e.search.TopChunks(ctx, leaves, m.docs, chunksOfHit*max(n, nearPassages))
		if err != nil && !e.timedOut(ctx, err) {
			return nil, err
		}
		if err := e.search.PreferNear(hits[:min(len(hits), nearHits)], leaves); err != nil {
			return nil, err
		}
		if m.complete != nil {
			segment.Prefer(hits[:min(len(hits), nearHits)], m.complete, completeBonus)
		}
		for _, h := range hits {
			r := ranked{doc: h.Row, chunk: rowOf(h.Row, h.Chunk), score: float64(h.Score)}
			if of[h.Row]++; of[h.Row] <= chunksOfHit {
				first = append(first, r)
			} else {
				more = append(more, r)
			}
		}
	}
	for _, r := range list {
		if of[r.doc] == 0 && len(first) < n {
			first = append(first, ranked{doc: r.doc, chunk: rowOf(r.doc, 0)})
		}
	}
	first = first[:min(len(first), n)]
	first = append(first, more[:min(len(more), n-len(first))]...)
	slices.SortStableFunc(first, func(a, b ranked) int { return cmp.Compare(b.score, a.score) })
	return first, nil
}

// chunkHits reads chunks of documents with one of the labels (nil: any).
func (e *evaluator) chunkHits(ctx context.Context, chunks []ranked, labels []string) ([]search.ChunkHit, error) {
	var hits []search.ChunkHit
	for _, c := range chunks {
		h := search.ChunkHit{Chunk: int(c.chunk - rowOf(c.doc, 0)), Score: c.score}
		record, err := findRecord(ctx, e.tx, `d.id=?`, c.doc)
		var off, n int64
		if err == nil {
			err = e.tx.QueryRowContext(ctx, `SELECT off, len FROM chunks WHERE id=?`, c.chunk).Scan(&off, &n)
		}
		if errors.Is(err, errkind.NotFound) || errors.Is(err, sql.ErrNoRows) || err == nil && !admits(labels, record.Label) {
			// The segment has a document that it cannot have. If it is not
			// damaged, the database was changed by hand.
			if err := e.view.verify(); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		text, err := window(ctx, e.tx, c.doc, off, off+min(n, maxExcerpted))
		if err != nil {
			return nil, err
		}
		h.Record, h.Text = *record, strings.ToValidUTF8(text, "")
		hits = append(hits, h)
	}
	return hits, nil
}
