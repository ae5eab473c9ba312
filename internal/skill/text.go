package skill

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

var (
	// lineEnds turns all that ends a line somewhere into a line feed.
	lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n",
		"\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

	angles = strings.NewReplacer("<", "‹", ">", "›")
)

// hidden reports whether a character is invisible or changes how its neighbours
// are shown: controls, bidirectional marks, tags and the like, in which text
// can be hidden from people that a model reads. The two joiners, which
// spelling needs, are not.
func hidden(r rune) bool {
	switch {
	case r == '\u200c' || r == '\u200d':
		return false
	case r < utf8.RuneSelf:
		return r < ' ' || r == 0x7f
	case r >= 0xe0100 && r <= 0xe01ef, r >= 0xfdd0 && r <= 0xfdef, r&0xfffe == 0xfffe:
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// cleanText returns foreign text without hidden characters, with line feeds
// only, without trailing blanks and double empty lines, cut to limit bytes.
func cleanText(s string, limit int) string {
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	s = strings.ToValidUTF8(s, "\ufffd")
	s = lineEnds.Replace(s)
	s = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && hidden(r) {
			return -1
		}
		return r
	}, s)
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if line == "" && (len(lines) == 0 || lines[len(lines)-1] == "") {
			continue
		}
		lines = append(lines, line)
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// cleanLine returns foreign text as one line of at most limit characters.
func cleanLine(s string, limit int) string {
	return cut(strings.Join(strings.Fields(cleanText(s, 8*limit)), " "), limit)
}

// plainLine is cleanLine for text that clients put into their own markup:
// angle brackets, which uploads to claude.ai are refused for, become quotation
// marks of the same shape.
func plainLine(s string, limit int) string {
	return cleanLine(angles.Replace(s), limit)
}

// cut shortens a line to limit characters, at the end of a word if there is one
// in its second half, and marks it with an ellipsis.
func cut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := []rune(s)
	end := limit - 1
	for i := end; i > limit/2; i-- {
		if unicode.IsSpace(runes[i]) {
			end = i
			break
		}
	}
	return strings.TrimRight(string(runes[:end]), " ,;:-–—(") + "…"
}

// quoteJSON returns s as a JSON string in which nothing is hidden.
func quoteJSON(s string) string { return escapeHidden(marshal(s), escapeWide) }

// quoteYAML returns s as a double-quoted YAML scalar in which nothing is hidden.
// It is a JSON string too unless s has hidden characters beyond U+FFFF, for
// which YAML knows no surrogates. It holds no "---", at which the official
// validator splits a SKILL.md wherever it stands.
func quoteYAML(s string) string {
	q := escapeHidden(marshal(s), func(r rune) string { return fmt.Sprintf(`\U%08x`, r) })
	for strings.Contains(q, "---") {
		q = strings.Replace(q, "---", `\u002d--`, 1)
	}
	return q
}

// marshal returns s as a JSON string.
func marshal(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be written
	return strings.TrimSuffix(b.String(), "\n")
}

// showHidden escapes the hidden characters of a JSON text.
func showHidden(text []byte) []byte { return []byte(escapeHidden(string(text), escapeWide)) }

// escapeHidden escapes the hidden characters of a JSON text, those beyond U+FFFF
// by wide. They stand only within strings there, except for white space, so its
// value stays the same.
func escapeHidden(text string, wide func(rune) string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\ufffd") {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString(wide(r))
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// escapeWide is JSON's escape of a character beyond U+FFFF.
func escapeWide(r rune) string {
	high, low := utf16.EncodeRune(r)
	return fmt.Sprintf(`\u%04x\u%04x`, high, low)
}

// blockquote returns text as a Markdown quotation, out of which neither a
// heading nor a fence can reach.
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

// quoteShell returns a word for a POSIX shell that means s.
func quoteShell(s string) string {
	safe := strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,=-") == ""
	if safe && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
