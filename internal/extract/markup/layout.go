package markup

import (
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// A layout writes the text of a page: white space is collapsed as in a browser,
// blocks are separated by an empty line, cells by a tab. White space is only
// written before the text that follows it.
type layout struct {
	plain.Writer
	tabs  int  // before the next text
	space bool // a blank before the next text
	ended bool // this blank is the end of a line

	inRow     bool // a cell of the current row has begun
	cellFresh bool // the current cell has no text yet
	pre       int  // open preformatted elements
	preFresh  bool // the newline directly after <pre> is ignored (HTML 13.1.2.5)
}

// write adds text and returns the offset of its first byte that is not white
// space, or -1 if there is none.
func (w *layout) write(b []byte) int {
	first := -1
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == '\n' && w.pre > 0:
			if !w.preFresh {
				w.flush()
				w.Buf = append(w.Buf, '\n')
			}
		case r == '\t' && w.pre > 0:
			w.flush()
			w.Buf = append(w.Buf, '\t')
		case (r == ' ' || r == '\u00a0') && w.pre > 0:
			w.flush()
			w.Buf = append(w.Buf, ' ')
		case unicode.IsSpace(r):
			w.space, w.ended = true, w.ended || r == '\n'
		case plain.IsControl(r):
		default:
			if w.ended && plain.IsCJK(r) { // as in browsers
				last, _ := utf8.DecodeLastRune(w.Buf)
				w.space = !plain.IsCJK(last)
			}
			w.flush()
			if first < 0 {
				first = len(w.Buf)
			}
			w.Buf = utf8.AppendRune(w.Buf, r) // an invalid byte becomes U+FFFD
		}
		if r != '\r' {
			w.preFresh = false
		}
		b = b[n:]
	}
	return first
}

// flush writes the pending white space.
func (w *layout) flush() {
	switch {
	case len(w.Buf) == 0:
		w.Breaks = 0
	case w.Breaks > 0 || w.tabs > 0:
		w.Begin()
		for ; w.tabs > 0; w.tabs-- {
			w.Buf = append(w.Buf, '\t')
		}
	case w.space:
		if last := w.Buf[len(w.Buf)-1]; last != ' ' && last != '\n' {
			w.Buf = append(w.Buf, ' ')
		}
	}
	w.tabs, w.space, w.ended, w.cellFresh = 0, false, false, false
}

// breakLine requests n newlines before the next text. At the start of a table
// cell it does nothing, so that <td><p> stays in its row.
func (w *layout) breakLine(n int) {
	if !w.cellFresh {
		w.Break(n)
	}
}

// lineBreak handles <br>. Two in succession make an empty line.
func (w *layout) lineBreak() {
	if !w.cellFresh {
		w.Breaks = min(w.Breaks+1, 2)
	}
}

// row begins or ends a table row.
func (w *layout) row() {
	w.cellFresh, w.inRow, w.tabs = false, false, 0
	w.Break(1)
}

// cell begins a table cell.
func (w *layout) cell() {
	if w.inRow {
		w.Breaks = 0
		w.tabs++
	}
	w.inRow, w.cellFresh = true, true
}

// preformatted begins or ends preformatted text.
func (w *layout) preformatted(start bool) {
	switch {
	case start:
		w.pre++
		w.preFresh = true
	case w.pre > 0:
		w.pre--
		w.preFresh = false
	}
}
