package datasetsearch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/relevance"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// languages are those that the words of datasets are stemmed in.
var languages = []analysis.Language{analysis.English}

// An evaluator evaluates one search over one catalog. It is not safe for concurrent
// use.
type evaluator struct {
	s       *Service
	c       *catalog
	search  *segment.Search
	now     time.Time
	vectors *queryVectors // nil until they are needed
	m       *matched      // what the request that was gathered last matches
}

// A leaf is one condition on words.
type leaf struct {
	*segment.Leaf
	fields   segment.Fields
	docs     int               // documents that meet it
	patterns []segment.Pattern // for excerpts: all patterns, or the first maxMarked
	// for excerpts: whether the condition means a word as written; nil if it is one word or a phrase
	match func(word string) bool
}

// Limits of conditions.
const (
	maxMarked = 500 // patterns of a condition that are marked in excerpts
	maxRanked = 64  // conditions on words that count in the ranking: the rarest
)

// A matches has the documents that a part of a query's tree matches.
type matches struct {
	docs segment.Docs // may be changed
	// void reports whether the part contains nothing to search for, such as a dash
	// alone. A void part is ignored.
	void   bool
	leaves []*leaf // conditions on words that are not negated
}

// addLeaves adds conditions. Of very many, it keeps the rarest.
func (m *matches) addLeaves(leaves []*leaf) {
	if m.leaves = append(m.leaves, leaves...); len(m.leaves) > 4*maxRanked {
		m.leaves = rarest(m.leaves, 2*maxRanked)
	}
}

// either adds what another condition matches.
func (m *matches) either(more matches) {
	switch {
	case more.void:
		return
	case m.void:
		m.void, m.docs = false, more.docs
	default:
		m.docs.Or(more.docs)
	}
	m.addLeaves(more.leaves)
}

// rarest returns the n of some conditions that the fewest documents meet, in the same
// order.
func rarest(leaves []*leaf, n int) []*leaf {
	if len(leaves) <= n {
		return leaves
	}
	order := slices.Clone(leaves)
	slices.SortStableFunc(order, func(a, b *leaf) int { return cmp.Compare(a.docs, b.docs) })
	kept := map[*leaf]bool{}
	for _, l := range order[:n] {
		kept[l] = true
	}
	return slices.DeleteFunc(slices.Clone(leaves), func(l *leaf) bool { return !kept[l] })
}

// leavesOf returns the conditions as a segment evaluates them.
func leavesOf(list []*leaf) []*segment.Leaf {
	leaves := make([]*segment.Leaf, len(list))
	for i, l := range list {
		leaves[i] = l.Leaf
	}
	return leaves
}

// eval returns the documents that match a tree. The error is of kind Invalid for a part
// that cannot be evaluated.
func (e *evaluator) eval(ctx context.Context, n query.Node) (matches, error) {
	if err := ctx.Err(); err != nil {
		return matches{}, err
	}
	switch n := n.(type) {
	case query.All:
		return matches{docs: e.c.words.All()}, nil
	case query.And:
		m, err := e.and(ctx, n.Nodes)
		if err != nil || len(n.Optional) == 0 {
			return m, err
		}
		more, err := e.or(ctx, n.Optional)
		m.addLeaves(more.leaves)
		return m, err
	case query.Or:
		return e.or(ctx, n.Nodes)
	case query.Not:
		return e.and(ctx, []query.Node{n})
	case query.Boost:
		m, err := e.eval(ctx, n.Node)
		for _, l := range m.leaves {
			l.Weight = min(l.Weight*float32(n.Factor), relevance.MaxWeight)
		}
		return m, err
	case query.Range:
		docs, err := e.inRange(ctx, n)
		return matches{docs: docs}, err
	}
	field, text := fieldOf(n)
	if field == "" || field == "title" || field == "content" {
		return e.words(ctx, n, field)
	}
	docs, err := e.field(ctx, n, field, text)
	return matches{docs: docs}, err
}

// fieldOf returns the field and the text of a leaf.
func fieldOf(n query.Node) (field, text string) {
	switch n := n.(type) {
	case query.Term:
		return n.Field, n.Text
	case query.Phrase:
		return n.Field, n.Text
	case query.Prefix:
		return n.Field, n.Text
	case query.Wildcard:
		return n.Field, n.Pattern
	case query.Fuzzy:
		return n.Field, n.Text
	}
	return "", ""
}

// and returns the documents that match all nodes and none of the negated ones.
func (e *evaluator) and(ctx context.Context, nodes []query.Node) (matches, error) {
	out := matches{void: true}
	var not segment.Docs
	for _, n := range nodes {
		no, negated := n.(query.Not)
		if negated {
			n = no.Node
		}
		m, err := e.eval(ctx, n)
		switch {
		case err != nil:
			return out, err
		case m.void:
		case negated && not == nil:
			not = m.docs
		case negated:
			not.Or(m.docs)
		case out.void:
			out.docs, out.void = m.docs, false
			out.addLeaves(m.leaves)
		default:
			out.docs.And(m.docs)
			out.addLeaves(m.leaves)
		}
	}
	if not == nil {
		return out, nil
	}
	if out.void {
		out.docs, out.void = e.c.words.All(), false
	}
	out.docs.AndNot(not)
	return out, nil
}

// or returns the documents that match any node.
func (e *evaluator) or(ctx context.Context, nodes []query.Node) (matches, error) {
	out := matches{void: true}
	for _, n := range nodes {
		m, err := e.eval(ctx, n)
		if err != nil {
			return out, err
		}
		out.either(m)
	}
	return out, nil
}

// words returns the documents that match a condition on words, such as a phrase or a
// prefix.
func (e *evaluator) words(ctx context.Context, n query.Node, field string) (matches, error) {
	if w, ok := n.(query.Wildcard); ok && strings.Trim(w.Pattern, "*?") == "" {
		return e.eval(ctx, query.All{})
	}
	fields := segment.AllFields
	switch field {
	case "title":
		fields = segment.Only(segment.Title)
	case "content":
		fields = segment.Only(segment.Text)
	}
	l := &leaf{Leaf: e.search.NewLeaf(fields), fields: fields}
	if err := e.gather(ctx, l, n); err != nil {
		return matches{}, err
	}
	if len(l.patterns) == 0 {
		_, wildcard := n.(query.Wildcard)
		return matches{void: !wildcard, docs: e.c.words.None()}, nil
	}
	docs, err := e.search.Docs(ctx, l.Leaf)
	if err != nil {
		return matches{}, err
	}
	l.docs = docs.Count()
	return matches{docs: docs, leaves: []*leaf{l}}, nil
}

// gather adds to a leaf what a condition on words matches. The leaf has no patterns if
// the condition has no words.
func (e *evaluator) gather(ctx context.Context, l *leaf, n query.Node) error {
	switch n := n.(type) {
	case query.Term:
		_, err := e.term(ctx, l, n.Text, 0)
		return err
	case query.Phrase:
		_, err := e.term(ctx, l, n.Text, n.Slop)
		return err
	case query.Prefix:
		return e.prefix(ctx, l, n.Text)
	case query.Wildcard:
		return e.wildcard(ctx, l, n.Pattern)
	case query.Fuzzy:
		single, err := e.term(ctx, l, n.Text, 0)
		if err != nil || !single || n.Edits == 0 {
			return err
		}
		return e.fuzzy(ctx, l, n.Text, n.Edits)
	}
	return fmt.Errorf("the query has a part of an unknown kind (%T): %w", n, errkind.Invalid)
}

// term adds a word or phrase. It reports whether it has one token.
func (e *evaluator) term(ctx context.Context, l *leaf, text string, slop int) (single bool, err error) {
	for _, tokens := range analysis.Variants(text, languages, false) {
		single = len(tokens) == 1
		if err := e.pattern(ctx, l, wordPattern(tokens, slop)); err != nil {
			return single, err
		}
	}
	return single, nil
}

// wordPattern returns the pattern of the tokens of a word or phrase.
func wordPattern(tokens []string, slop int) segment.Pattern {
	return segment.Pattern{Tokens: tokens, Slop: slop, Prefix: analysis.Lone(tokens[len(tokens)-1])}
}

// pattern adds a pattern.
func (e *evaluator) pattern(ctx context.Context, l *leaf, p segment.Pattern) error {
	if len(l.patterns) < maxMarked {
		l.patterns = append(l.patterns, p)
	}
	return e.search.Add(ctx, l.Leaf, p)
}

// prefix adds the words that begin with text. Their tokens may begin otherwise, because
// stemming removed or changed the ending ("happy" is indexed as happi).
func (e *evaluator) prefix(ctx context.Context, l *leaf, text string) error {
	prefixes := analysis.Variants(text, languages, true)
	for _, tokens := range prefixes {
		last := tokens[len(tokens)-1]
		r, _ := utf8.DecodeRuneInString(last)
		if err := e.pattern(ctx, l, segment.Pattern{
			Tokens: tokens, Prefix: !analysis.IsCJK(r) || analysis.Lone(last),
		}); err != nil {
			return err
		}
	}
	if len(prefixes) == 0 || len(prefixes[0]) != 1 {
		return nil
	}
	text = analysis.Lower(text)
	l.match = func(word string) bool { return strings.HasPrefix(word, text) }
	return e.wordsWith(ctx, l, text, func(tokens []string) bool { return !strings.HasPrefix(tokens[0], prefixes[0][0]) })
}

// wildcard adds the words that match a pattern.
func (e *evaluator) wildcard(ctx context.Context, l *leaf, pattern string) error {
	glob, err := query.ParseGlob(analysis.Lower(pattern))
	if err != nil {
		return err
	}
	l.match = glob.Match
	return e.wordsWith(ctx, l, glob.Prefix(), func([]string) bool { return true })
}

// wordsWith adds the words with a prefix that the leaf means and for whose tokens f is
// true.
func (e *evaluator) wordsWith(ctx context.Context, l *leaf, prefix string, f func(tokens []string) bool) error {
	var failed error
	err := e.c.words.WordsWith(ctx, prefix, func(w segment.Word) bool {
		if !l.match(w.Text) {
			return true
		}
		for _, tokens := range analysis.Variants(w.Text, languages, false) {
			if failed == nil && f(tokens) {
				failed = e.pattern(ctx, l, wordPattern(tokens, 0))
			}
		}
		return failed == nil
	})
	return cmp.Or(failed, err)
}

// fuzzy adds the words within a number of edits of text.
func (e *evaluator) fuzzy(ctx context.Context, l *leaf, text string, edits int) error {
	word := analysis.Lower(text)
	if utf8.RuneCountInString(word) > query.MaxFuzzyWord {
		return nil
	}
	words, err := e.c.words.WordsNear(ctx, word, min(edits, 2), 0)
	for _, w := range words {
		if _, err := e.term(ctx, l, w.Text, 0); err != nil {
			return err
		}
	}
	return err
}

// conditions returns what leaves look for, for excerpts. Those for only some fields are
// left out.
func (e *evaluator) conditions(leaves []*leaf, except segment.Fields) []passage.Condition {
	var out []passage.Condition
	for _, l := range leaves {
		if l.fields == except {
			continue
		}
		c := passage.Condition{Match: l.match, Weight: e.search.WeightOf(l.Leaf)}
		for _, p := range l.patterns {
			c.Add(p.Tokens, p.Prefix)
		}
		out = append(out, c)
	}
	return out
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
		m, err := e.signed(ctx, sign)
		if err != nil {
			return nil, err
		}
		docs.And(m.docs)
	}
	return docs, nil
}

// signed returns the documents with a token of [analysis.Signs].
func (e *evaluator) signed(ctx context.Context, sign string) (matches, error) {
	l := &leaf{Leaf: e.search.NewLeaf(segment.AllFields), fields: segment.AllFields}
	if err := e.pattern(ctx, l, segment.Pattern{Tokens: []string{sign}}); err != nil {
		return matches{}, err
	}
	docs, err := e.search.Docs(ctx, l.Leaf)
	l.docs = docs.Count()
	return matches{docs: docs, leaves: []*leaf{l}}, err
}

// A matched is what a request matches.
type matched struct {
	matches
	n        int          // how many documents
	complete segment.Docs // those with all words that count; nil unless some are enough
	words    int          // how many these are
	missing  []string     // words of a plain query that no document has

	near  []near // best documents by meaning, each with its best part
	added bool   // documents without a word of the query are among what it finds
}

// match returns the documents that match a request by words.
func (e *evaluator) match(ctx context.Context, r *retrieval.Request) (*matched, error) {
	m, p := &matched{}, r.Plan
	allowed, err := e.allowed(ctx, r.Query)
	if err != nil {
		return nil, err
	}
	switch {
	case p.Everything():
		m.docs, m.n = allowed, allowed.Count()
		return m, nil
	case p.Tree != nil:
		m.matches, err = e.eval(ctx, p.Tree)
	case p.Some:
		err = e.matchSome(ctx, m, p, allowed)
	default:
		err = e.matchAll(ctx, m, p)
	}
	if err != nil {
		return nil, err
	}
	if m.void {
		m.docs = e.c.words.None()
	}
	m.docs.And(allowed)
	m.n = m.docs.Count()
	if p.Words != nil && !p.Some && m.n == 0 {
		for _, w := range p.Words {
			m.missing = append(m.missing, w.Text)
		}
	}
	for _, n := range p.Extra {
		more, err := e.eval(ctx, n)
		if err != nil {
			return nil, err
		}
		m.addLeaves(more.leaves)
	}
	return m, nil
}

// matchAll finds the documents with all words.
func (e *evaluator) matchAll(ctx context.Context, m *matched, p *retrieval.Plan) (err error) {
	nodes := make([]query.Node, len(p.Words))
	for i, w := range p.Words {
		nodes[i] = w.Node
	}
	if m.matches, err = e.and(ctx, nodes); err != nil {
		return err
	}
	for _, sign := range p.Signs {
		more, err := e.signed(ctx, sign)
		if err != nil {
			return err
		}
		m.addLeaves(more.leaves)
	}
	return nil
}

// matchSome finds the documents with any word, piece or sign, and among them those with
// all words that are allowed.
func (e *evaluator) matchSome(ctx context.Context, m *matched, p *retrieval.Plan, allowed segment.Docs) error {
	m.void = true
	var all segment.Docs
	for _, w := range p.Words {
		f, err := e.eval(ctx, w.Node)
		switch {
		case err != nil:
			return err
		case f.void:
			continue
		case f.docs.Count() == 0:
			m.missing = append(m.missing, w.Text)
		}
		if all == nil {
			all = f.docs.Clone()
		} else {
			all.And(f.docs)
		}
		for _, l := range f.leaves {
			l.Weight *= float32(min(w.Weight, relevance.MaxWeight))
		}
		m.either(f)
	}
	if all == nil {
		all = e.c.words.None()
	}
	all.And(allowed)
	m.complete, m.words = all, all.Count()
	for _, n := range p.Pieces {
		f, err := e.eval(ctx, n)
		if err != nil {
			return err
		}
		m.either(f)
	}
	for _, sign := range p.Signs {
		f, err := e.signed(ctx, sign)
		if err != nil {
			return err
		}
		m.either(f)
	}
	return nil
}
