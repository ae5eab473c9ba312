package extract

import (
	"strconv"
	"strings"
	"unicode"
)

// A sheet writes the rows of a sheet, one on each line. Empty rows end a table.
//
// The first row of a table that contains texts only is a heading, so that every
// passage of the table has the names of the columns in its path of headings.
type sheet struct {
	f     *flow
	level int // of the headings of tables
	rows  int // of the current table
	head  struct {
		at   int // offset of the first row; -1 if it is not a heading
		text string
	}
}

// isSheet reports whether documents of a media type consist of sheets, whose
// headings are no titles.
func isSheet(media string) bool {
	return media == mediaXLSX || media == mediaODS || media == mediaCSV || media == mediaTSV
}

// A sheetCell is a cell of a sheet, as it is displayed, that is not empty.
type sheetCell struct {
	gap   int // empty cells before it
	text  string
	value bool // a number, date, boolean or error
}

// maxGap is the maximum number of successive empty cells that are written; one
// stands for more.
const maxGap = 16

// row writes a row. An empty row ends the table.
func (s *sheet) row(cells []sheetCell) {
	texts := make([]string, 0, len(cells))
	named, values, gap := 0, 0, 0
	for _, c := range cells {
		text := oneLine(c.text)
		if gap += c.gap; text == "" {
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
		if named++; c.value && !isYear(text) {
			values++
		}
	}
	if named == 0 {
		s.end()
		return
	}
	at := s.f.row(texts)
	switch s.rows++; {
	case s.rows == 1:
		if s.head.at = -1; named > 1 && values == 0 {
			s.head.at, s.head.text = at, joinCells(texts)
		}
	case s.rows == 2 && s.head.at >= 0:
		s.f.mark(s.level, s.head.at, s.head.text)
	}
}

// end ends a table.
func (s *sheet) end() { s.rows, s.f.apart = 0, true }

// isValue reports whether a text is a number, a date or a similar value.
func isValue(s string) bool {
	letters := 0
	for _, r := range s {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return s != "" && letters <= 1 && strings.IndexFunc(s, unicode.IsDigit) >= 0
}

// isYear reports whether a text is a year, which may be the name of a column.
func isYear(s string) bool { return len(s) == 4 && "1900" <= s && s <= "2100" && isValue(s) }

// columnOf returns the index of the column of a cell reference such as "AB12",
// or -1.
func columnOf(ref []byte) int {
	n := 0
	for _, c := range ref {
		if c |= 0x20; c < 'a' || c > 'z' || n > maxColumns {
			break
		}
		n = n*26 + int(c-'a') + 1
	}
	return min(n, maxColumns) - 1
}

// hiddenMark follows the name of a hidden sheet or slide.
const hiddenMark = " (hidden)"

// repeats returns how often a cell or row with content is repeated: programs
// that read the text gain nothing from more.
func repeats(s string) int {
	n, _ := strconv.Atoi(s)
	return min(max(n, 1), 100)
}
