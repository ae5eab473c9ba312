package fessmcp

import (
	"context"
	"fmt"
	"strings"

	"knowhow/internal/chunk"
	"knowhow/internal/errkind"
)

// A piece is one chunk of a document's text, and the read_content tool's
// answer.
type piece struct {
	DocID      string `json:"doc_id"`
	URL        string `json:"url"`
	Hash       string `json:"hash"` // of the whole text
	Text       string `json:"text"`
	NextCursor string `json:"nextCursor,omitempty"` // "" on the last one
	IsLast     bool   `json:"isLast"`
}

// readPiece returns the chunk of a document's text at which the cursor stands,
// "" for the first. Chunks are at most maxChunkBytes long and follow one
// another without a gap; NUL bytes are left out of what is shown.
func (b *bridge) readPiece(ctx context.Context, id, at string) (*piece, error) {
	var from place
	if at != "" {
		var err error
		if from, err = parseCursor(at, textCursor, b.textScope(id)); err != nil {
			return nil, err
		}
	}
	t, err := b.backend.ReadText(ctx, id, b.labels, from.offset, b.maxChunkBytes)
	if err != nil {
		return nil, b.unknown(id, err)
	}
	if at != "" && !from.isIn(t.Hash) {
		return nil, fmt.Errorf("%w: document %q changed since the first chunk; read it again without a cursor", errkind.Conflict, id)
	}
	toEnd := from.offset+int64(len(t.Window)) >= t.Size
	if t.Window == "" && !toEnd {
		return nil, fmt.Errorf("reading document %s: no text at byte %d of %d", id, from.offset, t.Size)
	}
	n := chunk.Cut(t.Window, b.maxChunkBytes, toEnd)
	next := from.offset + int64(n)
	p := &piece{
		DocID:  id,
		URL:    link(t.URL),
		Hash:   t.Hash,
		Text:   strings.ReplaceAll(t.Window[:n], "\x00", ""),
		IsLast: next >= t.Size,
	}
	if !p.IsLast {
		p.NextCursor = cursor{kind: textCursor, scope: b.textScope(id), mark: t.Hash, offset: next}.String()
	}
	return p, nil
}

func (b *bridge) textScope(id string) string { return b.domain.ID + "/" + id }
