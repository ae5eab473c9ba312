package search

import (
	"context"
	"errors"

	"knowhow/internal/errkind"
)

// Relax returns a Searcher that repeats a query of two or more words without a
// result once, with OR between the words; see [query.Text.Any]. If a query like
// "java -Xmx" or "f('a','b')" has no result, it is repeated without the signs of
// code, for documents with the option as it is written; see [query.Text.Code].
// Page.Relaxed reports whether another search found the documents. A query that s
// cannot evaluate, such as timestamp:[x TO y], is repeated as plain words. All other
// queries are passed to s unchanged.
func Relax(s Searcher) Searcher { return relaxer{s} }

type relaxer struct{ Searcher }

func (r relaxer) Search(ctx context.Context, q Query) (*Page, error) {
	all, err := r.Searcher.Search(ctx, q)
	if errors.Is(err, errkind.Invalid) {
		return r.bare(ctx, q, err)
	}
	if err != nil || all.Total > 0 {
		return all, err
	}
	if code, ok := q.Text.Code(); ok {
		q.Text = code
		some, err := r.Search(ctx, q)
		if err != nil || some.Total == 0 {
			return all, err
		}
		some.Relaxed = true
		return some, nil
	}
	some, pieces, ok := q.Text.Any()
	if !ok || all.Staged && !pieces {
		return all, nil
	}
	q.Text = some
	page, err := r.Searcher.Search(ctx, q)
	switch {
	case errors.Is(err, errkind.Invalid):
		return all, nil // with OR, the query is too long
	case err != nil:
		return nil, err
	case page.Total == 0:
		return all, nil
	}
	page.Relaxed, page.DidYouMean = true, all.DidYouMean
	return page, nil
}

// bare searches for the words of a query that cannot be evaluated because of err.
func (r relaxer) bare(ctx context.Context, q Query, err error) (*Page, error) {
	words, ok := q.Text.Bare()
	if !ok {
		return nil, err
	}
	q.Text = words
	page, again := r.Search(ctx, q)
	switch {
	case errors.Is(again, errkind.Invalid):
		return nil, err
	case again != nil:
		return nil, again
	}
	page.Relaxed = true
	return page, nil
}
