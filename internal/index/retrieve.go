package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/match"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

var _ retrieval.ChunkStore = (*evaluator)(nil)

// Search returns one page of the documents that match a query; see
// [search.Service] and [retrieval.Search].
func (x *Index) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	if err := q.Validate(facetFields[:]); err != nil {
		return nil, err
	}
	if q.Geo != nil {
		return nil, fmt.Errorf("geo: no document of this index has a location: %w", errkind.Unsupported)
	}
	var page *search.Page
	err := x.searching(ctx, q.Text.String(), q.Labels, func(e *evaluator) error {
		var err error
		page, err = retrieval.Search(ctx, e, q, e.options())
		return err
	})
	if err != nil {
		return nil, err
	}
	if page.Total > 0 && q.Start == 0 {
		x.counts.add(q.Text.Words(), q.Labels)
	}
	return page, nil
}

// SearchChunks returns the chunks that match a query best; see
// [retrieval.SearchChunks]. By meaning, the error is of kind Unsupported for a text in
// a language that the embedder does not know.
func (x *Index) SearchChunks(ctx context.Context, q search.ChunkQuery) (*search.ChunkPage, error) {
	if err := (search.Query{Text: q.Text, Num: q.Top}).Validate(nil); err != nil {
		return nil, err
	}
	if v := x.embedder; v != nil && q.Ranking == search.ByMeaning && embed.Foreign(v, q.Text.Plain()) {
		return nil, fmt.Errorf("the model does not know the language of this text: search by words: %w",
			errkind.Unsupported)
	}
	var page *search.ChunkPage
	err := x.searching(ctx, q.Text.String(), q.Labels, func(e *evaluator) error {
		var err error
		page, err = retrieval.SearchChunks(ctx, e, q, e.options())
		return err
	})
	return page, err
}

// options returns what a search needs beside the evaluator.
func (e *evaluator) options() retrieval.Options {
	o := retrieval.Options{Languages: e.matcher.Languages, Wait: e.x.embedTime, Log: e.x.log}
	if e.x.embedder == nil {
		return o
	}
	o.Vector = func(ctx context.Context, text string, limit time.Duration) ([]float32, error) {
		if err := e.loadVectors(ctx); err != nil || e.vectors.Empty() && e.x.computeTime == 0 {
			return nil, err
		}
		return e.x.vectors.Query(ctx, text, min(limit, time.Until(e.until)))
	}
	return o
}

// matched is what a query matches.
type matched struct {
	match.Matched
	also  map[int64][]int64 // by row: the other documents that match and have the same text
	dense *dense            // nil if the query is ranked by words only
}

// Gather implements [retrieval.Store].
func (e *evaluator) Gather(ctx context.Context, r *retrieval.Request) (*retrieval.Candidates, error) {
	limited, cancel := context.WithDeadlineCause(ctx, e.until, errTooLong)
	defer cancel()
	c := &retrieval.Candidates{}
	err := e.gatherAll(limited, r, c)
	if err != nil && !e.timedOut(limited, err) {
		return nil, err
	}
	if r.Facets != nil {
		if c.Facets, err = e.facetsInTime(ctx, r); err != nil {
			return nil, err
		}
	}
	c.Partial = e.ended || e.view.Incomplete
	return c, nil
}

// gatherAll gathers candidates except facets.
func (e *evaluator) gatherAll(ctx context.Context, r *retrieval.Request, c *retrieval.Candidates) error {
	e.m = &matched{}
	if r.Plan == nil {
		return e.gatherNearest(ctx, r, c)
	}
	m, err := e.match(ctx, r)
	if err != nil {
		return err
	}
	e.m = m
	if r.Vector != nil {
		if err := e.addMeaning(ctx, m, r); err != nil && !e.timedOut(ctx, err) {
			return err
		}
	}
	if r.Distinct {
		if err := e.collapse(ctx, m, r.Labels); err != nil && !e.timedOut(ctx, err) {
			return err
		}
	}
	if m.dense != nil {
		if err := m.dense.keepFound(m); err != nil {
			return err
		}
	}
	c.Total, c.Complete, c.Missing = m.Count, m.CompleteCount, m.Missing
	if c.Documents, err = e.list(ctx, m, r); err != nil && !e.timedOut(ctx, err) {
		return err
	}
	if r.Vector != nil {
		c.Full = passage.Full(e.matcher.Conditions(m.Ranking(), 0))
	}
	if r.Chunks > 0 {
		c.Chunks, err = e.gatherChunks(ctx, m, r)
	}
	return err
}

// facetTime is the least time for counting, after a search that has used up its
// time.
const facetTime = 200 * time.Millisecond

// facetsInTime counts the documents that match, within the time that a search may
// take.
func (e *evaluator) facetsInTime(ctx context.Context, r *retrieval.Request) (*search.FacetCounts, error) {
	if e.m.Docs == nil { // nothing was found in time
		return &search.FacetCounts{}, nil
	}
	if least := time.Now().Add(facetTime); e.until.Before(least) {
		e.until = least
	}
	limited, cancel := context.WithDeadlineCause(ctx, e.until, errTooLong)
	defer cancel()
	counts, err := e.facets(limited, e.m, r.Query)
	if err != nil && e.timedOut(limited, err) {
		return cmp.Or(counts, &search.FacetCounts{}), nil
	}
	return counts, err
}

// match returns the documents that match a request by words.
func (e *evaluator) match(ctx context.Context, r *retrieval.Request) (*matched, error) {
	p, c := r.Plan, conditionsOf(r.Query)
	m := &matched{}
	if p.Everything() {
		every, err := e.every(ctx, c)
		if err != nil {
			return m, err
		}
		m.Docs = every.Clone()
		m.Count = m.Docs.Count()
		return m, nil
	}
	var err error
	m.Matched, err = e.matcher.Match(ctx, p, func(docs segment.Docs) (int, error) { return e.within(ctx, docs, c) })
	return m, err
}

// list returns the first documents that match; see retrieval.Candidates.
func (e *evaluator) list(ctx context.Context, m *matched, r *retrieval.Request) ([]retrieval.Document, error) {
	keys, n := r.Sort, min(r.Depth, m.Count)
	if n == 0 {
		return nil, nil
	}
	if len(m.Leaves) == 0 && (m.dense == nil || !m.dense.added) {
		if len(keys) == 0 {
			keys = []search.SortKey{{Field: "timestamp", Desc: true}}
		}
		return e.sorted(ctx, m, keys, nil, n)
	}
	byScore := func(k search.SortKey) bool { return k.Field == "score" }
	if len(keys) == 0 || byScore(keys[0]) && keys[0].Desc {
		return e.rank(ctx, m, r)
	}
	var order []segment.Hit
	if slices.ContainsFunc(keys, byScore) {
		var err error
		if order, err = e.search.Top(ctx, match.LeavesOf(m.Ranking()), m.Docs, m.Count); err != nil {
			return nil, err
		}
	}
	return e.sorted(ctx, m, keys, order, n)
}

// candidate returns the candidate for a hit by words.
func candidate(h segment.Hit) retrieval.Document {
	return retrieval.Document{Number: h.Row, Score: float64(h.Score), Chunk: h.Chunk, NearChunk: -1}
}

// rank returns the first documents by relevance.
func (e *evaluator) rank(ctx context.Context, m *matched, r *retrieval.Request) ([]retrieval.Document, error) {
	leaves := match.LeavesOf(m.Ranking())
	hits, err := e.search.Top(ctx, leaves, m.Docs, max(r.Depth, 2)) // a title counts only beside another document
	if err != nil && !e.timedOut(ctx, err) {
		return nil, err
	}
	if err := e.search.PreferNear(hits[:min(len(hits), retrieval.NearHits)], leaves); err != nil {
		return nil, err
	}
	titled, err := e.titled(ctx, m, r.Plan, leaves)
	if err != nil && !e.timedOut(ctx, err) {
		return nil, err
	}
	traits, err := e.traits(ctx, r.Plan, hits[:min(len(hits), retrieval.NearHits)])
	if err != nil && !e.timedOut(ctx, err) {
		return nil, err
	}
	seen := make(map[int64]bool, len(hits))
	var out []retrieval.Document
	for _, h := range hits {
		seen[h.Row] = true
		d := candidate(h)
		d.Complete = m.Complete != nil && h.In(m.Complete)
		d.Quoted = m.Quoted != nil && h.In(m.Quoted)
		d.Named, d.Same = traits[h.Row].named, traits[h.Row].same
		d.Titled = slices.ContainsFunc(titled, func(t segment.Hit) bool { return t.Row == h.Row })
		out = append(out, d)
	}
	for _, h := range titled {
		if !seen[h.Row] {
			seen[h.Row] = true
			d := candidate(h)
			d.Titled = true
			out = append(out, d)
		}
	}
	if m.dense != nil {
		if out, err = m.dense.addCosines(ctx, out); err != nil && !e.timedOut(ctx, err) {
			return nil, err
		}
		for _, d := range out {
			seen[d.Number] = true
		}
	}
	if len(out) >= r.Depth || len(out) >= m.Count {
		return out, nil
	}
	rows, err := e.view.RowsOf(m.Docs)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if len(out) >= r.Depth {
			break
		}
		if !seen[row] {
			out = append(out, retrieval.Document{Number: row, Chunk: -1, NearChunk: -1})
		}
	}
	return out, nil
}

// titled returns the best documents whose title is the query.
func (e *evaluator) titled(
	ctx context.Context, m *matched, p *retrieval.Plan, leaves []*segment.Leaf,
) ([]segment.Hit, error) {
	if p.Titles == nil {
		return nil, nil
	}
	docs, err := e.view.Titled(m.Docs, p.Titles...)
	if err != nil || docs.Count() == 0 {
		return nil, err
	}
	return e.search.Top(ctx, leaves, docs, retrieval.TitleHits)
}

// A trait is what a document is preferred for, beside its words.
type trait struct{ named, same bool }

// traits returns the traits of the documents of hits by their rows.
func (e *evaluator) traits(ctx context.Context, p *retrieval.Plan, hits []segment.Hit) (map[int64]trait, error) {
	if p.Names == nil && p.Language == "" || len(hits) == 0 {
		return nil, nil
	}
	numbers := make([]int64, len(hits))
	for i, h := range hits {
		numbers[i] = h.Row
	}
	out := make(map[int64]trait, len(hits))
	return out, database.Collect(ctx, e.tx, func(rows *sql.Rows) error {
		var row int64
		var lang, filename string
		err := rows.Scan(&row, &lang, &filename)
		out[row] = trait{named: slices.Contains(p.Names, retrieval.NameKey(filename)),
			same: p.Language != "" && (lang == "" || lang == p.Language)}
		return err
	}, traitsQuery, database.List(numbers))
}

const traitsQuery = `SELECT d.id, d.lang, d.filename FROM json_each(?) j CROSS JOIN docs d ON d.id=j.value`

// gatherChunks returns the best chunks of documents that match, and those that are
// nearest in meaning of the same documents and of the nearest ones.
func (e *evaluator) gatherChunks(ctx context.Context, m *matched, r *retrieval.Request) ([]retrieval.Chunk, error) {
	out, err := e.chunksByWords(ctx, m, m.Ranking(), m.Docs, r.Chunks, retrieval.NearHits)
	if err != nil || m.dense == nil {
		return out, err
	}
	var docs []int64
	for _, c := range out {
		docs = append(docs, c.Document)
	}
	for _, h := range m.dense.near {
		docs = append(docs, h.Document)
	}
	slices.Sort(docs)
	return m.dense.addChunks(ctx, out, slices.Compact(docs))
}

// chunksByWords returns the n best chunks of some documents. How close together the
// words stand counts for the best near ones.
func (e *evaluator) chunksByWords(
	ctx context.Context, m *matched, list []*match.Leaf, docs segment.Docs, n, near int,
) ([]retrieval.Chunk, error) {
	if len(list) == 0 {
		return nil, nil
	}
	leaves := match.LeavesOf(list)
	hits, err := e.search.TopChunks(ctx, leaves, docs, n)
	if err != nil && !e.timedOut(ctx, err) {
		return nil, err
	}
	if err := e.search.PreferNear(hits[:min(len(hits), near)], leaves); err != nil {
		return nil, err
	}
	var out []retrieval.Chunk
	for _, h := range hits {
		out = append(out, retrieval.Chunk{Document: h.Row, Number: h.Chunk, Score: float64(h.Score),
			Complete: m.Complete != nil && h.In(m.Complete)})
	}
	return out, nil
}

// gatherNearest gathers the chunks that are nearest in meaning, whatever their words.
func (e *evaluator) gatherNearest(ctx context.Context, r *retrieval.Request, c *retrieval.Candidates) error {
	d, err := e.newDense(ctx, r)
	if d == nil || err != nil {
		return err
	}
	hits, err := e.vectors.Nearest(ctx, d.query, r.Chunks, d.allow)
	for _, h := range hits {
		c.Chunks = append(c.Chunks, retrieval.Chunk{Document: h.Document, Number: h.Chunk, Cosine: h.Score,
			HasCosine: true})
	}
	c.Total = e.vectors.Documents(len(d.query), d.allow)
	return err
}

// Similar implements [retrieval.Store].
func (e *evaluator) Similar(ctx context.Context, words []string) ([][]string, error) {
	limited, cancel := context.WithDeadlineCause(ctx, e.until, errTooLong)
	defer cancel()
	out := make([][]string, len(words))
	for i, w := range words {
		near, err := e.near(limited, w)
		if e.timedOut(limited, err) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out[i] = near
	}
	return out, nil
}

// Read implements [retrieval.Store].
func (e *evaluator) Read(
	ctx context.Context, r *retrieval.Request, list []retrieval.Document,
) (retrieval.Contents, error) {
	c := &contents{e: e, list: list}
	var err error
	if len(r.Sort) > 0 {
		if c.list, err = e.addBestChunks(ctx, list); err != nil {
			return nil, err
		}
	}
	if c.hits, c.pieces, err = e.hitRows(ctx, c.list, len(e.m.Leaves) > 0, r.Passages == 0); err != nil {
		return nil, err
	}
	for i := range c.hits {
		if h := &c.hits[i]; h.ID == "" || !admits(r.Labels, h.Labels[0]) {
			// The segment has a document that it cannot have. If it is not
			// damaged, the database was changed by hand.
			if err := e.view.Verify(); err != nil {
				return nil, err
			}
			*h = search.Hit{}
		}
	}
	return c, e.addAlso(ctx, c.hits, list, e.m.also)
}

// addBestChunks returns documents that are ordered by a field with their best chunks,
// which their digests are made of.
func (e *evaluator) addBestChunks(ctx context.Context, list []retrieval.Document) ([]retrieval.Document, error) {
	leaves := match.LeavesOf(e.m.Ranking())
	if len(leaves) == 0 {
		return list, nil
	}
	places := make(map[int64]int, len(list))
	for i, d := range list {
		places[d.Number] = i
	}
	docs, err := e.view.Rows(slices.Sorted(maps.Keys(places)))
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithDeadlineCause(ctx, e.until, errTooLong)
	defer cancel()
	hits, err := e.search.Top(limited, leaves, docs, len(list))
	if err != nil && !e.timedOut(limited, err) {
		return nil, err
	}
	list = slices.Clone(list)
	for _, h := range hits {
		list[places[h.Row]].Chunk = h.Chunk
	}
	return list, nil
}

// ReadChunks implements [retrieval.ChunkStore].
func (e *evaluator) ReadChunks(
	ctx context.Context, r *retrieval.Request, chunks []retrieval.Chunk,
) ([]search.ChunkHit, error) {
	var hits []search.ChunkHit
	for _, c := range chunks {
		h, label, err := e.readChunk(ctx, c)
		if errors.Is(err, errkind.NotFound) || errors.Is(err, sql.ErrNoRows) || err == nil && !admits(r.Labels, label) {
			// As in Read.
			if err := e.view.Verify(); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		hits = append(hits, h)
	}
	return hits, nil
}
