package passage

import (
	"iter"
	"maps"

	"knowhow/internal/analysis"
)

// Words are what a search looks for in texts, with weights. The zero Words is
// ready for use. It is not safe for concurrent use.
type Words struct {
	tokens  map[string]float32
	matches []match
	signs   bool // some of tokens are of analysis.Signs
}

// A match is words as they are written.
type match struct {
	weight float32
	word   func(surface string) bool
}

// AddToken adds a token with its weight. If it is added twice, the greater weight
// counts.
func (w *Words) AddToken(token string, weight float32) {
	if w.tokens == nil {
		w.tokens = map[string]float32{}
	}
	w.tokens[token] = max(w.tokens[token], weight)
	w.signs = w.signs || analysis.IsSign(token)
}

// AddMatch adds the words for whose [analysis.Token.Surface] a function returns
// true.
func (w *Words) AddMatch(word func(surface string) bool, weight float32) {
	w.matches = append(w.matches, match{weight, word})
}

// tokensOf returns the tokens of a text, without most of those of weight 0.
func (w *Words) tokensOf(text string, lang analysis.Language) iter.Seq[analysis.Token] {
	if len(w.matches) > 0 {
		return analysis.Tokens(text, lang)
	}
	return analysis.TokensLike(text, lang, maps.Keys(w.tokens))
}

// weight returns the weight of a token, 0 if the search does not look for it.
func (w *Words) weight(t analysis.Token) float32 {
	weight := w.tokens[t.Text]
	for _, m := range w.matches {
		if m.weight > weight && m.word(t.Surface) {
			weight = m.weight
		}
	}
	return weight
}
