package analysis

import "sync/atomic"

// A stemmed is a folded word of a language and its token.
type stemmed struct {
	word, token string
	language    Language
}

// stems is a cache of recently stemmed words, because stemming takes many times
// as long as a lookup. Its size is fixed: a word replaces the word with the same
// hash. It does not affect results.
var stems [1 << 15]atomic.Pointer[stemmed]

// stemOf returns the token of a word of letters that the language's stemmer
// knows. The returned strings share no memory with word.
func stemOf[T string | []byte](word T, l Language) *stemmed {
	h := uint32(2166136261) ^ uint32(l) // FNV-1a
	for i := range len(word) {
		h = (h ^ uint32(word[i])) * 16777619
	}
	slot := &stems[(h^h>>15)%uint32(len(stems))]
	if e := slot.Load(); e != nil && e.word == string(word) && e.language == l {
		return e
	}
	e := &stemmed{word: string([]byte(word)), language: l}
	e.token = l.stem(e.word)
	slot.Store(e)
	return e
}
