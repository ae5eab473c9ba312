package opensearch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/relevance"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
)

// Limits of queries.
const (
	maxClauses   = 900 // conditions on words of one query
	plainClauses = 280 // clauses of the words of a plain query, which are sent three times; OpenSearch accepts 1,024
	pieceClauses = 60  // clauses of the pieces of words that no document has
	expansions   = 1000
	langsFresh   = 10 * time.Second
)

// A part is the translation of a part of the tree of a query.
type part struct {
	query object // for documents
	// void reports whether the part contains nothing to search for, such as a
	// dash alone. A void part is ignored.
	void   bool
	leaves []*leaf // conditions on words that are not negated
}

// A leaf is a condition on words, for the ranking of chunks and for excerpts.
type leaf struct {
	weight   float64
	queries  []object // any of them, over documents
	chunk    []object // any of them, over chunks
	field    string   // title, content, or "" for all
	patterns []pattern
	match    func(word string) bool // words as written; nil if there are none
	counted  *counted               // its number of documents; nil if it is not counted
}

// A pattern is tokens in sequence. If prefix is true, the last one stands for all
// that begin with it.
type pattern struct {
	tokens []string
	prefix bool
}

// A matching is the translation of a request.
type matching struct {
	part
	filter   []object   // conditions that the query cannot widen
	labels   []string   // one of them is a condition; nil if there is none
	complete object     // documents with all words that count; nil unless some are enough
	extra    []object   // conditions that only count in the ranking
	quoted   object     // documents with a phrase of the plan, in which chunks have no order of words; nil if it has none
	titles   []string   // documents with such a title_key come first
	words    []*counted // those of the words of the plan
	counted  []*counted // all of them
	total    int        // all documents
}

// A counted is a condition on words, and the number of documents that meet it; -1 if
// they were not counted.
type counted struct {
	query object
	n     int
}

// matching returns what a request means for documents in some languages.
func (s *Store) matching(r *retrieval.Request, langs []analysis.Language) (*matching, error) {
	s.mu.Lock()
	t, documents := &translator{langs: langs, now: time.Now(), boost: s.boost}, s.documents
	s.mu.Unlock()
	m := &matching{total: documents, filter: append(filters(r.Labels, r.Langs, r.Tags), writtenOnly(r.Written)...),
		labels: r.Labels}
	for _, option := range r.Text.Options() {
		if sign, ok := analysis.OptionSign(option); ok {
			m.filter = append(m.filter, t.sign(sign).query)
		} else {
			m.filter = append(m.filter, none())
		}
	}
	if filter := r.Text.Filter(); filter != nil {
		part, err := t.node(filter)
		if err != nil {
			return nil, err
		}
		m.filter = append(m.filter, part.query)
	}
	var err error
	switch p := r.Plan; {
	case p == nil || p.Everything():
		m.query = object{"match_all": object{}}
	case p.Words == nil:
		m.part, err = t.node(p.Tree)
		for _, l := range m.leaves {
			l.counted = &counted{anyOf(l.queries), -1}
			m.counted = append(m.counted, l.counted)
		}
	default:
		err = t.plain(m, p)
	}
	if m.void {
		m.query = none()
	}
	return m, err
}

// plain translates the words of a plan.
func (t *translator) plain(m *matching, p *retrieval.Plan) error {
	m.void = true
	var all []object
	for _, w := range p.Words {
		if p.Some && t.clauses > plainClauses {
			break // the other words of such a long text are left out
		}
		part, err := t.node(w.Node)
		if err != nil {
			return err
		}
		c := &counted{part.query, -1}
		m.words = append(m.words, c)
		if part.void {
			continue
		}
		for _, l := range part.leaves {
			l.weight = min(l.weight*w.Weight, relevance.MaxWeight)
			l.counted = c
		}
		m.void = false
		all, m.leaves, m.counted = append(all, part.query), append(m.leaves, part.leaves...), append(m.counted, c)
	}
	for _, tokens := range p.Titles {
		if len(tokens) > 0 {
			m.titles = append(m.titles, strings.Join(tokens, " "))
		}
	}
	m.query = object{"bool": object{"must": all}}
	if m.void {
		return nil
	}
	some := slices.Clone(all)
	add := func(to *[]object, part part, err error) error {
		if err == nil && !part.void {
			*to, m.leaves = append(*to, part.query), append(m.leaves, part.leaves...)
		}
		return err
	}
	for _, sign := range p.Signs {
		to := &some
		if !p.Some {
			to = &m.extra
		}
		if err := add(to, t.sign(sign), nil); err != nil {
			return err
		}
	}
	for _, n := range p.Pieces {
		if t.clauses > plainClauses+pieceClauses {
			break
		}
		part, err := t.node(n)
		if err := add(&some, part, err); err != nil {
			return err
		}
	}
	if len(p.Phrases) > 0 {
		part, err := t.or(p.Phrases)
		if err != nil {
			return err
		}
		if !part.void {
			m.quoted = part.query
		}
	}
	for _, n := range p.Extra {
		if t.clauses > plainClauses+pieceClauses {
			break
		}
		part, err := t.node(n)
		if err := add(&m.extra, part, err); err != nil {
			return err
		}
	}
	if p.Some {
		m.complete, m.query = m.query, anyOf(some)
	}
	return nil
}

// sign returns what a sign, which is one token, means.
func (t *translator) sign(sign string) part {
	g := gathering{t: t, leaf: &leaf{weight: 1}}
	g.pattern([]string{sign}, 0, false)
	return part{query: bestOf(g.leaf.queries), leaves: []*leaf{g.leaf}}
}

// weight returns the weight of a leaf in the ranking. A leaf that is not counted has
// the weight of a common one.
func (m *matching) weight(l *leaf) float32 {
	n := -1
	if l.counted != nil {
		n = l.counted.n
	}
	if n < 0 {
		for _, c := range m.counted {
			n = max(n, c.n)
		}
	}
	n = max(n, 0)
	return float32(l.weight * relevance.IDF(max(n, m.total), n))
}

// A translator translates the tree of a query.
type translator struct {
	langs   []analysis.Language // English among them
	boost   float64             // of tokens of chunks
	now     time.Time
	words   int // conditions on words so far
	clauses int // of OpenSearch that these are
}

// node returns what a part of a query means.
func (t *translator) node(n query.Node) (part, error) {
	switch n := n.(type) {
	case query.All:
		return part{query: object{"match_all": object{}}}, nil
	case query.And:
		p, err := t.and(n.Nodes)
		if err != nil || len(n.Optional) == 0 {
			return p, err
		}
		more, err := t.or(n.Optional)
		if err != nil || more.void || p.void {
			return p, err
		}
		p.query = object{"bool": object{"must": []object{p.query}, "should": []object{more.query}}}
		p.leaves = append(p.leaves, more.leaves...)
		return p, nil
	case query.Or:
		return t.or(n.Nodes)
	case query.Not:
		return t.and([]query.Node{n})
	case query.Boost:
		p, err := t.node(n.Node)
		if err != nil || p.void {
			return p, err
		}
		for _, l := range p.leaves {
			l.weight = min(l.weight*n.Factor, relevance.MaxWeight)
		}
		p.query = object{"bool": object{"must": []object{p.query}, "boost": n.Factor}}
		return p, nil
	case query.Range:
		q, err := t.inRange(n)
		return part{query: q}, err
	case query.Term:
		return t.leaf(n, n.Field, n.Text)
	case query.Phrase:
		return t.leaf(n, n.Field, n.Text)
	case query.Prefix:
		return t.leaf(n, n.Field, n.Text)
	case query.Wildcard:
		return t.leaf(n, n.Field, n.Pattern)
	case query.Fuzzy:
		return t.leaf(n, n.Field, n.Text)
	}
	return part{}, fmt.Errorf("the query has a part of an unknown kind (%T): %w", n, errkind.Invalid)
}

// and returns what matches all nodes and none of the negated ones.
func (t *translator) and(nodes []query.Node) (part, error) {
	var must, not []object
	out := part{void: true}
	for _, n := range nodes {
		no, negated := n.(query.Not)
		if negated {
			n = no.Node
		}
		p, err := t.node(n)
		switch {
		case err != nil:
			return out, err
		case p.void:
		case negated:
			not, out.void = append(not, p.query), false
		default:
			must, out.void = append(must, p.query), false
			out.leaves = append(out.leaves, p.leaves...)
		}
	}
	switch {
	case not == nil && len(must) == 1:
		out.query = must[0]
	case not == nil:
		out.query = object{"bool": object{"must": must}}
	default:
		out.query = object{"bool": object{"must": append(must, object{"match_all": object{"boost": 0}}),
			"must_not": not}}
	}
	if out.void {
		out.query = none()
	}
	return out, nil
}

// or returns what matches any node.
func (t *translator) or(nodes []query.Node) (part, error) {
	var should []object
	out := part{void: true}
	for _, n := range nodes {
		p, err := t.node(n)
		if err != nil {
			return out, err
		}
		if p.void {
			continue
		}
		out.void = false
		should = append(should, p.query)
		out.leaves = append(out.leaves, p.leaves...)
	}
	out.query = anyOf(should)
	return out, nil
}

// anyOf returns a query for what matches one of some queries.
func anyOf(queries []object) object {
	switch len(queries) {
	case 0:
		return none()
	case 1:
		return queries[0]
	}
	return object{"bool": object{"should": queries, "minimum_should_match": 1}}
}

// bestOf is anyOf, but only the best of the queries counts in the ranking.
func bestOf(queries []object) object {
	if len(queries) > 1 {
		return object{"dis_max": object{"queries": queries}}
	}
	return anyOf(queries)
}

// leaf returns what a condition on a field means.
func (t *translator) leaf(n query.Node, field, text string) (part, error) {
	if field != "" && field != "title" && field != "content" {
		q, err := t.field(n, field, text)
		return part{query: q}, err
	}
	if w, ok := n.(query.Wildcard); ok && strings.Trim(w.Pattern, "*?") == "" {
		return t.node(query.All{})
	}
	if t.words++; t.words > maxClauses {
		return part{}, fmt.Errorf("the query has more than %d conditions on words: use fewer: %w", maxClauses,
			errkind.Invalid)
	}
	l := &leaf{weight: 1, field: field}
	g := gathering{t: t, leaf: l}
	switch n := n.(type) {
	case query.Term:
		g.term(n.Text, 0)
	case query.Phrase:
		g.term(n.Text, n.Slop)
	case query.Prefix:
		g.prefix(n.Text)
	case query.Wildcard:
		if err := g.wildcard(n.Pattern); err != nil {
			return part{}, err
		}
	case query.Fuzzy:
		single := g.term(n.Text, 0)
		if single && n.Edits > 0 && utf8.RuneCountInString(n.Text) <= query.MaxFuzzyWord {
			g.written("fuzzy", object{"value": analysis.Lower(n.Text), "fuzziness": min(n.Edits, 2),
				"max_expansions": expansions})
		}
	}
	if len(g.leaf.queries) == 0 {
		_, wildcard := n.(query.Wildcard)
		return part{query: none(), void: !wildcard}, nil
	}
	t.clauses += len(g.leaf.queries)
	return part{query: bestOf(g.leaf.queries), leaves: []*leaf{l}}, nil
}

// A gathering collects the queries of one condition on words.
type gathering struct {
	t    *translator
	leaf *leaf
}

// tokenField returns the field of the tokens of the condition.
func (g *gathering) tokenField() string {
	switch g.leaf.field {
	case "title":
		return "title_tokens"
	case "content":
		return "text_tokens"
	}
	return "all"
}

// term adds a word or phrase in the languages of the documents. It reports
// whether it is one token.
func (g *gathering) term(text string, slop int) (single bool) {
	for _, tokens := range analysis.Variants(text, g.t.langs, false) {
		single = len(tokens) == 1
		g.pattern(tokens, slop, analysis.Lone(tokens[len(tokens)-1]))
	}
	return single
}

// pattern adds tokens in sequence, of which the last one may stand for all that
// begin with it.
func (g *gathering) pattern(tokens []string, slop int, prefix bool) {
	last, field := tokens[len(tokens)-1], g.tokenField()
	g.leaf.patterns = append(g.leaf.patterns, pattern{tokens, prefix})
	switch {
	case len(tokens) == 1 && prefix:
		g.leaf.queries = append(g.leaf.queries, object{"prefix": object{field: last}})
	case len(tokens) == 1:
		g.leaf.queries = append(g.leaf.queries, term(field, last))
	case prefix:
		g.leaf.queries = append(g.leaf.queries,
			object{"match_phrase_prefix": object{field: object{"query": strings.Join(tokens, " "), "slop": slop,
				"analyzer": "whitespace", "max_expansions": expansions}}})
	default:
		g.leaf.queries = append(g.leaf.queries, object{"match_phrase": object{field: object{"query": strings.Join(tokens,
			" "), "slop": slop, "analyzer": "whitespace"}}})
	}
	var chunk []object
	for i, t := range tokens {
		if prefix && i == len(tokens)-1 {
			chunk = append(chunk, object{"prefix": object{chunkTokens: t}})
		} else {
			chunk = append(chunk, object{"term": object{chunkTokens: object{"value": t, "boost": g.t.boost}}})
		}
	}
	if len(chunk) == 1 {
		g.leaf.chunk = append(g.leaf.chunk, chunk[0])
	} else {
		g.leaf.chunk = append(g.leaf.chunk, object{"bool": object{"must": chunk, "boost": 1 / float64(len(chunk))}})
	}
}

// chunkTokens is the field of the tokens of chunks.
const chunkTokens = "chunks.tokens"

// written adds a query over the words as people write them.
func (g *gathering) written(kind string, value any) {
	field := "words"
	if g.leaf.field == "title" {
		field = "title_words"
	}
	g.leaf.queries = append(g.leaf.queries, object{kind: object{field: value}})
}

// prefix adds the words that begin with text. Their tokens may begin otherwise,
// because stemming removed or changed the ending.
func (g *gathering) prefix(text string) {
	variants := analysis.Variants(text, g.t.langs, true)
	for _, tokens := range variants {
		last := tokens[len(tokens)-1]
		r, _ := utf8.DecodeRuneInString(last)
		g.pattern(tokens, 0, !analysis.IsCJK(r) || analysis.Lone(last))
	}
	if len(variants) == 0 || len(variants[0]) != 1 {
		return
	}
	text = analysis.Lower(text)
	g.leaf.match = func(word string) bool { return strings.HasPrefix(word, text) }
	g.written("prefix", object{"value": text})
}

// wildcard adds the words that match a pattern.
func (g *gathering) wildcard(pattern string) error {
	pattern = analysis.Lower(pattern)
	if err := query.CheckGlob(pattern); err != nil {
		return err
	}
	g.written("wildcard", object{"value": pattern})
	g.leaf.chunk = append(g.leaf.chunk, object{"wildcard": object{chunkTokens: object{"value": pattern}}})
	return nil
}

// escaped escapes the wildcards of a text.
var escaped = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`)

// keywords are the fields with one value that is not tokenized.
var keywords = []string{"label", "filetype", "mimetype", "host", "filename", "lang", "url", "doc_id"}

// field returns what a condition on a field without words means. A field that no
// document has matches nothing.
func (t *translator) field(n query.Node, field, text string) (object, error) {
	_, wildcard := n.(query.Wildcard)
	_, prefix := n.(query.Prefix)
	switch field {
	case "timestamp", "last_modified", "content_length":
		return t.inRange(query.Range{Field: field, Low: text, High: text})
	case "inurl":
		field = "url"
		if !wildcard {
			text = escaped.Replace(text)
		}
		text, wildcard = "*"+text+"*", true
	case "site":
		prefix = !wildcard
	default:
		if !slices.Contains(keywords, field) {
			return none(), nil
		}
	}
	switch {
	case wildcard:
		if err := query.CheckGlob(text); err != nil {
			return nil, err
		}
		return all(object{"wildcard": object{field: object{"value": text}}}), nil
	case prefix:
		return all(object{"prefix": object{field: object{"value": text}}}), nil
	}
	if field == "filetype" {
		text = query.FileType(text)
	}
	return all(term(field, text)), nil
}

// inRange returns what a range means. An end that stands for several values,
// such as a day, is in the range as a whole or not at all.
func (t *translator) inRange(r query.Range) (object, error) {
	field := r.Field
	bound := func(s string) (from, beyond any, err error) { return s, nil, nil }
	switch r.Field {
	case "timestamp", "last_modified":
		field = "modified"
		bound = func(s string) (any, any, error) {
			a, b, err := query.DateSpan(s, t.now)
			return a.UnixMilli(), b.UnixMilli(), err
		}
	case "content_length":
		field = "size"
		bound = func(s string) (any, any, error) {
			n, _, err := query.SizeBound(s)
			return n, nil, err
		}
	case "", "title", "content":
		return nil, fmt.Errorf("a range needs a field whose values have an order, for example timestamp:[now/d-7d TO *]: %w",
			errkind.Invalid)
	default:
		if !slices.Contains(keywords, r.Field) {
			return none(), nil
		}
	}
	limits := object{}
	if r.Low != "" && r.Low != "*" {
		from, beyond, err := bound(r.Low)
		if err != nil {
			return nil, err
		}
		switch {
		case r.LowExcl && beyond != nil:
			limits["gte"] = beyond
		case r.LowExcl:
			limits["gt"] = from
		default:
			limits["gte"] = from
		}
	}
	if r.High != "" && r.High != "*" {
		from, beyond, err := bound(r.High)
		if err != nil {
			return nil, err
		}
		switch {
		case r.HighExcl:
			limits["lt"] = from
		case beyond != nil:
			limits["lt"] = beyond
		default:
			limits["lte"] = from
		}
	}
	return all(object{"range": object{field: limits}}), nil
}

// chunkQuery returns the query that ranks chunks by leaves. ok is false if there
// is nothing to rank by.
func chunkQuery(leaves []*leaf) (q object, ok bool) {
	var should []object
	for _, l := range leaves {
		if len(l.chunk) == 0 {
			continue
		}
		best := bestOf(l.chunk)
		if l.weight != 1 {
			best = object{"bool": object{"must": []object{best}, "boost": l.weight}}
		}
		should = append(should, best)
	}
	return object{"bool": object{"should": should, "minimum_should_match": 1}}, len(should) > 0
}

// conditions returns what leaves with some weights look for, for excerpts. Those
// for only the field except are left out.
func conditions(leaves []*leaf, except string, weight func(*leaf) float32) []passage.Condition {
	var out []passage.Condition
	for _, l := range leaves {
		if except != "" && l.field == except {
			continue
		}
		c := passage.Condition{Match: l.match, Weight: weight(l)}
		for _, p := range l.patterns {
			c.Add(p.tokens, p.prefix)
		}
		out = append(out, c)
	}
	return out
}

// languages returns English and the other languages of the documents, in which
// the words of queries are stemmed. Languages that other processes have added in
// the last seconds may be missing.
func (s *Store) languages(ctx context.Context) ([]analysis.Language, error) {
	if !s.languagesFresh() {
		r, err := s.search(ctx, inDocuments, languagesBody())
		if err == nil {
			err = s.noteLanguages(r)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.knownLanguages(), nil
}

// languagesBody returns the search for the languages of the documents.
func languagesBody() object {
	return object{"size": 0, "track_total_hits": true, "aggs": object{"values": object{"terms": object{"field": "lang",
		"size": maxValues}}}}
}

// noteLanguages notes the languages that a search with languagesBody has found.
func (s *Store) noteLanguages(r *result) error {
	values, err := r.buckets("values")
	if err != nil {
		return err
	}
	for _, v := range values {
		s.noteLanguage(analysis.LanguageOf(v.text()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.langsAt, s.documents = time.Now(), r.Hits.Total.Value
	return nil
}

// languagesFresh reports whether the languages have been asked for in the last
// seconds.
func (s *Store) languagesFresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.langsAt) < langsFresh
}

// knownLanguages returns English and the other languages that documents are known
// to have.
func (s *Store) knownLanguages() []analysis.Language {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []analysis.Language{analysis.English}
	for l := range s.langs {
		out = append(out, l)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// noteLanguage records that there are documents in a language.
func (s *Store) noteLanguage(l analysis.Language) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.langs == nil {
		s.langs = map[analysis.Language]bool{}
	}
	s.langs[l] = true
}
