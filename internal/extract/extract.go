// Package extract extracts plain text, a title, headings and a language from
// the bytes of a file or a web page.
//
// It supports PDF, HTML, office documents (Office Open XML, OpenDocument, RTF),
// EPUB, CSV, mail, the common markup languages, data and source code, and plain
// text of every kind in any common charset; see docs/formats.md. A file may be
// compressed with gzip. [Parts] reads files that contain several documents. The
// package is pure: it opens no file and no socket.
//
// The formats are declared in one table. The packages below extract read them, one
// for each family.
package extract

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract/charset"
	"github.com/knowhow-mcp/knowhow/internal/extract/mail"
	"github.com/knowhow-mcp/knowhow/internal/extract/office"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
	"github.com/knowhow-mcp/knowhow/internal/extract/unpack"
)

// An Input is a document to be extracted.
type Input struct {
	// Name is a file name or the path of a URL. Its extension determines the
	// type if MediaType does not. It may be "".
	Name string

	// MediaType is the type declared by the origin, with or without a charset
	// parameter. With "" or "application/octet-stream", name and bytes
	// determine the type. So they do with "text/plain" if the name has a known
	// extension.
	MediaType string

	// Lang is the language that neighbours of the document have, an ISO 639-1 code,
	// or "". It helps to determine the charset of a short text.
	Lang string

	Data []byte // not modified

	// Typed says that Data is a text of the type that MediaType declares, whatever
	// its first bytes look like, as if a person typed it.
	Typed bool

	// Verbatim keeps the line ends, blank lines and trailing blanks of plain
	// text, and the front matter of Markdown with the media type "text/plain".
	Verbatim bool

	// MaxUnpacked is how many bytes may be unpacked, in all; 0 means 64 MiB. If it is
	// set, a PDF document may take less memory, too. If Parts needs more, the error is
	// ErrUnpacked if MaxUnpacked is set.
	MaxUnpacked int64

	// Single refuses files that have to be unpacked. Files attached to a mail are
	// only named.
	Single bool

	nesting nesting
	cut     bool // the end of Data is missing
}

// A Text is the readable part of a document.
type Text = plain.Text

// ErrLocked is wrapped by the errors for documents with a password or with copy
// protection. It is of kind [errkind.Unsupported].
var ErrLocked = plain.ErrLocked

// Extract returns the text of a document. For a damaged document, it returns
// the readable part. Errors are of kind [errkind.Unsupported] for a binary
// file, an unsupported format (the message names it), a document with a
// password and a PDF without text, [errkind.Corrupt] for a document damaged
// beyond repair, and [errkind.TooLarge] for one that exceeds a limit.
//
// Extract stops soon after ctx is done, with an error that wraps ctx's cause.
// After a deadline it is also of kind TooLarge, because the same document takes
// as long the next time. The cause of the deadline should contain its duration.
func Extract(ctx context.Context, in Input) (*Text, error) {
	t, err := extract(ctx, in)
	if stop := stopped(ctx); err != nil && stop != nil {
		err = stop
	}
	if err != nil {
		return nil, fmt.Errorf("extracting text: %w", err)
	}
	return t, nil
}

// stopped returns the cause if ctx is done, otherwise nil.
func stopped(ctx context.Context) error {
	cause := context.Cause(ctx)
	switch {
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return cause
	case cause == context.DeadlineExceeded:
		return fmt.Errorf("reading took too long: %w: %w", cause, errkind.TooLarge)
	}
	return fmt.Errorf("%w: %w", cause, errkind.TooLarge)
}

// extract implements Extract. Its parsers stop early when ctx is done, and
// their results are dropped.
func extract(ctx context.Context, in Input) (*Text, error) {
	f, err := formatOf(in)
	if err != nil {
		return nil, err
	}
	if what := binaryName(in.Name); what != "" && len(in.Data) == 0 {
		return nil, plain.Damaged("(empty) " + what)
	}
	t := &Text{MediaType: f.media}
	switch f.kind {
	case gzipFile:
		if in.Single {
			return nil, plain.Unsupported("gzip archive")
		}
		file, err := in.gunzip(ctx)
		if err != nil {
			return nil, err
		}
		return extract(ctx, file)
	case zipFile:
		if _, err = unpack.Zip(in.Data, "ZIP archive", maxParts); err == nil {
			err = office.ErrNoDocument
		}
	case mailFile:
		err = mail.Read(ctx, t, in.Data, in.attached(ctx))
	case mailboxFile:
		err = joinMessages(ctx, t, in)
	case packageFile:
		read, unread := byExtension[extension(in.Name)], ""
		if read.kind == unreadDocument {
			read.name, unread = "", read.name
		}
		if !read.isDocument() {
			read.name = ""
		}
		err = office.ReadPackage(ctx, t, in.Data, read.name, unread)
		f = byMedia[t.MediaType]
	case binaryFile:
		err = f.read(ctx, t, in)
	default:
		f.readText(ctx, t, in)
		if t.Body == "" && len(in.Data) > 0 && f.empty != "" {
			err = plain.Unsupported(f.empty)
		}
	}
	if err != nil {
		return nil, err
	}
	t.FileType = cmp.Or(f.group, "others")
	if t.Title == "" && len(t.Headings) > 0 && !f.asWritten && !f.sheets {
		if h := t.Headings[0]; h.Level < document.TermLevel {
			t.Title = h.Text
		}
	}
	t.KeepTerms()
	t.MakeValid()
	t.Title = plain.Shorten(t.Title, plain.MaxTitle)
	t.Damaged = t.Damaged || in.cut
	t.Lang = charset.Language(t.Body, t.Lang)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// readText reads a text.
func (f *format) readText(ctx context.Context, t *Text, in Input) {
	s := charset.Decode(ctx, in.Data, charset.Options{
		Declared: charsetParam(in.MediaType), HTML: f.page, Languages: charset.Hints(in.Name, in.Lang)})
	switch {
	case f.page:
		f.parse(ctx, t, s)
	case in.Verbatim && (f.asWritten || plain.MediaType(in.MediaType) == "text/plain"):
		t.Body = plain.Printable(ctx, s)
	case f.parse == nil || f.tooLong(s):
		t.Body = plain.TrimBlankLines(plain.Clean(ctx, s))
	default:
		f.parse(ctx, t, plain.Clean(ctx, s))
	}
}
