// Package fusion combines the scores of a lexical search (BM25) and of a dense
// search (vectors) into one ranking.
//
// Each list of scores is scaled linearly so that its greatest score is 1 and its
// least is 0. If it is known which lexical score says much, lower ones do not become 1:
// a query that shares few words with every document is answered by the dense search.
// A fused score is the sum of the scaled scores, in which the dense one has a weight.
// On the Cranfield collection, this was better than combining ranks (RRF) with a good
// model, and did no harm with a weak one.
package fusion

import (
	"cmp"
	"math"
	"slices"
)

// DefaultWeight is the weight of dense scores that was best for the model
// all-MiniLM-L6-v2 on the Cranfield collection.
const DefaultWeight = 2

// A Scale is what is known about lexical scores. With the zero value, they are scaled
// from the least to the greatest.
type Scale struct {
	Full float64 // a score that says much, which becomes 1 unless others are greater; 0 if none is known

	// All means that no document without a lexical hit has words of the query, so that
	// the least score is 0. It is ignored if Full is 0.
	All bool
}

// A Hit is a document with a score.
type Hit[ID cmp.Ordered] struct {
	ID    ID
	Score float64 // greater is better
}

// Fuse returns the documents of both lists, the best first. Its scores are in
// 0..1 and do not increase. Of documents with equal scores, the one with the
// better lexical score comes first, then the one with the lower id.
//
// weight is that of the dense scores; see [DefaultWeight]. 0, which is right for a
// query in a language that the model does not know, leaves the dense hits out.
//
// The lists need not be sorted. A document that is missing in a list counts as
// one with the least score of that list. So the dense list should have a score
// for each document of the lexical one. If an id is twice in a list, the best
// score counts. Scores that are NaN or infinite are left out.
func Fuse[ID cmp.Ordered](lexical, dense []Hit[ID], weight float64, scale Scale) []Hit[ID] {
	if !(weight > 0) || math.IsInf(weight, 1) {
		weight, dense = 0, nil
	}
	a, b := scaled(lexical, scale), scaled(dense, Scale{})
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
	return hits
}

// Fill returns the dense hits and, for each lexical hit that is not among them, a
// hit that does not change its place among the lexical hits. It is for documents
// whose vectors are not computed yet. If one of the lists is empty, it returns
// dense.
func Fill[ID cmp.Ordered](lexical, dense []Hit[ID]) []Hit[ID] {
	if len(lexical) == 0 || len(dense) == 0 {
		return dense
	}
	bounds := func(hits []Hit[ID]) (least, most float64) {
		least, most = hits[0].Score, hits[0].Score
		for _, h := range hits {
			least, most = min(least, h.Score), max(most, h.Score)
		}
		return least, most
	}
	a, b := bounds(lexical)
	least, most := bounds(dense)
	have := map[ID]bool{}
	for _, h := range dense {
		have[h.ID] = true
	}
	for _, h := range lexical {
		if !have[h.ID] {
			part := 1.0
			if b > a {
				part = (h.Score - a) / (b - a)
			}
			dense = append(dense, Hit[ID]{ID: h.ID, Score: least + part*(most-least)})
		}
	}
	return dense
}

// scaled returns the scores by document, scaled to 0..1. If all are equal, they
// become 1, or less if one that says much is greater.
func scaled[ID cmp.Ordered](hits []Hit[ID], scale Scale) map[ID]float64 {
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
	if scale.Full > 0 {
		if scale.All || least == most {
			least = min(least, 0)
		}
		most = max(most, scale.Full)
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

// Rerank fuses the best documents by words, best first, with those that are close
// in meaning, best first. The scores stay between those by words, of which there would
// be depth if more documents had words of the query. If keepFirst is true, the best
// document by words stays first. Without dense hits, it returns lexical.
func Rerank[ID cmp.Ordered](lexical, dense []Hit[ID], depth int, scale Scale, keepFirst bool) []Hit[ID] {
	if len(dense) == 0 {
		return lexical
	}
	by, n := dense, len(lexical)
	if n > 0 {
		by = lexical
	}
	// Scores by words are float32, and so are these.
	top, low := float32(by[0].Score), float32(by[len(by)-1].Score)
	if n < depth {
		low /= 2 // of several hits with the same score, the order remains visible
	}
	out := Fuse(lexical, Fill(lexical, dense), DefaultWeight, scale)
	for i := range out {
		out[i].Score = float64(low + float32(out[i].Score)*(top-low))
	}
	if keepFirst && n > 0 {
		i := slices.IndexFunc(out, func(h Hit[ID]) bool { return h.ID == lexical[0].ID })
		h := out[i]
		h.Score = max(out[0].Score, h.Score)
		out = slices.Insert(slices.Delete(out, i, i+1), 0, h)
	}
	return out
}
