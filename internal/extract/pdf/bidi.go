package pdf

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// isRTL reports whether a character is written from right to left. Digits are
// not.
func isRTL(r rune) bool {
	return !unicode.IsDigit(r) && (r >= 0x590 && r <= 0x8ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff)
}

// maxSorted is the maximum number of glyphs on one baseline that are sorted. No
// page is wide enough for more.
const maxSorted = 1 << 14

// hasRTL reports whether any of the glyphs is written from right to left.
func hasRTL(glyphs []glyph) bool {
	return slices.ContainsFunc(glyphs, func(g glyph) bool { return strings.IndexFunc(g.text, isRTL) >= 0 })
}

// sortRTL sorts the glyphs of a page on baselines with right-to-left text by
// their positions, because programs write such text in either direction.
func sortRTL(glyphs []glyph) {
	if !hasRTL(glyphs) {
		return
	}
	for i := 0; i < len(glyphs); {
		j := i + 1
		for j < len(glyphs) && glyphs[j].turn == glyphs[i].turn &&
			math.Abs(glyphs[j].y-glyphs[i].y) < 0.3*glyphs[i].size {
			j++
		}
		if run := glyphs[i:j]; len(run) <= maxSorted && hasRTL(run) {
			slices.SortStableFunc(run, func(a, b glyph) int { return cmp.Compare(a.x, b.x) })
		}
		i = j
	}
}

// visual returns the text of a glyph in visual order. It differs for a ligature of
// characters that are written from right to left.
func visual(s string) string {
	if len(s) <= 2 || len(s) > maxLigature || strings.IndexFunc(s, isRTL) < 0 {
		return s
	}
	rs := []rune(norm.NFKC.String(s))
	slices.Reverse(rs)
	return string(rs)
}

// maxLigature is the maximum length of the text of a ligature, in bytes. A longer
// text is that of a mark, which may have text in both directions.
const maxLigature = 16

// mirrored are the characters whose shape depends on the direction.
var mirrored = map[rune]rune{
	'(': ')', ')': '(', '[': ']', ']': '[', '{': '}', '}': '{', '<': '>', '>': '<', '«': '»', '»': '«',
}

// logical converts a line from visual order to reading order, a small inverse
// of the Unicode bidirectional algorithm.
func logical(s string) string {
	if strings.IndexFunc(s, isRTL) < 0 {
		return s
	}
	rs := []rune(norm.NFKC.String(s)) // replaces presentation forms by letters
	rtl, ltr := 0, 0
	for _, r := range rs {
		switch {
		case isRTL(r):
			rtl++
		case unicode.IsLetter(r):
			ltr++
		}
	}
	if rtl < ltr { // a few words inside of left-to-right text
		reverseRuns(rs, isRTL)
		return string(rs)
	}
	slices.Reverse(rs)
	for i, r := range rs {
		if m, ok := mirrored[r]; ok {
			rs[i] = m
		}
	}
	reverseRuns(rs, func(r rune) bool { return !isRTL(r) && (unicode.IsLetter(r) || unicode.IsDigit(r)) })
	return string(rs)
}

// reverseRuns reverses the runs that begin and end with a character accepted by
// in and contain no letter of the other direction.
func reverseRuns(rs []rune, in func(rune) bool) {
	for i := 0; i < len(rs); i++ {
		if !in(rs[i]) {
			continue
		}
		end := i + 1
		for j := i + 1; j < len(rs); j++ {
			if in(rs[j]) {
				end = j + 1
			} else if unicode.IsLetter(rs[j]) || unicode.IsMark(rs[j]) {
				break
			}
		}
		slices.Reverse(rs[i:end])
		i = end - 1
	}
}
