package analysis

import (
	"sync/atomic"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

// Stopword reports whether a term is one of the commonest function words of
// English (the 33 of Lucene's StandardAnalyzer). They count little in ranking;
// they are indexed like all others.
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

// stems remembers the stems of recent words: stemming costs twenty times as
// much as looking here. It is a pure memo of bounded size: what it holds
// changes no result. A word has one place, which the next word of the same
// hash takes over.
var stems [1 << 13]atomic.Pointer[stemmed]

// stemOf returns the stem of a word of letters a to z. The strings that it
// returns share no memory with word.
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
