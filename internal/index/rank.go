package index

import (
	"context"
	"database/sql"
	"slices"

	"knowhow/internal/analysis"
	"knowhow/internal/query"
	"knowhow/internal/relevance"
	"knowhow/internal/segment"
)

// Limits of the ranking.
const (
	maxRanked     = 64   // leaves that are used: the rarest
	nearHits      = 50   // best hits for which the distances between the words count
	languageBonus = 0.25 // part of the score, for documents in the language of the question
	titleHits     = 20   // hits whose titles are exactly the query that come first
)

// A ranked is a document with its score and its best chunk.
type ranked struct {
	doc   int64
	chunk int64   // row of the chunk, -1 if the document was not ranked by a chunk
	score float64 // decreases from document to document
}

// rank returns the first need documents of m by relevance, then by number. The
// order of documents does not depend on need.
func (e *evaluator) rank(ctx context.Context, m *matched, text query.Text, need int) ([]ranked, error) {
	leaves := leavesOf(rarest(slices.Clone(m.leaves), maxRanked))
	depth := max(need, 2) // preferTitled orders two or more
	if len(leaves) > 1 {
		depth = max(depth, nearHits)
	}
	if m.dense != nil {
		depth = max(depth, relevance.Fused)
	}
	hits, err := e.search.Top(ctx, leaves, m.docs, depth)
	if err != nil && !e.timedOut(ctx, err) {
		return nil, err
	}
	if err := e.prefer(m, hits, leaves); err != nil {
		return nil, err
	}
	if err := e.preferLanguage(ctx, text, hits[:min(len(hits), nearHits)]); err != nil && !e.timedOut(ctx, err) {
		return nil, err
	}
	if m.dense != nil {
		fused, err := m.dense.rank(ctx, m, hits)
		if err == nil {
			hits = fused
		} else if !e.timedOut(ctx, err) {
			return nil, err
		}
	}
	if hits, err = e.preferTitled(ctx, m, text, leaves, hits); err != nil {
		return nil, err
	}
	hits = hits[:min(len(hits), need)]
	out := make([]ranked, 0, need)
	seen := map[int64]bool{}
	for _, h := range hits {
		seen[h.Row] = true
		out = append(out, ranked{doc: h.Row, chunk: rowOf(h.Row, h.Chunk), score: float64(h.Score)})
	}
	if len(out) >= need || len(out) >= m.n {
		return out, nil
	}
	rows, err := e.view.RowsOf(m.docs)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if len(out) >= need {
			break
		}
		if !seen[row] {
			out = append(out, ranked{doc: row, chunk: -1})
		}
	}
	return out, nil
}

// prefer ranks the best hits again: by how near to each other the words stand, and
// by whether the document has all of them.
func (e *evaluator) prefer(m *matched, hits []segment.Hit, leaves []*segment.Leaf) error {
	best := hits[:min(len(hits), nearHits)]
	if err := e.search.PreferNear(best, leaves); err != nil {
		return err
	}
	if m.complete != nil {
		segment.Prefer(best, m.complete, relevance.CompleteBonus)
	}
	return nil
}

// preferLanguage prefers documents in the language of a question, and those whose
// language is not known: of a document and its translations, those in other
// languages come later.
func (e *evaluator) preferLanguage(ctx context.Context, text query.Text, hits []segment.Hit) error {
	if text.Kind() != query.Words || len(hits) == 0 {
		return nil
	}
	lang := analysis.QuestionLanguage(text.Words(), e.langs)
	if lang == "" {
		return nil
	}
	rows := make([]int64, len(hits))
	for i, h := range hits {
		rows[i] = h.Row
	}
	var same []int64
	err := collect(ctx, e.tx, func(rows *sql.Rows) error {
		var row int64
		err := rows.Scan(&row)
		same = append(same, row)
		return err
	}, languageQuery, jsonList(rows), lang)
	if err != nil || len(same) == 0 || len(same) == len(hits) {
		return err
	}
	docs, err := e.view.Rows(same)
	if err == nil {
		segment.Prefer(hits, docs, languageBonus)
	}
	return err
}

const languageQuery = `SELECT d.id FROM json_each(?) j CROSS JOIN docs d ON d.id=j.value WHERE d.lang IN (?, '') ORDER BY d.id`

// preferTitled puts documents first whose title is the query.
func (e *evaluator) preferTitled(ctx context.Context, m *matched, text query.Text, leaves []*segment.Leaf, hits []segment.Hit) ([]segment.Hit, error) {
	if text.Kind() != query.Words || len(hits) < 2 {
		return hits, nil
	}
	titles := make([][]string, len(e.langs))
	for i, l := range e.langs {
		titles[i] = tokensOf(text.String(), l)
	}
	titled, err := e.view.Titled(m.docs, titles...)
	if err != nil || titled.Count() == 0 {
		return hits, err
	}
	first, err := e.search.Top(ctx, leaves, titled, titleHits)
	if len(first) == 0 || err != nil {
		if e.timedOut(ctx, err) {
			err = nil
		}
		return hits, err
	}
	seen := map[int64]bool{}
	for i := range first {
		first[i].Score += hits[0].Score
		seen[first[i].Row] = true
	}
	rest := slices.DeleteFunc(hits, func(h segment.Hit) bool { return seen[h.Row] })
	return append(first, rest...), nil
}
