// Package extract extracts plain text, a title, headings and a language from
// the bytes of a file or a web page.
//
// It supports PDF, HTML, office documents (Office Open XML, OpenDocument, RTF),
// EPUB, CSV, mail, the common markup languages, data and source code, and plain
// text of every kind in any common charset; see docs/formats.md. A file may be
// compressed with gzip. [Parts] reads files that contain several documents. The
// package is pure: it opens no file and no
// socket. It is used by the ingest pipeline, the content fetch of the search
// bridge, and for uploads.
package extract

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
)

// Limits on the parts of a document apart from its body.
const (
	maxTitle    = 300   // bytes
	maxHeading  = 300   // bytes of one heading
	maxHeadings = 20000 // headings of one document

	maxPageLabel = 40 // bytes of the label of a page
)

// TermLevel is the level of the terms of definition lists, below all titles.
const TermLevel = 7

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

// A Text is the readable part of a document. All strings are valid UTF-8
// without control characters except newline and tab, and with Verbatim the
// other ends of lines and pages.
type Text struct {
	Title     string // <title>, title in front matter or metadata, else first (in a PDF, largest) heading; "" if there is none
	Body      string // paragraphs separated by an empty line; Markdown and plain text as written, Markdown with the values of its front matter first
	Lead      int    // bytes at the start of Body that do not stand so in the file: the values of front matter
	Lang      string // ISO 639-1 code; "" if unknown
	MediaType string // without parameters, for example "text/html"
	FileType  string // Fess's name for it: "html", "pdf", "txt" for prose, "others" for code and data
	Headings  []Heading
	Pages     []Page // of a PDF or a presentation, in order; nil for other documents
	Damaged   bool   // a part of the document is missing or cannot be read
	Illegible int    // pages of a PDF that have lost text, because their fonts do not define which characters they show
	Canonical string // absolute http or https URL in an HTML page's canonical link; "" if there is none
}

// A Heading is a title inside the body, or a term of a definition list, such as
// an option or a function: readers look for it as for a title. A heading of
// TermLevel without text is the end of such a list. Other levels are 1 to 6.
type Heading = document.Heading

// A Page is the beginning of a page or a slide with text. Its label is its number
// from 1, or the label that a PDF gives the page, such as "iv".
type Page = document.Page

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
	t := &Text{MediaType: f.media, FileType: f.fileType()}
	var s string
	if !f.kind.binary() {
		s = decode(ctx, in.Data, charsetParam(in.MediaType), f.kind == kindHTML, in.languages()...)
	}
	if what := firstOf(documentNames[extension(in.Name)], packedNames[extension(in.Name)]); what != "" && len(in.Data) == 0 {
		return nil, damaged("(empty) " + what)
	}
	switch {
	case in.Single && f.kind == kindGzip:
		return nil, unsupported("gzip archive")
	case f.kind == kindGzip:
		file, err := in.gunzip(ctx)
		if err != nil {
			return nil, err
		}
		return extract(ctx, file)
	case f.kind == kindZip:
		if _, err := openZip(in.Data, "ZIP archive", maxParts); err != nil {
			return nil, err
		}
		return nil, errNoDocument
	case f.kind == kindMail:
		err = extractMail(ctx, t, in)
	case f.kind == kindMailbox:
		err = joinMessages(ctx, t, in)
	case f.kind == kindPackage:
		err = extractPackage(ctx, t, in)
	case f.kind == kindRTF:
		err = extractRTF(ctx, t, in.Data)
	case f.kind == kindOLE:
		err = oleFormat(in.Data)
	case f.kind == kindPDF:
		err = extractPDF(ctx, t, &in)
	case f.kind == kindHTML:
		extractHTML(ctx, t, s)
	case in.Verbatim && (f.kind.asWritten() || mediaType(in.MediaType) == "text/plain"):
		t.Body = printable(ctx, s)
	case f.kind == kindMarkdown:
		extractMarkdown(ctx, t, clean(ctx, s))
	case f.kind == kindCSV && extractCSV(ctx, t, clean(ctx, s), separatorOf(f.media)):
	case textReaders[f.kind] != nil && !isHuge(f.kind, s):
		textReaders[f.kind](ctx, t, clean(ctx, s))
	default:
		t.Body = trimBlankLines(clean(ctx, s))
	}
	if err == nil && t.Body == "" && len(in.Data) > 0 {
		switch f.kind {
		case kindSVG:
			err = unsupported("image without text")
		case kindMan:
			err = unsupported("manual page that only refers to another one")
		}
	}
	if err != nil {
		return nil, err
	}
	if t.Title == "" && len(t.Headings) > 0 && !f.kind.asWritten() && !isSheet(t.MediaType) {
		if h := t.Headings[0]; h.Level < TermLevel {
			t.Title = h.Text
		}
	}
	t.makeValid()
	t.Title = shorten(t.Title, maxTitle)
	t.Damaged = t.Damaged || in.cut
	t.Lang = language(t.Body, t.Lang)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// Limits on the source of a text in a markup language. A reader takes several
// times as much memory, and more for each line. People do not write so much in one
// file.
const (
	maxMarkup      = 16 << 20 // bytes
	maxNotebook    = 32 << 20 // bytes of a notebook, which may contain images
	maxMarkupLines = 500_000
)

// isHuge reports whether a text exceeds a limit for its kind, so that it is kept as
// it is written.
func isHuge(k kind, s string) bool {
	switch k {
	case kindRST, kindAsciiDoc, kindOrg, kindLaTeX, kindMan, kindSubtitles:
		return len(s) > maxMarkup || strings.Count(s, "\n") > maxMarkupLines
	case kindSVG, kindNotebook:
		return len(s) > maxNotebook
	}
	return false
}

// makeValid replaces bytes that are not UTF-8: a defect in one reader must not
// affect the users of a text, who rely on it. Offsets do not change.
func (t *Text) makeValid() {
	if !utf8.ValidString(t.Body) {
		b := []byte(t.Body)
		for i := 0; i < len(b); {
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				b[i] = '?'
			}
			i += n
		}
		t.Body = string(b)
	}
	t.Title = strings.ToValidUTF8(t.Title, "?")
	for i, h := range t.Headings {
		t.Headings[i].Text = strings.ToValidUTF8(h.Text, "?")
	}
}

// Supported reports whether Extract supports a file with this name whose first
// bytes, up to 512, are head. A file with an unknown extension is supported if
// it looks like text. So are an empty file, and a damaged one of a format that
// Extract reads.
func Supported(name string, head []byte) bool {
	f, err := formatOf(Input{Name: name, Data: head[:min(len(head), sniffLen)]})
	if err == nil && f.kind == kindGzip {
		data, ok := gunzipHead(head)
		if !ok {
			return true
		}
		_, err = formatOf(Input{Name: gunzipName(name), Data: data})
	}
	return err == nil || errors.Is(err, errkind.Corrupt)
}

// unsupported returns the error for an unsupported format.
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
func oneLine(s string) string {
	if !strings.Contains(s, "  ") && strings.TrimSpace(s) == s && strings.IndexFunc(s, notBlank) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for word := range strings.FieldsSeq(s) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return b.String()
}

// notBlank reports whether r is white space other than a blank.
func notBlank(r rune) bool { return r != ' ' && unicode.IsSpace(r) }
