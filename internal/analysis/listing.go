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

	longestFunction = 11 // bytes of a function word

	// A text that begins with so many function words, one of so many words at least, is prose.
	proseFunction = 4
	proseWords    = 10
)

// IsListing reports whether a text in a language, an ISO 639-1 code, has the form of a
// list of names or of a part of a change log. Such a text has many words and says
// little about each.
func IsListing(text, code string) bool { return isList(text, code) || isChangeLog(text) }

// isList reports whether a text is a list of names, such as a table of contents, an
// index of terms, or the names of algorithms, and not prose or code. It is false for
// languages of which the function words are not known.
func isList(text, code string) bool {
	f, ok := functionWordsOf()[code]
	if !ok || LanguageOf(code) == English && code != "en" {
		return false
	}
	words, function, signs := 0, 0, 0
	for i := 0; i < len(text); {
		n := wordLen(text[i:])
		if n == 0 {
			if strings.IndexByte(";{}=$", text[i]) >= 0 {
				signs++
			}
			i++
			continue
		}
		words++
		if n <= longestFunction && f.common[fold(text[i:i+n])] {
			if function++; function >= proseFunction && function*proseWords >= words {
				return false
			}
		}
		i += n
	}
	return words >= listWords && function*listFunction < words && signs*listCode < words
}

// wordLen returns the number of bytes of the letters, digits and underscores at the
// beginning of a text, or 0 if it does not begin with a letter.
func wordLen(s string) int {
	n := 0
	for n < len(s) {
		c := s[n]
		if isASCIILetter(c) || n > 0 && (isDigit(c) || c == '_') {
			n++
			continue
		}
		if c < utf8.RuneSelf {
			break
		}
		r, size := utf8.DecodeRuneInString(s[n:])
		if !unicode.IsLetter(r) && (n == 0 || !unicode.IsDigit(r)) {
			break
		}
		n += size
	}
	return n
}

// What a part of a change log is.
const (
	logReferences = 5   // at least: to different versions and reports of errors
	logBytes      = 250 // of the text for each of them at most
	logDigits     = 3   // of the number of a report at least
)

// reportWords are the words before the numbers of reports of errors.
var reportWords = map[string]bool{"bpo": true, "gh": true, "bug": true, "bugs": true, "issue": true, "pr": true,
	"cve": true, "lp": true, "closes": true, "fixes": true, "bz": true}

// isChangeLog reports whether a text is a part of a change log: it refers to many
// versions with three parts, such as "Patch 8.2.1234", or reports of errors, such as #1234
// or bpo-1234.
func isChangeLog(text string) bool {
	var seen map[string]bool
	for i := 0; i < len(text); {
		for i < len(text) && !isDigit(text[i]) {
			i++
		}
		from := i
		parts := 1
		for i < len(text) && (isDigit(text[i]) || text[i] == '.' && i+1 < len(text) && isDigit(text[i+1])) {
			if text[i] == '.' {
				parts++
			}
			i++
		}
		if parts == 3 && isVersion(text[:from]) || parts == 1 && i-from >= logDigits && isReport(text[:from]) {
			if seen == nil {
				seen = map[string]bool{}
			}
			seen[text[from:i]] = true
		}
	}
	return len(seen) >= logReferences && len(seen)*logBytes >= len(text)
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// isVersion reports whether a number after a text is that of a version: a word stands
// before it, unlike before the number of a section.
func isVersion(before string) bool {
	before = strings.TrimSuffix(before, "v")
	n := len(before)
	return n > 1 && before[n-1] == ' ' && isASCIILetter(before[n-2])
}

// isReport reports whether a number after a text is that of the report of an error.
func isReport(before string) bool {
	if strings.HasSuffix(before, "#") {
		return true
	}
	end := len(before)
	for end > 0 && len(before)-end < 3 && strings.IndexByte("-: #", before[end-1]) >= 0 {
		end--
	}
	from := end
	for from > 0 && end-from <= len("closes") && isASCIILetter(before[from-1]) {
		from--
	}
	return from < end && reportWords[strings.ToLower(before[from:end])]
}
