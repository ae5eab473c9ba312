package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
)

// Numbers returns the numbers of up to n documents that are greater than after,
// in order.
func (s *Store) Numbers(ctx context.Context, after int64, n int) ([]int64, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	r, err := s.search(ctx, inDocuments, object{"size": n, "_source": []string{"number"}, "sort": []object{{"number": "asc"}},
		"query": object{"range": object{"number": object{"gt": after}}}})
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

// Document returns everything that is stored of the document with a number. The
// error is of kind NotFound if there is none.
func (s *Store) Document(ctx context.Context, number int64) (*document.Document, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		r, err := s.oneRow(ctx, term("number", number), withoutTokens)
		if errors.Is(err, errMissing) {
			return nil, document.Missing(fmt.Sprint(number))
		}
		if err != nil {
			return nil, fmt.Errorf("reading a document: %w", err)
		}
		var chunks []chunkRow
		err = s.eachChunk(ctx, r.Revision, func(source json.RawMessage) error {
			var c chunkRow
			if err := json.Unmarshal(source, &c); err != nil {
				return damaged(err)
			}
			c.Tokens = ""
			chunks = append(chunks, c)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading a document: %w", err)
		}
		if d, whole := r.document(chunks); whole {
			return d, nil
		}
		if n == changeAttempts { // it was replaced again and again, or its chunks are lost
			return nil, fmt.Errorf("reading a document: chunks of document %d are missing: %w", number, errkind.Corrupt)
		}
	}
}

// document returns a document from its row and its chunks, which are in order.
// whole is false if some are missing, which its text is without.
func (r *row) document(chunks []chunkRow) (d *document.Document, whole bool) {
	d = &document.Document{
		ID: r.ID, Label: r.Label, Path: r.Path, FromSource: r.FromSource, SourcePath: r.SourcePath, Tags: sorted(r.Tags), Type: r.Type,
		URL: r.URL, Title: r.Title, Lang: r.Lang, MIMEType: r.MIMEType, FileType: r.FileType, Filename: r.Filename, Host: r.Host,
		Size: r.Size, Hash: r.Hash, Sections: r.Kept.Sections, Pages: r.Kept.Pages, Stamp: r.Kept.Stamp,
	}
	if d.Tags == nil {
		d.Tags = []string{}
	}
	if r.Modified != nil {
		d.Modified = time.UnixMilli(*r.Modified).UTC()
	}
	whole = len(chunks) == r.Chunks
	var text strings.Builder
	for _, c := range chunks {
		off := c.Offset
		if off > text.Len() { // what precedes is missing
			whole, off = false, text.Len()
		}
		d.Chunks = append(d.Chunks, document.Chunk{Offset: off, Length: c.Length, Heading: c.Heading})
		if own := text.Len() - off; own < len(c.Text) { // chunks may overlap
			text.WriteString(c.Text[own:])
		}
	}
	d.Text = text.String()
	return d, whole && int64(len(d.Text)) == r.TextSize
}
