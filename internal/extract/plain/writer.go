package plain

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A Kind is a kind of block. Between blocks there is an empty line, except between
// two of the same kind other than a paragraph.
type Kind int

// The kinds of blocks.
const (
	Paragraph Kind = iota
	Item           // of a list
	TableRow
	Code // keeps its white space
)

// A Block is a paragraph or the like.
type Block struct {
	Kind  Kind
	Level int // of a heading, otherwise 0
	Text  string
}

// A Writer builds the text of a document from lines and blocks. It is used in one
// call only.
//
// Blocks are cleaned, and their length is limited, because their texts come from
// formats that can contain anything. Lines are parts of a text that is clean.
type Writer struct {
	Buf      []byte
	Headings []document.Heading
	Pages    []document.Page
	Lang     string // that the document declares; "" if unknown
	Breaks   int    // line ends before the next text, at most 2: more than one is an empty line
	Err      error  // of kind TooLarge: the first limit that was exceeded

	ctx   context.Context
	last  Kind // of the last block
	held  int  // bytes of the blocks that are not written yet
	ended int  // level of the terms of a definition list that ends before the next line, or 0
	term  int  // end of the text directly after a term, or 0
}

// NewWriter returns a writer that is used until ctx is done.
func NewWriter(ctx context.Context) *Writer { return &Writer{ctx: ctx} }

// ErrLong is the error for a document with more than MaxText bytes of text.
var ErrLong = fmt.Errorf("more than %d MiB of text: split it: %w", MaxText>>20, errkind.TooLarge)

// Fail records the first error.
func (w *Writer) Fail(err error) {
	if w.Err == nil {
		w.Err = err
	}
}

// Fits reports whether n more bytes fit, and records an error if not.
func (w *Writer) Fits(n int) bool {
	if len(w.Buf)+n > MaxText {
		w.Fail(ErrLong)
	}
	return w.Err == nil
}

// Break requests n line ends before the next text.
func (w *Writer) Break(n int) { w.Breaks = max(w.Breaks, n) }

// Blank requests an empty line before the next text.
func (w *Writer) Blank() { w.Breaks = 2 }

// Begin writes the line ends before the next text, without those that the text
// before it ends with.
func (w *Writer) Begin() {
	for i := len(w.Buf) - 1; i >= 0 && w.Buf[i] == '\n' && w.Breaks > 0; i-- {
		w.Breaks--
	}
	if len(w.Buf) > 0 {
		w.Buf = append(w.Buf, "\n\n"[:w.Breaks]...)
	}
	w.Breaks = 0
}

// write writes a text on lines of its own and returns its offset.
func (w *Writer) write(s string) int {
	w.Begin()
	at := len(w.Buf)
	w.Buf = append(w.Buf, s...)
	w.Breaks = 1
	return at
}

// Line adds a line and returns its offset. A line of white space is a blank one,
// of which several in succession become one; its offset is -1.
func (w *Writer) Line(line string) int {
	if line = strings.TrimRight(line, " \t"); line == "" {
		w.Blank()
		return -1
	}
	at := w.write(line)
	if w.ended > 0 {
		w.Mark(at, w.ended, "")
		w.ended = 0
	}
	return at
}

// Text adds the lines of s.
func (w *Writer) Text(s string) {
	for _, line := range Lines(w.ctx, s) {
		w.Line(line)
	}
}

// Heading adds a line that is a heading, with blank lines around it.
func (w *Writer) Heading(level int, text string) {
	if text = OneLine(text); text == "" {
		return
	}
	w.Blank()
	w.ended = 0
	w.Mark(w.Line(text), min(level, document.TermLevel-1), text)
	w.Blank()
}

// Term adds a line that is a term of a definition list. depth is as in
// [Writer.MarkTerm].
func (w *Writer) Term(depth int, text string) {
	if text = OneLine(text); depth > maxDepth || !IsTerm(text) {
		w.Line(text)
		return
	}
	w.ended = 0
	if w.term > 0 && w.term == len(w.Buf) {
		w.Breaks = 1
	}
	w.MarkTerm(w.Line(text), depth, text)
}

// maxTerms is the number of bytes of the heading for successive terms that share
// their text.
const maxTerms = 120

// maxDepth is the greatest depth of lists whose terms are headings.
const maxDepth = document.NestedTermLevel - document.TermLevel

// MarkTerm records that the end of the text, from at on, is a term of a definition
// list. Terms without a text between them are one heading. depth is the number of
// terms whose text the list is a part of; from 2 on, a term is no heading.
func (w *Writer) MarkTerm(at, depth int, text string) {
	if depth > maxDepth {
		return
	}
	level, next := document.TermLevel+depth, w.term > 0 && w.term == len(bytes.TrimRight(w.Buf[:at], "\n"))
	w.term = len(w.Buf)
	if n := len(w.Headings); next && n > 0 {
		if h := &w.Headings[n-1]; h.Level == level && len(h.Text)+len(", ")+len(text) <= maxTerms {
			h.Text += ", " + text
			return
		}
	}
	w.Mark(at, level, text)
}

// IsTerm reports whether a tag of a list is a term: neither a bullet nor a number in
// a sequence.
func IsTerm(s string) bool {
	switch s {
	case "", "*", "-", "+", "o", "•", "·", "–", "—", "◦", "▪", "●":
		return false
	}
	if len(s) > len("(10)") || !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, ")") {
		return true
	}
	return strings.Trim(s, "(.)0123456789") != "" && len(strings.Trim(s, "(.)")) > 1
}

// EndTerms ends a definition list before the next line. depth is as in [Writer.Term].
func (w *Writer) EndTerms(depth int) {
	if level := document.TermLevel + depth; depth <= maxDepth && (w.ended == 0 || level < w.ended) {
		w.ended = level
	}
}

// Mark records a heading; see [Text.Mark].
func (w *Writer) Mark(offset, level int, text string) {
	w.Headings = mark(w.Headings, offset, level, text)
}

// Part adds the lines of another text with its headings, whose levels are increased
// by deeper.
func (w *Writer) Part(t *Text, deeper int) {
	next := 0
	for off, line := range Lines(w.ctx, t.Body) {
		at := w.Line(line)
		for ; next < len(t.Headings) && t.Headings[next].Offset <= off+len(line); next++ {
			h := t.Headings[next]
			if h.Offset < off || at < 0 {
				continue
			}
			if h.Level < document.TermLevel {
				h.Level = min(h.Level+deeper, document.TermLevel-1)
			}
			w.Mark(min(at+h.Offset-off, len(w.Buf)), h.Level, h.Text)
		}
	}
}

// Block adds a block and returns the offset of its first byte. A blank block is
// left out; its offset is -1.
func (w *Writer) Block(kind Kind, s string) int {
	s = w.clean(s)
	if kind == Code {
		s = strings.TrimRight(s, " \t\n")
	} else {
		s = strings.TrimRight(s, " \t\n\u00a0")
		s = strings.TrimLeft(s, "\n")
		if kind != Item {
			s = strings.TrimLeft(s, " \t\u00a0")
		}
	}
	if strings.TrimSpace(s) == "" || !w.Fits(len(s)) {
		return -1
	}
	if kind != w.last || kind == Paragraph {
		w.Blank()
	}
	w.last = kind
	return w.write(s)
}

func (w *Writer) clean(s string) string { return strings.ToValidUTF8(Clean(w.ctx, s), "\ufffd") }

// MarkBlock records that the block at an offset, which is -1 if it was left out, is
// a heading.
func (w *Writer) MarkBlock(level, at int, s string) {
	if at >= 0 {
		w.Mark(at, min(level, document.TermLevel-1), OneLine(w.clean(s)))
	}
}

// Put adds a block, to list if it is not nil: blocks of a cell, a note or a slide
// are not written yet.
func (w *Writer) Put(b Block, list *[]Block) {
	switch {
	case list == nil && b.Level > 0:
		s := OneLine(b.Text)
		w.MarkBlock(b.Level, w.Block(Paragraph, s), s)
	case list == nil:
		w.Block(b.Kind, b.Text)
	case strings.TrimSpace(b.Text) != "" && w.Hold(len(b.Text)):
		*list = append(*list, b)
	}
}

// Hold reports whether a text of n bytes that is not written yet may be kept, and
// records an error if not.
func (w *Writer) Hold(n int) bool {
	const size = 48 // of a Block
	if w.held += size + n; w.held > MaxText {
		w.Fail(ErrLong)
		return false
	}
	return true
}

// JoinBlocks joins the texts of blocks.
func JoinBlocks(list []Block, separator string) string {
	texts := make([]string, len(list))
	for i, b := range list {
		texts[i] = strings.TrimSpace(b.Text)
	}
	return strings.Join(texts, separator)
}

// Finish moves the text to t.
func (w *Writer) Finish(t *Text) {
	t.Body, t.Headings, t.Pages = strings.TrimRight(string(w.Buf), " \t\n"), w.Headings, w.Pages
	if w.Lang != "" {
		t.Lang = w.Lang
	}
}
