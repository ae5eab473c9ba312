package opensearch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/passage"
	"knowhow/internal/query"
	"knowhow/internal/relevance"
	"knowhow/internal/search"
)

// Limits of the ranking, as in package index.
const (
	rankDepth = relevance.Fused // documents that are ranked by their best chunk; the others follow by whole documents
	maxAlso   = 20              // other documents with the text of a hit that are named
)

var _ search.Service = (*Store)(nil)

// A matching is what a query means.
type matching struct {
	part
	all      bool   // all documents that meet the other conditions
	some     bool   // some of the words are enough
	complete object // documents with all words that count; nil unless some are enough
	words    []string
	pieced   bool     // the words that no document has were looked for
	filter   []object // conditions that the query cannot widen
	labels   []string
	langs    []analysis.Language // that words are translated for
	seen     map[string]bool     // words that documents have, by the name of their condition
	repeated bool                // several of the documents have the same text
	missing  []string            // words of a plain query that no document has
}

// match translates a query for documents in some languages. With some, some
// words of a plain query are enough, however few it has.
func (s *Store) match(q search.Query, langs []analysis.Language, some bool) (*matching, error) {
	s.mu.Lock()
	t := &translator{langs: langs, now: time.Now(), boost: s.boost}
	s.mu.Unlock()
	m := &matching{filter: append(filters(q.Labels, q.Langs, q.Tags), writtenOnly(q.Written)...), labels: q.Labels, langs: langs, seen: map[string]bool{}}
	for _, option := range q.Text.Options() {
		m.filter = append(m.filter, t.option(option))
	}
	if q.Text.Kind() == query.Words {
		typed := q.Text.Words()
		words, divided := significant(typed, langs)
		m.some = some || len(typed) >= relevance.SomeWords || divided
		if !divided {
			typed = nil
		}
		return m, t.plain(m, words, typed, analysis.Signs(q.Text.Typed()))
	}
	m.all = q.Text.Kind() == query.Everything
	var err error
	if m.part, err = t.node(q.Text.Tree()); err != nil {
		return nil, err
	}
	if m.void {
		m.query = none()
	}
	return m, nil
}

// significant returns the words that count of the words of a plain query. divided
// reports whether a word in a script without blanks between words consists of
// several that count: then the query is a question.
func significant(words []string, among []analysis.Language) (counting []string, divided bool) {
	words, divided = query.Divide(words)
	counting = analysis.Significant(words, among)
	return counting, divided && len(counting) > 1
}

// option returns the condition for a word with hyphens before it, as it is written.
func (t *translator) option(word string) object {
	sign, ok := analysis.OptionSign(word)
	if !ok {
		return none()
	}
	g := gathering{t: t, leaf: &leaf{weight: 1}}
	g.pattern([]string{sign}, 0, false)
	return bestOf(g.queries)
}

// addPieces adds to what a plain query matches the pieces of words in scripts
// without blanks between words that no document has. It reports whether there are
// any.
func (s *Store) addPieces(m *matching) (bool, error) {
	s.mu.Lock()
	t := &translator{langs: m.langs, now: time.Now(), boost: s.boost}
	s.mu.Unlock()
	var queries []object
	for i, w := range m.words {
		if m.seen[wordName(i)] {
			continue
		}
		for _, piece := range query.Pieces(w) {
			if t.clauses > pieceClauses {
				break
			}
			p, err := t.node(query.Term{Text: piece})
			if err != nil {
				return false, err
			}
			if !p.void {
				queries = append(queries, p.query)
				m.leaves = append(m.leaves, p.leaves...)
			}
		}
	}
	if len(queries) > 0 {
		m.query = anyOf(append(queries, m.query))
	}
	return len(queries) > 0, nil
}

// plain translates the words and signs of a plain query. Documents with whole, words
// as they are in the query, are preferred.
func (t *translator) plain(m *matching, words, whole, signs []string) error {
	m.part.void = true
	times := map[string]float64{}
	var queries []object
	var of []string // the words of the leaves
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
		queries = append(queries, object{"bool": object{"must": []object{p.query}, "_name": wordName(len(m.words))}})
		m.words = append(m.words, w)
		m.leaves = append(m.leaves, p.leaves...)
		of = append(of, slices.Repeat([]string{w}, len(p.leaves))...)
	}
	for i, l := range m.leaves {
		l.weight = min(l.weight*times[of[i]], relevance.MaxWeight)
	}
	if m.part.void {
		m.query = none()
		return nil
	}
	all := object{"bool": object{"must": queries}}
	for _, sign := range signs[:min(len(signs), relevance.MaxSigns)] {
		g := gathering{t: t, leaf: &leaf{weight: 1}}
		g.pattern([]string{sign}, 0, false)
		queries = append(queries, bestOf(g.queries))
		m.leaves = append(m.leaves, g.leaf)
	}
	if !m.some {
		m.query = all
		return nil
	}
	for _, w := range whole {
		if _, divided := query.Divide([]string{w}); !divided || t.clauses > plainClauses {
			continue
		}
		p, err := t.node(query.Term{Text: w})
		if err != nil {
			return err
		}
		if !p.void {
			queries = append(queries, p.query)
			m.leaves = append(m.leaves, p.leaves...)
		}
	}
	m.complete, m.query = all, anyOf(queries)
	return nil
}

// wordName returns the name of the condition on word i of a plain query.
func wordName(i int) string { return fmt.Sprintf("word%d", i) }

// A ranked is a document of a page.
type ranked struct {
	row   row // Number, Revision, Twin, Title and Lang until it is on a page
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
	for {
		page, err := s.searchOnce(ctx, q)
		if errors.Is(err, errLanguages) {
			continue // now they are known
		}
		if err != nil {
			return nil, fmt.Errorf("searching: %w", err)
		}
		return page, nil
	}
}

// errLanguages says that a query was not translated for all languages of the
// documents.
var errLanguages = errors.New("the documents have more languages")

// searchOnce makes a search in three rounds: one that finds documents and chunks,
// one that scores those documents whose best chunk is not among the best of all,
// and one that reads the page. Before it, there is one for the chunks that are
// close in meaning.
func (s *Store) searchOnce(ctx context.Context, q search.Query) (*search.Page, error) {
	m, err := s.match(q, s.knownLanguages(), false)
	if err != nil {
		return nil, err
	}
	d, err := s.dense(ctx, m, q)
	if err != nil {
		return nil, err
	}
	page, list, err := s.find(ctx, m, d, q, nil)
	if err != nil {
		return nil, err
	}
	list = list[min(q.Start, len(list)):min(q.Start+q.Num, len(list))]
	return page, s.readPage(ctx, m, list, q, page)
}

// find returns a page without hits, and the documents up to the end of the page,
// after two rounds. If also is not nil, it adds searches to the second round; the
// documents have some of the revisions that it gets.
func (s *Store) find(ctx context.Context, m *matching, d *dense, q search.Query, also func(r *round, revisions []string)) (*search.Page, []ranked, error) {
	byScore := len(m.leaves) > 0 && (len(q.Sort) == 0 || q.Sort[0] == (search.SortKey{Field: "score", Desc: true}))
	n := 0
	if q.Num > 0 {
		n = q.Start + q.Num
	}
	if byScore && n > 0 {
		n = max(n, rankDepth)
	}
	r := &round{s: s}
	var list []ranked
	// To collapse documents with the same text, OpenSearch scores all that match. So
	// for an order by score it returns more of the best ones, unless those are not
	// enough.
	enough := true
	documents := func(collapse bool, n int) {
		body := m.documents(collapse)
		body["sort"], body["size"], body["track_total_hits"] = order(q.Sort, byScore, m), min(n, search.Window), false
		r.add(inDocuments, body, func(r *result) error {
			list = m.ranked(r)
			enough = len(list) < min(n, search.Window)
			return nil
		})
	}
	switch {
	case n == 0:
	case q.Distinct && byScore && s.hasTwins.Load():
		documents(false, 2*n)
	case q.Distinct && byScore:
		documents(false, n) // most collections have few or none
	default:
		documents(q.Distinct, n)
	}
	page, err := s.count(r, m, q)
	if err != nil {
		return nil, nil, err
	}
	best := map[string]chunkHit{} // by revision
	if byScore && n > 0 && m.some {
		s.bestChunks(r, m.leaves, m.labels, nil, rankDepth*relevance.OfDocument, func(hits []chunkHit) {
			for _, h := range hits {
				if _, ok := best[h.Revision]; !ok && len(best) < rankDepth {
					best[h.Revision] = h
				}
			}
		})
	}
	if err := s.checkLanguages(ctx, r, m); err != nil {
		return nil, nil, err
	}
	if m.some && !m.pieced && n > 0 {
		m.pieced = true
		if more, err := s.addPieces(m); more || err != nil {
			if err != nil {
				return nil, nil, err
			}
			return s.find(ctx, m, d, q, also)
		}
	}
	if q.Distinct && byScore && m.repeated {
		s.hasTwins.Store(true)
		if list = distinct(list); len(list) < n && !enough {
			documents(true, n)
			if err := r.send(ctx); err != nil {
				return nil, nil, err
			}
		}
	}
	list = list[:min(len(list), n)]
	similar := s.similar(r, m, page.Total)
	if also != nil {
		revisions := append(slices.Collect(maps.Keys(best)), d.revisions()...)
		for _, r := range list {
			revisions = append(revisions, r.row.Revision)
		}
		also(r, revisions)
	}
	if byScore && len(list) > 0 {
		list, err = s.rank(ctx, r, m, d, q, list, best)
	} else {
		err = r.send(ctx)
	}
	m.missing = similar()
	return page, list, err
}

// distinct returns the first document of each text.
func distinct(list []ranked) []ranked {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(r ranked) bool {
		again := seen[r.row.Twin]
		seen[r.row.Twin] = true
		return again
	})
}

// checkLanguages sends a round, together with a question for the languages of
// the documents if those known may be old. The error is errLanguages if a query
// was not translated for all of them.
func (s *Store) checkLanguages(ctx context.Context, r *round, m *matching) error {
	if !s.languagesFresh() {
		r.add(inDocuments, languagesBody(), s.noteLanguages)
	}
	err := r.send(ctx)
	if err == nil && !slices.Equal(m.langs, s.knownLanguages()) {
		err = errLanguages
	}
	return err
}

// documents returns the search for the documents that match. It reads little of
// each, because most of them are not on the page.
func (m *matching) documents(collapse bool) object {
	body := only(object{"query": object{"bool": object{"filter": m.filter, "must": []object{m.query}}}}, "revision", "twin", "title", "lang", "number")
	if collapse {
		body["collapse"] = object{"field": "twin"}
	}
	return body
}

// condition returns the condition that a document matches.
func (m *matching) condition() object {
	return object{"bool": object{"filter": append(slices.Clone(m.filter), m.query)}}
}

// count adds the search that counts the documents that match. The page that it
// returns has the counts when the round is over.
func (s *Store) count(r *round, m *matching, q search.Query) (*search.Page, error) {
	page := &search.Page{}
	aggs := object{}
	least := s.leastTwins()
	if q.Distinct {
		addRepeated(aggs, least)
	}
	if m.complete != nil {
		complete := object{"filter": m.complete}
		if q.Distinct {
			complete["aggs"] = addRepeated(object{}, least)
		}
		aggs["complete"] = complete
	}
	if q.Facets != nil {
		if err := facetAggregations(q, m.langs, aggs); err != nil {
			return nil, err
		}
	}
	body := object{"size": 0, "track_total_hits": true, "query": m.condition()}
	if len(aggs) > 0 {
		body["aggs"] = aggs
	}
	r.add(inDocuments, body, func(r *result) (err error) {
		repeated := r.repeated()
		page.Total, m.repeated = r.Hits.Total.Value-repeated, repeated > 0
		if m.complete != nil {
			page.Staged, page.AllWords = true, r.inside("complete")
		}
		if q.Facets != nil {
			page.Facets, err = facetCounts(q.Facets, r)
		}
		return err
	})
	return page, nil
}

// addRepeated adds the aggregation for [result.repeated]. OpenSearch makes a
// bucket for each text that several documents have, and sends only their sum.
// least is how many of them a shard must have.
func addRepeated(aggs object, least int) object {
	aggs["twins"] = object{"terms": object{"field": "twin", "min_doc_count": 2, "shard_min_doc_count": least, "size": maxValues}}
	aggs["repeated"] = object{"stats_bucket": object{"buckets_path": "twins>_count"}}
	return aggs
}

// leastTwins returns how many documents with the same text a shard must have to
// make a bucket for it: two if there are no other shards, which saves one bucket
// for each document.
func (s *Store) leastTwins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.oneShard {
		return 2
	}
	return 0
}

// repeated returns how many documents there are beyond the first one of each
// text, 0 if they were not counted.
func (r *result) repeated() int {
	var agg struct {
		Count int     `json:"count"`
		Sum   float64 `json:"sum"`
	}
	if json.Unmarshal(r.Aggregations["repeated"], &agg) != nil {
		return 0
	}
	return int(agg.Sum) - agg.Count
}

// inside returns the number of documents of an aggregation with a filter.
func (r *result) inside(name string) int {
	var agg struct {
		Count    int             `json:"doc_count"`
		Repeated json.RawMessage `json:"repeated"`
	}
	if json.Unmarshal(r.Aggregations[name], &agg) != nil {
		return 0
	}
	inner := result{Aggregations: map[string]json.RawMessage{"repeated": agg.Repeated}}
	return agg.Count - inner.repeated()
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

// ranked decodes documents in their order, and notes which words they have.
func (m *matching) ranked(r *result) []ranked {
	out := make([]ranked, len(r.Hits.Hits))
	for i, h := range r.Hits.Hits {
		words := 0 // of the query
		for _, name := range h.Matched {
			m.seen[name] = true
			words++
		}
		out[i] = ranked{row: h.Fields.row(), chunk: -1, score: h.score(), all: m.complete != nil && words == len(m.words)}
	}
	return out
}

// A chunkHit is a chunk with its score.
type chunkHit struct {
	chunkRow
	score float64
}

// bestChunks adds a search for the n best chunks by some leaves, with one of the
// labels (nil: any) and of one of the revisions (nil: any). Without conditions
// that chunks can be ranked by, found is not called.
func (s *Store) bestChunks(r *round, leaves []*leaf, labels, revisions []string, n int, found func([]chunkHit)) {
	if body := bestChunks(leaves, labels, revisions, n); body != nil {
		s.addChunks(r, body, found)
	}
}

// bestChunkOfEach adds a search for the best chunk of each of some revisions.
func (s *Store) bestChunkOfEach(r *round, leaves []*leaf, labels, revisions []string, found func([]chunkHit)) {
	if body := bestChunks(leaves, labels, revisions, len(revisions)); body != nil {
		body["collapse"] = object{"field": "revision"}
		s.addChunks(r, body, found)
	}
}

// bestChunks returns the search for the best chunks, nil if there is nothing to
// search for.
func bestChunks(leaves []*leaf, labels, revisions []string, n int) object {
	q, ok := chunkQuery(leaves)
	if !ok || n == 0 || revisions != nil && len(revisions) == 0 {
		return nil
	}
	filter := filters(labels, nil, nil)
	if revisions != nil {
		filter = append(filter, oneOf("revision", revisions))
	}
	return object{"size": n, "query": object{"bool": object{"filter": filter, "must": []object{q}}}, "sort": chunkOrder}
}

// chunkOrder is the order of chunks by score.
var chunkOrder = []object{{"_score": "desc"}, {"number": "asc"}, {"n": "asc"}}

// addChunks adds a search for chunks without their texts.
func (s *Store) addChunks(r *round, body object, found func([]chunkHit)) {
	body["track_total_hits"], body["sort"] = false, chunkOrder
	r.add(inChunks, only(body, "revision"), func(r *result) error {
		hits := make([]chunkHit, len(r.Hits.Hits))
		for i, h := range r.Hits.Hits {
			c := chunkRow{Revision: first(h.Fields.Revision)}
			if len(h.Sort) != len(chunkOrder) || json.Unmarshal(h.Sort[1], &c.Number) != nil || json.Unmarshal(h.Sort[2], &c.N) != nil {
				return notOpenSearch("/_search")
			}
			hits[i] = chunkHit{c, h.score()}
		}
		found(hits)
		return nil
	})
}

// rank orders documents by relevance: first those that are ranked by their best
// chunk, then the others in the order of list, which has the best documents that
// match. The order does not depend on the length of list. best are the best
// chunks of documents, which may not be in list; that of other documents is added
// to it. What r has already is sent, too.
func (s *Store) rank(ctx context.Context, r *round, m *matching, d *dense, q search.Query, list []ranked, best map[string]chunkHit) ([]ranked, error) {
	first := list[:min(len(list), rankDepth)]
	listed := map[string]bool{}
	var unscored, unplaced []string // revisions without a score by words, and by meaning
	place := func(revision string) {
		listed[revision] = true
		if _, ok := best[revision]; !ok {
			unscored = append(unscored, revision)
		}
		if d.documents && !d.isNear(revision) {
			unplaced = append(unplaced, revision)
		}
	}
	for _, r := range first {
		place(r.row.Revision)
	}
	var more []string // documents that are not among the first
	for _, revision := range append(slices.Sorted(maps.Keys(best)), d.revisions()...) {
		if !listed[revision] {
			more = append(more, revision)
			place(revision)
		}
	}
	if len(more) > 0 {
		body := m.documents(false)
		body["query"] = object{"bool": object{"filter": []object{body["query"].(object), oneOf("revision", more)}}}
		body["size"], body["track_total_hits"] = len(more), false
		r.add(inDocuments, body, func(r *result) error {
			first = append(slices.Clone(first), m.ranked(r)...)
			return nil
		})
	}
	s.bestChunkOfEach(r, m.leaves, m.labels, unscored, func(hits []chunkHit) {
		for _, h := range hits {
			best[h.Revision] = h
		}
	})
	cosines := map[string]chunkHit{}
	for _, h := range d.near {
		cosines[h.Revision] = h
	}
	if len(d.near) > 0 && len(unplaced) > 0 {
		d.nearest(r, append(filters(m.labels, nil, nil), oneOf("revision", unplaced)), search.Window/10, len(unplaced), func(hits []chunkHit) {
			for _, h := range hits {
				cosines[h.Revision] = h
			}
		})
	}
	if err := r.send(ctx); err != nil {
		return nil, err
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
				r.score *= 1 + relevance.CompleteBonus
			}
		}
		out = append(out, r)
	}
	byScore(out)
	out = d.rank(out, cosines)
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
func preferTitled(text query.Text, list []ranked) {
	if text.Kind() != query.Words || len(list) < 2 {
		return
	}
	top := list[0].score
	tokens := map[analysis.Language][]string{} // of the query
	for i := range list {
		l := analysis.LanguageOf(list[i].row.Lang)
		if _, ok := tokens[l]; !ok {
			tokens[l] = tokensOf(text.String(), l)
		}
		if slices.Equal(tokensOf(list[i].row.Title, l), tokens[l]) {
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

// readPage reads the documents of a page, makes its hits, and finishes it.
func (s *Store) readPage(ctx context.Context, m *matching, list []ranked, q search.Query, page *search.Page) error {
	r := &round{s: s}
	source := onlyRow
	if q.Passages > 0 {
		source = withoutTokens
	}
	rows := s.readRows(r, m, list, source)
	if q.Distinct && m.repeated {
		m.addAlso(r, list)
	}
	t := s.readTexts(r, m, list, q.Passages > 0)
	s.addSimilar(r, m, page)
	if err := r.send(ctx); err != nil || len(list) == 0 {
		return err
	}
	list = slices.DeleteFunc(list, func(r ranked) bool { return rows[r.row.Number] == nil }) // removed meanwhile
	for i, r := range list {
		if full := rows[r.row.Number]; full.Revision == r.row.Revision {
			list[i].row = *full
		}
	}
	passages, size := make([][]search.Passage, len(list)), passage.TextDigest
	if q.Passages > 0 {
		var err error
		if passages, err = s.passages(ctx, m, list, t, q.Passages); err != nil {
			return err
		}
		size = passage.ShortDigest
	}
	var inText, inTitle *analysis.Wanted
	if len(m.leaves) > 0 {
		inText, inTitle = passage.Wanted(conditions(m.leaves, "title", t.weight)), passage.Wanted(conditions(m.leaves, "content", t.weight))
	}
	out := make([]search.Hit, len(list))
	for i, r := range list {
		full := rows[r.row.Number]
		h, language := full.hit(), analysis.LanguageOf(full.Lang)
		if h.Passages = passages[i]; len(h.Passages) == 0 {
			text := document.Truncate(t.chunks[chunkID(r.row.Revision, max(r.chunk, 0))].Text, passage.MaxChunk)
			h.Digest = passage.Digest(text, language, inText, size)
		}
		h.TitleExcerpt = passage.Digest(h.Title, language, inTitle, passage.TitleDigest)
		h.Also = r.also
		if len(q.Sort) == 0 || q.Sort[0].Field == "score" {
			h.Score = r.score
		}
		out[i] = h
	}
	page.Hits = out
	return nil
}

// readRows adds a search for the rows of a page. The result has them by number when
// the round is over, without those that do not meet the conditions any more. source
// says what is read of each.
func (s *Store) readRows(r *round, m *matching, list []ranked, source object) map[int64]*row {
	out := map[int64]*row{}
	if len(list) == 0 {
		return out
	}
	numbers := make([]int64, len(list))
	for i, r := range list {
		numbers[i] = r.row.Number
	}
	body := object{"size": len(numbers), "track_total_hits": false, "_source": source, "query": object{"bool": object{"filter": append(slices.Clone(m.filter), oneOf("number", numbers))}}}
	r.add(inDocuments, body, func(r *result) error {
		rows, err := r.rows()
		for i := range rows {
			out[rows[i].Number] = &rows[i]
		}
		return err
	})
	return out
}

// addAlso adds a search for the paths of the other documents that match and have
// the text of a document of a page, and adds them to list.
func (m *matching) addAlso(r *round, list []ranked) {
	var twins []string
	for _, r := range list {
		if !strings.HasPrefix(r.row.Twin, noTwin) {
			twins = append(twins, r.row.Twin)
		}
	}
	if len(twins) == 0 {
		return
	}
	body := only(object{"size": pageSize, "track_total_hits": false, "sort": []object{{"path": "asc"}, {"number": "asc"}},
		"query": object{"bool": object{"filter": []object{m.condition(), oneOf("twin", twins)}}}}, "number", "path", "source_path", "title", "twin")
	r.add(inDocuments, body, func(r *result) error {
		for i, x := range list {
			for _, h := range r.Hits.Hits {
				if o := h.Fields.row(); o.Twin == x.row.Twin && o.Number != x.row.Number && o.Path != "" && len(list[i].also) < maxAlso {
					list[i].also = append(list[i].also, document.ResultPath(o.Path, o.SourcePath, o.Title))
				}
			}
		}
		return nil
	})
}

// texts are the chunks of a page that have been read.
type texts struct {
	best   []chunkHit          // the best of the page, for passages
	chunks map[string]chunkRow // by ID
	counts
}

// readTexts adds the searches for the best chunks of the documents of a page, and
// for those that passages can be made of.
func (s *Store) readTexts(r *round, m *matching, list []ranked, passages bool) *texts {
	t := &texts{chunks: map[string]chunkRow{}}
	ids, revisions := make([]string, len(list)), make([]string, len(list))
	for i, r := range list {
		ids[i], revisions[i] = chunkID(r.row.Revision, max(r.chunk, 0)), r.row.Revision
	}
	s.readChunks(r, ids, t.chunks)
	if body := bestChunks(m.leaves, m.labels, revisions, passage.MaxChunks); passages && body != nil {
		body["_source"], body["track_total_hits"] = onlyChunk, false
		r.add(inChunks, body, func(r *result) error {
			for _, h := range r.Hits.Hits {
				var c chunkRow
				if err := json.Unmarshal(h.Source, &c); err != nil {
					return damaged(err)
				}
				t.chunks[h.ID] = c
				t.best = append(t.best, chunkHit{c, h.score()})
			}
			return nil
		})
		t.countLeaves(r, m.leaves)
	}
	return t
}

// onlyChunk is what is read of a chunk: all but what only searches use.
var onlyChunk = object{"excludes": []string{"tokens", vectorField + "*"}}

// readChunks adds a search for chunks with their texts, which are added to out by
// ID. Those that do not exist any more are left out.
func (s *Store) readChunks(r *round, ids []string, out map[string]chunkRow) {
	if len(ids) == 0 {
		return
	}
	body := object{"size": len(ids), "track_total_hits": false, "query": object{"ids": object{"values": ids}}, "_source": onlyChunk}
	r.add(inChunks, body, func(r *result) error {
		for _, h := range r.Hits.Hits {
			var c chunkRow
			if err := json.Unmarshal(h.Source, &c); err != nil {
				return damaged(err)
			}
			out[h.ID] = c
		}
		return nil
	})
}
