package markup

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// Markdown keeps the source, which is readable as it is, and finds its
// headings (CommonMark 4.2 and 4.3) outside of fenced code. The values of front
// matter stand before it, one on each line.
func Markdown(ctx context.Context, t *plain.Text, src string) {
	body, front := splitFrontMatter(ctx, src)
	t.Title, t.Lang = front.title, front.lang
	body = plain.TrimBlankLines(body)
	t.Headings = markdownHeadings(ctx, body)
	values := front.values
	if len(t.Headings) > 0 {
		values = slices.DeleteFunc(values, func(v string) bool { return v == t.Headings[0].Text }) // the title, usually
	}
	lead := strings.Join(values, "\n")
	if lead != "" && body != "" {
		lead += "\n\n"
	}
	t.Body, t.Lead = lead+body, len(lead)
	for i := range t.Headings {
		t.Headings[i].Offset += len(lead)
	}
}

// markdownHeadings returns the ATX and setext headings of body.
func markdownHeadings(ctx context.Context, body string) []document.Heading {
	var t plain.Text
	fence := ""             // of the current code block
	prev, prevOff := "", -1 // paragraph line above, for setext
	for start, line := range plain.Lines(ctx, body) {
		if f := codeFence(line); fence != "" || f != "" {
			switch {
			case fence == "":
				fence = f
			case closesFence(line, fence):
				fence = ""
			}
			prevOff = -1
			continue
		}
		if level, text := atxHeading(line); level > 0 {
			t.Mark(start, level, plainInline(text))
			prevOff = -1
			continue
		}
		if level := setextLevel(line); level > 0 && prevOff >= 0 {
			t.Mark(prevOff, level, plainInline(prev))
			prevOff = -1
			continue
		}
		if isParagraphLine(line) {
			prev, prevOff = line, start
		} else {
			prevOff = -1
		}
	}
	return t.Headings
}

// indent returns the leading blanks of a line and the rest. Four or more blanks
// mean indented code.
func indent(line string) (int, string) {
	rest := strings.TrimLeft(line, " ")
	return len(line) - len(rest), rest
}

// codeFence returns the run of ` or ~ that opens a code block, or "" if there
// is none.
func codeFence(line string) string {
	n, s := indent(line)
	if n > 3 || s == "" || s[0] != '`' && s[0] != '~' {
		return ""
	}
	run := len(s) - len(strings.TrimLeft(s, s[:1]))
	if run < 3 || s[0] == '`' && strings.Contains(s[run:], "`") {
		return ""
	}
	return s[:run]
}

func closesFence(line, fence string) bool {
	n, s := indent(strings.TrimRight(line, " \t"))
	return n <= 3 && len(s) >= len(fence) && strings.Trim(s, fence[:1]) == ""
}

// atxHeading returns the level and the raw text of a line such as "## Title ##".
func atxHeading(line string) (int, string) {
	n, s := indent(line)
	level := len(s) - len(strings.TrimLeft(s, "#"))
	if n > 3 || level == 0 || level > 6 {
		return 0, ""
	}
	s = s[level:]
	if s != "" && s[0] != ' ' && s[0] != '\t' {
		return 0, ""
	}
	s = strings.TrimSpace(s)
	if t := strings.TrimRight(s, "#"); t == "" || strings.HasSuffix(t, " ") || strings.HasSuffix(t, "\t") {
		s = strings.TrimSpace(t)
	}
	return level, s
}

// setextLevel returns 1 for a line of = and 2 for one of -, otherwise 0.
func setextLevel(line string) int {
	n, s := indent(strings.TrimRight(line, " \t"))
	switch {
	case n > 3 || s == "":
		return 0
	case strings.Trim(s, "=") == "":
		return 1
	case strings.Trim(s, "-") == "":
		return 2
	}
	return 0
}

// isParagraphLine reports whether the line can be the text of a setext heading.
func isParagraphLine(line string) bool {
	n, s := indent(line)
	if n > 3 || strings.TrimSpace(s) == "" || s[0] == '\t' || s[0] == '>' || s[0] == '|' || s[0] == '<' {
		return false
	}
	return !(len(s) > 1 && strings.ContainsRune("-*+", rune(s[0])) && s[1] == ' ')
}

var (
	markdownAttributes = regexp.MustCompile(`[ \t]*\{[#.:][^{}]*\}[ \t]*$`)
	markdownTag        = regexp.MustCompile(`</?[A-Za-z][^<>]*>`)
)

// plainInline removes the markup inside a heading: links, emphasis, code marks,
// tags, attribute blocks and escapes.
func plainInline(s string) string {
	s = s[:min(len(s), 4096)] // longer text is cut later anyway
	s = replace(markdownAttributes, s, "", "}")
	s = withoutLinks(s)
	s = replace(markdownTag, s, "", "<")
	var b strings.Builder
	inCode := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '`':
			inCode = !inCode
		case inCode:
			b.WriteByte(c)
		case c == '\\' && i+1 < len(s) && strings.IndexByte("\\`*_{}[]<>()#+-.!|~", s[i+1]) >= 0:
			i++
			b.WriteByte(s[i])
		case c == '*' && !loneMark(s, i), c == '_' && !insideWord(s, i) && !loneMark(s, i):
		default:
			b.WriteByte(c)
		}
	}
	return plain.OneLine(strings.ToValidUTF8(b.String(), ""))
}

// withoutLinks replaces links and pictures by their text.
func withoutLinks(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '[')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		text := enclosed(s[i:], "[]", 300)
		target := 0
		if rest := s[i+text:]; text > 0 && rest != "" {
			switch rest[0] {
			case '(':
				target = enclosed(rest, "()", 500)
			case '[':
				target = enclosed(rest, "[]", 100)
			}
		}
		if target == 0 {
			b.WriteString(s[:i+1])
			s = s[i+1:]
			continue
		}
		b.WriteString(strings.TrimSuffix(s[:i], "!"))
		b.WriteString(s[i+1 : i+text-1])
		s = s[i+text+target:]
	}
}

// enclosed returns the length of the brackets at the start of s with their
// content, which has at most max characters and neither of the brackets. It
// returns 0 if there are none. The search ends at the next bracket, so its time
// does not depend on the number of brackets.
func enclosed(s, brackets string, max int) int {
	i := strings.IndexAny(s[1:], brackets)
	if i < 0 || s[1+i] != brackets[1] || utf8.RuneCountInString(s[1:1+i]) > max {
		return 0
	}
	return i + 2
}

// loneMark reports whether the mark at i stands between blanks, as in "a * b".
func loneMark(s string, i int) bool {
	return (i == 0 || s[i-1] == ' ') && (i+1 == len(s) || s[i+1] == ' ')
}

// insideWord reports whether the underscores at i have word characters on both
// sides, as in snake_case.
func insideWord(s string, i int) bool {
	word := func(c byte) bool {
		return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
	}
	l, r := i-1, i+1
	for ; l > 0 && i-l < 4 && s[l] == '_'; l-- {
	}
	for ; r < len(s) && r-i < 4 && s[r] == '_'; r++ {
	}
	return l >= 0 && r < len(s) && word(s[l]) && word(s[r])
}
