package extract

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// An odf reads an OpenDocument file (OASIS OpenDocument 1.3, part 3).
type odf struct {
	a       *archive
	f       *flow
	parents map[string]string // styles of paragraphs and the styles that they are based on
	numbers map[string]int    // list styles: a bit for each level with numbers
	noted   int               // number of the last footnote
	pending []string          // notes to add after the current block
	slides  int
	current string // the last style that was read
	first   string // title of the first slide
}

func readODF(a *archive, f *flow, main string) string {
	d := &odf{a: a, f: f, parents: map[string]string{}, numbers: map[string]int{}}
	d.styles(a.xml("styles.xml"))
	d.content(a.required(main))
	d.margins(a.xml("styles.xml"))
	return firstOf(realTitle(oneLine(d.title(a.xml("meta.xml")))), d.first)
}

func (d *odf) title(x *xmlReader) string {
	for x.next() {
		if x.starts("title") {
			return x.content(4 * maxTitle)
		}
	}
	return ""
}

// styles reads the styles of paragraphs and lists.
func (d *odf) styles(x *xmlReader) {
	for d.f.more(x) && !x.starts("master-styles") {
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
		for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
			if x.starts("list-level-style-number") && x.attr("num-format") != "" {
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
	for d.f.more(x) {
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
	seen := map[string]bool{}
	for d.f.more(x) {
		if x.kind != html.StartTagToken || !strings.HasPrefix(x.name, "header") && !strings.HasPrefix(x.name, "footer") ||
			strings.HasSuffix(x.name, "style") {
			continue
		}
		var ps []piece
		d.blocks(x, &ps, list{})
		// A field that has no value yet is shown in angle or square brackets.
		if s := joinPieces(ps, "\n"); !seen[s] && len(seen) < maxHeadings && hasLetter(s) && !strings.HasPrefix(s, "???") {
			seen[s] = true
			d.f.add(paragraphBlock, s)
		}
	}
	d.addNotes()
}

func (d *odf) addNotes() {
	for _, s := range d.pending {
		d.f.add(paragraphBlock, s)
	}
	d.pending = nil
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
func (d *odf) blocks(x *xmlReader, ps *[]piece, l list) {
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		if x.kind != html.StartTagToken {
			continue
		}
		switch x.name {
		case "p", "h":
			d.paragraph(x, ps, &l)
		case "list":
			d.list(x, ps, l)
		case "table":
			d.f.apart = true
			d.table(x, ps)
			d.f.apart = true
		case "frame", "custom-shape", "rect", "ellipse", "g", "line", "connector":
			if alt := d.frame(x, ps); alt != "" {
				d.f.put(piece{paragraphBlock, 0, bracketed(alt)}, ps)
			}
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
func (d *odf) list(x *xmlReader, ps *[]piece, l list) {
	count := 0
	in := list{style: firstOf(x.attr("style-name"), l.style), level: l.level + 1, count: &count}
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		if x.starts("list-item") || x.starts("list-header") {
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

// An odfParagraph is a paragraph that is being read.
type odfParagraph struct{ text []byte }

// write adds text, in which white space is collapsed (part 3, 6.1.2).
func (p *odfParagraph) write(b []byte) {
	for _, c := range b {
		if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			if n := len(p.text); n == 0 || p.text[n-1] == ' ' || p.text[n-1] == '\n' {
				continue
			}
			c = ' '
		}
		p.text = append(p.text, c)
	}
}

// paragraph reads the paragraph or heading that starts.
func (d *odf) paragraph(x *xmlReader, ps *[]piece, l *list) {
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
		d.f.put(piece{paragraphBlock, level, text}, ps)
	case l.level > 0 && strings.TrimSpace(text) != "":
		d.f.put(piece{listBlock, 0, l.mark(d) + strings.TrimSpace(text)}, ps)
	case d.isStyle(style, "preformatted", "source_20_code", "code"):
		d.f.put(piece{codeBlock, 0, text}, ps)
	default:
		d.f.put(piece{paragraphBlock, 0, text}, ps)
	}
}

// inline reads the text of the paragraph that starts. Text boxes inside of it
// are added to ps.
func (d *odf) inline(x *xmlReader, ps *[]piece) []byte {
	var p odfParagraph
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside && d.f.fits(len(p.text)); {
		if x.kind == html.TextToken {
			p.write(x.text())
		}
		if x.kind != html.StartTagToken {
			continue
		}
		switch x.name {
		case "s":
			n, _ := strconv.Atoi(x.attr("c"))
			p.text = append(p.text, strings.Repeat(" ", min(max(n, 1), 200))...)
		case "tab":
			p.text = append(p.text, '\t')
		case "line-break":
			p.text = append(p.text, '\n')
		case "note":
			p.text = append(p.text, d.note(x)...)
		case "annotation":
			d.annotation(x, "")
		case "frame", "custom-shape", "rect", "ellipse", "g", "line", "connector":
			if alt := d.frame(x, ps); alt != "" {
				p.text = append(append(p.text, ' '), bracketed(alt)...)
			}
		case "ruby-text", "binary-data", "object", "script":
			x.skip()
		}
	}
	return p.text
}

// note reads the footnote that starts and returns the mark at its place.
func (d *odf) note(x *xmlReader) string {
	var ps []piece
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		switch {
		case x.starts("note-citation"):
			x.skip()
		case x.starts("note-body"):
			d.blocks(x, &ps, list{})
		}
	}
	d.noted++
	mark := "[" + strconv.Itoa(d.noted) + "]"
	d.pending = append(d.pending, mark+" "+joinPieces(ps, "\n"))
	return mark
}

// annotation reads the comment that starts. place is the cell that it belongs
// to, or "".
func (d *odf) annotation(x *xmlReader, place string) {
	author := ""
	var ps []piece
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		switch {
		case x.starts("creator"):
			author = " by " + oneLine(x.content(maxTitle))
		case x.starts("date"), x.starts("creator-initials"), x.starts("date-string"):
			x.skip()
		case x.starts("p"):
			d.paragraph(x, &ps, &list{})
		}
	}
	if len(ps) > 0 {
		d.pending = append(d.pending, "Comment"+place+author+": "+joinPieces(ps, "\n"))
	}
}

// frame reads the frame or shape that starts: its text is added to ps, and its
// alternative text returned.
func (d *odf) frame(x *xmlReader, ps *[]piece) (alt string) {
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		if x.kind != html.StartTagToken {
			continue
		}
		switch x.name {
		case "title", "desc":
			if s := x.content(maxToken); strings.TrimSpace(s) != "" && s != alt {
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

// table reads the table of a text or slide that starts.
func (d *odf) table(x *xmlReader, ps *[]piece) {
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		if !x.starts("table-row") {
			continue
		}
		var cells []string
		var only []piece
		size := 0
		for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
			switch {
			case x.starts("covered-table-cell"):
				cells = append(cells, "")
				x.skip()
			case x.starts("table-cell"):
				var content []piece
				d.blocks(x, &content, list{})
				text := oneLine(joinPieces(content, " "))
				if size += len(content); size == len(content) {
					only = content
				}
				cells = append(cells, text)
			}
			if len(cells) > maxColumns {
				break
			}
		}
		d.f.tableRow(cells, only, size, ps)
	}
}

// pages reads the pages of a presentation.
func (d *odf) pages(x *xmlReader) {
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		if x.starts("page") {
			d.slide(x)
		}
	}
}

// slide reads the page that starts: its shapes, and the notes of the speaker.
func (d *odf) slide(x *xmlReader) {
	title, mark := "", d.mark(x.attr("style-name"))
	var ps, notes []piece
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		if x.kind != html.StartTagToken {
			continue
		}
		switch x.name {
		case "notes":
			d.notes(x, &notes)
		case "frame", "custom-shape", "rect", "ellipse", "g", "line", "connector":
			isTitle := x.attr("class") == "title" && title == ""
			var box []piece
			if alt := d.frame(x, &box); alt != "" {
				d.f.put(piece{paragraphBlock, 0, bracketed(alt)}, &box)
			}
			if isTitle {
				title = joinPieces(box, " ")
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
	d.f.slide(d.slides, title, mark, ps, notes)
	d.addNotes()
}

// notes reads the notes of the speaker that start, without the picture and the
// number of the slide.
func (d *odf) notes(x *xmlReader, ps *[]piece) {
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		if !x.starts("frame") {
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
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		switch {
		case x.starts("table"):
			d.sheet(x)
			d.addNotes()
		case x.starts("tracked-changes"):
			x.skip()
		}
	}
}

// sheet reads the sheet that starts.
func (d *odf) sheet(x *xmlReader) {
	s := sheet{f: d.f, level: 2}
	d.f.heading(1, x.attr("name")+d.mark(x.attr("style-name")))
	number := 0
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		switch {
		case x.starts("shapes"):
			d.blocks(x, nil, list{})
		case x.starts("table-row"):
			times := x.attr("number-rows-repeated")
			cells := d.cells(x, number+1)
			n, _ := strconv.Atoi(times)
			number += max(n, 1)
			for i := range repeats(times) {
				if s.row(cells); i == 0 && s.rows == 0 {
					break // an empty row
				}
			}
		}
	}
	s.end()
}

// cells reads the row of a sheet that starts.
func (d *odf) cells(x *xmlReader, row int) []sheetCell {
	var cells []sheetCell
	column, empty := 0, 0
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		if !x.starts("table-cell") && !x.starts("covered-table-cell") {
			continue
		}
		times, kind := x.attr("number-columns-repeated"), x.attr("value-type")
		var ps []piece
		for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
			if x.kind != html.StartTagToken {
				continue
			}
			switch x.name {
			case "p":
				d.paragraph(x, &ps, &list{})
			case "annotation":
				d.annotation(x, " on "+columnName(column)+strconv.Itoa(row))
			case "frame", "custom-shape", "rect", "g":
				if alt := d.frame(x, &ps); alt != "" {
					d.f.put(piece{paragraphBlock, 0, bracketed(alt)}, &ps)
				}
			case "detective", "object", "binary-data":
				x.skip()
			}
		}
		n, _ := strconv.Atoi(times)
		column = min(column+max(n, 1), maxColumns)
		if len(ps) == 0 {
			empty = min(empty+max(n, 1), maxColumns)
			continue
		}
		c := sheetCell{empty, joinPieces(ps, " "), kind != "" && kind != "string"}
		for range repeats(times) {
			if len(cells) < maxColumns {
				cells = append(cells, c)
			}
			c.gap = 0
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
