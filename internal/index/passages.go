package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"knowhow/internal/document"
	"knowhow/internal/passage"
	"knowhow/internal/relevance"
	"knowhow/internal/search"
)

// passages returns the passages of the documents of a page; see [passage.Choose].
func (e *evaluator) passages(ctx context.Context, list []ranked, m *matched, budget int) ([][]search.Passage, error) {
	best, err := e.bestChunks(ctx, list, m)
	if err != nil {
		return nil, err
	}
	hits := make(map[int64]int, len(list)) // by document
	for i, r := range list {
		hits[r.doc] = i
	}
	chunks := make([]passage.Chunk, len(best))
	for i, r := range best {
		chunks[i] = passage.Chunk{Number: i, Document: hits[r.doc], Score: r.score}
	}
	return passage.Choose(ctx, &passageSource{e, list, best}, len(list), chunks, e.conditions(m.leaves, 0), budget)
}

// A passageSource reads the documents of a page of results.
type passageSource struct {
	e            *evaluator
	list, chunks []ranked // of the page, and those that passages are made of
}

// Contents reads the rows of chunks.
func (s *passageSource) Contents(ctx context.Context, chunks []passage.Chunk) ([]passage.Content, error) {
	out, rows := make([]passage.Content, len(chunks)), make([]int64, len(chunks))
	for i, c := range chunks {
		rows[i] = s.chunks[c.Number].chunk
	}
	return out, collect(ctx, s.e.tx, func(rows *sql.Rows) error {
		var i int
		var c passage.Content
		err := rows.Scan(&i, &c.Offset, &c.Length, &c.Heading, &c.TextSize, &c.Lang)
		if err == nil {
			out[i] = c
		}
		return err
	}, chunkRowsQuery, jsonList(rows))
}

const chunkRowsQuery = `SELECT j.key, c.off, c.len, c.heading, d.text_size, d.lang
	FROM json_each(?) j CROSS JOIN chunks c ON c.id=j.value CROSS JOIN docs d ON d.id=c.id>>20`

// Window reads a part of the text of a chunk's document.
func (s *passageSource) Window(ctx context.Context, c passage.Chunk, from, to int64) (string, error) {
	return window(ctx, s.e.tx, s.chunks[c.Number].doc, from, to)
}

// Locate sets the pages and the headings of passages.
func (s *passageSource) Locate(ctx context.Context, places []passage.Place) error {
	var all []byte // for each place: the document, the offset, and 1 if its heading is to be read
	for _, p := range places {
		inside := 0
		if p.Inside {
			inside = 1
		}
		all = fmt.Appendf(all, ",[%d,%d,%d]", s.list[p.Document].doc, p.Offset, inside)
	}
	all[0] = '['
	sections := map[int][]document.Section{} // by document
	return collect(ctx, s.e.tx, func(rows *sql.Rows) error {
		var i int
		var page sql.NullString
		var body sql.RawBytes
		if err := rows.Scan(&i, &page, &body); err != nil {
			return err
		}
		p := places[i]
		p.Page = page.String
		if body == nil {
			return nil
		}
		list, ok := sections[p.Document]
		if !ok {
			if err := json.Unmarshal(body, &list); err != nil {
				return err
			}
			sections[p.Document] = list
		}
		p.Heading = passage.HeadingAt(list, p.Offset)
		return nil
	}, placesQuery, string(append(all, ']')))
}

// placesQuery reads the page and the sections of places in texts.
const placesQuery = `SELECT j.key, (SELECT p.label FROM pages p WHERE p.doc=j.value->>0 AND p.off<=j.value->>1 ORDER BY p.off DESC LIMIT 1), s.body
	FROM json_each(?) j LEFT JOIN sections s ON j.value->>2 AND s.id=j.value->>0`

// bestChunks returns the best chunks of some documents, best first. Of a
// document without a chunk that matches, it returns the first one.
func (e *evaluator) bestChunks(ctx context.Context, list []ranked, m *matched) ([]ranked, error) {
	rows := make([]int64, len(list))
	for i, r := range list {
		rows[i] = r.doc
	}
	slices.Sort(rows)
	within, err := e.view.Rows(rows)
	if err != nil {
		return nil, err
	}
	var best []ranked
	if len(m.leaves) > 0 {
		leaves := leavesOf(m.leaves)
		hits, err := e.search.TopChunks(ctx, leaves, within, passage.MaxChunks)
		if err != nil && !e.timedOut(ctx, err) {
			return nil, err
		}
		if err := e.search.PreferNear(hits[:min(len(hits), relevance.NearPassages)], leaves); err != nil {
			return nil, err
		}
		for _, h := range hits {
			best = append(best, ranked{doc: h.Row, chunk: rowOf(h.Row, h.Chunk), score: float64(h.Score)})
		}
	}
	if m.dense != nil {
		fused, err := m.dense.chunks(ctx, rows, best, passageWeight, -1)
		if err != nil && !e.timedOut(ctx, err) {
			return nil, err
		}
		if fused != nil {
			best = fused
		}
	}
	seen := map[int64]bool{}
	for _, r := range best {
		seen[r.doc] = true
	}
	for _, r := range list {
		if !seen[r.doc] {
			best = append(best, ranked{doc: r.doc, chunk: rowOf(r.doc, 0)})
		}
	}
	return best, nil
}
