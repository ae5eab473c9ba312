package opensearch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"knowhow/internal/document"
	"knowhow/internal/embed"
	"knowhow/internal/errkind"
	"knowhow/internal/fusion"
	"knowhow/internal/passage"
	"knowhow/internal/query"
	"knowhow/internal/relevance"
	"knowhow/internal/search"
)

// Limits of searches for chunks, as in package index.
const (
	halfScore    = 10 // the score by words that becomes 0.5
	nearChunks   = 64 // chunks by meaning
	chunkWindow  = 1000
	rankedChunks = 60 // best chunks by words, at least
)

// SearchChunks returns the chunks that match a query best; see kb.Store and
// index.Index.SearchChunks.
func (s *Store) SearchChunks(ctx context.Context, q search.ChunkQuery) (*search.ChunkPage, error) {
	documents := search.Query{Text: q.Text, Typed: q.Typed, Labels: q.Labels, Tags: q.Tags, Num: q.Top}
	if err := documents.Validate(nil); err != nil {
		return nil, err
	}
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	if q.Ranking == search.ByMeaning {
		return s.findNearest(ctx, documents)
	}
	page, err := s.findChunks(ctx, documents, q.Ranking)
	if err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	return page, nil
}

// findChunks returns the best q.Num chunks for a query.
func (s *Store) findChunks(ctx context.Context, q search.Query, by search.Ranking) (*search.ChunkPage, error) {
	m, err := s.match(ctx, q, false)
	if err != nil {
		return nil, err
	}
	d := &dense{}
	if by == search.ByBoth && !m.all && query.Plain(q.Text) {
		if !m.some && len(m.words) > 1 {
			r, err := s.search(ctx, s.names.documents, object{"size": 0, "terminate_after": 1, "query": m.documents(false)["query"]})
			if err != nil {
				return nil, err
			}
			if r.Hits.Total.Value == 0 {
				if m, err = s.match(ctx, q, true); err != nil {
					return nil, err
				}
			}
		}
		if d, err = s.addMeaning(ctx, m, q, 1); err != nil {
			return nil, err
		}
	}
	page, list, err := s.find(ctx, m, d, q)
	if err != nil {
		return nil, err
	}
	out := &search.ChunkPage{Total: page.Total, Staged: page.Staged}
	of := map[string]*ranked{}
	revisions := []string{} // not nil, which would mean any
	for i, r := range list {
		of[r.row.Revision] = &list[i]
		revisions = append(revisions, r.row.Revision)
	}
	best, err := s.rankChunks(ctx, m, d, revisions, of, q.Num)
	if err != nil {
		return nil, err
	}
	out.Hits, err = s.readChunks(ctx, spread(best, list, q.Num), of)
	return out, err
}

// rankChunks returns the best chunks of the documents with some revisions, with
// scores from 0 to 1.
func (s *Store) rankChunks(ctx context.Context, m *matching, d *dense, revisions []string, of map[string]*ranked, n int) ([]chunkHit, error) {
	hits, err := s.bestChunks(ctx, m.leaves, m.labels, revisions, min(relevance.OfDocument*max(n, rankedChunks/relevance.OfDocument), search.Window), false)
	if err != nil {
		return nil, err
	}
	for i, h := range hits {
		if of[h.Revision].all {
			hits[i].score *= 1 + completeBonus
		}
	}
	var near []chunkHit
	if len(d.near) > 0 && len(revisions) > 0 {
		if near, err = d.nearestChunks(ctx, append(filters(m.labels, nil, nil), oneOf("revision", revisions)), chunkWindow); err != nil {
			return nil, err
		}
	}
	byID := map[string]chunkHit{}
	var lexical, dense []fusion.Hit[string]
	for _, h := range hits {
		id := chunkID(h.Revision, h.N)
		byID[id] = h
		lexical = append(lexical, fusion.Hit[string]{ID: id, Score: h.score})
	}
	for i, h := range near {
		id := chunkID(h.Revision, h.N)
		if _, wanted := byID[id]; wanted || i < nearChunks && h.score >= nearCosine {
			byID[id] = h
			dense = append(dense, fusion.Hit[string]{ID: id, Score: h.score})
		}
	}
	if len(dense) == 0 {
		for i, h := range hits {
			hits[i].score = h.score / (h.score + halfScore)
		}
		slices.SortStableFunc(hits, func(a, b chunkHit) int { return cmp.Compare(b.score, a.score) })
		return hits, nil
	}
	var out []chunkHit
	for _, f := range fusion.Fuse(lexical, fusion.Fill(lexical, dense), fusion.DefaultWeight) {
		h := byID[f.ID]
		h.score = f.Score
		out = append(out, h)
	}
	return out, nil
}

// findNearest returns the q.Num chunks that are closest in meaning to a text.
func (s *Store) findNearest(ctx context.Context, q search.Query) (*search.ChunkPage, error) {
	switch e := s.o.Embedder; {
	case e == nil:
		return nil, fmt.Errorf("without a model, nothing can be found by meaning: search by words: %w", errkind.Unsupported)
	case !s.HasVectors():
		return nil, errNoVectors
	case embed.Foreign(e, q.Text):
		return nil, fmt.Errorf("the model does not know the language of this text: search by words: %w", errkind.Unsupported)
	}
	m := &matching{part: part{query: object{"match_all": object{}}}, all: true, filter: filters(q.Labels, q.Langs, q.Tags), labels: q.Labels}
	d, err := s.meaning(ctx, m, q, s.o.Timeout)
	page := &search.ChunkPage{}
	switch {
	case errors.Is(err, errEmbedding) && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return nil, fmt.Errorf("%w took too long: try again, or search by words: %w", errEmbedding, errkind.Timeout)
	case err != nil || d.query == nil:
		return page, err
	}
	hits, err := d.nearestChunks(ctx, d.filter, max(nearHits, relevance.OfDocument*q.Num))
	if err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	var revisions []string
	for i, h := range hits {
		hits[i].score = max(h.score, 0)
		revisions = append(revisions, h.Revision)
	}
	body := m.documents(false)
	body["size"] = len(revisions)
	body["query"] = object{"bool": object{"filter": append(m.filter, oneOf("revision", append(revisions, "")))}}
	r, err := s.search(ctx, s.names.documents, body)
	if err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	list, err := r.ranked()
	if err != nil {
		return nil, err
	}
	of := map[string]*ranked{}
	for i, r := range list {
		of[r.row.Revision] = &list[i]
	}
	hits = slices.DeleteFunc(hits, func(h chunkHit) bool { return of[h.Revision] == nil })
	if page.Total, err = d.count(ctx); err == nil {
		page.Hits, err = s.readChunks(ctx, spread(hits, nil, q.Num), of)
	}
	return page, err
}

// count returns how many documents have a vector. Above some ten thousands, it
// is an estimate.
func (d *dense) count(ctx context.Context) (int, error) {
	r, err := d.s.search(ctx, d.s.names.chunks, object{"size": 0, "query": object{"bool": object{"filter": append(slices.Clone(d.filter), object{"exists": object{"field": d.field}})}},
		"aggs": object{"documents": object{"cardinality": object{"field": "number", "precision_threshold": 40_000}}}})
	if err != nil {
		return 0, err
	}
	return r.value("documents"), nil
}

// spread returns n of the best chunks; see [relevance.Spread]. Documents of list
// without a chunk among them are represented by their first.
func spread(best []chunkHit, list []ranked, n int) []chunkHit {
	others := make([]chunkHit, len(list))
	for i, r := range list {
		others[i].chunkRow = chunkRow{Revision: r.row.Revision, Number: r.row.Number}
	}
	return relevance.Spread(best, others, n, func(h chunkHit) string { return h.Revision }, func(h chunkHit) float64 { return h.score })
}

// readChunks returns chunks with their texts and documents.
func (s *Store) readChunks(ctx context.Context, chunks []chunkHit, of map[string]*ranked) ([]search.ChunkHit, error) {
	ids := make([]string, len(chunks))
	for i, h := range chunks {
		ids[i] = chunkID(h.Revision, h.N)
	}
	texts, err := s.chunksByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	var docs []string
	for _, h := range chunks {
		docs = append(docs, of[h.Revision].row.ID)
	}
	kept, err := s.places(ctx, docs)
	var out []search.ChunkHit
	for i, h := range chunks {
		if c, ok := texts[ids[i]]; ok { // or the document was replaced meanwhile
			out = append(out, search.ChunkHit{Record: *of[h.Revision].row.record(), Chunk: h.N, Text: document.Truncate(c.Text, passage.MaxChunk), Heading: c.Heading,
				Page: passage.PageAt(kept[h.Revision].Pages, int64(c.Offset)), Score: h.score})
		}
	}
	return out, err
}
