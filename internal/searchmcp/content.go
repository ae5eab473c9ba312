package searchmcp

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"knowhow/internal/chunk"
	"knowhow/internal/errkind"
	"knowhow/internal/job"
	"knowhow/internal/search"
)

// A piece is one chunk of a document's text. It is the result of the
// read_content tool.
type piece struct {
	DocID      string `json:"doc_id"`
	URL        string `json:"url"`
	Hash       string `json:"hash"` // of the whole text
	*position         // nil for a Fess server
	Text       string `json:"text"`
	NextCursor string `json:"nextCursor,omitempty"` // "" for the last one
	IsLast     bool   `json:"isLast"`

	offset int64
	stamp  string // of the document when it was read; "" if the service has the text
}

// A position is where a piece begins.
type position struct {
	Offset  int64  `json:"offset"`            // in bytes of the whole text
	Heading string `json:"heading,omitempty"` // path of the headings above
}

// A part is a part of a document's text.
type part struct {
	id    string
	from  place
	end   int64 // before which the part ends, in bytes; 0 means the end of the text
	chars int   // maximum number of characters; 0 means any
}

// stillCurrent returns shared, a *piece or *pieceContents that was read before,
// if the document still belongs to the domain and has not changed since. It
// returns nil if the document has changed.
func (b *bridge) stillCurrent(ctx context.Context, id string, shared any) (any, error) {
	h, err := b.find(ctx, id)
	if err != nil {
		return nil, err
	}
	p, _ := shared.(*piece)
	if c, ok := shared.(*pieceContents); ok {
		p = c.piece
	}
	if h.TextHash == p.Hash || h.TextHash == "" && p.stamp == stampOf(h) {
		return shared, nil
	}
	return nil, nil
}

// stampOf returns the metadata of a document that changes with its text.
func stampOf(h *search.Hit) string {
	return fmt.Sprint(h.URL, h.Timestamp, h.Modified, h.Size)
}

// textPlace returns the place of a cursor in a document's text. The cursor ""
// is the beginning of the text, which has no mark.
func (b *bridge) textPlace(id, at string) (place, error) {
	if at == "" {
		return place{}, nil
	}
	return parseCursor(at, textCursor, b.textScope(id))
}

// readPiece returns the chunk of a document's text that begins at a place.
func (b *bridge) readPiece(ctx context.Context, id string, from place, report job.Report) (*piece, error) {
	return b.readPart(ctx, part{id: id, from: from}, report)
}

// readPart returns the first chunk of a part of a document's text. Chunks are at
// most maxChunkBytes long and follow one another without a gap. Places count the
// bytes of the text before invisible characters are removed from it.
func (b *bridge) readPart(ctx context.Context, wanted part, report job.Report) (*piece, error) {
	id, from := wanted.id, wanted.from
	t, stamp, err := b.window(ctx, id, from, report)
	if err != nil {
		return nil, err
	}
	if from.mark != nil && !from.isIn(t.Hash) {
		b.changes.Add(1)
		return nil, fmt.Errorf("%w: document %q changed since the first chunk; read it again without a cursor", errkind.Conflict, id)
	}
	if from.mark == nil && from.offset > t.Size {
		return nil, &errkind.Argument{Name: "from", Value: from.offset, Want: fmt.Sprintf("an offset in the text, which has %d bytes", t.Size)}
	}
	toEnd := t.Offset+int64(len(t.Window)) >= t.Size // t.Offset is above from.offset if that is inside of a character
	if t.Window == "" && !toEnd {
		return nil, fmt.Errorf("reading document %s: no text at byte %d of %d", id, from.offset, t.Size)
	}
	n := wanted.cut(t, b.maxChunkBytes, toEnd)
	if n > 1 && (n < len(t.Window) || !toEnd) && t.Window[n-1] == '\r' {
		n-- // not between the two characters of a line end
	}
	next := t.Offset + int64(n)
	p := &piece{
		DocID:  id,
		URL:    link(t.URL),
		Hash:   t.Hash,
		Text:   textOf(t.Window[:n]),
		IsLast: next >= t.Size,
		offset: t.Offset,
		stamp:  stamp,
	}
	if !p.IsLast {
		p.NextCursor = cursor{kind: textCursor, scope: b.textScope(id), mark: t.Hash, offset: next}.String()
	}
	return p, nil
}

// cut returns how many bytes of a window the first chunk of the part has, at
// most limit. toEnd reports whether the window extends to the end of the text.
func (p part) cut(t *search.Text, limit int, toEnd bool) int {
	window := t.Window
	if p.end > 0 && p.end <= t.Offset+int64(len(window)) {
		window, toEnd = window[:max(p.end-t.Offset, 0)], true
	}
	if p.chars > 0 {
		limit = min(limit, prefixLen(window, p.chars))
	}
	if limit < utf8.UTFMax { // chunk.Cut returns at least one character of any size
		return limit
	}
	return chunk.Cut(window, limit, toEnd)
}

// prefixLen returns the length of the first n characters of s in bytes.
func prefixLen(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

func (b *bridge) textScope(id string) string { return b.domain.ID + "/" + id }

// window returns the text from a place on, as much as a chunk may need: from
// the cached texts if the cursor refers to one, otherwise from the service,
// otherwise from a stored copy or the document's URL. In each case it first
// checks that the document belongs to the domain. The second result is the
// document's stamp; it is "" if the service has the text.
func (b *bridge) window(ctx context.Context, id string, from place, report job.Report) (*search.Text, string, error) {
	if t := b.texts.get(id); t != nil && from.mark != nil && from.isIn(t.hash) {
		h, err := b.find(ctx, id)
		if err != nil {
			return nil, "", err
		}
		return t.window(h, from.offset, b.maxChunkBytes), stampOf(h), nil
	}
	found, err := b.backend.ReadText(ctx, id, b.labels, from.offset, b.maxChunkBytes)
	if err == nil {
		return found, "", nil
	}
	if _, remote := errors.AsType[*errkind.Remote](err); remote || b.content == nil || !errors.Is(err, errkind.Unsupported) {
		return nil, "", b.unknown(id, err)
	}
	h, err := b.find(ctx, id)
	if err != nil {
		return nil, "", err
	}
	t, err := b.acquire(ctx, h, report)
	if err != nil {
		return nil, "", err
	}
	report(progressChunking, progressTotal, phaseChunking)
	return t.window(h, from.offset, b.maxChunkBytes), stampOf(h), nil
}

// window returns at most n bytes of the text from byte off on, without
// splitting a rune.
func (t *cachedText) window(h *search.Hit, off int64, n int) *search.Text {
	w := &search.Text{DocID: t.id, URL: h.URL, Hash: t.hash, Size: int64(len(t.text)), Offset: off}
	if off >= w.Size {
		return w
	}
	rest := t.text[off:]
	end := min(n, len(rest))
	for end > 0 && end < len(rest) && !utf8.RuneStart(rest[end]) {
		end--
	}
	w.Window = rest[:end]
	return w
}
