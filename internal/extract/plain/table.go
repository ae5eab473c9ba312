package plain

import (
	"strings"
	"unicode"
)

// A Row is a row of a table in a text or on a slide.
type Row struct {
	cells  []string
	only   []Block // of the only cell that is not empty
	blocks int     // of all cells
}

// Add adds a cell. Those after MaxColumns are left out.
func (r *Row) Add(content []Block) {
	if r.blocks += len(content); r.blocks == len(content) {
		r.only = content
	}
	if !r.Full() {
		r.cells = append(r.cells, OneLine(JoinBlocks(content, " ")))
	}
}

// Skip adds n empty cells.
func (r *Row) Skip(n int) {
	for ; n > 0 && !r.Full(); n-- {
		r.cells = append(r.cells, "")
	}
}

// Full reports whether no more cells are added.
func (r *Row) Full() bool { return len(r.cells) >= MaxColumns }

// Row adds a row, to list if it is not nil. A row with one cell of several
// paragraphs is no row, but a way to place them.
func (w *Writer) Row(r *Row, list *[]Block) {
	if r.blocks > 1 && r.blocks == len(r.only) {
		for _, b := range r.only {
			w.Put(b, list)
		}
		return
	}
	w.Put(Block{TableRow, 0, JoinCells(r.cells)}, list)
}

// JoinCells returns the line of a row, or "" if all cells are empty. Empty cells at
// its end are left out.
func JoinCells(cells []string) string {
	for len(cells) > 0 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	return strings.TrimLeft(strings.Join(cells, " | "), " ")
}

// A Sheet writes the rows of a sheet, one on each line. Empty rows end a table.
//
// The first row of a table that contains texts only is a heading, so that every
// passage of the table has the names of the columns in its path of headings.
type Sheet struct {
	W     *Writer
	Level int // of the headings of tables

	rows     int // of the current table
	head     int // offset of the first row; -1 if it is not a heading
	headText string
}

// A Cell is a cell of a sheet, as it is displayed.
type Cell struct {
	Gap   int // empty cells before it
	Text  string
	Value bool // a number, date, boolean or error
}

// maxGap is the maximum number of successive empty cells that are written; one
// stands for more.
const maxGap = 16

// Row adds a row and reports whether it has text. An empty row ends the table.
func (s *Sheet) Row(cells []Cell) bool {
	texts := make([]string, 0, len(cells))
	named, values, gap := 0, 0, 0
	for _, c := range cells {
		text := OneLine(c.Text)
		if gap += c.Gap; text == "" {
			gap++
			continue
		}
		if gap > maxGap {
			gap = 1
		}
		for ; gap > 0; gap-- {
			texts = append(texts, "")
		}
		texts = append(texts, text)
		if named++; c.Value && !isYear(text) {
			values++
		}
	}
	if named == 0 {
		s.End()
		return false
	}
	line := JoinCells(texts)
	at := s.W.Block(TableRow, line)
	switch s.rows++; {
	case s.rows == 1:
		if s.head = -1; named > 1 && values == 0 {
			s.head, s.headText = at, line
		}
	case s.rows == 2 && s.head >= 0:
		s.W.MarkBlock(s.Level, s.head, s.headText)
	}
	return true
}

// End ends a table.
func (s *Sheet) End() {
	s.rows = 0
	s.W.Blank()
}

// IsValue reports whether a text is a number, a date or a similar value.
func IsValue(s string) bool {
	letters := 0
	for _, r := range s {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return s != "" && letters <= 1 && strings.IndexFunc(s, unicode.IsDigit) >= 0
}

// isYear reports whether a text is a year, which may be the name of a column.
func isYear(s string) bool { return len(s) == 4 && "1900" <= s && s <= "2100" && IsValue(s) }
