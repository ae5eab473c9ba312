package extract

import (
	"unicode"
	"unicode/utf8"
)

// A writer writes the text of a page: white space is collapsed as in a browser,
// blocks are separated by an empty line, cells by a tab. White space is only
// written before the text that follows it.
type writer struct {
	buf     []byte
	newline int  // newlines before the next text: 0, 1 or 2
	tabs    int  // tabs before the next text
	space   bool // a blank before the next text

	inRow     bool // a cell of the current row has begun
	cellFresh bool // the current cell has no text yet
	pre       int  // open preformatted elements
	preFresh  bool // the newline directly after <pre> is ignored (HTML 13.1.2.5)
}

// write adds text and returns the offset of its first byte that is not white
// space, or -1 if there is none.
func (w *writer) write(b []byte) int {
	first := -1
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == '\n' && w.pre > 0:
			if !w.preFresh {
				w.flush()
				w.buf = append(w.buf, '\n')
			}
		case (r == ' ' || r == '\t' || r == '\u00a0') && w.pre > 0:
			w.flush()
			w.buf = append(w.buf, whiteSpace(r))
		case unicode.IsSpace(r):
			w.space = true
		case isControl(r):
		default:
			w.flush()
			if first < 0 {
				first = len(w.buf)
			}
			w.buf = utf8.AppendRune(w.buf, r) // an invalid byte becomes U+FFFD
		}
		if r != '\r' {
			w.preFresh = false
		}
		b = b[n:]
	}
	return first
}

func whiteSpace(r rune) byte {
	if r == '\t' {
		return '\t'
	}
	return ' '
}

// flush writes the pending white space.
func (w *writer) flush() {
	switch {
	case len(w.buf) == 0:
	case w.newline > 0 || w.tabs > 0:
		// Preformatted text may have ended with newlines.
		for i := len(w.buf) - 1; i >= 0 && w.buf[i] == '\n' && w.newline > 0; i-- {
			w.newline--
		}
		w.buf = append(w.buf, "\n\n"[:w.newline]...)
		for ; w.tabs > 0; w.tabs-- {
			w.buf = append(w.buf, '\t')
		}
	case w.space:
		if last := w.buf[len(w.buf)-1]; last != ' ' && last != '\n' {
			w.buf = append(w.buf, ' ')
		}
	}
	w.newline, w.tabs, w.space, w.cellFresh = 0, 0, false, false
}

// breakLine requests n newlines before the next text. At the start of a table
// cell it does nothing, so that <td><p> stays in its row.
func (w *writer) breakLine(n int) {
	if !w.cellFresh {
		w.newline = max(w.newline, n)
	}
}

// lineBreak handles <br>. Two in succession make an empty line.
func (w *writer) lineBreak() {
	if !w.cellFresh {
		w.newline = min(w.newline+1, 2)
	}
}

// row begins or ends a table row.
func (w *writer) row() {
	w.cellFresh, w.inRow, w.tabs = false, false, 0
	w.newline = max(w.newline, 1)
}

// cell begins a table cell.
func (w *writer) cell() {
	if w.inRow {
		w.newline = 0
		w.tabs++
	}
	w.inRow, w.cellFresh = true, true
}

// preformatted begins or ends preformatted text.
func (w *writer) preformatted(start bool) {
	switch {
	case start:
		w.pre++
		w.preFresh = true
	case w.pre > 0:
		w.pre--
		w.preFresh = false
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' }
