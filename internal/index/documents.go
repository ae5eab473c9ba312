package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"knowhow/internal/document"
)

// Numbers returns the numbers of up to n documents that are greater than after,
// in order.
func (x *Index) Numbers(ctx context.Context, after int64, n int) (numbers []int64, err error) {
	err = x.read(ctx, "listing documents", func(tx *sql.Tx) error {
		return collect(ctx, tx, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			numbers = append(numbers, id)
			return err
		}, `SELECT id FROM docs WHERE id>? ORDER BY id LIMIT ?`, after, n)
	})
	return numbers, err
}

// Document returns everything that is stored of the document with a number. The
// error is of kind NotFound if there is none.
func (x *Index) Document(ctx context.Context, number int64) (*document.Document, error) {
	var d *document.Document
	err := x.read(ctx, "reading a document", func(tx *sql.Tx) error {
		r, err := findRecord(ctx, tx, `d.id=?`, number)
		if err != nil {
			return err
		}
		d = &document.Document{
			ID: r.ID, Label: r.Label, Path: r.Path, FromSource: r.FromSource, SourcePath: r.SourcePath, Tags: append([]string{}, r.Tags...),
			Type: r.Type, Title: r.Title, Filename: r.Filename, Hash: r.Hash,
		}
		var modified sql.NullInt64
		var seconds, nanoseconds int64
		err = tx.QueryRowContext(ctx, `SELECT url, mimetype, filetype, lang, host, size, modified, stamp_size, stamp_sec, stamp_nsec FROM docs WHERE id=?`, number).
			Scan(&d.URL, &d.MIMEType, &d.FileType, &d.Lang, &d.Host, &d.Size, &modified, &d.Stamp.Size, &seconds, &nanoseconds)
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
		err = collect(ctx, tx, func(rows *sql.Rows) error {
			var p document.Page
			err := rows.Scan(&p.Offset, &p.Label)
			d.Pages = append(d.Pages, p)
			return err
		}, `SELECT off, label FROM pages WHERE doc=? ORDER BY off`, number)
		if err != nil {
			return err
		}
		return collect(ctx, tx, func(rows *sql.Rows) error {
			var c document.Chunk
			err := rows.Scan(&c.Offset, &c.Length, &c.Heading)
			d.Chunks = append(d.Chunks, c)
			return err
		}, `SELECT off, len, heading FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id`, rowOf(number, 0), rowOf(number, maxParts-1))
	})
	return d, err
}
