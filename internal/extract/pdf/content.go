package pdf

import (
	"bytes"
	"math"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

// Limits on content streams.
const (
	maxForms    = 24      // nesting depth of form XObjects
	maxStates   = 512     // nesting depth of q, and of marked content
	maxOperands = 1 << 16 // before an operator, including the strings of TJ
	maxGlyphs   = 1 << 20 // of one page

	formSteps = 100 // steps of running a content stream, in addition to its tokens
)

// A matrix is the matrix [a b c d e f] of ISO 32000-1, 8.3.3.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// mul returns the matrix that first applies m and then n.
func (m matrix) mul(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// A glyph is a character on the page, in device space that is rotated so that
// the baseline runs to the right.
type glyph struct {
	text       string
	x, y       float64 // start of the baseline
	end        float64 // x coordinate of its end
	size       float64 // of the font
	turn       int8    // direction of the baseline in steps of 90 degrees; rotated glyphs are on separate lines
	stacked    bool    // written from top to bottom
	fromSpaces bool    // text is a blank
	bold       bool    // the font is
}

const glyphSize = 56 // bytes

// textState is the state that q saves and Q restores (ISO 32000-1, 8.4 and
// 9.3).
type textState struct {
	ctm                        matrix
	font                       *font
	size, charSpace, wordSpace float64
	scale, leading, rise       float64
}

// An interpreter runs the content streams of one page and collects glyphs.
type interpreter struct {
	f         *cos.File
	fonts     *fonts
	resources cos.Dict
	textState
	states   []textState
	tm, tlm  matrix
	operands []cos.Token
	glyphs   []glyph
	unknown  int // characters without a known text
	forms    int // nesting depth
	marks    []mark
	mem      cos.Share // memory of the texts of marks
	kept     int       // bytes of fonts, and of objects, that are kept after a page
}

// A mark is an open marked-content sequence. If it has actual text, that
// replaces the text of its glyphs (ISO 32000-1, 14.9.4).
type mark struct {
	actual bool
	text   string
	first  int // index of its first glyph
}

// run interprets a content stream.
func (in *interpreter) run(data []byte, resources cos.Dict) {
	if !in.f.Budget.Spend(formSteps) {
		return
	}
	in.forms++
	outer, depth, marks := in.resources, len(in.states), len(in.marks)
	in.resources = resources
	l := cos.NewLexer(data, 0, in.f.Budget)
	defer l.Free()
	in.operands = in.operands[:0]
	for len(in.glyphs) < maxGlyphs {
		t := l.Next()
		if t.Kind == cos.TokEOF {
			break
		}
		switch {
		case t.Kind == cos.TokOpenDict:
			in.markDict(l)
		case t.Kind == cos.TokKeyword:
			in.operator(t.Text, l)
			in.operands = in.operands[:0]
			l.Free()
		case len(in.operands) < maxOperands:
			in.operands = append(in.operands, t)
		}
	}
	for len(in.marks) > marks {
		in.endMark()
	}
	in.states = in.states[:min(len(in.states), depth)]
	in.resources = outer
	in.forms--
}

// num returns the nth operand from the end, or 0 if there is none.
func (in *interpreter) num(n int) float64 {
	if i := len(in.operands) - n; i >= 0 && in.operands[i].Kind == cos.TokNumber {
		return in.operands[i].Num
	}
	return 0
}

func (in *interpreter) lastName() cos.Name {
	for i := len(in.operands) - 1; i >= 0; i-- {
		if in.operands[i].Kind == cos.TokName {
			return cos.Name(in.operands[i].Text)
		}
	}
	return ""
}

func (in *interpreter) matrixOperand() matrix {
	return matrix{in.num(6), in.num(5), in.num(4), in.num(3), in.num(2), in.num(1)}
}

// operator runs one operator (ISO 32000-1, Annex A). Operators for painting and
// colours are ignored.
func (in *interpreter) operator(op []byte, l *cos.Lexer) {
	switch string(op) {
	case "q":
		if len(in.states) < maxStates {
			in.states = append(in.states, in.textState)
		}
	case "Q":
		if n := len(in.states); n > 0 {
			in.textState, in.states = in.states[n-1], in.states[:n-1]
		}
	case "cm":
		in.ctm = in.matrixOperand().mul(in.ctm)
	case "BT":
		in.tm, in.tlm = identity, identity
	case "Tf":
		in.size, in.font = in.num(1), in.findFont(in.lastName())
	case "Tc":
		in.charSpace = in.num(1)
	case "Tw":
		in.wordSpace = in.num(1)
	case "Tz":
		in.scale = in.num(1) / 100
	case "TL":
		in.leading = in.num(1)
	case "Ts":
		in.rise = in.num(1)
	case "Td":
		in.moveLine(in.num(2), in.num(1))
	case "TD":
		in.leading = -in.num(1)
		in.moveLine(in.num(2), in.num(1))
	case "Tm":
		in.tm = in.matrixOperand()
		in.tlm = in.tm
	case "T*":
		in.moveLine(0, -in.leading)
	case "Tj", "TJ":
		in.showOperands()
	case "'":
		in.moveLine(0, -in.leading)
		in.showOperands()
	case "\"":
		in.wordSpace, in.charSpace = in.num(3), in.num(2)
		in.moveLine(0, -in.leading)
		in.operands = in.operands[max(0, len(in.operands)-1):]
		in.showOperands()
	case "Do":
		in.form(in.lastName())
	case "gs":
		in.graphicsState(in.lastName())
	case "BMC":
		in.begin(mark{})
	case "BDC":
		in.beginMark(in.lastName())
	case "EMC":
		in.endMark()
	case "BI":
		skipInlineImage(l, in.f.Budget)
	}
}

func (in *interpreter) moveLine(x, y float64) {
	in.tlm = matrix{1, 0, 0, 1, x, y}.mul(in.tlm)
	in.tm = in.tlm
}

// findFont returns the font with a name in the resources, or nil.
func (in *interpreter) findFont(n cos.Name) *font {
	return in.fonts.get(in.f.Dict(in.resources["Font"])[n])
}

// graphicsState sets the font from an ExtGState dictionary.
func (in *interpreter) graphicsState(n cos.Name) {
	d := in.f.Dict(in.f.Dict(in.resources["ExtGState"])[n])
	if a := in.f.Array(d["Font"]); len(a) == 2 {
		in.font, in.size = in.fonts.get(a[0]), in.f.Number(a[1], 0)
	}
}

// form runs a form XObject (ISO 32000-1, 8.10).
func (in *interpreter) form(n cos.Name) {
	s := in.f.Stream(in.f.Dict(in.resources["XObject"])[n])
	if s != nil && in.f.Name(s.Dict["Subtype"]) == "Form" {
		in.runForm(s, in.resources)
	}
}

// runForm runs the stream of a form. If it has no resources, it uses the given
// ones.
func (in *interpreter) runForm(s *cos.Stream, resources cos.Dict) {
	if in.forms >= maxForms {
		return
	}
	data, err := in.f.Decode(s)
	if err != nil {
		return
	}
	if own := in.f.Dict(s.Dict["Resources"]); own != nil {
		resources = own
	}
	save, tm, tlm := in.textState, in.tm, in.tlm
	if m := in.f.Array(s.Dict["Matrix"]); len(m) == 6 {
		var fm matrix
		for i := range fm {
			fm[i] = in.f.Number(m[i], 0)
		}
		in.ctm = fm.mul(in.ctm)
	}
	in.run(data, resources)
	in.f.Budget.Free(len(data))
	in.textState, in.tm, in.tlm = save, tm, tlm
}

// markDict reads the property list before BDC. Only its actual text is used.
func (in *interpreter) markDict(l *cos.Lexer) {
	if d := l.PropertyList(); d != nil {
		t := cos.Token{Kind: cos.TokOpenDict}
		if s, ok := d["ActualText"].(string); ok {
			t.Whole, t.Text = true, []byte(s)
		}
		in.operands = append(in.operands, t)
	}
}

func (in *interpreter) beginMark(n cos.Name) {
	var m mark
	if len(in.operands) > 0 {
		if t := in.operands[len(in.operands)-1]; t.Kind == cos.TokOpenDict {
			m.actual, m.text = t.Whole, in.actualText(string(t.Text))
		} else if s, ok := in.property(n, "ActualText").(string); ok && !in.f.Encrypted() {
			m.actual, m.text = true, in.actualText(s)
		}
	}
	in.begin(m)
}

// property returns an entry of a property list of the resources.
func (in *interpreter) property(list, key cos.Name) cos.Object {
	return in.f.Resolve(in.f.Dict(in.f.Dict(in.resources["Properties"])[list])[key])
}

// actualText decodes an actual text. Its memory is released with the page.
func (in *interpreter) actualText(s string) string {
	if !in.f.Budget.Spend(2*len(s)) || !in.mem.Alloc(4*len(s)) {
		return ""
	}
	return textString(s)
}

// begin opens a marked-content sequence.
func (in *interpreter) begin(m mark) {
	if m.first = len(in.glyphs); len(in.marks) < maxStates {
		in.marks = append(in.marks, m)
	}
}

// endMark replaces the glyphs of the sequence by the actual text. If they are
// on several lines they are kept, because the text has no position.
func (in *interpreter) endMark() {
	if len(in.marks) == 0 {
		return
	}
	m := in.marks[len(in.marks)-1]
	in.marks = in.marks[:len(in.marks)-1]
	if !m.actual || m.first >= len(in.glyphs) || !in.f.Budget.Spend(len(in.glyphs)-m.first) {
		return
	}
	g := in.glyphs[m.first]
	for _, o := range in.glyphs[m.first:] {
		if math.Abs(o.y-g.y) > g.size || o.turn != g.turn {
			return
		}
		g.x, g.end = min(g.x, o.x), max(g.end, o.end)
	}
	g.text, g.fromSpaces = m.text, false
	in.glyphs = append(in.glyphs[:m.first], g)
}

// skipInlineImage skips an inline image until after its EI. Its data may
// contain any bytes.
func skipInlineImage(l *cos.Lexer, b *cos.Budget) {
	i := bytes.Index(l.Src[l.Pos:], []byte("ID"))
	if i < 0 {
		l.Pos = len(l.Src)
		return
	}
	l.Pos += i + 2
	for {
		i := bytes.Index(l.Src[l.Pos:], []byte("EI"))
		if i < 0 || !b.Spend(10+i/8) {
			l.Pos = len(l.Src)
			return
		}
		l.Pos += i + 2
		if i > 0 && cos.IsSpace(l.Src[l.Pos-3]) && (l.Pos >= len(l.Src) || cos.IsSpace(l.Src[l.Pos])) &&
			looksLikeContent(l.Src[l.Pos:]) {
			return
		}
	}
}

// looksLikeContent reports whether the following bytes can be operators and not
// pixels.
func looksLikeContent(b []byte) bool {
	for _, c := range b[:min(len(b), 16)] {
		if c >= 0x7f || c < 0x20 && !cos.IsSpace(c) {
			return false
		}
	}
	return true
}
