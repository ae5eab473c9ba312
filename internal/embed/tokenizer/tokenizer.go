// Package tokenizer turns text into the token numbers of language models, as the
// tokenizers library of Hugging Face does.
//
// It reads the files tokenizer.json and vocab.txt of a model. The files are
// checked: damaged ones are errors of kind Corrupt, and those that need more than
// WordPiece or Unigram are errors of kind Unsupported.
package tokenizer

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Tokenizer splits text into tokens. It is safe for concurrent use.
type Tokenizer struct {
	vocab    map[string]int32
	unknown  int32 // the token of what is not in the vocabulary; -1 if there is none
	model    model
	prepare  func(string) string
	words    func(string) iter.Seq[string]
	specials []special
	english  func() bool // reports whether few tokens are in other scripts than Latin and Greek
	before   []int32     // tokens before each text, such as [CLS]
	after    []int32     // tokens after each text, such as [SEP]
}

// A model splits one word into tokens.
type model interface {
	// appendWord appends the tokens of a word.
	appendWord(ids []int32, word string) []int32
}

// A special is a string that is a token wherever it occurs in a text.
type special struct {
	text string
	id   int32
}

// Size returns the number of different tokens: one more than the highest token.
func (t *Tokenizer) Size() int {
	size := int32(0)
	for _, id := range t.vocab {
		size = max(size, id+1)
	}
	for _, s := range t.specials {
		size = max(size, s.id+1)
	}
	for _, id := range slices.Concat(t.before, t.after) {
		size = max(size, id+1)
	}
	return int(size)
}

// Vocabulary yields the texts of all tokens, in no order.
func (t *Tokenizer) Vocabulary() iter.Seq[string] { return maps.Keys(t.vocab) }

// Unknown returns the token of words that are not in the vocabulary, -1 if there
// is none.
func (t *Tokenizer) Unknown() int32 { return t.unknown }

// Encode appends the tokens of a text with those that the model wants before and
// after it, at most limit tokens in all. The tokens of the text are cut to fit.
func (t *Tokenizer) Encode(ids []int32, text string, limit int) []int32 {
	start := len(ids)
	ids = append(ids, t.before...)
	ids = t.Append(ids, text, max(limit-len(t.before)-len(t.after), 0))
	ids = append(ids, t.after...)
	return ids[:min(len(ids), start+limit)]
}

// Append appends the tokens of a text, at most limit of them. It reads no more of
// the text than that.
func (t *Tokenizer) Append(ids []int32, text string, limit int) []int32 {
	end := len(ids) + limit
	for piece, id := range t.pieces(text) {
		if id >= 0 {
			ids = append(ids, id)
		} else {
			for word := range t.words(t.prepare(piece)) {
				ids = t.model.appendWord(ids, word)
				if len(ids) >= end {
					break
				}
			}
		}
		if len(ids) >= end {
			return ids[:end]
		}
	}
	return ids
}

// pieces yields the parts of a text between white space and special tokens, each
// with -1, and the special tokens.
func (t *Tokenizer) pieces(text string) iter.Seq2[string, int32] {
	return func(yield func(string, int32) bool) {
		start := 0
		for i := 0; i < len(text); {
			if s, ok := t.specialAt(text[i:]); ok {
				if i > start && !yield(text[start:i], -1) || !yield(s.text, s.id) {
					return
				}
				i += len(s.text)
				start = i
				continue
			}
			// Combining characters join across white space of other kinds, so
			// only blanks and line ends separate pieces.
			if c := text[i]; c == ' ' || c == '\n' {
				if i > start && !yield(text[start:i], -1) {
					return
				}
				start = i + 1
			}
			i++
		}
		if start < len(text) {
			yield(text[start:], -1)
		}
	}
}

// specialAt returns the longest special token at the start of a text.
func (t *Tokenizer) specialAt(text string) (special, bool) {
	var found special
	for _, s := range t.specials {
		if text[0] == s.text[0] && len(s.text) > len(found.text) && strings.HasPrefix(text, s.text) {
			found = s
		}
	}
	return found, found.text != ""
}

// Foreign reports whether most words of a text are foreign to the model: not in the
// vocabulary, or, if less than a tenth of the vocabulary is in other scripts than
// Latin and Greek, written in such a script. The vocabularies of models for English
// have the letters of other scripts, but hardly a word. A text without letters and
// digits is not foreign.
func (t *Tokenizer) Foreign(text string) bool {
	words, foreign := 0, 0
	english := t.english()
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) }) {
		if words >= maxForeignWords {
			break
		}
		n := 1
		other, unspaced := otherLetters(word)
		if unspaced > 0 {
			// A run of such characters is several words. Two are counted as one
			// word, as in the index.
			n = (unspaced + 1) / 2
		}
		if other && english || t.isUnknown(word) {
			foreign += n
		}
		words += n
	}
	return 2*foreign > words
}

// maxForeignWords is the number of words that Foreign looks at.
const maxForeignWords = 1000

// isUnknown reports whether a part of a word is not in the vocabulary.
func (t *Tokenizer) isUnknown(word string) bool {
	for _, id := range t.Append(nil, word, 16) {
		if id == t.unknown {
			return true
		}
	}
	return false
}

// isEnglish reports whether less than a tenth of the vocabulary is in other scripts
// than Latin and Greek. In all-MiniLM-L6-v2, it is a twentieth.
func (t *Tokenizer) isEnglish() bool {
	others := 0
	for token := range t.vocab {
		if other, _ := otherLetters(token); other {
			others++
		}
	}
	return 10*others < len(t.vocab)
}

// otherLetters reports whether a word has letters that are neither Latin nor Greek,
// and counts those of scripts that put no spaces between words.
func otherLetters(word string) (other bool, unspaced int) {
	for _, r := range word {
		if r < utf8.RuneSelf || !unicode.IsLetter(r) || unicode.In(r, unicode.Latin, unicode.Greek) {
			continue
		}
		other = true
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
			unicode.Myanmar) {
			unspaced++
		}
	}
	return other, unspaced
}
