package opensearch

import (
	"context"
	"encoding/json"
	"slices"

	"knowhow/internal/passage"
	"knowhow/internal/relevance"
	"knowhow/internal/search"
)

// passages returns the passages of the documents of a page; see [passage.Choose].
func (s *Store) passages(ctx context.Context, m *matching, list []ranked, budget int) ([][]search.Passage, error) {
	src := &passageSource{s: s, list: list}
	chunks, err := src.best(ctx, m)
	if err != nil {
		return nil, err
	}
	return passage.Choose(ctx, src, len(list), chunks, conditions(m.leaves, "", src.weight), budget)
}

// A passageSource reads the documents of a page of results.
type passageSource struct {
	s      *Store
	list   []ranked
	chunks []chunkRow     // that passages are made of
	total  int            // how many chunks the store has
	counts map[string]int // how many chunks have a token
}

// best reads the best chunks of the documents of the page, and one chunk of each
// other document.
func (src *passageSource) best(ctx context.Context, m *matching) ([]passage.Chunk, error) {
	revisions, number := make([]string, len(src.list)), map[string]int{}
	for i, r := range src.list {
		revisions[i], number[r.row.Revision] = r.row.Revision, i
	}
	var out []passage.Chunk
	add := func(c chunkRow, score float64) {
		out = append(out, passage.Chunk{Number: len(out), Document: number[c.Revision], Score: score})
		src.chunks = append(src.chunks, c)
	}
	found := map[string]bool{}
	if body, ok := chunkSearch(m.leaves, m.labels, revisions, passage.MaxChunks); ok {
		body["_source"], body["aggs"] = chunkText, countTokens(m.leaves, passage.MaxChunks)
		r, err := src.s.search(ctx, src.s.names.chunks, body)
		if err != nil {
			return nil, err
		}
		src.total, src.counts = r.tokens()
		hits, err := r.chunkHits()
		if err != nil {
			return nil, err
		}
		for _, h := range hits {
			found[h.Revision] = true
			add(h.chunkRow, h.score)
		}
	}
	var ids []string // of chunks of documents that match otherwise
	for _, r := range src.list {
		if !found[r.row.Revision] {
			ids = append(ids, chunkID(r.row.Revision, max(r.chunk, 0)))
		}
	}
	rows, err := src.s.chunksByID(ctx, ids)
	for _, id := range ids {
		if c, ok := rows[id]; ok { // or the document was replaced meanwhile
			add(c, 0)
		}
	}
	return out, err
}

// countTokens is an aggregation of the tokens of leaves that are in the best n
// chunks. It tells how many of all chunks have each. It is empty if the leaves have
// no tokens.
func countTokens(leaves []*leaf, n int) object {
	tokens := []string{}
	for _, l := range leaves {
		for _, p := range l.patterns {
			tokens = append(tokens, p.tokens...)
		}
	}
	slices.Sort(tokens)
	if tokens = slices.Compact(tokens); len(tokens) == 0 {
		return object{}
	}
	return object{"best": object{"sampler": object{"shard_size": n}, "aggs": object{
		"tokens": object{"significant_text": object{"field": "tokens", "include": tokens, "size": len(tokens), "min_doc_count": 1, "percentage": object{}}}}}}
}

// tokens returns how many chunks there are and how many have each token, as
// countTokens counts them.
func (r *result) tokens() (chunks int, counts map[string]int) {
	var agg struct {
		Tokens struct {
			Count   int `json:"bg_count"`
			Buckets []struct {
				Key   string `json:"key"`
				Count int    `json:"bg_count"`
			} `json:"buckets"`
		} `json:"tokens"`
	}
	counts = map[string]int{}
	if json.Unmarshal(r.Aggregations["best"], &agg) != nil {
		return 0, counts
	}
	for _, b := range agg.Tokens.Buckets {
		counts[b.Key] = b.Count
	}
	return agg.Tokens.Count, counts
}

// weight returns the weight of a leaf in the ranking. That of a phrase is the one
// of its rarest token.
func (src *passageSource) weight(l *leaf) float32 {
	n := 0
	for _, p := range l.patterns {
		least := src.total
		for _, t := range p.tokens {
			least = min(least, src.counts[t])
		}
		n += least
	}
	return float32(l.weight * relevance.IDF(src.total, min(n, src.total)))
}

// Contents returns what is known of chunks.
func (src *passageSource) Contents(_ context.Context, chunks []passage.Chunk) ([]passage.Content, error) {
	out := make([]passage.Content, len(chunks))
	for i, c := range chunks {
		row, document := src.chunks[c.Number], src.list[c.Document].row
		out[i] = passage.Content{Offset: int64(row.Offset), Length: int64(len(row.Text)), TextSize: document.TextSize, Heading: row.Heading, Lang: document.Lang}
	}
	return out, nil
}

// Window reads a part of the text of a chunk's document, from the chunk if it is
// there.
func (src *passageSource) Window(ctx context.Context, c passage.Chunk, from, to int64) (string, error) {
	row := src.chunks[c.Number]
	if off := int64(row.Offset); off <= from && to <= off+int64(len(row.Text)) {
		return row.Text[from-off : max(to, from)-off], nil
	}
	return src.s.window(ctx, row.Revision, from, to)
}

// Locate sets the pages and headings of passages.
func (src *passageSource) Locate(ctx context.Context, places []passage.Place) error {
	var ids []string
	for _, p := range places {
		ids = append(ids, src.list[p.Document].row.ID)
	}
	kept, err := src.s.places(ctx, ids)
	for _, p := range places {
		if k, ok := kept[src.list[p.Document].row.Revision]; ok { // or the document was replaced meanwhile
			p.Page = passage.PageAt(k.Pages, p.Offset)
			if p.Inside && len(k.Sections) > 0 {
				p.Heading = passage.HeadingAt(k.Sections, p.Offset)
			}
		}
	}
	return err
}

// places returns the pages and sections of documents with some IDs, by revision.
func (s *Store) places(ctx context.Context, ids []string) (map[string]rest, error) {
	slices.Sort(ids)
	rows, err := s.get(ctx, slices.Compact(ids), object{"includes": []string{"kept.pages", "kept.sections", "revision"}})
	out := map[string]rest{}
	for _, f := range rows {
		out[f.row.Revision] = f.row.Kept
	}
	return out, err
}
