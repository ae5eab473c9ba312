package query

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A Glob is the pattern of a [Wildcard].
type Glob []rune // literal characters and wildcards

// The wildcards of a Glob. Both are outside of Unicode.
const (
	anyRune  rune = -1
	anyRunes rune = -2
)

// ParseGlob parses a pattern. The error is that of [CheckGlob].
func ParseGlob(pattern string) (Glob, error) {
	if err := CheckGlob(pattern); err != nil {
		return nil, err
	}
	var g Glob
	escaped := false
	for _, r := range pattern {
		switch {
		case r == '\\' && !escaped:
			escaped = true
			continue
		case r == '*' && !escaped:
			r = anyRunes
		case r == '?' && !escaped:
			r = anyRune
		}
		g = append(g, r)
		escaped = false
	}
	return g, nil
}

// Prefix returns the literal beginning of the pattern.
func (g Glob) Prefix() string {
	n := slices.IndexFunc(g, func(r rune) bool { return r < 0 })
	if n < 0 {
		n = len(g)
	}
	return string(g[:n])
}

// Match reports whether a word matches the pattern.
func (g Glob) Match(word string) bool {
	i, star, back := 0, -1, "" // back is the rest of word that the last star may still take from
	for word != "" {
		r, size := utf8.DecodeRuneInString(word)
		switch {
		case i < len(g) && g[i] == anyRunes:
			star, back = i, word
			i++
		case i < len(g) && (g[i] == anyRune || g[i] == r):
			i, word = i+1, word[size:]
		case star >= 0:
			_, size := utf8.DecodeRuneInString(back)
			back = back[size:]
			i, word = star+1, back
		default:
			return false
		}
	}
	for i < len(g) && g[i] == anyRunes {
		i++
	}
	return i == len(g)
}

// CheckGlob returns an error of kind Invalid for a wildcard pattern that may take
// too long to be matched, because it is matched by backtracking.
func CheckGlob(pattern string) error {
	const maxSize, maxStars = 256, 8
	if len(pattern) > maxSize || strings.Count(pattern, "*") > maxStars {
		return fmt.Errorf("a wildcard pattern may have at most %d bytes and %d stars: %w", maxSize, maxStars,
			errkind.Invalid)
	}
	return nil
}

// Between returns a function that reports whether a value is in a range. bound
// parses one end of the range: from is the least value that the end stands for
// and beyond the least value above those, nil if the end stands for a single
// value. An end that stands for several values, such as a day, is in the range as
// a whole or not at all.
func Between[T cmp.Ordered](r Range, bound func(string) (from T, beyond *T, err error)) (func(T) bool, error) {
	above, below := func(T) bool { return true }, func(T) bool { return true }
	if r.Low != "" && r.Low != "*" {
		from, beyond, err := bound(r.Low)
		if err != nil {
			return nil, err
		}
		switch {
		case r.LowExcl && beyond != nil:
			above = func(v T) bool { return v >= *beyond }
		case r.LowExcl:
			above = func(v T) bool { return v > from }
		default:
			above = func(v T) bool { return v >= from }
		}
	}
	if r.High != "" && r.High != "*" {
		from, beyond, err := bound(r.High)
		if err != nil {
			return nil, err
		}
		switch {
		case r.HighExcl:
			below = func(v T) bool { return v < from }
		case beyond != nil:
			below = func(v T) bool { return v < *beyond }
		default:
			below = func(v T) bool { return v <= from }
		}
	}
	return func(v T) bool { return above(v) && below(v) }, nil
}
