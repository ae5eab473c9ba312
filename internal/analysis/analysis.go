// Package analysis turns a text into the words that it is searched by.
//
// The same words come out of a stored text and of a query, whatever the
// language: compatibility forms are folded (NFKC), letters are lower case and
// lose their accents where they are Latin, English endings are cut, and
// scripts that write no blanks between words give overlapping pairs of
// characters. Package index stores these words and finds them again, package
// dataset ranks by them, and both take excerpts from [Digest].
//
// The package is pure: no file, no network, and nothing that a caller sees
// change.
package analysis

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// Version is the version of the words. It is raised whenever the tokens of any
// text change; an index of another version is rebuilt from its texts.
const Version = 1

// maxWord is how many runes of a word count. Longer words are no words of a
// language; they are cut rather than dropped so that they can be found.
const maxWord = 64

// A Token is one word of a text.
type Token struct {
	// Text is the word as it is indexed. It holds only letters, digits
	// and marks (Unicode categories L, Nd and M, and U+3007) and is never
	// empty.
	Text string

	// Surface is the word before its ending was cut, as [Fold] writes it.
	// It equals Text where nothing was cut.
	Surface string

	// Start and End are byte offsets into the original text, on rune
	// borders, Start < End. Starts never fall; CJK tokens overlap.
	Start, End int

	// CJK says that the token is a pair of characters, or one, of a script
	// without blanks between words (see [IsCJK]).
	CJK bool
}

// Tokens returns the words of s in order, as they are indexed.
//
// Latin words are lower case, without accents, and stemmed (English, Porter 2)
// where they are letters a to z alone. Of a word of more than 64 runes the
// first 64 count. An underscore, a full stop or a hyphen parts words ("go1.26"
// is go1 and 26). An apostrophe parts them too, but for the endings of English:
// "don't" is dont, and 's, 'll, 're, 've, 'd and 'm are dropped.
//
// A run of CJK characters gives its overlapping pairs, and at its end the last
// character once more alone: every character of a text is thus the beginning of
// some token, and a query for one character is a prefix query.
func Tokens(s string) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		sc := scanner{s: s, yield: yield, fold: true}
		sc.scan()
	}
}

// Join returns the texts of s's tokens parted by single blanks. A tokenizer
// that splits at nothing but ASCII signs, such as SQLite's ascii, makes the same
// tokens of it.
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

// Terms returns the tokens that a text which contains the word or phrase s has
// one after the other. It is nil where s holds no word.
//
// They are the tokens of s without the lone last character of a CJK run at the
// end of s, because the text may go on there: "検索" is the single term 検索.
// Where the last term is one CJK character it is to be matched as a prefix, for
// the same reason; [Lone] tells.
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

// Lone reports whether a term is a single CJK character: one that must be
// matched as a prefix where it ends a phrase.
func Lone(term string) bool {
	r, n := utf8.DecodeRuneInString(term)
	return n > 0 && n == len(term) && IsCJK(r)
}
