package opensearch

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"knowhow/internal/analysis"
	"knowhow/internal/passage"
	"knowhow/internal/relevance"
	"knowhow/internal/search"
)

// passages returns the passages of the documents of a page, whose rows have been
// read; see [passage.Choose].
func (s *Store) passages(ctx context.Context, m *matching, list []ranked, t *texts, budget int) ([][]search.Passage, error) {
	src := &passageSource{s: s, list: list}
	number := map[string]int{}
	for i, r := range list {
		number[r.row.Revision] = i
	}
	var chunks []passage.Chunk
	found := make([]bool, len(list))
	add := func(c chunkRow, score float64) {
		if i, ok := number[c.Revision]; ok { // or the document was replaced meanwhile
			found[i] = true
			chunks = append(chunks, passage.Chunk{Number: len(src.chunks), Document: i, Score: score})
			src.chunks = append(src.chunks, c)
		}
	}
	t.preferNear(m.leaves, func(revision string) analysis.Language { return analysis.LanguageOf(list[number[revision]].row.Lang) })
	for _, h := range t.best {
		add(h.chunkRow, h.score)
	}
	for i, r := range list {
		if c, ok := t.chunks[chunkID(r.row.Revision, max(r.chunk, 0))]; ok && !found[i] { // it matches otherwise
			add(c, 0)
		}
	}
	return passage.Choose(ctx, src, len(list), chunks, conditions(m.leaves, "", t.weight), budget)
}

// preferNear raises the scores of the best chunks in which words that follow each
// other in the query stand close together, as [segment.Search.PreferNear] does.
func (t *texts) preferNear(leaves []*leaf, language func(revision string) analysis.Language) {
	if len(leaves) < 2 {
		return
	}
	leafOf := map[string]int{} // by token
	for i, l := range leaves {
		for _, p := range l.patterns {
			if len(p.tokens) == 1 && !p.prefix && l.match == nil {
				leafOf[p.tokens[0]] = i
			}
		}
	}
	best := t.best[:min(len(t.best), relevance.NearPassages)]
	for i := range best {
		positions, at := make([][]uint32, len(leaves)), uint32(0)
		for x := range analysis.Analyze(best[i].Text, language(best[i].Revision)) {
			if x.Token != "" && !x.Beside {
				at++
			}
			if l, ok := leafOf[x.Token]; ok {
				positions[l] = append(positions[l], at)
			}
		}
		for l := range leaves[1:] {
			best[i].score += float64(relevance.Near(positions[l], positions[l+1], min(t.weight(leaves[l]), t.weight(leaves[l+1]))))
		}
	}
	slices.SortStableFunc(best, func(a, b chunkHit) int { return cmp.Compare(b.score, a.score) })
}

// A passageSource is the documents of a page of results.
type passageSource struct {
	s      *Store
	list   []ranked
	chunks []chunkRow // that passages are made of
}

// Contents returns what is known of chunks.
func (src *passageSource) Contents(_ context.Context, chunks []passage.Chunk) ([]passage.Content, error) {
	out := make([]passage.Content, len(chunks))
	for i, c := range chunks {
		chunk, document := src.chunks[c.Number], src.list[c.Document].row
		out[i] = passage.Content{Offset: int64(chunk.Offset), Length: int64(len(chunk.Text)), TextSize: document.TextSize, Heading: chunk.Heading, Lang: document.Lang}
	}
	return out, nil
}

// Window returns a part of the text of a chunk's document. It only reads what is
// not stored with the chunk.
func (src *passageSource) Window(ctx context.Context, c passage.Chunk, from, to int64) (string, error) {
	chunk := src.chunks[c.Number]
	for _, known := range []struct {
		off  int
		text string
	}{{chunk.Offset, chunk.Text}, {chunk.Offset - chunk.Before, chunk.Around}} {
		if off := int64(known.off); off <= from && from <= to && to <= off+int64(len(known.text)) {
			return known.text[from-off : to-off], nil
		}
	}
	return src.s.window(ctx, chunk.Revision, from, to)
}

// Locate sets the pages and headings of passages.
func (src *passageSource) Locate(_ context.Context, places []passage.Place) error {
	for _, p := range places {
		kept := src.list[p.Document].row.Kept
		p.Page = passage.PageAt(kept.Pages, p.Offset)
		if p.Inside && len(kept.Sections) > 0 {
			p.Heading = passage.HeadingAt(kept.Sections, p.Offset)
		}
	}
	return nil
}

// countedChunks is in how many of the best chunks tokens are looked for that are
// counted. With 64, a search takes half as long again.
const countedChunks = 32

// countTokens returns an aggregation that counts the chunks with each token of
// some leaves, of those that the best chunks have. It is empty if there is at most
// one token.
func countTokens(leaves []*leaf) object {
	tokens := []string{}
	for _, l := range leaves {
		for _, p := range l.patterns {
			tokens = append(tokens, p.tokens...)
		}
	}
	slices.Sort(tokens)
	if tokens = slices.Compact(tokens); len(tokens) < 2 {
		return object{}
	}
	return object{"best": object{"sampler": object{"shard_size": countedChunks}, "aggs": object{
		"tokens": object{"significant_text": object{"field": "tokens", "include": tokens, "size": len(tokens), "min_doc_count": 1, "percentage": object{}}}}}}
}

// tokenCounts are the counts of countTokens.
type tokenCounts struct {
	chunks    int            // all of them
	with      map[string]int // by token
	commonest int            // the greatest of with
}

// tokenCounts decodes the aggregation of countTokens.
func (r *result) tokenCounts() tokenCounts {
	var agg struct {
		Tokens struct {
			Count   int `json:"bg_count"`
			Buckets []struct {
				Key   string `json:"key"`
				Count int    `json:"bg_count"`
			} `json:"buckets"`
		} `json:"tokens"`
	}
	c := tokenCounts{with: map[string]int{}}
	if json.Unmarshal(r.Aggregations["best"], &agg) != nil {
		return c
	}
	c.chunks = agg.Tokens.Count
	for _, b := range agg.Tokens.Buckets {
		c.with[b.Key] = b.Count
		c.commonest = max(c.commonest, b.Count)
	}
	return c
}

// weight returns the weight of a leaf in the ranking. That of a phrase is the one
// of its rarest token. A token that is not in the best chunks has the weight of a
// common one.
func (c tokenCounts) weight(l *leaf) float32 {
	n := 0
	for _, p := range l.patterns {
		least := c.chunks
		for _, t := range p.tokens {
			n, ok := c.with[t]
			if !ok {
				n = c.commonest
			}
			least = min(least, n)
		}
		n += least
	}
	return float32(l.weight * relevance.IDF(c.chunks, min(n, c.chunks)))
}
