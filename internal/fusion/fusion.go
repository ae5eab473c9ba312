// Package fusion combines the scores of a lexical search (BM25) and of a dense
// search (vectors) into one ranking.
//
// Each list of scores is scaled linearly so that its greatest score is 1 and its
// least is 0. A fused score is the sum of the scaled scores, in which the dense
// one has a weight. On the Cranfield collection, this was better than combining
// ranks (RRF) with a good model, and did no harm with a weak one.
package fusion

import (
	"cmp"
	"math"
	"slices"
)

// DefaultWeight is the weight of dense scores that was best for the model
// all-MiniLM-L6-v2 on the Cranfield collection.
const DefaultWeight = 2

// A Hit is a document with a score.
type Hit[ID cmp.Ordered] struct {
	ID    ID
	Score float64 // greater is better
}

// Options are options of [Fuse].
type Options struct {
	// Weight is the weight of the dense scores; see [DefaultWeight]. 0, which
	// is right for a query in a language that the model does not know, leaves
	// the dense hits out.
	Weight float64

	// Reserve is the number of places among the first Places that dense hits
	// get which the lexical search did not find. If fewer of them are there,
	// the best others move up to the last of the first Places. 0 is no such
	// rule. This option has not been measured yet.
	Reserve int

	// Places is the length of the first page; 0 means 10.
	Places int
}

// Fuse returns the documents of both lists, the best first. Its scores are in
// 0..1 and do not increase. Of documents with equal scores, the one with the
// better lexical score comes first, then the one with the lower id.
//
// The lists need not be sorted. A document that is missing in a list counts as
// one with the least score of that list. So the dense list should have a score
// for each document of the lexical one. If an id is twice in a list, the best
// score counts. Scores that are NaN or infinite are left out.
func Fuse[ID cmp.Ordered](lexical, dense []Hit[ID], opts Options) []Hit[ID] {
	weight := opts.Weight
	if !(weight > 0) || math.IsInf(weight, 1) {
		weight, dense = 0, nil
	}
	a, b := scaled(lexical), scaled(dense)
	hits := make([]Hit[ID], 0, len(a)+len(b))
	for id, score := range a {
		hits = append(hits, Hit[ID]{id, (score + weight*b[id]) / (1 + weight)})
	}
	for id, score := range b {
		if _, ok := a[id]; !ok {
			hits = append(hits, Hit[ID]{id, weight * score / (1 + weight)})
		}
	}
	slices.SortFunc(hits, func(x, y Hit[ID]) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(a[y.ID], a[x.ID]), cmp.Compare(x.ID, y.ID))
	})
	reserve(hits, a, b, opts)
	return hits
}

// scaled returns the scores by document, scaled to 0..1. If all are equal, they
// become 1.
func scaled[ID cmp.Ordered](hits []Hit[ID]) map[ID]float64 {
	scores := make(map[ID]float64, len(hits))
	least, most := math.Inf(1), math.Inf(-1)
	for _, h := range hits {
		if math.IsNaN(h.Score) || math.IsInf(h.Score, 0) {
			continue
		}
		if old, ok := scores[h.ID]; !ok || h.Score > old {
			scores[h.ID] = h.Score
		}
	}
	for _, s := range scores {
		least, most = min(least, s), max(most, s)
	}
	for id, s := range scores {
		if most == least {
			scores[id] = 1
		} else { // halves, because the difference of huge numbers is infinite
			scores[id] = (s/2 - least/2) / (most/2 - least/2)
		}
	}
	return scores
}

// reserve moves dense hits that are not lexical ones to the first places, as
// [Options] describes.
func reserve[ID cmp.Ordered](hits []Hit[ID], lexical, dense map[ID]float64, opts Options) {
	places := opts.Places
	if places <= 0 {
		places = 10
	}
	if opts.Reserve <= 0 || len(hits) <= places {
		return
	}
	onlyDense := func(h Hit[ID]) bool { _, ok := lexical[h.ID]; return !ok }
	missing := min(opts.Reserve, places)
	for _, h := range hits[:places] {
		if onlyDense(h) {
			missing--
		}
	}
	var moved []Hit[ID] // they are in order: all have a lexical score of 0
	for _, h := range hits[places:] {
		if len(moved) < missing && onlyDense(h) {
			moved = append(moved, h)
		}
	}
	if len(moved) == 0 {
		return
	}
	// Lexical hits make room, the last first. The others keep their order.
	var stay, down []Hit[ID]
	for i := places - 1; i >= 0; i-- {
		if h := hits[i]; !onlyDense(h) && len(down) < len(moved) {
			down = append(down, h)
		} else {
			stay = append(stay, h)
		}
	}
	slices.Reverse(stay)
	slices.Reverse(down)
	rest := slices.DeleteFunc(slices.Clone(hits[places:]), func(h Hit[ID]) bool {
		return slices.ContainsFunc(moved, func(m Hit[ID]) bool { return m.ID == h.ID })
	})
	copy(hits, slices.Concat(stay, moved, down, rest))
	// The scores must not increase: what moved up gets that of what it displaced.
	for i := len(hits) - 2; i >= 0; i-- {
		hits[i].Score = max(hits[i].Score, hits[i+1].Score)
	}
}
