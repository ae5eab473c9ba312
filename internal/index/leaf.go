package index

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"knowhow/internal/analysis"
	"knowhow/internal/errkind"
	"knowhow/internal/query"
	"knowhow/internal/segment"
)

// A leaf is one condition on words.
type leaf struct {
	*segment.Leaf
	fields   segment.Fields
	patterns []segment.Pattern
}

// Limits on how many words of the index a pattern is expanded to.
const (
	maxPrefixTerms = 2000
	maxGlobTerms   = 500
	maxFuzzyTerms  = 50
)

// termPattern returns the pattern of a word or phrase. ok is false if the text
// has no tokens.
func termPattern(text string, slop int) (p segment.Pattern, ok bool) {
	p.Tokens = analysis.Terms(text)
	if len(p.Tokens) == 0 {
		return p, false
	}
	p.Slop = slop
	p.Prefix = analysis.Lone(p.Tokens[len(p.Tokens)-1])
	return p, true
}

// prefixPattern returns the pattern of words that begin with text.
func prefixPattern(text string) (p segment.Pattern, ok bool) {
	toks := slices.Collect(analysis.Tokens(text))
	if len(toks) == 0 {
		return p, false
	}
	last := toks[len(toks)-1]
	if last.CJK {
		return termPattern(text, 0)
	}
	for _, t := range toks[:len(toks)-1] {
		p.Tokens = append(p.Tokens, t.Text)
	}
	// A prefix is not stemmed.
	p.Tokens, p.Prefix = append(p.Tokens, last.Surface), true
	return p, true
}

// patterns returns what a condition on words matches. It returns none if the
// condition has no words.
func (e *evaluator) patterns(ctx context.Context, n query.Node) ([]segment.Pattern, error) {
	var list patternList
	switch n := n.(type) {
	case query.Term:
		list.add(termPattern(n.Text, 0))
	case query.Phrase:
		list.add(termPattern(n.Text, n.Slop))
	case query.Prefix:
		p, ok := prefixPattern(n.Text)
		list.add(p, ok)
		if ok && len(p.Tokens) == 1 {
			err := e.expandPrefix(ctx, &list, p.Tokens[0], n.Text)
			return list.all, err
		}
	case query.Wildcard:
		err := e.expandWildcard(ctx, &list, n.Pattern)
		return list.all, err
	case query.Fuzzy:
		p, ok := termPattern(n.Text, 0)
		list.add(p, ok)
		if ok && len(p.Tokens) == 1 && n.Edits > 0 {
			err := e.expandFuzzy(ctx, &list, n.Text, n.Edits)
			return list.all, err
		}
	default:
		return nil, fmt.Errorf("the query has a part of an unknown kind (%T): %w", n, errkind.Invalid)
	}
	return list.all, nil
}

// A patternList is a list of different patterns.
type patternList struct {
	all  []segment.Pattern
	seen map[string]bool
}

// add adds a pattern if ok is true and the list does not have it yet.
func (l *patternList) add(p segment.Pattern, ok bool) {
	if !ok {
		return
	}
	key := fmt.Sprint(strings.Join(p.Tokens, " "), p.Prefix, p.Slop)
	if l.seen[key] {
		return
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[key] = true
	l.all = append(l.all, p)
}

// expandPrefix adds the words that begin with text although their tokens do
// not, because stemming removed or changed the ending ("happy" is indexed as
// happi).
func (e *evaluator) expandPrefix(ctx context.Context, l *patternList, token, text string) error {
	n := 0
	return e.view.WordsWith(ctx, analysis.Lower(text), func(w segment.Word) bool {
		if p, ok := termPattern(w.Text, 0); ok && !strings.HasPrefix(p.Tokens[0], token) {
			l.add(p, true)
		}
		n++
		return n < maxPrefixTerms
	})
}

// expandWildcard adds the words that match a pattern. If there are too many, it
// adds the most frequent ones.
func (e *evaluator) expandWildcard(ctx context.Context, l *patternList, pattern string) error {
	g, err := newGlob(analysis.Lower(pattern))
	if err != nil {
		return err
	}
	var words []segment.Word
	err = e.view.WordsWith(ctx, g.prefix(), func(w segment.Word) bool {
		if g.match(w.Text) {
			words = append(words, w)
			if len(words) >= 2*maxGlobTerms {
				words = mostFrequent(words, maxGlobTerms)
			}
		}
		return true
	})
	for _, w := range mostFrequent(words, maxGlobTerms) {
		l.add(termPattern(w.Text, 0))
	}
	return err
}

// mostFrequent returns the first n of words, which it orders by their documents.
func mostFrequent(words []segment.Word, n int) []segment.Word {
	slices.SortFunc(words, func(a, b segment.Word) int {
		return cmp.Or(cmp.Compare(b.Docs, a.Docs), strings.Compare(a.Text, b.Text))
	})
	return words[:min(len(words), n)]
}

// expandFuzzy adds the words within a number of edits of text, the nearest
// first.
func (e *evaluator) expandFuzzy(ctx context.Context, l *patternList, text string, edits int) error {
	word := analysis.Lower(text)
	if utf8.RuneCountInString(word) > maxFuzzyWord {
		return nil
	}
	words, err := e.view.WordsNear(ctx, word, min(edits, 2), maxFuzzyTerms)
	for _, w := range words {
		l.add(termPattern(w.Text, 0))
	}
	return err
}

// maxFuzzyWord is the greatest length in runes of a word that is compared with
// other words.
const maxFuzzyWord = 40

// A glob is a wildcard pattern: literal characters, wildcards for one character
// and for any number of characters.
type glob []rune

// The wildcards of a glob. Both are outside of Unicode.
const (
	anyRune  rune = -1
	anyRunes rune = -2
)

// newGlob parses a wildcard pattern of a query.
func newGlob(pattern string) (glob, error) {
	if len(pattern) > maxGlob || strings.Count(pattern, "*") > maxStars {
		return nil, errGlob()
	}
	var g glob
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

// prefix returns the literal beginning of the pattern.
func (g glob) prefix() string {
	n := slices.IndexFunc(g, func(r rune) bool { return r < 0 })
	if n < 0 {
		n = len(g)
	}
	return string(g[:n])
}

// match reports whether a word matches the pattern.
func (g glob) match(word string) bool {
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

// mark adds to want the tokens of text that match the leaf, for
// [analysis.Digest].
func (l *leaf) mark(want map[string]bool, text string) {
	for _, p := range l.patterns {
		for i, t := range p.Tokens {
			if !p.Prefix || i < len(p.Tokens)-1 || analysis.Lone(t) {
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
