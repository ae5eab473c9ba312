package extract

import (
	"bytes"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// An xlsx reads a workbook (ECMA-376, part 1, 18).
type xlsx struct {
	a       *archive
	f       *flow
	strings sharedStrings
	formats []*numberFormat // by the index of a cell's style
	from    int             // serial number of the day before which dates begin: see serialTime
}

func readXLSX(a *archive, f *flow, main string) string {
	d := &xlsx{a: a, f: f}
	rels, all := a.relationships(main)
	for _, r := range all {
		switch r.kind {
		case "sharedstrings":
			d.strings.read(f, a.xml(r.target))
		case "styles":
			d.styles(a.xml(r.target))
		}
	}
	seen := map[string]bool{}
	x := a.required(main)
	for f.more(x) {
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
			f.heading(1, x.attr("name")+mark)
			if r.kind == "worksheet" {
				d.sheet(r.target)
			}
			d.around(r.target)
		}
	}
	return coreTitle(a)
}

// around adds the comments on a sheet and its text boxes and charts.
func (d *xlsx) around(part string) {
	_, all := d.a.relationships(part)
	for _, r := range all {
		switch r.kind {
		case "comments":
			d.comments(d.a.xml(r.target))
		case "drawing":
			drawing(d.a, d.f, r.target)
			_, charts := d.a.relationships(r.target)
			for _, c := range charts {
				if c.kind == "chart" || c.kind == "diagramdata" {
					drawing(d.a, d.f, c.target)
				}
			}
		}
	}
}

func (d *xlsx) comments(x *xmlReader) {
	var authors []string
	for d.f.more(x) {
		switch {
		case x.starts("author"):
			if s := oneLine(x.content(maxTitle)); len(authors) < maxStyles {
				authors = append(authors, s)
			}
		case x.starts("comment"):
			s := "Comment on " + shorten(x.attr("ref"), 20)
			if i, err := strconv.Atoi(x.attr("authorid")); err == nil && i >= 0 && i < len(authors) && authors[i] != "" {
				s += " by " + authors[i]
			}
			if text := strings.TrimSpace(richText(x)); text != "" {
				d.f.add(paragraphBlock, s+": "+text)
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
			b = append(b, x.content(maxToken-len(b))...)
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
const maxStrings = maxFlow

func (s *sharedStrings) read(f *flow, x *xmlReader) {
	for f.more(x) {
		if x.starts("si") {
			s.text = append(s.text, richText(x)...)
			if s.ends = append(s.ends, uint32(len(s.text))); len(s.text)+len(s.ends) > maxStrings {
				f.fail(errLong)
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
	codes := map[string]*numberFormat{}
	inCells := false
	for d.f.more(x) {
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
func (d *xlsx) format(style []byte) *numberFormat {
	i, err := strconv.Atoi(string(style))
	if err != nil || i < 0 || i >= len(d.formats) {
		return nil
	}
	return d.formats[i]
}

// sheet adds the rows of a sheet.
func (d *xlsx) sheet(part string) {
	s := sheet{f: d.f, level: 2}
	first := 0 // column of the sheet
	var cells []sheetCell
	last, number := 0, 0
	x := d.a.required(part)
	for d.f.more(x) {
		switch {
		case x.starts("dimension"):
			first = max(columnOf(x.value("ref")), 0)
		case x.starts("row"):
			number = last + 1
			if n, err := strconv.Atoi(string(x.value("r"))); err == nil {
				number = n
			}
			if number != last+1 {
				s.end() // there are empty rows between
			}
			last = number
			cells = d.row(x, cells[:0], first)
			s.row(cells)
		case x.starts("oddheader"), x.starts("oddfooter"):
			s.end()
			d.f.add(paragraphBlock, marginText(x.content(1000)))
		}
	}
	s.end()
}

// row reads the cells of the row that starts. first is the column of the first
// cell unless one is left of it.
func (d *xlsx) row(x *xmlReader, cells []sheetCell, first int) []sheetCell {
	column, next := first-1, first // next is the column after the last cell
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		if !x.starts("c") {
			continue
		}
		column++
		if c := columnOf(x.value("r")); c >= 0 {
			column = c
		}
		c := d.cell(x)
		if c.text == "" || len(cells) >= maxColumns {
			continue
		}
		c.gap = max(column-next, 0)
		next = column + 1
		cells = append(cells, c)
	}
	return cells
}

// cell reads the cell that starts.
func (d *xlsx) cell(x *xmlReader) sheetCell {
	kind, format := x.attr("t"), d.format(x.value("s"))
	var value []byte
	formula := ""
	inline := false
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		if x.kind != html.StartTagToken {
			continue
		}
		switch x.name {
		case "v":
			value = append(value[:0], x.content(maxToken)...)
		case "is":
			value, inline = []byte(richText(x)), true
		case "f":
			formula = x.content(1000)
		}
	}
	v := string(value)
	switch {
	case inline:
		return sheetCell{text: v}
	case v == "" && formula != "" && kind != "str":
		return sheetCell{0, "=" + formula, true} // a program that does not calculate wrote it
	case v == "":
		return sheetCell{}
	}
	switch kind {
	case "s":
		i, err := strconv.Atoi(strings.TrimSpace(v))
		if err != nil {
			return sheetCell{}
		}
		return sheetCell{text: d.strings.at(i)}
	case "str", "inlineStr":
		return sheetCell{text: unescapeCells(value)}
	case "b":
		if v == "1" {
			return sheetCell{0, "TRUE", true}
		}
		return sheetCell{0, "FALSE", true}
	case "e":
		return sheetCell{0, v, true}
	case "d":
		return sheetCell{0, strings.TrimSuffix(strings.Replace(v, "T", " ", 1), " 00:00:00"), true}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil {
		return sheetCell{text: v}
	}
	return sheetCell{0, format.format(n, d.from), true}
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
	if s := oneLine(b.String()); hasLetter(s) {
		return s
	}
	return ""
}
