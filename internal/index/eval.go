package index

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
	"github.com/knowhow-mcp/knowhow/internal/index/vectors"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/relevance"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// An evaluator evaluates queries in one transaction and so over one state of
// the index. It is not safe for concurrent use.
type evaluator struct {
	x      *Index
	tx     *database.Prepared
	view   *segments.View
	search *segment.Search
	langs  []analysis.Language // of the documents, English among them
	now    time.Time
	until  time.Time // the end of matching and ranking
	ended  bool      // the time for the search was over before everything was evaluated

	m       *matched      // what the request that was gathered last matches
	vectors *vectors.View // of the labels of the view; nil until they are needed

	negated int                    // how many negations the current part of the query is in
	known   map[query.Node]matches // what conditions on words match, because some queries repeat them
}

// maxKnown is how many conditions on words are remembered during a search.
const maxKnown = 32

// timedOut reports whether err means that the time for the search is over, and
// not that the client is gone. It records that the result is partial.
func (e *evaluator) timedOut(ctx context.Context, err error) bool {
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), errTooLong) {
		return false
	}
	e.ended = true
	return true
}

// cut reports whether err means that the time for the search is over, and a part
// of the documents that match may be used: outside of a negation.
func (e *evaluator) cut(ctx context.Context, err error) bool {
	return e.negated == 0 && e.timedOut(ctx, err)
}

// errTooLong is the cause of the end of the context of a search.
var errTooLong = errors.New("the search took too long")

// evaluate calls f with an evaluator for the documents with one of the labels
// (nil: all).
func (x *Index) evaluate(ctx context.Context, tx *database.Prepared, labels []string, f func(e *evaluator) error) error {
	v, err := x.segments.View(ctx, tx, labels)
	if err != nil {
		return err
	}
	defer v.Close()
	e := &evaluator{x: x, tx: tx, view: v, search: v.Begin(), now: time.Now(), until: time.Now().Add(x.searchTime)}
	defer e.search.End()
	if e.langs, err = v.Languages(); err == nil {
		err = f(e)
	}
	return v.Fault(err)
}

// A matches has the documents that a part of a query's tree matches.
type matches struct {
	docs segment.Docs // may be changed
	// void reports whether the part contains nothing to search for, such
	// as a dash alone. A void part is ignored.
	void   bool
	leaves []*leaf // conditions on words that are not negated
}

// addLeaves adds conditions. Of very many, it keeps the rarest.
func (f *matches) addLeaves(leaves []*leaf) {
	if f.leaves = append(f.leaves, leaves...); len(f.leaves) > 4*maxRanked {
		f.leaves = rarest(f.leaves, 2*maxRanked)
	}
}

// rarest returns the n of some conditions that the fewest documents meet,
// without those that no document meets, in the same order.
func rarest(leaves []*leaf, n int) []*leaf {
	if len(leaves) <= n {
		return leaves
	}
	order := slices.DeleteFunc(slices.Clone(leaves), func(l *leaf) bool { return l.docs == 0 })
	slices.SortStableFunc(order, func(a, b *leaf) int { return cmp.Compare(a.docs, b.docs) })
	kept := map[*leaf]bool{}
	for _, l := range order[:min(n, len(order))] {
		kept[l] = true
	}
	return slices.DeleteFunc(leaves, func(l *leaf) bool { return !kept[l] })
}

// leavesOf returns the conditions as a segment evaluates them.
func leavesOf(list []*leaf) []*segment.Leaf {
	leaves := make([]*segment.Leaf, len(list))
	for i, l := range list {
		leaves[i] = l.Leaf
	}
	return leaves
}

// clone returns a copy that may be changed.
func (f matches) clone() matches {
	f.docs, f.leaves = f.docs.Clone(), slices.Clone(f.leaves)
	for i, l := range f.leaves {
		copied, weighed := *l, *l.Leaf
		copied.Leaf = &weighed
		f.leaves[i] = &copied
	}
	return f
}

// eval returns the documents that match a tree.
func (e *evaluator) eval(ctx context.Context, n query.Node) (matches, error) {
	switch n := n.(type) {
	case query.All:
		return matches{docs: e.view.All()}, nil
	case query.And:
		f, err := e.and(ctx, n.Nodes)
		if err != nil || len(n.Optional) == 0 {
			return f, err
		}
		more, err := e.or(ctx, n.Optional)
		f.addLeaves(more.leaves)
		return f, err
	case query.Or:
		return e.or(ctx, n.Nodes)
	case query.Not:
		return e.and(ctx, []query.Node{n})
	case query.Boost:
		f, err := e.eval(ctx, n.Node)
		for _, l := range f.leaves {
			l.Weight = min(l.Weight*float32(n.Factor), relevance.MaxWeight)
		}
		return f, err
	case query.Range:
		docs, err := e.inRange(ctx, n)
		return matches{docs: docs}, err
	}
	field, text := fieldOf(n)
	if field == "" || field == "title" || field == "content" {
		if f, ok := e.known[n]; ok {
			return f.clone(), nil
		}
		f, err := e.words(ctx, n, field)
		if _, cheap := n.(query.Term); !cheap && err == nil && !e.ended && len(e.known) < maxKnown {
			if e.known == nil {
				e.known = map[query.Node]matches{}
			}
			e.known[n] = f.clone()
		}
		return f, err
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
			e.negated++
		}
		f, err := e.eval(ctx, n)
		if negated {
			e.negated--
		}
		switch {
		case err != nil && e.cut(ctx, err): // nothing is known about the rest
			return matches{docs: e.view.None()}, nil
		case err != nil:
			return out, err
		case f.void:
		case negated && not == nil:
			not = f.docs
		case negated:
			not.Or(f.docs)
		case out.void:
			out.docs, out.void = f.docs, false
			out.addLeaves(f.leaves)
		default:
			out.docs.And(f.docs)
			out.addLeaves(f.leaves)
		}
	}
	if not == nil {
		return out, nil
	}
	if out.void {
		out.docs, out.void = e.view.All(), false
	}
	out.docs.AndNot(not)
	return out, nil
}

// or returns the documents that match any node.
func (e *evaluator) or(ctx context.Context, nodes []query.Node) (matches, error) {
	out := matches{void: true}
	for _, n := range nodes {
		f, err := e.eval(ctx, n)
		if err != nil && e.cut(ctx, err) {
			break
		}
		if err != nil {
			return out, err
		}
		if f.void {
			continue
		}
		if out.void {
			out.docs, out.void = f.docs, false
		} else {
			out.docs.Or(f.docs)
		}
		out.addLeaves(f.leaves)
	}
	return out, nil
}

// words returns the documents that match a condition on words, such as a phrase
// or a prefix.
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
	if _, ok := n.(query.Term); ok {
		// The patterns of a word are its stems in several languages, and a
		// document has one language.
		l.Leaf = e.search.NewVariants(fields)
	}
	if err := e.gather(ctx, l, n); err != nil && !e.cut(ctx, err) {
		return matches{}, err
	}
	if len(l.patterns) == 0 {
		_, wildcard := n.(query.Wildcard)
		return matches{void: !wildcard, docs: e.view.None()}, nil
	}
	docs, err := e.search.Docs(ctx, l.Leaf)
	if err != nil && !e.cut(ctx, err) {
		return matches{}, err
	}
	l.docs = docs.Count()
	return matches{docs: docs, leaves: []*leaf{l}}, nil
}

// every returns the documents that meet conditions. The labels are those of the
// view, or nil. The result must not be changed.
func (e *evaluator) every(ctx context.Context, c conditions) (segment.Docs, error) {
	return segments.Remember(&e.view.Memo, c.key(), func() (segment.Docs, error) {
		docs := e.view.All()
		if c.langs != nil {
			some, err := e.selected(ctx, "lang", func(lang string) bool { return slices.Contains(c.langs, lang) })
			if err != nil {
				return nil, err
			}
			docs.And(some)
		}
		if len(c.written) > 0 {
			some, err := e.written(ctx, c.written)
			if err != nil {
				return nil, err
			}
			docs.And(some)
		}
		for _, tag := range c.tags {
			some, err := e.tagged(ctx, tag)
			if err != nil {
				return nil, err
			}
			docs.And(some)
		}
		for _, option := range c.options {
			sign, ok := analysis.OptionSign(option)
			if !ok {
				return e.view.None(), nil
			}
			_, some, err := e.signed(ctx, sign)
			if err != nil {
				return nil, err
			}
			docs.And(some)
		}
		return docs, nil
	})
}

// written returns the documents of the view without the files of sources with one
// of the labels.
func (e *evaluator) written(ctx context.Context, labels []string) (segment.Docs, error) {
	docs, err := e.selected(ctx, "from_source", func(is string) bool { return is == "0" })
	if err != nil {
		return nil, err
	}
	all := e.view.All()
	for i, g := range e.view.Segments {
		if !slices.Contains(labels, g.Label) {
			docs[i] = all[i]
		}
	}
	return docs, nil
}

// signed returns the condition for a token of [analysis.Signs] and the documents
// that meet it.
func (e *evaluator) signed(ctx context.Context, sign string) (*leaf, segment.Docs, error) {
	p := segment.Pattern{Tokens: []string{sign}}
	l := &leaf{Leaf: e.search.NewLeaf(segment.AllFields), fields: segment.AllFields, patterns: []segment.Pattern{p}}
	if err := e.search.Add(ctx, l.Leaf, p); err != nil {
		return nil, nil, err
	}
	docs, err := e.search.Docs(ctx, l.Leaf)
	l.docs = docs.Count()
	return l, docs, err
}

// tagged returns the documents with a tag.
func (e *evaluator) tagged(ctx context.Context, tag string) (segment.Docs, error) {
	if label, ok := document.TagLabel(tag); ok {
		return e.selected(ctx, "label", func(l string) bool { return l == label })
	}
	return e.docs(ctx, `SELECT dt.doc FROM doc_tags dt JOIN tags t ON t.id=dt.tag
		WHERE t.kind='`+tagUser+`' AND t.name=? ORDER BY dt.doc`, tag)
}

// docs returns the documents whose numbers a statement returns, in order.
func (e *evaluator) docs(ctx context.Context, query string, args ...any) (segment.Docs, error) {
	rows, err := database.Column[int64](ctx, e.tx, query, args...)
	if err != nil {
		return nil, err
	}
	return e.view.Rows(rows)
}
