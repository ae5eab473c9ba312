package index

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"knowhow/internal/analysis"
	"knowhow/internal/query"
	"knowhow/internal/segment"
)

// Limits of similar words.
const (
	similarMin  = 4 // letters of a word that others are similar to
	similarFar  = 8 // letters of a word for which two edits are few
	similarEach = 3 // similar words for one word
	similarAll  = 8 // for one query
	similarTo   = 8 // words of a query that similar ones are looked up for
)

// similar returns words of the documents that are similar to those of words that
// no document has: with the same first letter and one edit, or two in long
// words. The nearest come first, of those the most frequent. Words with digits
// or of fewer than four letters have none.
func (e *evaluator) similar(ctx context.Context, words []string) (all []string, err error) {
	looked := 0
	for _, text := range words {
		for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.Nd) }) {
			if n := utf8.RuneCountInString(w); n < similarMin || n > query.MaxFuzzyWord || strings.ContainsFunc(w, isCJKOrDigit) {
				continue
			}
			if looked++; looked > similarTo {
				return all, nil
			}
			near, err := e.near(ctx, w)
			if err != nil {
				return all, err
			}
			for _, w := range near {
				if len(all) < similarAll && !slices.Contains(all, w) {
					all = append(all, w)
				}
			}
		}
	}
	return all, nil
}

func isCJKOrDigit(r rune) bool { return analysis.IsCJK(r) || unicode.IsDigit(r) }

// near returns the words that are similar to one word, none if a document
// has it.
func (e *evaluator) near(ctx context.Context, word string) ([]string, error) {
	f, err := e.eval(ctx, query.Term{Text: word})
	if err != nil {
		return nil, err
	}
	if _, err := e.within(ctx, f.docs, conditions{}); err != nil || f.docs.Count() > 0 {
		return nil, err
	}
	word = analysis.Lower(word)
	first, _ := utf8.DecodeRuneInString(word)
	edits := 1
	if utf8.RuneCountInString(word) >= similarFar {
		edits = 2
	}
	near, err := e.view.WordsNear(ctx, word, edits, 0)
	var words []string
	for _, w := range slices.DeleteFunc(near, func(w segment.Word) bool {
		r, _ := utf8.DecodeRuneInString(w.Text)
		return r != first
	}) {
		live, err := e.view.WordDocs(w.Text, false)
		if err != nil {
			return nil, err
		}
		if live.Count() == 0 {
			continue
		}
		if words = append(words, w.Text); len(words) == similarEach {
			break
		}
	}
	return words, err
}
