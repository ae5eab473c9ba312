package pdf

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

// cffStringsText contains the 391 standard strings of CFF (Adobe Technical Note
// 5176, Appendix A).
//
//go:embed cffstrings.txt
var cffStringsText string

var cffStrings = sync.OnceValue(func() []string { return strings.Fields(cffStringsText) })

// A cff contains the names of glyphs in a font in the Compact Font Format.
type cff struct {
	data    []byte
	names   []string // by glyph; "" if there is none
	enc     int      // offset of the encoding; 0 and 1 are predefined
	byCID   bool     // glyphs have numbers instead of names
	damaged bool
	b       *cos.Budget
}

// index reads an INDEX at a position and returns its elements and its end.
func (c *cff) index(at int) (elements [][]byte, end int) {
	n := u16(c.data, at)
	if n == 0 {
		return nil, at + 2
	}
	if at+3 > len(c.data) {
		c.damaged = true
		return nil, at
	}
	size := int(c.data[at+2])
	base := at + 3 + (n+1)*size - 1
	if size < 1 || size > 4 || base > len(c.data) {
		c.damaged = true
		return nil, at
	}
	offset := func(i int) int {
		v := 0
		for _, b := range c.data[at+3+i*size : at+3+(i+1)*size] {
			v = v<<8 | int(b)
		}
		return base + v
	}
	elements = make([][]byte, 0, n)
	for i := range n {
		from, to := offset(i), offset(i+1)
		if from > to || to > len(c.data) || !c.b.Spend(10) {
			c.damaged = true
			return elements, at
		}
		elements = append(elements, c.data[from:to])
	}
	return elements, offset(n)
}

// parseCFF reads the names and the encoding of the first font. A damaged font
// has none.
func parseCFF(data []byte, b *cos.Budget) *cff {
	c := &cff{data: data, b: b}
	if len(data) < 4 {
		c.damaged = true
		return c
	}
	_, at := c.index(int(data[2]))
	tops, at := c.index(at)
	stringIndex, _ := c.index(at)
	if c.damaged || len(tops) == 0 {
		c.damaged = true
		return c
	}
	if !b.Spend(4 * len(tops[0])) {
		return c
	}
	top := cffDict(tops[0])
	_, c.byCID = top[12<<8|30]
	c.enc = top[16]
	glyphs, _ := c.index(top[17])
	if c.damaged || c.byCID {
		return c
	}
	sids := c.charset(top[15], len(glyphs))
	c.names = make([]string, len(sids))
	for gid, sid := range sids {
		if !b.Spend(20) {
			break
		}
		if std := cffStrings(); sid < len(std) {
			c.names[gid] = std[sid]
		} else if sid -= len(std); sid < len(stringIndex) && len(stringIndex[sid]) <= maxGlyphName {
			c.names[gid] = string(stringIndex[sid])
		}
	}
	return c
}

// cffDict reads the last integer operand of every operator.
func cffDict(b []byte) map[int]int {
	d := map[int]int{}
	last := 0
	for i := 0; i < len(b); i++ {
		switch v := int(b[i]); {
		case v == 12 && i+1 < len(b):
			i++
			d[12<<8|int(b[i])], last = last, 0
		case v <= 21:
			d[v], last = last, 0
		case v == 28:
			last = int(int16(u16(b, i+1)))
			i += 2
		case v == 29:
			last = int(int32(u32(b, i+1)))
			i += 4
		case v == 30:
			for i++; i < len(b) && b[i]&0xf != 0xf; i++ {
			}
		case v >= 32 && v <= 246:
			last = v - 139
		case v >= 247 && v <= 250 && i+1 < len(b):
			i++
			last = (v-247)*256 + int(b[i]) + 108
		case v >= 251 && v <= 254 && i+1 < len(b):
			i++
			last = -(v-251)*256 - int(b[i]) - 108
		}
	}
	return d
}

// charset returns the string number of each of n glyphs.
func (c *cff) charset(at, n int) []int {
	sids := make([]int, 1, max(n, 1))
	if at <= 2 { // predefined; the expert sets are very rare
		for i := 1; i < min(n, 229); i++ {
			sids = append(sids, i)
		}
		return sids
	}
	if at >= len(c.data) {
		return sids
	}
	format := c.data[at]
	for at++; len(sids) < n && at+1 < len(c.data); {
		sid, left := u16(c.data, at), 0
		at += 2
		switch {
		case format == 1 && at < len(c.data):
			left = int(c.data[at])
			at++
		case format == 2:
			left = u16(c.data, at)
			at += 2
		}
		for i := 0; i <= left && len(sids) < n; i++ {
			sids = append(sids, sid+i)
		}
	}
	return sids
}

// texts returns the text of glyphs by their number, or nil if they have no
// names.
func (c *cff) texts() map[int]string {
	if len(c.names) == 0 {
		return nil
	}
	out := map[int]string{}
	for gid, n := range c.names {
		if t, ok := glyphText(n); ok && c.b.Spend(charSteps) {
			out[gid] = t
		}
	}
	return out
}

// encoding returns the built-in encoding, or nil if glyphs have no names.
func (c *cff) encoding() *byteEncoding {
	if len(c.names) == 0 {
		return nil
	}
	if c.enc <= 1 || c.enc+2 > len(c.data) {
		return namedEncoding("StandardEncoding")
	}
	var e byteEncoding
	set := func(code, gid int) {
		if gid < len(c.names) && code < 256 {
			e[code] = simpleGlyph(c.names[gid], code)
		}
	}
	format, n, at, gid := c.data[c.enc], int(c.data[c.enc+1]), c.enc+2, 1
	for range n {
		if at+1 >= len(c.data) {
			break
		}
		first, left := int(c.data[at]), 0
		at++
		if format&0x7f == 1 {
			left = int(c.data[at])
			at++
		}
		for i := 0; i <= left && c.b.Spend(10); i++ {
			set(first+i, gid)
			gid++
		}
	}
	return &e
}
