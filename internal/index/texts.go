package index

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/klauspost/compress/s2"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// ReadText returns a window on a document's text; see [search.Service]. A
// window that would begin inside a character begins behind it.
func (x *Index) ReadText(ctx context.Context, id string, labels []string, off int64, n int) (*search.Text, error) {
	t := search.Text{DocID: id, Offset: max(off, 0)}
	n = max(n, 0)
	err := x.db.Read(ctx, "reading a text", func(tx *sql.Tx) error {
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

// textBlock is how many bytes of a part of a text are compressed together. With
// 32 KiB, texts would take a sixth less space, and each chunk four times as long
// to read.
const textBlock = 8 << 10

// packText returns what is stored of a part of a text: the compressed bytes and
// the size of the part, or 0 and the part. The compressed bytes begin with the
// compressed sizes of the blocks, two bytes each, little endian.
func packText(part string) (size int, body []byte) {
	if len(part) < minPacked {
		return 0, []byte(part)
	}
	var blocks []byte
	for begin := 0; begin < len(part); begin += textBlock {
		block := s2.EncodeBetter(nil, []byte(part[begin:min(begin+textBlock, len(part))]))
		body = binary.LittleEndian.AppendUint16(body, uint16(len(block)))
		blocks = append(blocks, block...)
	}
	if body = append(body, blocks...); len(body) > len(part)*7/8 {
		return 0, []byte(part)
	}
	return len(part), body
}

// appendText appends the bytes from from up to but not including to of a stored
// part of a text; see packText. Bounds outside the part are moved to its ends.
func appendText(text []byte, size int, body []byte, from, to int64) ([]byte, error) {
	from, to = max(from, 0), max(to, 0)
	if size == 0 {
		return append(text, part(body, from, to)...), nil
	}
	text, err := appendBlocks(text, size, body, from, to)
	if err != nil {
		return nil, fmt.Errorf("a stored text is damaged: index its document again, or restore a backup: %v: %w", err,
			errkind.Corrupt)
	}
	return text, nil
}

// appendBlocks is appendText for a compressed part. It unpacks only the blocks
// that it needs.
func appendBlocks(text []byte, size int, body []byte, from, to int64) ([]byte, error) {
	count := (size + textBlock - 1) / textBlock
	if size < 0 || size > textPart || len(body) < 2*count {
		return nil, fmt.Errorf("%d bytes cannot be a part of %d", len(body), size)
	}
	sizes, blocks := body[:2*count], body[2*count:]
	for n := range count {
		packed := int(binary.LittleEndian.Uint16(sizes[2*n:]))
		if packed > len(blocks) || n == count-1 && packed < len(blocks) {
			return nil, fmt.Errorf("block %d has %d bytes of %d", n, packed, len(blocks))
		}
		var block []byte
		block, blocks = blocks[:packed], blocks[packed:]
		begin, length := int64(n*textBlock), min(textBlock, size-n*textBlock)
		if to <= begin || from >= begin+int64(length) {
			continue
		}
		if got, err := s2.DecodedLen(block); err != nil || got != length {
			return nil, fmt.Errorf("block %d has %d bytes instead of %d: %v", n, got, length, err)
		}
		text = slices.Grow(text, length)
		unpacked, err := s2.Decode(text[len(text):len(text)+length], block)
		if err != nil {
			return nil, err
		}
		text = append(text, part(unpacked, from-begin, to-begin)...) // within text
	}
	return text, nil
}

// window returns the bytes of a document's text from from up to but not
// including to. Bounds beyond the text are reduced to its length.
func window(ctx context.Context, q database.Querier, doc, from, to int64) (string, error) {
	if n := from / textPart; from < to && n < maxParts && to <= (n+1)*textPart { // mostly
		var size int
		var body []byte
		err := q.QueryRowContext(ctx, partQuery, rowOf(doc, int(n))).Scan(&size, &body)
		if errors.Is(err, sql.ErrNoRows) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		text, err := appendText(nil, size, body, from-n*textPart, to-n*textPart)
		return string(text), err
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

// readPieces reads the texts of pieces. Bounds beyond a text are reduced to its
// length.
func readPieces(ctx context.Context, q database.Querier, pieces []piece) error {
	var parts []int64
	of := make(map[int64][]*piece, len(pieces)) // by part
	for i := range pieces {
		p := &pieces[i]
		for n := max(p.from, 0) / textPart; p.from < p.to && n < maxParts && n*textPart < p.to; n++ {
			row := rowOf(p.doc, int(n))
			if of[row] == nil {
				parts = append(parts, row)
			}
			of[row] = append(of[row], p)
		}
	}
	if parts == nil {
		return nil
	}
	slices.Sort(parts) // a piece is made of parts in their order
	return database.Collect(ctx, q, func(rows *sql.Rows) error {
		var id int64
		var size int
		var body sql.RawBytes
		if err := rows.Scan(&id, &size, &body); err != nil {
			return err
		}
		before := id & (maxParts - 1) * textPart // bytes before this part of the text
		for _, p := range of[id] {
			var err error
			if p.text, err = appendText(p.text, size, body, p.from-before, p.to-before); err != nil {
				return err
			}
		}
		return nil
	}, partsQuery, database.List(parts))
}

const partsQuery = `SELECT t.id, t.size, t.body FROM json_each(?) j CROSS JOIN texts t ON t.id=j.value`
