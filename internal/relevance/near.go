package relevance

// Constants of the bonus for terms that stand close together.
const (
	nearBonus    = 0.5 // part of the lesser weight, for two terms next to each other
	nearDistance = 8   // positions
	nearReversed = 0.5 // part of the bonus for terms in the other order
)

// Near returns what the score of a chunk is raised by if two terms that follow each
// other in a query stand close together in the text. It gets their positions, each
// in order, and the lesser one of their weights.
func Near(before, here []uint32, weight float32) float32 {
	gap, part := closest(before, here)
	if gap == 0 {
		return 0
	}
	return nearBonus * part * weight / float32(gap)
}

// closest returns the least distance between positions of two terms that is at
// most nearDistance, 0 if there is none, and the part of the bonus that it
// gives. Both lists are sorted.
func closest(a, b []uint32) (gap int, part float32) {
	i := 0
	for _, p := range b {
		for i < len(a) && a[i] < p {
			i++
		}
		if i > 0 && int(p-a[i-1]) <= nearDistance { // a before b
			if d := int(p - a[i-1]); gap == 0 || float32(1)/float32(d) > part/float32(gap) {
				gap, part = d, 1
			}
		}
		if i < len(a) && a[i] > p && int(a[i]-p) <= nearDistance {
			if d := int(a[i] - p); gap == 0 || nearReversed/float32(d) > part/float32(gap) {
				gap, part = d, nearReversed
			}
		}
	}
	return gap, part
}
