package pdf

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// A paragraph is a sequence of lines that belong together.
type paragraph struct {
	lines     []line
	page      int
	continued bool // the previous paragraph continues here, in the next column or on the next page
}

const paragraphSize = 2 * 40 // bytes, twice because slices grow

func (p *paragraph) size() float64 { return p.lines[0].size }

// paragraphsOf joins the lines of a page. A new paragraph begins where the
// distance of the baselines is larger than usual on the page, where the size
// changes, where the text moves up, and at an indented line after the end of a
// sentence.
func paragraphsOf(lines []line, page int) []paragraph {
	usual := usualLeading(lines)
	var ps []paragraph
	first := 0 // index of the paragraph's first line
	for i, l := range lines {
		if i > 0 && joins(lines[first:i], l, usual) {
			continue
		}
		if i > 0 {
			ps = append(ps, paragraph{lines: lines[first:i:i], page: page})
		}
		first = i
	}
	if len(lines) > 0 {
		ps = append(ps, paragraph{lines: lines[first:], page: page})
	}
	for i := 1; i < len(ps); i++ {
		ps[i].continued = ps[i].lines[0].y > ps[i-1].last().y && follows(ps[i-1], ps[i])
	}
	return ps
}

func (p *paragraph) last() line { return p.lines[len(p.lines)-1] }

// follows reports whether the text of a continues in b: a ends inside a
// sentence, and b begins with a small letter of the same size.
func follows(a, b paragraph) bool {
	last, first := a.last(), b.lines[0]
	r, _ := utf8.DecodeRuneInString(first.text)
	return unicode.IsLower(r) && !endsSentence(last.text) && math.Abs(last.size-first.size) < 0.05*first.size &&
		last.turn == first.turn && a.advance() == 0 && b.advance() == 0 && len(a.lines) > 1
}

// advance returns the width of the characters of program text, or 0 for other
// text.
func (p *paragraph) advance() float64 {
	width := 0.0
	for _, l := range p.lines {
		if l.advance == 0 && !l.short {
			return 0
		}
		width = max(width, l.advance)
	}
	return width
}

// usualLeading is the median distance of baselines in units of the font size.
func usualLeading(lines []line) float64 {
	var ds []float64
	for i := 1; i < len(lines); i++ {
		a, b := lines[i-1], lines[i]
		if d := (a.y - b.y) / max(a.size, b.size); a.turn == b.turn && d > 0.5 && d < 3 {
			ds = append(ds, d)
		}
	}
	if len(ds) < 3 {
		return 1.2
	}
	slices.Sort(ds)
	return max(1, min(ds[len(ds)/2], 2.4))
}

// joins reports whether a line continues a paragraph.
func joins(p []line, l line, usual float64) bool {
	last := p[len(p)-1]
	if l.role != noCell || last.role != noCell {
		return l.role > tableStart
	}
	size := max(last.size, l.size)
	d := (last.y - l.y) / size
	switch {
	case l.turn != last.turn || l.stacked != last.stacked, d < -0.1:
		return false
	case l.x > last.end+cellGap*size && d > 0.2, l.end < p[0].x-cellGap*size:
		return false // in another column
	case d > 1.28*usual || min(last.size, l.size) < 0.88*size && math.Abs(d) > 0.5:
		return false
	case len(p) > 1 && last.size > 0:
		if before := (p[len(p)-2].y - last.y) / size; before > 0.8 && d > 1.35*before {
			return false
		}
	}
	if in := l.x - last.x; in > 0.8*size && in < 5*size && l.advance == 0 && d > 0.5 && endsSentence(last.text) {
		return false
	}
	return true
}

func endsSentence(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(s, ")]”’\"'」』"))
	return strings.ContainsRune(".!?:;。．！？", r)
}

// A renderer renders paragraphs as text.
type renderer struct {
	compounds map[string]bool // words with a hyphen that occur inside a line
	b         []byte
	budget    *cos.Budget
}

// lineSteps is the number of steps for a line, in addition to its text.
const lineSteps = 10

// Limits on the compounds of a document.
const (
	maxCompounds = 1 << 18
	compoundSize = 64 // bytes, in addition to the word
)

// newRenderer returns a renderer with memory for all paragraphs.
func newRenderer(ps []paragraph, b *cos.Budget) *renderer {
	r := &renderer{compounds: map[string]bool{}, budget: b}
	size := 0
	for _, p := range ps {
		for _, l := range p.lines {
			if !b.Spend(lineSteps + len(l.text)) {
				return r
			}
			size += len(l.text) + 2
			if p.lines[0].advance > 0 {
				size += maxIndent
			}
			r.collect(l.text)
		}
	}
	if b.Alloc(size) {
		r.b = make([]byte, 0, size)
	}
	return r
}

// collect records the compounds in a line.
func (r *renderer) collect(text string) {
	if !strings.Contains(text, "-") {
		return
	}
	for w := range strings.FieldsSeq(text) {
		if w = trimWord(w); strings.Contains(w, "-") && len(w) < 100 && len(r.compounds) < maxCompounds {
			if w = strings.ToLower(w); !r.compounds[w] && r.budget.Alloc(compoundSize+len(w)) {
				r.compounds[w] = true
			}
		}
	}
}

func trimWord(w string) string {
	return strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// maxIndent is the maximum number of blanks before a line of program text.
const maxIndent = 40

// write appends a paragraph and returns the offset of its first byte.
func (r *renderer) write(p paragraph) int {
	start := len(r.b)
	left, right := math.Inf(1), math.Inf(-1)
	for _, l := range p.lines {
		left, right = min(left, l.x), max(right, l.end)
	}
	advance := p.advance()
	for i, l := range p.lines {
		if !r.budget.Spend(lineSteps + len(l.text)) {
			return start
		}
		switch {
		case i > 0:
			r.join(p.lines[i-1], l, right, advance > 0)
		case p.continued && len(r.b) > 0:
			if !r.unhyphenate(l.text) {
				r.b = append(r.b, ' ')
			}
			start = len(r.b)
		case len(r.b) > 0:
			r.b = append(r.b, "\n\n"...)
			start = len(r.b)
		}
		if advance > 0 { // keep the indentation of program text
			blanks := int(max(0, min(math.Round((l.x-left)/advance), maxIndent)))
			r.b = append(r.b, strings.Repeat(" ", blanks)...)
		}
		r.b = append(r.b, l.text...)
	}
	return start
}

// join writes the separator of two lines: nothing if a word or a line of CJK
// text continues, a blank in running text, and a newline if the first line
// ended early. It removes the hyphen of a divided word.
func (r *renderer) join(before, l line, right float64, program bool) {
	last, _ := utf8.DecodeLastRuneInString(before.text)
	first, _ := utf8.DecodeRuneInString(l.text)
	sameLine := math.Abs(before.y-l.y) < 0.3*l.size
	word := l.firstEnd - l.x
	if plain.IsCJK(first) {
		word = 1.5 * l.size
	}
	// A first word that would have fitted was put on a new line on purpose.
	early := before.end+word+0.3*l.size < right
	switch {
	case l.role == cellStart:
		r.b = append(r.b, '\t')
	case l.role == rowStart:
		r.b = append(r.b, '\n')
	case l.role == cellMore && (!unicode.IsLower(first) || !r.unhyphenate(l.text)) && (!plain.IsCJK(last) || !plain.IsCJK(first)):
		r.b = append(r.b, ' ')
	case l.role == cellMore:
	case sameLine && l.x > before.end:
		r.b = append(r.b, ' ')
	case program, sameLine, isRow(before.text):
		r.b = append(r.b, '\n')
	case unicode.IsLower(first) && r.unhyphenate(l.text):
	case early:
		r.b = append(r.b, '\n')
	case !plain.IsCJK(last) || !plain.IsCJK(first):
		r.b = append(r.b, ' ')
	}
}

// isRow reports whether a line is a row of a table or a table of contents.
func isRow(s string) bool {
	if strings.Contains(s, "\t") {
		return true
	}
	i := strings.LastIndex(s, "…")
	return i > 0 && strings.Trim(s[i+len("…"):], " 0123456789ivxlc") == ""
}

// unhyphenate joins the parts of a word that was divided at the end of a line.
// It removes the hyphen unless the word is written with it in another place. It
// returns false if no word was divided.
func (r *renderer) unhyphenate(rest string) bool {
	hyphen, n := utf8.DecodeLastRune(r.b)
	if hyphen != '-' && hyphen != '\u00ad' && hyphen != '‐' {
		return false
	}
	word := r.b[:len(r.b)-n]
	near := word[max(0, len(word)-200):]
	head := string(near[bytes.LastIndexFunc(near, unicode.IsSpace)+1:])
	if c, _ := utf8.DecodeLastRuneInString(head); !unicode.IsLetter(c) {
		return false
	}
	tail, _, _ := strings.Cut(rest[:min(len(rest), 200)], " ")
	if hyphen == '-' && r.compounds[strings.ToLower(trimWord(head+"-"+tail))] {
		return true
	}
	r.b = word
	return true
}
