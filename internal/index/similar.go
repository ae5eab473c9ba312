package index

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// near returns the words that are similar to one word, none if a document
// has it.
func (e *evaluator) near(ctx context.Context, word string) ([]string, error) {
	f, err := e.matcher.Eval(ctx, query.Term{Text: word})
	if err != nil {
		return nil, err
	}
	if _, err := e.within(ctx, f.Docs, conditions{}); err != nil || f.Docs.Count() > 0 {
		return nil, err
	}
	word = analysis.Lower(word)
	first, _ := utf8.DecodeRuneInString(word)
	edits := 1
	if utf8.RuneCountInString(word) >= retrieval.FarLetters {
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
		if words = append(words, w.Text); len(words) == retrieval.SimilarEach {
			break
		}
	}
	return words, err
}
