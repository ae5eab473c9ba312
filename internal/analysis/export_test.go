package analysis

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Fold returns s in the form in which words are stemmed: NFKC, in lower case,
// and with Latin letters without accents. Characters that are not letters are
// kept.
func Fold(s string) string {
	if isLowerASCII(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	latin := false
	for _, r := range norm.NFKC.String(s) {
		if unicode.IsMark(r) {
			if !latin {
				b.WriteRune(r)
			}
			continue
		}
		var buf [8]byte
		b.Write(appendFolded(buf[:0], r))
		latin = isLatin(r)
	}
	return b.String()
}

// Stem returns the stem of a folded word (English, Porter 2). A word with other
// characters than the letters a to z is returned unchanged.
func Stem(word string) string {
	for i := range len(word) {
		if c := word[i]; c < 'a' || c > 'z' {
			return word
		}
	}
	if len(word) < 3 || len(word) > maxWord {
		return word
	}
	return stemOf(word).stem
}
