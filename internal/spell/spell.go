// Package spell supports messages about unknown names: it finds the known names
// that a caller may have meant, and quotes and cuts names from outside for use
// in a sentence. It is used for MCP tools and arguments, for commands and
// flags, and for configuration keys.
package spell

import (
	"slices"
	"strconv"
	"strings"
)

// maxName is the maximum length in bytes of names that are compared, because
// the time is proportional to the product of their lengths. No name of this
// program is longer.
const maxName = 128

// maxShown is the maximum length of a text returned by Cut, in characters.
const maxShown = 80

// Near returns up to n of the known names that a caller who wrote name may have
// meant, the likeliest first. Names that are equally likely stay in their
// order. Case and the separators _ - . and space are ignored. A name is near if
// few characters must be inserted, deleted, replaced or swapped with their
// neighbour (fewer in short names), or if one of the two names contains the
// other. No name is near one of more than 128 bytes.
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

// slip returns the cost of having written asked for known. ok is false if the
// names are too different.
func slip(asked, known string) (cost int, ok bool) {
	cost = distance(asked, known)
	// The cost must be less than the length of the name. Otherwise all
	// names of one letter would be near each other.
	ok = cost <= 1+len(known)/4 && cost < len(known)
	if min(len(asked), len(known)) > 2 && (strings.Contains(known, asked) || strings.Contains(asked, known)) {
		cost, ok = min(cost, 2), true
	}
	return cost, ok
}

// plain returns s without separators and in lower case.
func plain(s string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(s))
}

// distance returns the number of insertions, deletions and replacements of
// bytes and swaps of neighbours that turn a into b (optimal string alignment).
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

// List returns names in the form "a", "b" or "c". Without names it returns "".
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

// Quote cuts a name from outside with [Cut] and quotes it with [strconv.Quote].
func Quote(name string) string { return strconv.Quote(Cut(name)) }

// Cut returns the first 80 characters of a text from outside, followed by an
// ellipsis if the text is longer.
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
