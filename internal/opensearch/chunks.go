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
	chunkWindow  = 1000
	rankedChunks = 60 // best chunks by words, at least
)

// SearchChunks returns the chunks that match a query best; see kb.Store and
// index.Index.SearchChunks.
func (s *Store) SearchChunks(ctx context.Context, q search.ChunkQuery) (*search.ChunkPage, error) {
	documents := search.Query{Text: q.Text, Labels: q.Labels, Written: q.Written, Tags: q.Tags, Num: q.Top}
	if err := documents.Validate(nil); err != nil {
		return nil, err
	}
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	if q.Ranking == search.ByMeaning {
		return s.findNearest(ctx, documents)
	}
	for {
		page, err := s.findChunks(ctx, documents, q.Ranking)
		if errors.Is(err, errLanguages) {
			continue // now they are known
		}
		if err != nil {
			return nil, fmt.Errorf("searching: %w", err)
		}
		return page, nil
	}
}

// findChunks returns the best q.Num chunks for a query, in as many rounds as
// searchOnce.
func (s *Store) findChunks(ctx context.Context, q search.Query, by search.Ranking) (*search.ChunkPage, error) {
	langs := s.knownLanguages()
	m, err := s.match(q, langs, false)
	if err != nil {
		return nil, err
	}
	d := &dense{}
	relax := false // some of the words are enough if no document has all of them
	if by == search.ByBoth && !m.all && q.Text.Kind() == query.Words {
		relax = !m.some
		if d, err = s.wordsOrMeaning(ctx, m, q); err != nil {
			return nil, err
		}
	}
	if d.query != nil {
		r := &round{s: s}
		d.findNear(r)
		exact := false
		if relax {
			r.add(inDocuments, object{"size": 0, "terminate_after": 1, "query": m.condition()}, func(r *result) error {
				exact = r.Hits.Total.Value > 0
				return nil
			})
		}
		if err := r.send(ctx); err != nil {
			return nil, err
		}
		switch {
		case exact: // one or two words that a document has say exactly what is wanted
			d = &dense{}
		case relax:
			if m, err = s.match(q, langs, true); err != nil {
				return nil, err
			}
			d.widen(m, q, 1, relevance.ShortCosine)
		default:
			d.widen(m, q, relevance.NearWords, relevance.ChunkCosine)
		}
		relax = false
	}
	var x *chunkRanking
	also := func(r *round, revisions []string) { x = s.rankChunks(r, m, d, revisions, q.Num) }
	page, list, err := s.find(ctx, m, d, q, also)
	if err == nil && relax && page.Total == 0 {
		if m, err = s.match(q, langs, true); err == nil {
			page, list, err = s.find(ctx, m, d, q, also)
		}
	}
	if err != nil {
		return nil, err
	}
	of := map[string]*ranked{}
	revisions := []string{} // not nil, which would mean any
	for i, r := range list {
		of[r.row.Revision] = &list[i]
		revisions = append(revisions, r.row.Revision)
	}
	if !x.keep(of) {
		r := &round{s: s}
		x = s.rankChunks(r, m, d, revisions, q.Num)
		if err := r.send(ctx); err != nil {
			return nil, err
		}
	}
	out := &search.ChunkPage{Total: page.Total, Staged: page.Staged}
	out.Hits, err = s.readHits(ctx, m, spread(x.fused(of), list, q.Num), of)
	return out, err
}

// A chunkRanking is the best chunks of some documents.
type chunkRanking struct {
	hits, near []chunkHit // by words and by meaning
	most       int        // of hits
}

// rankChunks adds the searches for the best chunks of the documents with some
// revisions. The result is set when the round is over.
func (s *Store) rankChunks(r *round, m *matching, d *dense, revisions []string, n int) *chunkRanking {
	x := &chunkRanking{most: min(relevance.OfDocument*max(n, rankedChunks/relevance.OfDocument), search.Window)}
	if len(revisions) == 0 {
		return x
	}
	s.bestChunks(r, m.leaves, m.labels, revisions, x.most, func(hits []chunkHit) { x.hits = hits })
	if len(d.near) > 0 {
		d.nearestChunks(r, append(filters(m.labels, nil, nil), oneOf("revision", revisions)), chunkWindow, func(hits []chunkHit) { x.near = hits })
	}
	return x
}

// keep removes the chunks of other documents than some, by revision. It reports
// whether the result is the same as if only these had been ranked.
func (x *chunkRanking) keep(of map[string]*ranked) bool {
	other := func(h chunkHit) bool { return of[h.Revision] == nil }
	words, meaning := len(x.hits), len(x.near)
	x.hits, x.near = slices.DeleteFunc(x.hits, other), slices.DeleteFunc(x.near, other)
	return (words < x.most || len(x.hits) == words) && (meaning < chunkWindow || len(x.near) == meaning)
}

// fused returns the chunks with scores from 0 to 1, best first.
func (x *chunkRanking) fused(of map[string]*ranked) []chunkHit {
	hits := x.hits
	for i, h := range hits {
		if of[h.Revision].all {
			hits[i].score *= 1 + relevance.CompleteBonus
		}
	}
	byID := map[string]chunkHit{}
	var lexical, dense []fusion.Hit[string]
	for _, h := range hits {
		id := chunkID(h.Revision, h.N)
		byID[id] = h
		lexical = append(lexical, fusion.Hit[string]{ID: id, Score: h.score})
	}
	for i, h := range x.near {
		id := chunkID(h.Revision, h.N)
		if _, wanted := byID[id]; wanted || i < passage.MaxChunks && h.score >= relevance.ChunkCosine {
			byID[id] = h
			dense = append(dense, fusion.Hit[string]{ID: id, Score: h.score})
		}
	}
	if len(dense) == 0 {
		for i, h := range hits {
			hits[i].score = h.score / (h.score + relevance.HalfScore)
		}
		slices.SortStableFunc(hits, func(a, b chunkHit) int { return cmp.Compare(b.score, a.score) })
		return hits
	}
	var out []chunkHit
	for _, f := range fusion.Fuse(lexical, fusion.Fill(lexical, dense), fusion.DefaultWeight) {
		h := byID[f.ID]
		h.score = f.Score
		out = append(out, h)
	}
	return out
}

// findNearest returns the q.Num chunks that are closest in meaning to a text.
func (s *Store) findNearest(ctx context.Context, q search.Query) (*search.ChunkPage, error) {
	switch e := s.o.Embedder; {
	case e == nil:
		return nil, fmt.Errorf("without a model, nothing can be found by meaning: search by words: %w", errkind.Unsupported)
	case !s.HasVectors():
		return nil, errNoVectors
	case embed.Foreign(e, q.Text.String()):
		return nil, fmt.Errorf("the model does not know the language of this text: search by words: %w", errkind.Unsupported)
	}
	m := &matching{part: part{query: object{"match_all": object{}}}, all: true, filter: append(filters(q.Labels, q.Langs, q.Tags), writtenOnly(q.Written)...), labels: q.Labels, seen: map[string]bool{}}
	d, err := s.meaning(ctx, m, q, s.o.Timeout)
	page := &search.ChunkPage{}
	switch {
	case errors.Is(err, errEmbedding) && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return nil, fmt.Errorf("%w took too long: try again, or search by words: %w", errEmbedding, errkind.Timeout)
	case err != nil || d.query == nil:
		return page, err
	}
	var hits []chunkHit
	r := &round{s: s}
	d.nearestChunks(r, d.filter, max(relevance.Fused, relevance.OfDocument*q.Num), func(found []chunkHit) { hits = found })
	d.count(r, func(documents int) { page.Total = documents })
	if err := r.send(ctx); err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	revisions := []string{""}
	for i, h := range hits {
		hits[i].score = max(h.score, 0)
		revisions = append(revisions, h.Revision)
	}
	of := map[string]*ranked{}
	body := m.documents(false)
	body["size"], body["track_total_hits"] = len(revisions), false
	body["query"] = object{"bool": object{"filter": append(slices.Clone(m.filter), oneOf("revision", revisions))}}
	r.add(inDocuments, body, func(r *result) error {
		list := m.ranked(r)
		for i, x := range list {
			of[x.row.Revision] = &list[i]
		}
		return nil
	})
	if err := r.send(ctx); err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	hits = slices.DeleteFunc(hits, func(h chunkHit) bool { return of[h.Revision] == nil })
	if page.Hits, err = s.readHits(ctx, m, spread(hits, nil, q.Num), of); err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	return page, nil
}

// count adds a question for how many documents have a vector. Above some ten
// thousands, it is an estimate.
func (d *dense) count(r *round, found func(documents int)) {
	r.add(inChunks, object{"size": 0, "track_total_hits": false, "query": object{"bool": object{"filter": append(slices.Clone(d.filter), object{"exists": object{"field": d.field}})}},
		"aggs": object{"documents": object{"cardinality": object{"field": "number", "precision_threshold": 40_000}}}}, func(r *result) error {
		found(r.value("documents"))
		return nil
	})
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

// readHits returns chunks with their texts and documents, without those that have
// been replaced meanwhile.
func (s *Store) readHits(ctx context.Context, m *matching, best []chunkHit, of map[string]*ranked) ([]search.ChunkHit, error) {
	r := &round{s: s}
	ids := make([]string, len(best))
	var list []ranked
	seen := map[string]bool{}
	for i, h := range best {
		ids[i] = chunkID(h.Revision, h.N)
		if !seen[h.Revision] {
			seen[h.Revision] = true
			list = append(list, *of[h.Revision])
		}
	}
	chunks := map[string]chunkRow{}
	s.readChunks(r, ids, chunks)
	rows := s.readRows(r, m, list, withPages)
	if err := r.send(ctx); err != nil {
		return nil, err
	}
	var out []search.ChunkHit
	for i, h := range best {
		c, ok := chunks[ids[i]]
		if full := rows[of[h.Revision].row.Number]; ok && full != nil && full.Revision == h.Revision {
			out = append(out, search.ChunkHit{Record: *full.record(), Chunk: h.N, Text: document.Truncate(c.Text, passage.MaxChunk), Heading: c.Heading,
				Page: passage.PageAt(full.Kept.Pages, int64(c.Offset)), Score: h.score})
		}
	}
	return out, nil
}
