package match

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// A Leaf is one condition on words.
type Leaf struct {
	*segment.Leaf
	fields   segment.Fields
	docs     int               // documents that meet it, deleted ones included
	patterns []segment.Pattern // for excerpts: all patterns, or the first maxMarked
	// for excerpts: whether the condition means a word as written; nil if it is one word or a phrase
	match func(word string) bool
}

// maxMarked is how many patterns of a condition are marked in excerpts.
const maxMarked = 500

// gather adds to a leaf what a condition on words matches. The leaf has no
// patterns if the condition has no words. The error may be that of ctx; then a
// part of what matches was added.
func (x *Matcher) gather(ctx context.Context, l *Leaf, n query.Node) error {
	g := gathering{x: x, leaf: l}
	switch n := n.(type) {
	case query.Term:
		_, err := g.term(ctx, n.Text, 0)
		return err
	case query.Phrase:
		_, err := g.term(ctx, n.Text, n.Slop)
		return err
	case query.Prefix:
		return g.prefix(ctx, n.Text)
	case query.Wildcard:
		return g.wildcard(ctx, n.Pattern)
	case query.Fuzzy:
		single, err := g.term(ctx, n.Text, 0)
		if err != nil || !single || n.Edits == 0 {
			return err
		}
		return g.fuzzy(ctx, n.Text, n.Edits)
	}
	return fmt.Errorf("the query has a part of an unknown kind (%T): %w", n, errkind.Invalid)
}

// A gathering is one call of gather.
type gathering struct {
	x    *Matcher
	leaf *Leaf
	seen map[patternKey]bool // phrases that were added
}

type patternKey struct {
	tokens string
	prefix bool
	slop   int
}

// term adds the patterns of a word or phrase in the languages of the documents.
// It reports whether they have one token.
func (g *gathering) term(ctx context.Context, text string, slop int) (single bool, err error) {
	for _, tokens := range analysis.Variants(text, g.x.Languages, false) {
		single = len(tokens) == 1
		if err := g.pattern(ctx, wordPattern(tokens, slop)); err != nil {
			return single, err
		}
	}
	return single, nil
}

// wordPattern returns the pattern of the tokens of a word or phrase.
func wordPattern(tokens []string, slop int) segment.Pattern {
	return segment.Pattern{Tokens: tokens, Slop: slop, Prefix: analysis.Lone(tokens[len(tokens)-1])}
}

// pattern adds a pattern.
func (g *gathering) pattern(ctx context.Context, p segment.Pattern) error {
	if len(p.Tokens) > 1 { // a word that is added twice does not count twice, but a phrase does
		key := patternKey{strings.Join(p.Tokens, " "), p.Prefix, p.Slop}
		if g.seen[key] {
			return nil
		}
		if g.seen == nil {
			g.seen = map[patternKey]bool{}
		}
		if len(g.seen) < maxSeen {
			g.seen[key] = true
		}
	}
	if len(g.leaf.patterns) < maxMarked {
		g.leaf.patterns = append(g.leaf.patterns, p)
	}
	p.Segments = g.x.segments(p.Tokens)
	return g.x.Search.Add(ctx, g.leaf.Leaf, p)
}

// maxSeen is how many phrases of one condition are remembered. Of the others,
// those that are added twice count twice in the ranking.
const maxSeen = 10_000

// words adds the words with a prefix that f returns true for.
func (g *gathering) words(ctx context.Context, prefix string, f func(word string) bool) error {
	var failed error
	err := g.x.Words.WordsWith(ctx, prefix, func(w segment.Word) bool {
		if f(w.Text) {
			_, failed = g.term(ctx, w.Text, 0)
		}
		return failed == nil
	})
	return cmp.Or(failed, err)
}

// prefix adds the words that begin with text. Their tokens may begin otherwise,
// because stemming removed or changed the ending ("happy" is indexed as happi).
func (g *gathering) prefix(ctx context.Context, text string) error {
	prefixes := analysis.Variants(text, g.x.Languages, true)
	for _, tokens := range prefixes {
		last := tokens[len(tokens)-1]
		r, _ := utf8.DecodeRuneInString(last)
		if err := g.pattern(ctx, segment.Pattern{
			Tokens: tokens, Prefix: !analysis.IsCJK(r) || analysis.Lone(last),
		}); err != nil {
			return err
		}
	}
	if len(prefixes) == 0 || len(prefixes[0]) != 1 {
		return nil
	}
	text = analysis.Lower(text)
	g.leaf.match = func(word string) bool { return strings.HasPrefix(word, text) }
	var failed error
	err := g.x.Words.WordsWith(ctx, text, func(w segment.Word) bool {
		for _, tokens := range analysis.Variants(w.Text, g.x.Languages, false) {
			begins := func(prefix []string) bool { return strings.HasPrefix(tokens[0], prefix[0]) }
			if failed == nil && !slices.ContainsFunc(prefixes, begins) {
				failed = g.pattern(ctx, wordPattern(tokens, 0))
			}
		}
		return failed == nil
	})
	return cmp.Or(failed, err)
}

// wildcard adds the words that match a pattern.
func (g *gathering) wildcard(ctx context.Context, pattern string) error {
	glob, err := query.ParseGlob(analysis.Lower(pattern))
	if err != nil {
		return err
	}
	g.leaf.match = glob.Match
	return g.words(ctx, glob.Prefix(), glob.Match)
}

// fuzzy adds the words within a number of edits of text.
func (g *gathering) fuzzy(ctx context.Context, text string, edits int) error {
	word := analysis.Lower(text)
	if utf8.RuneCountInString(word) > query.MaxFuzzyWord {
		return nil
	}
	words, err := g.x.Words.WordsNear(ctx, word, min(edits, 2), 0)
	for _, w := range words {
		if _, err := g.term(ctx, w.Text, 0); err != nil {
			return err
		}
	}
	return err
}

// Conditions returns what conditions on words look for, for excerpts. Those for exactly
// the fields in except are left out.
func (x *Matcher) Conditions(leaves []*Leaf, except segment.Fields) []passage.Condition {
	var out []passage.Condition
	for _, l := range leaves {
		if l.fields == except || len(l.patterns) == 0 && l.match == nil {
			continue
		}
		c := passage.Condition{Match: l.match, Weight: x.Search.WeightOf(l.Leaf)}
		for _, p := range l.patterns {
			c.Add(p.Tokens, p.Prefix)
		}
		out = append(out, c)
	}
	return out
}
