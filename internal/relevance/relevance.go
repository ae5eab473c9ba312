// Package relevance has the rules by which the stores rank documents and chunks, so
// that the same documents are in the same order in every store.
package relevance

import (
	"cmp"
	"math"
	"slices"
)

// Constants of BM25F: how fast the frequency of a term saturates, the weight of
// each field, and how much its length counts.
const (
	K1            = 1.6
	TitleWeight   = 3
	NameWeight    = 1
	HeadingWeight = 1.5
	TextWeight    = 1
	ShortB        = 0.5 // of titles, names and headings
	TextB         = 0.6
)

// Constants of the ranking by words.
const (
	SomeWords     = 3   // least number of words of a plain query for which some of them are enough
	CompleteBonus = 0.2 // part of the score, for documents with all words of a query of which some are enough
	HalfScore     = 10  // score of a chunk that becomes 0.5
	MaxWeight     = 1e6 // of a condition, so that a sum of scores stays far below the greatest float32
	MaxSigns      = 16  // signs of a query that are used
)

// Constants of the ranking by meaning.
const (
	Fused       = 100  // best documents by words, and best chunks by meaning, that are ranked together
	NearWords   = 2    // words that count of a query that also finds documents without any of them
	NearDocs    = 20   // documents that such a query finds at most
	NearCosine  = 0.35 // their least cosine
	ChunkCosine = 0.25 // the same in a search for chunks, where notes are short and few
	ShortCosine = 0.4  // the same for one or two words that no document has together
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
