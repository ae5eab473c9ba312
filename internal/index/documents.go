package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
)

// Numbers returns the numbers of up to n documents that are greater than after,
// in order.
func (x *Index) Numbers(ctx context.Context, after int64, n int) (numbers []int64, err error) {
	err = x.db.Read(ctx, "listing documents", func(tx *sql.Tx) (err error) {
		numbers, err = database.Column[int64](ctx, tx, `SELECT id FROM docs WHERE id>? ORDER BY id LIMIT ?`, after, n)
		return err
	})
	return numbers, err
}

// Document returns everything that is stored of the document with a number. The
// error is of kind NotFound if there is none.
func (x *Index) Document(ctx context.Context, number int64) (*document.Document, error) {
	var d *document.Document
	err := x.db.Read(ctx, "reading a document", func(tx *sql.Tx) error {
		r, err := findRecord(ctx, tx, `d.id=?`, number)
		if err != nil {
			return err
		}
		d = &document.Document{
			ID: r.ID, Label: r.Label, Path: r.Path, FromSource: r.FromSource, SourcePath: r.SourcePath,
			Tags: append([]string{}, r.Tags...),
			Type: r.Type, Title: r.Title, Filename: r.Filename, Hash: r.Hash,
		}
		var modified sql.NullInt64
		var seconds, nanoseconds int64
		err = tx.QueryRowContext(ctx, `SELECT url, mimetype, filetype, lang, host, size, modified,
				stamp_size, stamp_sec, stamp_nsec
			FROM docs WHERE id=?`, number).
			Scan(&d.URL, &d.MIMEType, &d.FileType, &d.Lang, &d.Host, &d.Size, &modified, &d.Stamp.Size, &seconds,
				&nanoseconds)
		if err != nil {
			return err
		}
		if modified.Valid {
			d.Modified = time.UnixMilli(modified.Int64).UTC()
		}
		d.Stamp.ModTime = time.Unix(seconds, nanoseconds).UTC()
		if d.Text, err = window(ctx, tx, number, 0, r.TextSize); err != nil {
			return err
		}
		var sections []byte
		err = tx.QueryRowContext(ctx, `SELECT body FROM sections WHERE id=?`, number).Scan(&sections)
		if err == nil {
			err = json.Unmarshal(sections, &d.Sections)
		} else if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("reading the sections: %w", err)
		}
		if d.Pages, err = pagesOf(ctx, tx, number); err != nil {
			return err
		}
		d.Chunks, err = chunkList(ctx, tx, number)
		return err
	})
	return d, err
}

// Pages returns the pages of the text of the document with an ID; see kb.Store.
func (x *Index) Pages(ctx context.Context, id string) (pages []document.Page, err error) {
	err = x.db.Read(ctx, "reading the pages of a document", func(tx *sql.Tx) error {
		var number int64
		err := tx.QueryRowContext(ctx, `SELECT id FROM docs WHERE doc_id=?`, id).Scan(&number)
		if errors.Is(err, sql.ErrNoRows) {
			return document.Missing(id)
		}
		if err != nil {
			return err
		}
		pages, err = pagesOf(ctx, tx, number)
		return err
	})
	return pages, err
}

// pagesOf returns the pages of the document with a number.
func pagesOf(ctx context.Context, q database.Querier, number int64) (pages []document.Page, err error) {
	err = database.Collect(ctx, q, func(rows *sql.Rows) error {
		var p document.Page
		err := rows.Scan(&p.Offset, &p.Label)
		pages = append(pages, p)
		return err
	}, `SELECT off, label FROM pages WHERE doc=? ORDER BY off`, number)
	return pages, err
}

// chunkList returns the chunks of a document.
func chunkList(ctx context.Context, q database.Querier, number int64) (chunks []document.Chunk, err error) {
	err = database.Collect(ctx, q, func(rows *sql.Rows) error {
		var c document.Chunk
		err := rows.Scan(&c.Offset, &c.Length, &c.Heading)
		chunks = append(chunks, c)
		return err
	}, `SELECT off, len, heading FROM chunks WHERE id BETWEEN ? AND ?
		ORDER BY id`, rowOf(number, 0), rowOf(number, maxParts-1))
	return chunks, err
}

// storedDocuments are the documents that the segments are built from.
type storedDocuments struct{}

// Numbers returns the numbers of all documents; see [segments.Documents].
func (storedDocuments) Numbers(ctx context.Context, q database.Querier) (map[string][]int64, error) {
	numbers := map[string][]int64{}
	err := database.Collect(ctx, q, func(rows *sql.Rows) error {
		var label string
		var id int64
		err := rows.Scan(&label, &id)
		numbers[label] = append(numbers[label], id)
		return err
	}, `SELECT label, id FROM docs ORDER BY id`)
	return numbers, err
}

// Document returns a document; see [segments.Documents].
func (storedDocuments) Document(ctx context.Context, q database.Querier, number int64) (*segments.Document, error) {
	d := &segments.Document{Number: number}
	var size int64
	err := q.QueryRowContext(ctx, `SELECT text_size, label, title, filename, lang FROM docs WHERE id=?`, number).
		Scan(&size, &d.Label, &d.Title, &d.Filename, &d.Language)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if d.Text, err = window(ctx, q, number, 0, size); err != nil {
		return nil, err
	}
	d.Chunks, err = chunkList(ctx, q, number)
	d.Chunks = slices.DeleteFunc(d.Chunks, func(c document.Chunk) bool {
		return c.Offset < 0 || c.Length < 0 || c.Offset+c.Length > len(d.Text)
	})
	return d, err
}
