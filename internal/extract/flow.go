package extract

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"knowhow/internal/errkind"
)

// maxFlow is the maximum number of bytes of the text of a document that is not
// text itself. It is that of about sixty thick books.
const maxFlow = 32 << 20

// cellSeparator separates the cells of a row of a table.
const cellSeparator = " | "

// A block is a kind of paragraph. Between blocks there is an empty line, except
// between two of the same kind other than a paragraph.
type block int

const (
	paragraphBlock block = iota
	listBlock            // an item of a list
	rowBlock             // a row of a table
	codeBlock            // keeps its white space
)

// A flow collects the text of a document that consists of paragraphs and tables.
type flow struct {
	ctx      context.Context // of the call that uses the flow
	buf      []byte
	headings []Heading
	pages    []Page
	lang     string // that the document declares; "" if unknown
	last     block
	held     int   // bytes that pieces have needed
	apart    bool  // an empty line comes before the next block in any case
	err      error // of kind TooLarge: the text is too long, or the XML exceeds a limit
}

// add adds a block and returns the offset of its first byte. A blank block is
// left out; its offset is -1.
func (f *flow) add(kind block, s string) int {
	s = strings.ToValidUTF8(clean(f.ctx, s), "\ufffd")
	if kind == codeBlock {
		s = strings.TrimRight(s, " \t\n")
	} else {
		s = strings.TrimRight(s, " \t\n\u00a0")
		s = strings.TrimLeft(s, "\n")
		if kind != listBlock {
			s = strings.TrimLeft(s, " \t\u00a0")
		}
	}
	if strings.TrimSpace(s) == "" || !f.fits(len(s)) {
		return -1
	}
	if len(f.buf) > 0 {
		if f.buf = append(f.buf, '\n'); kind != f.last || kind == paragraphBlock || f.apart {
			f.buf = append(f.buf, '\n')
		}
	}
	f.last, f.apart = kind, false
	at := len(f.buf)
	f.buf = append(f.buf, s...)
	return at
}

var (
	errLong   = fmt.Errorf("more than %d MiB of text: split it: %w", maxFlow>>20, errkind.TooLarge)
	errNested = fmt.Errorf("its parts are nested more than %d levels deep: %w", maxDepth, errkind.TooLarge)
)

// fits reports whether n more bytes fit, and records an error if not.
func (f *flow) fits(n int) bool {
	if f.err == nil && len(f.buf)+n > maxFlow {
		f.fail(errLong)
	}
	return f.err == nil
}

// fail records the first error.
func (f *flow) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// more reads the next token of x, unless the text has become too long.
func (f *flow) more(x *xmlReader) bool {
	if f.err != nil || f.ctx.Err() != nil {
		return false
	}
	if x.next() {
		return true
	}
	f.fail(x.err())
	return false
}

// heading adds a heading with the level 1 to 6; other levels are changed to the
// nearest one.
func (f *flow) heading(level int, s string) {
	s = oneLine(s)
	f.mark(level, f.add(paragraphBlock, s), s)
}

// mark records that the block at an offset is a heading.
func (f *flow) mark(level, at int, s string) {
	if s = shorten(oneLine(strings.ToValidUTF8(clean(f.ctx, s), "\ufffd")), maxHeading); at >= 0 && s != "" && len(f.headings) < maxHeadings {
		f.headings = append(f.headings, Heading{Offset: at, Level: min(max(level, 1), 6), Text: s})
	}
}

// A piece is a block inside a cell, a note or a slide, which is not part of the
// flow yet.
type piece struct {
	kind  block
	level int // of a heading, otherwise 0
	text  string
}

// pieceSize is the number of bytes of a piece without its text.
const pieceSize = 48

// put adds a block, to ps if it is not nil.
func (f *flow) put(p piece, ps *[]piece) {
	switch {
	case ps == nil && p.level > 0:
		f.heading(p.level, p.text)
	case ps == nil:
		f.add(p.kind, p.text)
	case strings.TrimSpace(p.text) != "":
		if f.held += pieceSize + len(p.text); f.held > maxFlow {
			f.fail(errLong)
			return
		}
		*ps = append(*ps, p)
	}
}

// joinPieces joins the texts of pieces.
func joinPieces(ps []piece, sep string) string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		texts[i] = strings.TrimSpace(p.text)
	}
	return strings.Join(texts, sep)
}

// tableRow adds a row of a table in a text or on a slide. Its cells have the
// pieces in only if size is their number: then only one cell is not empty. A row
// with one cell of several paragraphs is no row, but a way to place them.
func (f *flow) tableRow(cells []string, only []piece, size int, ps *[]piece) {
	switch {
	case size > 1 && size == len(only):
		for _, p := range only {
			f.put(p, ps)
		}
	case ps == nil:
		f.row(cells)
	default:
		f.put(piece{rowBlock, 0, joinCells(cells)}, ps)
	}
}

// slide adds a slide with the notes of its speaker. Its heading is its number and
// its title, if it has one, and mark.
func (f *flow) slide(number int, title, mark string, ps, notes []piece) {
	s := "Slide " + strconv.Itoa(number)
	if title = oneLine(title); title != "" {
		s += ": " + title
	}
	s += mark
	at := f.add(paragraphBlock, s)
	if f.mark(1, at, s); at >= 0 {
		f.pages = append(f.pages, Page{Offset: at, Label: strconv.Itoa(number)})
	}
	for _, p := range ps {
		f.put(piece{p.kind, 0, p.text}, nil)
	}
	if len(notes) > 0 {
		f.add(paragraphBlock, "Notes: "+joinPieces(notes, "\n"))
	}
}

// hasLetter reports whether s contains a letter.
func hasLetter(s string) bool { return strings.IndexFunc(s, unicode.IsLetter) >= 0 }

// row adds a row of a table. Empty cells at its end are left out.
func (f *flow) row(cells []string) int { return f.add(rowBlock, joinCells(cells)) }

// joinCells returns the line of a row, or "" if all cells are empty.
func joinCells(cells []string) string {
	for len(cells) > 0 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	return strings.TrimLeft(strings.Join(cells, cellSeparator), " ")
}

// text sets the result. The title is that of the document's properties unless it
// is one that programs invent.
func (f *flow) text(t *Text, title string) {
	t.Body, t.Headings, t.Pages, t.Lang = string(f.buf), f.headings, f.pages, f.lang
	t.Title = realTitle(oneLine(clean(f.ctx, strings.ToValidUTF8(title, ""))))
}

// realTitle returns "" for a title that programs give to every new document.
func realTitle(s string) string {
	l := strings.ToLower(s)
	for _, made := range []string{"powerpoint", "microsoft word - ", "untitled", "unbenannt", "sans titre", "sin título", "無題"} {
		if strings.HasPrefix(l, made) && (made != "powerpoint" || len(l) < 30) || made == "powerpoint" && strings.HasSuffix(l, made) && len(l) < 30 {
			return ""
		}
	}
	name := strings.TrimRight(l, "0123456789 ")
	if slices.Contains([]string{"", "title", "document", "dokument", "book", "mappe", "presentation", "präsentation", "slide", "template", "workbook", "spreadsheet"}, name) {
		return ""
	}
	return s
}
