// Package plain is the text that the readers of all formats produce: its form, its
// limits, the writers that build it, and the errors of files without one.
package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Limits on the parts of a text.
const (
	MaxTitle     = 300      // bytes
	MaxHeading   = 300      // bytes of one heading
	MaxHeadings  = 20000    // headings of one document
	MaxPageLabel = 40       // bytes of the label of a page
	MaxText      = 32 << 20 // bytes of the text of a document that is not text itself: sixty thick books
	MaxColumns   = 16384    // of a table
)

// Limits on what is read.
const (
	MaxToken  = 16 << 20 // bytes of a tag or the text between two tags
	MaxDepth  = 2000     // nested elements or groups
	MaxMarked = 32 << 10 // bytes of a line whose markup is examined: people do not write longer ones
)

// A Text is the readable part of a document. All strings are valid UTF-8 without
// control characters except newline and tab, and if it was extracted verbatim,
// the other ends of lines and pages.
type Text struct {
	// Title is the <title>, the title in front matter or metadata, or else the first
	// heading, in a PDF the largest one; "" if there is none.
	Title string

	// Body consists of paragraphs separated by an empty line. Markdown and plain text
	// are as written, Markdown with the values of its front matter first.
	Body string

	Lead      int    // bytes at the start of Body that do not stand so in the file: the values of front matter
	Lang      string // ISO 639-1 code; "" if unknown
	MediaType string // without parameters, for example "text/html"
	FileType  string // Fess's name for it: "html", "pdf", "txt" for prose, "others" for code and data
	Headings  []document.Heading
	Pages     []document.Page // of a PDF or a presentation; nil for other documents
	Damaged   bool            // a part of the document is missing or cannot be read

	// Illegible is the number of pages of a PDF that have lost text, because their
	// fonts do not define which characters they show.
	Illegible int

	Canonical string // absolute http or https URL in an HTML page's canonical link; "" if there is none
}

// Mark records a heading of the text at an offset. Only one of a level of terms may
// have no text.
func (t *Text) Mark(offset, level int, text string) {
	t.Headings = mark(t.Headings, offset, level, text)
}

func mark(hs []document.Heading, offset, level int, text string) []document.Heading {
	if text == "" && level < document.TermLevel || len(hs) >= MaxHeadings {
		return hs
	}
	level = min(max(level, 1), document.NestedTermLevel)
	return append(hs, document.Heading{Offset: offset, Level: level, Text: Shorten(text, MaxHeading)})
}

// MakeValid replaces bytes that are not UTF-8: a defect in one reader must not
// affect the users of a text, who rely on it. Offsets do not change.
func (t *Text) MakeValid() {
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

// Shorten cuts s to at most n bytes at a rune border, with an ellipsis inside
// that limit.
func Shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.TrimRight(document.Truncate(s, n-len("…")), " ") + "…"
}

// OneLine joins the words of s with single blanks.
func OneLine(s string) string {
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

// HasLetter reports whether s contains a letter.
func HasLetter(s string) bool { return strings.IndexFunc(s, unicode.IsLetter) >= 0 }

// IsCJK reports whether a character belongs to a script of Chinese or Japanese, which
// have no blanks between words, or to their punctuation. A line that ends with one may
// end inside of a word.
func IsCJK(r rune) bool {
	return r >= 0x2e80 && r <= 0x9fff || r >= 0xf900 && r <= 0xfaff || r >= 0xff00 && r <= 0xffef || r >= 0x20000 &&
		r <= 0x3ffff
}

// Blanks returns the number of blanks and tabs at the start of s.
func Blanks(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// Indentation returns the width of the white space at the start of a line.
func Indentation(line string) int {
	n := 0
	for _, c := range line {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 8 - n%8
		default:
			return n
		}
	}
	return n
}

// OpenQuote returns the three quotes that a line opens and does not close, as in
// Python and TOML, or "".
func OpenQuote(line string) string {
	for _, q := range []string{`"""`, "'''"} {
		if strings.Count(line, q)%2 == 1 {
			return q
		}
	}
	return ""
}

// Roman returns a number from 1 to 3999 as a Roman numeral.
func Roman(n int) string {
	values := []int{1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1}
	var b strings.Builder
	for i, sign := range strings.Fields("M CM D CD C XC L XL X IX V IV I") {
		b.WriteString(strings.Repeat(sign, n/values[i]))
		n %= values[i]
	}
	return b.String()
}

// Letters returns a number from 1 as letters: A to Z, then AA to ZZ, and so on.
func Letters(n int) string { return strings.Repeat(string(rune('A'+(n-1)%26)), (n-1)/26+1) }

// MediaType returns the lower-case type without parameters, or "" if s contains
// none.
func MediaType(s string) string {
	s, _, _ = strings.Cut(s, ";")
	s = strings.ToLower(strings.TrimSpace(s))
	if strings.Count(s, "/") != 1 || len(s) > 100 || strings.ContainsAny(s, " \t,\"") {
		return ""
	}
	return s
}

// Unsupported returns the error for an unsupported format.
func Unsupported(what string) error {
	return fmt.Errorf("%s: %w", what, errkind.Unsupported)
}

// Damaged returns the error for a document that cannot be read.
func Damaged(what string) error {
	return fmt.Errorf("damaged %s: save or download it again: %w", what, errkind.Corrupt)
}

// TooLarge returns the error for a document that exceeds a limit.
func TooLarge(what, limit string) error {
	return fmt.Errorf("%s with %s: split it: %w", what, limit, errkind.TooLarge)
}

// Locked returns the error for an encrypted document.
func Locked(what string) error {
	return fmt.Errorf("%s with a password: save a copy without it: %w", what, ErrLocked)
}

// ErrLocked is wrapped by the errors for documents with a password or with copy
// protection. It is of kind [errkind.Unsupported].
var ErrLocked error = lockedError{}

type lockedError struct{}

// Error returns the text of the kind.
func (lockedError) Error() string { return errkind.Unsupported.Error() }

// Unwrap returns the kind.
func (lockedError) Unwrap() error { return errkind.Unsupported }
