package index

import (
	"slices"
	"strings"

	"knowhow/internal/analysis"
)

// A pattern is a sequence of tokens to find in a text.
type pattern struct {
	tokens []string
	prefix bool // the last token need only be a prefix of the text's token
	slop   int  // how many other tokens may lie between them
}

// A leaf is one condition on words. A chunk meets it if it matches any of the
// patterns.
type leaf struct {
	column   string // "title", "text" or "" for both
	patterns []pattern
	weight   float64 // for ranking; 1 unless the query boosts it
	posting  posting // filled in when the leaf is evaluated
}

// Limits on how many patterns one full-text expression joins. FTS5's bm25
// evaluates each pattern for each chunk.
const (
	maxAlternatives    = 48
	rankedAlternatives = 12
)

// termPattern returns the pattern of a word or phrase. ok is false if the text
// has no tokens.
func termPattern(text string, slop int) (p pattern, ok bool) {
	p.tokens = analysis.Terms(text)
	if len(p.tokens) == 0 {
		return p, false
	}
	p.slop = slop
	p.prefix = analysis.Lone(p.tokens[len(p.tokens)-1])
	return p, true
}

// prefixPattern is the pattern of words that begin with text.
func prefixPattern(text string) (p pattern, ok bool) {
	toks := slices.Collect(analysis.Tokens(text))
	if len(toks) == 0 {
		return p, false
	}
	last := toks[len(toks)-1]
	if last.CJK {
		return termPattern(text, 0)
	}
	for _, t := range toks[:len(toks)-1] {
		p.tokens = append(p.tokens, t.Text)
	}
	// A prefix is not stemmed.
	p.tokens, p.prefix = append(p.tokens, last.Surface), true
	return p, true
}

// quote returns text as a string of the FTS5 query language.
func quote(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }

// expression returns the pattern in the FTS5 query language.
func (p pattern) expression() string {
	if p.slop > 0 && len(p.tokens) > 1 && !p.prefix {
		quoted := make([]string, len(p.tokens))
		for i, t := range p.tokens {
			quoted[i] = quote(t)
		}
		return "NEAR(" + strings.Join(quoted, " ") + ", " + itoa(int64(p.slop)) + ")"
	}
	s := quote(strings.Join(p.tokens, " "))
	if p.prefix {
		s += " *"
	}
	return s
}

// columns returns the column filter of the leaf.
func (l *leaf) columns() string {
	if l.column == "" {
		return "{title text} : "
	}
	return l.column + " : "
}

// expressions returns the leaf as expressions of the FTS5 query language, as
// many as its length requires. A chunk meets the leaf if it matches any of
// them.
func (l *leaf) expressions() []string {
	var out []string
	for some := range slices.Chunk(l.patterns, maxAlternatives) {
		out = append(out, l.expression(some))
	}
	return out
}

// forRank returns the expression that chunks are ranked by: the first patterns.
func (l *leaf) forRank() string {
	return l.expression(l.patterns[:min(len(l.patterns), rankedAlternatives)])
}

// expression joins some of the leaf's patterns.
func (l *leaf) expression(some []pattern) string {
	parts := make([]string, len(some))
	for i, p := range some {
		parts[i] = p.expression()
	}
	return l.columns() + "(" + strings.Join(parts, " OR ") + ")"
}

// count returns how often tokens match one of the leaf's patterns, and the
// index of the first match, or -1 if there is none.
func (l *leaf) count(tokens []string) (n, first int) {
	first = -1
	for i := range tokens {
		for _, p := range l.patterns {
			if p.at(tokens[i:]) {
				n++
				if first < 0 {
					first = i
				}
				break
			}
		}
	}
	return n, first
}

// at reports whether tokens begin with the pattern.
func (p pattern) at(tokens []string) bool {
	if tokens[0] != p.tokens[0] && !(p.prefix && len(p.tokens) == 1 && strings.HasPrefix(tokens[0], p.tokens[0])) {
		return false
	}
	from := 1
	for i, want := range p.tokens[1:] {
		last := p.prefix && i == len(p.tokens)-2
		j := from
		for ; j < len(tokens) && j <= from+p.slop; j++ {
			if tokens[j] == want || last && strings.HasPrefix(tokens[j], want) {
				break
			}
		}
		if j == len(tokens) || j > from+p.slop {
			return false
		}
		from = j + 1
	}
	return true
}

// mark adds to want the tokens of text that match the leaf, for
// [analysis.Digest].
func (l *leaf) mark(want map[string]bool, text string) {
	for _, p := range l.patterns {
		for i, t := range p.tokens {
			if !p.prefix || i < len(p.tokens)-1 || analysis.Lone(t) {
				want[t] = true
				continue
			}
			for tok := range analysis.Tokens(text) {
				if strings.HasPrefix(tok.Text, t) {
					want[tok.Text] = true
				}
			}
		}
	}
}
