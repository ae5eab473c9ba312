package segment

import (
	"math/rand/v2"
	"testing"
)

// No score exceeds the bound, and the best ones come near it.
func TestBound(t *testing.T) {
	s, err := Open(build(t, madeUp(rand.New(rand.NewPCG(3, 4)), 400)))
	if err != nil {
		t.Fatal(err)
	}
	c := NewCollection([]*Segment{s}, make([]Bits, 1))
	highest := float32(0)
	for _, tokens := range [][]string{{"w1"}, {"w4", "w9"}, {"w1", "w4", "w19", "w40"}, {"missing"}, {}} {
		search := c.Begin()
		var leaves []*Leaf
		for _, token := range tokens {
			l, err := search.Leaf(t.Context(), AllFields, Pattern{Tokens: []string{token}})
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, l)
		}
		hits, err := search.Top(t.Context(), leaves, nil, 10)
		if err != nil {
			t.Fatal(err)
		}
		bound := search.Bound(leaves)
		for _, h := range hits {
			if h.Score > bound {
				t.Errorf("%q: score %v of a bound of %v", tokens, h.Score, bound)
			}
			highest = max(highest, h.Score/bound)
		}
		search.End()
	}
	if highest < 0.5 {
		t.Errorf("the best score is %v of its bound", highest)
	}
}
