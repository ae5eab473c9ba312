package redact

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns s on one line, with control and invisible characters written
// as escapes and invalid bytes replaced, because terminals obey them.
func Escape(s string) string {
	clean := func(r rune) bool { return r == ' ' || unicode.IsGraphic(r) && r != utf8.RuneError }
	if strings.IndexFunc(s, func(r rune) bool { return !clean(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case clean(r), r == utf8.RuneError:
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteByte(' ')
		case r == '\r':
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Cut returns at most n bytes of s, whole characters, and an ellipsis where
// more followed.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
