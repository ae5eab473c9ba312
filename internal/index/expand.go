package index

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"unicode/utf8"

	"knowhow/internal/analysis"
)

// Limits on how many words of the index a pattern is expanded to.
const (
	maxPrefixTerms = 2000
	maxGlobTerms   = 500
	maxFuzzyTerms  = 50
)

// expandPrefix adds the words that begin with text although their tokens do
// not, because stemming removed or changed the ending ("happy" is indexed as
// happi).
func (e *evaluator) expandPrefix(ctx context.Context, l *leaf, text string) error {
	if len(l.patterns) != 1 || len(l.patterns[0].tokens) != 1 {
		return nil
	}
	token, low := l.patterns[0].tokens[0], analysis.Lower(text)
	return collect(ctx, e.tx, func(rows *sql.Rows) error {
		var term string
		if err := rows.Scan(&term); err != nil {
			return err
		}
		if p, ok := termPattern(term, 0); ok && !strings.HasPrefix(p.tokens[0], token) {
			l.add(p, true)
		}
		return nil
	}, `SELECT DISTINCT term FROM terms WHERE term>=? AND term<? LIMIT ?`, low, low+lastRune, maxPrefixTerms)
}

// expandWildcard adds the words that match a pattern. If there are too many, it
// adds the most frequent ones.
func (e *evaluator) expandWildcard(ctx context.Context, l *leaf, pattern string) error {
	g, err := globOf(analysis.Lower(pattern))
	if err != nil {
		return err
	}
	low := g[:max(strings.IndexAny(g, "*?["), 0)]
	return collect(ctx, e.tx, func(rows *sql.Rows) error {
		var term string
		if err := rows.Scan(&term); err != nil {
			return err
		}
		l.add(termPattern(term, 0))
		return nil
	}, `SELECT term FROM terms WHERE term>=? AND term<? AND term GLOB ? GROUP BY term ORDER BY sum(df) DESC, term LIMIT ?`,
		low, low+lastRune, g, maxGlobTerms)
}

// expandFuzzy adds the words within a number of edits of text, the nearest
// first.
func (e *evaluator) expandFuzzy(ctx context.Context, l *leaf, text string, edits int) error {
	edits = min(max(edits, 0), 2)
	word := []rune(analysis.Lower(text))
	if edits == 0 || len(l.patterns) != 1 || len(l.patterns[0].tokens) != 1 || len(word) > 40 {
		return nil
	}
	type near struct {
		term     string
		distance int
		df       int64
	}
	var all []near
	err := collect(ctx, e.tx, func(rows *sql.Rows) error {
		var raw sql.RawBytes
		var df int64
		if err := rows.Scan(&raw, &df); err != nil {
			return err
		}
		if d := distance(word, raw, edits); d <= edits {
			all = append(all, near{string(raw), d, df})
		}
		return nil
	}, `SELECT term, sum(df) FROM terms WHERE length(term) BETWEEN ? AND ? GROUP BY term`, len(word)-edits, len(word)+edits)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.df, a.df), strings.Compare(a.term, b.term))
	})
	for _, n := range all[:min(len(all), maxFuzzyTerms)] {
		l.add(termPattern(n.term, 0))
	}
	return nil
}

// distance returns the number of letters to insert, delete, replace or swap
// with a neighbour to turn one word into the other, or limit+1 if there are
// more than limit.
func distance(a []rune, other []byte, limit int) int {
	var buf [48]rune
	b := buf[:0]
	for len(other) > 0 {
		r, n := utf8.DecodeRune(other)
		b, other = append(b, r), other[n:]
	}
	if len(b) > len(buf) || len(a) > len(buf) {
		return limit + 1
	}
	var rows [3][49]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		least := row[0]
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			d := min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			row[j+1] = d
			least = min(least, d)
		}
		if least > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
