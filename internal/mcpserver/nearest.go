package mcpserver

import (
	"slices"
	"strconv"
	"strings"
)

// nearest returns up to n of the known names that a caller may have meant, the
// likeliest first.
func nearest(name string, known []string, n int) []string {
	if len(name) > 200 {
		return nil // no name of ours is that long, and distance takes len squared
	}
	type candidate struct {
		name string
		cost int
	}
	var near []candidate
	asked := plainName(name)
	for _, k := range known {
		plain := plainName(k)
		cost := distance(asked, plain)
		if len(asked) > 2 && (strings.Contains(plain, asked) || strings.Contains(asked, plain)) {
			cost = min(cost, 1)
		}
		if cost <= max(2, len(plain)/3) {
			near = append(near, candidate{k, cost})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.cost - b.cost })
	var names []string
	for _, c := range near[:min(n, len(near))] {
		names = append(names, c.name)
	}
	return names
}

// plainName drops what callers get wrong first: case and separators.
func plainName(s string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(s))
}

// distance is the Levenshtein distance of two byte strings.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// orList writes names as "a", "b" or "c".
func orList(names []string) string {
	var b strings.Builder
	for i, n := range names {
		switch {
		case i > 0 && i == len(names)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(quoted(n))
	}
	return b.String()
}

// quoted quotes a name that came from outside, cut to a length that fits into
// a sentence.
func quoted(name string) string {
	if r := []rune(name); len(r) > 80 {
		name = string(r[:80]) + "…"
	}
	return strconv.Quote(name)
}
