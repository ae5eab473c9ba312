package office

import (
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/extract/charset"
	"github.com/knowhow-mcp/knowhow/internal/extract/markup"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// readEPUB reads a book (EPUB 3.3, and 2.0.1): the chapters in the order of the
// spine. A chapter without a heading gets its title in the table of contents.
func readEPUB(d *doc, _ string) string {
	p := readPackage(d.archive)
	secret := encryptedParts(d.archive)
	d.Lang = p.lang
	for _, part := range p.spine {
		if d.Err != nil || d.ctx.Err() != nil {
			break
		}
		if secret[partKey(part)] {
			d.Fail(errProtected)
			break
		}
		d.chapter(part, p.titles[partKey(part)])
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
			p.title = x.content(4 * plain.MaxTitle)
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
			title = x.content(4 * plain.MaxHeading)
		case x.starts("text"): // in EPUB 2
			label = x.content(4 * plain.MaxHeading)
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

// errProtected is the error for a book with digital rights management.
var errProtected = fmt.Errorf("its text is encrypted (copy protection), which cannot be read: %w", plain.ErrLocked)

// chapter adds a chapter, an HTML page.
func (d *doc) chapter(part, title string) {
	d.damaged = d.damaged || !d.has(part)
	data, err := io.ReadAll(io.LimitReader(d.open(part), plain.MaxText))
	if err != nil && len(data) == 0 || !d.Fits(len(data)/4) {
		return
	}
	body, headings := markup.Chapter(d.ctx, charset.Decode(d.ctx, data, charset.Options{HTML: true}))
	if title = plain.OneLine(title); len(headings) == 0 && body != "" && title != "" {
		if line, _, _ := strings.Cut(body, "\n"); plain.OneLine(line) == title {
			headings = []document.Heading{{Level: 1, Text: title}}
		} else {
			d.Put(plain.Block{Level: 1, Text: title}, nil)
		}
	}
	at := d.Block(plain.Code, body) // with its white space
	d.Blank()
	for _, h := range headings {
		if at >= 0 && at+h.Offset < len(d.Buf) {
			d.Mark(at+h.Offset, h.Level, h.Text)
		}
	}
}
