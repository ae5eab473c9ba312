package office

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// A pptx reads a presentation (ECMA-376, part 1, 19).
type pptx struct{ *doc }

func readPPTX(base *doc, main string) string {
	d := &pptx{base}
	rels, _ := d.relationships(main)
	x := d.required(main)
	first, number := "", 0
	for d.more(x) {
		if !x.starts("sldid") {
			continue
		}
		if r := rels[x.prefixed("id")]; r.kind == "slide" {
			number++
			if title := d.read(r.target, number); number == 1 {
				first = title
			}
		}
	}
	return cmp.Or(realTitle(plain.OneLine(d.coreTitle())), first)
}

// read adds a slide and returns its title.
func (d *pptx) read(part string, number int) string {
	s := pptxSlide{pptx: d}
	var all []relationship
	s.rels, all = d.relationships(part)
	mark := ""
	x := d.required(part)
	for d.more(x) {
		switch {
		case x.starts("sld") && (x.attr("show") == "0" || x.attr("show") == "false"):
			mark = hiddenMark
		case x.starts("sptree"):
			s.shapes(x)
		}
	}
	var notes pptxSlide
	var comments []string
	for _, r := range all {
		switch r.kind {
		case "notesslide":
			notes = pptxSlide{pptx: d, notes: true}
			x := d.xml(r.target)
			for d.more(x) {
				if x.starts("sptree") {
					notes.shapes(x)
				}
			}
		case "comments":
			comments = append(comments, d.comments(r.target)...)
		}
	}
	d.slide(number, s.title, mark, s.ps, notes.ps)
	for _, part := range s.drawings {
		d.drawing(part)
	}
	for _, c := range comments {
		d.Block(plain.Paragraph, "Comment: "+c)
	}
	return s.title
}

// comments returns the texts of the comments on a slide.
func (d *pptx) comments(part string) (out []string) {
	x := d.xml(part)
	for d.more(x) {
		if x.starts("text") || x.starts("t") {
			s := plain.OneLine(x.content(plain.MaxToken))
			if d.Hold(len(s)) {
				out = append(out, s)
			}
		}
	}
	return out
}

// A pptxSlide is a slide, or the notes on it, that is being read.
type pptxSlide struct {
	*pptx
	notes    bool
	rels     map[string]relationship
	title    string
	ps       []plain.Block
	drawings []string // parts of charts and diagrams
}

// shapes reads the shapes of the element that starts, up to its end.
func (s *pptxSlide) shapes(x *xmlReader) {
	for depth := x.depth; s.child(x, depth); {
		switch x.name {
		case "sp":
			s.shape(x)
		case "cnvpr":
			s.alt(x)
		case "tbl":
			s.table(x)
		case "chart", "relids":
			if r := s.rels[cmp.Or(x.prefixed("dm"), x.prefixed("id"))]; r.isDrawing() && len(s.drawings) < 1000 {
				s.drawings = append(s.drawings, r.target)
			}
		case "fallback":
			x.skip()
		}
	}
}

// alt adds the alternative text of the shape whose properties start.
func (s *pptxSlide) alt(x *xmlReader) {
	if alt := x.attr("descr"); strings.TrimSpace(alt) != "" && !s.notes {
		s.Put(plain.Block{Text: bracketed(alt)}, &s.ps)
	}
}

// shape reads the shape that starts.
func (s *pptxSlide) shape(x *xmlReader) {
	place := ""
	var ps []plain.Block
	for depth := x.depth; s.child(x, depth); {
		switch x.name {
		case "cnvpr":
			s.alt(x)
		case "ph":
			place = cmp.Or(x.attr("type"), "body")
		case "p":
			s.paragraph(x, place == "body" || place == "obj", &ps)
		}
	}
	switch place {
	case "title", "ctrTitle":
		s.title = strings.TrimSpace(s.title + " " + plain.JoinBlocks(ps, " "))
		return
	case "sldNum", "dt", "hdr", "sldImg":
		return
	case "ftr":
		text := plain.JoinBlocks(ps, " ")
		if s.notes || s.seen[text] || len(s.seen) > plain.MaxHeadings {
			return
		}
		s.seen[text] = true
	}
	s.ps = append(s.ps, ps...)
}

// paragraph reads the paragraph that starts. In the body of a slide, it is an
// item of a list.
func (s *pptxSlide) paragraph(x *xmlReader, item bool, ps *[]plain.Block) {
	var text []byte
	level, bullet := 0, item && !s.notes
	for depth := x.depth; s.child(x, depth) && s.Fits(len(text)); {
		switch x.name {
		case "t":
			text = append(text, x.content(plain.MaxToken)...)
		case "br":
			text = append(text, '\n')
		case "tab":
			text = append(text, '\t')
		case "ppr":
			level, _ = strconv.Atoi(x.attr("lvl"))
		case "bunone":
			bullet = false
		case "buchar", "buautonum":
			bullet = !s.notes
		case "fld":
			if x.attr("type") == "slidenum" {
				x.skip()
			}
		}
	}
	p := plain.Block{Text: strings.TrimSpace(string(text))}
	if bullet && p.Text != "" {
		p.Kind, p.Text = plain.Item, strings.Repeat("  ", min(max(level, 0), 8))+"- "+p.Text
	}
	s.Put(p, ps)
}

// table reads the table that starts.
func (s *pptxSlide) table(x *xmlReader) {
	for depth := x.depth; s.child(x, depth); {
		if x.name != "tr" {
			continue
		}
		var row plain.Row
		for depth := x.depth; s.child(x, depth); {
			if x.name != "tc" {
				continue
			}
			var content []plain.Block // a cell that another one covers is empty
			for depth := x.depth; s.child(x, depth); {
				if x.name == "p" {
					s.paragraph(x, false, &content)
				}
			}
			row.Add(content)
		}
		s.Row(&row, &s.ps)
	}
}
