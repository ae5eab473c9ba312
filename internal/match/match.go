// Package match evaluates queries over the words of segments: which documents match a
// tree or a plan, and which conditions on words count in the ranking.
package match

import (
	"context"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/relevance"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// A Matcher evaluates one query. It is not safe for concurrent use.
type Matcher struct {
	Words     *segment.Collection
	Search    *segment.Search     // of Words
	Languages []analysis.Language // of the documents, English among them
	Fields    Fields
	Now       time.Time // that dates are relative to

	// Segments returns the segments that can have some tokens, nil for all. nil stands
	// for a function that returns nil.
	Segments func(tokens []string) segment.Bits

	// TimedOut reports whether an error means that the time is over, so that a part of
	// what matches is returned. nil stands for a function that returns false.
	TimedOut func(ctx context.Context, err error) bool

	ended   bool                   // TimedOut returned true
	negated int                    // how many negations the current part of the query is in
	known   map[query.Node]Matches // what conditions on words match, because some queries repeat them
}

// maxKnown is how many conditions on words are remembered during a search.
const maxKnown = 32

// segments returns the segments that can have tokens, nil for all.
func (x *Matcher) segments(tokens []string) segment.Bits {
	if x.Segments == nil {
		return nil
	}
	return x.Segments(tokens)
}

// timedOut reports whether err means that the time is over.
func (x *Matcher) timedOut(ctx context.Context, err error) bool {
	if err == nil || x.TimedOut == nil || !x.TimedOut(ctx, err) {
		return false
	}
	x.ended = true
	return true
}

// cut reports whether err means that the time is over, and a part of the documents that
// match may be used: outside of a negation.
func (x *Matcher) cut(ctx context.Context, err error) bool {
	return x.negated == 0 && x.timedOut(ctx, err)
}

// Eval returns the documents that match a tree. The error is of kind Invalid for a part
// that cannot be evaluated.
func (x *Matcher) Eval(ctx context.Context, n query.Node) (Matches, error) {
	switch n := n.(type) {
	case query.All:
		return Matches{Docs: x.Words.All()}, nil
	case query.And:
		f, err := x.and(ctx, n.Nodes)
		if err != nil || len(n.Optional) == 0 {
			return f, err
		}
		more, err := x.or(ctx, n.Optional)
		f.addLeaves(more.Leaves)
		return f, err
	case query.Or:
		return x.or(ctx, n.Nodes)
	case query.Not:
		return x.and(ctx, []query.Node{n})
	case query.Boost:
		f, err := x.Eval(ctx, n.Node)
		for _, l := range f.Leaves {
			l.Weight = min(l.Weight*float32(n.Factor), relevance.MaxWeight)
		}
		return f, err
	case query.Range:
		docs, err := x.inRange(ctx, n)
		return Matches{Docs: docs}, err
	}
	field, text := query.FieldOf(n)
	if field == "" || field == "title" || field == "content" {
		if f, ok := x.known[n]; ok {
			return f.clone(), nil
		}
		f, err := x.words(ctx, n, field)
		if _, cheap := n.(query.Term); !cheap && err == nil && !x.ended && len(x.known) < maxKnown {
			if x.known == nil {
				x.known = map[query.Node]Matches{}
			}
			x.known[n] = f.clone()
		}
		return f, err
	}
	docs, err := x.field(ctx, n, field, text)
	return Matches{Docs: docs}, err
}

// and returns the documents that match all nodes and none of the negated ones.
func (x *Matcher) and(ctx context.Context, nodes []query.Node) (Matches, error) {
	out := Matches{Void: true}
	var not segment.Docs
	for _, n := range nodes {
		no, negated := n.(query.Not)
		if negated {
			n = no.Node
			x.negated++
		}
		f, err := x.Eval(ctx, n)
		if negated {
			x.negated--
		}
		switch {
		case err != nil && x.cut(ctx, err): // nothing is known about the rest
			return Matches{Docs: x.Words.None()}, nil
		case err != nil:
			return out, err
		case f.Void:
		case negated && not == nil:
			not = f.Docs
		case negated:
			not.Or(f.Docs)
		case out.Void:
			out.Docs, out.Void = f.Docs, false
			out.addLeaves(f.Leaves)
		default:
			out.Docs.And(f.Docs)
			out.addLeaves(f.Leaves)
		}
	}
	if not == nil {
		return out, nil
	}
	if out.Void {
		out.Docs, out.Void = x.Words.All(), false
	}
	out.Docs.AndNot(not)
	return out, nil
}

// or returns the documents that match any node.
func (x *Matcher) or(ctx context.Context, nodes []query.Node) (Matches, error) {
	out := Matches{Void: true}
	for _, n := range nodes {
		f, err := x.Eval(ctx, n)
		if err != nil && x.cut(ctx, err) {
			break
		}
		if err != nil {
			return out, err
		}
		out.either(f)
	}
	return out, nil
}

// words returns the documents that match a condition on words, such as a phrase
// or a prefix.
func (x *Matcher) words(ctx context.Context, n query.Node, field string) (Matches, error) {
	if w, ok := n.(query.Wildcard); ok && strings.Trim(w.Pattern, "*?") == "" {
		return x.Eval(ctx, query.All{})
	}
	fields := segment.AllFields
	switch field {
	case "title":
		fields = segment.Only(segment.Title)
	case "content":
		fields = segment.Only(segment.Text)
	}
	l := &Leaf{Leaf: x.Search.NewLeaf(fields), fields: fields}
	if _, ok := n.(query.Term); ok {
		// The patterns of a word are its stems in several languages, and a
		// document has one language.
		l.Leaf = x.Search.NewVariants(fields)
	}
	if err := x.gather(ctx, l, n); err != nil && !x.cut(ctx, err) {
		return Matches{}, err
	}
	if len(l.patterns) == 0 {
		_, wildcard := n.(query.Wildcard)
		return Matches{Void: !wildcard, Docs: x.Words.None()}, nil
	}
	docs, err := x.Search.Docs(ctx, l.Leaf)
	if err != nil && !x.cut(ctx, err) {
		return Matches{}, err
	}
	l.docs = docs.Count()
	return Matches{Docs: docs, Leaves: []*Leaf{l}}, nil
}
