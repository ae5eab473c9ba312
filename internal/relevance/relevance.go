// Package relevance has the formula by which all stores score chunks by words, so that
// the same documents have the same scores in every store. Package retrieval decides
// what follows from the scores.
package relevance

import "math"

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

// ListingTimes is how many times the length of the text of a chunk counts that has the
// form of a list of names or of a change log (see analysis.IsListing). The first chunk
// of a document counts like others, because it tells what the document is about.
const ListingTimes = 3

// MaxWeight is the greatest weight of a condition, so that a sum of scores stays far
// below the greatest float32.
const MaxWeight = 1e6

// IDF returns the weight of a term that n of some chunks have (BM25).
func IDF(chunks, n int) float64 {
	return math.Log(1 + (float64(chunks)-float64(n)+0.5)/(float64(n)+0.5))
}
