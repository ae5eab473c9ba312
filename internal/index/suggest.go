package index

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// suggestPool is how many words are looked at for one suggestion.
const suggestPool = 20

// Suggest returns words that begin with a prefix, those of the most documents
// first; see [search.Service].
func (x *Index) Suggest(ctx context.Context, q search.SuggestQuery) ([]search.Suggestion, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	prefix := strings.TrimSpace(analysis.Lower(q.Prefix))
	if prefix == "" || len(prefix) > 256 {
		return nil, ctx.Err()
	}
	var out []search.Suggestion
	err := x.readSegments(ctx, "suggesting words", func(tx *sql.Tx) error {
		out = nil
		return x.evaluate(ctx, x.db.Prepared(tx), q.Labels, func(e *evaluator) error {
			var err error
			out, err = e.suggest(ctx, q, prefix)
			return err
		})
	})
	return out, err
}

func (e *evaluator) suggest(ctx context.Context, q search.SuggestQuery, prefix string) ([]search.Suggestion, error) {
	var words []segment.Word
	most := q.Num * suggestPool
	err := e.view.WordsWith(ctx, prefix, func(w segment.Word) bool {
		if words = append(words, w); len(words) >= 2*most {
			words = mostFrequent(words, most)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	var allowed segment.Docs
	if q.Langs != nil {
		if allowed, err = e.every(ctx, conditions{langs: q.Langs}); err != nil {
			return nil, err
		}
	}
	titleOnly := len(q.Fields) == 1 && q.Fields[0] == "title"
	type counted struct {
		search.Suggestion
		docs int
	}
	var found []counted
	for _, w := range mostFrequent(words, most) {
		docs, err := e.view.WordDocs(w.Text, titleOnly)
		if err != nil {
			return nil, err
		}
		if allowed != nil {
			docs.And(allowed)
		}
		if n := docs.Count(); n > 0 {
			found = append(found, counted{search.Suggestion{Text: w.Text, Labels: e.labelsOf(docs)}, n})
		}
		if allowed == nil && !titleOnly && len(found) >= 2*q.Num {
			break
		}
	}
	slices.SortStableFunc(found, func(a, b counted) int {
		return cmp.Or(cmp.Compare(b.docs, a.docs), strings.Compare(a.Text, b.Text))
	})
	var out []search.Suggestion
	for _, f := range found[:min(len(found), q.Num)] {
		out = append(out, f.Suggestion)
	}
	return out, nil
}

// labelsOf returns the labels of documents, sorted.
func (e *evaluator) labelsOf(docs segment.Docs) []string {
	var labels []string
	for i, b := range docs {
		if b.Next(0) >= 0 {
			labels = append(labels, e.view.Segments[i].Label)
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

// mostFrequent returns the first n of words, which it orders by their documents.
func mostFrequent(words []segment.Word, n int) []segment.Word {
	slices.SortFunc(words, func(a, b segment.Word) int {
		return cmp.Or(cmp.Compare(b.Docs, a.Docs), strings.Compare(a.Text, b.Text))
	})
	return words[:min(len(words), n)]
}
