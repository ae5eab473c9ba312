package pdf

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

// Limits on tables that are painted column by column. Distances are in units of
// the font size.
const (
	minRows       = 3   // of a column
	sameBaseline  = 0.3 // distance of two baselines that are one
	maxColumnGap  = 8.0 // distance of the baselines of two rows of a column
	maxCellLetter = 20  // average number of characters of the cells of a column of words
)

// A column is a sequence of lines that were painted one below the other.
type column struct {
	lines       []line
	at          int // index of the first line
	left, right float64
}

// columnsOf divides the lines of a page into columns.
func columnsOf(lines []line) []column {
	var cs []column
	for i, l := range lines {
		if n := len(cs); n > 0 && cs[n-1].continues(l) {
			c := &cs[n-1]
			c.lines = lines[c.at : i+1]
			c.left, c.right = min(c.left, l.x), max(c.right, l.end)
			continue
		}
		cs = append(cs, column{lines[i : i+1], i, l.x, l.end})
	}
	return cs
}

const columnSize = 2 * 48 // bytes, twice because slices grow

func (c *column) last() line { return c.lines[len(c.lines)-1] }

// continues reports whether a line is the next one of the column.
func (c *column) continues(l line) bool {
	last := c.last()
	size := max(last.size, l.size)
	down := (last.y - l.y) / size
	return l.turn == last.turn && !l.stacked && !last.stacked && min(last.size, l.size) > 0.7*size &&
		down > 0.5 && down < maxColumnGap && l.x < c.right && l.end > c.left
}

// joinColumns sorts the lines of tables that were painted column by column into
// rows, and sets their roles. Beside a column of a table there are columns of
// figures, or of a few words, on the same baselines. Columns of a text are
// neither: their lines are long, and one of the columns has to be of figures.
func joinColumns(lines []line, b *cos.Budget) {
	if !b.Spend(lineSteps*len(lines)) || !b.Alloc(columnSize*len(lines)) {
		return
	}
	defer b.Free(columnSize * len(lines))
	columns := columnsOf(lines)
	for i := 0; i < len(columns); {
		t := columnTable{}
		n := 0
		for i+n < len(columns) && b.Err() == nil && t.add(columns[i+n], b) {
			n++
		}
		if n > 1 && t.figures {
			first, last := columns[i], columns[i+n-1]
			t.sort(lines[first.at:last.at+len(last.lines)], b)
		}
		i += max(n-1, 1) // the last column may be the first of the next table
		if n > 1 && t.figures {
			i++
		}
	}
}

// A columnTable is a table that is read column by column.
type columnTable struct {
	first   column
	rows    []columnRow // from the top
	top     float64     // of the columns after the first one
	low     float64
	figures bool // a column has figures
}

// A columnRow is a row of a table.
type columnRow struct {
	y, size float64
	end     float64 // of its last cell
}

// add adds a column on the right and reports whether it belongs to the table.
func (t *columnTable) add(c column, b *cos.Budget) bool {
	if !b.Spend(lineSteps * (len(c.lines) + len(t.rows))) {
		return false
	}
	if t.rows == nil {
		t.first, t.top, t.low = c, math.Inf(-1), math.Inf(1)
		for _, l := range c.lines {
			t.rows = append(t.rows, columnRow{l.y, l.size, l.end})
		}
		return true
	}
	if len(c.lines) < minRows || c.lines[0].turn != t.first.lines[0].turn || c.lines[0].stacked {
		return false
	}
	var rows []columnRow
	matched, wide, figures, length := 0, 0, 0, 0
	rest := t.rows
	for _, l := range c.lines {
		for len(rest) > 0 && rest[0].y > l.y+sameBaseline*l.size {
			rows, rest = append(rows, rest[0]), rest[1:]
		}
		if len(rest) > 0 && rest[0].y > l.y-sameBaseline*l.size {
			gap := (l.x - rest[0].end) / max(l.size, rest[0].size)
			if gap < columnsApart {
				return false
			}
			if matched++; gap > cellGap {
				wide++
			}
			rest = rest[1:]
		}
		if isFigure(l.text) {
			figures++
		}
		length += utf8.RuneCountInString(l.text)
		rows = append(rows, columnRow{l.y, l.size, l.end})
	}
	n := len(c.lines)
	ofFigures := 3*figures >= 2*n
	switch {
	case matched < 2 || 3*matched < 2*n:
		return false // other baselines
	case !ofFigures && length > maxCellLetter*n, (!ofFigures || math.IsInf(t.low, 1)) && 2*wide < matched:
		return false // text
	}
	t.rows = append(rows, rest...)
	t.top, t.low, t.figures = max(t.top, c.lines[0].y), min(t.low, c.last().y), t.figures || ofFigures
	return true
}

// sort sorts the lines of the table. The lines of the first column above and below
// the others are not in the table.
func (t *columnTable) sort(lines []line, b *cos.Budget) {
	size := lineSize * len(lines)
	if !b.Alloc(size) || !b.Spend(lineSteps*4*len(lines)) {
		return
	}
	defer b.Free(size)
	inside := func(l line) bool {
		return l.y < t.top+sameBaseline*l.size && l.y > t.low-sameBaseline*l.size
	}
	n := len(t.first.lines)
	from := slices.IndexFunc(t.first.lines, inside)
	if from < 0 {
		return // no line of the first column is beside the others
	}
	to := from
	for to < n && inside(t.first.lines[to]) {
		to++
	}
	tail := slices.Clone(lines[to:n])
	cells := append(slices.Clone(lines[from:to]), lines[n:]...)
	slices.SortStableFunc(cells, func(a, b line) int {
		switch {
		case a.y > b.y:
			return -1
		case a.y < b.y:
			return 1
		}
		return 0
	})
	for i := 0; i < len(cells); {
		row := i + 1
		for row < len(cells) && cells[row].y > cells[i].y-sameBaseline*max(cells[i].size, cells[row].size) {
			row++
		}
		slices.SortStableFunc(cells[i:row], func(a, b line) int {
			if a.x < b.x {
				return -1
			}
			return 1
		})
		for k := i; k < row; k++ {
			cells[k].role = cellStart
		}
		if cells[i].role = rowStart; i == 0 {
			cells[i].role = tableStart
		}
		i = row
	}
	copy(lines[from:], append(cells, tail...))
}

// isFigure reports whether a text is a figure, such as "1,234", "12 %", "(5)" or
// "–", or several of them. The numbers in an index, which commas separate, are
// not.
func isFigure(s string) bool {
	if strings.Contains(s, ", ") || strings.HasSuffix(s, ",") {
		return false
	}
	digits, letters := 0, 0
	for _, r := range s {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
		}
	}
	return digits > 0 && letters <= digits || letters == 0 && strings.TrimLeft(s, "-–—−") == ""
}
