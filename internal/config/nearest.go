package config

import "strings"

// Nearest returns the element of known that word is most likely a slip for,
// without regard to case, or "" if none is near.
func Nearest(word string, known []string) string {
	best, bestDistance := "", 0
	for _, k := range known {
		d := distance(strings.ToLower(word), strings.ToLower(k))
		if d <= 1+len(k)/4 && d < len(k) && (best == "" || d < bestDistance) {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance returns the number of bytes to insert, delete or replace, and of
// neighbours to swap, to turn a into b (optimal string alignment).
func distance(a, b string) int {
	const most = 64
	if len(a) > most || len(b) > most {
		return most
	}
	var rows [most + 1][most + 1]int
	for i := range len(a) + 1 {
		rows[i][0] = i
	}
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
