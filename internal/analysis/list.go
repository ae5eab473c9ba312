package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a list is. Prose has about one function word for two others, and reference
// texts one for ten.
const (
	listWords    = 40 // at least: shorter texts are not judged
	listFunction = 30 // less than one of so many words is a function word
	listCode     = 15 // signs of code are for less than one of so many words
)

// IsList reports whether a text in a language, an ISO 639-1 code, is a list of names,
// such as a table of contents, an index of terms, or the names of algorithms, and not
// prose or code. It is false for languages of which the function words are not known.
func IsList(text, code string) bool {
	f, ok := functionWordsOf()[code]
	if !ok || LanguageOf(code) == English && code != "en" {
		return false
	}
	words, function, signs := 0, 0, 0
	for i := 0; i < len(text) && function*listFunction < len(text)/2; {
		r, n := utf8.DecodeRuneInString(text[i:])
		if !unicode.IsLetter(r) {
			if strings.IndexByte(";{}=$", text[i]) >= 0 {
				signs++
			}
			i += n
			continue
		}
		from := i
		for i < len(text) {
			r, n := utf8.DecodeRuneInString(text[i:])
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' {
				break
			}
			i += n
		}
		words++
		if i-from < 12 && f.common[fold(text[from:i])] {
			function++
		}
	}
	return words >= listWords && function*listFunction < words && signs*listCode < words
}
