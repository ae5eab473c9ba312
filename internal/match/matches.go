package match

import (
	"cmp"
	"context"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// A Matches has the documents that a part of a query matches.
type Matches struct {
	Docs segment.Docs // may be changed
	// Void reports whether the part contains nothing to search for, such
	// as a dash alone. A void part is ignored.
	Void   bool
	Leaves []*Leaf // conditions on words that are not negated
}

// maxRanked is how many conditions on words count in the ranking: the rarest.
const maxRanked = 64

// Ranking returns the conditions that count in the ranking.
func (f *Matches) Ranking() []*Leaf { return rarest(slices.Clone(f.Leaves), maxRanked) }

// addLeaves adds conditions. Of very many, it keeps the rarest.
func (f *Matches) addLeaves(leaves []*Leaf) {
	if f.Leaves = append(f.Leaves, leaves...); len(f.Leaves) > 4*maxRanked {
		f.Leaves = rarest(f.Leaves, 2*maxRanked)
	}
}

// rarest returns the n of some conditions that the fewest documents meet,
// without those that no document meets, in the same order.
func rarest(leaves []*Leaf, n int) []*Leaf {
	if len(leaves) <= n {
		return leaves
	}
	order := slices.DeleteFunc(slices.Clone(leaves), func(l *Leaf) bool { return l.docs == 0 })
	slices.SortStableFunc(order, func(a, b *Leaf) int { return cmp.Compare(a.docs, b.docs) })
	kept := map[*Leaf]bool{}
	for _, l := range order[:min(n, len(order))] {
		kept[l] = true
	}
	return slices.DeleteFunc(leaves, func(l *Leaf) bool { return !kept[l] })
}

// LeavesOf returns the conditions as a segment evaluates them.
func LeavesOf(list []*Leaf) []*segment.Leaf {
	leaves := make([]*segment.Leaf, len(list))
	for i, l := range list {
		leaves[i] = l.Leaf
	}
	return leaves
}

// clone returns a copy that may be changed.
func (f Matches) clone() Matches {
	f.Docs, f.Leaves = f.Docs.Clone(), slices.Clone(f.Leaves)
	for i, l := range f.Leaves {
		copied, weighed := *l, *l.Leaf
		copied.Leaf = &weighed
		f.Leaves[i] = &copied
	}
	return f
}

// Signed returns the documents with a token of [analysis.Signs].
func (x *Matcher) Signed(ctx context.Context, sign string) (segment.Docs, error) {
	f, err := x.signed(ctx, sign)
	return f.Docs, err
}

func (x *Matcher) signed(ctx context.Context, sign string) (Matches, error) {
	p := segment.Pattern{Tokens: []string{sign}}
	l := &Leaf{Leaf: x.Search.NewLeaf(segment.AllFields), fields: segment.AllFields, patterns: []segment.Pattern{p}}
	if err := x.Search.Add(ctx, l.Leaf, p); err != nil {
		return Matches{}, err
	}
	docs, err := x.Search.Docs(ctx, l.Leaf)
	l.docs = docs.Count()
	return Matches{Docs: docs, Leaves: []*Leaf{l}}, err
}
