package extract

import (
	"context"
	"iter"
	"regexp"
	"strings"
)

// maxMarkupLine is the length of a line, in bytes, from which its markup is
// not examined: people do not write such lines.
const maxMarkupLine = 32 << 10

// eachLine yields the lines of s without their ends, until ctx is done.
func eachLine(ctx context.Context, s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for off, next := 0, 0; off < len(s); {
			if off >= next {
				if next = off + pieceLen; ctx.Err() != nil {
					return
				}
			}
			line, _, _ := strings.Cut(s[off:], "\n")
			off += len(line) + 1
			if !yield(line) {
				return
			}
		}
	}
}

// match returns the match of p in s and its groups, if applies is set.
func match(p *regexp.Regexp, s string, applies bool) []string {
	if !applies {
		return nil
	}
	return p.FindStringSubmatch(s)
}

// replace replaces the matches of p if s contains one of marks, which every
// match contains. Looking for them is much faster.
func replace(p *regexp.Regexp, s, with string, marks ...string) string {
	for _, m := range marks {
		if strings.Contains(s, m) {
			return p.ReplaceAllString(s, with)
		}
	}
	return s
}

// A lines collects the lines of a text and its headings. Several blank lines in
// succession become one.
type lines struct {
	buf      []byte
	headings []Heading
	empty    bool // an empty line before the next one
	ended    bool // a definition list ends before the next line
}

// add adds a line. A line of white space is a blank one.
func (l *lines) add(line string) {
	line = strings.TrimRight(line, " \t")
	if line == "" {
		l.blank()
		return
	}
	if l.empty && len(l.buf) > 0 {
		l.buf = append(l.buf, '\n')
	}
	l.empty = false
	if l.ended {
		l.ended = false
		l.mark(len(l.buf), TermLevel, "")
	}
	l.buf = append(l.buf, line...)
	l.buf = append(l.buf, '\n')
}

// blank adds a blank line before the next one.
func (l *lines) blank() { l.empty = true }

// heading adds a line that is a heading, with blank lines around it.
func (l *lines) heading(level int, text string) {
	if text = oneLine(text); text == "" {
		return
	}
	l.blank()
	l.ended = false
	l.add(text)
	l.mark(len(l.buf)-len(text)-1, min(level, TermLevel-1), text)
	l.blank()
}

// term adds a line that is a term of a definition list.
func (l *lines) term(text string) {
	l.ended = false
	l.add(text)
	l.mark(len(l.buf)-len(text)-1, TermLevel, text)
}

// mark records the heading of the text at offset. Only headings of TermLevel may
// have no text.
func (l *lines) mark(offset, level int, text string) {
	if text = shorten(text, maxHeading); (text != "" || level == TermLevel) && len(l.headings) < maxHeadings {
		l.headings = append(l.headings, Heading{Offset: offset, Level: min(max(level, 1), TermLevel), Text: text})
	}
}

// text adds all lines of s.
func (l *lines) text(ctx context.Context, s string) {
	for line := range eachLine(ctx, s) {
		l.add(line)
	}
}

// headed adds the lines of a text with its headings, whose levels are increased
// by deeper.
func (l *lines) headed(ctx context.Context, t *Text, deeper int) {
	next, off := 0, 0
	for line := range eachLine(ctx, t.Body) {
		end := off + len(line)
		l.add(line)
		for ; next < len(t.Headings) && t.Headings[next].Offset <= end; next++ {
			if h := t.Headings[next]; h.Offset >= off && strings.TrimRight(line, " \t") != "" {
				start := len(l.buf) - 1 - len(strings.TrimRight(line, " \t"))
				level := h.Level
				if level < TermLevel {
					level = min(level+deeper, TermLevel-1)
				}
				l.mark(start+min(h.Offset-off, len(l.buf)-1-start), level, h.Text)
			}
		}
		off = end + 1
	}
}

// finish moves the lines and headings to t.
func (l *lines) finish(t *Text) {
	t.Body = strings.TrimRight(string(l.buf), " \t\n")
	t.Headings = l.headings
}
