package index

import (
	"context"
	"errors"
	"strings"
	"time"

	"knowhow/internal/analysis"
	"knowhow/internal/query"
	"knowhow/internal/segment"
)

// An evaluator evaluates queries in one transaction and so over one state of
// the index. It is not safe for concurrent use.
type evaluator struct {
	tx     *preparedTx
	view   *view
	search *segment.Search
	langs  []analysis.Language // of the documents, English among them
	now    time.Time
	limit  time.Duration // for matching and ranking
	ended  bool          // the time for the search was over before everything was evaluated
}

// timedOut reports whether err means that the time for the search is over, and
// not that the client is gone. It records that the result is partial.
func (e *evaluator) timedOut(ctx context.Context, err error) bool {
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), errTooLong) {
		return false
	}
	e.ended = true
	return true
}

// errTooLong is the cause of the end of the context of a search.
var errTooLong = errors.New("the search took too long")

// evaluate calls f with an evaluator for the documents with one of the labels
// (nil: all).
func (x *Index) evaluate(ctx context.Context, tx *preparedTx, labels []string, f func(e *evaluator) error) error {
	v, err := x.view(ctx, tx, labels)
	if err != nil {
		return err
	}
	defer x.closeView(v)
	e := &evaluator{tx: tx, view: v, search: v.Begin(), now: time.Now(), limit: x.searchTime}
	defer e.search.End()
	if e.langs, err = v.languages(); err == nil {
		err = f(e)
	}
	if d, ok := errors.AsType[*segment.Damage](err); ok {
		if r, ok := v.rowOfSegment(d.Segment); ok {
			return &damagedSegment{row: r, err: err}
		}
	}
	return err
}

// A found is what a part of a query's tree matches.
type found struct {
	docs segment.Docs // may be changed
	// void reports whether the part contains nothing to search for, such
	// as a dash alone. A void part is ignored.
	void   bool
	leaves []*leaf // conditions on words that are not negated
}

// eval returns the documents that match a tree.
func (e *evaluator) eval(ctx context.Context, n query.Node) (found, error) {
	switch n := n.(type) {
	case query.All:
		return found{docs: e.view.All()}, nil
	case query.And:
		f, err := e.and(ctx, n.Nodes)
		if err != nil || len(n.Optional) == 0 {
			return f, err
		}
		more, err := e.or(ctx, n.Optional)
		f.leaves = append(f.leaves, more.leaves...)
		return f, err
	case query.Or:
		return e.or(ctx, n.Nodes)
	case query.Not:
		return e.and(ctx, []query.Node{n})
	case query.Boost:
		f, err := e.eval(ctx, n.Node)
		for _, l := range f.leaves {
			l.Weight *= float32(n.Factor)
		}
		return f, err
	case query.Range:
		docs, err := e.inRange(ctx, n)
		return found{docs: docs}, err
	}
	field, text := fieldOf(n)
	if field == "" || field == "title" || field == "content" {
		return e.words(ctx, n, field)
	}
	docs, err := e.field(ctx, n, field, text)
	return found{docs: docs}, err
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
func (e *evaluator) and(ctx context.Context, nodes []query.Node) (found, error) {
	out := found{void: true}
	var not segment.Docs
	for _, n := range nodes {
		no, negated := n.(query.Not)
		if negated {
			n = no.Node
		}
		f, err := e.eval(ctx, n)
		switch {
		case e.timedOut(ctx, err): // nothing is known about the rest
			return found{docs: e.view.None()}, nil
		case err != nil:
			return out, err
		case f.void:
		case negated && not == nil:
			not = f.docs
		case negated:
			not.Or(f.docs)
		case out.void:
			out.docs, out.void = f.docs, false
			out.leaves = append(out.leaves, f.leaves...)
		default:
			out.docs.And(f.docs)
			out.leaves = append(out.leaves, f.leaves...)
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
func (e *evaluator) or(ctx context.Context, nodes []query.Node) (found, error) {
	out := found{void: true}
	for _, n := range nodes {
		f, err := e.eval(ctx, n)
		if e.timedOut(ctx, err) {
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
		out.leaves = append(out.leaves, f.leaves...)
	}
	return out, nil
}

// words returns the documents that match a condition on words, such as a phrase
// or a prefix.
func (e *evaluator) words(ctx context.Context, n query.Node, field string) (found, error) {
	if w, ok := n.(query.Wildcard); ok && strings.Trim(w.Pattern, "*?") == "" {
		return e.eval(ctx, query.All{})
	}
	l := &leaf{fields: segment.AllFields}
	switch field {
	case "title":
		l.fields = segment.Only(segment.Title)
	case "content":
		l.fields = segment.Only(segment.Text)
	}
	var err error
	if l.patterns, err = e.patterns(ctx, n); err != nil {
		return found{}, err
	}
	if len(l.patterns) == 0 {
		_, wildcard := n.(query.Wildcard)
		return found{void: !wildcard, docs: e.view.None()}, nil
	}
	if l.Leaf, err = e.leaf(ctx, n, l); err != nil {
		return found{}, err
	}
	docs, err := e.search.Docs(ctx, l.Leaf)
	return found{docs: docs, leaves: []*leaf{l}}, err
}

// leaf looks up the patterns of a condition. Those of a word are its stems in
// several languages, and a document has one language.
func (e *evaluator) leaf(ctx context.Context, n query.Node, l *leaf) (*segment.Leaf, error) {
	if _, ok := n.(query.Term); !ok {
		return e.search.Leaf(ctx, l.fields, l.patterns...)
	}
	var tokens []string
	for _, p := range l.patterns {
		if len(p.Tokens) > 1 || p.Prefix {
			return e.search.Leaf(ctx, l.fields, l.patterns...)
		}
		tokens = append(tokens, p.Tokens[0])
	}
	return e.search.Variants(ctx, l.fields, tokens...)
}

// every returns the documents that meet conditions beyond the labels of the
// view. The result must not be changed.
func (e *evaluator) every(ctx context.Context, c conditions) (segment.Docs, error) {
	return e.view.set(c.key(), func() (segment.Docs, error) {
		where, args := c.where()
		return e.docs(ctx, where, args...)
	})
}
