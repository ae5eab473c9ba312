package index

import (
	"context"
	"database/sql"
	"errors"

	"knowhow/internal/index/retrieve"
	"knowhow/internal/search"
)

// Search returns one page of the documents that match a query; see
// [search.Searcher].
//
// Words are joined by AND over the whole document. A plain query of three words
// or more is staged: first come the documents with all its words, then those
// with some. That holds for each order: a field orders within these groups. A
// plain query of two words that finds nothing is relaxed to documents with one.
// A query without text, or for everything, gives the newest documents first
// unless it says otherwise.
func (x *Index) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	if err := retrieve.Check(q); err != nil {
		return nil, err
	}
	var page *search.Page
	err := x.read(ctx, "searching", func(tx *sql.Tx) error {
		e, err := retrieve.New(ctx, tx, &x.sets)
		if err != nil {
			return err
		}
		page, err = e.Search(ctx, q)
		return err
	})
	if err != nil {
		return nil, err
	}
	if page.Total > 0 && q.Start == 0 {
		x.counts.add(q.Text, q.Labels)
	}
	return page, nil
}

// FacetFields implements [search.Faceter].
func (x *Index) FacetFields() []string { return retrieve.FacetFields() }

// Find returns one document; see [search.Finder]. Its digest is the beginning
// of the text.
func (x *Index) Find(ctx context.Context, id string, labels []string) (*search.Hit, error) {
	var h *search.Hit
	err := x.read(ctx, "finding a document", func(tx *sql.Tx) error {
		var doc int64
		var label string
		err := tx.QueryRowContext(ctx, `SELECT id, label FROM docs WHERE doc_id=?`, id).Scan(&doc, &label)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !admits(labels, label) {
			return noDocument(id)
		}
		if err != nil {
			return err
		}
		h, err = retrieve.Document(ctx, tx, doc)
		return err
	})
	return h, err
}
