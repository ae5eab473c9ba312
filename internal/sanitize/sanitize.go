// Package sanitize makes foreign text harmless: text from documents, tool
// descriptions, file names and other servers, on its way to a model, a
// terminal, a log, JSON or YAML.
//
// [Invisible] is the one definition of the characters that a reader does not
// see but a model or a terminal does. [Line], [Text] and [Lines] remove them. [Escape],
// [QuoteJSON] and [QuoteYAML] show them as escapes.
package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Invisible reports whether r cannot be seen, or changes how its neighbors are
// shown: control and format characters, separators of lines and paragraphs,
// every character of Unicode's Default_Ignorable_Code_Point property, and
// noncharacters. White space that control characters stand for (tab, line
// feed) is included; other white space is not.
func Invisible(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	switch {
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false // Cf, but visible: for example U+0600, the Arabic number sign
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Noncharacter_Code_Point):
		return true
	}
	return r >= 0xe0000 && r <= 0xe0fff // default ignorable as a block, assigned or not
}

// maxJoiners is the number of joiners in a row that [Line] and [Text] keep. An
// emoji may have a variation selector and a joiner.
const maxJoiners = 2

// joins reports whether the invisible character r belongs to the spelling of
// the text after the visible character last. The zero-width joiner and
// non-joiner do in Persian, Indic scripts and emoji, never after a Latin letter.
// The two variation selectors for text and emoji style do after symbols, and
// the Mongolian ones after Mongolian letters. All other variation selectors are
// dropped: data can be hidden in them.
func joins(last, r rune) bool {
	switch r {
	case 0x200c, 0x200d:
		return last >= 0x300
	case 0xfe0e, 0xfe0f:
		return last >= 0x300 && unicode.Is(unicode.S, last)
	case 0x180b, 0x180c, 0x180d, 0x180f:
		return unicode.Is(unicode.Mongolian, last)
	}
	return false
}

// A filter drops the invisible characters of a text, one character at a time.
type filter struct {
	last    rune // latest visible character; 0 at the start and after white space
	joiners int  // that were kept since last
}

// keep reports whether r, which is not white space, stays in the text.
func (f *filter) keep(r rune) bool {
	if !Invisible(r) {
		f.last, f.joiners = r, 0
		return true
	}
	if f.joiners == maxJoiners || !joins(f.last, r) {
		return false
	}
	f.joiners++
	return true
}

// space resets the filter: no character joins across white space.
func (f *filter) space() { *f = filter{} }

// Line returns s as one line: white space becomes single blanks, none at either
// end, and invisible characters are removed. Joiners that a script needs stay.
// Invalid UTF-8 becomes U+FFFD.
func Line(s string) string {
	if isPlainLine(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	var f filter
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) {
			space = true
			f.space()
			continue
		}
		if !f.keep(r) {
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteRune(r)
	}
	return b.String()
}

// isPlainLine reports whether s is printable ASCII with single blanks inside,
// as most texts are. They need no copy.
func isPlainLine(s string) bool {
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

// lineEnds turns every line end into a line feed.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n",
	"\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// Text returns s without invisible characters. Line ends become line feeds,
// tabs stay, blanks at the end of lines, empty lines at the start and the end,
// and all but one of the empty lines in a row are removed. Joiners that a script
// needs stay. Invalid UTF-8 becomes U+FFFD.
func Text(s string) string {
	s = lineEnds.Replace(strings.ToValidUTF8(s, "\ufffd"))
	var b strings.Builder
	b.Grow(len(s))
	empty := false // lines since the last one that was written
	for text := range strings.SplitSeq(s, "\n") {
		text = strings.TrimRightFunc(visible(text), unicode.IsSpace)
		if text == "" {
			empty = true
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
			if empty {
				b.WriteByte('\n')
			}
		}
		empty = false
		b.WriteString(text)
	}
	return b.String()
}

// Lines returns s without invisible characters, in the lines that it has. Line
// ends become line feeds, and other white space stays. Joiners that a script
// needs stay. Invalid UTF-8 becomes U+FFFD.
func Lines(s string) string {
	s = lineEnds.Replace(strings.ToValidUTF8(s, "\ufffd"))
	var b strings.Builder
	b.Grow(len(s))
	for line := range strings.Lines(s) {
		b.WriteString(visible(line))
	}
	return b.String()
}

// visible returns a line without its invisible characters, except white space.
func visible(line string) string {
	var f filter
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			f.space()
			return r
		case f.keep(r):
			return r
		}
		return -1
	}, line)
}

// ellipsis ends a text that was cut.
const ellipsis = "…"

// Cut returns s if it has at most the given numbers of runes and bytes. A
// longer text is cut so that it keeps both bounds with the ellipsis at its end,
// after a whole word if one ends within 20 bytes. runes must be at least 1 and
// bytes at least 3.
func Cut(s string, runes, bytes int) string {
	if len(s) <= bytes && utf8.RuneCountInString(s) <= runes {
		return s
	}
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

// Short returns [Line] of s, [Cut] to the given bounds. It reads no more than
// the first 8 bytes of s for each rune.
func Short(s string, runes, bytes int) string {
	return Cut(Line(head(s, 8*runes)), runes, bytes)
}

// head returns at most the first n bytes of s, n being 4 or more, and no part of
// a rune at the end.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for back := range utf8.UTFMax {
		if utf8.RuneStart(s[n-back]) {
			return s[:n-back]
		}
	}
	return s[:n] // not UTF-8
}
