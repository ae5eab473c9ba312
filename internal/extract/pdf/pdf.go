// Package pdf extracts the text of PDF documents: characters in reading order,
// words and paragraphs determined by position, headings by size.
//
// Package extract uses it. It is pure and designed for foreign bytes: damaged
// files are repaired as far as possible, and the work for a file is limited. It
// does not read pictures of text (there is no OCR), fonts without the meaning
// of their characters, and files that require a password.
package pdf

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// Limits on a document. Errors of exceeded limits are of kind
// [errkind.TooLarge].
const (
	// maxPages is the maximum number of pages of a document.
	maxPages = 20000

	// Limits on the steps for a document. A page of text takes about 80,000
	// steps, and sixty million steps take a second. The limit is higher for a
	// large file, which may be a book of thousands of pages.
	minSteps     = 1 << 28
	stepsPerByte = 128
	maxSteps     = 3 << 29

	// Limits on the bytes in use at the same time. A page of text takes about
	// ten thousand. Because of the garbage collector, the process may use twice
	// as much.
	minMemory     = 128 << 20
	memoryPerByte = 3
	maxMemory     = 256 << 20
)

// budgetFor returns the budget of a document with a size in bytes, with at most
// memory bytes unless that is 0.
func budgetFor(size, memory int, check func() error) *cos.Budget {
	bytes := min(minMemory+memoryPerByte*size, maxMemory)
	return cos.NewBudget(min(minSteps+stepsPerByte*size, maxSteps), min(bytes, cmp.Or(memory, bytes)), check)
}

// A Text is the text of a document. All strings are valid UTF-8.
type Text struct {
	// Title is that of the metadata, or the largest or first bold line on the first page
	// with text that does not look like the body; "" if there is none.
	Title    string
	Lang     string             // BCP 47 tag that the document declares; "" if there is none
	Body     string             // paragraphs separated by an empty line; a page begins a new one unless a sentence continues
	Headings []document.Heading // the titles of bookmarks, and paragraphs in a larger font than the body
	Pages    []document.Page    // pages with text, in order, which may begin inside a sentence or a divided word
	Damaged  bool               // the end of the file is missing; Body is the text of the rest

	// Illegible is the number of pages whose text is missing, or is missing in
	// part, because their fonts do not define which characters they show.
	Illegible int
}

// ErrLocked is the error for a document that requires a password. It is of kind
// [errkind.Unsupported].
var ErrLocked = cos.ErrLocked

// ErrMemory means that a document takes more memory than is allowed. It is of kind
// [errkind.TooLarge].
var ErrMemory = cos.ErrMemory

// Read returns the text of a document. Errors are of kind [errkind.Unsupported]
// if there is no readable text, [errkind.Corrupt] if the file is damaged beyond
// repair, and [errkind.TooLarge] if a limit is exceeded; their messages are for
// users.
//
// Read stops soon after ctx is done, with ctx's cause.
//
// memory limits the bytes that Read takes, beside the limit for the size of the
// document; 0 means no other limit. If it is exceeded, the error is ErrMemory.
func Read(ctx context.Context, data []byte, memory int) (*Text, error) {
	return read(data, budgetFor(len(data), memory, func() error { return context.Cause(ctx) }))
}

func read(data []byte, b *cos.Budget) (*Text, error) {
	f, err := cos.Open(data, b)
	if err != nil {
		return nil, err
	}
	pages, index := pagesOf(f)
	f.Pin()
	if len(pages) > maxPages {
		return nil, plain.TooLarge("PDF document", fmt.Sprintf("more than %d pages", maxPages))
	}
	in := interpreter{f: f, fonts: newFonts(f), mem: b.Share(), kept: b.Memory() / keptShare}
	p := pageReader{in: in, b: b, lines: b.Share()}
	ps, err := p.paragraphs(pages)
	switch {
	case err != nil:
		return nil, err
	case len(pages) == 0 && b.Err() == nil:
		return nil, plain.Damaged("PDF document: it contains no pages")
	}
	t := &Text{Title: title(f), Lang: langOf(f), Damaged: f.Damaged() && !hasEnd(data), Illegible: p.illegible}
	labels := labelsOf(f, len(pages))
	outline := b.Share()
	bookmarks := outlineOf(f, index, len(pages), &outline)
	r := newRenderer(ps, b)
	if t.Title == "" {
		t.Title = r.largest(ps)
	}
	t.render(r, ps, labels)
	p.lines.Free() // the text is a copy of them
	if b.Alloc(len(r.b)) {
		t.Body = string(r.b)
		t.addBookmarks(bookmarks, pagesWithText(ps), b)
	}
	outline.Free()
	switch {
	case b.Err() != nil:
		return nil, b.Err()
	case p.letters:
		return t, nil
	case f.Damaged() && p.unknown == 0:
		return nil, plain.Damaged("PDF document: no text was found in what is left of it")
	}
	return nil, plain.Unsupported("PDF document without text that can be extracted (it was scanned, or its fonts lack a " +
		"character map): store a copy with recognized text (OCR)")
}

// hasEnd reports whether the mark at the end of a file is where readers look for
// it (ISO 32000-1, Annex H, implementation note 18).
func hasEnd(data []byte) bool {
	return bytes.Contains(data[max(len(data)-1024, 0):], []byte("%%EOF"))
}

// A pageReader reads the pages of a document.
type pageReader struct {
	in        interpreter
	b         *cos.Budget
	unknown   int  // characters without a known text
	illegible int  // pages that have lost text
	letters   bool // a page has legible text
	lines     cos.Share
}

// paragraphs interprets the pages.
func (p *pageReader) paragraphs(pages []cos.Dict) (ps []paragraph, err error) {
	for i, page := range pages {
		p.in.interpret(page)
		p.unknown += p.in.unknown
		if len(p.in.glyphs) >= maxGlyphs {
			return nil, plain.TooLarge("PDF document", fmt.Sprintf("a page of more than %d characters", maxGlyphs))
		}
		lines := p.legible(linesOf(p.in.glyphs, p.b, &p.lines))
		joinColumns(lines, p.b)
		markRows(lines, p.b)
		more := paragraphsOf(lines, i)
		p.in.release(p.in.kept)
		if len(ps) > 0 && len(more) > 0 {
			more[0].continued = follows(ps[len(ps)-1], more[0])
		}
		if !p.b.Alloc(paragraphSize * len(more)) {
			return nil, p.b.Err()
		}
		ps = append(ps, more...)
	}
	p.in.release(0)
	return ps, p.b.Err()
}

// Limits on the characters without a known text. minUnknown is a number on a page:
// fewer are ornaments. The others are in proportion to the letters and digits of
// the page.
const (
	minUnknown = 4
	maxUnknown = 2.0     // the rest is misleading rather than incomplete
	fewUnknown = 1.0 / 3 // signs of mathematics, and blanks
)

// legible returns the lines of the page that was interpreted last, or nil if most
// of its characters are unknown. It counts the pages that have lost text.
func (p *pageReader) legible(lines []line) []line {
	unknown, letters := float64(p.in.unknown), 0.0
	for _, l := range lines {
		if !p.b.Spend(lineSteps + len(l.text)/4) {
			return nil
		}
		for _, r := range l.text {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				letters++
			}
		}
	}
	if unknown >= minUnknown && unknown > fewUnknown*letters {
		p.illegible++
	}
	if unknown > maxUnknown*letters {
		return nil
	}
	p.letters = p.letters || letters > 0
	return lines
}

// pagesWithText returns the indexes of the pages of some paragraphs.
func pagesWithText(ps []paragraph) []int {
	var pages []int
	for _, p := range ps {
		if len(pages) == 0 || pages[len(pages)-1] != p.page {
			pages = append(pages, p.page)
		}
	}
	return pages
}

// render writes the paragraphs and records the pages and headings.
func (t *Text) render(r *renderer, ps []paragraph, labels pageLabels) {
	levels := headingLevels(ps)
	for i := range ps {
		at := r.write(ps[i])
		if i == 0 || ps[i].page != ps[i-1].page {
			t.Pages = append(t.Pages, document.Page{Offset: at, Label: labels.of(ps[i].page)})
		}
		level := levels[sizeKey(ps[i].size())]
		if level > 0 && !ps[i].continued && isHeading(&ps[i]) && len(t.Headings) < plain.MaxHeadings {
			text := strings.Join(strings.Fields(string(r.b[at:])), " ")
			t.Headings = append(t.Headings, document.Heading{Offset: at, Level: level, Text: text})
		}
	}
}

// sizeKey rounds font sizes, which differ because of rounding errors.
func sizeKey(size float64) int { return int(math.Round(size * 4)) }

// bodyOf returns the size of most of the text, as a key, and reports whether most of
// the text of this size is bold.
func bodyOf(ps []paragraph) (size int, bold bool) {
	count, heavy := map[int]int{}, map[int]int{}
	for _, p := range ps {
		for _, l := range p.lines {
			n := utf8.RuneCountInString(l.text)
			count[sizeKey(l.size)] += n
			if l.bold {
				heavy[sizeKey(l.size)] += n
			}
		}
	}
	for _, s := range sortedKeys(count) {
		if count[s] > count[size] {
			size = s
		}
	}
	return size, 2*heavy[size] > count[size]
}

// headingLevels ranks the sizes of possible headings: those that are larger
// than the size of most of the text.
func headingLevels(ps []paragraph) map[int]int {
	body, _ := bodyOf(ps)
	seen := map[int]bool{}
	for i := range ps {
		p := &ps[i]
		if k := sizeKey(p.size()); float64(k) > 1.12*float64(body) && isHeading(p) {
			seen[k] = true
		}
	}
	levels := map[int]int{}
	level, last := 0, math.Inf(1)
	for _, size := range slices.Backward(sortedKeys(seen)) {
		if float64(size) < 0.95*last { // otherwise they look the same
			level, last = min(level+1, 6), float64(size)
		}
		levels[size] = level
	}
	return levels
}

// isHeading reports whether a paragraph is short enough to be one and has a letter.
func isHeading(p *paragraph) bool {
	n := 0
	letter := false
	for _, l := range p.lines {
		n += len(l.text)
		letter = letter || strings.IndexFunc(l.text, unicode.IsLetter) >= 0
	}
	return letter && n <= 250 && len(p.lines) <= 4 && p.advance() == 0
}

// isBold reports whether every line of a paragraph is bold.
func (p *paragraph) isBold() bool {
	return !slices.ContainsFunc(p.lines, func(l line) bool { return !l.bold })
}

// largest returns the paragraph in the largest font on the first page with text. If
// that is the font of the body, it returns the first bold paragraph in this font,
// unless the body is bold. It must be called before anything is rendered.
func (r *renderer) largest(ps []paragraph) string {
	body, bold := bodyOf(ps)
	var best *paragraph
	for i := range ps {
		p := &ps[i]
		if p.page != ps[0].page {
			break
		}
		switch size := float64(sizeKey(p.size())) / float64(body); {
		case size > 1.02: // otherwise it looks the same
		case size < 0.98, bold, !p.isBold():
			continue
		}
		if isHeading(p) && (best == nil || p.size() > 1.02*best.size()) {
			best = p
		}
	}
	if best == nil {
		return ""
	}
	r.write(*best)
	text := strings.Join(strings.Fields(string(r.b)), " ")
	r.b = r.b[:0]
	return text
}
