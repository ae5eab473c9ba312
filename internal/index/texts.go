package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"knowhow/internal/document"
	"knowhow/internal/search"
)

// ReadText returns a window on a document's text; see [search.Service]. A
// window that would begin inside a character begins behind it.
func (x *Index) ReadText(ctx context.Context, id string, labels []string, off int64, n int) (*search.Text, error) {
	t := search.Text{DocID: id, Offset: max(off, 0)}
	n = max(n, 0)
	err := x.read(ctx, "reading a text", func(tx *sql.Tx) error {
		var doc int64
		var label string
		err := tx.QueryRowContext(ctx, `SELECT id, label, url, hash, text_size FROM docs WHERE doc_id=?`, id).
			Scan(&doc, &label, &t.URL, &t.Hash, &t.Size)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !admits(labels, label) {
			return document.Missing(id)
		}
		if err != nil || t.Offset >= t.Size || n == 0 {
			return err
		}
		end := t.Size
		if int64(n) < t.Size-t.Offset {
			end = t.Offset + int64(n)
		}
		// One more byte shows whether the window ends at a rune border.
		w, err := window(ctx, tx, doc, t.Offset, min(end+1, t.Size))
		if err != nil {
			return err
		}
		t.Window = w
		return nil
	})
	if err != nil {
		return nil, err
	}
	w := document.Truncate(t.Window, n)
	begin := 0
	for begin < len(w) && !utf8.RuneStart(w[begin]) {
		begin++
	}
	t.Window, t.Offset = w[begin:], t.Offset+int64(begin)
	return &t, nil
}

// admits reports whether label is in labels; nil labels contain all.
func admits(labels []string, label string) bool {
	return labels == nil || slices.Contains(labels, label)
}

// window returns the bytes of a document's text from from up to but not
// including to. Bounds beyond the text are reduced to its length.
func window(ctx context.Context, q querier, doc, from, to int64) (string, error) {
	if n := from / textPart; from < to && n < maxParts && to <= (n+1)*textPart { // mostly
		var part string
		err := q.QueryRowContext(ctx, partQuery, from-n*textPart+1, to-from, rowOf(doc, int(n))).Scan(&part)
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return part, err
	}
	p := []piece{{doc: doc, from: from, to: to}}
	err := readPieces(ctx, q, p)
	return string(p[0].text), err
}

const partQuery = `SELECT substr(body, ?, ?) FROM texts WHERE id=?`

// A piece is the bytes of a document's text from from up to but not including
// to.
type piece struct {
	doc, from, to int64
	text          []byte // set by readPieces
}

// readPieces reads the texts of pieces of different documents. Bounds beyond a
// text are reduced to its length.
func readPieces(ctx context.Context, q querier, pieces []piece) error {
	var parts []byte // for each part of a text: its row, where to begin in it, and how many bytes
	of := make(map[int64]*piece, len(pieces))
	for i := range pieces {
		p := &pieces[i]
		of[p.doc] = p
		for n := p.from / textPart; n < maxParts && n*textPart < p.to; n++ {
			from, to := max(p.from-n*textPart, 0), min(p.to-n*textPart, textPart)
			parts = fmt.Appendf(parts, ",[%d,%d,%d]", rowOf(p.doc, int(n)), from, to-from)
		}
	}
	if parts == nil {
		return nil
	}
	parts[0] = '['
	return collect(ctx, q, func(rows *sql.Rows) error {
		var id int64
		var part sql.RawBytes
		if err := rows.Scan(&id, &part); err != nil {
			return err
		}
		p := of[id>>chunkBits]
		p.text = append(p.text, part...)
		return nil
	}, partsQuery, string(append(parts, ']')))
}

const partsQuery = `SELECT t.id, substr(t.body, j.value->>1 + 1, j.value->>2)
	FROM json_each(?) j CROSS JOIN texts t ON t.id=j.value->>0`
