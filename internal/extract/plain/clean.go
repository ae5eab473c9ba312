package plain

import (
	"context"
	"strings"
	"unicode/utf8"
)

// Clean prepares a decoded text for storing: lines end with \n, terminal colour
// sequences and control characters are removed, and a form feed becomes a
// newline. The result is valid UTF-8 if s is.
func Clean(ctx context.Context, s string) string {
	dirty := false
	for _, piece := range Pieces(ctx, s) {
		if dirty = strings.IndexFunc(piece, Cleaned) >= 0; dirty {
			break
		}
	}
	if !dirty {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i, next := 0, 0; i < len(s); {
		if i >= next {
			if next = i + CheckLen; ctx.Err() != nil {
				break
			}
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == '\u0085' || r == '\u2028':
				b.WriteByte('\n')
			case r == '\u2029':
				b.WriteString("\n\n")
			case !IsControl(r):
				b.WriteRune(r)
			}
			i += n
			continue
		}
		switch {
		case c == '\r':
			if i+1 >= len(s) || s[i+1] != '\n' {
				b.WriteByte('\n')
			}
		case c == '\f':
			b.WriteByte('\n')
		case c == 0x1b:
			i += escapeLen(s[i:]) - 1
		case c >= ' ' && c != 0x7f || c == '\n' || c == '\t':
			b.WriteByte(c)
		}
		i++
	}
	return b.String()
}

// Printable returns s without terminal sequences, and without control
// characters except those of lines and pages. Everything else is unchanged.
func Printable(ctx context.Context, s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i, next := 0, 0; i < len(s); {
		if i >= next {
			if next = i + CheckLen; ctx.Err() != nil {
				break
			}
		}
		if s[i] == 0x1b {
			i += escapeLen(s[i:])
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\r' || r == '\f' || r == '\u0085' || r == '\ufeff' || !IsControl(r) {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// Cleaned reports whether Clean drops or replaces r.
func Cleaned(r rune) bool { return IsControl(r) || r == '\u2028' || r == '\u2029' }

// IsControl reports whether r is removed from texts: a control character that
// is neither newline nor tab, or a byte order mark.
func IsControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == '\ufeff'
}

// escapeLen returns the length of the terminal sequence at the start of s,
// which begins with ESC: that of a CSI sequence (ECMA-48 5.4), otherwise 1.
func escapeLen(s string) int {
	if len(s) < 3 || s[1] != '[' {
		return 1
	}
	for i := 2; i < len(s) && i < 32; i++ {
		switch c := s[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x3f:
			return 1
		}
	}
	return 1
}

// TrimBlankLines removes blank lines at the start and all white space at the
// end. The first line keeps its indentation.
func TrimBlankLines(s string) string {
	s = strings.TrimRight(s, " \t\n")
	for {
		line, rest, ok := strings.Cut(s, "\n")
		if !ok || strings.TrimLeft(line, " \t") != "" {
			return s
		}
		s = rest
	}
}
