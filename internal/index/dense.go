package index

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"knowhow/internal/passage"
	"knowhow/internal/retrieval"
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

// number returns the number of the chunk in its document.
func (h denseHit) number() int { return int(h.chunk & (maxParts - 1)) }

// newDense returns the ranking by meaning for a request with a vector. It returns nil
// without vectors.
func (e *evaluator) newDense(ctx context.Context, r *retrieval.Request) (*dense, error) {
	if err := e.loadVectors(ctx); err != nil {
		return nil, err
	}
	d := &dense{e: e, query: r.Vector}
	for _, s := range e.sets {
		if s.pieces[0].Dim() == len(d.query) { // a service may have changed its model under the same name
			d.sets = append(d.sets, s)
		}
	}
	if len(d.sets) == 0 {
		return nil, nil
	}
	if c := conditionsOf(r.Query); c.beyondLabels() {
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

// addMeaning adds to what a request matches the documents that are near in meaning.
func (e *evaluator) addMeaning(ctx context.Context, m *matched, r *retrieval.Request) error {
	d, err := e.newDense(ctx, r)
	if d == nil || err != nil {
		return err
	}
	hits, err := d.nearest(ctx, retrieval.Fused)
	if err != nil {
		return err
	}
	d.near = bestOfEach(hits)
	if r.Near > 0 {
		if err := d.extend(m, r.Near); err != nil {
			return err
		}
	}
	if d.near, err = d.found(m); err == nil {
		m.dense = d
	}
	return err
}

// loadVectors loads the vectors of the labels of the view, once for a search.
func (e *evaluator) loadVectors(ctx context.Context) error {
	if e.loaded {
		return nil
	}
	e.loaded = true
	x := e.x
	name := modelName(x.vectors.embedder)
	model, err := modelOf(ctx, e.tx, name)
	if err != nil || model == 0 {
		return err
	}
	var labels []string
	for _, g := range e.view.Segments {
		labels = append(labels, g.Label)
	}
	slices.Sort(labels)
	for _, label := range slices.Compact(labels) {
		s := x.vectors.set(label)
		pieces, more, err := s.load(ctx, e.tx, name, model)
		if err != nil {
			return err
		}
		if more {
			signal(x.vectors.loadSoon)
		}
		if len(pieces) > 0 {
			e.sets = append(e.sets, denseSet{s, pieces, s.staleness()})
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
		if h.score >= least && len(rows) < retrieval.NearDocs {
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

// addCosines adds to documents that are ranked by words their cosines, and the
// nearest documents that are not among them.
func (d *dense) addCosines(ctx context.Context, list []retrieval.Document) ([]retrieval.Document, error) {
	n := min(len(list), retrieval.Fused)
	at := map[int64]int{}
	for i, x := range list {
		at[x.Number] = i
	}
	docs := make([]int64, 0, n+len(d.near))
	for _, x := range list[:n] {
		docs = append(docs, x.Number)
	}
	for _, h := range d.near {
		docs = append(docs, h.doc())
	}
	slices.Sort(docs)
	docs = slices.Compact(docs)
	found, err := d.live(ctx, func() ([]denseHit, error) {
		hits, err := d.scores(docs)
		return bestOfEach(hits), err
	})
	if err != nil {
		return list, err
	}
	for _, h := range found {
		i, ok := at[h.doc()]
		if !ok {
			i = len(list)
			list = append(list, retrieval.Document{Number: h.doc(), Chunk: -1})
		}
		list[i].NearChunk, list[i].Cosine = h.number(), h.score
	}
	return list, nil
}

// addChunks adds to chunks by words their cosines, and the other chunks of some
// documents that have vectors.
func (d *dense) addChunks(ctx context.Context, list []retrieval.Chunk, docs []int64) ([]retrieval.Chunk, error) {
	at := map[int64]int{}
	for i, c := range list {
		at[rowOf(c.Document, c.Number)] = i
	}
	found, err := d.live(ctx, func() ([]denseHit, error) {
		hits, err := d.scores(docs)
		n := 0
		return slices.DeleteFunc(hits, func(h denseHit) bool {
			_, wanted := at[h.chunk]
			n++
			return n > passage.MaxChunks && !wanted
		}), err
	})
	if err != nil {
		return list, err
	}
	for _, h := range found {
		i, ok := at[h.chunk]
		if !ok {
			i = len(list)
			list = append(list, retrieval.Chunk{Document: h.doc(), Number: h.number()})
		}
		list[i].Cosine, list[i].HasCosine = h.score, true
	}
	return list, nil
}
