package opensearch

import (
	"cmp"
	"context"
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

// countedLeaves is how many leaves of a query are counted at most, because each is
// a search.
const countedLeaves = 32

// counts are in how many chunks leaves are, which their weights are computed from.
type counts struct {
	chunks    int           // all of them
	with      map[*leaf]int // chunks with a leaf
	commonest int           // the greatest of with
}

// countLeaves adds searches for the counts of leaves, unless there is only one. Each
// is about one condition, so that OpenSearch finds most counts in its index or in its
// cache.
func (c *counts) countLeaves(r *round, leaves []*leaf) {
	if len(leaves) < 2 {
		return
	}
	c.with = map[*leaf]int{}
	count := func(query object, note func(n int)) {
		r.add(inChunks, object{"size": 0, "track_total_hits": true, "query": query}, func(r *result) error {
			note(r.Hits.Total.Value)
			return nil
		})
	}
	count(object{"match_all": object{}}, func(n int) { c.chunks = n })
	for _, l := range leaves[:min(len(leaves), countedLeaves)] {
		if len(l.chunk) > 0 {
			count(anyOf(l.chunk), func(n int) {
				c.with[l] = n
				c.commonest = max(c.commonest, n)
			})
		}
	}
}

// weight returns the weight of a leaf in the ranking. A leaf that is not counted has
// the weight of a common one.
func (c *counts) weight(l *leaf) float32 {
	n, ok := c.with[l]
	if !ok {
		n = c.commonest
	}
	return float32(l.weight * relevance.IDF(c.chunks, min(n, c.chunks)))
}
