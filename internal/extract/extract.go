// Package extract turns the bytes of a file or a web page into plain text with
// a title, headings and a language.
//
// It knows PDF, HTML, Markdown and plain text of every kind (source code,
// tables, logs) in any common charset. It is pure: it opens no file and no socket, so
// that whoever has bytes can use it: the ingest pipeline, the content fetch of
// the search bridge, uploads.
package extract

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"knowhow/internal/errkind"
)

// Bounds on what is kept of a document beside its body.
const (
	maxTitle    = 300   // bytes
	maxHeading  = 300   // bytes of one heading
	maxHeadings = 20000 // headings of one document
)

// An Input is a document as it was read.
type Input struct {
	// Name is a file name or the path of a URL; its ending tells the type
	// where MediaType does not. It may be "".
	Name string

	// MediaType is what the origin says, with or without a charset
	// parameter. "" means that name and bytes decide, as do
	// "application/octet-stream" and, for a name with a known ending,
	// "text/plain".
	MediaType string

	Data []byte // never changed

	// Verbatim keeps the line ends, blank lines and trailing blanks of plain
	// text, and the front matter of Markdown that its origin calls
	// "text/plain".
	Verbatim bool
}

// A Text is the readable part of a document. All strings are valid UTF-8
// without control characters other than newline and tab, and, where Verbatim was
// asked for, the other ends of lines and pages.
type Text struct {
	Title     string // <title>, front matter or metadata title, else first (of a PDF largest) heading; "" if there is none
	Body      string // paragraphs parted by an empty line; Markdown and plain text as written, without front matter
	Lang      string // ISO 639-1 code; "" where unknown
	MediaType string // without parameters, for example "text/html"
	FileType  string // Fess's word for it: "html", "pdf", "txt" for prose, "others" for code and data
	Headings  []Heading
	Canonical string // absolute http or https URL that an HTML page gives for itself; "" if none
}

// A Heading is a title inside the body.
type Heading struct {
	Offset int    // first byte in Body
	Level  int    // 1 to 6
	Text   string // one line, never empty
}

// Extract returns the text of a document. Damaged documents yield what can be
// read of them. Errors are of kind [errkind.Unsupported] for a binary file, a
// format that is not known (the message names it) and a PDF without text or
// with a password, [errkind.Corrupt] for a PDF damaged beyond repair, and
// [errkind.TooLarge] for one that passes a limit of package pdf.
//
// Extract stops soon after ctx is done, with an error that wraps ctx's cause.
// After a deadline it is also of kind TooLarge, because the same document takes
// as long the next time; give the deadline a cause that says how long it was.
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

// stopped returns why ctx is done, nil if it is not.
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

// extract does the work of Extract. Its parsers stop early when ctx is done; what
// they have by then is dropped.
func extract(ctx context.Context, in Input) (*Text, error) {
	f, err := formatOf(in)
	if err != nil {
		return nil, err
	}
	t := &Text{MediaType: f.media, FileType: f.fileType()}
	var s string
	if f.kind != kindPDF {
		s = decode(ctx, in.Data, charsetParam(in.MediaType), f.kind == kindHTML)
	}
	switch {
	case f.kind == kindPDF:
		if err := extractPDF(ctx, t, in.Data); err != nil {
			return nil, err
		}
	case f.kind == kindHTML:
		extractHTML(ctx, t, s)
	case in.Verbatim && (f.kind == kindText || mediaType(in.MediaType) == "text/plain"):
		t.Body = printable(ctx, s)
	case f.kind == kindMarkdown:
		extractMarkdown(ctx, t, clean(ctx, s))
	default:
		t.Body = trimBlankLines(clean(ctx, s))
	}
	if t.Title == "" && len(t.Headings) > 0 {
		t.Title = t.Headings[0].Text
	}
	t.Title = shorten(t.Title, maxTitle)
	t.Lang = language(t.Body, t.Lang)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// Supported reports whether Extract would take a file with this name whose
// first bytes, up to 512, are head. Text with an unknown ending or none counts
// as text; an empty file does too.
func Supported(name string, head []byte) bool {
	_, err := formatOf(Input{Name: name, Data: head[:min(len(head), sniffLen)]})
	return err == nil
}

// unsupported makes the error for a format that has no text for us.
func unsupported(what string) error {
	return fmt.Errorf("%s: %w", what, errkind.Unsupported)
}

// shorten cuts s to at most n bytes at a rune border, with an ellipsis inside
// that limit.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.TrimRight(s[:n], " ") + "…"
}

// oneLine joins the words of s with single blanks.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
