// Package analysis splits a text into the words that it is searched by.
//
// It gives the same words for a stored text and for a query: compatibility forms
// are folded (NFKC), letters are in lower case, Latin and Greek letters lose their
// accents, words lose the endings of the [Language] of the text, and scripts
// without blanks between words give overlapping pairs of characters. Package
// index stores these words, and [Digest] makes excerpts with them.
//
// The functions use no files and no network, and are safe for concurrent use.
package analysis

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// Version is the version of the tokens. It is incremented whenever the tokens
// of any text change; an index of another version is rebuilt from its texts.
const Version = 4

// maxWord is the maximum length of a word in runes. Longer words are not words
// of a language. They are cut and not dropped, so that they can be found.
const maxWord = 64

// A Token is one word of a text.
type Token struct {
	// Text is the word as it is indexed: the prefix of the language whose
	// stemmer was used (see [Language.Prefix]), and letters, digits and
	// marks (Unicode categories L, Nd and M, and U+3007).
	Text string

	// Surface is the word before stemming: NFKC, in lower case, and with
	// Latin letters without accents.
	Surface string

	// Start and End are byte offsets into the original text, at rune
	// borders, with Start < End. Start never decreases from token to token;
	// CJK tokens overlap.
	Start, End int

	// CJK reports whether the token is one or two characters of a script
	// without blanks between words (see [IsCJK]).
	CJK bool
}

// Tokens returns the words of s, a text in a language, in order, as they are
// indexed.
//
// Words are in lower case, and Latin letters without accents. Words that then
// consist of the letters a to z are stemmed by the language's Snowball stemmer,
// and so are Cyrillic words of Russian texts. Words of more than 64 runes are
// cut to 64. An underscore, a full stop or a hyphen separates words ("go1.26"
// is go1 and 26). So does an apostrophe, except in English endings: "don't" is
// dont, and 's, 'll, 're, 've, 'd and 'm are removed.
//
// A run of CJK characters gives its overlapping pairs, followed by its last
// character alone. So every character of a text is the beginning of some token,
// and a query for one character is a prefix query.
func Tokens(s string, l Language) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		sc := scanner{s: s, language: l, yield: yield}
		sc.scan()
	}
}

// TokensLike is [Tokens] without words that begin otherwise than all of some
// tokens, which saves their stemming.
func TokensLike(s string, l Language, tokens iter.Seq[string]) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		var first beginnings
		for t := range tokens {
			first.add(strings.TrimPrefix(t, l.Prefix()))
		}
		sc := scanner{s: s, language: l, first: &first, yield: func(t Token) bool { return t.Text == "" || yield(t) }}
		sc.scan()
	}
}

// An Indexed is a token of a text as a segment stores it.
type Indexed struct {
	Token string // as Token.Text; "" for a word that has no token
	Word  string // the word as people write it, for suggestions; "" if there is none

	// Beside reports whether the token stands at the position of the token
	// before it, and does not count in the length of the text: a part of an
	// identifier, or signs (see [Signs]).
	Beside bool
}

// Analyze returns s's tokens in order as they are indexed, each with the word as
// people write it: in the form of [Lower] and not stemmed. Words of
// scripts that use blanks have 2 to 40 runes. CJK runs are split where the
// script changes, and parts of 2 to 20 runes are words. They come alone, with
// "" for the token. Parts in hiragana, which are mostly endings and particles,
// are omitted.
//
// The parts of an identifier in mixed case follow it ("printAll" is printal, and
// beside it print and all), and so do the tokens of [Signs].
func Analyze(s string, l Language) iter.Seq[Indexed] {
	return func(yield func(Indexed) bool) {
		sc := scanner{s: s, language: l, indexed: yield}
		sc.scan()
	}
}

// Variants returns the terms of s in each of some languages, without
// repetitions, or nil if s contains no word: the tokens that a text in a language
// with the word or phrase s contains in sequence. If prefix is true, s is the
// beginning of a word or phrase: its last word is not stemmed, and must be
// matched as a prefix unless it is a pair of CJK characters.
//
// The terms are the tokens of s without the single last character of a CJK run at
// the end of s, because in a text the run may be longer: "検索" is the single
// term 検索. For the same reason, a last term that is one CJK character must be
// matched as a prefix; see [Lone].
func Variants(s string, languages []Language, prefix bool) [][]string {
	tokens := slices.Collect(Tokens(s, English))
	n := len(tokens)
	if n == 0 {
		return nil
	}
	if last := tokens[n-1]; n >= 2 && last.CJK && tokens[n-2].CJK && tokens[n-2].End == last.End && Lone(last.Text) &&
		!Lone(tokens[n-2].Text) {
		n--
	}
	var all [][]string
	for _, l := range languages {
		terms := make([]string, n)
		for i, t := range tokens[:n] {
			switch stemmer, ok := stemmerOf(classOf(t.Surface), l); {
			case !ok:
				terms[i] = t.Surface
			case prefix && i == n-1:
				terms[i] = stemmer.Prefix() + t.Surface
			default:
				terms[i] = stemOf(t.Surface, stemmer).token
			}
		}
		if !slices.ContainsFunc(all, func(other []string) bool { return slices.Equal(other, terms) }) {
			all = append(all, terms)
		}
	}
	return all
}

// Lone reports whether a term is a single CJK character, which must be matched
// as a prefix at the end of a phrase.
func Lone(term string) bool {
	r, n := utf8.DecodeRuneInString(term)
	return n > 0 && n == len(term) && IsCJK(r)
}
