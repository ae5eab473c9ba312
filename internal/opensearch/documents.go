package opensearch

import (
	"context"
	"errors"
	"fmt"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Numbers returns the numbers of up to n documents that are greater than after,
// in order.
func (s *Store) Numbers(ctx context.Context, after int64, n int) ([]int64, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	r, err := s.search(ctx, inDocuments, only(object{"size": n, "track_total_hits": false,
		"sort":  []object{{"number": "asc"}},
		"query": object{"range": object{"number": object{"gt": after}}}}, "number"))
	if err != nil {
		return nil, fmt.Errorf("listing documents: %w", err)
	}
	rows, err := r.rows()
	out := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = r.Number
	}
	return out, err
}

// Document returns everything that is stored of the document with a number. From
// indexes that may be older, it has its present ID. The error is of kind NotFound if
// there is none.
func (s *Store) Document(ctx context.Context, number int64) (*document.Document, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	r, err := s.oneRow(ctx, []object{term("number", number)})
	if errors.Is(err, errMissing) {
		return nil, document.Missing(fmt.Sprint(number))
	}
	if err == nil && int64(len(r.Text)) != r.TextSize {
		err = fmt.Errorf("the text of document %d is incomplete: %w", number, errkind.Corrupt)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a document: %w", err)
	}
	d := r.document()
	if s.o.Move == From {
		d.ID = document.PresentID(d.ID)
	}
	return d, nil
}
