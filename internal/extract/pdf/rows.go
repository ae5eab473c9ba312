package pdf

import (
	"math"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

// A lineRole is the role of a line in a table with cells of several lines.
type lineRole int8

const (
	noCell     lineRole = iota
	tableStart          // the first line of the first row
	rowStart            // the first line of another row
	cellStart           // the first line of another cell of a row
	cellMore            // continues its cell
)

// Limits on the rows of tables. Distances are in units of the font size.
const (
	maxCellLines  = 12
	maxRowHeight  = 1.5 * maxCellLines
	maxCellLead   = 1.5 // distance of the baselines of a cell
	maxRowGap     = 6.0 // distance of the baselines of two rows
	columnsApart  = 0.3 // distance of two columns
	columnsDiffer = 1.0 // distance of the beginnings of two cells that are not in the same column
)

// markRows finds tables with cells of several lines and sets the roles of their
// lines. Most programs paint a table cell by cell, so that the lines of a cell
// follow each other, and the next cell begins on the right, further up. A text
// with two columns has one such step on a page, a table at least two.
//
// It leaves tables alone that are marked already.
func markRows(lines []line, b *cos.Budget) {
	for len(lines) > 0 {
		n := slices.IndexFunc(lines, func(l line) bool { return l.role != noCell })
		if n < 0 {
			n = len(lines)
		}
		markRowsIn(lines[:n], b)
		lines = lines[min(n+1, len(lines)):]
	}
}

func markRowsIn(lines []line, b *cos.Budget) {
	for i := 0; i < len(lines); {
		if !b.Spend(lineSteps) {
			return
		}
		n := 0 // lines of the table
		var steps []int
		wrapped, simple := 0, 0
		var last tableRow
		for i+n < len(lines) {
			r := rowOf(lines[i+n:])
			if !b.Spend(lineSteps * r.n) {
				return
			}
			if len(r.cells) == 1 && !strings.Contains(lines[i+n].text, "\t") || len(steps) > 0 && !r.below(last) {
				break
			}
			if len(r.cells) > 1 {
				wrapped++
			} else {
				simple++
			}
			steps = append(steps, n)
			n += r.n
			last = r
		}
		if wrapped < 2 && (wrapped < 1 || simple < 2) {
			i++ // a table may begin at the next line
			continue
		}
		for k, at := range steps {
			if lines[i+at].role = rowStart; k == 0 {
				lines[i+at].role = tableStart
			}
			rowOf(lines[i+at:]).mark(lines[i+at:])
		}
		i += n
	}
}

// A tableRow is a row of a table.
type tableRow struct {
	n             int       // lines
	cells         []int     // indexes of the first lines of its cells; of a simple row, which is one line, only of the first
	left, end     float64   // of its text
	top, low      float64   // baselines of its highest and lowest line
	size          float64   // of its first line
	columns       []float64 // where the cells begin
	before, right float64   // end of the cells before the last one, and of the last one
}

// rowOf returns the row that begins with the first line. If this is not a row, it
// has one cell.
func rowOf(lines []line) tableRow {
	first := lines[0]
	r := tableRow{n: 1, cells: []int{0}, columns: []float64{first.x}, left: first.x, end: first.end, top: first.y,
		low:  first.y,
		size: first.size, before: math.Inf(-1), right: first.end}
	if strings.Contains(first.text, "\t") {
		r.before = first.x + columnsDiffer*first.size // the last of its cells continues
	}
	n, inCell := 1, 1
	for ; n < len(lines); n++ {
		l, last := lines[n], lines[n-1]
		size := max(last.size, l.size)
		if l.turn != first.turn || l.stacked || first.stacked || min(last.size, l.size) < 0.7*size {
			break
		}
		down := (last.y - l.y) / size
		switch {
		case l.x > r.end+columnsApart*size && l.y > r.low-0.5*size && l.y < r.low+maxRowHeight*size:
			r.cells, r.columns = append(r.cells, n), append(r.columns, l.x)
			r.before, inCell = r.end, 1
			r.n, r.right = n+1, l.end
		case down > 0.5 && down < maxCellLead && inCell < maxCellLines && l.x > r.before && l.x < r.right &&
			l.end > r.columns[len(r.columns)-1]-size && !strings.Contains(l.text, "\t"):
			inCell++
			r.right = max(r.right, l.end)
			if len(r.cells) > 1 {
				r.n = n + 1
			}
		default:
			return r.only()
		}
		r.end, r.top, r.low = max(r.end, l.end), max(r.top, l.y), min(r.low, l.y)
	}
	return r.only()
}

// only returns r. If it has one cell, it is its first line.
func (r tableRow) only() tableRow {
	if len(r.cells) == 1 {
		r.low = r.top
	}
	return r
}

// below reports whether r is the row below another one of the same table.
func (r tableRow) below(above tableRow) bool {
	size := max(r.size, above.size)
	if math.Abs(r.left-above.left) > columnsDiffer*size || r.top > above.low-0.5*size ||
		r.top < above.low-maxRowGap*size {
		return false
	}
	if len(r.cells) == 1 || len(above.cells) == 1 {
		return true
	}
	for _, x := range r.columns[1:] {
		for _, y := range above.columns[1:] {
			if math.Abs(x-y) < columnsDiffer*size {
				return true
			}
		}
	}
	return false
}

// mark sets the roles of the lines of a row, except for the first one.
func (r tableRow) mark(lines []line) {
	for i, k := 1, 1; i < r.n; i++ {
		lines[i].role = cellMore
		if k < len(r.cells) && r.cells[k] == i {
			lines[i].role = cellStart
			k++
		}
	}
}
