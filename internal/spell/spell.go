// Package spell helps callers who got a name wrong: it finds the names that
// they may have meant, and writes names that came from outside so that they fit
// into a sentence. The MCP door uses it for tools and arguments, the command
// line for commands and flags, configuration for keys.
package spell

import (
	"slices"
	"strconv"
	"strings"
)

// maxName is the length in bytes up to which names are compared, because it
// takes time in the product of their lengths. No name of ours is longer.
const maxName = 128

// maxShown is what Cut leaves of a text, in characters.
const maxShown = 80

// Near returns up to n of the known names that a caller who wrote name may have
// meant, the likeliest first; names that are equally likely keep their order.
// Case and the separators _ - . and space make no difference. A name is near if
// few characters have to be inserted, deleted, replaced or swapped with their
// neighbour, fewer in short names, or if one of the two holds the other. A name
// of more than 128 bytes is near nothing.
func Near(name string, known []string, n int) []string {
	type candidate struct {
		name string
		cost int
	}
	var near []candidate
	asked := plain(name)
	for _, k := range known {
		if len(name) > maxName || len(k) > maxName {
			continue
		}
		if cost, ok := slip(asked, plain(k)); ok {
			near = append(near, candidate{k, cost})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.cost - b.cost })
	var names []string
	for _, c := range near[:max(0, min(n, len(near)))] {
		names = append(names, c.name)
	}
	return names
}

// slip says how bad a slip it is to write asked for known, and whether it may
// be one.
func slip(asked, known string) (cost int, ok bool) {
	cost = distance(asked, known)
	// Less than the whole name: otherwise every letter is near every other.
	ok = cost <= 1+len(known)/4 && cost < len(known)
	if min(len(asked), len(known)) > 2 && (strings.Contains(known, asked) || strings.Contains(asked, known)) {
		cost, ok = min(cost, 2), true
	}
	return cost, ok
}

// plain drops what callers get wrong first: case and separators.
func plain(s string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(s))
}

// distance returns the number of bytes to insert, delete or replace, and of
// neighbours to swap, to turn a into b (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// List writes names as "a", "b" or "c". No names give "".
func List(names []string) string {
	var b strings.Builder
	for i, n := range names {
		switch {
		case i > 0 && i == len(names)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(Quote(n))
	}
	return b.String()
}

// Quote quotes a name that came from outside, as [strconv.Quote] does, after
// [Cut].
func Quote(name string) string { return strconv.Quote(Cut(name)) }

// Cut returns the first 80 characters of a text that came from outside, with an
// ellipsis where more followed.
func Cut(text string) string {
	n := 0
	for i := range text {
		if n == maxShown {
			return text[:i] + "…"
		}
		n++
	}
	return text
}
