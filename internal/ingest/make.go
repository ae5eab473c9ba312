package ingest

import (
	"context"
	"fmt"
	"net/url"
	"path"

	"github.com/knowhow-mcp/knowhow/internal/chunk"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/extract"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// ReaderVersion changes when the text of files changes that are indexed already:
// files that another version has read are read again.
const ReaderVersion = 5

// Make returns the document for data: the bytes of a file, an upload or a web page.
// known contains the metadata of the document: at least Label and Path, whose extension
// determines the format, and MIMEType if the origin declared it, as in a Content-Type
// header.
//
// Make sets MIMEType, FileType, Lang, Size, Hash, Text, Chunks, Sections and Pages.
// It sets ID, Filename, Title and Type if they are empty in known. All other fields are
// those of known.
//
// It uses neither disk nor network, and stops soon after ctx is done. Errors
// are those of [extract.Extract].
func Make(ctx context.Context, data []byte, known document.Document) (*document.Document, error) {
	return makeOne(ctx, extract.Input{Name: known.Path, MediaType: known.MIMEType, Data: data}, known)
}

// MakeNote returns the document for a note, a text in Markdown. Its format is never
// determined by its bytes: a note may begin like a file of another format. See [Make]
// for known and the errors.
func MakeNote(ctx context.Context, text string, known document.Document) (*document.Document, error) {
	return makeOne(ctx, extract.Input{Name: known.Path, MediaType: "text/markdown; charset=utf-8", Data: []byte(text),
		Typed: true}, known)
}

func makeOne(ctx context.Context, in extract.Input, known document.Document) (d *document.Document, err error) {
	defer recovered(&err)
	text, err := extract.Extract(ctx, in)
	if err != nil {
		return nil, err
	}
	return newDocument(known, text, int64(len(in.Data))), nil
}

// MakeAll returns the documents for a file of a source: more than one for a mailbox
// or an archive. Their paths begin with that of the file. left are the parts that
// are left out. docs is empty if the file is. See [Make] for known and the errors.
func MakeAll(
	ctx context.Context, in extract.Input, known document.Document,
) (docs []*document.Document, left []Skipped, err error) {
	defer recovered(&err)
	seen := map[string]bool{}
	keep := func(name string) bool {
		part, reason := leftOutName(name)
		if reason != "" && !seen[part] {
			seen[part] = true
			left = append(left, Skipped{Path: partPath(known.Path, part), Reason: reason})
		}
		return reason == ""
	}
	err = extract.Parts(ctx, in, keep, func(p extract.Part) error {
		if s, ok := SkippedPart(known.Path, p); ok {
			if left = append(left, s); !s.Reason.InPart() {
				return nil
			}
		}
		d := known
		if p.Name != "" {
			d.Path = partPath(known.Path, p.Name)
			d.SourcePath = d.Path
			d.URL += "#" + (&url.URL{Path: p.Name}).EscapedPath()
		}
		docs = append(docs, newDocument(d, p.Text, p.Size))
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return docs, left, nil
}

// SkippedPart returns what is left out of a part of a file: all of it if it cannot
// be read or is empty, unless the reason is one of a file that is indexed in part.
// ok is false if nothing is.
func SkippedPart(file string, p extract.Part) (s Skipped, ok bool) {
	s.Path = partPath(file, p.Name)
	switch {
	case p.Err != nil:
		s.Err = expected(p.Err, s.Path)
		if s.Reason = reasonOf(s.Err); s.Err == errNoText {
			s.Err = nil
		}
	case p.Damaged:
		s.Reason, s.Err = Partly, errPartly
	case p.Illegible > 0:
		s.Err = illegible(p.Illegible)
		s.Reason = reasonOf(s.Err)
	case p.Body == "" && p.Title == "":
		s.Reason = Empty
	default:
		return Skipped{}, false
	}
	return s, true
}

// partPath returns the path of a part of a file.
func partPath(file, part string) string {
	if part == "" {
		return file
	}
	return file + "/" + part
}

// recovered turns a panic into an error: the decoders process foreign bytes. A
// defect in one of them must affect one document, not the program.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("extracting its text: defect in the program: %v", p)
	}
}

// newDocument returns the document with a text, whose original has size bytes.
func newDocument(known document.Document, text *extract.Text, size int64) *document.Document {
	d := &known
	d.MIMEType, d.FileType, d.Lang = text.MediaType, text.FileType, text.Lang
	d.Size, d.Hash, d.Text = size, chunk.Hash(text.Body), text.Body
	d.Chunks = chunk.Split(text.Body, text.Headings, chunk.Options{})
	d.Sections, d.Pages = chunk.Sections(text.Body, text.Headings), text.Pages
	if d.ID == "" {
		d.ID = document.IDOf(d.Label, d.Path)
	}
	if d.Filename == "" {
		d.Filename = path.Base(d.Path)
	}
	if d.Title == "" {
		d.Title = text.Title
	}
	if d.Title == "" {
		d.Title = sanitize.Line(d.Filename)
	}
	if d.Type == "" {
		d.Type = typeOf(text.MediaType)
	}
	return d
}

// typeOf returns the type of a document with a media type: the usual extension of
// the format.
func typeOf(media string) string {
	switch media {
	case "text/markdown":
		return "markdown"
	case "text/html", "application/xhtml+xml":
		return "html"
	case "application/pdf":
		return "pdf"
	case "application/rtf":
		return "rtf"
	case "application/epub+zip":
		return "epub"
	case "text/csv", "text/tab-separated-values":
		return "csv"
	case "application/vnd.openxmlformats-officedocument.wordprocessingml.document":
		return "docx"
	case "application/vnd.openxmlformats-officedocument.presentationml.presentation":
		return "pptx"
	case "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":
		return "xlsx"
	case "application/vnd.oasis.opendocument.text":
		return "odt"
	case "application/vnd.oasis.opendocument.spreadsheet":
		return "ods"
	case "application/vnd.oasis.opendocument.presentation":
		return "odp"
	}
	return "text"
}
