package opensearch

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/relevance"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Limits of a page.
const (
	maxAlso    = 20  // other documents with the text of a hit that are named
	pageChunks = 5   // chunks of each document that are read for passages; more of those with many good ones
	pageNear   = 200 // nearest chunks of a page whose cosines are computed
	nearBest   = 10  // best chunks of a page whose scores depend on the distances between words
)

// A pageRow is a document of a page with some of its chunks.
type pageRow struct {
	row
	chunks []chunk // that match by words, best first
	other  []chunk // others that were asked for
}

// chunk returns the chunk with a number, or an empty one.
func (r *pageRow) chunk(n int) chunk {
	for _, c := range slices.Concat(r.chunks, r.other) {
		if c.N == n {
			return c
		}
	}
	return chunk{}
}

// rowsOf returns a search for documents with the n best chunks of each and with
// other chunks that have some numbers. Documents that do not meet the conditions are
// left out. out gets the others by number.
func (m *matching) rowsOf(documents []int64, n int, others []int, out map[int64]*pageRow) asked {
	query := object{"bool": object{"filter": append(slices.Clone(m.filter), oneOf("number", documents)),
		"should": slices.Concat(m.texts(n, others), []object{})}}
	return asked{inDocuments, only(object{"size": len(documents), "track_total_hits": false, "query": query},
		rowFields...), func(r *result) error {
		return readRows(r.Hits.Hits, out)
	}}
}

// readRows decodes documents with their chunks. out gets them by number.
func readRows(hits []rawHit, out map[int64]*pageRow) error {
	for _, h := range hits {
		full, err := h.row()
		if err != nil {
			return err
		}
		p := &pageRow{row: full}
		if p.chunks, err = h.chunks("best"); err == nil {
			p.other, err = h.chunks("other")
		}
		if err != nil {
			return err
		}
		if p.ID != "" { // or its fields are so long that they have to be read one by one
			out[p.Number] = p
		}
	}
	return nil
}

// readAlso returns a search for the paths of the documents that match and have the
// text of a document of a page, by number. out gets them by the number of that
// document.
func (m *matching) readAlso(documents []int64, texts map[int64]string, out map[int64][]string) []asked {
	var wanted []string
	for _, n := range documents {
		if t := texts[n]; !strings.HasPrefix(t, unique) {
			wanted = append(wanted, t)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	condition := m.query
	if m.words != nil { // documents with the same text have the same words
		condition = object{"match_all": object{}}
	}
	body := only(object{"size": pageSize, "track_total_hits": false, "sort": []string{"_doc"},
		"query": all(append(slices.Clone(m.filter), condition, oneOf("same_text", wanted))...)}, "number", "path",
		"source_path",
		"title", "same_text")
	return []asked{{inDocuments, body, func(r *result) error {
		rows, err := r.rows()
		slices.SortFunc(rows, func(a, b row) int {
			return cmp.Or(strings.Compare(a.Path, b.Path),
				cmp.Compare(a.Number, b.Number))
		})
		for _, n := range documents {
			for _, o := range rows {
				if o.SameText == texts[n] && o.Number != n && o.Path != "" && len(out[n]) < maxAlso {
					out[n] = append(out[n], document.ResultPath(o.Path, o.SourcePath, o.Title))
				}
			}
		}
		return err
	}}}
}

// Read reads the documents of a page; see [retrieval.Store]. If they were read with the
// candidates, it only asks for documents with the same texts, and for the chunks that are
// nearest in meaning.
func (f *finding) Read(ctx context.Context, r *retrieval.Request, page []retrieval.Document) (
	retrieval.Contents, error) {
	c := &contents{s: f.s, m: f.m, page: page}
	var missing, numbers []int64
	var others []int
	best := 0.0
	for _, d := range page {
		if x := f.rows[d.Number]; x != nil && len(x.chunks) > 0 {
			best = max(best, x.chunks[0].score)
		}
	}
	for _, d := range page {
		x := f.rows[d.Number]
		more := r.Passages > 0 && x != nil && len(x.chunks) == pageChunks && x.ChunkCount > pageChunks &&
			x.chunks[pageChunks-1].score >= passage.LeastScore*best
		if x == nil || more || len(x.chunks) == 0 && x.chunk(max(d.NearChunk, 0)).End == 0 && x.TextSize > 0 {
			missing = append(missing, d.Number)
			if d.Chunk < 0 || d.NearChunk >= 0 {
				others = append(others, max(d.NearChunk, 0))
			}
		}
		numbers = append(numbers, d.Number)
	}
	rows, also := maps.Clone(f.rows), map[int64][]string{}
	var list []asked
	if missing != nil {
		texts := 1
		if r.Passages > 0 {
			texts = passage.MaxChunks
		}
		list = append(list, f.m.rowsOf(missing, texts, others, rows))
	}
	if r.Distinct {
		list = append(list, f.m.readAlso(numbers, f.texts, also)...)
	}
	var hits []rawHit
	if r.Vector != nil && r.Passages > 0 {
		list = append(list, asked{inVectors, f.knn(r, pageNear, []object{oneOf("number", numbers)}),
			func(answer *result) error {
				hits = answer.Hits.Hits
				return nil
			}})
	}
	if err := f.s.searchAll(ctx, list); err != nil {
		return nil, err
	}
	var err error
	if c.near, err = f.nearOfPage(ctx, hits, rows); err != nil {
		return nil, err
	}
	for _, d := range page {
		x := rows[d.Number]
		if x == nil { // removed meanwhile
			x = &pageRow{}
		}
		c.rows, c.also = append(c.rows, x), append(c.also, also[d.Number])
	}
	return c, nil
}

// nearOfPage returns the chunks of some documents that are nearest in meaning, nearest
// first, and adds the texts of the first ones to the documents. Chunks whose vectors belong
// to another state of their document are left out.
func (f *finding) nearOfPage(ctx context.Context, hits []rawHit, rows map[int64]*pageRow) ([]near, error) {
	all, err := nearOf(hits)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(x near) bool { return rows[x.Number] == nil || f.prints[x.Number] != x.Print })
	var documents []int64
	var others []int
	for _, x := range all[:min(len(all), passage.MaxChunks)] {
		if rows[x.Number].chunk(*x.N).End == 0 {
			documents, others = append(documents, x.Number), append(others, *x.N)
		}
	}
	if documents == nil {
		return all, nil
	}
	slices.Sort(documents)
	documents = slices.Compact(documents)
	more := map[int64]*pageRow{}
	if err := f.s.searchAll(ctx, []asked{f.m.rowsOf(documents, 0, others, more)}); err != nil {
		return nil, err
	}
	for number, x := range more {
		with := *rows[number] // may be used for other pages
		with.other = slices.Concat(with.other, x.other)
		rows[number] = &with
	}
	return all, nil
}

// A contents is the documents of a page. It implements [retrieval.Contents].
type contents struct {
	s      *Store
	m      *matching
	page   []retrieval.Document
	rows   []*pageRow
	also   [][]string
	near   []near  // chunks that are nearest in meaning, nearest first
	chunks []chunk // that passages are made of
	places []int   // and their documents
}

// Hits returns the documents in order.
func (c *contents) Hits() []search.Hit {
	out := make([]search.Hit, len(c.rows))
	for i, r := range c.rows {
		if r.ID != "" {
			out[i] = r.hit()
			out[i].Also = c.also[i]
		}
	}
	return out
}

// Chunks returns the best chunks by words, and those that are nearest in meaning.
func (c *contents) Chunks(context.Context) ([]retrieval.Chunk, error) {
	type placed struct {
		chunk
		place int
	}
	var all []placed
	for i, r := range c.rows {
		for _, x := range r.chunks {
			all = append(all, placed{x, i})
		}
	}
	byScore := func(a, b placed) int { return cmp.Compare(b.score, a.score) }
	slices.SortStableFunc(all, byScore)
	near := c.m.nearness()
	for i, x := range all[:min(len(all), nearBest)] {
		all[i].score += near(x.Text, analysis.LanguageOf(c.rows[x.place].Lang))
	}
	slices.SortStableFunc(all, byScore)
	var out []retrieval.Chunk
	for _, x := range all[:min(len(all), passage.MaxChunks)] {
		c.chunks, c.places = append(c.chunks, x.chunk), append(c.places, x.place)
		out = append(out, retrieval.Chunk{Document: c.page[x.place].Number, Number: x.N, Score: x.score})
	}
	for i, x := range c.near {
		at := slices.IndexFunc(out, func(o retrieval.Chunk) bool { return o.Document == x.Number && o.Number == *x.N })
		if at < 0 {
			place := slices.IndexFunc(c.page, func(d retrieval.Document) bool { return d.Number == x.Number })
			text := c.rows[place].chunk(*x.N)
			if i >= passage.MaxChunks || text.End == 0 {
				continue
			}
			at = len(out)
			c.chunks, c.places = append(c.chunks, text), append(c.places, place)
			out = append(out, retrieval.Chunk{Document: x.Number, Number: *x.N})
		}
		out[at].Cosine, out[at].HasCosine = x.cosine, true
	}
	return out, nil
}

// nearness returns a function that returns what the score of a chunk is raised by for
// words that follow each other in the query and stand close together in its text.
func (m *matching) nearness() func(text string, l analysis.Language) float64 {
	leafOf := map[string]int{} // by token
	for i, l := range m.leaves {
		for _, p := range l.patterns {
			if len(p.tokens) == 1 && !p.prefix && l.match == nil {
				leafOf[p.tokens[0]] = i
			}
		}
	}
	return func(text string, language analysis.Language) (bonus float64) {
		if len(m.leaves) < 2 {
			return 0
		}
		positions, at := make([][]uint32, len(m.leaves)), uint32(0)
		for x := range analysis.Analyze(text, language) {
			if x.Token != "" && !x.Beside {
				at++
			}
			if l, ok := leafOf[x.Token]; ok {
				positions[l] = append(positions[l], at)
			}
		}
		for l := range m.leaves[1:] {
			bonus += float64(relevance.Near(positions[l], positions[l+1],
				min(m.weight(m.leaves[l]), m.weight(m.leaves[l+1]))))
		}
		return bonus
	}
}

// Beginnings returns the texts of chunks that represent documents.
func (c *contents) Beginnings(_ context.Context, places []int) ([]string, error) {
	out := make([]string, len(places))
	for i, p := range places {
		out[i] = document.Truncate(c.first(p).Text, passage.MaxChunk)
	}
	return out, nil
}

// first returns the chunk that represents a document: the best one by words, or the
// nearest one in meaning, or the first one.
func (c *contents) first(place int) chunk {
	if r := c.rows[place]; len(r.chunks) > 0 {
		return r.chunks[0]
	}
	return c.rows[place].chunk(max(c.page[place].NearChunk, 0))
}

// Conditions returns the conditions on words.
func (c *contents) Conditions() (all, text, title []passage.Condition) {
	return conditions(c.m.leaves, "", c.m.weight), conditions(c.m.leaves, "title", c.m.weight),
		conditions(c.m.leaves, "content", c.m.weight)
}

// chunkOf returns a chunk that passages are made of.
func (c *contents) chunkOf(x passage.Chunk) chunk {
	if x.Number < 0 {
		return c.first(-1 - x.Number)
	}
	return c.chunks[x.Number]
}

// Contents returns chunks with their texts.
func (c *contents) Contents(_ context.Context, chunks []passage.Chunk) ([]passage.Content, error) {
	out := make([]passage.Content, len(chunks))
	for i, x := range chunks {
		k, r := c.chunkOf(x), c.rows[x.Document]
		out[i] = passage.Content{Offset: int64(k.Offset), Length: int64(len(k.Text)), TextSize: r.TextSize,
			Heading: k.Heading, Lang: r.Lang, Text: document.Truncate(k.Text, passage.MaxChunk), Start: int64(k.Offset)}
		if k.Around != "" {
			out[i].Text, out[i].Start = k.Around, int64(k.Offset-k.Before)
		}
	}
	return out, nil
}

// Locate sets the pages and headings of passages.
func (c *contents) Locate(_ context.Context, places []passage.Place) error {
	for _, p := range places {
		r := c.rows[p.Document]
		for _, k := range slices.Concat(r.chunks, r.other) {
			if int64(k.Offset-passage.Around) <= p.Offset && p.Offset <= int64(k.End) {
				p.Page = passage.PageAt(k.Pages, p.Offset)
				if p.Inside && len(k.Sections) > 0 {
					p.Heading = passage.HeadingAt(k.Sections, p.Offset)
				}
				break
			}
		}
	}
	return nil
}

// ReadChunks reads chunks with their documents with one request; see
// [retrieval.ChunkStore].
func (f *finding) ReadChunks(ctx context.Context, _ *retrieval.Request, chunks []retrieval.Chunk) (
	[]search.ChunkHit, error) {
	wanted := map[int64][]int{}
	for _, c := range chunks {
		wanted[c.Document] = append(wanted[c.Document], c.Number)
	}
	rows := map[int64]*pageRow{}
	var list []asked
	for document, numbers := range wanted {
		list = append(list, f.m.rowsOf([]int64{document}, 0, numbers, rows))
	}
	if err := f.s.searchAll(ctx, list); err != nil {
		return nil, err
	}
	var out []search.ChunkHit
	for _, c := range chunks {
		r := rows[c.Document]
		if r == nil || c.Number >= r.ChunkCount {
			continue // removed meanwhile
		}
		k := r.chunk(c.Number)
		out = append(out, search.ChunkHit{Record: *r.record(), Chunk: c.Number,
			Text: document.Truncate(k.Text, passage.MaxChunk), Heading: k.Heading,
			Page: passage.PageAt(k.Pages, int64(k.Offset)), Score: c.Score})
	}
	return out, nil
}
