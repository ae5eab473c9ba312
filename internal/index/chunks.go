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
)

// A ChunkQuery is a search for chunks.
type ChunkQuery struct {
	Text   string   // see [Index.Search]
	Labels []string // one of them; nil means any
	Tags   []string // all of them; also tags of labels
	Top    int      // how many chunks to return
}

// A ChunkPage is the best chunks for a query.
type ChunkPage struct {
	Hits  []ChunkHit // best first
	Total int        // documents that match

	// Staged reports whether some of the words of the query were enough; see
	// [search.Page].
	Staged bool
}

// A ChunkHit is a chunk that matches a query.
type ChunkHit struct {
	Record
	Chunk int // number of the chunk in its document, from 0
	Text  string
	Score float64 // by BM25; not below 0, without an upper bound
}

// Of a document, chunksOfHit chunks precede other documents at most; the others
// fill the page.
const chunksOfHit = 3

// SearchChunks returns the chunks that match a query best. It finds the documents
// that [Index.Search] finds. A document that matches without one of its chunks
// has its first chunk in the result.
func (x *Index) SearchChunks(ctx context.Context, q ChunkQuery) (*ChunkPage, error) {
	documents := search.Query{Text: q.Text, Labels: q.Labels, Tags: q.Tags, Num: q.Top}
	if err := documents.Validate(nil); err != nil {
		return nil, err
	}
	var page *ChunkPage
	err := x.searching(ctx, q.Text, q.Labels, func(e *evaluator) error {
		var err error
		page, err = e.findChunks(ctx, documents)
		return err
	})
	return page, err
}

// findChunks returns the best q.Num chunks for a query.
func (e *evaluator) findChunks(ctx context.Context, q search.Query) (*ChunkPage, error) {
	limited, cancel := context.WithDeadlineCause(ctx, e.until, errTooLong)
	defer cancel()
	page := &ChunkPage{}
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
		leaves := leavesOf(rarest(slices.Clone(m.leaves), maxRanked))
		hits, err := e.search.TopChunks(ctx, leaves, m.docs, chunksOfHit*max(n, nearPassages))
		if err != nil && !e.timedOut(ctx, err) {
			return nil, err
		}
		if err := e.prefer(m, hits, leaves); err != nil {
			return nil, err
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
func (e *evaluator) chunkHits(ctx context.Context, chunks []ranked, labels []string) ([]ChunkHit, error) {
	var hits []ChunkHit
	for _, c := range chunks {
		h := ChunkHit{Chunk: int(c.chunk - rowOf(c.doc, 0)), Score: c.score}
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
