package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"unicode/utf8"

	"knowhow/internal/errkind"
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
			return noDocument(id)
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
	w := cutBytes(t.Window, n)
	begin := 0
	for begin < len(w) && !utf8.RuneStart(w[begin]) {
		begin++
	}
	t.Window, t.Offset = w[begin:], t.Offset+int64(begin)
	return &t, nil
}

// noDocument returns the error for a document that does not exist or that the
// caller may not see.
func noDocument(id string) error {
	if len(id) > 80 {
		id = cutBytes(id, 80) + "…"
	}
	return fmt.Errorf("document %q does not exist, or has none of the labels asked for: %w", id, errkind.NotFound)
}

// admits reports whether label is in labels; nil labels contain all.
func admits(labels []string, label string) bool {
	if labels == nil {
		return true
	}
	for _, l := range labels {
		if l == label {
			return true
		}
	}
	return false
}

// cutBytes returns at most the first n bytes of s, cut at a rune border.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// window returns the bytes of a document's text from from up to but not
// including to. Bounds beyond the text are reduced to its length.
func window(ctx context.Context, q querier, doc, from, to int64) (string, error) {
	p := []piece{{doc: doc, from: from, to: to}}
	err := readPieces(ctx, q, p)
	return string(p[0].text), err
}

// A piece is the bytes of a document's text from from up to but not including
// to.
type piece struct {
	doc, from, to int64
	text          []byte
}

// parts returns the numbers of the first and the last part of the text that the
// piece needs. ok is false if it needs none.
func (p *piece) parts() (first, last int64, ok bool) {
	return p.from / textPart, min((p.to-1)/textPart, maxParts-1), p.from < p.to
}

// readPieces reads the texts of pieces of different documents. Bounds beyond a
// text are reduced to its length.
func readPieces(ctx context.Context, q querier, pieces []piece) error {
	var ranges []byte
	of := make(map[int64]*piece, len(pieces))
	for i := range pieces {
		p := &pieces[i]
		of[p.doc] = p
		if first, last, ok := p.parts(); ok {
			ranges = fmt.Appendf(ranges, ",[%d,%d]", rowOf(p.doc, int(first)), rowOf(p.doc, int(last)))
		}
	}
	if ranges == nil {
		return nil
	}
	ranges[0] = '['
	return collect(ctx, q, func(rows *sql.Rows) error {
		var id int64
		var part sql.RawBytes
		if err := rows.Scan(&id, &part); err != nil {
			return err
		}
		p := of[id>>chunkBits]
		start := (id & (maxParts - 1)) * textPart // of the part in the text
		from, to := min(max(p.from-start, 0), int64(len(part))), min(p.to-start, int64(len(part)))
		p.text = append(p.text, part[from:to]...)
		return nil
	}, partsQuery, string(append(ranges, ']')))
}

const partsQuery = `SELECT t.id, t.body FROM json_each(?) j CROSS JOIN texts t
	ON t.id BETWEEN json_extract(j.value, '$[0]') AND json_extract(j.value, '$[1]')`
