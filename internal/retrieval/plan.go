package retrieval

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/query"
)

// A Plan lists the conditions of a text that match and that count in the ranking.
type Plan struct {
	Tree query.Node // of an expression; nil for words and for everything

	// Words are the words that count, each once if some are enough. They are nil for
	// other texts. Without words, a text of words matches nothing.
	Words []Word

	// Some reports whether some of the words are enough. Then Pieces and Signs match,
	// too.
	Some bool

	Pieces []query.Node // parts of words that no document has, which also count in the ranking
	Extra  []query.Node // conditions that only count in the ranking
	Signs  []string     // signs of the typed text, such as C++, which also count in the ranking

	// Phrases are quoted words of a question, which only count in the ranking; see
	// Document.Quoted. Excerpts do not depend on them, because each word is in Words too.
	Phrases []query.Node

	// Titles are the tokens of the text in each language of the documents. Documents
	// with such a title come first. They are nil unless the text has words.
	Titles [][]string

	// Names are words of the text, and pairs of them, that can be the name of a
	// document; see [NameKey].
	Names []string

	// Language is that of a question, "" if it is not known.
	Language string
}

// A Word is a condition of a plain query.
type Word struct {
	Text   string
	Node   query.Node // the word or its parts
	Weight float64    // how often the query has it, or less
}

// newPlan returns the plan for a text. If anyWord is true, some words are enough,
// however few there are.
func newPlan(text query.Text, languages []analysis.Language, anyWord bool) *Plan {
	p := &Plan{}
	switch text.Kind() {
	case query.Everything:
		return p
	case query.Expression:
		p.Tree = text.Tree()
		return p
	}
	typed := text.Words()
	words, divided := significant(typed, languages)
	p.Some = anyWord || len(typed) >= query.SomeWords || divided
	p.Words = []Word{}
	for _, w := range words {
		if i := slices.IndexFunc(p.Words, func(o Word) bool { return o.Text == w }); i >= 0 && p.Some {
			p.Words[i].Weight++
			continue
		}
		p.Words = append(p.Words, Word{w, query.Identifier(w, analysis.Parts(w)), 1})
	}
	if divided { // the words as they are in the query
		for _, w := range typed {
			if _, divided := query.Divide([]string{w}); divided {
				p.Extra = append(p.Extra, query.Term{Text: w})
			}
		}
	}
	for _, s := range text.Phrases() {
		p.Phrases = append(p.Phrases, query.Phrase{Text: s})
	}
	p.Signs = signsOf(text.Question())
	p.weighLiterals(text)
	for _, l := range languages {
		var tokens []string
		for t := range analysis.Tokens(text.Plain(), l) {
			tokens = append(tokens, t.Text)
		}
		p.Titles = append(p.Titles, tokens)
	}
	p.Names = names(words)
	p.Language = string(analysis.QuestionLanguage(typed, languages))
	return p
}

// Beside at least minProse other words, the words of literal parts of a text, such as
// paths and formats, count literalWeight: examples in many documents contain them. Of
// 210 questions (bench/notes/answers.md), as many are answered, and 159 instead of 119
// if each ends with a part that does not belong to it.
const (
	literalWeight = 0.5
	minProse      = 2
)

// weighLiterals lowers the weights of the words in literal parts, and removes the
// signs of these.
func (p *Plan) weighLiterals(text query.Text) {
	literals, rest := text.Literals()
	prose := 0
	for _, w := range p.Words {
		if !literals[w.Text] {
			prose++
		}
	}
	if !p.Some || len(literals) == 0 || prose < minProse {
		return
	}
	for i, w := range p.Words {
		if literals[w.Text] {
			p.Words[i].Weight *= literalWeight
		}
	}
	p.Signs = signsOf(rest)
}

// signsOf returns the signs of a text that are used.
func signsOf(s string) []string {
	signs := analysis.Signs(s)
	return signs[:min(len(signs), maxSigns)]
}

// namesFrom is how many words names of documents are made of at most.
const namesFrom = 16

// names returns words and pairs of different words in the form of [NameKey].
func names(words []string) (out []string) {
	var parts []string
	for _, w := range words {
		key := NameKey(w + ".")
		if key != "" && len(parts) < namesFrom && !slices.Contains(parts, key) {
			parts = append(parts, key)
		}
	}
	for _, a := range parts {
		out = append(out, a)
		for _, b := range parts {
			if a != b {
				out = append(out, a+" "+b)
			}
		}
	}
	return out
}

// NameKey returns what the name of a file says about its contents: its words in lower
// case without the extension, joined by blanks, such as "git commit" for
// git-commit.1.gz. It is "" for a name of other than one or two words, and for names
// that many files have.
func NameKey(filename string) string {
	stem := strings.TrimSuffix(filename, ".gz")
	if i := strings.LastIndexByte(stem, '.'); i > 0 {
		stem = strings.TrimSuffix(stem[:i], ".html") // as in name.html.en
	}
	words := strings.FieldsFunc(strings.ToLower(document.Truncate(stem, 128)), isBetweenWords)
	words = slices.DeleteFunc(words, func(w string) bool { return !strings.ContainsFunc(w, unicode.IsLetter) })
	key := strings.Join(words, " ")
	if len(words) > 2 || key == "index" || key == "readme" {
		return ""
	}
	return key
}

// significant returns the words that count of the words of a plain query. divided
// reports whether a word in a script without blanks between words consists of
// several that count: then the query is a question.
func significant(words []string, among []analysis.Language) (counting []string, divided bool) {
	words, divided = query.Divide(words)
	counting = analysis.Significant(words, among)
	return counting, divided && len(counting) > 1
}

// Everything reports whether all documents that meet the other conditions match.
func (p *Plan) Everything() bool { return p.Tree == nil && p.Words == nil }

// isSingle reports whether the plan has one condition, so that only the scores of
// chunks count in its ranking.
func (p *Plan) isSingle() bool {
	if len(p.Words) != 1 || len(p.Signs)+len(p.Extra)+len(p.Phrases) > 0 {
		return false
	}
	_, isTerm := p.Words[0].Node.(query.Term)
	return isTerm
}

// Limits of pieces and similar words.
const (
	maxPieces   = 64
	similarAll  = 8 // similar words for one query
	similarTo   = 8 // words of a query that similar ones are looked up for
	leastLetter = 4 // letters of a word that others are similar to
)

// addPieces adds the pieces of words that no document has. It reports whether there
// are any.
func (p *Plan) addPieces(missing []string) bool {
	for _, w := range missing {
		for _, piece := range query.Pieces(w) {
			if len(p.Pieces) < maxPieces {
				p.Pieces = append(p.Pieces, query.Term{Text: piece})
			}
		}
	}
	return len(p.Pieces) > 0
}

// lookedUp returns the words that similar ones are looked up for, and of each the
// word of the query that it is a part of. Words with digits or of fewer than four
// letters are left out.
func lookedUp(missing []string) (words []string, of []int) {
	for i, text := range missing {
		for w := range strings.FieldsFuncSeq(text, isBetweenWords) {
			n := utf8.RuneCountInString(w)
			if n < leastLetter || n > query.MaxFuzzyWord || strings.ContainsFunc(w, isCJKOrDigit) {
				continue
			}
			if len(words) == similarTo {
				return words, of
			}
			words, of = append(words, w), append(of, i)
		}
	}
	return words, of
}

// isBetweenWords reports whether a character is neither a letter or mark nor a digit.
func isBetweenWords(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.Nd) }

func isCJKOrDigit(r rune) bool { return analysis.IsCJK(r) || unicode.IsDigit(r) }

// didYouMean returns the similar words of a query, and adds the most similar one of
// each word that is missing to the ranking.
func (p *Plan) didYouMean(near [][]string, of []int) (all []string) {
	seen := map[int]bool{}
	for i, words := range near {
		if len(words) > 0 && p.Some && !seen[of[i]] {
			seen[of[i]] = true
			p.Extra = append(p.Extra, query.Term{Text: words[0]})
		}
		for _, w := range words {
			if len(all) < similarAll && !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	return all
}
