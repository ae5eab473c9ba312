package extract

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// A docx reads a word processing document (ECMA-376, part 1, 17).
type docx struct {
	a       *archive
	f       *flow
	rels    map[string]relationship
	styles  map[string]docxStyle
	numbers numbering
	notes   map[string]*docxNote // footnotes, endnotes and comments, by kind and id
	order   []*docxNote
	noted   int      // number of the last footnote
	pending []string // notes to add after the current block
	carried []byte   // text of a paragraph whose end was deleted
}

// A docxNote is a footnote, an endnote or a comment.
type docxNote struct {
	text   string
	author string // of a comment
	used   bool
}

// A docxStyle is a style of paragraphs.
type docxStyle struct {
	name, basedOn string
	outline       int // 1 to 9; 0 if there is none
	num, numLevel string
}

const maxStyles = 10000

func readDOCX(a *archive, f *flow, main string) string {
	d := &docx{a: a, f: f, styles: map[string]docxStyle{}, notes: map[string]*docxNote{}}
	var all []relationship
	d.rels, all = a.relationships(main)
	for _, r := range all {
		switch r.kind {
		case "styles":
			d.readStyles(r.target)
		case "numbering":
			d.numbers.read(a.xml(r.target))
		}
	}
	for _, r := range all {
		switch r.kind {
		case "footnotes", "endnotes", "comments":
			d.readNotes(strings.TrimSuffix(r.kind, "s"), r.target)
		}
	}
	x := a.required(main)
	for f.more(x) {
		if x.starts("body") {
			d.blocks(x, nil)
		}
	}
	d.addNotes()
	for _, n := range d.order {
		if !n.used {
			f.add(paragraphBlock, n.String())
		}
	}
	d.margins(all)
	return coreTitle(a)
}

// margins adds the headers and footers, each text once.
func (d *docx) margins(all []relationship) {
	seen := map[string]bool{}
	for _, kind := range []string{"header", "footer"} {
		for _, r := range all {
			if r.kind != kind {
				continue
			}
			var ps []piece
			if x := d.a.xml(r.target); d.f.more(x) {
				d.blocks(x, &ps)
			}
			if s := joinPieces(ps, "\n"); !seen[s] && hasLetter(s) {
				seen[s] = true
				d.f.add(paragraphBlock, s)
			}
		}
	}
}

// readStyles reads the styles of paragraphs.
func (d *docx) readStyles(part string) {
	x := d.a.xml(part)
	var id string
	var s docxStyle
	for d.f.more(x) {
		switch {
		case x.starts("style"):
			id, s = x.attr("styleid"), docxStyle{}
		case x.starts("name"):
			s.name = strings.ToLower(x.attr("val"))
		case x.starts("basedon"):
			s.basedOn = x.attr("val")
		case x.starts("outlinelvl"):
			s.outline = outlineLevel(x.attr("val"))
		case x.starts("numid"):
			s.num = x.attr("val")
		case x.starts("ilvl"):
			s.numLevel = x.attr("val")
		case x.ends("style") && id != "" && len(d.styles) < maxStyles:
			// The names of the built-in styles are the same in every language,
			// unlike their ids (17.7.4.9).
			if n, ok := strings.CutPrefix(s.name, "heading "); ok && s.outline == 0 {
				s.outline, _ = strconv.Atoi(n)
			}
			d.styles[id] = s
		}
	}
}

// outlineLevel converts the value of an outlineLvl to the level of a heading, 0
// for body text.
func outlineLevel(val string) int {
	n, err := strconv.Atoi(val)
	if err != nil || n < 0 || n > 8 {
		return 0
	}
	return n + 1
}

// style returns a style with what it inherits.
func (d *docx) style(id string) docxStyle {
	s := d.styles[id]
	for base, hops := d.styles[s.basedOn], 0; hops < 20 && base.name != ""; base, hops = d.styles[base.basedOn], hops+1 {
		if s.outline == 0 {
			s.outline = base.outline
		}
		if s.num == "" {
			s.num = base.num
		}
		if s.numLevel == "" {
			s.numLevel = base.numLevel
		}
	}
	return s
}

// readNotes reads the part with all notes of a kind.
func (d *docx) readNotes(kind, part string) {
	x := d.a.xml(part)
	for d.f.more(x) {
		if !x.starts(kind) {
			continue
		}
		id, author, drop := x.attr("id"), x.attr("author"), x.attr("type") == "separator" || x.attr("type") == "continuationSeparator"
		var ps []piece
		d.blocks(x, &ps)
		n := &docxNote{text: joinPieces(ps, "\n"), author: author}
		if drop || n.text == "" {
			continue
		}
		d.notes[kind+id] = n
		d.order = append(d.order, n)
	}
}

// String returns the text of a note that is added apart from its place.
func (n *docxNote) String() string {
	if n.author != "" {
		return "Comment by " + oneLine(n.author) + ": " + n.text
	}
	return n.text
}

// refer adds a note after the current block and returns the mark at its place.
func (d *docx) refer(kind, id string) string {
	n := d.notes[kind+id]
	if n == nil || n.used {
		return ""
	}
	n.used = true
	if kind == "comment" {
		d.pending = append(d.pending, n.String())
		return ""
	}
	d.noted++
	mark := "[" + strconv.Itoa(d.noted) + "]"
	d.pending = append(d.pending, mark+" "+n.text)
	return mark
}

func (d *docx) addNotes() {
	for _, s := range d.pending {
		d.f.add(paragraphBlock, s)
	}
	d.pending = nil
}

// blocks reads the paragraphs and tables of the element that starts, up to its
// end.
func (d *docx) blocks(x *xmlReader, ps *[]piece) {
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		if x.kind != html.StartTagToken {
			continue
		}
		switch x.name {
		case "p":
			d.paragraph(x, ps)
		case "tbl":
			d.f.apart = true
			d.table(x, ps)
			d.f.apart = true
		case "del", "movefrom", "fallback", "sectpr", "sdtpr":
			x.skip()
			continue
		default:
			continue
		}
		if ps == nil {
			d.addNotes()
		}
	}
}

// A docxParagraph is a paragraph that is being read.
type docxParagraph struct {
	text          []byte
	style         string
	outline       int
	num, numLevel string
	joined        bool // the end of the paragraph was deleted
}

// paragraph reads the paragraph that starts.
func (d *docx) paragraph(x *xmlReader, ps *[]piece) {
	p := docxParagraph{outline: -1, text: d.carried}
	d.carried = nil
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside && d.f.fits(len(p.text)); {
		if x.kind == html.StartTagToken {
			d.inline(x, &p, ps)
		}
	}
	if p.joined {
		d.carried = p.text
		return
	}
	s := d.style(p.style)
	if p.outline < 0 {
		p.outline = s.outline
	}
	if strings.HasPrefix(s.name, "toc ") {
		return // repeats the headings
	}
	if s.name == "title" {
		p.outline = 1
	}
	text := string(p.text)
	switch num, level := firstOf(p.num, s.num), firstOf(p.numLevel, s.numLevel); {
	case strings.TrimSpace(text) == "":
	case p.outline > 0:
		if mark := d.numbers.mark(num, level); mark != "" && mark != "-" {
			text = mark + " " + text
		}
		d.f.put(piece{paragraphBlock, p.outline, text}, ps)
	case num != "" && num != "0":
		n, _ := strconv.Atoi(level)
		indent := strings.Repeat("  ", min(max(n, 0), 8))
		d.f.put(piece{listBlock, 0, indent + firstOf(d.numbers.mark(num, level), "-") + " " + strings.TrimSpace(text)}, ps)
	case strings.Contains(s.name, "code") || strings.Contains(s.name, "preformatted"):
		d.f.put(piece{codeBlock, 0, text}, ps)
	default:
		d.f.put(piece{paragraphBlock, 0, text}, ps)
	}
}

// inline reads the start of an element inside of a paragraph.
func (d *docx) inline(x *xmlReader, p *docxParagraph, ps *[]piece) {
	switch x.name {
	case "ppr":
		d.properties(x, p)
	case "t":
		p.text = append(p.text, x.content(maxToken)...)
	case "tab", "ptab":
		p.text = append(p.text, '\t')
	case "br", "cr":
		p.text = append(p.text, '\n')
	case "nobreakhyphen":
		p.text = append(p.text, '-')
	case "sym":
		// Characters of the private use area are pictures of a symbol font.
		if r, err := strconv.ParseUint(x.attr("char"), 16, 16); err == nil && r >= ' ' && (r < 0xe000 || r > 0xf8ff) {
			p.text = append(p.text, string(rune(r))...)
		}
	case "footnotereference":
		p.text = append(p.text, d.refer("footnote", x.attr("id"))...)
	case "endnotereference":
		p.text = append(p.text, d.refer("endnote", x.attr("id"))...)
	case "commentreference":
		d.refer("comment", x.attr("id"))
	case "docpr":
		p.alt(x.attr("descr"))
	case "shape":
		p.alt(x.attr("alt"))
	case "txbxcontent":
		d.blocks(x, ps)
	case "relids", "chart":
		if r, ok := d.rels[firstOf(x.prefixed("dm"), x.prefixed("id"))]; ok && ps == nil && (r.kind == "chart" || r.kind == "diagramdata") {
			drawing(d.a, d.f, r.target)
		}
	case "del", "movefrom", "fallback", "rpr", "rt": // rt is the reading of a word
		x.skip()
	}
}

// alt adds the alternative text of a picture.
func (p *docxParagraph) alt(s string) {
	if strings.TrimSpace(s) != "" {
		p.text = append(append(p.text, ' '), bracketed(s)...)
	}
}

// properties reads the properties of a paragraph.
func (d *docx) properties(x *xmlReader, p *docxParagraph) {
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		if x.kind != html.StartTagToken {
			continue
		}
		switch x.name {
		case "pstyle":
			p.style = x.attr("val")
		case "outlinelvl":
			p.outline = outlineLevel(x.attr("val"))
		case "numid":
			p.num = x.attr("val")
		case "ilvl":
			p.numLevel = x.attr("val")
		case "del":
			p.joined = true // in rPr: the mark at the end of the paragraph
		case "pprchange", "sectpr":
			x.skip() // former properties
		}
	}
}

// table reads the table that starts.
func (d *docx) table(x *xmlReader, ps *[]piece) {
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		switch {
		case x.starts("tr"):
			d.row(x, ps)
		case x.starts("del"), x.starts("movefrom"):
			x.skip()
		}
	}
}

// row reads the row of a table that starts.
func (d *docx) row(x *xmlReader, ps *[]piece) {
	var cells []string
	var only []piece // the content of the only cell that is not empty
	deleted, size := false, 0
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		switch {
		case x.starts("trpr"):
			for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
				deleted = deleted || x.starts("del")
			}
		case x.starts("tc"):
			content, span := d.cell(x)
			if size += len(content); size == len(content) {
				only = content
			}
			text := oneLine(joinPieces(content, " "))
			cells = append(cells, text)
			for range span - 1 {
				cells = append(cells, "")
			}
			if len(cells) > maxColumns {
				return
			}
		}
	}
	if !deleted {
		d.f.tableRow(cells, only, size, ps)
	}
}

// maxColumns is the maximum number of columns of a table.
const maxColumns = 16384

// cell reads the cell of a table that starts, and returns how many columns it
// spans. A cell that continues one above is empty.
func (d *docx) cell(x *xmlReader) (content []piece, span int) {
	span = 1
	continues := false
	for outside := x.depth - 1; d.f.more(x) && x.depth > outside; {
		if x.kind != html.StartTagToken {
			continue
		}
		switch x.name {
		case "gridspan":
			n, _ := strconv.Atoi(x.attr("val"))
			span = min(max(n, 1), 64)
		case "vmerge":
			continues = x.attr("val") != "restart"
		case "p":
			d.paragraph(x, &content)
		case "tbl":
			d.table(x, &content)
		case "del", "movefrom", "fallback", "sdtpr":
			x.skip()
		}
	}
	if continues {
		content = nil
	}
	return content, span
}
