package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/klauspost/compress/s2"

	"knowhow/internal/document"
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

// minPacked is how many bytes a part of a text has at least that is compressed.
// Less would hardly become smaller.
const minPacked = 1 << 10

// packText returns what is stored of a part of a text: the compressed bytes and
// the size of the part, or 0 and the part.
func packText(part string) (size int, body []byte) {
	body = []byte(part)
	if len(body) < minPacked {
		return 0, body
	}
	packed := s2.EncodeBetter(nil, body)
	if len(packed) > len(body)*7/8 {
		return 0, body
	}
	return len(body), packed
}

// unpackText is the inverse of packText. The result shares memory with body, or
// with buffer if that is large enough.
func unpackText(buffer []byte, size int, body []byte) ([]byte, error) {
	if size == 0 {
		return body, nil
	}
	n, err := s2.DecodedLen(body)
	if err == nil && (n != size || n > textPart) {
		err = fmt.Errorf("it has %d bytes instead of %d", n, size)
	}
	if err == nil {
		body, err = s2.Decode(buffer, body)
	}
	if err != nil {
		return nil, fmt.Errorf("a stored text is damaged: index its document again, or restore a backup: %v: %w", err, errkind.Corrupt)
	}
	return body, nil
}

// window returns the bytes of a document's text from from up to but not
// including to. Bounds beyond the text are reduced to its length.
func window(ctx context.Context, q querier, doc, from, to int64) (string, error) {
	if n := from / textPart; from < to && n < maxParts && to <= (n+1)*textPart { // mostly
		var size int
		var body []byte
		err := q.QueryRowContext(ctx, partQuery, rowOf(doc, int(n))).Scan(&size, &body)
		if err == nil {
			body, err = unpackText(nil, size, body)
		}
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return string(part(body, from-n*textPart, to-n*textPart)), err
	}
	p := []piece{{doc: doc, from: from, to: to}}
	err := readPieces(ctx, q, p)
	return string(p[0].text), err
}

const partQuery = `SELECT size, body FROM texts WHERE id=?`

// part returns b[from:to], of which bounds outside b are moved to its ends.
func part(b []byte, from, to int64) []byte {
	to = min(to, int64(len(b)))
	from = max(from, 0)
	return b[min(from, to):to]
}

// A piece is the bytes of a document's text from from up to but not including
// to.
type piece struct {
	doc, from, to int64
	text          []byte // before from; readPieces adds the rest
}

// readPieces reads the texts of pieces of different documents. Bounds beyond a
// text are reduced to its length.
func readPieces(ctx context.Context, q querier, pieces []piece) error {
	var parts []int64
	of := make(map[int64]*piece, len(pieces))
	for i := range pieces {
		p := &pieces[i]
		of[p.doc] = p
		for n := p.from / textPart; p.from < p.to && n < maxParts && n*textPart < p.to; n++ {
			parts = append(parts, rowOf(p.doc, int(n)))
		}
	}
	if parts == nil {
		return nil
	}
	buffer := make([]byte, textPart)
	return collect(ctx, q, func(rows *sql.Rows) error {
		var id int64
		var size int
		var body sql.RawBytes
		if err := rows.Scan(&id, &size, &body); err != nil {
			return err
		}
		text, err := unpackText(buffer, size, body)
		if err != nil {
			return err
		}
		p := of[id>>chunkBits]
		before := id & (maxParts - 1) * textPart // bytes before this part of the text
		p.text = append(p.text, part(text, p.from-before, p.to-before)...)
		return nil
	}, partsQuery, jsonList(parts))
}

const partsQuery = `SELECT t.id, t.size, t.body FROM json_each(?) j CROSS JOIN texts t ON t.id=j.value`
