package pdf

import (
	"cmp"
	"slices"
	"unicode/utf16"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

// Limits on one CMap.
const (
	maxMappings = 200000 // entries; a range is one entry
	maxSpaces   = 100    // ranges of codes of a length; the largest CMaps of Adobe have 8
)

// The memory of the entries of a CMap in bytes, twice because slices grow.
const (
	textRangeSize = 2 * 24
	cidRangeSize  = 2 * 16
)

// A cmap maps character codes to text (a ToUnicode CMap) or to the CIDs of a
// font (an encoding), ISO 32000-1, 9.7.5 and 9.10.3.
type cmap struct {
	spaces   []codeRange // codes grouped by length
	text     map[uint32]string
	ranges   []textRange
	cids     []cidRange
	vertical bool
	identity bool // codes of two bytes are the CIDs
}

type codeRange struct {
	lo, hi uint32
	bytes  int
}

type textRange struct {
	lo, hi uint32
	first  string // text of lo; its last character is incremented
}

type cidRange struct {
	lo, hi uint32
	cid    int
}

// A cmapParser reads a CMap.
type cmapParser struct {
	*cmap
	l    *cos.Lexer
	mem  *cos.Share
	left int // number of entries that may still be read
}

// parseCMap reads the supported parts of a CMap, with memory of mem. base
// returns the map named by usecmap.
func parseCMap(data []byte, base func(string) *cmap, b *cos.Budget, mem *cos.Share) *cmap {
	p := cmapParser{&cmap{text: map[uint32]string{}}, cos.NewLexer(data, 0, b), mem, maxMappings}
	defer p.l.Free()
	var last cos.Token
	for p.left > 0 {
		t := p.l.Next()
		if t.Kind == cos.TokEOF {
			break
		}
		if t.Kind == cos.TokName && string(t.Text) == "WMode" {
			n := p.l.Next()
			p.vertical = n.Kind == cos.TokNumber && n.Num == 1
		}
		if t.Kind == cos.TokKeyword {
			switch string(t.Text) {
			case "usecmap":
				if last.Kind == cos.TokName {
					p.use(base(string(last.Text)))
				}
			case "begincodespacerange":
				p.readSpaces()
			case "beginbfchar":
				p.readChars()
			case "beginbfrange":
				p.readRanges()
			case "begincidrange":
				p.readCIDs(true)
			case "begincidchar":
				p.readCIDs(false)
			}
			p.l.Free()
		}
		last = t
	}
	if b.Spend(20 * (len(p.ranges) + len(p.cids))) {
		slices.SortStableFunc(p.ranges, func(a, b textRange) int { return cmp.Compare(a.lo, b.lo) })
		slices.SortStableFunc(p.cids, func(a, b cidRange) int { return cmp.Compare(a.lo, b.lo) })
	}
	return p.cmap
}

// use adopts another map.
func (m *cmap) use(base *cmap) {
	if base == nil {
		return
	}
	m.addSpaces(base.spaces...)
	m.identity = m.identity || base.identity
}

// addSpaces adds the ranges of codes that are not present.
func (m *cmap) addSpaces(rs ...codeRange) {
	for _, r := range rs {
		if len(m.spaces) < maxSpaces && !slices.Contains(m.spaces, r) {
			m.spaces = append(m.spaces, r)
		}
	}
}

// entry counts an entry and reserves its memory. It reports whether both are
// within the limits.
func (p *cmapParser) entry(size int) bool {
	p.left--
	p.l.Free()
	return p.left >= 0 && p.mem.Alloc(size)
}

// pair reads two strings. ok is false at the end of the section.
func (p *cmapParser) pair() (lo, hi cos.Token, ok bool) {
	lo = p.l.Next()
	if lo.Kind != cos.TokString {
		return lo, hi, false
	}
	hi = p.l.Next()
	return lo, hi, hi.Kind != cos.TokEOF
}

func (p *cmapParser) readSpaces() {
	for {
		lo, hi, ok := p.pair()
		if !ok || !p.entry(0) {
			return
		}
		if len(lo.Text) >= 1 && len(lo.Text) <= 4 {
			p.addSpaces(codeRange{codeOf(lo.Text), codeOf(hi.Text), len(lo.Text)})
		}
	}
}

func (p *cmapParser) readChars() {
	for {
		code, dst, ok := p.pair()
		if !ok {
			return
		}
		switch dst.Kind {
		case cos.TokString:
			p.setText(codeOf(code.Text), utf16Text(dst.Text))
		case cos.TokName:
			text, _ := glyphText(string(dst.Text))
			p.setText(codeOf(code.Text), text)
		}
		if p.left <= 0 {
			return
		}
	}
}

// setText sets the text of one code.
func (p *cmapParser) setText(code uint32, text string) {
	if p.entry(stringSize + len(text)) {
		p.text[code] = text
	}
}

func (p *cmapParser) readRanges() {
	for {
		lo, hi, ok := p.pair()
		if !ok {
			return
		}
		from, to := codeOf(lo.Text), codeOf(hi.Text)
		switch t := p.l.Next(); t.Kind {
		case cos.TokString:
			if text := utf16Text(t.Text); from <= to && p.entry(textRangeSize+len(text)) {
				p.ranges = append(p.ranges, textRange{from, to, text})
			}
		case cos.TokOpenArray:
			for i := from; ; i++ {
				t := p.l.Next()
				if t.Kind != cos.TokString {
					break
				}
				if i >= from && i <= to {
					p.setText(i, utf16Text(t.Text))
				}
			}
		}
		if p.left <= 0 {
			return
		}
	}
}

func (p *cmapParser) readCIDs(isRange bool) {
	for {
		lo := p.l.Next()
		if lo.Kind != cos.TokString {
			return
		}
		hi := lo
		if isRange {
			hi = p.l.Next()
		}
		cid := p.l.Next()
		if !p.entry(cidRangeSize) {
			return
		}
		if cid.Kind == cos.TokNumber && codeOf(lo.Text) <= codeOf(hi.Text) {
			p.cids = append(p.cids, cidRange{codeOf(lo.Text), codeOf(hi.Text), int(max(0, min(cid.Num, 1<<20)))})
		}
	}
}

// codeOf returns the number in the last four bytes.
func codeOf(b []byte) uint32 {
	var v uint32
	for _, c := range b {
		v = v<<8 | uint32(c)
	}
	return v
}

// utf16Text decodes the UTF-16BE of a destination. A single byte is a
// character, as some programs write it.
func utf16Text(b []byte) string {
	if len(b) == 1 {
		return string(rune(b[0]))
	}
	u := make([]uint16, 0, len(b)/2)
	for i := 0; i+1 < len(b) && i < 128; i += 2 {
		u = append(u, uint16(b[i])<<8|uint16(b[i+1]))
	}
	return string(utf16.Decode(u))
}

// next returns the first code in s and its length, at least one byte.
func (m *cmap) next(s []byte) (code uint32, n int) {
	if m.identity && len(m.spaces) == 0 {
		if len(s) < 2 {
			return uint32(s[0]), 1
		}
		return uint32(s[0])<<8 | uint32(s[1]), 2
	}
	for n = 1; n <= 4 && n <= len(s); n++ {
		code = code<<8 | uint32(s[n-1])
		for _, r := range m.spaces {
			if r.bytes == n && inSpace(code, r) {
				return code, n
			}
		}
	}
	n = 2
	for i, r := range m.spaces {
		if i == 0 || r.bytes < n {
			n = r.bytes
		}
	}
	n = min(n, len(s))
	return codeOf(s[:n]), n
}

// inSpace reports whether every byte of a code is in its range (Adobe Technical
// Note 5014, 7.1).
func inSpace(code uint32, r codeRange) bool {
	for i := range r.bytes {
		c, lo, hi := byte(code>>(8*i)), byte(r.lo>>(8*i)), byte(r.hi>>(8*i))
		if c < lo || c > hi {
			return false
		}
	}
	return true
}

// lookup returns the text of a code.
func (m *cmap) lookup(code uint32) (string, bool) {
	if s, ok := m.text[code]; ok {
		return s, true
	}
	// If ranges overlap, the one that begins last counts.
	i, _ := slices.BinarySearchFunc(m.ranges, code, func(r textRange, c uint32) int {
		if r.lo <= c {
			return -1
		}
		return 1
	})
	for n := 0; i > 0 && n < 4; n++ {
		i--
		if r := m.ranges[i]; code <= r.hi {
			return r.at(code), true
		}
	}
	return "", false
}

func (r textRange) at(code uint32) string {
	rs := []rune(r.first)
	if len(rs) == 0 {
		return ""
	}
	rs[len(rs)-1] += rune(min(code-r.lo, 0x10ffff))
	return string(rs)
}

// cid returns the glyph number of a code.
func (m *cmap) cid(code uint32) int {
	if len(m.cids) == 0 && m.identity {
		return int(code & 0xffff)
	}
	i, _ := slices.BinarySearchFunc(m.cids, code, func(r cidRange, c uint32) int {
		if r.lo <= c {
			return -1
		}
		return 1
	})
	if i > 0 && code <= m.cids[i-1].hi {
		return m.cids[i-1].cid + int(code-m.cids[i-1].lo)
	}
	return 0
}
