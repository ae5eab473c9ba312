package extract

import (
	"context"
	"strings"
	"unicode/utf8"
)

// clean prepares a decoded text for storing: lines end with \n, terminal colour
// sequences and control characters are removed, and a form feed becomes a
// newline. The result is valid UTF-8 if s is.
func clean(ctx context.Context, s string) string {
	dirty := false
	for _, piece := range pieces(ctx, s) {
		if dirty = strings.IndexFunc(piece, cleaned) >= 0; dirty {
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
			if next = i + pieceLen; ctx.Err() != nil {
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
			case !isControl(r):
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

// printable returns s without terminal sequences, and without control
// characters except those of lines and pages. Everything else is unchanged.
func printable(ctx context.Context, s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i, next := 0, 0; i < len(s); {
		if i >= next {
			if next = i + pieceLen; ctx.Err() != nil {
				break
			}
		}
		if s[i] == 0x1b {
			i += escapeLen(s[i:])
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\r' || r == '\f' || r == '\u0085' || r == '\ufeff' || !isControl(r) {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// cleaned reports whether clean drops or replaces r.
func cleaned(r rune) bool { return isControl(r) || r == '\u2028' || r == '\u2029' }

// isControl reports whether r is removed from texts: a control character that
// is neither newline nor tab, or a byte order mark.
func isControl(r rune) bool {
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

// trimBlankLines removes blank lines at the start and all white space at the
// end. The first line keeps its indentation.
func trimBlankLines(s string) string {
	s = strings.TrimRight(s, " \t\n")
	for {
		line, rest, ok := strings.Cut(s, "\n")
		if !ok || strings.TrimLeft(line, " \t") != "" {
			return s
		}
		s = rest
	}
}
