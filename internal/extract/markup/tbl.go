package markup

import (
	"regexp"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// maxTableFormat is the number of lines that describe the columns of a table. If
// there are more, they are rows.
const maxTableFormat = 50

// A manualTable is a table of tbl(1) in a manual page that is being read.
type manualTable struct {
	separator string // of cells
	format    int    // lines that have described the columns, or -1 if they are complete
	cells     []string
	block     *manual // the text between T{ and T}; nil outside of one
}

// tableSeparator matches the option that sets the separator of cells.
var tableSeparator = regexp.MustCompile(`\btab *\((.)\)`)

// tableLine processes a line of a table. It returns false at the end of the table
// or before a section, which also ends it.
func (m *manual) tableLine(line string) bool {
	t := m.table
	request := ""
	if line != "" && (line[0] == '.' || line[0] == '\'') && (len(line) == 1 || line[1] < '0' || line[1] > '9') {
		request, _, _ = strings.Cut(strings.TrimLeft(line[1:], " \t"), " ")
	}
	switch request {
	case "TE", "SH", "SS", "Sh", "Ss":
		m.endCell()
		m.endRow()
		m.table = nil
		return false
	}
	switch {
	case t.block != nil:
		if rest, ok := strings.CutPrefix(line, "T}"); ok {
			m.endCell()
			if rest, ok = strings.CutPrefix(rest, t.separator); ok {
				m.tableCells(rest)
			} else {
				m.endRow()
			}
			return true
		}
		t.block.line(line)
	case request == "T&":
		t.format = 0
	case t.format >= 0:
		if t.format == 0 && strings.HasSuffix(line, ";") {
			if s := tableSeparator.FindStringSubmatch(line); s != nil {
				t.separator = s[1]
			}
			return true
		}
		if t.format++; strings.HasSuffix(line, ".") || t.format > maxTableFormat {
			t.format = -1
		}
	case request != "":
		t.block = m.cell()
		t.block.line(line)
		m.endCell()
		m.endRow()
	case line == "_" || line == "=":
	default:
		m.tableCells(line)
	}
	return true
}

// tableCells adds the cells on the rest of a line.
func (m *manual) tableCells(line string) {
	t := m.table
	for more := true; more && len(t.cells) < plain.MaxColumns; {
		var cell string
		cell, line, more = strings.Cut(line, t.separator)
		switch cell = strings.TrimSpace(cell); {
		case cell == "T{" && !more:
			t.block = m.cell()
			return
		case cell == "_" || cell == "=" || cell == `\_` || cell == `\=`: // a rule
			cell = ""
		}
		t.cells = append(t.cells, plain.OneLine(m.unescape(cell)))
	}
	m.endRow()
}

// cell returns a manual for the text of a cell.
func (m *manual) cell() *manual {
	return &manual{t: &plain.Text{}, out: new(plain.Writer), strings: m.strings, name: m.name, inCell: true,
		insets: make([]inset, 1)}
}

// endCell ends the text of a cell, if there is one.
func (m *manual) endCell() {
	if c := m.table.block; c != nil {
		c.endParagraph()
		m.table.cells = append(m.table.cells, plain.OneLine(string(c.out.Buf)))
		m.table.block = nil
	}
}

// endRow writes a row.
func (m *manual) endRow() {
	if row := plain.JoinCells(m.table.cells); row != "" {
		m.out.Line(row)
	}
	m.table.cells = nil
}
