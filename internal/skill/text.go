package skill

import (
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

var angles = strings.NewReplacer("<", "‹", ">", "›")

// cleanText returns [sanitize.Text] of the first limit bytes of a foreign text.
func cleanText(s string, limit int) string {
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return sanitize.Text(s)
}

// cleanLine returns foreign text as one line of at most limit characters.
func cleanLine(s string, limit int) string {
	return sanitize.Cut(sanitize.Line(cleanText(s, 8*limit)), limit, 4*limit)
}

// plainLine is like cleanLine, for text that clients insert into their own
// markup: angle brackets, which uploads to claude.ai must not contain, become
// quotation marks of the same shape.
func plainLine(s string, limit int) string {
	return cleanLine(angles.Replace(s), limit)
}

// blockquote returns text as a Markdown quotation, which headings and fences in
// it cannot end.
func blockquote(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		if b.WriteByte('>'); line != "" {
			b.WriteString(" " + line)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// fence returns code in a Markdown fence that nothing in it can close.
func fence(language, code string) string {
	marks := strings.Repeat("`", max(3, backticks(code)+1))
	return marks + language + "\n" + strings.TrimSuffix(code, "\n") + "\n" + marks + "\n"
}

// codeSpan returns a foreign name as inline code.
func codeSpan(name string) string {
	name = cleanLine(name, 100)
	marks := strings.Repeat("`", backticks(name)+1)
	if name == "" || strings.HasPrefix(name, "`") || strings.HasSuffix(name, "`") {
		name = " " + name + " "
	}
	return marks + name + marks
}

// backticks returns the length of the longest run of backticks.
func backticks(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// QuoteShell quotes s as a word for a POSIX shell.
func QuoteShell(s string) string {
	safe := strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,=-") == ""
	if safe && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
