package office

import (
	"cmp"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// An odf reads an OpenDocument file (OASIS OpenDocument 1.3, part 3).
type odf struct {
	*doc
	parents map[string]string // styles of paragraphs and the styles that they are based on
	numbers map[string]int    // list styles: a bit for each level with numbers
	slides  int
	current string // the last style that was read
	first   string // title of the first slide
}

func readODF(base *doc, main string) string {
	d := &odf{doc: base, parents: map[string]string{}, numbers: map[string]int{}}
	d.styles(d.xml("styles.xml"))
	d.content(d.required(main))
	d.margins(d.xml("styles.xml"))
	return cmp.Or(realTitle(plain.OneLine(firstTitle(d.xml("meta.xml")))), d.first)
}

// styles reads the styles of paragraphs and lists.
func (d *odf) styles(x *xmlReader) {
	for d.more(x) && !x.starts("master-styles") {
		d.style(x)
	}
}

func (d *odf) style(x *xmlReader) {
	if x.kind != html.StartTagToken || len(d.parents)+len(d.numbers) >= maxStyles {
		return
	}
	switch x.name {
	case "style":
		d.current = x.attr("name")
		d.parents[d.current] = x.attr("parent-style-name")
	case "table-properties", "drawing-page-properties":
		if x.attr("display") == "false" || x.attr("visibility") == "hidden" {
			d.parents[d.current] = hiddenStyle
		}
	case "list-style":
		name := x.attr("name")
		for depth := x.depth; d.child(x, depth); {
			if x.name == "list-level-style-number" && x.attr("num-format") != "" {
				n, _ := strconv.Atoi(x.attr("level"))
				d.numbers[name] |= 1 << min(max(n, 0), 30)
			}
		}
	}
}

// hiddenStyle is the name of a style on which those of hidden sheets and slides
// are based.
const hiddenStyle = "\x00hidden"

// mark returns the mark of a sheet or slide with this style.
func (d *odf) mark(style string) string {
	if d.isStyle(style, hiddenStyle) {
		return hiddenMark
	}
	return ""
}

// isStyle reports whether a style or one that it is based on has one of the
// names, in lower case.
func (d *odf) isStyle(style string, names ...string) bool {
	for hops := 0; style != "" && hops < 20; hops++ {
		for _, n := range names {
			if strings.Contains(strings.ToLower(style), n) {
				return true
			}
		}
		style = d.parents[style]
	}
	return false
}

// content reads the body of a document.
func (d *odf) content(x *xmlReader) {
	for d.more(x) {
		switch {
		case x.starts("spreadsheet"):
			d.sheets(x)
		case x.starts("presentation"), x.starts("drawing"):
			d.pages(x)
		case x.starts("text"):
			d.blocks(x, nil, list{})
			d.addNotes()
		default:
			d.style(x) // in automatic-styles
		}
	}
}

// margins adds the headers and footers of pages, each text once.
func (d *odf) margins(x *xmlReader) {
	for d.more(x) {
		isMargin := strings.HasPrefix(x.name, "header") || strings.HasPrefix(x.name, "footer")
		if x.kind != html.StartTagToken || !isMargin || strings.HasSuffix(x.name, "style") {
			continue
		}
		var ps []plain.Block
		d.blocks(x, &ps, list{})
		// A field that has no value yet is shown in angle or square brackets.
		if s := plain.JoinBlocks(ps, "\n"); !strings.HasPrefix(s, "???") && d.isNew(s) {
			d.Block(plain.Paragraph, s)
		}
	}
	d.addNotes()
}

// A list is the place of blocks inside of lists.
type list struct {
	style string
	level int
	item  *int // number of the item; nil if it was written or outside of items
	count *int
}

// blocks reads the paragraphs, lists and tables of the element that starts, up
// to its end.
func (d *odf) blocks(x *xmlReader, ps *[]plain.Block, l list) {
	for depth := x.depth; d.child(x, depth); {
		switch x.name {
		case "p", "h":
			d.paragraph(x, ps, &l)
		case "list":
			d.list(x, ps, l)
		case "table":
			d.Blank()
			d.table(x, ps)
			d.Blank()
		case "frame", "custom-shape", "rect", "ellipse", "g", "line", "connector":
			d.framed(x, ps)
		case "annotation":
			d.annotation(x, "")
		case "tracked-changes", "table-of-content", "forms", "binary-data", "object":
			x.skip()
		}
		if ps == nil && l.level == 0 {
			d.addNotes()
		}
	}
}

// list reads the list that starts.
func (d *odf) list(x *xmlReader, ps *[]plain.Block, l list) {
	count := 0
	in := list{style: cmp.Or(x.attr("style-name"), l.style), level: l.level + 1, count: &count}
	for depth := x.depth; d.child(x, depth); {
		if x.name == "list-item" || x.name == "list-header" {
			count++
			n := count
			in.item = &n
			d.blocks(x, ps, in)
		}
	}
}

// mark returns what stands before a paragraph of a list.
func (l *list) mark(d *odf) string {
	if l.level == 0 {
		return ""
	}
	mark := "  "
	if l.item != nil {
		mark = "- "
		if d.numbers[l.style]&(1<<min(l.level, 30)) != 0 {
			mark = strconv.Itoa(*l.item) + ". "
		}
		l.item = nil
	}
	return strings.Repeat("  ", min(l.level-1, 8)) + mark
}

// appendCollapsed appends b to text with its white space collapsed (part 3, 6.1.2).
func appendCollapsed(text, b []byte) []byte {
	for _, c := range b {
		if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			if n := len(text); n == 0 || text[n-1] == ' ' || text[n-1] == '\n' {
				continue
			}
			c = ' '
		}
		text = append(text, c)
	}
	return text
}

// paragraph reads the paragraph or heading that starts.
func (d *odf) paragraph(x *xmlReader, ps *[]plain.Block, l *list) {
	level, style := 0, x.attr("style-name")
	if x.name == "h" {
		level, _ = strconv.Atoi(x.attr("outline-level"))
		level = max(level, 1)
	} else if d.isStyle(style, "title") && !d.isStyle(style, "subtitle", "index", "contents") {
		level = 1
	}
	text := string(d.inline(x, ps))
	switch {
	case level > 0:
		d.Put(plain.Block{Level: level, Text: text}, ps)
	case l.level > 0 && strings.TrimSpace(text) != "":
		d.Put(plain.Block{Kind: plain.Item, Text: l.mark(d) + strings.TrimSpace(text)}, ps)
	case d.isStyle(style, "preformatted", "source_20_code", "code"):
		d.Put(plain.Block{Kind: plain.Code, Text: text}, ps)
	default:
		d.Put(plain.Block{Text: text}, ps)
	}
}

// inline reads the text of the paragraph that starts. Text boxes inside of it
// are added to ps.
func (d *odf) inline(x *xmlReader, ps *[]plain.Block) []byte {
	var text []byte
	for outside := x.depth - 1; d.more(x) && x.depth > outside && d.Fits(len(text)); {
		if x.kind == html.TextToken {
			text = appendCollapsed(text, x.text())
		}
		if x.kind != html.StartTagToken {
			continue
		}
		switch x.name {
		case "s":
			n, _ := strconv.Atoi(x.attr("c"))
			text = append(text, strings.Repeat(" ", min(max(n, 1), 200))...)
		case "tab":
			text = append(text, '\t')
		case "line-break":
			text = append(text, '\n')
		case "note":
			text = append(text, d.note(x)...)
		case "annotation":
			d.annotation(x, "")
		case "frame", "custom-shape", "rect", "ellipse", "g", "line", "connector":
			if alt := d.frame(x, ps); alt != "" {
				text = append(append(text, ' '), bracketed(alt)...)
			}
		case "ruby-text", "binary-data", "object", "script":
			x.skip()
		}
	}
	return text
}

// note reads the footnote that starts and returns the mark at its place.
func (d *odf) note(x *xmlReader) string {
	var ps []plain.Block
	for depth := x.depth; d.child(x, depth); {
		switch x.name {
		case "note-citation":
			x.skip()
		case "note-body":
			d.blocks(x, &ps, list{})
		}
	}
	return d.footnote(plain.JoinBlocks(ps, "\n"))
}

// annotation reads the comment that starts. place is the cell that it belongs
// to, or "".
func (d *odf) annotation(x *xmlReader, place string) {
	author := ""
	var ps []plain.Block
	for depth := x.depth; d.child(x, depth); {
		switch x.name {
		case "creator":
			author = " by " + plain.OneLine(x.content(plain.MaxTitle))
		case "date", "creator-initials", "date-string":
			x.skip()
		case "p":
			d.paragraph(x, &ps, &list{})
		}
	}
	if len(ps) > 0 {
		d.pending = append(d.pending, "Comment"+place+author+": "+plain.JoinBlocks(ps, "\n"))
	}
}

// frame reads the frame or shape that starts: its text is added to ps, and its
// alternative text returned.
func (d *odf) frame(x *xmlReader, ps *[]plain.Block) (alt string) {
	for depth := x.depth; d.child(x, depth); {
		switch x.name {
		case "title", "desc":
			if s := x.content(plain.MaxToken); strings.TrimSpace(s) != "" && s != alt {
				alt = strings.TrimSpace(alt + " " + s)
			}
		case "text-box":
			d.blocks(x, ps, list{})
		case "p", "h":
			d.paragraph(x, ps, &list{})
		case "list":
			d.list(x, ps, list{})
		case "table":
			d.table(x, ps)
		case "binary-data", "object", "event-listeners":
			x.skip()
		}
	}
	return alt
}

// framed reads the frame or shape that starts: its text and its alternative text are
// added to ps.
func (d *odf) framed(x *xmlReader, ps *[]plain.Block) {
	if alt := d.frame(x, ps); alt != "" {
		d.Put(plain.Block{Text: bracketed(alt)}, ps)
	}
}

// table reads the table of a text or slide that starts.
func (d *odf) table(x *xmlReader, ps *[]plain.Block) {
	for depth := x.depth; d.child(x, depth); {
		if x.name != "table-row" {
			continue
		}
		var row plain.Row
		for depth := x.depth; d.child(x, depth); {
			switch x.name {
			case "covered-table-cell":
				row.Skip(1)
				x.skip()
			case "table-cell":
				var content []plain.Block
				d.blocks(x, &content, list{})
				row.Add(content)
			}
		}
		d.Row(&row, ps)
	}
}

// pages reads the pages of a presentation.
func (d *odf) pages(x *xmlReader) {
	for depth := x.depth; d.child(x, depth); {
		if x.name == "page" {
			d.page(x)
		}
	}
}

// page reads the page that starts: its shapes, and the notes of the speaker.
func (d *odf) page(x *xmlReader) {
	title, mark := "", d.mark(x.attr("style-name"))
	var ps, notes []plain.Block
	for depth := x.depth; d.child(x, depth); {
		switch x.name {
		case "notes":
			d.notes(x, &notes)
		case "frame", "custom-shape", "rect", "ellipse", "g", "line", "connector":
			isTitle := x.attr("class") == "title" && title == ""
			var box []plain.Block
			d.framed(x, &box)
			if isTitle {
				title = plain.JoinBlocks(box, " ")
			} else {
				ps = append(ps, box...)
			}
		case "annotation":
			d.annotation(x, "")
		case "forms":
			x.skip()
		}
	}
	if d.slides++; d.slides == 1 {
		d.first = title
	}
	d.slide(d.slides, title, mark, ps, notes)
	d.addNotes()
}

// notes reads the notes of the speaker that start, without the picture and the
// number of the slide.
func (d *odf) notes(x *xmlReader, ps *[]plain.Block) {
	for depth := x.depth; d.child(x, depth); {
		if x.name != "frame" {
			continue
		}
		switch x.attr("class") {
		case "page", "page-number", "header", "footer", "date-time":
			x.skip()
		default:
			d.frame(x, ps)
		}
	}
}

// sheets reads the tables of a spreadsheet.
func (d *odf) sheets(x *xmlReader) {
	for depth := x.depth; d.child(x, depth); {
		switch x.name {
		case "table":
			d.sheet(x)
			d.addNotes()
		case "tracked-changes":
			x.skip()
		}
	}
}

// sheet reads the sheet that starts.
func (d *odf) sheet(x *xmlReader) {
	s := plain.Sheet{W: d.Writer, Level: 2}
	d.Put(plain.Block{Level: 1, Text: x.attr("name") + d.mark(x.attr("style-name"))}, nil)
	number := 0
	for depth := x.depth; d.child(x, depth); {
		switch x.name {
		case "shapes":
			d.blocks(x, nil, list{})
		case "table-row":
			times := x.attr("number-rows-repeated")
			cells := d.cells(x, number+1)
			n, _ := strconv.Atoi(times)
			number += max(n, 1)
			for n := repeats(times); n > 0 && s.Row(cells); n-- {
			}
		}
	}
	s.End()
}

// repeats returns how often a cell or row with content is repeated: programs
// that read the text gain nothing from more.
func repeats(s string) int {
	n, _ := strconv.Atoi(s)
	return min(max(n, 1), 100)
}

// cells reads the row of a sheet that starts.
func (d *odf) cells(x *xmlReader, row int) []plain.Cell {
	var cells []plain.Cell
	column, empty := 0, 0
	for depth := x.depth; d.child(x, depth); {
		if x.name != "table-cell" && x.name != "covered-table-cell" {
			continue
		}
		times, kind := x.attr("number-columns-repeated"), x.attr("value-type")
		var ps []plain.Block
		for depth := x.depth; d.child(x, depth); {
			switch x.name {
			case "p":
				d.paragraph(x, &ps, &list{})
			case "annotation":
				d.annotation(x, " on "+columnName(column)+strconv.Itoa(row))
			case "frame", "custom-shape", "rect", "g":
				d.framed(x, &ps)
			case "detective", "object", "binary-data":
				x.skip()
			}
		}
		n, _ := strconv.Atoi(times)
		column = min(column+max(n, 1), plain.MaxColumns)
		if len(ps) == 0 {
			empty = min(empty+max(n, 1), plain.MaxColumns)
			continue
		}
		c := plain.Cell{Gap: empty, Text: plain.JoinBlocks(ps, " "), Value: kind != "" && kind != "string"}
		for range repeats(times) {
			if len(cells) < plain.MaxColumns {
				cells = append(cells, c)
			}
			c.Gap = 0
		}
		empty = 0
	}
	return cells
}

// columnName returns the letters of the column with this index.
func columnName(i int) string {
	s := ""
	for i++; i > 0; i = (i - 1) / 26 {
		s = string(rune('A'+(i-1)%26)) + s
	}
	return s
}
