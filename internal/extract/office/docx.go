package office

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// A docx reads a word processing document (ECMA-376, part 1, 17).
type docx struct {
	*doc
	rels    map[string]relationship
	styles  map[string]docxStyle
	numbers numbering
	notes   map[string]*docxNote // footnotes, endnotes and comments, by kind and id
	order   []*docxNote
	carried []byte // text of a paragraph whose end was deleted
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

func readDOCX(base *doc, main string) string {
	d := &docx{doc: base, styles: map[string]docxStyle{}, notes: map[string]*docxNote{}}
	var all []relationship
	d.rels, all = d.relationships(main)
	for _, r := range all {
		switch r.kind {
		case "styles":
			d.readStyles(r.target)
		case "numbering":
			d.numbers.read(d.xml(r.target))
		}
	}
	for _, r := range all {
		switch r.kind {
		case "footnotes", "endnotes", "comments":
			d.readNotes(strings.TrimSuffix(r.kind, "s"), r.target)
		}
	}
	x := d.required(main)
	for d.more(x) {
		if x.starts("body") {
			d.blocks(x, nil)
		}
	}
	d.addNotes()
	for _, n := range d.order {
		if !n.used {
			d.Block(plain.Paragraph, n.String())
		}
	}
	d.margins(all)
	return d.coreTitle()
}

// margins adds the headers and footers, each text once.
func (d *docx) margins(all []relationship) {
	for _, kind := range []string{"header", "footer"} {
		for _, r := range all {
			if r.kind != kind {
				continue
			}
			var ps []plain.Block
			if x := d.xml(r.target); d.more(x) {
				d.blocks(x, &ps)
			}
			if s := plain.JoinBlocks(ps, "\n"); d.isNew(s) {
				d.Block(plain.Paragraph, s)
			}
		}
	}
}

// readStyles reads the styles of paragraphs.
func (d *docx) readStyles(part string) {
	x := d.xml(part)
	var id string
	var s docxStyle
	for d.more(x) {
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
	s, ok := d.styles[id]
	if !ok {
		return builtInStyle(id)
	}
	base := d.styles[s.basedOn]
	for hops := 0; hops < 20 && base.name != ""; hops++ {
		s.outline = cmp.Or(s.outline, base.outline)
		s.num, s.numLevel = cmp.Or(s.num, base.num), cmp.Or(s.numLevel, base.numLevel)
		base = d.styles[base.basedOn]
	}
	return s
}

// builtInStyle returns the style that programs mean by an id that a document does not
// define, the zero value if there is none. Some write only the ids that Word in English
// gives the headings and the title.
func builtInStyle(id string) docxStyle {
	if n, ok := strings.CutPrefix(id, "Heading"); ok && len(n) == 1 && '1' <= n[0] && n[0] <= '9' {
		return docxStyle{outline: int(n[0] - '0')}
	}
	if id == "Title" {
		return docxStyle{name: "title"}
	}
	return docxStyle{}
}

// readNotes reads the part with all notes of a kind.
func (d *docx) readNotes(kind, part string) {
	x := d.xml(part)
	for d.more(x) {
		if !x.starts(kind) {
			continue
		}
		id, author := x.attr("id"), x.attr("author")
		drop := x.attr("type") == "separator" || x.attr("type") == "continuationSeparator"
		var ps []plain.Block
		d.blocks(x, &ps)
		n := &docxNote{text: plain.JoinBlocks(ps, "\n"), author: author}
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
		return "Comment by " + plain.OneLine(n.author) + ": " + n.text
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
	return d.footnote(n.text)
}

// blocks reads the paragraphs and tables of the element that starts, up to its
// end.
func (d *docx) blocks(x *xmlReader, ps *[]plain.Block) {
	for depth := x.depth; d.child(x, depth); {
		switch x.name {
		case "p":
			d.paragraph(x, ps)
		case "tbl":
			d.Blank()
			d.table(x, ps)
			d.Blank()
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
func (d *docx) paragraph(x *xmlReader, ps *[]plain.Block) {
	p := docxParagraph{outline: -1, text: d.carried}
	d.carried = nil
	for depth := x.depth; d.child(x, depth) && d.Fits(len(p.text)); {
		d.inline(x, &p, ps)
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
	switch num, level := cmp.Or(p.num, s.num), cmp.Or(p.numLevel, s.numLevel); {
	case strings.TrimSpace(text) == "":
	case p.outline > 0:
		if mark := d.numbers.mark(num, level); mark != "" && mark != "-" {
			text = mark + " " + text
		}
		d.Put(plain.Block{Level: p.outline, Text: text}, ps)
	case num != "" && num != "0":
		n, _ := strconv.Atoi(level)
		mark := strings.Repeat("  ", min(max(n, 0), 8)) + cmp.Or(d.numbers.mark(num, level), "-")
		d.Put(plain.Block{Kind: plain.Item, Text: mark + " " + strings.TrimSpace(text)}, ps)
	case strings.Contains(s.name, "code") || strings.Contains(s.name, "preformatted"):
		d.Put(plain.Block{Kind: plain.Code, Text: text}, ps)
	default:
		d.Put(plain.Block{Text: text}, ps)
	}
}

// inline reads the start of an element inside of a paragraph.
func (d *docx) inline(x *xmlReader, p *docxParagraph, ps *[]plain.Block) {
	switch x.name {
	case "ppr":
		d.properties(x, p)
	case "t":
		p.text = append(p.text, x.content(plain.MaxToken)...)
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
		if r := d.rels[cmp.Or(x.prefixed("dm"), x.prefixed("id"))]; ps == nil && r.isDrawing() {
			d.drawing(r.target)
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
	for depth := x.depth; d.child(x, depth); {
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
func (d *docx) table(x *xmlReader, ps *[]plain.Block) {
	for depth := x.depth; d.child(x, depth); {
		switch x.name {
		case "tr":
			d.row(x, ps)
		case "del", "movefrom":
			x.skip()
		}
	}
}

// row reads the row of a table that starts.
func (d *docx) row(x *xmlReader, ps *[]plain.Block) {
	var row plain.Row
	deleted := false
	for depth := x.depth; d.child(x, depth); {
		switch x.name {
		case "trpr":
			for depth := x.depth; d.child(x, depth); {
				deleted = deleted || x.name == "del"
			}
		case "tc":
			content, span := d.cell(x)
			row.Add(content)
			row.Skip(span - 1)
		}
	}
	if !deleted {
		d.Row(&row, ps)
	}
}

// cell reads the cell of a table that starts, and returns how many columns it
// spans. A cell that continues one above is empty.
func (d *docx) cell(x *xmlReader) (content []plain.Block, span int) {
	span = 1
	continues := false
	for depth := x.depth; d.child(x, depth); {
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
