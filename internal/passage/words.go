package passage

import (
	"iter"
	"maps"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A Condition is a condition of a search on words.
type Condition struct {
	Terms    []string                  // texts of tokens
	Prefixes []string                  // what other tokens begin with
	Match    func(surface string) bool // whether a word as written is meant; nil if only tokens are
	Weight   float32                   // in the ranking
}

// Add adds the tokens of a word or phrase to a condition. If prefix is true, the
// last one stands for all tokens that begin with it.
func (c *Condition) Add(tokens []string, prefix bool) {
	for i, t := range tokens {
		if prefix && i == len(tokens)-1 && !analysis.Lone(t) {
			c.Prefixes = append(c.Prefixes, t)
		} else {
			c.Terms = append(c.Terms, t)
		}
	}
}

// Full returns the score by words of a chunk of average length that meets each
// condition once.
func Full(conditions []Condition) float64 {
	full := 0.0
	for _, c := range conditions {
		full += float64(c.Weight)
	}
	return full
}

// Wanted returns what digests of texts should have.
func Wanted(conditions []Condition) *analysis.Wanted {
	var terms, prefixes []string
	var match []func(word string) bool
	for _, c := range conditions {
		terms, prefixes = append(terms, c.Terms...), append(prefixes, c.Prefixes...)
		if c.Match != nil {
			match = append(match, c.Match)
		}
	}
	return analysis.NewWanted(terms, prefixes, match...)
}

// Digest returns a digest of a text of at most size runes; see [analysis.Digest].
func Digest(text string, l analysis.Language, w *analysis.Wanted, size int) search.Excerpt {
	digest, spans := analysis.Digest(strings.ToValidUTF8(text, ""), l, w, size)
	x := search.Excerpt{Text: digest}
	x.Matches = spansOf(spans)
	return x
}

// spansOf returns spans in the vocabulary of package search.
func spansOf(spans []analysis.Span) []search.Span {
	var out []search.Span
	for _, s := range spans {
		out = append(out, search.Span(s))
	}
	return out
}

// words is what the words of a search count in an excerpt.
type words struct {
	tokens  map[string]float32
	matches []Condition // that have a Match
	all     float64     // the weight of all conditions
	signs   bool        // some of tokens are of analysis.Signs
	wanted  *analysis.Wanted
}

func newWords(conditions []Condition) *words {
	w := &words{tokens: map[string]float32{}, wanted: Wanted(conditions), all: Full(conditions)}
	for _, c := range conditions {
		for _, t := range c.Terms {
			w.tokens[t] = max(w.tokens[t], c.Weight)
			w.signs = w.signs || analysis.IsSign(t)
		}
		if c.Match != nil {
			w.matches = append(w.matches, c)
		}
	}
	return w
}

// tokensOf returns the tokens of a text, without most of those of weight 0.
func (w *words) tokensOf(text string, lang analysis.Language) iter.Seq[analysis.Token] {
	if len(w.matches) > 0 {
		return analysis.Tokens(text, lang)
	}
	return analysis.TokensLike(text, lang, maps.Keys(w.tokens))
}

// weight returns the weight of a token, 0 if the search does not look for it.
func (w *words) weight(t analysis.Token) float32 {
	weight := w.tokens[t.Text]
	for _, c := range w.matches {
		if c.Weight > weight && c.Match(t.Surface) {
			weight = c.Weight
		}
	}
	return weight
}
