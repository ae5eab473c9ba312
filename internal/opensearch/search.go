package opensearch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/vector"
)

var _ search.Service = (*Store)(nil)

// Limits of searches by meaning.
const (
	embedQuery   = 1000 // bytes of a query that are embedded
	nearChunks   = retrieval.Fused
	scoredChunks = 1000   // chunks of the documents by words whose cosines are computed
	allowedDocs  = 10_000 // documents that a search by meaning can be restricted to
	titledBoost  = 1000   // what the score of a document whose title is the query is raised by
	rankedByWord = 1e-5   // a score by the best chunk is greater, and one by the whole document less
	wholeWeight  = 1e-9   // of scores by whole documents
)

// Search returns one page of the documents that match a query; see
// [retrieval.Search].
func (s *Store) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	if err := q.Validate(facetFields[:]); err != nil {
		return nil, err
	}
	if q.Geo != nil {
		return nil, fmt.Errorf("geo: no document of this store has a location: %w", errkind.Unsupported)
	}
	var page *search.Page
	err := s.searching(ctx, func(f *finding, o retrieval.Options) (err error) {
		page, err = retrieval.Search(ctx, f, q, o)
		return err
	})
	return page, err
}

// SearchChunks returns the chunks that match a query best; see kb.Store and
// [retrieval.SearchChunks].
func (s *Store) SearchChunks(ctx context.Context, q search.ChunkQuery) (*search.ChunkPage, error) {
	documents := search.Query{Text: q.Text, Labels: q.Labels, Written: q.Written, Tags: q.Tags, Num: q.Top}
	if err := documents.Validate(nil); err != nil {
		return nil, err
	}
	var page *search.ChunkPage
	err := s.searching(ctx, func(f *finding, o retrieval.Options) (err error) {
		if e := s.o.Embedder; q.Ranking == search.ByMeaning && e != nil {
			switch {
			case !s.HasVectors():
				return errNoVectors
			case embed.Foreign(e, q.Text.Plain()):
				return fmt.Errorf("the model does not know the language of this text: search by words: %w",
					errkind.Unsupported)
			}
		}
		page, err = retrieval.SearchChunks(ctx, f, q, o)
		return err
	})
	return page, err
}

// errLanguages says that a query was not translated for all languages of the
// documents.
var errLanguages = errors.New("the documents have more languages")

// searching calls f with a new search, and again if it finds that there are more
// languages.
func (s *Store) searching(ctx context.Context, f func(*finding, retrieval.Options) error) error {
	if err := s.Open(ctx); err != nil {
		return err
	}
	for {
		x := &finding{s: s, langs: s.knownLanguages()}
		o := retrieval.Options{Languages: x.langs, Wait: s.o.EmbedTime, Log: s.o.Log}
		if e := s.o.Embedder; e != nil && s.HasVectors() {
			o.Vector = func(ctx context.Context, text string, limit time.Duration) ([]float32, error) {
				return s.queries.Vector(ctx, e, document.Truncate(text, embedQuery), limit)
			}
		}
		err := f(x, o)
		if errors.Is(err, errLanguages) {
			continue // now they are known
		}
		if err != nil {
			err = fmt.Errorf("searching: %w", err)
		}
		return err
	}
}

// A finding is one search. It implements [retrieval.ChunkStore].
type finding struct {
	s     *Store
	langs []analysis.Language // that words are translated for
	m     *matching           // of the last request
	rows  map[int64]*pageRow  // documents that were read with the candidates, by number

	texts, prints map[int64]string // of the candidates, by number
}

// candidateFields are what is read of a candidate.
var candidateFields = []string{"number", "same_text", "title_key", "name_key", "lang", "print", "chunk_count"}

// Names of conditions that candidates are asked for.
const (
	hasAll    = "all"
	hasWords  = "words"
	hasQuoted = "quoted"
)

// never is a condition that no document meets. It carries conditions that are only
// tested for each hit, and that do not count in the search.
func never(conditions ...object) object {
	return object{"bool": object{"must": append([]object{term("doc_id", "")}, conditions...)}}
}

// named returns a condition with a name.
func named(name string, condition object) object {
	return object{"bool": object{"filter": []object{condition}, "_name": name}}
}

// candidates returns a search for the n best documents that match, or for all of
// some documents that meet the other conditions, with some of their texts.
func (m *matching) candidates(r *retrieval.Request, n int, among []int64, texts int) object {
	must, filter, should := []object{m.query}, m.filter, slices.Clone(m.extra)
	var tested []object
	if among != nil {
		must, filter, should = nil, append(slices.Clone(m.filter), oneOf("number", among)), append(should, m.query)
		tested = append(tested, named(hasWords, m.query))
	}
	if m.complete != nil {
		tested = append(tested, named(hasAll, m.complete))
	}
	if m.quoted != nil {
		should = append(should, m.quoted)
		tested = append(tested, named(hasQuoted, m.quoted))
	}
	if texts > 0 {
		tested = append(tested, m.texts(texts, nil)...)
	}
	if tested != nil {
		should = append(should, never(tested...))
	}
	byScore := m.byScore(r)
	titled := object{"constant_score": object{"filter": oneOf("title_key", m.titles), "boost": titledBoost}}
	if byScore && m.titles != nil {
		should = append(should, titled)
	}
	parts := object{"filter": filter}
	if must != nil {
		parts["must"] = must
	}
	if should != nil {
		parts["should"] = should
	}
	fields := candidateFields
	if texts > 0 {
		fields = []string{"hit"}
	}
	body := only(object{"size": n, "track_total_hits": false, "query": object{"bool": parts}}, fields...)
	if !byScore {
		body["sort"] = order(r.Sort, len(m.leaves) > 0)
	} else if q, ok := chunkQuery(m.leaves); ok {
		// The best ones are ranked by their best chunk. The bonuses are those of package
		// retrieval, so that it does not choose others than the first.
		best := object{"query": object{"nested": object{"path": "chunks", "score_mode": "max", "query": q}},
			"boost_mode": "multiply"}
		var functions []object
		if m.quoted != nil {
			functions = append(functions, object{"filter": m.quoted, "weight": 1 + retrieval.QuotedBonus})
		}
		if m.complete != nil {
			functions = append(functions, object{"filter": m.complete, "weight": 1 + retrieval.CompleteBonus})
		}
		if r.Plan.Names != nil {
			functions = append(functions, object{"filter": oneOf("name_key", r.Plan.Names),
				"weight": 1 + retrieval.NameBonus})
		}
		if r.Plan.Language != "" {
			functions = append(functions, object{"filter": oneOf("lang", []string{r.Plan.Language, ""}),
				"weight": 1 + retrieval.LanguageBonus})
		}
		rescored := best["query"]
		if functions != nil {
			best["functions"] = functions
			rescored = object{"function_score": best}
		}
		if m.titles != nil {
			rescored = object{"bool": object{"should": []any{rescored, titled}}}
		}
		body["rescore"] = object{"window_size": max(retrieval.Fused, len(among)),
			"query": object{"query_weight": wholeWeight, "rescore_query_weight": 1, "rescore_query": rescored}}
	}
	return body
}

// texts returns queries whose inner hits are the n best chunks of documents, and other
// chunks that have some numbers.
func (m *matching) texts(n int, others []int) (out []object) {
	inner := func(name string, query object, n int) {
		out = append(out, object{"nested": object{"path": "chunks", "query": query, "inner_hits": withTexts(name, n)}})
	}
	if q, ok := chunkQuery(m.leaves); ok && n > 0 {
		inner("best", q, n)
	} else if n > 0 {
		others = append(slices.Clone(others), 0)
	}
	if len(others) > 0 {
		others = slices.Compact(slices.Sorted(slices.Values(others)))
		inner("other", oneOf("chunks.n", others), min(len(others), maxWindow))
	}
	return out
}

// byScore reports whether documents are in the order of their scores.
func (m *matching) byScore(r *retrieval.Request) bool {
	return len(m.leaves) > 0 && (len(r.Sort) == 0 || r.Sort[0] == search.SortKey{Field: "score", Desc: true})
}

// order returns the order of documents by fields.
func order(keys []search.SortKey, scored bool) []object {
	if len(keys) == 0 || keys[0].Field == "score" && !scored {
		keys = append(slices.Clone(keys), search.SortKey{Field: "timestamp", Desc: true})
	}
	direction := func(desc bool) string { return map[bool]string{false: "asc", true: "desc"}[desc] }
	var out []object
	for _, k := range keys {
		field := map[string]string{"filename": "filename", "created": "created", "content_length": "size",
			"last_modified": "modified", "timestamp": "modified", "score": "_score"}[k.Field]
		if field == "" || field == "_score" && !scored {
			continue // no document of this store has the field
		}
		out = append(out, object{field: direction(k.Desc)})
	}
	return append(out, object{"number": direction(keys[0].Desc)})
}

// A candidate is a document that may be on the page.
type candidate struct {
	retrieval.Document
	text, print string
	chunks      int  // how many it has
	dealt       int  // how many of the first ones the embedder has dealt with, if that was asked for
	words       bool // it is known to match by words
}

// decode decodes candidates.
func (m *matching) decode(r *retrieval.Request, hits []rawHit) ([]candidate, error) {
	out := make([]candidate, len(hits))
	for i, h := range hits {
		x, err := h.row()
		if err != nil {
			return nil, err
		}
		c := candidate{text: x.SameText, print: x.Print, chunks: x.ChunkCount, words: slices.Contains(h.Matched, hasWords)}
		c.Document = retrieval.Document{Number: x.Number, Chunk: -1, NearChunk: -1,
			Complete: slices.Contains(h.Matched, hasAll),
			Quoted:   slices.Contains(h.Matched, hasQuoted),
			Titled:   slices.Contains(m.titles, x.TitleKey)}
		if r.Plan != nil && x.NameKey != "" {
			c.Named = slices.Contains(r.Plan.Names, x.NameKey)
		}
		if r.Plan != nil && r.Plan.Language != "" {
			c.Same = x.Lang == "" || x.Lang == r.Plan.Language
		}
		score := h.score()
		if c.Titled && score >= titledBoost {
			score -= titledBoost
		}
		if score > rankedByWord && m.byScore(r) {
			if c.Complete { // retrieval adds the bonuses
				score /= 1 + retrieval.CompleteBonus
			}
			if c.Named {
				score /= 1 + retrieval.NameBonus
			}
			if c.Quoted {
				score /= 1 + retrieval.QuotedBonus
			}
			if c.Same {
				score /= 1 + retrieval.LanguageBonus
			}
			c.Score, c.Chunk = score, 0
		}
		out[i] = c
	}
	return out, nil
}

// Gather returns what matches a request, with one request to the cluster. It needs
// more if documents that match no word are close in meaning, or if many documents
// have the same text.
func (f *finding) Gather(ctx context.Context, r *retrieval.Request) (*retrieval.Candidates, error) {
	var err error
	if f.m, err = f.s.matching(r, f.langs); err != nil {
		return nil, err
	}
	if r.Plan == nil {
		return f.gatherNearest(ctx, r)
	}
	// A page is read with its candidates, if the order is that of the cluster.
	if r.Start == 0 && r.Chunks == 0 && r.Vector == nil && r.Num > 0 {
		c, enough, err := f.gather(ctx, r, r.Num, textsOf(r))
		if err != nil || enough {
			return c, err
		}
	}
	for depth := r.Depth; ; depth *= 4 { // most of the documents may have the same text as others
		c, enough, err := f.gather(ctx, r, min(depth, search.Window), 0)
		if err != nil || enough || depth >= search.Window {
			return c, err
		}
	}
}

// textsOf returns how many chunks of each document are read for a page.
func textsOf(r *retrieval.Request) int {
	if r.Passages > 0 {
		return pageChunks
	}
	return 1
}

// gather is Gather with a number of documents that are read, with some of their
// texts. It reports whether they are enough, although some have the same text as
// others.
func (f *finding) gather(ctx context.Context, r *retrieval.Request, depth, texts int) (
	c *retrieval.Candidates, enough bool, err error) {
	m := f.m
	c = &retrieval.Candidates{}
	var hits, near []rawHit
	var list []asked
	if depth > 0 {
		body := m.candidates(r, depth, nil, texts)
		if r.Chunks > 0 {
			m.rankChunks(body, chunksOfEach)
		}
		list = append(list, asked{inDocuments, body, func(r *result) error {
			hits = r.Hits.Hits
			return nil
		}})
	}
	total, err := m.countDocuments(r, f.langs, c)
	if err != nil {
		return nil, false, err
	}
	list = append(append(list, total...), m.count(r)...)
	if r.Vector != nil && depth > 0 {
		body, err := f.nearest(ctx, r, nearChunks)
		if err != nil {
			return nil, false, err
		}
		list = append(list, asked{inVectors, body, func(r *result) error {
			near = r.Hits.Hits
			return nil
		}})
	}
	if err := f.send(ctx, list); err != nil {
		return nil, false, err
	}
	c.Missing = m.missing(r, c.Total)
	if r.Vector != nil {
		c.Full = passage.Full(conditions(m.leaves, "", m.weight))
	}
	f.rows = map[int64]*pageRow{}
	all, err := m.decode(r, hits)
	if err == nil && texts > 0 {
		err = readRows(hits, f.rows)
	}
	if err != nil {
		return nil, false, err
	}
	whole := len(all) == c.Total // all documents that match are here
	for i := range all {
		all[i].words = true
	}
	if all, err = f.addNear(ctx, r, c, all, near); err != nil {
		return nil, false, err
	}
	if r.Chunks > 0 {
		if err := f.addChunks(ctx, r, c, all, hits); err != nil {
			return nil, false, err
		}
	}
	f.texts, f.prints = map[int64]string{}, map[int64]string{}
	seen, complete := map[string]bool{}, 0
	for _, d := range all {
		f.texts[d.Number], f.prints[d.Number] = d.text, d.print
		if r.Distinct && d.text != "" && seen[d.text] {
			continue
		}
		seen[d.text] = true
		if d.Complete {
			complete++
		}
		c.Documents = append(c.Documents, d.Document)
	}
	if whole && r.Distinct && depth > 0 { // otherwise, copies count as documents
		c.Total, c.Complete = len(c.Documents), complete
	}
	return c, len(c.Documents) >= r.Start+r.Num || len(hits) < depth, nil
}

// send sends searches, together with a question for the languages of the documents
// if those known may be old. The error is errLanguages if the query was not
// translated for all of them.
func (f *finding) send(ctx context.Context, list []asked) error {
	if !f.s.languagesFresh() {
		list = append(list, asked{inDocuments, languagesBody(), f.s.noteLanguages})
	}
	err := f.s.searchAll(ctx, list)
	if err == nil && !slices.Equal(f.langs, f.s.knownLanguages()) {
		err = errLanguages
	}
	return err
}

// total returns a search that only counts, and notes the number.
func total(conditions []object, n *int) asked {
	return asked{inDocuments, object{"size": 0, "track_total_hits": true, "query": all(conditions...)},
		func(r *result) error {
			*n = r.Hits.Total.Value
			return nil
		}}
}

// countDocuments returns searches for the counts of candidates.
func (m *matching) countDocuments(r *retrieval.Request, langs []analysis.Language, c *retrieval.Candidates) (
	[]asked, error) {
	list := []asked{total(append(slices.Clone(m.filter), m.query), &c.Total)}
	if r.Facets != nil {
		aggs := object{}
		if err := facetAggregations(r.Query, langs, aggs); err != nil {
			return nil, err
		}
		list[0].body["aggs"] = aggs
		count := list[0].then
		list[0].then = func(answer *result) (err error) {
			_ = count(answer) // never fails
			c.Facets, err = facetCounts(r.Facets, answer)
			return err
		}
	}
	if m.complete != nil {
		list = append(list, total(append(slices.Clone(m.filter), m.complete), &c.Complete))
	}
	return list, nil
}

// countedWords is how many conditions on words are counted at most, because each is
// a search.
const countedWords = 32

// count returns searches for the numbers of documents that meet conditions on words,
// if something depends on them: whether some documents have a word, and the weights of
// words in passages.
func (m *matching) count(r *retrieval.Request) []asked {
	if r.Depth == 0 || !r.Plan.Some && (r.Passages == 0 || len(m.counted) < 2) {
		return nil
	}
	filter := filters(m.labels, nil, nil)
	var list []asked
	for _, c := range m.counted[:min(len(m.counted), countedWords)] {
		list = append(list, total(append(slices.Clone(filter), c.query), &c.n))
	}
	return list
}

// missing returns the words of a plan that no document has.
func (m *matching) missing(r *retrieval.Request, total int) (out []string) {
	for i, c := range m.words {
		if r.Plan.Some && c.n == 0 || !r.Plan.Some && total == 0 {
			out = append(out, r.Plan.Words[i].Text)
		}
	}
	return out
}

// Similar returns words of documents that are similar to some words; see
// [retrieval.Store].
func (f *finding) Similar(ctx context.Context, words []string) ([][]string, error) {
	out := make([][]string, len(words))
	var list []asked
	filter := filters(f.m.labels, nil, nil)
	for i, w := range words {
		p, err := (&translator{langs: f.langs}).node(query.Term{Text: w})
		if err != nil {
			return nil, err
		}
		known := 0
		list = append(list, total(append(slices.Clone(filter), p.query), &known))
		list = append(list, nearWords(w, f.m.labels, func(near []string) {
			if known == 0 {
				out[i] = near
			}
		}))
	}
	return out, f.s.searchAll(ctx, list)
}

// nearest returns a search for the n chunks that are closest in meaning to a query.
func (f *finding) nearest(ctx context.Context, r *retrieval.Request, n int) (object, error) {
	var labels, tags []string // tags that are labels, and the others
	for _, tag := range r.Tags {
		if _, ok := document.TagLabel(tag); ok {
			labels = append(labels, tag)
		} else {
			tags = append(tags, tag)
		}
	}
	filter := filters(r.Labels, nil, labels)
	if r.Langs != nil || len(tags) > 0 || len(r.Written) > 0 || len(r.Text.Options()) > 0 ||
		r.Text.Filter() != nil {
		allowed, err := f.allowed(ctx)
		if err != nil {
			return nil, err
		}
		if allowed != nil {
			filter = append(filter, oneOf("number", allowed))
		}
	}
	return f.knn(r, n, filter), nil
}

// knn returns a search for the n chunks that are closest in meaning to a query, of
// those that meet conditions.
func (f *finding) knn(r *retrieval.Request, n int, filter []object) object {
	knn := object{"vector": r.Vector, "k": n, "ignore_unmapped": true, "filter": all(filter...)}
	return only(object{"size": n, "track_total_hits": false,
		"query": object{"knn": object{fieldOfModel(f.s.o.Embedder): knn}}}, "number", "n", "print")
}

// allowed returns the numbers of the documents that meet the conditions beside
// the query, or nil if there are very many.
func (f *finding) allowed(ctx context.Context) ([]int64, error) {
	r, err := f.s.search(ctx, inDocuments, only(object{"size": allowedDocs, "track_total_hits": allowedDocs + 1,
		"query": all(f.m.filter...)}, "number"))
	if err != nil || r.Hits.Total.Value > allowedDocs {
		return nil, err
	}
	rows, err := r.rows()
	out := make([]int64, len(rows))
	for i, x := range rows {
		out[i] = x.Number
	}
	return out, err
}

// A near is a chunk that is close in meaning, and its cosine.
type near struct {
	vectorRow
	cosine float64
}

// nearOf decodes the hits of nearest.
func nearOf(hits []rawHit) ([]near, error) {
	out := make([]near, len(hits))
	for i, h := range hits {
		if err := h.Fields.decode(&out[i].vectorRow); err != nil {
			return nil, err
		}
		if out[i].N == nil {
			return nil, damaged(errors.New("a vector has no chunk"))
		}
		out[i].cosine = 2*h.score() - 1
	}
	return out, nil
}

// addNear returns documents that match, together with those that are close in
// meaning, in the order of [retrieval.Candidates]. Chunks whose vectors belong to
// another state of their document do not count. The best documents by words get the
// vectors of their best chunks if they lack them, as long as there is time.
func (f *finding) addNear(ctx context.Context, r *retrieval.Request, c *retrieval.Candidates, list []candidate,
	hits []rawHit) ([]candidate, error) {
	chunks, err := nearOf(hits)
	var best []candidate // that may lack vectors
	if r.Vector != nil && r.Chunks == 0 && f.s.o.ComputeTime > 0 {
		best = slices.Clone(list[:min(len(list), retrieval.ComputedDocs)])
	}
	if err != nil || len(chunks)+len(best) == 0 {
		return list, err
	}
	at := map[int64]int{} // place in list
	for i, d := range list {
		at[d.Number] = i
	}
	var unknown []int64
	for _, x := range chunks {
		if _, ok := at[x.Number]; !ok && !slices.Contains(unknown, x.Number) {
			unknown = append(unknown, x.Number)
		}
	}
	known := len(list)
	var asks []asked
	if len(unknown) > 0 {
		asks = append(asks, asked{inDocuments, f.m.candidates(r, len(unknown), unknown, 0), func(answer *result) error {
			found, err := f.m.decode(r, answer.Hits.Hits)
			for _, d := range found {
				at[d.Number] = len(list)
				list = append(list, d)
			}
			return err
		}})
	}
	// The documents by words that are not among the nearest have a place by meaning, too.
	var far []int64
	for _, d := range list[:min(known, retrieval.Fused)] {
		if !slices.ContainsFunc(chunks, func(x near) bool { return x.Number == d.Number }) {
			far = append(far, d.Number)
		}
	}
	if len(far) > 0 {
		body := f.knn(r, scoredChunks, []object{oneOf("number", far)})
		body["size"], body["collapse"] = len(far), object{"field": "number"}
		asks = append(asks, asked{inVectors, body, func(answer *result) error {
			more, err := nearOf(answer.Hits.Hits)
			chunks = append(chunks, more...)
			return err
		}})
	}
	if len(best) > 0 {
		asks = append(asks, f.dealt(best))
	}
	if err := f.s.searchAll(ctx, asks); err != nil {
		return nil, err
	}
	computed, err := f.compute(ctx, r, best)
	if err != nil {
		return nil, err
	}
	chunks = append(chunks, computed...)
	slices.SortStableFunc(chunks, func(a, b near) int { return cmp.Compare(b.cosine, a.cosine) })
	var added []int64
	documents := 0
	for _, x := range chunks {
		i, ok := at[x.Number]
		if !ok || list[i].print != x.Print {
			continue
		}
		d := &list[i]
		if d.NearChunk < 0 {
			if documents++; documents > retrieval.Fused && i >= known {
				continue
			}
			if !d.words {
				if r.Near == 0 || x.cosine < r.Near || len(added) == retrieval.NearDocs {
					continue
				}
				added = append(added, x.Number)
				d.Score, d.Chunk, d.words = 0, -1, true
			}
			d.NearChunk, d.Cosine = *x.N, x.cosine
		}
		c.Chunks = append(c.Chunks, retrieval.Chunk{Document: x.Number, Number: *x.N, Cosine: x.cosine, HasCosine: true,
			Complete: d.Complete})
	}
	c.Total += len(added)
	if r.Facets != nil && len(added) > 0 {
		wide := *f.m
		wide.query = anyOf([]object{f.m.query, oneOf("number", added)})
		again, err := wide.countDocuments(r, f.langs, c)
		if err != nil {
			return nil, err
		}
		if err := f.s.searchAll(ctx, again[:1]); err != nil {
			return nil, err
		}
	}
	// Those by words, then those by meaning, then the others.
	place := func(d candidate) int {
		switch {
		case d.Chunk >= 0:
			return 0
		case d.NearChunk >= 0:
			return 1
		}
		return 2
	}
	more := slices.DeleteFunc(list[known:], func(d candidate) bool { return d.NearChunk < 0 })
	list = append(list[:known], more...)
	slices.SortStableFunc(list, func(a, b candidate) int {
		if order := place(a) - place(b); order != 0 || place(a) > 0 {
			return order
		}
		return cmp.Compare(b.Score, a.Score)
	})
	return list, nil
}

// dealt returns a search that sets how many first chunks of documents the embedder has
// dealt with.
func (f *finding) dealt(list []candidate) asked {
	numbers := make([]int64, len(list))
	for i, d := range list {
		numbers[i] = d.Number
	}
	body := only(object{"size": len(numbers), "track_total_hits": false, "query": all(oneOf("number", numbers),
		term("models", fieldOfModel(f.s.o.Embedder)), object{"exists": object{"field": "chunks"}})},
		"number", "print", "chunks")
	return asked{inVectors, body, func(answer *result) error {
		for _, h := range answer.Hits.Hits {
			var x vectorRow
			if err := h.Fields.decode(&x); err != nil {
				return err
			}
			for i, d := range list {
				if d.Number == x.Number && d.print == x.Print {
					list[i].dealt = x.Chunks
				}
			}
		}
		return nil
	}}
}

// maxComputed is how many vectors that searches have computed are kept.
const maxComputed = 1000

// compute computes the vectors that the best chunks by words of documents lack, in
// order, until no time is left for more, and returns these chunks with their cosines.
// Vectors are kept until the program ends or there are too many. While another search
// computes some, it returns nothing, so that many searches together do not compute more
// than one.
func (f *finding) compute(ctx context.Context, r *retrieval.Request, list []candidate) ([]near, error) {
	s := f.s
	list = slices.DeleteFunc(list, func(d candidate) bool { return d.dealt >= d.chunks })
	if len(list) == 0 || !s.computing.TryLock() {
		return nil, nil
	}
	defer s.computing.Unlock()
	numbers := make([]int64, len(list))
	for i, d := range list {
		numbers[i] = d.Number
	}
	rows := map[int64]*pageRow{}
	if err := s.searchAll(ctx, []asked{f.m.rowsOf(numbers, 1, nil, rows)}); err != nil {
		return nil, err
	}
	if len(s.computed)+len(list) > maxComputed {
		clear(s.computed)
	}
	var best []near
	var texts, missing []string
	for _, d := range list {
		x := rows[d.Number]
		if x == nil || len(x.chunks) == 0 || x.chunks[0].N < d.dealt {
			continue
		}
		c := x.chunks[0]
		text := embedTextOf(x.Title, c.Heading, c.Text)
		best = append(best, near{vectorRow: vectorRow{Number: d.Number, Print: d.print, N: &c.N}})
		if texts = append(texts, text); s.computed[text] == nil {
			missing = append(missing, text)
		}
	}
	vectors, err := embed.Within(ctx, s.o.Embedder, missing, s.o.ComputeTime)
	if err != nil {
		s.o.Log.Debug("documents without vectors were ranked by words only", "error", err)
	}
	for i, v := range vectors {
		s.computed[missing[i]] = v
	}
	var out []near
	for i, x := range best {
		if v := s.computed[texts[i]]; len(v) == len(r.Vector) {
			x.cosine = vector.Dot(r.Vector, v)
			out = append(out, x)
		}
	}
	return out, ctx.Err()
}

// gatherNearest gathers the chunks that are closest in meaning.
func (f *finding) gatherNearest(ctx context.Context, r *retrieval.Request) (*retrieval.Candidates, error) {
	c := &retrieval.Candidates{}
	body, err := f.nearest(ctx, r, r.Chunks)
	if err != nil {
		return nil, err
	}
	knn := body["query"].(object)["knn"].(object)[fieldOfModel(f.s.o.Embedder)].(object)
	var hits []rawHit
	with := total([]object{knn["filter"].(object), term("models", fieldOfModel(f.s.o.Embedder)),
		{"exists": object{"field": "chunks"}}}, &c.Total)
	with.in = inVectors
	if err := f.s.searchAll(ctx, []asked{with, {inVectors, body, func(r *result) error {
		hits = r.Hits.Hits
		return nil
	}}}); err != nil {
		return nil, err
	}
	chunks, err := nearOf(hits)
	if err != nil {
		return nil, err
	}
	numbers := []int64{-1}
	for _, x := range chunks {
		numbers = append(numbers, x.Number)
	}
	answer, err := f.s.search(ctx, inDocuments, only(object{"size": len(numbers), "track_total_hits": false,
		"query": all(append(slices.Clone(f.m.filter), oneOf("number", numbers))...)}, "number", "print"))
	if err != nil {
		return nil, err
	}
	rows, err := answer.rows()
	print := map[int64]string{}
	for _, x := range rows {
		print[x.Number] = x.Print
	}
	for _, x := range chunks {
		if p, ok := print[x.Number]; ok && p == x.Print {
			c.Chunks = append(c.Chunks, retrieval.Chunk{Document: x.Number, Number: *x.N, Cosine: x.cosine,
				HasCosine: true})
		}
	}
	return c, err
}

// chunksOfEach is how many chunks of each document a search for chunks ranks.
const chunksOfEach = 3

// rankChunks adds the n best chunks of each document to a search.
func (m *matching) rankChunks(body object, n int) {
	q, ok := chunkQuery(m.leaves)
	if !ok {
		return
	}
	inner := object{"name": "best", "size": n, "_source": false, "stored_fields": "_none_",
		"docvalue_fields": []string{"chunks.n"}}
	parts := body["query"].(object)["bool"].(object)
	should, _ := parts["should"].([]object)
	parts["should"] = append(should, never(object{"nested": object{"path": "chunks", "query": q, "inner_hits": inner}}))
}

// addChunks adds the best chunks of documents by words.
func (f *finding) addChunks(ctx context.Context, r *retrieval.Request, c *retrieval.Candidates, list []candidate,
	hits []rawHit) error {
	var words []retrieval.Chunk
	cosine := map[[2]int64]retrieval.Chunk{}
	for _, x := range c.Chunks {
		cosine[[2]int64{x.Document, int64(x.Number)}] = x
	}
	add := func(hits []rawHit) error {
		for _, h := range hits {
			x, err := h.row()
			if err != nil {
				return err
			}
			chunks, err := h.chunks("best")
			if err != nil {
				return err
			}
			for _, k := range chunks {
				key := [2]int64{x.Number, int64(k.N)}
				w := cosine[key]
				delete(cosine, key)
				w.Document, w.Number, w.Score, w.Complete = x.Number, k.N, k.score, slices.Contains(h.Matched, hasAll)
				words = append(words, w)
			}
		}
		return nil
	}
	few := len(hits)*chunksOfEach < r.Chunks
	if few && len(hits) > 0 { // so more chunks of each are wanted
		numbers := make([]int64, len(hits))
		for i, h := range hits {
			x, err := h.row()
			if err != nil {
				return err
			}
			numbers[i] = x.Number
		}
		body := f.m.candidates(r, len(numbers), numbers, 0)
		f.m.rankChunks(body, r.Chunks)
		answer, err := f.s.search(ctx, inDocuments, body)
		if err != nil {
			return err
		}
		hits = answer.Hits.Hits
	}
	if err := add(hits); err != nil {
		return err
	}
	slices.SortStableFunc(words, func(a, b retrieval.Chunk) int { return cmp.Compare(b.Score, a.Score) })
	words = words[:min(len(words), r.Chunks)]
	for _, x := range c.Chunks {
		if _, ok := cosine[[2]int64{x.Document, int64(x.Number)}]; ok {
			words = append(words, x)
		}
	}
	c.Chunks = words
	return nil
}

// value returns the value of an aggregation with one.
func (r *result) value(name string) int {
	var agg struct {
		Value float64 `json:"value"`
	}
	if json.Unmarshal(r.Aggregations[name], &agg) != nil {
		return 0
	}
	return int(agg.Value)
}

// inside returns the number of documents of an aggregation with a filter.
func (r *result) inside(name string) int {
	var agg struct {
		Count int `json:"doc_count"`
	}
	if json.Unmarshal(r.Aggregations[name], &agg) != nil {
		return 0
	}
	return agg.Count
}
