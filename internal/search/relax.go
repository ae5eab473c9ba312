package search

import (
	"context"
	"errors"
	"iter"
	"slices"

	"knowhow/internal/errkind"
	"knowhow/internal/query"
)

// Relax returns a Searcher that repeats a plain query of two or more words
// without a result once, with OR between the words. Words in scripts without blanks
// between words are those of [query.Divide] and their [query.Pieces]. If a query like
// "java -Xmx" or "f('a','b')" has no result, it is repeated without the signs of
// code, for documents with the option as it is written; see [query.Code].
// Page.Relaxed reports whether another search found the documents. A query that s
// cannot evaluate, such as timestamp:[x TO y], is repeated as plain words. All other
// queries are passed to s unchanged.
func Relax(s Searcher) Searcher { return relaxer{s} }

type relaxer struct{ Searcher }

func (r relaxer) Search(ctx context.Context, q Query) (*Page, error) {
	all, err := r.Searcher.Search(ctx, q)
	if errors.Is(err, errkind.Invalid) {
		words, ok := query.AsWords(q.Text)
		if !ok {
			return nil, err
		}
		q.Text = words
		some, again := r.Search(ctx, q)
		switch {
		case errors.Is(again, errkind.Invalid):
			return nil, err
		case again != nil:
			return nil, again
		}
		some.Relaxed = true
		return some, nil
	}
	if err != nil || all.Total > 0 {
		return all, err
	}
	if words, options, ok := query.Code(q.Text); ok {
		q.Text, q.Options = words, options
		some, err := r.Search(ctx, q)
		if err != nil || some.Total == 0 {
			return all, err
		}
		some.Relaxed = true
		return some, nil
	}
	if !query.Plain(q.Text) {
		return all, nil
	}
	words, _ := query.Divide(query.Words(q.Text))
	pieces := slices.Collect(piecesOf(words))
	if words = append(words, pieces...); len(words) < 2 || all.Staged && len(pieces) == 0 {
		return all, nil
	}
	q.Text = query.AnyOf(words[:min(len(words), maxWords)])
	some, err := r.Searcher.Search(ctx, q)
	switch {
	case errors.Is(err, errkind.Invalid):
		return all, nil // with OR, the query is too long
	case err != nil:
		return nil, err
	case some.Total == 0:
		return all, nil
	}
	some.Relaxed, some.DidYouMean = true, all.DidYouMean
	return some, nil
}

// maxWords is how many words a repeated query has at most. Fess accepts 1,024.
const maxWords = 500

// piecesOf returns the pieces of words in scripts without blanks between words.
func piecesOf(words []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, w := range words {
			for _, p := range query.Pieces(w) {
				if !yield(p) {
					return
				}
			}
		}
	}
}
