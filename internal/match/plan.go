package match

import (
	"context"

	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/relevance"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// A Matched is what a plan matches.
type Matched struct {
	Matches
	Count         int          // how many documents
	Complete      segment.Docs // those with all words that count; nil unless some are enough
	CompleteCount int          // how many these are
	Missing       []string     // words of a plain query that no document has
	Quoted        segment.Docs // those with one of the phrases of the plan; nil if it has none
}

// Match returns the documents that match a plan that does not ask for everything. within
// removes the documents that do not meet the other conditions of the search, and returns
// how many are left.
func (x *Matcher) Match(ctx context.Context, p *retrieval.Plan, within func(segment.Docs) (int, error)) (
	m Matched, err error) {
	switch {
	case p.Tree != nil:
		m.Matches, err = x.Eval(ctx, p.Tree)
	case p.Some:
		err = x.matchSome(ctx, &m, p, within)
	default:
		err = x.matchAll(ctx, &m, p)
	}
	if err != nil {
		return m, err
	}
	if m.Void {
		m.Docs = x.Words.None()
	}
	if m.Count, err = within(m.Docs); err != nil {
		return m, err
	}
	if p.Words != nil && !p.Some && m.Count == 0 {
		for _, w := range p.Words {
			m.Missing = append(m.Missing, w.Text)
		}
	}
	if len(p.Phrases) > 0 {
		f, err := x.or(ctx, p.Phrases)
		if err != nil && !x.timedOut(ctx, err) {
			return m, err
		}
		for _, l := range f.Leaves {
			l.patterns = nil // for excerpts, each word is a condition of its own
		}
		m.Quoted = f.Docs
		m.addLeaves(f.Leaves)
	}
	for _, n := range p.Extra {
		f, err := x.Eval(ctx, n)
		if x.timedOut(ctx, err) {
			break
		}
		if err != nil {
			return m, err
		}
		m.addLeaves(f.Leaves)
	}
	return m, nil
}

// matchAll finds the documents with all words.
func (x *Matcher) matchAll(ctx context.Context, m *Matched, p *retrieval.Plan) (err error) {
	nodes := make([]query.Node, len(p.Words))
	for i, w := range p.Words {
		nodes[i] = w.Node
	}
	if m.Matches, err = x.and(ctx, nodes); err != nil {
		return err
	}
	for _, sign := range p.Signs {
		f, err := x.signed(ctx, sign)
		if err != nil {
			return err
		}
		m.addLeaves(f.Leaves)
	}
	return nil
}

// matchSome finds the documents with any word, piece or sign, and among them those
// with all words that meet the conditions.
func (x *Matcher) matchSome(ctx context.Context, m *Matched, p *retrieval.Plan,
	within func(segment.Docs) (int, error)) error {
	m.Void = true
	var all segment.Docs
	for _, w := range p.Words {
		f, err := x.Eval(ctx, w.Node)
		switch {
		case x.timedOut(ctx, err):
			continue
		case err != nil:
			return err
		case f.Void:
			continue
		case f.Docs.Count() == 0:
			m.Missing = append(m.Missing, w.Text)
		}
		if all == nil {
			all = f.Docs.Clone()
		} else {
			all.And(f.Docs)
		}
		for _, l := range f.Leaves {
			l.Weight *= float32(min(w.Weight, relevance.MaxWeight))
		}
		m.either(f)
	}
	if m.Void {
		all = x.Words.None()
	}
	var err error
	if m.CompleteCount, err = within(all); err != nil {
		return err
	}
	m.Complete = all
	for _, n := range p.Pieces {
		f, err := x.Eval(ctx, n)
		if x.timedOut(ctx, err) {
			return nil
		}
		if err != nil {
			return err
		}
		m.either(f)
	}
	for _, sign := range p.Signs {
		f, err := x.signed(ctx, sign)
		if x.timedOut(ctx, err) {
			return nil
		}
		if err != nil {
			return err
		}
		m.either(f)
	}
	return nil
}

// either adds what another condition matches.
func (f *Matches) either(more Matches) {
	switch {
	case more.Void:
		return
	case f.Void:
		f.Void, f.Docs = false, more.Docs
	default:
		f.Docs.Or(more.Docs)
	}
	f.addLeaves(more.Leaves)
}
