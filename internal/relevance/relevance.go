// Package relevance has the rules by which the stores rank documents and chunks, so
// that the same documents are in the same order in every store.
package relevance

import (
	"cmp"
	"math"
	"slices"
)

// IDF returns the weight of a term that n of some chunks have (BM25).
func IDF(chunks, n int) float64 {
	return math.Log(1 + (float64(chunks)-float64(n)+0.5)/(float64(n)+0.5))
}

// OfDocument is how many chunks of a document precede those of others at most.
const OfDocument = 3

// Spread returns n of the best chunks of documents with keys, with at most
// OfDocument chunks of each document before those of others. others are chunks of
// documents that may be missing in best; they follow the best ones. The result is
// ordered by score.
func Spread[Chunk any, Document comparable](best, others []Chunk, n int, document func(Chunk) Document, score func(Chunk) float64) []Chunk {
	var first, more []Chunk
	of := map[Document]int{} // how many chunks of a document
	for _, c := range best {
		if of[document(c)]++; of[document(c)] <= OfDocument {
			first = append(first, c)
		} else {
			more = append(more, c)
		}
	}
	for _, c := range others {
		if of[document(c)] == 0 && len(first) < n {
			first = append(first, c)
		}
	}
	first = first[:min(len(first), n)]
	first = append(first, more[:min(len(more), n-len(first))]...)
	slices.SortStableFunc(first, func(a, b Chunk) int { return cmp.Compare(score(b), score(a)) })
	return first
}
