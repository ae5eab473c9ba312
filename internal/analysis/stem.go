package analysis

import (
	"sync/atomic"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

// Stopword reports whether a term is one of the most common function words of
// English (the 33 of Lucene's StandardAnalyzer). They are indexed like all
// others but count little in the ranking.
func Stopword(term string) bool {
	switch term {
	case "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
		"no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
		"they", "this", "to", "was", "will", "with":
		return true
	}
	return false
}

// A stemmed is a word and its stem.
type stemmed struct{ word, stem string }

// stems is a cache of recently stemmed words, because stemming takes twenty
// times as long as a lookup. Its size is fixed: a word replaces the word with
// the same hash. It does not affect results.
var stems [1 << 13]atomic.Pointer[stemmed]

// stemOf returns the stem of a word of letters a to z. The returned strings
// share no memory with word.
func stemOf[T string | []byte](word T) *stemmed {
	h := uint32(2166136261) // FNV-1a
	for i := range len(word) {
		h = (h ^ uint32(word[i])) * 16777619
	}
	slot := &stems[(h^h>>13)%uint32(len(stems))]
	if e := slot.Load(); e != nil && e.word == string(word) {
		return e
	}
	e := &stemmed{word: string([]byte(word))}
	e.stem = e.word
	if len(e.word) >= 3 {
		env := snowballstem.NewEnv(e.word)
		english.Stem(env)
		if s := env.Current(); s != e.word {
			e.stem = s
		}
	}
	slot.Store(e)
	return e
}

// QuestionWord reports whether a word is one that most questions contain.
func QuestionWord(word string) bool {
	word = Lower(word)
	if Stopword(word) {
		return true
	}
	switch word {
	case "how", "do", "does", "did", "i", "we", "you", "my", "me", "our", "your", "what", "which", "when", "where", "who", "why",
		"can", "could", "should", "would", "has", "have", "had", "from", "its", "been", "were", "am", "so", "than", "them", "about", "any", "some":
		return true
	}
	return false
}
