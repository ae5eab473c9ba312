package extract

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// A pptx reads a presentation (ECMA-376, part 1, 19).
type pptx struct {
	a    *archive
	f    *flow
	seen map[string]bool // footers
}

func readPPTX(a *archive, f *flow, main string) string {
	d := &pptx{a: a, f: f, seen: map[string]bool{}}
	rels, _ := a.relationships(main)
	x := a.required(main)
	first, number := "", 0
	for f.more(x) {
		if !x.starts("sldid") {
			continue
		}
		if r, ok := rels[x.prefixed("id")]; ok && r.kind == "slide" {
			number++
			if title := d.slide(r.target, number); number == 1 {
				first = title
			}
		}
	}
	return firstOf(realTitle(oneLine(coreTitle(a))), first)
}

// slide adds a slide and returns its title.
func (d *pptx) slide(part string, number int) string {
	s := pptxSlide{pptx: d}
	var all []relationship
	s.rels, all = d.a.relationships(part)
	mark := ""
	x := d.a.required(part)
	for d.f.more(x) {
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
			x := d.a.xml(r.target)
			for d.f.more(x) {
				if x.starts("sptree") {
					notes.shapes(x)
				}
			}
		case "comments":
			comments = append(comments, d.comments(r.target)...)
		}
	}
	d.f.slide(number, s.title, mark, s.ps, notes.ps)
	for _, part := range s.drawings {
		drawing(d.a, d.f, part)
	}
	for _, c := range comments {
		d.f.add(paragraphBlock, "Comment: "+c)
	}
	return s.title
}

// comments returns the texts of the comments on a slide.
func (d *pptx) comments(part string) (out []string) {
	x := d.a.xml(part)
	for d.f.more(x) {
		if x.starts("text") || x.starts("t") {
			s := oneLine(x.content(maxToken))
			if d.f.held += pieceSize + len(s); d.f.held > maxFlow {
				d.f.fail(errLong)
			}
			out = append(out, s)
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
	ps       []piece
	drawings []string // parts of charts and diagrams
}

// shapes reads the shapes of the element that starts, up to its end.
func (s *pptxSlide) shapes(x *xmlReader) {
	for outside := x.depth - 1; s.f.more(x) && x.depth > outside; {
		if x.kind != html.StartTagToken {
			continue
		}
		switch x.name {
		case "sp":
			s.shape(x)
		case "cnvpr":
			s.alt(x)
		case "tbl":
			s.table(x)
		case "chart", "relids":
			if r, ok := s.rels[firstOf(x.prefixed("dm"), x.prefixed("id"))]; ok && (r.kind == "chart" || r.kind == "diagramdata") && len(s.drawings) < 1000 {
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
		s.f.put(piece{paragraphBlock, 0, bracketed(alt)}, &s.ps)
	}
}

// shape reads the shape that starts.
func (s *pptxSlide) shape(x *xmlReader) {
	place := ""
	var ps []piece
	for outside := x.depth - 1; s.f.more(x) && x.depth > outside; {
		switch {
		case x.starts("cnvpr"):
			s.alt(x)
		case x.starts("ph"):
			place = firstOf(x.attr("type"), "body")
		case x.starts("p"):
			s.paragraph(x, place == "body" || place == "obj", &ps)
		}
	}
	switch place {
	case "title", "ctrTitle":
		s.title = strings.TrimSpace(s.title + " " + joinPieces(ps, " "))
		return
	case "sldNum", "dt", "hdr", "sldImg":
		return
	case "ftr":
		if text := joinPieces(ps, " "); s.notes || s.seen[text] || len(s.seen) > maxHeadings {
			return
		} else {
			s.seen[text] = true
		}
	}
	s.ps = append(s.ps, ps...)
}

// paragraph reads the paragraph that starts. In the body of a slide, it is an
// item of a list.
func (s *pptxSlide) paragraph(x *xmlReader, item bool, ps *[]piece) {
	var text []byte
	level, bullet := 0, item && !s.notes
	for outside := x.depth - 1; s.f.more(x) && x.depth > outside && s.f.fits(len(text)); {
		switch {
		case x.starts("t"):
			text = append(text, x.content(maxToken)...)
		case x.starts("br"):
			text = append(text, '\n')
		case x.starts("tab"):
			text = append(text, '\t')
		case x.starts("ppr"):
			level, _ = strconv.Atoi(x.attr("lvl"))
		case x.starts("bunone"):
			bullet = false
		case x.starts("buchar"), x.starts("buautonum"):
			bullet = !s.notes
		case x.starts("fld") && x.attr("type") == "slidenum":
			x.skip()
		}
	}
	p := piece{paragraphBlock, 0, strings.TrimSpace(string(text))}
	if bullet && p.text != "" {
		p.kind, p.text = listBlock, strings.Repeat("  ", min(max(level, 0), 8))+"- "+p.text
	}
	s.f.put(p, ps)
}

// table reads the table that starts.
func (s *pptxSlide) table(x *xmlReader) {
	for outside := x.depth - 1; s.f.more(x) && x.depth > outside; {
		if !x.starts("tr") {
			continue
		}
		var cells []string
		var only []piece
		size := 0
		for outside := x.depth - 1; s.f.more(x) && x.depth > outside; {
			if !x.starts("tc") {
				continue
			}
			var content []piece // a cell that another one covers is empty
			for outside := x.depth - 1; s.f.more(x) && x.depth > outside; {
				if x.starts("p") {
					s.paragraph(x, false, &content)
				}
			}
			if size += len(content); size == len(content) {
				only = content
			}
			if len(cells) < maxColumns {
				cells = append(cells, oneLine(joinPieces(content, " ")))
			}
		}
		s.f.tableRow(cells, only, size, &s.ps)
	}
}
