// Package analysis splits a text into the words that it is searched by.
//
// It gives the same words for a stored text and for a query, whatever the
// language: compatibility forms are folded (NFKC), letters are in lower case,
// Latin letters lose their accents, English endings are removed, and scripts
// without blanks between words give overlapping pairs of characters. Package
// index stores these words, and [Digest] makes excerpts with them.
//
// The functions use no files and no network, and are safe for concurrent use.
package analysis

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// Version is the version of the tokens. It is incremented whenever the tokens
// of any text change; an index of another version is rebuilt from its texts.
const Version = 1

// maxWord is the maximum length of a word in runes. Longer words are not words
// of a language. They are cut and not dropped, so that they can be found.
const maxWord = 64

// A Token is one word of a text.
type Token struct {
	// Text is the word as it is indexed. It consists of letters, digits
	// and marks (Unicode categories L, Nd and M, and U+3007) and is never
	// empty.
	Text string

	// Surface is the word before stemming, in the form of [Fold].
	Surface string

	// Start and End are byte offsets into the original text, at rune
	// borders, with Start < End. Start never decreases from token to token;
	// CJK tokens overlap.
	Start, End int

	// CJK reports whether the token is one or two characters of a script
	// without blanks between words (see [IsCJK]).
	CJK bool
}

// Tokens returns the words of s in order, as they are indexed.
//
// Latin words are in lower case and without accents. Those that consist of the
// letters a to z are stemmed (English, Porter 2). Words of more than 64 runes
// are cut to 64. An underscore, a full stop or a hyphen separates words
// ("go1.26" is go1 and 26). So does an apostrophe, except in English endings:
// "don't" is dont, and 's, 'll, 're, 've, 'd and 'm are removed.
//
// A run of CJK characters gives its overlapping pairs, followed by its last
// character alone. So every character of a text is the beginning of some token,
// and a query for one character is a prefix query.
func Tokens(s string) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		sc := scanner{s: s, yield: yield, fold: true}
		sc.scan()
	}
}

// Join returns the texts of s's tokens separated by single blanks. A tokenizer
// that splits only at ASCII characters other than letters and digits, such as
// SQLite's ascii, splits the result into the same tokens.
func Join(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for t := range Tokens(s) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(t.Text)
	}
	return b.String()
}

// Terms returns the tokens that a text with the word or phrase s contains in
// sequence. It returns nil if s contains no word.
//
// They are the tokens of s without the single last character of a CJK run at
// the end of s, because in a text the run may be longer: "検索" is the single
// term 検索. For the same reason, a last term that is one CJK character must be
// matched as a prefix; see [Lone].
func Terms(s string) []string {
	var terms []string
	var prev, last Token
	for t := range Tokens(s) {
		prev, last = last, t
		terms = append(terms, t.Text)
	}
	if len(terms) >= 2 && last.CJK && prev.CJK && prev.End == last.End && Lone(last.Text) && !Lone(prev.Text) {
		terms = terms[:len(terms)-1]
	}
	return terms
}

// Lone reports whether a term is a single CJK character, which must be matched
// as a prefix at the end of a phrase.
func Lone(term string) bool {
	r, n := utf8.DecodeRuneInString(term)
	return n > 0 && n == len(term) && IsCJK(r)
}
