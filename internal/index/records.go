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
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
)

const recordColumns = `d.id, d.doc_id, d.label, d.path, d.from_source, d.source_path, d.type, d.title, d.filename,
	d.hash, d.text_size, d.created, d.updated,
	(SELECT json_group_array(t.name) FROM doc_tags dt JOIN tags t ON t.id=dt.tag WHERE dt.doc=d.id)`

// scanRecord reads the columns recordColumns.
func scanRecord(scan func(...any) error) (*document.Record, error) {
	r := &document.Record{}
	var created, updated int64
	var tags []byte
	err := scan(&r.Number, &r.ID, &r.Label, &r.Path, &r.FromSource, &r.SourcePath, &r.Type, &r.Title, &r.Filename,
		&r.Hash, &r.TextSize, &created, &updated, &tags)
	if err != nil {
		return nil, err
	}
	r.Created, r.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	if err := json.Unmarshal(tags, &r.Tags); err != nil {
		return nil, err
	}
	slices.Sort(r.Tags)
	return r, nil
}

// Record returns the document with a number. The error is of kind NotFound if
// there is none.
func (x *Index) Record(ctx context.Context, number int64) (*document.Record, error) {
	return x.record(ctx, `d.id=?`, number)
}

// RecordOf returns the document with an ID. The error is of kind NotFound if
// there is none.
func (x *Index) RecordOf(ctx context.Context, id string) (*document.Record, error) {
	return x.record(ctx, `d.doc_id=?`, id)
}

func (x *Index) record(ctx context.Context, where string, value any) (*document.Record, error) {
	var record *document.Record
	err := x.db.Read(ctx, "reading a document", func(tx *sql.Tx) error {
		var err error
		record, err = findRecord(ctx, tx, where, value)
		return err
	})
	return record, err
}

func findRecord(ctx context.Context, q database.Querier, where string, value any) (*document.Record, error) {
	r, err := scanRecord(q.QueryRowContext(ctx, `SELECT `+recordColumns+` FROM docs d WHERE `+where, value).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("document %v does not exist: %w", value, errkind.NotFound)
	}
	return r, err
}

// Records returns the documents that a filter selects, the newest first, and how
// many there are without Limit and Offset.
func (x *Index) Records(
	ctx context.Context, f document.RecordFilter,
) (records []document.Record, total int, err error) {
	where, args := conditions{labels: f.Labels, tags: f.Tags, written: f.Written}.where()
	if f.SourcePath != "" {
		where += ` AND d.source_path=?`
		args = append(args, f.SourcePath)
	}
	err = x.db.Read(ctx, "listing documents", func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM docs d WHERE `+where,
			args...).Scan(&total); err != nil {
			return err
		}
		return database.Collect(ctx, tx, func(rows *sql.Rows) error {
			r, err := scanRecord(rows.Scan)
			if err == nil {
				records = append(records, *r)
			}
			return err
		}, `SELECT `+recordColumns+` FROM docs d WHERE `+where+`
			ORDER BY d.id DESC LIMIT ? OFFSET ?`, append(args, f.Limit, f.Offset)...)
	})
	return records, total, err
}

// Chunks returns a document with how many chunks it has, and the texts of those
// from from up to but not including to, in order. The error is of kind NotFound
// if there is no such document.
func (x *Index) Chunks(ctx context.Context, number int64, from, to int) (
	record *document.Record, chunks []string, total int, err error) {
	err = x.db.Read(ctx, "reading a document", func(tx *sql.Tx) error {
		var err error
		if record, err = findRecord(ctx, tx, `d.id=?`, number); err != nil {
			return err
		}
		first := rowOf(number, 0)
		err = tx.QueryRowContext(ctx, `SELECT coalesce(max(id)-?+1, 0) FROM chunks WHERE id BETWEEN ? AND ?`,
			first, first, rowOf(number, maxParts-1)).Scan(&total)
		if err != nil {
			return err
		}
		wrong := fmt.Errorf("a chunk of document %d is not in its text: %w", number, errkind.Corrupt)
		var extents []document.Chunk
		begin, end := record.TextSize, int64(0)
		err = database.Collect(ctx, tx, func(rows *sql.Rows) error {
			var off, n int64
			if err := rows.Scan(&off, &n); err != nil {
				return err
			}
			if off < 0 || n < 0 || off > record.TextSize || n > record.TextSize-off {
				return wrong
			}
			begin, end = min(begin, off), max(end, off+n)
			extents = append(extents, document.Chunk{Offset: int(off), Length: int(n)})
			return nil
		}, `SELECT off, len FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id`,
			first+int64(from), first+int64(min(to, total))-1)
		if err != nil {
			return err
		}
		text, err := window(ctx, tx, number, begin, end)
		if err != nil {
			return err
		}
		if begin < end && int64(len(text)) < end-begin {
			return wrong
		}
		for _, e := range extents {
			chunks = append(chunks, text[e.Offset-int(begin):][:e.Length])
		}
		return nil
	})
	return record, chunks, total, err
}

// CountTypes returns how many documents with one of the labels (nil: any) there
// are by type. Of the labels in written, only those that users wrote count.
func (x *Index) CountTypes(ctx context.Context, labels, written []string) (counts map[string]int, err error) {
	where, args := conditions{labels: labels, written: written}.where()
	err = x.db.Read(ctx, "counting documents", func(tx *sql.Tx) (err error) {
		counts, err = database.Map[string, int](ctx, tx,
			`SELECT d.type, count(*) FROM docs d WHERE `+where+` GROUP BY d.type`, args...)
		return err
	})
	return counts, err
}
