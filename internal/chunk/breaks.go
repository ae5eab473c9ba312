package chunk

import (
	"strings"
	"unicode/utf8"
)

// Each function in this file returns the length of the longest piece of s that
// ends at a suitable place in (lo, hi], or 0 if there is none. White space at the
// end belongs to the piece. 0 <= lo <= hi <= len(s).

// afterParagraph ends a piece after an empty line, which may contain blanks.
func afterParagraph(s string, lo, hi int) int {
	for n := hi; n > lo; {
		i := strings.LastIndexByte(s[lo:n], '\n') // end of the empty line
		if i < 0 {
			return 0
		}
		i += lo
		before := strings.TrimRight(s[:i], " \t\r")
		if strings.HasSuffix(before, "\n") {
			return i + 1
		}
		n = i
	}
	return 0
}

// afterLine ends a piece after a newline.
func afterLine(s string, lo, hi int) int {
	if i := strings.LastIndexByte(s[lo:hi], '\n'); i >= 0 {
		return lo + i + 1
	}
	return 0
}

// afterSentence ends a piece after a full stop, question mark or exclamation
// mark: an ASCII one and the blank that follows it, or a full-width one.
func afterSentence(s string, lo, hi int) int {
	for n := hi; n > lo; {
		i := strings.LastIndexAny(s[lo:n], " 。！？．")
		if i < 0 {
			return 0
		}
		i += lo
		if s[i] != ' ' {
			if end := i + 3; end <= hi { // all four take three bytes
				return end
			}
		} else if i > 0 && strings.IndexByte(".!?", s[i-1]) >= 0 {
			return i + 1
		}
		n = i
	}
	return 0
}

// afterBlank ends a piece after a blank or a tab.
func afterBlank(s string, lo, hi int) int {
	if i := strings.LastIndexAny(s[lo:hi], " \t"); i >= 0 {
		return lo + i + 1
	}
	return 0
}

// runeBorder returns n, or the start of the rune that s[:n] cuts, at most three
// bytes before n.
func runeBorder(s string, n int) int {
	for i := n - 1; i >= 0 && i > n-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			if utf8.FullRuneInString(s[i:n]) {
				return n
			}
			return i
		}
	}
	return n
}
