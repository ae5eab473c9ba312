package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"knowhow/internal/fusion"
	"knowhow/internal/passage"
	"knowhow/internal/relevance"
	"knowhow/internal/search"
	"knowhow/internal/segment"
	"knowhow/internal/vector"
)

// Limits of searches by meaning.
const (
	scoredRows  = 20_000 // vectors that are compared one by one
	denseRounds = 3      // searches until no vector in the result is gone
)

// A dense is the ranking by meaning in one search.
type dense struct {
	e     *evaluator
	query []float32
	sets  []denseSet
	allow map[int64]bool // documents that meet conditions beyond labels; nil: all
	near  []denseHit     // best documents that the query finds, each with its best chunk
	added bool           // documents without a word of the query are among what it finds
}

// A denseSet is what a search sees of a vectorSet.
type denseSet struct {
	*vectorSet
	pieces []*vectorPiece
	stale  map[int64]int64
}

// A denseHit is a chunk with its cosine to the query.
type denseHit struct {
	chunk, id int64
	set       int
	score     float64
}

func (h denseHit) doc() int64 { return h.chunk >> chunkBits }

// dense prepares the ranking by meaning of what a query matches, and adds the
// documents that are close in meaning. Without an embedder or vectors, for a
// query that asks for exact words or another order, and if the vector of the
// query is not there in time, it does nothing.
func (e *evaluator) dense(ctx context.Context, m *matched, q search.Query) error {
	byScore := len(q.Sort) == 0 || q.Sort[0] == (search.SortKey{Field: "score", Desc: true})
	if m.words < 0 || !byScore {
		return nil
	}
	return e.addMeaning(ctx, m, q, relevance.NearWords, relevance.NearCosine)
}

// addMeaning is dense for every query. Documents whose cosine is least or more are
// added to those that match if at least so many words of the query count.
func (e *evaluator) addMeaning(ctx context.Context, m *matched, q search.Query, words int, least float64) error {
	extends := func() bool {
		counting, _ := significant(q.Text.Words(), e.langs)
		return len(counting) >= words
	}
	limit := e.x.vectors.limit
	if (m.n == 0 || m.words == 0) && extends() { // words alone do not answer the query
		limit = max(limit, emptyTime)
	}
	d, err := e.meaning(ctx, q, limit)
	if errors.Is(err, errEmbedding) && ctx.Err() == nil {
		e.x.log.Debug("a query was ranked by words only", "error", err)
		return nil
	}
	if d == nil || err != nil {
		return err
	}
	hits, err := d.nearest(ctx, relevance.Fused)
	if err != nil {
		return err
	}
	d.near = bestOfEach(hits)
	if extends() {
		if err := d.extend(m, least); err != nil {
			return err
		}
	}
	if d.near, err = d.found(m); err == nil {
		m.dense = d
	}
	return err
}

// errEmbedding is the error of a query without a vector.
var errEmbedding = errors.New("computing the vector of the query")

// meaning returns the ranking by the meaning of a query, of which it computes the
// vector within limit. It returns nil without an embedder or vectors, and for a
// query in a language that the embedder does not know. If the vector cannot be
// computed in time, the error is errEmbedding.
func (e *evaluator) meaning(ctx context.Context, q search.Query, limit time.Duration) (*dense, error) {
	v := &e.x.vectors
	if v.embedder == nil {
		return nil, nil
	}
	d := &dense{e: e}
	if err := d.load(ctx); err != nil || len(d.sets) == 0 {
		return nil, err
	}
	var err error
	if d.query, err = v.query(ctx, q.Text.String(), limit); err != nil {
		return nil, fmt.Errorf("%w: %w", errEmbedding, err)
	}
	if d.query == nil {
		return nil, nil
	}
	// A service may have changed its model under the same name.
	d.sets = slices.DeleteFunc(d.sets, func(s denseSet) bool { return s.pieces[0].Dim() != len(d.query) })
	if len(d.sets) == 0 {
		return nil, nil
	}
	if c := conditionsOf(q); c.beyondLabels() {
		allowed, err := e.every(ctx, c)
		if err != nil {
			return nil, err
		}
		rows, err := e.view.RowsOf(allowed)
		if err != nil {
			return nil, err
		}
		d.allow = make(map[int64]bool, len(rows))
		for _, r := range rows {
			d.allow[r] = true
		}
	}
	return d, nil
}

// load loads the vectors of the labels of the view.
func (d *dense) load(ctx context.Context) error {
	x := d.e.x
	name := modelName(x.vectors.embedder)
	model, err := modelOf(ctx, d.e.tx, name)
	if err != nil || model == 0 {
		return err
	}
	var labels []string
	for _, h := range d.e.view.handles {
		labels = append(labels, h.row.label)
	}
	slices.Sort(labels)
	for _, label := range slices.Compact(labels) {
		s := x.vectors.set(label)
		pieces, more, err := s.load(ctx, d.e.tx, name, model)
		if err != nil {
			return err
		}
		if more {
			signal(x.vectors.loadSoon)
		}
		if len(pieces) > 0 {
			d.sets = append(d.sets, denseSet{s, pieces, s.staleness()})
		}
	}
	return nil
}

// nearest returns the n best chunks, best first.
func (d *dense) nearest(ctx context.Context, n int) ([]denseHit, error) {
	return d.live(ctx, func() ([]denseHit, error) {
		var hits []denseHit
		for i, s := range d.sets {
			for _, p := range s.pieces {
				found, err := p.Search(ctx, d.query, n, vector.Options{Threads: 1, Allow: func(row int) bool {
					return d.admits(s, p, row)
				}})
				if err != nil {
					return nil, err
				}
				for _, f := range found {
					hits = append(hits, denseHit{p.chunks[f.Row], int64(p.ID(f.Row)), i, f.Score})
				}
			}
		}
		sortDense(hits)
		return hits[:min(len(hits), n)], nil
	})
}

// admits reports whether a vector may be a result.
func (d *dense) admits(s denseSet, p *vectorPiece, row int) bool {
	doc := p.chunks[row] >> chunkBits
	return int64(p.ID(row)) > s.stale[doc] && (d.allow == nil || d.allow[doc])
}

// documents returns how many documents have a vector that may be a result.
func (d *dense) documents() int {
	docs := map[int64]bool{}
	for _, s := range d.sets {
		for _, p := range s.pieces {
			for row, chunk := range p.chunks {
				if doc := chunk >> chunkBits; !docs[doc] && d.admits(s, p, row) {
					docs[doc] = true
				}
			}
		}
	}
	return len(docs)
}

// scores returns the chunks of some documents with their cosines, best first.
func (d *dense) scores(docs []int64) ([]denseHit, error) {
	var hits []denseHit
	for n, s := range d.sets {
		for _, p := range s.pieces {
			var rows []int
			for _, doc := range docs {
				from, to := p.rowsOf(doc)
				for row := from; row < to && len(hits)+len(rows) < scoredRows; row++ {
					if int64(p.ID(row)) > s.stale[doc] {
						rows = append(rows, row)
					}
				}
			}
			found, err := p.Scores(d.query, rows)
			if err != nil {
				return nil, err
			}
			for i, row := range rows {
				hits = append(hits, denseHit{p.chunks[row], int64(p.ID(row)), n, found[i]})
			}
		}
	}
	sortDense(hits)
	return hits, nil
}

// sortDense sorts chunks, best first.
func sortDense(hits []denseHit) {
	slices.SortFunc(hits, func(a, b denseHit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.chunk, b.chunk)) })
}

// bestOfEach returns the first hit of each document.
func bestOfEach(hits []denseHit) []denseHit {
	seen := map[int64]bool{}
	return slices.DeleteFunc(hits, func(h denseHit) bool {
		again := seen[h.doc()]
		seen[h.doc()] = true
		return again
	})
}

// live returns the hits of find whose vectors exist in the transaction of the
// search. If some are gone, find is called again without the vectors that are
// gone with them: a document that changes gets new vectors.
func (d *dense) live(ctx context.Context, find func() ([]denseHit, error)) ([]denseHit, error) {
	for round := 1; ; round++ {
		hits, err := find()
		if err != nil || len(hits) == 0 {
			return nil, err
		}
		ids := make([]int64, len(hits))
		for i, h := range hits {
			ids[i] = h.id
		}
		exist := map[int64]bool{}
		err = collect(ctx, d.e.tx, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			exist[id] = true
			return err
		}, `SELECT v.id FROM json_each(?) j CROSS JOIN vectors v ON v.id=j.value`, jsonList(ids))
		if err != nil {
			return nil, err
		}
		gone := func(h denseHit) bool { return !exist[h.id] }
		if !slices.ContainsFunc(hits, gone) {
			return hits, nil
		}
		for _, h := range hits {
			if gone(h) {
				s := d.sets[h.set]
				s.stale[h.doc()] = max(s.stale[h.doc()], h.id)
				s.gone(h.doc(), h.id)
			}
		}
		if round == denseRounds {
			return slices.DeleteFunc(hits, gone), nil
		}
	}
}

// extend adds the documents whose cosine is least or more to those with words of
// the query.
func (d *dense) extend(m *matched, least float64) error {
	var rows []int64
	for _, h := range d.near {
		if h.score >= least && len(rows) < relevance.NearDocs {
			rows = append(rows, h.doc())
		}
	}
	slices.Sort(rows)
	more, err := d.e.view.Rows(rows)
	if err != nil {
		return err
	}
	more.AndNot(m.docs)
	n := more.Count()
	m.docs.Or(more)
	m.n += n
	d.added = n > 0
	return nil
}

// found returns those of the nearest documents that the query finds.
func (d *dense) found(m *matched) ([]denseHit, error) {
	rows := make([]int64, len(d.near))
	for i, h := range d.near {
		rows[i] = h.doc()
	}
	slices.Sort(rows)
	docs, err := d.e.view.Rows(rows)
	if err != nil {
		return nil, err
	}
	docs.And(m.docs)
	if rows, err = d.e.view.RowsOf(docs); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(d.near, func(h denseHit) bool {
		_, ok := slices.BinarySearch(rows, h.doc())
		return !ok
	}), nil
}

// rank ranks the best hits by words together with the nearest documents. The
// other hits keep their order. Scores stay on the scale of hits.
func (d *dense) rank(ctx context.Context, m *matched, hits []segment.Hit) ([]segment.Hit, error) {
	n := min(len(hits), relevance.Fused)
	by := map[int64]segment.Hit{}
	for _, h := range d.near {
		by[h.doc()] = segment.Hit{Row: h.doc(), Chunk: int(h.chunk & (maxParts - 1))}
	}
	for _, h := range hits[:n] {
		by[h.Row] = h
	}
	docs := slices.Sorted(maps.Keys(by))
	found, err := d.live(ctx, func() ([]denseHit, error) {
		hits, err := d.scores(docs)
		return bestOfEach(hits), err
	})
	if err != nil || len(found) == 0 {
		return hits, err
	}
	var lexical, near []fusion.Hit[int64]
	for _, h := range hits[:n] {
		lexical = append(lexical, fusion.Hit[int64]{ID: h.Row, Score: float64(h.Score)})
	}
	for _, h := range found {
		near = append(near, fusion.Hit[int64]{ID: h.doc(), Score: h.score})
	}
	only := false // the first document is the only one with all words, and stays first
	if n > 0 && m.words == 1 {
		rows, err := d.e.view.RowsOf(m.complete)
		if err != nil {
			return nil, err
		}
		only = len(rows) == 1 && rows[0] == hits[0].Row
	}
	out := make([]segment.Hit, 0, len(hits)+len(d.near))
	for _, f := range fusion.Rerank(lexical, near, relevance.Fused, only) {
		h := by[f.ID]
		h.Score = float32(f.Score)
		out = append(out, h)
	}
	for _, h := range hits[n:] {
		if _, ok := by[h.Row]; !ok {
			out = append(out, h)
		}
	}
	return out, nil
}

// chunks ranks the best chunks of some documents by words together with those by
// meaning, whose cosine is least or more. The meaning has a weight. The scores
// are in 0..1. The result is nil if no chunk of the documents has a vector.
func (d *dense) chunks(ctx context.Context, docs []int64, best []ranked, weight, least float64) ([]ranked, error) {
	wanted := map[int64]bool{}
	var lexical, near []fusion.Hit[int64]
	for _, r := range best {
		wanted[r.chunk] = true
		lexical = append(lexical, fusion.Hit[int64]{ID: r.chunk, Score: r.score})
	}
	found, err := d.live(ctx, func() ([]denseHit, error) {
		hits, err := d.scores(docs)
		n := 0
		return slices.DeleteFunc(hits, func(h denseHit) bool {
			n++
			return (n > passage.MaxChunks || h.score < least) && !wanted[h.chunk]
		}), err
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	for _, h := range found {
		near = append(near, fusion.Hit[int64]{ID: h.chunk, Score: h.score})
	}
	out := make([]ranked, 0, len(best)+len(near))
	for _, f := range fusion.Fuse(lexical, fusion.Fill(lexical, near), weight) {
		out = append(out, ranked{doc: f.ID >> chunkBits, chunk: f.ID, score: f.Score})
	}
	return out, nil
}

// passageWeight is the weight of the meaning in the ranking of passages. Of 110
// questions (docs/benchmarks.md, "Answers"), 0.25 answers three fewer, and 1 two.
const passageWeight = 0.5
