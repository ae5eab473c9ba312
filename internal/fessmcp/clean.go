package fessmcp

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Titles, excerpts and words come from documents that anybody may have written.
// What follows takes out of them what a reader would not see but a model
// would: control characters, bidirectional overrides, zero-width characters,
// tag characters (U+E0000 on), fillers. A document's own text is left alone.

// unmark removes the marks that a service puts around the words that it found.
var unmark = strings.NewReplacer("<strong>", "", "</strong>", "")

// line returns s as one line: white space folded to single blanks, invisible
// characters removed.
func line(s string) string {
	if isLine(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	space := false
	var last rune   // last visible rune written
	var joiners int // since last
	for _, r := range s {
		switch {
		case ' ' < r && r < 0x7f: // most of them: spared the tables
		case unicode.IsSpace(r):
			space = true
			continue
		case isJoiner(r):
			// Persian, Indic scripts and emoji need them, one or
			// two at a time and never after a Latin letter.
			if space || last < 0x300 || joiners == 2 {
				continue
			}
			joiners++
			b.WriteRune(r)
			continue
		case isInvisible(r):
			continue
		}
		if space && last != 0 {
			b.WriteByte(' ')
		}
		space, last, joiners = false, r, 0
		b.WriteRune(r)
	}
	return b.String()
}

// isLine reports whether s is printable ASCII with single blanks inside, as most
// texts are: they need no copy.
func isLine(s string) bool {
	blank := true // no blank may follow
	for i := range len(s) {
		switch c := s[i]; {
		case c == ' ' && !blank:
			blank = true
		case ' ' < c && c < 0x7f:
			blank = false
		default:
			return false
		}
	}
	return !blank || s == ""
}

// isJoiner reports whether r changes how its neighbours look: the zero-width
// joiner and non-joiner and the variation selectors.
func isJoiner(r rune) bool {
	return r == '\u200c' || r == '\u200d' || unicode.Is(unicode.Variation_Selector, r)
}

func isInvisible(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.Is(unicode.Cc, r) ||
		unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// cut shortens s to at most the given number of runes and of bytes. What it
// cuts ends with an ellipsis, after a whole word where one ends nearby.
func cut(s string, runes, bytes int) string {
	if len(s) <= bytes && utf8.RuneCountInString(s) <= runes {
		return s
	}
	const ellipsis = "…"
	runes, bytes = runes-1, bytes-len(ellipsis)
	end, n := 0, 0
	for i, r := range s {
		if n == runes || i+utf8.RuneLen(r) > bytes {
			break
		}
		n++
		end = i + utf8.RuneLen(r)
	}
	s = s[:end]
	if i := strings.LastIndexByte(s, ' '); i > end-20 && i > 0 {
		s = s[:i]
	}
	return s + ellipsis
}

// link returns s as an address that shows all of itself: what line would take
// away is percent-encoded, so that the address still leads to its document.
func link(s string) string {
	if isLine(s) {
		return s
	}
	if strings.IndexFunc(s, isHidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !isHidden(r) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isHidden(r rune) bool {
	return isInvisible(r) || isJoiner(r) || r != ' ' && unicode.IsSpace(r)
}

// title, digest and word bound what they clean to what a list of them needs.
func title(s string) string { return short(s, 200, 600) }

func digest(s string, runes int) string {
	return short(unmark.Replace(head(s, 8*runes)), runes, runes*3/2)
}

func word(s string) string { return short(s, 100, 300) }

// short is a line of bounded length. It looks no further into s than that
// needs, unless s is mostly blanks.
func short(s string, runes, bytes int) string {
	return cut(line(head(s, 8*runes)), runes, bytes)
}

// head returns the first n bytes of s at most, n being 4 or more, without the beginning of a rune
// at its end.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for back := 0; back < utf8.UTFMax; back++ {
		if utf8.RuneStart(s[n-back]) {
			return s[:n-back]
		}
	}
	return s[:n] // no UTF-8 anyway
}
