package tokenizer

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

// A wordPiece model splits a word into the longest pieces from left to right.
type wordPiece struct {
	first   map[string]int32 // pieces at the start of a word
	next    map[string]int32 // pieces inside a word, without their prefix
	unknown int32
	longest int // of all pieces, in bytes
	maxWord int // longer words are unknown, in characters
}

// newWordPiece returns a model with a vocabulary in which pieces inside of words
// begin with prefix.
func newWordPiece(vocab map[string]int32, prefix string, unknown int32, maxWord int) *wordPiece {
	m := &wordPiece{first: vocab, next: make(map[string]int32, len(vocab)/4), unknown: unknown, maxWord: maxWord}
	for piece, id := range vocab {
		m.longest = max(m.longest, len(piece))
		if len(piece) >= len(prefix) && piece[:len(prefix)] == prefix {
			m.next[piece[len(prefix):]] = id
		}
	}
	return m
}

func (m *wordPiece) appendWord(ids []int32, word string) []int32 {
	if len(word) > m.maxWord && utf8.RuneCountInString(word) > m.maxWord {
		return append(ids, m.unknown)
	}
	start := len(ids)
	pieces := m.first
	for word != "" {
		end := min(len(word), m.longest)
		for ; end > 0; end-- {
			if end < len(word) && !utf8.RuneStart(word[end]) {
				continue
			}
			if id, ok := pieces[word[:end]]; ok {
				ids = append(ids, id)
				break
			}
		}
		if end <= 0 {
			return append(ids[:start], m.unknown)
		}
		word, pieces = word[end:], m.next
	}
	return ids
}

// bertWords yields the words of a text: what is between white space, with each
// punctuation character as a word of its own.
func bertWords(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := -1 // of the current word
		for i, r := range text {
			punct := punctuation(r)
			if !punct && !unicode.IsSpace(r) {
				if start < 0 {
					start = i
				}
				continue
			}
			if start >= 0 && !yield(text[start:i]) {
				return
			}
			start = -1
			if punct && !yield(text[i:i+utf8.RuneLen(r)]) {
				return
			}
		}
		if start >= 0 {
			yield(text[start:])
		}
	}
}
