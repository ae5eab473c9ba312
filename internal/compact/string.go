package compact

import "unicode/utf8"

const digits = "0123456789abcdef"

// AppendString appends s as a JSON string to b, to the letter as encoding/json
// writes it without the escaping for HTML. Bytes that are no UTF-8 become U+FFFD
// each.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0 // of what has not been written
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = appendEscape(append(b, s[start:i]...), c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(append(b, s[start:i]...), `\ufffd`...)
			start = i + size
		case r == '\u2028', r == '\u2029': // line ends in JavaScript
			b = append(append(b, s[start:i]...), `\u202`...)
			b = append(b, digits[r&0xf])
			start = i + size
		}
		i += size
	}
	return append(append(b, s[start:]...), '"')
}

// appendEscape appends a character of ASCII that cannot stand for itself.
func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, `\b`...)
	case '\f':
		return append(b, `\f`...)
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	}
	return append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xf])
}
