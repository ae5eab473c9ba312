package segment

// Bound returns a score that no chunk exceeds for some leaves. It must be called
// after [Search.Top] with the same leaves.
func (s *Search) Bound(leaves []*Leaf) (bound float32) {
	for _, l := range leaves {
		bound += l.Weight * s.c.idf(l.df) * (k1 + 1)
	}
	return bound
}
