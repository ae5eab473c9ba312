// Package office reads office documents (Office Open XML, OpenDocument, RTF) and
// books (EPUB).
package office

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
	"github.com/knowhow-mcp/knowhow/internal/extract/unpack"
)

// Media types of documents.
const (
	DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	ODT  = openDocument + "text"
	ODS  = openDocument + "spreadsheet"
	ODP  = openDocument + "presentation"
	EPUB = "application/epub+zip"
	RTF  = "application/rtf"
)

const openDocument = "application/vnd.oasis.opendocument."

// ErrNoDocument is the error for a ZIP archive that is not a document.
var ErrNoDocument = plain.Unsupported("ZIP archive: unpack it")

// IsPackage reports whether a ZIP archive is a document. What does not begin with
// an archive is none.
func IsPackage(data []byte) bool {
	files, err := unpack.Zip(data, "", maxParts)
	if err != nil {
		return false
	}
	for _, f := range files {
		switch partKey(f.Name) {
		case "[content_types].xml", "mimetype", "meta-inf/container.xml", "meta-inf/manifest.xml":
			return true
		}
	}
	return false
}

// ReadPackage reads a document that is a ZIP archive, and sets its media type. The
// parts of the archive determine its format, not its name. The extension of the name
// is usual for the format read or for the format unread, which is not read; both may
// be "". The error is ErrNoDocument if both are and the archive is no document.
func ReadPackage(ctx context.Context, t *plain.Text, data []byte, read, unread string) error {
	a, err := openArchive(ctx, data, cmp.Or(read, unread, "ZIP archive"))
	if errors.Is(err, errkind.Corrupt) && unread != "" {
		return plain.Unsupported(unread)
	}
	if err != nil {
		return err
	}
	f, main := a.format()
	switch {
	case f.read == nil && f.name == "" && read != "":
		return plain.Damaged(read)
	case f.read == nil && f.name+unread == "":
		return ErrNoDocument
	case f.read == nil:
		return plain.Unsupported(cmp.Or(f.name, unread))
	case a.locked():
		return plain.Locked(f.name)
	}
	d := newDoc(ctx)
	d.archive = a
	title := f.read(d, main)
	switch {
	case d.Err != nil:
		return fmt.Errorf("%s: %w", f.name, d.Err)
	case a.left < 0:
		return fmt.Errorf("%s: %w", f.name, unpack.ErrTooLong)
	case a.damaged && len(d.Buf) == 0:
		return plain.Damaged(f.name)
	}
	t.MediaType, t.Damaged = f.media, a.damaged
	d.finish(t, title)
	return nil
}

// A format is a format of documents that are ZIP archives.
type format struct {
	name  string // for messages
	media string
	read  func(d *doc, main string) (title string)
}

// format determines the format of a document and its main part. The format has no
// read function if it is not supported, and is the zero format if the archive is not
// a document.
func (a *archive) format() (f format, main string) {
	var (
		book = format{"EPUB book", EPUB, readEPUB}
		text = format{"OpenDocument text", ODT, readODF}
	)
	switch media := strings.TrimSpace(a.read("mimetype")); {
	case media == EPUB:
		return book, ""
	case strings.HasPrefix(media, ODT):
		return text, "content.xml"
	case strings.HasPrefix(media, ODS):
		return format{"OpenDocument spreadsheet", ODS, readODF}, "content.xml"
	case strings.HasPrefix(media, ODP), strings.HasPrefix(media, openDocument+"graphics"):
		return format{"OpenDocument presentation", ODP, readODF}, "content.xml"
	case strings.HasPrefix(media, openDocument):
		const what = "OpenDocument file of another kind than text, spreadsheet and presentation: export it as PDF"
		return format{name: what}, ""
	}
	switch {
	case a.has("META-INF/container.xml"):
		return book, ""
	case !a.has("[Content_Types].xml") && a.has("content.xml") && a.has("META-INF/manifest.xml"):
		return text, "content.xml"
	case !a.has("[Content_Types].xml"):
		return format{}, ""
	}
	main = a.related("", "officedocument")
	kind := a.contentType(main)
	is := func(s, folder string) bool {
		return strings.Contains(kind, s) || kind == "" && strings.HasPrefix(main, folder)
	}
	switch {
	case strings.Contains(kind, "sheet.binary"):
		return format{name: BinaryExcel}, ""
	case is("wordprocessingml", "word/"), strings.Contains(kind, "ms-word"):
		return format{"Word document", DOCX, readDOCX}, main
	case is("presentationml", "ppt/"), strings.Contains(kind, "ms-powerpoint"):
		return format{"PowerPoint presentation", PPTX, readPPTX}, main
	case is("spreadsheetml", "xl/"), strings.Contains(kind, "ms-excel"):
		return format{"Excel workbook", XLSX, readXLSX}, main
	case main == "":
		return format{}, ""
	}
	return format{name: "office document of an unknown kind: export it as PDF"}, ""
}

// contentType returns the content type of a part in lower case, or "" if it is not
// declared.
func (a *archive) contentType(part string) string {
	x := a.xml("[Content_Types].xml")
	for x.next() {
		if x.starts("override") && partKey(x.attr("partname")) == partKey(part) {
			return strings.ToLower(x.attr("contenttype"))
		}
	}
	return ""
}

// locked reports whether the content of an OpenDocument file is encrypted.
// Office Open XML with a password is not a ZIP archive; see [OLE].
func (a *archive) locked() bool {
	x := a.xml("META-INF/manifest.xml")
	for x.next() {
		if x.starts("encryption-data") {
			return true
		}
	}
	return false
}

// A doc is a document that is being read, with what the readers of all formats
// need. It is used in one call only.
type doc struct {
	ctx      context.Context
	*archive // nil if the document is none
	*plain.Writer
	noted   int             // number of the last footnote
	pending []string        // notes to add after the current block
	seen    map[string]bool // headers and footers that were added
}

func newDoc(ctx context.Context) *doc {
	return &doc{ctx: ctx, Writer: plain.NewWriter(ctx), seen: map[string]bool{}}
}

// finish sets the result. The title is that of the document's properties unless it
// is one that programs invent.
func (d *doc) finish(t *plain.Text, title string) {
	d.Finish(t)
	t.Title = realTitle(plain.OneLine(plain.Clean(d.ctx, strings.ToValidUTF8(title, ""))))
}

// more reads the next token of x, unless the text has become too long.
func (d *doc) more(x *xmlReader) bool {
	if d.Err != nil || d.ctx.Err() != nil {
		return false
	}
	if x.next() {
		return true
	}
	d.Fail(x.err())
	return false
}

// child reads up to the next element that starts inside of the element with this
// depth. It returns false at the end of that element.
func (d *doc) child(x *xmlReader, depth int) bool {
	for d.more(x) && x.depth >= depth {
		if x.kind == html.StartTagToken {
			return true
		}
	}
	return false
}

// footnote adds a footnote after the current block and returns the mark at its
// place.
func (d *doc) footnote(text string) string {
	d.noted++
	mark := "[" + strconv.Itoa(d.noted) + "]"
	d.pending = append(d.pending, mark+" "+text)
	return mark
}

// addNotes adds the notes on the current block.
func (d *doc) addNotes() {
	for _, s := range d.pending {
		d.Block(plain.Paragraph, s)
	}
	d.pending = d.pending[:0]
}

// isNew reports whether a header or footer has letters and was not seen before. They
// are repeated on many pages.
func (d *doc) isNew(margin string) bool {
	if d.seen[margin] || len(d.seen) >= plain.MaxHeadings || !plain.HasLetter(margin) {
		return false
	}
	d.seen[margin] = true
	return true
}

// slide adds a slide with the notes of its speaker. Its heading is its number and
// its title, if it has one, and mark.
func (d *doc) slide(number int, title, mark string, blocks, notes []plain.Block) {
	s := "Slide " + strconv.Itoa(number)
	if title = plain.OneLine(title); title != "" {
		s += ": " + title
	}
	s += mark
	at := d.Block(plain.Paragraph, s)
	if d.MarkBlock(1, at, s); at >= 0 {
		d.Pages = append(d.Pages, document.Page{Offset: at, Label: strconv.Itoa(number)})
	}
	for _, b := range blocks {
		d.Block(b.Kind, b.Text)
	}
	if len(notes) > 0 {
		d.Block(plain.Paragraph, "Notes: "+plain.JoinBlocks(notes, "\n"))
	}
}

// hiddenMark follows the name of a hidden sheet or slide.
const hiddenMark = " (hidden)"

// drawing adds the texts of a drawing, diagram or chart: its paragraphs, the
// alternative texts, and the names of series and categories.
func (d *doc) drawing(part string) {
	x := d.xml(part)
	var line []byte
	named := 0 // depth of the names of a series or of categories
	for d.more(x) {
		switch {
		case x.starts("fallback"):
			x.skip()
		case x.starts("t"):
			line = append(line, x.content(plain.MaxToken)...)
		case x.starts("br"):
			line = append(line, '\n')
		case x.starts("cnvpr"):
			if alt := x.attr("descr"); alt != "" {
				d.Block(plain.Paragraph, bracketed(alt))
			}
		case x.starts("tx"), x.starts("cat"):
			named = x.depth
		case named > 0 && x.starts("v"):
			line = append(append(line, ' '), x.content(plain.MaxToken)...)
		case x.kind == html.EndTagToken && (x.name == "p" || named > 0 && x.depth < named):
			d.Block(plain.Paragraph, string(line))
			line = line[:0]
			if x.name != "p" {
				named = 0
			}
		}
	}
}

// bracketed returns an alternative text, which stands for a picture.
func bracketed(alt string) string { return "[" + plain.OneLine(alt) + "]" }

// maxStyles is the maximum number of styles of a document, and of other things that
// it declares.
const maxStyles = 10000

// firstTitle returns the text of the first element named title, or "".
func firstTitle(x *xmlReader) string {
	for x.next() {
		if x.starts("title") {
			return x.content(4 * plain.MaxTitle)
		}
	}
	return ""
}

// coreTitle returns the title in the properties of an Office Open XML document.
func (a *archive) coreTitle() string {
	return firstTitle(a.xml(cmp.Or(a.related("", "core-properties"), "docProps/core.xml")))
}

// inventedTitles are titles that programs give to every new document.
var inventedTitles = strings.Fields(`title document dokument book mappe presentation präsentation slide template
	workbook spreadsheet`)

// realTitle returns "" for a title that programs give to every new document.
func realTitle(s string) string {
	l := strings.ToLower(s)
	for _, made := range []string{"microsoft word - ", "untitled", "unbenannt", "sans titre", "sin título", "無題"} {
		if strings.HasPrefix(l, made) {
			return ""
		}
	}
	name := strings.TrimRight(l, "0123456789 ")
	if name == "" || slices.Contains(inventedTitles, name) ||
		len(l) < 30 && (strings.HasPrefix(l, "powerpoint") || strings.HasSuffix(l, "powerpoint")) {
		return ""
	}
	return s
}
