package extract

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/net/html"

	"knowhow/internal/errkind"
)

// A packageKind is a document format whose files are ZIP archives.
type packageKind struct {
	what  string // for messages
	media string
	read  func(a *archive, f *flow, main string) (title string)
}

// extractPackage reads a document that is a ZIP archive. The parts of the archive
// determine its format, not its name.
func extractPackage(ctx context.Context, t *Text, in Input) error {
	ext := extension(in.Name)
	a, err := openArchive(ctx, in.Data, firstOf(documentNames[ext], unreadDocuments[ext], "ZIP archive"))
	if errors.Is(err, errkind.Corrupt) && unreadDocuments[ext] != "" {
		return unsupported(unreadDocuments[ext])
	}
	if err != nil {
		return err
	}
	k, main := a.kind()
	switch {
	case k.read == nil && k.what == "" && documentNames[ext] != "":
		return damaged(documentNames[ext])
	case k.read == nil && k.what+unreadDocuments[ext] == "":
		return errNoDocument
	case k.read == nil:
		return unsupported(firstOf(k.what, unreadDocuments[ext]))
	case a.locked():
		return locked(k.what)
	}
	t.MediaType, t.FileType = k.media, format{media: k.media}.fileType()
	f := &flow{ctx: ctx}
	title := k.read(a, f, main)
	if err := a.err(f, k.what); err != nil {
		return err
	}
	f.text(t, title)
	t.Damaged = a.damaged
	return nil
}

// errNoDocument is the error for a ZIP archive that is not a document.
var errNoDocument = unsupported("ZIP archive: unpack it")

func firstOf(s ...string) string {
	for _, s := range s {
		if s != "" {
			return s
		}
	}
	return ""
}

// Media types of documents.
const (
	mediaDOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	mediaPPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	mediaXLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	mediaODT  = "application/vnd.oasis.opendocument.text"
	mediaODS  = "application/vnd.oasis.opendocument.spreadsheet"
	mediaODP  = "application/vnd.oasis.opendocument.presentation"
	mediaEPUB = "application/epub+zip"
	mediaRTF  = "application/rtf"
	mediaCSV  = "text/csv"
	mediaTSV  = "text/tab-separated-values"
)

// kind determines the format of a document and its main part. The format has no
// read function if it is not supported, and is the zero packageKind if the archive
// is not a document.
func (a *archive) kind() (k packageKind, main string) {
	switch media := strings.TrimSpace(a.read("mimetype")); {
	case media == mediaEPUB:
		return packageKind{"EPUB book", mediaEPUB, readEPUB}, ""
	case strings.HasPrefix(media, mediaODT):
		return packageKind{"OpenDocument text", mediaODT, readODF}, "content.xml"
	case strings.HasPrefix(media, mediaODS):
		return packageKind{"OpenDocument spreadsheet", mediaODS, readODF}, "content.xml"
	case strings.HasPrefix(media, mediaODP), strings.HasPrefix(media, "application/vnd.oasis.opendocument.graphics"):
		return packageKind{"OpenDocument presentation", mediaODP, readODF}, "content.xml"
	case strings.HasPrefix(media, "application/vnd.oasis.opendocument."):
		return packageKind{what: "OpenDocument file of another kind than text, spreadsheet and presentation: export it as PDF"}, ""
	}
	switch {
	case a.has("META-INF/container.xml"):
		return packageKind{"EPUB book", mediaEPUB, readEPUB}, ""
	case !a.has("[Content_Types].xml"):
		if a.has("content.xml") && a.has("META-INF/manifest.xml") {
			return packageKind{"OpenDocument text", mediaODT, readODF}, "content.xml"
		}
		return packageKind{}, ""
	}
	_, all := a.relationships("")
	for _, r := range all {
		if r.kind == "officedocument" {
			main = r.target
		}
	}
	types := a.contentTypes(main)
	in := func(s, folder string) bool {
		return strings.Contains(types, s) || types == "" && strings.HasPrefix(main, folder)
	}
	switch {
	case strings.Contains(types, "sheet.binary"):
		return packageKind{what: binaryExcel}, ""
	case in("wordprocessingml", "word/"), strings.Contains(types, "ms-word"):
		return packageKind{"Word document", mediaDOCX, readDOCX}, main
	case in("presentationml", "ppt/"), strings.Contains(types, "ms-powerpoint"):
		return packageKind{"PowerPoint presentation", mediaPPTX, readPPTX}, main
	case in("spreadsheetml", "xl/"), strings.Contains(types, "ms-excel"):
		return packageKind{"Excel workbook", mediaXLSX, readXLSX}, main
	case main == "":
		return packageKind{}, ""
	}
	return packageKind{what: "office document of an unknown kind: export it as PDF"}, ""
}

// contentTypes returns the content type of a part in lower case, or "" if it is
// not declared.
func (a *archive) contentTypes(part string) string {
	x := a.xml("[Content_Types].xml")
	for x.next() {
		if x.starts("override") && partKey(x.attr("partname")) == partKey(part) {
			return strings.ToLower(x.attr("contenttype"))
		}
	}
	return ""
}

// locked reports whether the content of an OpenDocument file is encrypted.
// Office Open XML with a password is not a ZIP archive; see [oleFormat].
func (a *archive) locked() bool {
	x := a.xml("META-INF/manifest.xml")
	for x.next() {
		if x.starts("encryption-data") {
			return true
		}
	}
	return false
}

// coreTitle returns the title in the properties of an Office Open XML document.
func coreTitle(a *archive) string {
	part := "docProps/core.xml"
	_, all := a.relationships("")
	for _, r := range all {
		if r.kind == "core-properties" {
			part = r.target
		}
	}
	x := a.xml(part)
	for x.next() {
		if x.starts("title") {
			return x.content(4 * maxTitle)
		}
	}
	return ""
}

// drawing adds the texts of a drawing, diagram or chart: its paragraphs, the
// alternative texts, and the names of series and categories.
func drawing(a *archive, f *flow, part string) {
	x := a.xml(part)
	var line []byte
	named := 0 // depth of the names of a series or of categories
	for f.more(x) {
		switch {
		case x.starts("fallback"):
			x.skip()
		case x.starts("t"):
			line = append(line, x.content(maxToken)...)
		case x.starts("br"):
			line = append(line, '\n')
		case x.starts("cnvpr"):
			if alt := x.attr("descr"); alt != "" {
				f.add(paragraphBlock, bracketed(alt))
			}
		case x.starts("tx"), x.starts("cat"):
			named = x.depth
		case named > 0 && x.starts("v"):
			line = append(append(line, ' '), x.content(maxToken)...)
		case x.kind == html.EndTagToken && (x.name == "p" || named > 0 && x.depth < named):
			f.add(paragraphBlock, string(line))
			line = line[:0]
			if x.name != "p" {
				named = 0
			}
		}
	}
}

// bracketed returns an alternative text, which stands for a picture.
func bracketed(alt string) string { return "[" + oneLine(alt) + "]" }
