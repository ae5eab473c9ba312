// Package markup reads texts in markup languages: HTML, Markdown, reStructuredText,
// AsciiDoc, Org, LaTeX, manual pages, SVG, and notebooks, whose cells are Markdown. It
// finds the headings of plain texts and of help files of Vim.
package markup

import (
	"bytes"
	"context"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// HTML processes the tokens of a page without building a tree, so that the cost
// does not depend on the nesting.
//
// Navigation is left out and, if the page marks its main content, everything
// else as well. But a tag that is not closed, or a <main> that contains almost
// nothing, never causes the loss of the text: loss is worse than boilerplate.
func HTML(ctx context.Context, t *plain.Text, src string) {
	w := readPage(ctx, src)
	t.Title = plain.OneLine(plain.Clean(ctx, strings.ToValidUTF8(w.title, "")))
	t.Lang = w.lang
	t.Canonical = w.canonical
	t.Damaged = w.cut
	t.Body, t.Headings = w.mainContent()
}

// Chapter returns the text and the headings of a page of a book.
func Chapter(ctx context.Context, src string) (body string, headings []document.Heading) {
	return readPage(ctx, src).mainContent()
}

// readPage processes the tokens of a page.
func readPage(ctx context.Context, src string) *walker {
	w := newWalker(ctx, src)
	w.walk(ctx)
	if len(w.out.Buf) == 0 || w.skip.tag != "" {
		w = newWalker(ctx, src)
		w.keepAll = true
		w.walk(ctx)
	}
	return w
}

// A walker processes the tokens of a page.
type walker struct {
	z       *html.Tokenizer
	xml     bool // XHTML syntax: <script/> is closed
	keepAll bool // leave out only scripts and styles
	cut     bool // a tag, or the text between two tags, has more than plain.MaxToken bytes: the rest is not read

	out     layout
	heading struct{ start, level int } // start -1: no text yet; level 0: not in a heading
	anchor  struct {                   // the open link to the heading itself
		open   bool
		before layout
	}
	lists struct { // definition lists
		open  int
		terms [2]bool // there was a term, by depth
		ended int     // depth + 1 of the list that the next text is behind, or 0
	}
	raw atom.Atom // element whose raw text comes next

	skip     region // is left out
	main     region
	article  region
	mains    []span
	articles []span

	title, lang, canonical string
}

func newWalker(ctx context.Context, src string) *walker {
	w := &walker{z: html.NewTokenizer(plain.NewReader(ctx, strings.NewReader(src)))}
	w.z.SetMaxBuf(plain.MaxToken)
	w.xml = strings.HasPrefix(strings.TrimLeft(src[:min(len(src), 256)], " \t\r\n"), "<?xml")
	return w
}

// walk processes all tokens.
func (w *walker) walk(ctx context.Context) {
	for {
		switch tt := w.z.Next(); tt {
		case html.ErrorToken:
			w.cut = w.z.Err() == html.ErrBufferExceeded
			w.endHeading()
			w.mains = w.main.end(w.mains, len(w.out.Buf))
			w.articles = w.article.end(w.articles, len(w.out.Buf))
			return
		case html.TextToken:
			w.text(ctx, w.z.Text())
		case html.StartTagToken, html.SelfClosingTagToken:
			w.startTag(ctx, tt == html.SelfClosingTagToken && w.xml)
		case html.EndTagToken:
			name, _ := w.z.TagName()
			w.endTag(string(name), atom.Lookup(name))
		}
	}
}

// text processes the text between two tags.
func (w *walker) text(ctx context.Context, b []byte) {
	switch w.raw {
	case atom.Title:
		if w.title == "" && w.skip.tag == "" {
			w.title = string(b[:min(len(b), 4*plain.MaxTitle)])
		}
		return
	case atom.Script, atom.Style, atom.Iframe, atom.Noembed, atom.Noframes, atom.Noscript:
		return
	}
	if w.skip.tag == "" {
		w.write(ctx, b)
	}
}

// write writes a text.
func (w *walker) write(ctx context.Context, b []byte) {
	for _, piece := range plain.Pieces(ctx, b) {
		start := w.out.write(piece)
		if start < 0 {
			continue
		}
		if w.heading.level > 0 && w.heading.start < 0 {
			w.heading.start = start
		} else if w.lists.ended > 0 {
			w.out.Mark(start, document.TermLevel-1+w.lists.ended, "")
		}
		w.lists.ended = 0
	}
}

// startTag processes an opening tag; closed reports that it closes itself.
func (w *walker) startTag(ctx context.Context, closed bool) {
	name, hasAttr := w.z.TagName()
	tag, a := string(name), atom.Lookup(name)
	if closed {
		w.z.NextIsNotRawText()
		w.raw = 0
	} else if a == atom.Noscript && w.keepAll {
		w.z.NextIsNotRawText()
	} else if rawText[a] {
		w.raw = a
	}
	if w.skip.tag != "" {
		if !closed {
			w.skip.open(tag)
		}
		return
	}
	at := attributes{}
	if hasAttr && readAttributes[a] {
		at = w.attributes()
	}
	switch a {
	case atom.Html:
		if w.lang == "" {
			w.lang = at.lang
		}
	case atom.Link:
		if w.canonical == "" && strings.EqualFold(strings.TrimSpace(at.rel), "canonical") {
			w.canonical = absoluteURL(at.href)
		}
	case atom.Img, atom.Area, atom.Input:
		if (a != atom.Input || strings.EqualFold(at.kind, "image")) && !w.anchor.open && !isImageName(at.alt) {
			w.out.space = true
			w.write(ctx, []byte(at.alt))
			w.out.space = true
		}
	}
	if closed || voidElements[a] {
		w.layout(a, true)
		if !voidElements[a] {
			w.layout(a, false)
		}
		return
	}
	if !w.keepAll && isBoilerplate(a, at) {
		w.layout(a, true)
		w.skip.begin(tag, 0)
		return
	}
	w.layout(a, true)
	if a == atom.A && w.heading.level > 0 && strings.HasPrefix(at.href, "#") {
		w.anchor.open, w.anchor.before = true, w.out
	}
	switch {
	case w.main.tag != "":
		w.main.open(tag)
	case a == atom.Main || at.role == "main":
		w.main.begin(tag, len(w.out.Buf))
	}
	switch {
	case w.article.tag != "":
		w.article.open(tag)
	case a == atom.Article:
		w.article.begin(tag, len(w.out.Buf))
	}
}

// imageName matches the names of images.
var imageName = regexp.MustCompile(`(?i)\.(ai|avif|bmp|eps|gif|heic|ico|jpe?g|png|psd|svg|tiff?|webp|xcf)$`)

// isImageName reports whether an alternative text is only the name of a file, as
// some programs write it, or empty.
func isImageName(alt string) bool {
	alt = strings.TrimSpace(alt)
	return alt == "" || !strings.ContainsAny(alt, " \t\n") && imageName.MatchString(alt)
}

// endTag processes a closing tag.
func (w *walker) endTag(tag string, a atom.Atom) {
	w.raw = 0
	if w.skip.tag != "" {
		w.skip.close(tag)
		return
	}
	if a == atom.A {
		w.endAnchor()
	}
	w.layout(a, false)
	if w.main.close(tag) {
		w.mains = append(w.mains, span{w.main.start, len(w.out.Buf)})
	}
	if w.article.close(tag) {
		w.articles = append(w.articles, span{w.article.start, len(w.out.Buf)})
	}
}

// layout converts a tag to the white space around it, and tracks headings.
func (w *walker) layout(a atom.Atom, start bool) {
	if level := headingLevel(a); level > 0 {
		w.endHeading()
		w.out.breakLine(2)
		if start {
			w.heading.start, w.heading.level = -1, level
		}
		return
	}
	switch a {
	case atom.Dl, atom.Dt, atom.Dd:
		w.definition(a, start)
	}
	switch a {
	case atom.Br:
		w.out.lineBreak()
	case atom.Pre, atom.Listing, atom.Xmp, atom.Plaintext, atom.Textarea:
		w.out.breakLine(2)
		w.out.preformatted(start)
	case atom.Td, atom.Th:
		if start {
			w.out.cell()
		}
	case atom.Tr:
		w.out.row()
	case atom.Li, atom.Dt, atom.Dd, atom.Option, atom.Caption, atom.Summary, atom.Figcaption, atom.Legend:
		w.out.breakLine(1)
	default:
		if blockElements[a] {
			w.out.breakLine(2)
		}
	}
}

// definition tracks definition lists. Their terms are headings, and those of the lists
// in these.
func (w *walker) definition(a atom.Atom, start bool) {
	if w.heading.level >= document.TermLevel {
		w.endHeading()
	} else if w.heading.level > 0 {
		return
	}
	l := &w.lists
	switch {
	case a == atom.Dl && start:
		l.open++
	case a == atom.Dl && l.open > 0:
		if l.open--; l.open < len(l.terms) && l.terms[l.open] {
			l.terms[l.open] = false
			l.ended = l.open + 1
		}
	case a == atom.Dt && start:
		if depth := max(l.open-1, 0); depth < len(l.terms) {
			w.heading.start, w.heading.level = -1, document.TermLevel+depth
			l.terms[depth] = true
		}
	}
}

// endAnchor removes the mark for links, such as a paragraph sign, that
// documentation generators add to headings.
func (w *walker) endAnchor() {
	if !w.anchor.open {
		return
	}
	w.anchor.open = false
	before := w.anchor.before
	switch strings.TrimSpace(string(w.out.Buf[len(before.Buf):])) {
	case "#", "¶", "§", "🔗", "⚓":
		w.out = before
		if w.heading.start >= len(before.Buf) {
			w.heading.start = -1
		}
	}
}

// endHeading records the open heading if it has text.
func (w *walker) endHeading() {
	h := w.heading
	w.heading.level, w.anchor.open = 0, false
	if h.level == 0 || h.start < 0 {
		return
	}
	raw := w.out.Buf[h.start:]
	text := plain.OneLine(string(raw[:min(len(raw), 4*plain.MaxHeading)]))
	if text = strings.ToValidUTF8(text, ""); text == "" {
		return
	}
	if h.level < document.TermLevel {
		w.out.Mark(h.start, h.level, text)
	} else {
		w.out.MarkTerm(h.start, h.level-document.TermLevel, text)
	}
}

// mainContent returns the parts of the page that it marks as its content if
// they contain a large enough part of the text, otherwise everything.
func (w *walker) mainContent() (string, []document.Heading) {
	all := len(w.out.Buf)
	if n := total(w.mains); n > 0 && (n*4 >= all || n >= 2000) {
		return w.pick(w.mains)
	}
	if n := total(w.articles); n > 0 && n*2 >= all {
		return w.pick(w.articles)
	}
	return w.pick([]span{{0, all}})
}

// pick joins parts of the output and moves the headings inside them.
func (w *walker) pick(spans []span) (string, []document.Heading) {
	var b strings.Builder
	var hs []document.Heading
	next := 0
	for _, s := range spans {
		s.end = min(s.end, len(w.out.Buf)) // the mark of an anchor may have been removed
		if s.start >= s.end {
			continue
		}
		text := bytes.TrimRight(w.out.Buf[s.start:s.end], " \n\t")
		s.end = s.start + len(text)
		text = bytes.TrimLeft(text, " \n\t")
		if s.start = s.end - len(text); s.start == s.end {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		moved := b.Len() - s.start
		b.Write(text)
		for ; next < len(w.out.Headings) && w.out.Headings[next].Offset < s.end; next++ {
			if h := w.out.Headings[next]; h.Offset >= s.start {
				h.Offset += moved
				hs = append(hs, h)
			}
		}
	}
	return b.String(), hs
}

// absoluteURL returns s if it is an absolute http or https URL of reasonable
// length.
func absoluteURL(s string) string {
	s = strings.TrimSpace(s)
	u, err := url.Parse(s)
	if err != nil || len(s) > 2048 || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.String()
}
