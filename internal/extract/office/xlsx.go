package office

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// An xlsx reads a workbook (ECMA-376, part 1, 18).
type xlsx struct {
	*doc
	strings sharedStrings
	formats []numberFormat // by the index of a cell's style
	from    int            // serial number of the day before which dates begin: see serialTime
}

func readXLSX(base *doc, main string) string {
	d := &xlsx{doc: base}
	rels, all := d.relationships(main)
	for _, r := range all {
		switch r.kind {
		case "sharedstrings":
			d.strings.read(d.doc, d.xml(r.target))
		case "styles":
			d.styles(d.xml(r.target))
		}
	}
	seen := map[string]bool{}
	x := d.required(main)
	for d.more(x) {
		switch {
		case x.starts("workbookpr"):
			if v := x.attr("date1904"); v == "1" || v == "true" {
				d.from = days1904
			}
		case x.starts("sheet"):
			r, ok := rels[x.prefixed("id")]
			if !ok || seen[r.target] {
				continue
			}
			seen[r.target] = true
			mark := ""
			if strings.Contains(strings.ToLower(x.attr("state")), "hidden") {
				mark = hiddenMark
			}
			d.Put(plain.Block{Level: 1, Text: x.attr("name") + mark}, nil)
			if r.kind == "worksheet" {
				d.sheet(r.target)
			}
			d.around(r.target)
		}
	}
	return d.coreTitle()
}

// around adds the comments on a sheet and its text boxes and charts.
func (d *xlsx) around(part string) {
	_, all := d.relationships(part)
	for _, r := range all {
		switch r.kind {
		case "comments":
			d.comments(d.xml(r.target))
		case "drawing":
			d.drawing(r.target)
			_, charts := d.relationships(r.target)
			for _, c := range charts {
				if c.isDrawing() {
					d.drawing(c.target)
				}
			}
		}
	}
}

func (d *xlsx) comments(x *xmlReader) {
	var authors []string
	for d.more(x) {
		switch {
		case x.starts("author"):
			if s := plain.OneLine(x.content(plain.MaxTitle)); len(authors) < maxStyles {
				authors = append(authors, s)
			}
		case x.starts("comment"):
			s := "Comment on " + plain.Shorten(x.attr("ref"), 20)
			i, err := strconv.Atoi(x.attr("authorid"))
			if err == nil && i >= 0 && i < len(authors) && authors[i] != "" {
				s += " by " + authors[i]
			}
			if text := strings.TrimSpace(richText(x)); text != "" {
				d.Block(plain.Paragraph, s+": "+text)
			}
		}
	}
}

// richText returns the text of the element that starts, without phonetic hints.
func richText(x *xmlReader) string {
	var b []byte
	for outside := x.depth - 1; x.next() && x.depth > outside; {
		switch {
		case x.starts("rph"):
			x.skip()
		case x.starts("t"):
			b = append(b, x.content(plain.MaxToken-len(b))...)
		}
	}
	return unescapeCells(b)
}

// unescapeCells replaces escapes such as _x000D_ by their characters (22.9.2.19).
func unescapeCells(b []byte) string {
	i := bytes.Index(b, []byte("_x"))
	if i < 0 {
		return string(b)
	}
	var out []byte
	for ; i >= 0; i = bytes.Index(b, []byte("_x")) {
		if len(b) >= i+7 && b[i+6] == '_' {
			if r, err := strconv.ParseUint(string(b[i+2:i+6]), 16, 16); err == nil {
				out = append(append(out, b[:i]...), string(rune(r))...)
				b = b[i+7:]
				continue
			}
		}
		out = append(out, b[:i+2]...)
		b = b[i+2:]
	}
	return string(append(out, b...))
}

// sharedStrings are the texts of cells, one after the other.
type sharedStrings struct {
	text []byte
	ends []uint32
}

// maxStrings is the maximum number of bytes of shared strings. A text of less
// than a byte on average is repeated often, so it is that of the whole text.
const maxStrings = plain.MaxText

func (s *sharedStrings) read(d *doc, x *xmlReader) {
	for d.more(x) {
		if x.starts("si") {
			s.text = append(s.text, richText(x)...)
			if s.ends = append(s.ends, uint32(len(s.text))); len(s.text)+len(s.ends) > maxStrings {
				d.Fail(plain.ErrLong)
			}
		}
	}
}

// at returns the string with an index, "" if there is none.
func (s *sharedStrings) at(i int) string {
	if i < 0 || i >= len(s.ends) {
		return ""
	}
	start := uint32(0)
	if i > 0 {
		start = s.ends[i-1]
	}
	return string(s.text[start:s.ends[i]])
}

// styles reads the number formats of the styles of cells.
func (d *xlsx) styles(x *xmlReader) {
	codes := map[string]numberFormat{}
	inCells := false
	for d.more(x) {
		switch {
		case x.starts("numfmt") && len(codes) < maxStyles:
			codes[x.attr("numfmtid")] = parseNumberFormat(x.attr("formatcode"))
		case x.starts("cellxfs"):
			inCells = true
		case x.ends("cellxfs"):
			inCells = false
		case inCells && x.starts("xf") && len(d.formats) < 1<<16:
			id := x.attr("numfmtid")
			if codes[id] == nil && len(codes) < 2*maxStyles {
				codes[id] = parseNumberFormat(builtinFormats[id])
			}
			d.formats = append(d.formats, codes[id])
		}
	}
}

// format returns the number format of a style, nil if it has none.
func (d *xlsx) format(style []byte) numberFormat {
	i, err := strconv.Atoi(string(style))
	if err != nil || i < 0 || i >= len(d.formats) {
		return nil
	}
	return d.formats[i]
}

// sheet adds the rows of a sheet.
func (d *xlsx) sheet(part string) {
	s := plain.Sheet{W: d.Writer, Level: 2}
	first := 0 // column of the sheet
	var cells []plain.Cell
	last, number := 0, 0
	x := d.required(part)
	for d.more(x) {
		switch {
		case x.starts("dimension"):
			first = max(columnOf(x.value("ref")), 0)
		case x.starts("row"):
			number = last + 1
			if n, err := strconv.Atoi(string(x.value("r"))); err == nil {
				number = n
			}
			if number != last+1 {
				s.End() // there are empty rows between
			}
			last = number
			cells = d.row(x, cells[:0], first)
			s.Row(cells)
		case x.starts("oddheader"), x.starts("oddfooter"):
			s.End()
			d.Block(plain.Paragraph, marginText(x.content(1000)))
		}
	}
	s.End()
}

// row reads the cells of the row that starts. first is the column of the first
// cell unless one is left of it.
func (d *xlsx) row(x *xmlReader, cells []plain.Cell, first int) []plain.Cell {
	column, next := first-1, first // next is the column after the last cell
	for depth := x.depth; d.child(x, depth); {
		if x.name != "c" {
			continue
		}
		column++
		if c := columnOf(x.value("r")); c >= 0 {
			column = c
		}
		c := d.cell(x)
		if c.Text == "" || len(cells) >= plain.MaxColumns {
			continue
		}
		c.Gap = max(column-next, 0)
		next = column + 1
		cells = append(cells, c)
	}
	return cells
}

// cell reads the cell that starts.
func (d *xlsx) cell(x *xmlReader) plain.Cell {
	kind, format := x.attr("t"), d.format(x.value("s"))
	var value []byte
	formula := ""
	inline := false
	for depth := x.depth; d.child(x, depth); {
		switch x.name {
		case "v":
			value = append(value[:0], x.content(plain.MaxToken)...)
		case "is":
			value, inline = []byte(richText(x)), true
		case "f":
			formula = x.content(1000)
		}
	}
	v := string(value)
	switch {
	case inline:
		return plain.Cell{Text: v}
	case v == "" && formula != "" && kind != "str":
		return plain.Cell{Text: "=" + formula, Value: true} // a program that does not calculate wrote it
	case v == "":
		return plain.Cell{}
	}
	switch kind {
	case "s":
		i, err := strconv.Atoi(strings.TrimSpace(v))
		if err != nil {
			return plain.Cell{}
		}
		return plain.Cell{Text: d.strings.at(i)}
	case "str", "inlineStr":
		return plain.Cell{Text: unescapeCells(value)}
	case "b":
		if v == "1" {
			return plain.Cell{Text: "TRUE", Value: true}
		}
		return plain.Cell{Text: "FALSE", Value: true}
	case "e":
		return plain.Cell{Text: v, Value: true}
	case "d":
		return plain.Cell{Text: strings.TrimSuffix(strings.Replace(v, "T", " ", 1), " 00:00:00"), Value: true}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil {
		return plain.Cell{Text: v}
	}
	return plain.Cell{Text: format.format(n, d.from), Value: true}
}

// marginText returns the text of a header or footer without its codes (18.3.1.46).
func marginText(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '&' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; {
		case c == '&':
			b.WriteByte('&')
		case c == '"': // font
			if n := strings.IndexByte(s[i+1:], '"'); n >= 0 {
				i += n + 1
			}
		case c >= '0' && c <= '9': // size
			for i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9' {
				i++
			}
		case c == 'K': // colour
			i = min(i+6, len(s))
		case c == 'L' || c == 'C' || c == 'R':
			b.WriteByte(' ')
		}
	}
	if s := plain.OneLine(b.String()); plain.HasLetter(s) {
		return s
	}
	return ""
}

// columnOf returns the index of the column of a cell reference such as "AB12",
// or -1.
func columnOf(ref []byte) int {
	n := 0
	for _, c := range ref {
		if c |= 0x20; c < 'a' || c > 'z' || n > plain.MaxColumns {
			break
		}
		n = n*26 + int(c-'a') + 1
	}
	return min(n, plain.MaxColumns) - 1
}
