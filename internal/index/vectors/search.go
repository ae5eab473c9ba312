package vectors

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/vector"
)

// Limits of a search.
const (
	scoredRows = 20_000 // vectors that are compared one by one
	rounds     = 3      // searches until no vector in the result is gone
)

// A View is the vectors of some labels that one search compares.
type View struct {
	tx   database.Querier
	sets []viewSet
}

// A viewSet is the part of a set that one search compares.
type viewSet struct {
	*set
	parts []*part
	stale map[int64]int64
}

// A Hit is a chunk with its cosine to the query.
type Hit struct {
	Document int64
	Chunk    int // number in the document
	Score    float64

	id  int64 // of the vector
	set int
}

// View returns the vectors of labels in a transaction. It loads vectors that are
// new, if there are not too many.
func (s *Store) View(ctx context.Context, tx database.Querier, labels []string) (*View, error) {
	v := &View{tx: tx}
	model, err := modelOf(ctx, tx, modelName(s.o.Embedder))
	if err != nil || model == 0 {
		return v, err
	}
	for _, label := range labels {
		set, due, err := s.set(label).refresh(ctx, tx, model)
		if err != nil {
			return nil, err
		}
		if due {
			signal(s.loadSoon)
		}
		if len(set.parts) > 0 {
			v.sets = append(v.sets, set)
		}
	}
	return v, nil
}

// Has reports whether there are vectors of dim values. A service may have changed
// its model under the same name.
func (v *View) Has(dim int) bool {
	for range v.each(dim) {
		return true
	}
	return false
}

// Empty reports whether there are no vectors.
func (v *View) Empty() bool { return len(v.sets) == 0 }

// each yields the parts with vectors of dim values, and the index of their set.
func (v *View) each(dim int) iter.Seq2[int, *part] {
	return func(yield func(int, *part) bool) {
		for i, s := range v.sets {
			for _, p := range s.parts {
				if p.Dim() == dim && !yield(i, p) {
					return
				}
			}
		}
	}
}

// Nearest returns the n chunks whose vectors are nearest to query, best first, of
// the documents that allow admits (nil: all).
func (v *View) Nearest(ctx context.Context, query []float32, n int, allow func(document int64) bool) ([]Hit, error) {
	return v.live(ctx, func() ([]Hit, error) {
		var hits []Hit
		for i, p := range v.each(len(query)) {
			found, err := p.Search(ctx, query, n, vector.Options{Threads: 1,
				Allow: func(row int) bool { return v.admits(i, p, row, allow) }})
			if err != nil {
				return nil, err
			}
			for _, f := range found {
				hits = append(hits, p.hit(f.Row, f.Score, i))
			}
		}
		sortHits(hits)
		return hits[:min(len(hits), n)], nil
	})
}

// hit returns the hit for a row.
func (p *part) hit(row int, score float64, set int) Hit {
	chunk := p.chunks[row]
	return Hit{chunk >> database.PartBits, int(chunk & (database.MaxParts - 1)), score, int64(p.ID(row)), set}
}

// admits reports whether a vector may be a result.
func (v *View) admits(set int, p *part, row int, allow func(document int64) bool) bool {
	doc := p.chunks[row] >> database.PartBits
	return int64(p.ID(row)) > v.sets[set].stale[doc] && (allow == nil || allow(doc))
}

// Documents returns how many documents that allow admits have a vector of dim values
// that may be a result.
func (v *View) Documents(dim int, allow func(document int64) bool) int {
	docs := map[int64]bool{}
	for i, p := range v.each(dim) {
		for row, chunk := range p.chunks {
			if doc := chunk >> database.PartBits; !docs[doc] && v.admits(i, p, row, allow) {
				docs[doc] = true
			}
		}
	}
	return len(docs)
}

// Scores returns the chunks of some documents with their cosines to query, best
// first. keep is called with them, and returns those that are wanted.
func (v *View) Scores(ctx context.Context, query []float32, docs []int64, keep func([]Hit) []Hit) ([]Hit, error) {
	return v.live(ctx, func() ([]Hit, error) {
		var hits []Hit
		for i, p := range v.each(len(query)) {
			var rows []int
			for _, doc := range docs {
				for _, row := range p.rowsOf(doc) {
					if len(hits)+len(rows) < scoredRows && v.admits(i, p, int(row), nil) {
						rows = append(rows, int(row))
					}
				}
			}
			found, err := p.Index.Scores(query, rows)
			if err != nil {
				return nil, err
			}
			for n, row := range rows {
				hits = append(hits, p.hit(row, found[n], i))
			}
		}
		sortHits(hits)
		return keep(hits), nil
	})
}

// sortHits sorts chunks, best first.
func sortHits(hits []Hit) {
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Document, b.Document), cmp.Compare(a.Chunk, b.Chunk))
	})
}

// BestOfEach returns the first hit of each document.
func BestOfEach(hits []Hit) []Hit {
	seen := map[int64]bool{}
	return slices.DeleteFunc(hits, func(h Hit) bool {
		again := seen[h.Document]
		seen[h.Document] = true
		return again
	})
}

// live returns the hits of find whose vectors exist in the transaction of the
// search. If some are gone, find is called again without the vectors that are gone
// with them: all vectors of a document go at once, and it gets new ones.
func (v *View) live(ctx context.Context, find func() ([]Hit, error)) ([]Hit, error) {
	for round := 1; ; round++ {
		hits, err := find()
		if err != nil || len(hits) == 0 {
			return nil, err
		}
		ids := make([]int64, len(hits))
		for i, h := range hits {
			ids[i] = h.id
		}
		exist, err := database.Map[int64, bool](ctx, v.tx,
			`SELECT v.id, 1 FROM json_each(?) j CROSS JOIN vectors v ON v.id=j.value`, database.List(ids))
		if err != nil {
			return nil, err
		}
		gone := func(h Hit) bool { return !exist[h.id] }
		if !slices.ContainsFunc(hits, gone) {
			return hits, nil
		}
		for _, h := range hits {
			if gone(h) {
				s := v.sets[h.set]
				s.stale[h.Document] = max(s.stale[h.Document], h.id)
				s.gone(h.Document, h.id)
			}
		}
		if round == rounds {
			return slices.DeleteFunc(hits, gone), nil
		}
	}
}
