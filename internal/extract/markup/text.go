package markup

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// PlainText marks the headings of a text without markup, which stays as it is: lines
// that are underlined, numbered sections as in RFCs, and lines in capitals. The
// headings of a help file of Vim are those of its own form.
func PlainText(ctx context.Context, t *plain.Text, src string) {
	t.Body = plain.TrimBlankLines(src)
	if isVimHelp(t.Body) {
		vimHelp(ctx, t)
		return
	}
	var x textReader
	for off, line := range plain.Lines(ctx, t.Body) {
		x.line(off, strings.TrimRight(line, " \t\r"))
	}
	x.line(len(t.Body), "")
	x.mark(t)
}

// maxTextHeading is the number of bytes of a heading of a text without markup. Longer
// lines are sentences.
const maxTextHeading = 80

// A textReader finds the lines of a text that look like headings.
type textReader struct {
	before, current string // lines
	off             int    // of current
	found           []textHeading
	capitals        int // headings in capitals
	filled          bool
}

// A textHeading is a line that looks like a heading.
type textHeading struct {
	off    int
	text   string
	style  byte  // the character that underlines it, 'A' for capitals, '1' for a number
	over   bool  // a line of the character is above it, too
	number []int // of a numbered one
	bare   bool  // the line before it that is not blank is a heading, too
}

// line reads the next line, after which it is known what the current one is.
func (x *textReader) line(off int, next string) {
	switch h := headingOf(x.before, x.current, next); {
	case h.style != 0:
		h.off, h.bare = x.off, !x.filled
		x.found = append(x.found, h)
		x.filled = false
		if h.style == 'A' {
			x.capitals++
		}
	case x.current != "" && !isRule(x.current):
		x.filled = true
	}
	x.before, x.current, x.off = x.current, next, off
}

// headingOf returns the heading that a line is, or none.
func headingOf(before, line, next string) (h textHeading) {
	text := strings.TrimLeft(line, " \t")
	if text == "" || len(text) > maxTextHeading || before != "" && !isRule(before) || isRule(line) ||
		strings.Contains(text, "   ") || strings.Contains(text, "\t") {
		return h
	}
	h.text = text
	if isRule(next) && plain.HasLetter(text) {
		rule := strings.TrimLeft(next, " \t")
		n := utf8.RuneCountInString(text)
		if most := max(n+2, min(len(text), 2*n)); len(rule) >= max(n-2, 3) && len(rule) <= most {
			h.style, h.over = rule[0], strings.TrimLeft(before, " \t") == rule
		}
		return h
	}
	if before != "" || len(text) < len(line) || next != "" && next[0] != ' ' && next[0] != '\t' {
		return h
	}
	if h.number = sectionNumber(text); h.number != nil {
		if next == "" {
			h.style = '1'
		}
	} else if isCapitals(text) {
		h.style = 'A'
	}
	return h
}

// isRule reports whether a line consists of one character that underlines a heading.
func isRule(line string) bool {
	s := strings.TrimLeft(line, " \t")
	return len(s) >= 3 && strings.IndexByte("=-~^*+#", s[0]) >= 0 && strings.Trim(s, s[:1]) == ""
}

// isCapitals reports whether a line is a few words in capitals.
func isCapitals(s string) bool {
	if s == "" || strings.ContainsAny(s, `=;|<>{}$\`) || strings.IndexByte(".,!?:-*#", s[len(s)-1]) >= 0 ||
		strings.IndexByte("-*#", s[0]) >= 0 || len(strings.Fields(s)) > 8 {
		return false
	}
	letters := 0
	for _, r := range s {
		if unicode.IsUpper(r) {
			letters++
		} else if unicode.IsLetter(r) {
			return false
		}
	}
	return letters >= 4
}

// Limits on the number of a section.
const (
	maxSectionNumber = 20 // bytes
	maxSectionDepth  = 6  // parts
)

// sectionNumber returns the number of a section whose title follows it: 3.2, 3.2., or
// A.1 of an appendix, in which letters count as numbers from 1000 on.
func sectionNumber(s string) (number []int) {
	rest, appendix := strings.CutPrefix(s, "Appendix ")
	digits, title, _ := strings.Cut(rest, " ")
	title = strings.TrimLeft(title, " ")
	digits = strings.TrimRight(digits, ".:")
	if len(digits) > maxSectionNumber || !isTitle(title) {
		return nil
	}
	for part := range strings.SplitSeq(digits, ".") {
		n, err := strconv.Atoi(part)
		if len(number) == 0 && len(part) == 1 && part[0] >= 'A' && part[0] <= 'Z' && (appendix || len(digits) > 1) {
			n, err = 1000+int(part[0]-'A'), nil
		}
		if err != nil || n < 0 || len(part) > 4 || len(number) == maxSectionDepth {
			return nil
		}
		number = append(number, n)
	}
	return number
}

// isTitle reports whether a text begins like a title, and ends neither like a sentence
// nor like a line of a table of contents.
func isTitle(s string) bool {
	first, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(first) && !unicode.IsLower(first) && strings.IndexByte(".,;:!?", s[len(s)-1]) < 0 &&
		!strings.Contains(s, " . .") && !strings.Contains(s, "...")
}

// follows reports whether section b comes after section a, of which up to two may be
// missing between them.
func follows(a, b []int) bool {
	const missing = 2
	if len(a) == 0 || len(b) > 0 && b[0] == 1000 && a[0] < 1000 {
		return len(b) > 0 && (b[0] <= 1 || b[0] == 1000)
	}
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(b) || len(b) > n+1 && b[n+1] > 1 {
		return false
	}
	if n == len(a) {
		return b[n] <= 1+missing
	}
	return b[n] > a[n] && b[n] <= a[n]+1+missing
}

// mark records the headings. Lines in capitals are some if there are several, and
// numbers if they are in sequence and those at the top are not the items of a list.
func (x *textReader) mark(t *plain.Text) {
	var number []int
	numbered, list := 0, false
	last := -1 // the last one in sequence
	for i, h := range x.found {
		if h.style != '1' {
			continue
		}
		if !follows(number, h.number) {
			x.found[i].style = 0
			continue
		}
		list = list || h.bare && last == i-1 && len(number) == 1 && len(h.number) == 1
		number, last = h.number, i
		numbered++
	}
	type style struct {
		char byte
		over bool
	}
	var styles []style // by level
	for _, h := range x.found {
		if h.style == 0 || h.style == 'A' && x.capitals < 2 || h.style == '1' && (numbered < 2 || list) {
			continue
		}
		s := style{h.style, h.over}
		level := slices.Index(styles, s) + 1
		if level == 0 && len(styles) < 6 {
			styles = append(styles, s)
		}
		if level == 0 {
			level = len(styles)
		}
		t.Mark(h.off+strings.Index(t.Body[h.off:], h.text), min(level+max(len(h.number)-1, 0), 6), plain.OneLine(h.text))
	}
}
