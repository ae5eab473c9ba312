package search

import (
	"context"
	"errors"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
)

// Relax searches, and repeats a query of two or more words without a result
// once, with OR between the words; see [query.Text.Any]. If a query like "java
// -Xmx" or "f('a','b')" has no result, it is repeated without the signs of code,
// for documents with the option as it is written; see [query.Text.Code].
// Page.Relaxed reports whether another search found the documents. A query that s
// cannot evaluate, such as timestamp:[x TO y], is repeated as plain words. All other
// queries are passed to s unchanged.
func Relax(ctx context.Context, s Searcher, q Query) (*Page, error) {
	return relax(q.Text, func(text query.Text) (*Page, error) {
		q.Text = text
		return s.Search(ctx, q)
	})
}

// A ChunkSearcher finds chunks.
type ChunkSearcher interface {
	SearchChunks(ctx context.Context, q ChunkQuery) (*ChunkPage, error)
}

// RelaxChunks repeats a search for chunks as [Relax] does.
func RelaxChunks(ctx context.Context, s ChunkSearcher, q ChunkQuery) (*ChunkPage, error) {
	return relax(q.Text, func(text query.Text) (*ChunkPage, error) {
		q.Text = text
		return s.SearchChunks(ctx, q)
	})
}

// A relaxed is the result of a search that relax may repeat.
type relaxed[P any] interface {
	found() (total int, staged bool)
	relax()         // records that another search than the first one found it
	advise(first P) // takes over what the first search proposes
}

func (p *Page) found() (total int, staged bool) { return p.Total, p.Staged }
func (p *Page) relax()                          { p.Relaxed = true }
func (p *Page) advise(first *Page)              { p.DidYouMean, p.Missing = first.DidYouMean, first.Missing }

func (p *ChunkPage) found() (total int, staged bool) { return p.Total, p.Staged }
func (p *ChunkPage) relax()                          {}
func (p *ChunkPage) advise(*ChunkPage)               {}

// relax calls find with a text, and with others if it finds nothing.
func relax[P relaxed[P]](text query.Text, find func(query.Text) (P, error)) (P, error) {
	first, err := find(text)
	if errors.Is(err, errkind.Invalid) {
		words, ok := text.Bare()
		if !ok {
			return first, err
		}
		page, again := relax(words, find)
		switch {
		case errors.Is(again, errkind.Invalid):
			return page, err
		case again == nil:
			page.relax()
		}
		return page, again
	}
	if err != nil {
		return first, err
	}
	total, staged := first.found()
	if total > 0 {
		return first, nil
	}
	code, isCode := text.Code()
	if !isCode {
		code, isCode = text.Unsigned()
	}
	if isCode {
		page, err := relax(code, find)
		if err != nil {
			return page, err
		}
		if total, _ := page.found(); total > 0 {
			page.relax()
			return page, nil
		}
	}
	any, pieces, ok := text.Any()
	if !ok || staged && !pieces {
		return first, nil
	}
	page, err := find(any)
	if errors.Is(err, errkind.Invalid) {
		return first, nil // with OR, the query is too long
	}
	if err != nil {
		return page, err
	}
	if total, _ := page.found(); total == 0 {
		return first, nil
	}
	page.advise(first)
	page.relax()
	return page, nil
}
