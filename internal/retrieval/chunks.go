package retrieval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fusion"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// passageWeight is the weight of the meaning in the ranking of passages. Of 3,151
// questions (bench/notes/answers.md), 1 and 2 answer as many, and 0.5 fewer.
const passageWeight = 1.5

// passageChunks returns the chunks that passages of a page are chosen from, best
// first, numbered as in chunks. Documents without one are represented by their
// first, which the source must know by the number -1-place. full is as in
// Candidates.Full.
func passageChunks(page []Document, chunks []Chunk, full float64) []passage.Chunk {
	places := make(map[int64]int, len(page))
	for i, d := range page {
		places[d.Number] = i
	}
	best := 0.0
	for _, d := range page {
		best = max(best, d.Score)
	}
	var out []passage.Chunk
	seen := make([]bool, len(page))
	for _, s := range fuseChunks(chunks, passageWeight, -1, full) {
		place := places[chunks[s.index].Document]
		seen[place] = true
		if best > 0 { // a chunk of a better document precedes
			s.score *= page[place].Score / best
		}
		out = append(out, passage.Chunk{Number: s.index, Document: place, Score: s.score})
	}
	slices.SortStableFunc(out, func(a, b passage.Chunk) int { return cmp.Compare(b.Score, a.Score) })
	out = out[:min(len(out), passage.MaxChunks)]
	for i := range page {
		if !seen[i] {
			out = append(out, passage.Chunk{Number: -1 - i, Document: i})
		}
	}
	return out
}

// A scored is a chunk by its place in a list, with its final score.
type scored struct {
	index int
	score float64
}

// fuseChunks returns chunks by words and meaning together, best first. The meaning
// has a weight. Of chunks without words, those count that are nearest and whose
// cosine is least or more. If no chunk has a cosine that counts, the order and the
// scores are those by words. full is as in Candidates.Full, 0 so that the best chunk by
// words counts like the nearest one.
func fuseChunks(chunks []Chunk, weight, least, full float64) []scored {
	var words []scored
	var lexical, near []fusion.Hit[int]
	for i, c := range chunks {
		if c.Score > 0 || !c.HasCosine {
			lexical = append(lexical, fusion.Hit[int]{ID: i, Score: c.Score})
			words = append(words, scored{i, c.Score})
		}
		if c.HasCosine {
			near = append(near, fusion.Hit[int]{ID: i, Score: c.Cosine})
		}
	}
	slices.SortStableFunc(near, func(a, b fusion.Hit[int]) int { return cmp.Compare(b.Score, a.Score) })
	n := 0
	near = slices.DeleteFunc(near, func(h fusion.Hit[int]) bool {
		n++
		return (n > passage.MaxChunks || h.Score < least) && chunks[h.ID].Score <= 0
	})
	if len(near) == 0 {
		return words
	}
	var out []scored
	scale := fusion.Scale{Full: full, All: len(lexical) < passage.MaxChunks}
	for _, f := range fusion.Fuse(lexical, fusion.Fill(lexical, near), weight, scale) {
		out = append(out, scored{f.ID, f.Score})
	}
	return out
}

// SearchChunks returns the chunks that match a query best.
//
// By words, it finds the documents that [Search] finds. A document that matches
// without one of its chunks has its first chunk in the result. By both, a plain query
// of three or more words also finds documents that are close in meaning. If no
// document has all words of a shorter one, it finds documents with any of its words,
// and those that are close in meaning. By meaning, the error is of kind Unavailable or
// Timeout if the embedder fails.
func SearchChunks(ctx context.Context, s ChunkStore, q search.ChunkQuery, o Options) (*search.ChunkPage, error) {
	documents := search.Query{Text: q.Text, Labels: q.Labels, Written: q.Written, Tags: q.Tags, Num: q.Top}
	if q.Ranking == search.ByMeaning {
		return searchNearest(ctx, s, documents, o)
	}
	words := q.Text.Kind() == query.Words
	both := words && q.Ranking == search.ByBoth
	r := &Request{Query: documents, Plan: newPlan(q.Text, o.Languages, false), Depth: max(q.Top, NearHits),
		Chunks: ofDocument * max(q.Top, NearPassages)}
	x := &finder{store: s, o: o, r: r, meaning: both && r.Plan.Some, words: nearWords, near: chunkCosine}
	c, _, err := x.find(ctx)
	if err != nil {
		return nil, err
	}
	// One or two words that a document has say exactly what is wanted.
	if both && !r.Plan.Some && c.Total == 0 {
		r.Plan = newPlan(q.Text, o.Languages, true)
		x.meaning, x.words, x.near = true, 1, shortCosine
		if c, _, err = x.find(ctx); err != nil {
			return nil, err
		}
	}
	page := &search.ChunkPage{Total: c.Total, Staged: r.Plan.Some, Partial: c.Partial}
	page.Hits, err = s.ReadChunks(ctx, r, rankChunks(r.Plan, c, q.Top))
	return page, err
}

// searchNearest returns the chunks that are closest in meaning to what was typed.
func searchNearest(ctx context.Context, s ChunkStore, q search.Query, o Options) (*search.ChunkPage, error) {
	if o.Vector == nil {
		return nil, fmt.Errorf("without a model, nothing can be found by meaning: search by words: %w",
			errkind.Unsupported)
	}
	until, ok := ctx.Deadline()
	limit := time.Minute
	if ok {
		limit = time.Until(until)
	}
	vector, err := o.Vector(ctx, cmp.Or(q.Text.Question(), q.Text.Plain()), limit)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("computing the vector of the query took too long: try again, or search by words: %w",
			errkind.Timeout)
	case err != nil:
		return nil, fmt.Errorf("computing the vector of the query: %w", err)
	case vector == nil:
		return &search.ChunkPage{}, nil
	}
	r := &Request{Query: q, Vector: vector, Chunks: max(Fused, ofDocument*q.Num)}
	c, err := s.Gather(ctx, r)
	if err != nil {
		return nil, err
	}
	best := slices.Clone(c.Chunks)
	for i := range best {
		best[i].Score = max(best[i].Cosine, 0)
	}
	page := &search.ChunkPage{Total: c.Total, Partial: c.Partial}
	page.Hits, err = s.ReadChunks(ctx, r, spread(best, nil, q.Num))
	return page, err
}

// rankChunks returns the n best chunks of candidates, with scores in 0..1.
func rankChunks(p *Plan, c *Candidates, n int) []Chunk {
	chunks := slices.Clone(c.Chunks)
	for i, x := range chunks {
		if p.Some && x.Complete && i < NearHits {
			chunks[i].Score *= 1 + CompleteBonus
		}
	}
	meaning := slices.ContainsFunc(chunks, func(x Chunk) bool { return x.HasCosine })
	best := make([]Chunk, 0, len(chunks))
	for _, s := range fuseChunks(chunks, fusion.DefaultWeight, chunkCosine, 0) {
		x := chunks[s.index]
		if x.Score = s.score; !meaning {
			x.Score = s.score / (s.score + halfScore)
		}
		best = append(best, x)
	}
	slices.SortStableFunc(best, func(a, b Chunk) int { return cmp.Compare(b.Score, a.Score) })
	var others []Chunk // documents that match without one of their chunks
	for _, d := range rank(p, c) {
		others = append(others, Chunk{Document: d.Number})
	}
	return spread(best, others[:min(len(others), n)], n)
}

// spread returns n of the best chunks, with at most ofDocument chunks of each document
// before those of others. others are chunks of documents that may be missing in best;
// they follow the best ones. The result is ordered by score.
func spread(best, others []Chunk, n int) []Chunk {
	var first, more []Chunk
	of := map[int64]int{} // how many chunks of a document
	for _, c := range best {
		if of[c.Document]++; of[c.Document] <= ofDocument {
			first = append(first, c)
		} else {
			more = append(more, c)
		}
	}
	for _, c := range others {
		if of[c.Document] == 0 && len(first) < n {
			first = append(first, c)
		}
	}
	first = first[:min(len(first), n)]
	first = append(first, more[:min(len(more), n-len(first))]...)
	slices.SortStableFunc(first, func(a, b Chunk) int { return cmp.Compare(b.Score, a.Score) })
	return first
}
