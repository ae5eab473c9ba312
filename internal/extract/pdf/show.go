package pdf

import (
	"math"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

// glyphSteps is the number of steps for a character.
const glyphSteps = 10

// showOperands shows the strings among the operands and moves by the numbers
// between them (ISO 32000-1, 9.4.3).
func (in *interpreter) showOperands() {
	if in.font == nil || in.size == 0 {
		return
	}
	for _, t := range in.operands {
		switch t.Kind {
		case cos.TokNumber:
			in.advance(-t.Num / 1000 * in.size)
		case cos.TokString:
			in.show(t.Text)
		}
	}
}

// advance moves by an unscaled distance in the direction of writing.
func (in *interpreter) advance(d float64) { in.tm = in.offset(d).mul(in.tm) }

func (in *interpreter) offset(d float64) matrix {
	if in.font.composite && in.font.codes.vertical {
		return matrix{1, 0, 0, 1, 0, d}
	}
	return matrix{1, 0, 0, 1, d * in.scale, 0}
}

// show adds the glyphs of a string.
func (in *interpreter) show(s []byte) {
	vertical, cost := false, glyphSteps
	if in.font.composite {
		vertical, cost = in.font.codes.vertical, glyphSteps+len(in.font.codes.spaces)
	}
	// Space after every character of a longer string is letter-spacing. In a
	// short one, some programs use it instead of a blank.
	spaced := len(s) >= 4
	for len(s) > 0 && len(in.glyphs) < maxGlyphs && in.f.Budget.Spend(cost) {
		c, code, n := in.font.next(s)
		s = s[n:]
		width := c.width*in.size + in.charSpace
		if n == 1 && code == ' ' {
			width += in.wordSpace
		}
		if vertical {
			// Glyphs are below the position and move down by their height,
			// which is 1 em unless W2 contains another one.
			width = -in.size + in.charSpace
		}
		from := in.tm
		in.advance(width)
		to := in.tm
		if !spaced && !vertical {
			to = in.offset(c.width * in.size).mul(from)
		}
		in.add(c, from, to)
	}
}

// add adds a glyph between two positions.
func (in *interpreter) add(c char, from, to matrix) {
	vertical := in.font.composite && in.font.codes.vertical
	if !c.known {
		in.unknown++
		return
	}
	if c.text == "" {
		return
	}
	start := matrix{1, 0, 0, 1, 0, in.rise}.mul(from).mul(in.ctm)
	stop := matrix{1, 0, 0, 1, 0, in.rise}.mul(to).mul(in.ctm)
	dx, dy := start[0], start[1] // direction of the baseline
	if vertical {
		dx, dy = -start[2], -start[3]
	}
	g := glyph{text: c.text, stacked: vertical, bold: in.font.bold}
	// The height of the font, not its width: Tz changes the latter.
	g.size = math.Abs(in.size) * in.font.em * math.Hypot(start[2], start[3])
	x0, y0, x1, y1 := start[4], start[5], stop[4], stop[5]
	if in.scale*in.size < 0 && !vertical {
		dx, dy = -dx, -dy
	}
	switch {
	case math.Abs(dx) >= math.Abs(dy) && dx >= 0:
		g.x, g.y, g.end = x0, y0, x1
	case math.Abs(dx) >= math.Abs(dy):
		g.x, g.y, g.end, g.turn = -x0, -y0, -x1, 2
	case dy > 0:
		g.x, g.y, g.end, g.turn = y0, -x0, y1, 1
	default:
		g.x, g.y, g.end, g.turn = -y0, x0, -y1, 3
	}
	if !finite(g.x) || !finite(g.y) || !finite(g.end) || !finite(g.size) || g.size <= 0 {
		return
	}
	if g.end < g.x {
		g.x, g.end = g.end, g.x
	}
	g.fromSpaces = isBlank(c.text)
	if len(in.glyphs) == cap(in.glyphs) && !in.grow() {
		return
	}
	in.glyphs = append(in.glyphs, g)
}

// grow allocates memory for more glyphs and reports whether it succeeded.
func (in *interpreter) grow() bool {
	old := in.glyphs
	size := max(256, min(2*cap(old), maxGlyphs))
	if !in.f.Budget.Alloc(size * glyphSize) {
		return false
	}
	in.glyphs = append(make([]glyph, 0, size), old...)
	in.f.Budget.Free(cap(old) * glyphSize)
	return true
}

func finite(f float64) bool { return math.Abs(f) < 1e9 }

func isBlank(s string) bool {
	for _, r := range s {
		if r != ' ' && r != '\u00a0' && r != '\t' && r != '\u3000' && r != '\n' && r != '\r' &&
			!(r >= 0x2000 && r <= 0x200b) {
			return false
		}
	}
	return true
}
