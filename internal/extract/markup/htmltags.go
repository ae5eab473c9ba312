package markup

import (
	"strings"

	"golang.org/x/net/html/atom"
)

// A region is an open element. It is identified by its tag and the number of
// open elements with that tag, so that no tree is needed.
type region struct {
	tag   string // "" means that no region is open
	depth int
	start int // of the region in the output
}

// A span is a part of the output.
type span struct{ start, end int }

func (r *region) begin(tag string, start int) { *r = region{tag: tag, depth: 1, start: start} }

// open processes a start tag inside the region.
func (r *region) open(tag string) {
	if tag == r.tag {
		r.depth++
	}
}

// close processes an end tag and reports whether it ended the region.
func (r *region) close(tag string) bool {
	if r.tag == "" || tag != r.tag {
		return false
	}
	if r.depth--; r.depth > 0 {
		return false
	}
	r.tag = ""
	return true
}

// end closes a region that is still open at the end of the page.
func (r *region) end(spans []span, at int) []span {
	if r.tag == "" {
		return spans
	}
	return append(spans, span{r.start, at})
}

func total(spans []span) int {
	n := 0
	for _, s := range spans {
		n += s.end - s.start
	}
	return n
}

// attributes are the attributes that are used.
type attributes struct{ lang, rel, href, role, class, alt, kind string }

// attributes reads the attributes of the current start tag.
func (w *walker) attributes() attributes {
	var at attributes
	for more := true; more; {
		var k, v []byte
		k, v, more = w.z.TagAttr()
		v = v[:min(len(v), 4096)]
		switch string(k) {
		case "lang", "xml:lang":
			at.lang = string(v)
		case "alt":
			at.alt = string(v)
		case "type":
			at.kind = string(v)
		case "rel":
			at.rel = string(v)
		case "href":
			at.href = string(v)
		case "class":
			at.class = string(v)
		case "role":
			at.role = strings.ToLower(strings.TrimSpace(string(v)))
		}
	}
	return at
}

// isBoilerplate reports whether an element is left out: elements that are not
// text, and elements that are repeated on every page.
func isBoilerplate(a atom.Atom, at attributes) bool {
	switch a {
	case atom.Nav, atom.Template, atom.Svg, atom.Object, atom.Select, atom.Button:
		return true
	case atom.Div, atom.Section, atom.Ul, atom.Form:
		if at.role == "navigation" || at.role == "search" {
			return true
		}
		for class := range strings.FieldsSeq(at.class) {
			if navigationClasses[strings.ToLower(class)] {
				return true
			}
		}
	}
	return false
}

// navigationClasses are classes that tools which generate documentation, and
// frameworks for pages, give to nothing but navigation: DocBook, Sphinx, Doxygen,
// SQLite, Bootstrap.
var navigationClasses = map[string]bool{
	"navheader": true, "navfooter": true, "sphinxsidebar": true, "navpath": true, "mainmenu": true, "submenu": true,
	"searchmenu": true, "navbar": true, "breadcrumb": true, "breadcrumbs": true, "pagination": true,
}

// headingLevel returns 1 to 6 for h1 to h6, otherwise 0.
func headingLevel(a atom.Atom) int {
	switch a {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return int(a.String()[1] - '0')
	}
	return 0
}

// atoms returns the set of the elements with these names.
func atoms(names string) map[atom.Atom]bool {
	set := map[atom.Atom]bool{}
	for name := range strings.FieldsSeq(names) {
		set[atom.Lookup([]byte(name))] = true
	}
	return set
}

// rawText are the elements whose content the tokenizer returns as one text
// (HTML 13.2.5.1).
var rawText = atoms("title script style iframe noembed noframes noscript textarea xmp plaintext")

// voidElements have no end tag (HTML 13.1.2).
var voidElements = atoms("area base br col embed hr img input link meta source track wbr")

// readAttributes are the elements whose attributes are read.
var readAttributes = atoms("html link a div section ul form main article td body img area input")

// blockElements separate paragraphs.
var blockElements = atoms(`p div table section blockquote ul ol dl article main header footer nav aside figure form
	fieldset hr address details hgroup center dir menu body dialog search`)
