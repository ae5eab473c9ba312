package opensearch

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"knowhow/internal/search"
)

// SearchChunks returns the chunks that match a query best; see kb.Store. It finds
// the documents that [Store.Search] finds. A document that matches without one of
// its chunks has its first chunk in the result.
func (s *Store) SearchChunks(ctx context.Context, q search.ChunkQuery) (*search.ChunkPage, error) {
	documents := search.Query{Text: q.Text, Labels: q.Labels, Tags: q.Tags, Num: q.Top}
	if err := documents.Validate(nil); err != nil {
		return nil, err
	}
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	m, err := s.match(ctx, documents)
	if err != nil {
		return nil, err
	}
	page, err := s.findChunks(ctx, m, documents)
	if err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	return page, nil
}

func (s *Store) findChunks(ctx context.Context, m *matching, q search.Query) (*search.ChunkPage, error) {
	page, list, err := s.find(ctx, m, q)
	if err != nil {
		return nil, err
	}
	out := &search.ChunkPage{Total: page.Total, Staged: page.Staged}
	list = list[:min(len(list), max(q.Num, rankDepth))]
	revisions := make([]string, len(list))
	of := map[string]*ranked{}
	for i := range list {
		revisions[i] = list[i].row.Revision
		of[revisions[i]] = &list[i]
	}
	hits, err := s.bestChunks(ctx, m.leaves, m.labels, revisions, chunksOfHit*max(q.Num, 20), false)
	if err != nil {
		return nil, err
	}
	var first, more []chunkHit
	count := map[string]int{}
	for _, h := range hits {
		if of[h.Revision].all {
			h.score *= 1 + completeBonus
		}
		if count[h.Revision]++; count[h.Revision] <= chunksOfHit {
			first = append(first, h)
		} else {
			more = append(more, h)
		}
	}
	for _, r := range list {
		if count[r.row.Revision] == 0 && len(first) < q.Num {
			first = append(first, chunkHit{chunkRow: chunkRow{Revision: r.row.Revision, Number: r.row.Number, N: max(r.chunk, 0)}})
		}
	}
	slices.SortStableFunc(first, func(a, b chunkHit) int { return cmp.Compare(b.score, a.score) })
	first = first[:min(len(first), q.Num)]
	first = append(first, more[:min(len(more), q.Num-len(first))]...)
	slices.SortStableFunc(first, func(a, b chunkHit) int { return cmp.Compare(b.score, a.score) })
	ids := make([]string, len(first))
	for i, h := range first {
		ids[i] = chunkID(h.Revision, h.N)
	}
	texts, err := s.chunksByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i, h := range first {
		out.Hits = append(out.Hits, search.ChunkHit{Record: *of[h.Revision].row.record(), Chunk: h.N, Text: cutBytes(texts[ids[i]].Text, maxExcerpted), Score: h.score})
	}
	return out, nil
}
