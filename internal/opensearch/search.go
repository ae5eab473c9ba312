package opensearch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/passage"
	"knowhow/internal/query"
	"knowhow/internal/search"
)

// Limits of the ranking, as in package index.
const (
	rankDepth     = 100 // documents that are ranked by their best chunk; the others follow by whole documents
	someWords     = 3   // least number of words of a plain query for which some of them are enough
	completeBonus = 0.2 // part of the score, for documents with all words of a query of which some are enough
	maxAlso       = 20  // other documents with the text of a hit that are named
)

var _ search.Service = (*Store)(nil)

// A matching is what a query means.
type matching struct {
	part
	all      bool   // all documents that meet the other conditions
	some     bool   // some of the words are enough
	complete object // documents with all words that count; nil unless some are enough
	words    []string
	each     []object // documents with each of words
	filter   []object // conditions that the query cannot widen
	labels   []string
	twins    map[string]bool // values of field twin that several of the documents have
}

// match translates a query. With some, some words of a plain query are enough,
// however few it has.
func (s *Store) match(ctx context.Context, q search.Query, some bool) (*matching, error) {
	langs, err := s.languages(ctx)
	if err != nil {
		return nil, err
	}
	t := &translator{langs: langs, now: time.Now()}
	m := &matching{filter: filters(q.Labels, q.Langs, q.Tags), labels: q.Labels}
	if query.Plain(q.Text) {
		if words := analysis.Significant(query.Words(q.Text), langs); len(words) > 0 {
			m.some = some || len(query.Words(q.Text)) >= someWords
			return m, t.plain(m, words, analysis.Signs(q.Typed))
		}
	}
	node, err := query.Parse(q.Text)
	if err != nil {
		return nil, err
	}
	if _, ok := node.(query.All); ok {
		m.all = true
	}
	if m.part, err = t.node(node); err != nil {
		return nil, err
	}
	if m.void {
		m.query = none()
	}
	return m, nil
}

// plain translates the words and signs of a plain query.
func (t *translator) plain(m *matching, words, signs []string) error {
	m.part.void = true
	times := map[string]float64{}
	var queries []object
	for _, w := range words {
		if times[w]++; times[w] > 1 {
			continue
		}
		if m.some && t.clauses > plainClauses {
			break // the other words of such a long text are left out
		}
		p, err := t.node(query.Identifier(w, analysis.Parts(w)))
		if err != nil {
			return err
		}
		if p.void {
			continue
		}
		m.part.void = false
		queries = append(queries, p.query)
		m.words, m.each = append(m.words, w), append(m.each, p.query)
		m.leaves = append(m.leaves, p.leaves...)
	}
	if m.part.void {
		m.query = none()
		return nil
	}
	all := object{"bool": object{"must": queries}}
	for _, sign := range signs[:min(len(signs), maxSigns)] {
		g := gathering{t: t, leaf: &leaf{weight: 1}}
		g.pattern([]string{sign}, 0, false)
		queries = append(queries, bestOf(g.queries))
		m.leaves = append(m.leaves, g.leaf)
	}
	if !m.some {
		m.query = all
		return nil
	}
	m.complete, m.query = all, anyOf(queries)
	return nil
}

// A ranked is a document of a page.
type ranked struct {
	row   row
	also  []string
	chunk int // the best one, -1 if the document was not ranked by a chunk
	score float64
	all   bool // it has all words of a query of which some are enough
}

// Search returns one page of the documents that match a query; see
// [search.Service] and index.Index.Search, which finds the same documents.
func (s *Store) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	if err := q.Validate(facetFields[:]); err != nil {
		return nil, err
	}
	if q.Geo != nil {
		return nil, fmt.Errorf("geo: no document of this store has a location: %w", errkind.Unsupported)
	}
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	m, err := s.match(ctx, q, false)
	if err != nil {
		return nil, err
	}
	d, err := s.dense(ctx, m, q)
	if err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	page, list, err := s.find(ctx, m, d, q)
	if err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	list = list[min(q.Start, len(list)):min(q.Start+q.Num, len(list))]
	if q.Distinct {
		if err := s.addAlso(ctx, m, list); err != nil {
			return nil, fmt.Errorf("searching: %w", err)
		}
	}
	if page.Hits, err = s.hits(ctx, m, list, q); err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	return page, nil
}

// find returns a page without hits, and the documents up to the end of the page.
func (s *Store) find(ctx context.Context, m *matching, d *dense, q search.Query) (*search.Page, []ranked, error) {
	byScore := len(m.leaves) > 0 && (len(q.Sort) == 0 || q.Sort[0] == (search.SortKey{Field: "score", Desc: true}))
	body := m.documents(q.Distinct)
	body["track_total_hits"] = true
	body["sort"] = order(q.Sort, byScore, m)
	aggs := object{}
	if q.Distinct {
		aggs["twins"] = twins()
	}
	if m.complete != nil {
		complete := object{"filter": m.complete}
		if q.Distinct {
			complete["aggs"] = object{"twins": twins()}
		}
		aggs["complete"] = complete
	}
	for i, w := range m.each {
		aggs[fmt.Sprintf("word%d", i)] = object{"filter": w}
	}
	if q.Facets != nil {
		if err := s.facetAggregations(ctx, q, aggs); err != nil {
			return nil, nil, err
		}
	}
	if len(aggs) > 0 {
		body["aggs"] = aggs
	}
	n := 0
	if q.Num > 0 {
		n = q.Start + q.Num
	}
	if byScore && n > 0 {
		n = max(n, rankDepth)
	}
	body["size"] = min(n, search.Window)
	r, err := s.search(ctx, s.names.documents, body)
	if err != nil {
		return nil, nil, err
	}
	list, err := r.ranked()
	if err != nil {
		return nil, nil, err
	}
	page := &search.Page{Total: r.Hits.Total.Value - r.repeated("twins")}
	if q.Distinct {
		buckets, err := r.buckets("twins")
		if err != nil {
			return nil, nil, err
		}
		m.twins = map[string]bool{}
		for _, b := range buckets {
			m.twins[b.text()] = true
		}
	}
	if m.complete != nil {
		page.Staged, page.AllWords = true, r.inside("complete")
	}
	if page.DidYouMean, err = s.similar(ctx, m, r); err != nil {
		return nil, nil, err
	}
	if q.Facets != nil {
		if page.Facets, err = facetCounts(q.Facets, r); err != nil {
			return nil, nil, err
		}
	}
	if byScore && len(list) > 0 {
		list, err = s.rank(ctx, m, d, q, list)
	}
	return page, list, err
}

// documents returns the search for the documents that match.
func (m *matching) documents(distinct bool) object {
	body := object{"query": object{"bool": object{"filter": m.filter, "must": []object{m.query}}}, "_source": onlyRow}
	if m.complete != nil {
		body["query"].(object)["bool"].(object)["should"] = []object{{"constant_score": object{"filter": m.complete, "boost": 0, "_name": "complete"}}}
	}
	if distinct {
		body["collapse"] = object{"field": "twin"}
	}
	return body
}

// twins is an aggregation of the documents whose text other documents have, too.
func twins() object {
	return object{"terms": object{"field": "twin", "min_doc_count": 2, "size": maxValues}}
}

// repeated returns how many documents an aggregation by twins has beyond the
// first one of each text.
func (r *result) repeated(name string) int {
	if r.Aggregations[name] == nil {
		return 0
	}
	buckets, err := r.buckets(name)
	if err != nil {
		return 0
	}
	n := 0
	for _, b := range buckets {
		n += b.Count - 1
	}
	return n
}

// inside returns the number of documents of an aggregation with a filter.
func (r *result) inside(name string) int {
	var agg struct {
		Count int             `json:"doc_count"`
		Twins json.RawMessage `json:"twins"`
	}
	if json.Unmarshal(r.Aggregations[name], &agg) != nil {
		return 0
	}
	inner := result{Aggregations: map[string]json.RawMessage{}}
	if agg.Twins != nil {
		inner.Aggregations["twins"] = agg.Twins
	}
	return agg.Count - inner.repeated("twins")
}

// value returns the value of an aggregation with one.
func (r *result) value(name string) int {
	var agg struct {
		Value int `json:"value"`
	}
	if json.Unmarshal(r.Aggregations[name], &agg) != nil {
		return 0
	}
	return agg.Value
}

// order returns the order of documents.
func order(keys []search.SortKey, byScore bool, m *matching) []object {
	if byScore {
		return []object{{"_score": "desc"}, {"number": "asc"}}
	}
	if len(keys) == 0 || keys[0].Field == "score" && len(m.leaves) == 0 {
		keys = append(slices.Clone(keys), search.SortKey{Field: "timestamp", Desc: true})
	}
	var out []object
	for _, k := range keys {
		field := map[string]string{"filename": "filename", "created": "created", "content_length": "size", "last_modified": "modified", "timestamp": "modified", "score": "_score"}[k.Field]
		if field == "" || field == "_score" && len(m.leaves) == 0 {
			continue // no document of this store has the field
		}
		direction := "asc"
		if k.Desc {
			direction = "desc"
		}
		out = append(out, object{field: direction})
	}
	last := "asc"
	if keys[0].Desc {
		last = "desc"
	}
	return append(out, object{"number": last})
}

// ranked decodes documents in their order.
func (r *result) ranked() ([]ranked, error) {
	out := make([]ranked, len(r.Hits.Hits))
	for i, h := range r.Hits.Hits {
		if err := json.Unmarshal(h.Source, &out[i].row); err != nil {
			return nil, damaged(err)
		}
		out[i].chunk, out[i].score = -1, h.score()
		out[i].all = slices.Contains(h.Matched, "complete")
	}
	return out, nil
}

// addAlso adds the paths of the other documents that match and have the text of a
// hit.
func (s *Store) addAlso(ctx context.Context, m *matching, list []ranked) error {
	var twins []string
	for _, r := range list {
		if m.twins[r.row.Twin] {
			twins = append(twins, r.row.Twin)
		}
	}
	if len(twins) == 0 {
		return nil
	}
	body := m.documents(false)
	body["query"] = object{"bool": object{"filter": []object{body["query"].(object), oneOf("twin", twins)}}}
	body["_source"], body["sort"] = []string{"doc_id", "path", "twin"}, []object{{"path": "asc"}, {"number": "asc"}}
	body["size"] = pageSize
	r, err := s.search(ctx, s.names.documents, body)
	if err != nil {
		return err
	}
	rows, err := r.rows()
	for i, x := range list {
		for _, o := range rows {
			if o.Twin == x.row.Twin && o.ID != x.row.ID && len(list[i].also) < maxAlso {
				list[i].also = append(list[i].also, o.Path)
			}
		}
	}
	return err
}

// A chunkHit is a chunk with its score.
type chunkHit struct {
	chunkRow
	score float64
}

// bestChunks returns the best chunks by some leaves, the best one of each
// document if each is set, with one of the labels (nil: any) and of one of the
// revisions (nil: any).
func (s *Store) bestChunks(ctx context.Context, leaves []*leaf, labels, revisions []string, n int, each bool) ([]chunkHit, error) {
	body, ok := chunkSearch(leaves, labels, revisions, n)
	if !ok || n == 0 {
		return nil, nil
	}
	body["_source"] = []string{"revision", "number", "n", "off", "len"}
	if each {
		body["collapse"] = object{"field": "revision"}
	}
	hits, err := s.chunkHits(ctx, body)
	for i := range hits {
		hits[i].score *= saturation + 1 // a constant of BM25 that OpenSearch leaves out
	}
	return hits, err
}

// chunkSearch returns the search for the best chunks; see bestChunks. ok is false
// if there is nothing to rank by.
func chunkSearch(leaves []*leaf, labels, revisions []string, n int) (body object, ok bool) {
	q, ok := chunkQuery(leaves)
	filter := filters(labels, nil, nil)
	if revisions != nil {
		filter = append(filter, oneOf("revision", revisions))
	}
	return object{"size": n, "query": object{"bool": object{"filter": filter, "must": []object{q}}}, "track_total_hits": false,
		"sort": []object{{"_score": "desc"}, {"number": "asc"}, {"n": "asc"}}}, ok
}

// chunkHits sends a search for chunks.
func (s *Store) chunkHits(ctx context.Context, body object) ([]chunkHit, error) {
	r, err := s.search(ctx, s.names.chunks, body)
	if err != nil {
		return nil, err
	}
	return r.chunkHits()
}

// chunkHits decodes the hits of a search for chunks.
func (r *result) chunkHits() ([]chunkHit, error) {
	out := make([]chunkHit, len(r.Hits.Hits))
	for i, h := range r.Hits.Hits {
		if err := json.Unmarshal(h.Source, &out[i].chunkRow); err != nil {
			return nil, damaged(err)
		}
		out[i].score = h.score()
	}
	return out, nil
}

// rank orders documents by relevance: first those that are ranked by their best
// chunk, then the others in the order of list, which has the best documents that
// match. The order does not depend on the length of list.
func (s *Store) rank(ctx context.Context, m *matching, d *dense, q search.Query, list []ranked) ([]ranked, error) {
	best := map[string]chunkHit{} // by revision
	add := func(hits []chunkHit) {
		for _, h := range hits {
			best[h.Revision] = h
		}
	}
	first := list[:min(len(list), rankDepth)]
	if m.some {
		hits, err := s.bestChunks(ctx, m.leaves, m.labels, nil, rankDepth, true)
		if err != nil {
			return nil, err
		}
		add(hits)
	}
	// The documents of the best chunks, which may not be among the first.
	var more []string
	for revision := range best {
		more = append(more, revision)
	}
	more = append(more, d.revisions()...)
	slices.Sort(more)
	more = slices.DeleteFunc(slices.Compact(more), func(revision string) bool {
		return slices.ContainsFunc(first, func(r ranked) bool { return r.row.Revision == revision })
	})
	if len(more) > 0 {
		body := m.documents(q.Distinct)
		body["query"] = object{"bool": object{"filter": []object{body["query"].(object), oneOf("revision", more)}}}
		body["size"] = len(more)
		r, err := s.search(ctx, s.names.documents, body)
		if err != nil {
			return nil, err
		}
		others, err := r.ranked()
		if err != nil {
			return nil, err
		}
		first = append(slices.Clone(first), others...)
	}
	var unscored []string
	for _, r := range first {
		if _, ok := best[r.row.Revision]; !ok {
			unscored = append(unscored, r.row.Revision)
		}
	}
	if len(unscored) > 0 {
		hits, err := s.bestChunks(ctx, m.leaves, m.labels, unscored, len(unscored), true)
		if err != nil {
			return nil, err
		}
		add(hits)
	}
	seen := map[string]bool{} // twins
	var out []ranked
	for _, r := range first {
		if q.Distinct && seen[r.row.Twin] {
			continue
		}
		seen[r.row.Twin] = true
		r.score, r.chunk = 0, -1
		if h, ok := best[r.row.Revision]; ok {
			r.score, r.chunk = h.score, h.N
			if r.all {
				r.score *= 1 + completeBonus
			}
		}
		out = append(out, r)
	}
	byScore(out)
	out, err := d.rank(ctx, m, out)
	if err != nil {
		return nil, err
	}
	preferTitled(q.Text, out)
	number := map[int64]bool{}
	for _, r := range out {
		number[r.row.Number] = true
	}
	for _, r := range list {
		if !number[r.row.Number] && !(q.Distinct && seen[r.row.Twin]) {
			r.score, r.chunk = 0, -1
			out = append(out, r)
		}
	}
	return out, nil
}

// byScore sorts documents, best first.
func byScore(list []ranked) {
	slices.SortStableFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.row.Number, b.row.Number))
	})
}

// preferTitled puts documents first whose title is the query.
func preferTitled(text string, list []ranked) {
	if !query.Plain(text) || len(list) < 2 {
		return
	}
	top := list[0].score
	for i := range list {
		l := analysis.LanguageOf(list[i].row.Lang)
		if slices.Equal(tokensOf(list[i].row.Title, l), tokensOf(text, l)) {
			list[i].score += top
		}
	}
	byScore(list)
}

// tokensOf returns the tokens of a text.
func tokensOf(text string, l analysis.Language) []string {
	var out []string
	for t := range analysis.Tokens(text, l) {
		out = append(out, t.Text)
	}
	return out
}

// hits makes the hits of a page.
func (s *Store) hits(ctx context.Context, m *matching, list []ranked, q search.Query) ([]search.Hit, error) {
	if len(list) == 0 {
		return nil, nil
	}
	passages, size := make([][]search.Passage, len(list)), passage.TextDigest
	if q.Passages > 0 {
		var err error
		if passages, err = s.passages(ctx, m, list, q.Passages); err != nil {
			return nil, err
		}
		size = passage.ShortDigest
	}
	var ids []string // of the best chunks of documents without passages
	for i, r := range list {
		if len(passages[i]) == 0 {
			ids = append(ids, chunkID(r.row.Revision, max(r.chunk, 0)))
		}
	}
	texts, err := s.chunksByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	var inText, inTitle *analysis.Wanted
	if len(m.leaves) > 0 {
		weight := func(l *leaf) float32 { return 1 } // does not count in a digest
		inText, inTitle = passage.Wanted(conditions(m.leaves, "title", weight)), passage.Wanted(conditions(m.leaves, "content", weight))
	}
	out := make([]search.Hit, len(list))
	for i, r := range list {
		h, language := r.row.hit(), analysis.LanguageOf(r.row.Lang)
		if h.Passages = passages[i]; len(h.Passages) == 0 {
			text := document.Truncate(texts[chunkID(r.row.Revision, max(r.chunk, 0))].Text, passage.MaxChunk)
			h.Digest = passage.Digest(text, language, inText, size)
		}
		h.TitleExcerpt = passage.Digest(h.Title, language, inTitle, passage.TitleDigest)
		h.Also = r.also
		if len(q.Sort) == 0 || q.Sort[0].Field == "score" {
			h.Score = r.score
		}
		out[i] = h
	}
	return out, nil
}

// chunkText is what is read of a chunk with its text.
var chunkText = object{"excludes": []string{"tokens", vectorField + "*"}}

// chunksByID returns chunks with their texts, by ID.
func (s *Store) chunksByID(ctx context.Context, ids []string) (map[string]chunkRow, error) {
	out := map[string]chunkRow{}
	if len(ids) == 0 {
		return out, nil
	}
	r, err := s.search(ctx, s.names.chunks, object{"size": len(ids), "query": object{"ids": object{"values": ids}}, "_source": chunkText})
	if err != nil {
		return nil, err
	}
	for _, h := range r.Hits.Hits {
		var c chunkRow
		if err := json.Unmarshal(h.Source, &c); err != nil {
			return nil, damaged(err)
		}
		out[h.ID] = c
	}
	return out, nil
}
