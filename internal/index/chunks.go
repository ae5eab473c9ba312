package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"knowhow/internal/embed"
	"knowhow/internal/errkind"
	"knowhow/internal/fusion"
	"knowhow/internal/passage"
	"knowhow/internal/query"
	"knowhow/internal/relevance"
	"knowhow/internal/search"
)

// SearchChunks returns the chunks that match a query best.
//
// By words, it finds the documents that [Index.Search] finds. A document that
// matches without one of its chunks has its first chunk in the result. By both, a
// plain query of three or more words also finds documents that are close in
// meaning. If no document has all words of a shorter one, it finds documents with
// any of its words, and those that are close in meaning. By meaning,
// the error is of kind Unsupported without an embedder and for a text in a
// language that the embedder does not know, and of kind Unavailable or Timeout if
// the embedder fails.
func (x *Index) SearchChunks(ctx context.Context, q search.ChunkQuery) (*search.ChunkPage, error) {
	documents := search.Query{Text: q.Text, Labels: q.Labels, Written: q.Written, Tags: q.Tags, Num: q.Top}
	if err := documents.Validate(nil); err != nil {
		return nil, err
	}
	if v := x.vectors.embedder; q.Ranking == search.ByMeaning {
		switch {
		case v == nil:
			return nil, fmt.Errorf("without a model, nothing can be found by meaning: search by words: %w", errkind.Unsupported)
		case embed.Foreign(v, q.Text.String()):
			return nil, fmt.Errorf("the model does not know the language of this text: search by words: %w", errkind.Unsupported)
		}
	}
	var page *search.ChunkPage
	err := x.searching(ctx, q.Text.String(), q.Labels, func(e *evaluator) error {
		var err error
		if q.Ranking == search.ByMeaning {
			page, err = e.findNearest(ctx, documents)
		} else {
			page, err = e.findChunks(ctx, documents, q.Ranking)
		}
		if err != nil {
			return err
		}
		page.Partial = e.ended || e.view.incomplete
		return nil
	})
	return page, err
}

// findChunks returns the best q.Num chunks for a query.
func (e *evaluator) findChunks(ctx context.Context, q search.Query, by search.Ranking) (*search.ChunkPage, error) {
	limited, cancel := context.WithDeadlineCause(ctx, e.until, errTooLong)
	defer cancel()
	page := &search.ChunkPage{}
	m, err := e.match(limited, q)
	short := err == nil && m.words < 0
	exact := short && m.n > 0
	if short && !exact && by == search.ByBoth && q.Text.Kind() == query.Words {
		e.anyWord = true
		m, err = e.match(limited, q)
	}
	if e.timedOut(limited, err) {
		return page, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := e.list(limited, m, q)
	if err != nil && !e.timedOut(limited, err) {
		return nil, err
	}
	// One or two words that a document has say exactly what is wanted.
	if by == search.ByBoth && !m.all && !exact && q.Text.Kind() == query.Words {
		words, least := relevance.NearWords, relevance.ChunkCosine
		if short {
			words, least = 1, relevance.ShortCosine
		}
		if err := e.addMeaning(limited, m, q, words, least); err != nil && !e.timedOut(limited, err) {
			return nil, err
		}
	}
	page.Total, page.Staged = m.n, m.words >= 0
	chunks, err := e.rankChunks(limited, m, list, q.Num)
	if err != nil {
		return nil, err
	}
	page.Hits, err = e.chunkHits(ctx, chunks, q.Labels)
	return page, err
}

// findNearest returns the q.Num chunks that are closest in meaning to a text.
func (e *evaluator) findNearest(ctx context.Context, q search.Query) (*search.ChunkPage, error) {
	limited, cancel := context.WithDeadlineCause(ctx, e.until, errTooLong)
	defer cancel()
	page := &search.ChunkPage{}
	d, err := e.meaning(limited, q, time.Until(e.until))
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return nil, fmt.Errorf("%w took too long: try again, or search by words: %w", errEmbedding, errkind.Timeout)
	case d == nil || err != nil:
		return page, err
	}
	hits, err := d.nearest(limited, max(relevance.Fused, relevance.OfDocument*q.Num))
	if e.timedOut(limited, err) {
		return page, nil
	}
	if err != nil {
		return nil, err
	}
	var best []ranked
	for _, h := range hits {
		best = append(best, ranked{doc: h.doc(), chunk: h.chunk, score: max(h.score, 0)})
	}
	page.Total = d.documents()
	page.Hits, err = e.chunkHits(ctx, spread(best, nil, q.Num), q.Labels)
	return page, err
}

// rankChunks returns up to n chunks of documents that match. list is the best of
// these documents by words.
func (e *evaluator) rankChunks(ctx context.Context, m *matched, list []ranked, n int) ([]ranked, error) {
	var best []ranked
	if len(m.leaves) > 0 {
		leaves := leavesOf(rarest(slices.Clone(m.leaves), maxRanked))
		hits, err := e.search.TopChunks(ctx, leaves, m.docs, relevance.OfDocument*max(n, relevance.NearPassages))
		if err != nil && !e.timedOut(ctx, err) {
			return nil, err
		}
		if err := e.prefer(m, hits, leaves); err != nil {
			return nil, err
		}
		for _, h := range hits {
			best = append(best, ranked{doc: h.Row, chunk: rowOf(h.Row, h.Chunk), score: float64(h.Score)})
		}
	}
	var fused []ranked
	if m.dense != nil {
		var docs []int64
		for _, r := range best {
			docs = append(docs, r.doc)
		}
		for _, h := range m.dense.near {
			docs = append(docs, h.doc())
		}
		slices.Sort(docs)
		var err error
		if fused, err = m.dense.chunks(ctx, slices.Compact(docs), best, fusion.DefaultWeight, relevance.ChunkCosine); err != nil && !e.timedOut(ctx, err) {
			return nil, err
		}
	}
	if fused != nil {
		best = fused
	} else {
		for i, r := range best {
			best[i].score = r.score / (r.score + relevance.HalfScore)
		}
	}
	return spread(best, list, n), nil
}

// spread returns n of the best chunks; see [relevance.Spread]. Documents of list
// without a chunk among them are represented by their first.
func spread(best, list []ranked, n int) []ranked {
	others := make([]ranked, len(list))
	for i, r := range list {
		others[i] = ranked{doc: r.doc, chunk: rowOf(r.doc, 0)}
	}
	return relevance.Spread(best, others, n, func(r ranked) int64 { return r.doc }, func(r ranked) float64 { return r.score })
}

// chunkHits reads chunks of documents with one of the labels (nil: any).
func (e *evaluator) chunkHits(ctx context.Context, chunks []ranked, labels []string) ([]search.ChunkHit, error) {
	var hits []search.ChunkHit
	for _, c := range chunks {
		h := search.ChunkHit{Chunk: int(c.chunk - rowOf(c.doc, 0)), Score: c.score}
		record, err := findRecord(ctx, e.tx, `d.id=?`, c.doc)
		var off, n int64
		if err == nil {
			err = e.tx.QueryRowContext(ctx, chunkQuery, c.doc, c.chunk).Scan(&off, &n, &h.Heading, &h.Page)
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
		text, err := window(ctx, e.tx, c.doc, off, off+min(n, passage.MaxChunk))
		if err != nil {
			return nil, err
		}
		h.Record, h.Text = *record, strings.ToValidUTF8(text, "")
		hits = append(hits, h)
	}
	return hits, nil
}

// chunkQuery reads a chunk of a document. Text before the first page belongs to
// none.
const chunkQuery = `SELECT c.off, c.len, c.heading, IFNULL((SELECT p.label FROM pages p WHERE p.doc=? AND p.off<=c.off ORDER BY p.off DESC LIMIT 1), '')
	FROM chunks c WHERE c.id=?`
