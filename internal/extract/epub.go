package extract

import (
	"io"
	"net/url"
	"path"
	"strings"
)

// readEPUB reads a book (EPUB 3.3, and 2.0.1): the chapters in the order of the
// spine. A chapter without a heading gets its title in the table of contents.
func readEPUB(a *archive, f *flow, _ string) string {
	p := readPackage(a)
	secret := encryptedParts(a)
	f.lang = p.lang
	for _, part := range p.spine {
		if f.err != nil || f.ctx.Err() != nil {
			break
		}
		if secret[partKey(part)] {
			f.fail(errProtected)
			break
		}
		chapter(a, f, part, p.titles[partKey(part)])
	}
	return p.title
}

// A bookPackage describes a book.
type bookPackage struct {
	title, lang string
	spine       []string          // parts in the order of reading
	titles      map[string]string // in the table of contents, by partKey
}

// maxChapters is the maximum number of files of a book.
const maxChapters = 20000

// readPackage reads the package document that the container names, and the
// table of contents.
func readPackage(a *archive) bookPackage {
	p := bookPackage{titles: map[string]string{}}
	opf := ""
	for x := a.xml("META-INF/container.xml"); x.next() && opf == ""; {
		if x.starts("rootfile") {
			opf = x.attr("full-path")
		}
	}
	items := map[string]string{} // part by id
	contents := ""               // part with the table of contents
	isContents := map[string]bool{}
	for x := a.required(opf); x.next() && len(items) < maxChapters && len(p.spine) < maxChapters; {
		switch {
		case x.starts("title") && p.title == "":
			p.title = x.content(4 * maxTitle)
		case x.starts("language") && p.lang == "":
			p.lang = x.content(100)
		case x.starts("item"):
			part := relativePart(opf, x.attr("href"))
			items[x.attr("id")] = part
			nav := strings.Contains(" "+x.attr("properties")+" ", " nav ")
			isContents[part] = nav
			if nav || contents == "" && x.attr("media-type") == "application/x-dtbncx+xml" {
				contents = part
			}
		case x.starts("itemref"):
			if part := items[x.attr("idref")]; part != "" && !isContents[part] {
				p.spine = append(p.spine, part)
				isContents[part] = true // each part is read once
			}
		}
	}
	label := ""
	for x := a.xml(contents); x.next() && len(p.titles) < maxChapters; {
		part, title := "", ""
		switch {
		case x.starts("a"): // in EPUB 3
			part = relativePart(contents, x.attr("href"))
			title = x.content(4 * maxHeading)
		case x.starts("text"): // in EPUB 2
			label = x.content(4 * maxHeading)
		case x.starts("content"):
			part, title = relativePart(contents, x.attr("src")), label
		}
		if key := partKey(part); part != "" && p.titles[key] == "" {
			p.titles[key] = title
		}
	}
	return p
}

// relativePart returns the part that a relative URL in another part leads to.
func relativePart(from, ref string) string {
	ref, _, _ = strings.Cut(ref, "#")
	if s, err := url.PathUnescape(ref); err == nil {
		ref = s
	}
	if ref == "" {
		return ""
	}
	return strings.TrimPrefix(path.Clean("/"+path.Dir(from)+"/"+ref), "/")
}

// encryptedParts returns the keys of the encrypted parts. Fonts may be obfuscated
// without protecting the text.
func encryptedParts(a *archive) map[string]bool {
	parts := map[string]bool{}
	for x := a.xml("META-INF/encryption.xml"); x.next() && len(parts) < maxChapters; {
		if x.starts("cipherreference") {
			parts[partKey(relativePart("", x.attr("uri")))] = true
		}
	}
	return parts
}

// chapter adds a chapter, an HTML page.
func chapter(a *archive, f *flow, part, title string) {
	a.damaged = a.damaged || !a.has(part)
	data, err := io.ReadAll(io.LimitReader(a.open(part), maxFlow))
	if err != nil && len(data) == 0 || !f.fits(len(data)/4) {
		return
	}
	w := readPage(f.ctx, decode(f.ctx, data, "", true))
	body, headings := w.mainContent()
	if title = oneLine(title); len(headings) == 0 && body != "" && title != "" {
		if line, _, _ := strings.Cut(body, "\n"); oneLine(line) == title {
			headings = []Heading{{Offset: 0, Level: 1, Text: shorten(title, maxHeading)}}
		} else {
			f.heading(1, title)
		}
	}
	at := f.add(codeBlock, body) // with its white space
	f.apart = true
	for _, h := range headings {
		if at >= 0 && len(f.headings) < maxHeadings && at+h.Offset < len(f.buf) {
			f.headings = append(f.headings, Heading{Offset: at + h.Offset, Level: h.Level, Text: h.Text})
		}
	}
}
