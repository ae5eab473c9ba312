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

// patterns returns what a condition on words matches. It returns none if the
// condition has no words.
func (e *evaluator) patterns(ctx context.Context, n query.Node) ([]segment.Pattern, error) {
	var list patternList
	switch n := n.(type) {
	case query.Term:
		list.addTerm(n.Text, 0, e.langs)
	case query.Phrase:
		list.addTerm(n.Text, n.Slop, e.langs)
	case query.Prefix:
		for _, tokens := range analysis.Variants(n.Text, e.langs, true) {
			last := tokens[len(tokens)-1]
			r, _ := utf8.DecodeRuneInString(last)
			list.add(segment.Pattern{Tokens: tokens, Prefix: !analysis.IsCJK(r) || analysis.Lone(last)})
		}
		if len(list.all) > 0 && len(list.all[0].Tokens) == 1 {
			err := e.expandPrefix(ctx, &list, n.Text)
			return list.all, err
		}
	case query.Wildcard:
		err := e.expandWildcard(ctx, &list, n.Pattern)
		return list.all, err
	case query.Fuzzy:
		list.addTerm(n.Text, 0, e.langs)
		if len(list.all) > 0 && len(list.all[0].Tokens) == 1 && n.Edits > 0 {
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
	seen map[patternKey]bool
}

type patternKey struct {
	tokens string
	prefix bool
	slop   int
}

// add adds a pattern unless the list has it.
func (l *patternList) add(p segment.Pattern) {
	key := patternKey{strings.Join(p.Tokens, " "), p.Prefix, p.Slop}
	if l.seen[key] {
		return
	}
	if l.seen == nil {
		l.seen = map[patternKey]bool{}
	}
	l.seen[key] = true
	l.all = append(l.all, p)
}

// addTerm adds the patterns of a word or phrase in some languages.
func (l *patternList) addTerm(text string, slop int, langs []analysis.Language) {
	for _, tokens := range analysis.Variants(text, langs, false) {
		l.add(segment.Pattern{Tokens: tokens, Slop: slop, Prefix: analysis.Lone(tokens[len(tokens)-1])})
	}
}

// expandPrefix adds the words that begin with text although their tokens do
// not, because stemming removed or changed the ending ("happy" is indexed as
// happi).
func (e *evaluator) expandPrefix(ctx context.Context, l *patternList, text string) error {
	n := 0
	prefixes := slices.Clone(l.all)
	return e.view.WordsWith(ctx, analysis.Lower(text), func(w segment.Word) bool {
		for _, tokens := range analysis.Variants(w.Text, e.langs, false) {
			begins := func(prefix segment.Pattern) bool { return strings.HasPrefix(tokens[0], prefix.Tokens[0]) }
			if !slices.ContainsFunc(prefixes, begins) {
				l.add(segment.Pattern{Tokens: tokens, Prefix: analysis.Lone(tokens[len(tokens)-1])})
			}
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
		l.addTerm(w.Text, 0, e.langs)
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
		l.addTerm(w.Text, 0, e.langs)
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

// wanted returns what the leaves look for, for excerpts. Those for only some
// fields are left out.
func wanted(leaves []*leaf, except segment.Fields) *analysis.Wanted {
	var terms, prefixes []string
	for _, l := range leaves {
		if l.fields == except {
			continue
		}
		for _, p := range l.patterns {
			for i, t := range p.Tokens {
				if p.Prefix && i == len(p.Tokens)-1 && !analysis.Lone(t) {
					prefixes = append(prefixes, t)
				} else {
					terms = append(terms, t)
				}
			}
		}
	}
	return analysis.NewWanted(terms, prefixes)
}
