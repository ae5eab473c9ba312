package datasetsearch

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/match"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

var _ retrieval.Store = (*evaluator)(nil)

// languages are those that the words of datasets are stemmed in.
var languages = []analysis.Language{analysis.English}

// An evaluator evaluates one search over one catalog. It is not safe for concurrent
// use.
type evaluator struct {
	s       *Service
	c       *catalog
	search  *segment.Search
	matcher *match.Matcher
	vectors *queryVectors // nil until they are needed
	m       *matched      // what the request that was gathered last matches
}

// newEvaluator returns an evaluator, whose search must be ended.
func newEvaluator(s *Service, c *catalog) *evaluator {
	e := &evaluator{s: s, c: c, search: c.words.Begin(), m: &matched{}}
	e.matcher = &match.Matcher{Words: c.words, Search: e.search, Languages: languages, Fields: e,
		Now: time.Now()}
	return e
}

// A matched is what a request matches.
type matched struct {
	match.Matched
	near  []near // best documents by meaning, each with its best part
	added bool   // documents without a word of the query are among what it finds
}

// allowed returns the documents that meet the conditions of a query beside its text and
// its labels. The language of a document is not known, and neither are its options (see
// [query.Text.Code]) unless they are signs.
func (e *evaluator) allowed(ctx context.Context, q search.Query) (segment.Docs, error) {
	docs := e.c.words.All()
	if q.Langs != nil {
		return e.c.words.None(), nil
	}
	for _, tag := range q.Tags {
		if label, ok := document.TagLabel(tag); !ok || label != e.s.label {
			return e.c.words.None(), nil
		}
	}
	for _, option := range q.Text.Options() {
		sign, ok := analysis.OptionSign(option)
		if !ok {
			return e.c.words.None(), nil
		}
		some, err := e.matcher.Signed(ctx, sign)
		if err != nil {
			return nil, err
		}
		docs.And(some)
	}
	if filter := q.Text.Filter(); filter != nil {
		some, err := e.matcher.Eval(ctx, filter)
		if err != nil {
			return nil, err
		}
		docs.And(some.Docs)
	}
	return docs, nil
}

// match returns the documents that match a request by words.
func (e *evaluator) match(ctx context.Context, r *retrieval.Request) (*matched, error) {
	m := &matched{}
	allowed, err := e.allowed(ctx, r.Query)
	switch {
	case err != nil:
	case r.Plan.Everything():
		m.Docs, m.Count = allowed, allowed.Count()
	default:
		m.Matched, err = e.matcher.Match(ctx, r.Plan, func(docs segment.Docs) (int, error) {
			docs.And(allowed)
			return docs.Count(), nil
		})
	}
	return m, err
}

// Gather implements [retrieval.Store].
func (e *evaluator) Gather(ctx context.Context, r *retrieval.Request) (*retrieval.Candidates, error) {
	m, err := e.match(ctx, r)
	if err != nil {
		return nil, err
	}
	e.m = m
	if r.Vector != nil {
		if err := e.addMeaning(ctx, r); err != nil {
			return nil, err
		}
	}
	c := &retrieval.Candidates{Total: m.Count, Complete: m.CompleteCount, Missing: m.Missing}
	if c.Documents, err = e.list(ctx, r); err != nil {
		return nil, err
	}
	if r.Vector != nil {
		c.Full = passage.Full(e.matcher.Conditions(m.Ranking(), 0))
	}
	if r.Facets != nil {
		c.Facets, err = e.facets(ctx, m.Docs, r.Facets)
	}
	return c, err
}

// list returns the first documents that match; see [retrieval.Candidates].
func (e *evaluator) list(ctx context.Context, r *retrieval.Request) ([]retrieval.Document, error) {
	m, keys, n := e.m, r.Sort, min(r.Depth, e.m.Count)
	if n == 0 {
		return nil, nil
	}
	byScore := func(k search.SortKey) bool { return k.Field == "score" }
	ranked := len(m.Leaves) > 0 || m.added
	if ranked && (len(keys) == 0 || byScore(keys[0]) && keys[0].Desc) {
		return e.rank(ctx, r)
	}
	var order []segment.Hit
	if ranked && slices.ContainsFunc(keys, byScore) {
		var err error
		if order, err = e.search.Top(ctx, match.LeavesOf(m.Ranking()), m.Docs, m.Count); err != nil {
			return nil, err
		}
	}
	members, err := e.sorted(ctx, m.Docs, keys, order, n)
	var out []retrieval.Document
	for _, p := range members {
		out = append(out, retrieval.Document{Number: p.row, Chunk: -1, NearChunk: -1})
	}
	return out, err
}

// rank returns the first documents by relevance.
func (e *evaluator) rank(ctx context.Context, r *retrieval.Request) ([]retrieval.Document, error) {
	m := e.m
	leaves := match.LeavesOf(m.Ranking())
	hits, err := e.search.Top(ctx, leaves, m.Docs, max(r.Depth, 2)) // a title counts only beside another document
	if err != nil {
		return nil, err
	}
	if err := e.search.PreferNear(hits[:min(len(hits), retrieval.NearHits)], leaves); err != nil {
		return nil, err
	}
	var titled []segment.Hit
	if r.Plan.Titles != nil {
		docs, err := e.c.words.Titled(m.Docs, r.Plan.Titles...)
		if err != nil {
			return nil, err
		}
		if docs.Count() > 0 {
			if titled, err = e.search.Top(ctx, leaves, docs, retrieval.TitleHits); err != nil {
				return nil, err
			}
		}
	}
	seen := make(map[int64]bool, len(hits))
	isTitled := map[int64]bool{}
	for _, h := range titled {
		isTitled[h.Row] = true
	}
	var out []retrieval.Document
	for i, h := range slices.Concat(hits, titled) {
		if seen[h.Row] {
			continue
		}
		seen[h.Row] = true
		d := retrieval.Document{Number: h.Row, Score: float64(h.Score), Chunk: h.Chunk, NearChunk: -1, Same: true,
			Titled: isTitled[h.Row], Complete: m.Complete != nil && h.In(m.Complete),
			Quoted: m.Quoted != nil && h.In(m.Quoted)}
		if i < retrieval.NearHits && len(r.Plan.Names) > 0 {
			table, doc := e.c.at(h.Row)
			key := retrieval.NameKey(e.value(e.c.tables[table], doc, "filename"))
			d.Named = key != "" && slices.Contains(r.Plan.Names, key)
		}
		out = append(out, d)
	}
	if out, err = e.addCosines(out); err != nil {
		return nil, err
	}
	for _, d := range out {
		seen[d.Number] = true
	}
	if len(out) >= r.Depth || len(out) >= m.Count {
		return out, nil
	}
	rows, err := e.c.words.RowsOf(m.Docs)
	for _, row := range rows {
		if len(out) >= r.Depth {
			break
		}
		if !seen[row] {
			out = append(out, retrieval.Document{Number: row, Chunk: -1, NearChunk: -1})
		}
	}
	return out, err
}

// A near is a document that is near to a query in meaning, and its best part.
type near struct {
	row        int64
	table, doc int
	part       int
	cosine     float64
}

// queryVectors are the vectors of a query for each table. They are computed in the
// background, because a model may take long when it is used for the first time.
type queryVectors struct {
	done chan struct{} // closed when of is there
	of   [][]float32   // nil for a table without one
}

// Limits of the vectors of queries.
const (
	vectorWait   = time.Second // how long a search waits for them
	vectorTime   = time.Minute // how long they may take
	maxComputing = 4           // queries whose vectors are computed at the same time
)

// vector returns one of the vectors of a text, nil if there is none within limit. Gather
// uses those of all tables.
func (e *evaluator) vector(ctx context.Context, text string, limit time.Duration) ([]float32, error) {
	if e.vectors == nil {
		if !e.s.computing.TryAcquire(1) {
			return nil, nil
		}
		v := &queryVectors{done: make(chan struct{}), of: make([][]float32, len(e.c.tables))}
		e.vectors = v
		tables := e.c.tables
		e.s.start(func(ctx context.Context) {
			defer e.s.computing.Release(1)
			defer close(v.done)
			limited, cancel := context.WithTimeout(ctx, vectorTime)
			defer cancel()
			made := map[string][]float32{}
			for i, t := range tables {
				var note string
				var err error
				if v.of[i], note, err = t.set.QueryVector(limited, text, made); err != nil {
					return
				}
				if note != "" {
					e.s.note(t.set.ID(), note)
				}
			}
		})
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-e.vectors.done:
	case <-timer.C:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for _, v := range e.vectors.of {
		if v != nil {
			return v, nil
		}
	}
	return nil, nil
}

// addMeaning adds to what matches the documents that are near in meaning.
func (e *evaluator) addMeaning(ctx context.Context, r *retrieval.Request) error {
	m := e.m
	allowed, err := e.allowed(ctx, r.Query)
	if err != nil {
		return err
	}
	var all []near
	for i, t := range e.c.tables {
		v := e.vectors.of[i]
		if v == nil {
			continue
		}
		best := map[int]bool{}
		err := t.set.Nearest(ctx, v, 4*retrieval.Fused, func(record int, cosine float64) {
			doc, part := t.set.PartOf(record)
			if best[doc] || !allowed.Has(i, doc) {
				return
			}
			best[doc] = true
			all = append(all, near{t.base + int64(doc), i, doc, part, cosine})
		})
		if err != nil {
			return err
		}
	}
	slices.SortStableFunc(all, func(a, b near) int { return cmp.Compare(b.cosine, a.cosine) })
	all = all[:min(len(all), retrieval.Fused)]
	added := 0
	for _, h := range all {
		in := m.Docs.Has(h.table, h.doc)
		if !in && r.Near > 0 && h.cosine >= r.Near && added < retrieval.NearDocs {
			if m.Docs[h.table] == nil {
				m.Docs[h.table] = segment.NewBits(e.c.tables[h.table].set.Originals())
			}
			m.Docs[h.table].Set(h.doc)
			added++
			in = true
		}
		if in {
			m.near = append(m.near, h)
		}
	}
	m.Count += added
	m.added = added > 0
	return nil
}

// maxCompared is how many parts of a document are compared with a query.
const maxCompared = 256

// addCosines adds to documents that are ranked by words their cosines, and the nearest
// documents that are not among them.
func (e *evaluator) addCosines(list []retrieval.Document) ([]retrieval.Document, error) {
	if len(e.m.near) == 0 {
		return list, nil
	}
	at := map[int64]int{}
	for i, d := range list[:min(len(list), retrieval.Fused)] {
		at[d.Number] = i
		table, doc := e.c.at(d.Number)
		v := e.vectors.of[table]
		if v == nil {
			continue
		}
		set := e.c.tables[table].set
		var records []int
		for _, r := range set.Parts(doc) {
			if records = append(records, int(r)); len(records) == maxCompared {
				break
			}
		}
		cosines, err := set.Cosines(v, records)
		if err != nil {
			return nil, err
		}
		for k, c := range cosines {
			if x := &list[i]; !math.IsNaN(c) && (x.NearChunk < 0 || c > x.Cosine) {
				x.NearChunk, x.Cosine = k, c
			}
		}
	}
	for i, d := range list {
		at[d.Number] = i
	}
	for _, h := range e.m.near {
		i, ok := at[h.row]
		if !ok {
			i = len(list)
			list = append(list, retrieval.Document{Number: h.row, Chunk: -1, NearChunk: -1})
		}
		if x := &list[i]; x.NearChunk < 0 || h.cosine > x.Cosine {
			x.NearChunk, x.Cosine = h.part, h.cosine
		}
	}
	return list, nil
}

// Similar implements [retrieval.Store].
func (e *evaluator) Similar(ctx context.Context, words []string) ([][]string, error) {
	out := make([][]string, len(words))
	for i, w := range words {
		m, err := e.matcher.Eval(ctx, query.Term{Text: w})
		if err != nil {
			return nil, err
		}
		if m.Docs.Count() > 0 {
			continue
		}
		w = analysis.Lower(w)
		first, _ := utf8.DecodeRuneInString(w)
		edits := 1
		if utf8.RuneCountInString(w) >= retrieval.FarLetters {
			edits = 2
		}
		near, err := e.c.words.WordsNear(ctx, w, edits, 0)
		if err != nil {
			return nil, err
		}
		for _, x := range near {
			if r, _ := utf8.DecodeRuneInString(x.Text); r == first && len(out[i]) < retrieval.SimilarEach {
				out[i] = append(out[i], x.Text)
			}
		}
	}
	return out, nil
}

// contents are the documents of a page. It implements [retrieval.Contents] without
// passages.
type contents struct {
	e    *evaluator
	list []retrieval.Document
	hits []search.Hit
}

// Read implements [retrieval.Store].
func (e *evaluator) Read(
	ctx context.Context, _ *retrieval.Request, page []retrieval.Document,
) (retrieval.Contents, error) {
	c := &contents{e: e, list: page}
	for _, d := range page {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		table, doc := e.c.at(d.Number)
		c.hits = append(c.hits, e.hit(e.c.tables[table], doc))
	}
	return c, nil
}

// hit returns a document without its digest and score.
func (e *evaluator) hit(t *table, doc int) search.Hit {
	title, where, _ := t.name(doc)
	f := factsOf(where)
	x := e.c.texts.get(t, doc)
	return search.Hit{
		ID: string(t.ids[doc][:]), Path: e.c.path(t, doc), Title: title, URL: f.url, Host: f.host,
		Filename: f.filename, FileType: f.fileType, MIMEType: f.mimeType,
		Size: int64(len(x.text)), TextHash: x.hash, Labels: []string{e.s.label},
	}
}

// Hits implements [retrieval.Contents].
func (c *contents) Hits() []search.Hit { return c.hits }

// errNoPassages is the error of a request for passages, which the service does not have.
var errNoPassages = fmt.Errorf("datasets have no passages: %w", errkind.Unsupported)

// Chunks implements [retrieval.Contents].
func (c *contents) Chunks(context.Context) ([]retrieval.Chunk, error) { return nil, errNoPassages }

// Contents implements [passage.Source].
func (c *contents) Contents(context.Context, []passage.Chunk) ([]passage.Content, error) {
	return nil, errNoPassages
}

// Locate implements [passage.Source].
func (c *contents) Locate(context.Context, []passage.Place) error { return errNoPassages }

// Beginnings implements [retrieval.Contents].
func (c *contents) Beginnings(_ context.Context, places []int) ([]string, error) {
	var texts []string
	for _, place := range places {
		d := c.list[place]
		table, doc := c.e.c.at(d.Number)
		t := c.e.c.tables[table]
		part, size := d.Chunk, passage.MaxChunk
		if part < 0 {
			part, size = 0, passage.StartOfText
		}
		record := t.set.Document(int(t.set.Parts(doc)[part]))
		texts = append(texts, sanitize.Text(document.Truncate(record.Content, size)))
	}
	return texts, nil
}

// Conditions implements [retrieval.Contents].
func (c *contents) Conditions() (all, text, title []passage.Condition) {
	of, leaves := c.e.matcher.Conditions, c.e.m.Leaves
	return of(leaves, 0), of(leaves, segment.Only(segment.Title)), of(leaves, segment.Only(segment.Text))
}
