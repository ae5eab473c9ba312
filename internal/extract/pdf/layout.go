package pdf

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// Gaps between glyphs that separate words, in units of the font size. Kerning
// rarely widens by a tenth; the narrowest blanks of justified text are 0.12.
const (
	wordGap    = 0.1
	cjkWordGap = 0.6 // these scripts have no blanks; punctuation is kerned
	cellGap    = 3.0 // separates the cells of a table
)

// A line is a sequence of glyphs on one baseline.
type line struct {
	text     string
	x, end   float64
	y, size  float64 // baseline, and font size of most of the line
	advance  float64 // width of every character; 0 if widths differ
	firstEnd float64 // end of its first word
	turn     int8
	stacked  bool
	short    bool // too short to determine advance
	role     lineRole
	bold     bool // most of it is
}

const lineSize = 72 + 8 // including memory lost when its text is allocated

// Costs of dividing the glyphs of a page into lines.
const (
	layoutSteps = 10 // for each glyph
	textSteps   = 1  // for each byte of text
	textMemory  = 8  // bytes for each byte of text: all text may be one line, which is copied

	// The same for right-to-left text, for which glyphs are sorted and text is
	// normalised.
	rtlLayoutSteps = 50
	rtlTextSteps   = 16
	rtlTextMemory  = 40
)

// A lineMaker collects the glyphs of a line.
type lineMaker struct {
	lines   []line
	b       []byte
	cur     line
	last    glyph
	lastAt  int // offset of the text of last in b
	blank   bool
	loose   int                 // offset after the last blank that stands for a gap only
	before  float64             // end of the glyph before that gap
	weights map[float64]float64 // width of text by font size
	bold    float64             // width of bold text, less that of other text
	lo, hi  float64             // widths of characters
	gaps    []gap               // between the first letters
	count   int
	mem     *cos.Share // of the lines
}

// A gap is the distance of two letters or digits without a blank between them.
type gap struct {
	at    int     // offset of the text of the second one in the line
	width float64 // in units of the font size
}

// maxGaps is the maximum number of gaps of a line that are recorded, and minGaps
// the number of gaps that tell whether letters are spaced out.
const (
	maxGaps = 400
	minGaps = 4
)

// linesOf divides the glyphs of a page into lines, in the order in which they
// were painted. In columns, boxes and tables, this is the reading order much
// more often than an order by position. The memory of the lines is that of mem.
// If the budget b is exhausted, there are no lines.
func linesOf(glyphs []glyph, b *cos.Budget, mem *cos.Share) []line {
	perGlyph, perByte, memory := layoutSteps, textSteps, textMemory
	if hasRTL(glyphs) {
		perGlyph, perByte, memory = rtlLayoutSteps, rtlTextSteps, rtlTextMemory
	}
	size := 0
	for i := range glyphs {
		size += len(glyphs[i].text) + 1
	}
	if !b.Spend(perByte*size) || !b.Alloc(memory*size) {
		return nil
	}
	defer b.Free(memory * size)
	sortRTL(glyphs)
	m := lineMaker{weights: map[float64]float64{}, mem: mem}
	for _, g := range glyphs {
		if !b.Spend(perGlyph) {
			return nil
		}
		m.add(g)
	}
	m.flush()
	return slices.Clone(m.lines)
}

func (m *lineMaker) add(g glyph) {
	if len(m.b) > 0 && !m.continues(g) {
		m.flush()
	}
	if g.fromSpaces {
		if len(m.b) > 0 {
			m.blank = m.blank || m.visible(g)
			m.cur.end = max(m.cur.end, g.end)
		}
		return
	}
	if len(m.b) == 0 {
		m.cur = line{x: g.x, y: g.y, turn: g.turn, stacked: g.stacked, size: g.size}
		m.lo, m.hi, m.count, m.blank, m.loose, m.bold = math.Inf(1), 0, 0, false, 0, 0
	} else {
		if g.text == m.last.text && math.Abs(g.x-m.last.x) < 0.1*g.size && math.Abs(g.y-m.last.y) < 0.1*g.size {
			return // painted twice to look bold
		}
		if m.compose(g) {
			return
		}
		m.space(g)
	}
	m.lastAt = len(m.b)
	m.b = append(m.b, visual(g.text)...)
	if _, ok := m.weights[g.size]; ok || len(m.weights) < 100 {
		m.weights[g.size] += g.end - g.x
	}
	if g.bold {
		m.bold += g.end - g.x
	} else {
		m.bold -= g.end - g.x
	}
	if width := (g.end - g.x) / g.size; utf8.RuneCountInString(g.text) == 1 {
		m.lo, m.hi = min(m.lo, width), max(m.hi, width)
		m.count++
	}
	m.last = g
	m.cur.end = g.end
	if m.lastAt < 200 && !bytes.ContainsAny(m.b[:m.lastAt], " \t") {
		m.cur.firstEnd = g.end
	}
}

// visible reports whether a blank moves the text on. Some programs write blanks
// between letters and move back by their width.
func (m *lineMaker) visible(g glyph) bool {
	const part = 0.04                                                              // of the font size
	return g.end-m.cur.end > part*g.size || m.last.end-m.last.x < part*m.last.size // the font lacks widths
}

// continues reports whether a glyph belongs to the current line.
func (m *lineMaker) continues(g glyph) bool {
	size := max(m.last.size, g.size)
	return g.turn == m.cur.turn && g.stacked == m.cur.stacked &&
		(math.Abs(g.y-m.last.y) <= 0.45*size || math.Abs(g.y-m.cur.y) <= 0.45*size) &&
		g.x-m.cur.end > -size
}

// space writes a blank for the gap before a glyph.
func (m *lineMaker) space(g glyph) {
	size := max(min(m.last.size, g.size), 0.5*max(m.last.size, g.size))
	distance := g.x - m.last.end
	limit := wordGap
	r, _ := utf8.DecodeLastRuneInString(m.last.text)
	s, _ := utf8.DecodeRuneInString(g.text)
	if plain.IsCJK(r) && plain.IsCJK(s) {
		limit = cjkWordGap
	}
	switch {
	case distance > cellGap*size:
		m.b = append(m.b, '\t')
	case !m.blank && distance > limit*size:
		m.b = append(m.b, ' ')
		m.loose, m.before = len(m.b), m.last.end
	case m.blank, m.lastAt == 0 && m.last.size < 0.8*g.size && m.last.y > g.y+0.15*g.size:
		// The mark of a footnote is close to its text.
		m.b = append(m.b, ' ')
	}
	if !m.blank && limit == wordGap && len(m.gaps) < maxGaps && isAlnum(r) && isAlnum(s) {
		m.gaps = append(m.gaps, gap{at: len(m.b), width: distance / size})
	}
	m.blank = false
}

// closeUp removes the blanks between letters that are spaced out: most gaps of the
// line are wider than wordGap, and those between words are twice as wide.
func (m *lineMaker) closeUp() {
	if len(m.gaps) < minGaps {
		return
	}
	widths := make([]float64, len(m.gaps))
	for i, g := range m.gaps {
		widths[i] = g.width
	}
	slices.Sort(widths)
	usual := widths[len(widths)/2]
	if usual <= 0.8*wordGap || usual > 3*wordGap {
		return
	}
	for _, g := range slices.Backward(m.gaps) {
		if g.width < 2*usual && g.at > 0 && m.b[g.at-1] == ' ' {
			m.b = slices.Delete(m.b, g.at-1, g.at)
		}
	}
}

// accents maps the spacing accents that old fonts paint over a letter to
// combining characters.
var accents = map[string]rune{"´": '\u0301', "`": '\u0300', "ˆ": '\u0302', "^": '\u0302', "˜": '\u0303', "¨": '\u0308',
	"¸": '\u0327', "ˇ": '\u030c', "˘": '\u0306', "˚": '\u030a', "˙": '\u0307', "˝": '\u030b', "˛": '\u0328',
	"¯": '\u0304'}

// compose combines a letter with an accent at the same position, before or
// after it, and reports whether it did.
func (m *lineMaker) compose(g glyph) bool {
	middle := (g.x + g.end) / 2
	if middle > m.last.end || middle < m.last.x-0.2*g.size {
		return false
	}
	letter, mark := g.text, accents[m.last.text]
	if mark == 0 {
		letter, mark = m.last.text, accents[g.text]
	}
	r, n := utf8.DecodeRuneInString(letter)
	if mark == 0 || n != len(letter) || !unicode.IsLetter(r) {
		return false
	}
	switch r {
	case 'ı':
		letter = "i"
	case 'ȷ':
		letter = "j"
	}
	if m.loose == m.lastAt && m.lastAt > 0 && g.text == letter && g.x-m.before <= wordGap*g.size {
		// The accent is narrower than its letter, which continues the word.
		m.lastAt--
		m.loose = 0
	}
	composed := norm.NFC.String(letter + string(mark))
	m.b = append(m.b[:m.lastAt], composed...)
	m.last.text = composed
	m.last.end = max(m.last.end, g.end)
	m.cur.end = m.last.end
	return true
}

// flush ends the line.
func (m *lineMaker) flush() {
	m.closeUp()
	m.gaps = m.gaps[:0]
	text := logical(tidy(string(m.b)))
	m.b = m.b[:0]
	if text == "" {
		clear(m.weights)
		return
	}
	best := 0.0
	for size, w := range m.weights {
		if w > best || w == best && size > m.cur.size {
			best, m.cur.size = w, size
		}
	}
	clear(m.weights)
	m.cur.text, m.cur.short, m.cur.bold = text, m.count < 5, m.bold > 0
	if m.count >= 5 && m.hi-m.lo < 0.02 && m.hi < 0.75 {
		m.cur.advance = m.hi * m.cur.size
	}
	if n := len(m.lines); n > 0 && paintedTwice(m.lines[n-1], m.cur) {
		return
	}
	if m.mem.Alloc(lineSize + len(text)) {
		m.lines = append(m.lines, m.cur)
	}
}

// paintedTwice reports whether a line repeats the previous one at the same
// position, to look bold or to add a shadow.
func paintedTwice(a, b line) bool {
	return a.text == b.text && a.turn == b.turn && math.Abs(a.x-b.x) < 0.3*a.size && math.Abs(a.y-b.y) < 0.3*a.size
}

// ligatures are written as separate letters, so that words can be found.
var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st")

// tidy returns one line of plain text. Runs of blanks of all kinds become one
// blank, and the leaders in a table of contents an ellipsis.
func tidy(s string) string {
	s = ligatures.Replace(s)
	out := make([]byte, 0, len(s))
	blank := byte(0)
	for i, r := range s {
		switch {
		case r == '\t':
			blank = '\t'
		case unicode.IsSpace(r), r == '\u200b':
			if blank == 0 {
				blank = ' '
			}
		case r == '\u00ad' && i+len("\u00ad") < len(s): // an invisible hyphen
		case unicode.IsControl(r), r == utf8.RuneError, r == '\ufeff', r >= 0xe000 && r <= 0xf8ff:
		default:
			if blank != 0 && len(out) > 0 {
				out = append(out, blank)
			}
			blank = 0
			out = utf8.AppendRune(out, r)
		}
	}
	return shortenLeaders(string(out))
}

// shortenLeaders replaces runs of four or more dots, with or without blanks.
func shortenLeaders(s string) string {
	if !strings.Contains(s, "....") && !strings.Contains(s, ". . . .") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '.' {
			b.WriteByte(s[i])
			i++
			continue
		}
		end, dots := i, 0
		for j := i; j < len(s) && (s[j] == '.' || s[j] == ' '); j++ {
			if s[j] == '.' {
				dots++
				end = j + 1
			}
		}
		if dots >= 4 {
			b.WriteString("…")
		} else {
			b.WriteString(s[i:end])
		}
		i = end
	}
	return b.String()
}
