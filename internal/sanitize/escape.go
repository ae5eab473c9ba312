package sanitize

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Escape returns s on one line, with everything that could control a terminal
// or forge a line of a log written as an escape of Go: control characters,
// invisible characters and white space other than the blank. Invalid UTF-8
// becomes U+FFFD.
func Escape(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return Invisible(r) || !unicode.IsPrint(r) }

// QuoteJSON returns s as a JSON string (RFC 8259, section 7) in which invisible
// characters are escaped. Invalid UTF-8 becomes U+FFFD.
func QuoteJSON(s string) string {
	return quote(s, func(r rune) string {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	})
}

// QuoteYAML returns s as a double-quoted YAML scalar (YAML 1.2, section 5.7) in
// which invisible characters are escaped. It is a JSON string too unless s has
// invisible characters beyond U+FFFF, for which YAML has no surrogates. It
// contains no "---", at which some readers of front matter split a file
// wherever it stands. Invalid UTF-8 becomes U+FFFD.
func QuoteYAML(s string) string {
	q := quote(s, func(r rune) string { return fmt.Sprintf(`\U%08x`, r) })
	for strings.Contains(q, "---") {
		q = strings.Replace(q, "---", `\u002d--`, 1)
	}
	return q
}

// quote returns s in double quotes with the escapes of JSON; wide escapes an
// invisible character beyond U+FFFF.
func quote(s string, wide func(rune) string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case Invisible(r) && r > 0xffff:
			b.WriteString(wide(r))
		case Invisible(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// ShowJSON returns a JSON text with its invisible characters escaped. They occur
// only within strings there, except for white space, which stays, so the value
// is the same. Invalid UTF-8 becomes U+FFFD.
func ShowJSON(json []byte) []byte {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(string(json), "\ufffd") {
		if r == '\n' || r == '\r' || r == '\t' || !Invisible(r) {
			b.WriteRune(r)
			continue
		}
		escaped := QuoteJSON(string(r))
		b.WriteString(escaped[1 : len(escaped)-1])
	}
	return []byte(b.String())
}
