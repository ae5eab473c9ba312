package pdf

import (
	"slices"
	"unicode/utf16"

	"knowhow/internal/extract/pdf/cos"
)

// maxMappings bounds the entries of one CMap; a range is one entry.
const maxMappings = 200000

// A cmap maps character codes to text (a ToUnicode CMap) or to the CIDs of a
// font (an encoding), ISO 32000-1, 9.7.5 and 9.10.3.
type cmap struct {
	spaces   []codeRange // codes by their length
	text     map[uint32]string
	ranges   []textRange
	cids     []cidRange
	vertical bool
	identity bool // codes of two bytes that are the CIDs
}

type codeRange struct {
	lo, hi uint32
	bytes  int
}

type textRange struct {
	lo, hi uint32
	first  string // text of lo; its last character counts up
}

type cidRange struct {
	lo, hi uint32
	cid    int
}

// parseCMap reads what it understands of a CMap. base returns the map that
// usecmap names.
func parseCMap(data []byte, base func(string) *cmap, b *cos.Budget) *cmap {
	m := &cmap{text: map[uint32]string{}}
	l := cos.Lexer{Src: data}
	var last cos.Token
	entries := 0
	for b.Spend(1) && entries < maxMappings {
		t := l.Next()
		if t.Kind == cos.TokEOF {
			break
		}
		if t.Kind == cos.TokName && string(t.Text) == "WMode" {
			n := l.Next()
			m.vertical = n.Kind == cos.TokNumber && n.Num == 1
		}
		if t.Kind == cos.TokKeyword {
			switch string(t.Text) {
			case "usecmap":
				if last.Kind == cos.TokName {
					m.use(base(string(last.Text)))
				}
			case "begincodespacerange":
				entries += m.readSpaces(&l)
			case "beginbfchar":
				entries += m.readChars(&l)
			case "beginbfrange":
				entries += m.readRanges(&l)
			case "begincidrange":
				entries += m.readCIDs(&l, true)
			case "begincidchar":
				entries += m.readCIDs(&l, false)
			}
		}
		last = t
	}
	b.Spend(len(data))
	slices.SortStableFunc(m.ranges, func(a, b textRange) int { return int(int64(a.lo) - int64(b.lo)) })
	slices.SortStableFunc(m.cids, func(a, b cidRange) int { return int(int64(a.lo) - int64(b.lo)) })
	return m
}

// use takes over another map.
func (m *cmap) use(base *cmap) {
	if base == nil {
		return
	}
	m.spaces = append(m.spaces, base.spaces...)
	m.cids = append(m.cids, base.cids...)
	m.identity = m.identity || base.identity
}

// pair reads two strings; ok is false at the end of the section.
func pair(l *cos.Lexer) (lo, hi cos.Token, ok bool) {
	lo = l.Next()
	if lo.Kind != cos.TokString {
		return lo, hi, false
	}
	hi = l.Next()
	return lo, hi, hi.Kind != cos.TokEOF
}

func (m *cmap) readSpaces(l *cos.Lexer) (n int) {
	for {
		lo, hi, ok := pair(l)
		if !ok {
			return n
		}
		if n++; len(lo.Text) >= 1 && len(lo.Text) <= 4 && len(m.spaces) < 1000 {
			m.spaces = append(m.spaces, codeRange{codeOf(lo.Text), codeOf(hi.Text), len(lo.Text)})
		}
	}
}

func (m *cmap) readChars(l *cos.Lexer) (n int) {
	for {
		code, dst, ok := pair(l)
		if !ok {
			return n
		}
		n++
		switch dst.Kind {
		case cos.TokString:
			m.text[codeOf(code.Text)] = utf16Text(dst.Text)
		case cos.TokName:
			m.text[codeOf(code.Text)], _ = glyphText(string(dst.Text))
		}
	}
}

func (m *cmap) readRanges(l *cos.Lexer) (n int) {
	for {
		lo, hi, ok := pair(l)
		if !ok {
			return n
		}
		n++
		from, to := codeOf(lo.Text), codeOf(hi.Text)
		switch t := l.Next(); t.Kind {
		case cos.TokString:
			if from <= to {
				m.ranges = append(m.ranges, textRange{from, to, utf16Text(t.Text)})
			}
		case cos.TokOpenArray:
			for i := from; ; i++ {
				t := l.Next()
				if t.Kind != cos.TokString {
					break
				}
				if n++; i >= from && i <= to {
					m.text[i] = utf16Text(t.Text)
				}
			}
		}
	}
}

func (m *cmap) readCIDs(l *cos.Lexer, isRange bool) (n int) {
	for {
		lo := l.Next()
		if lo.Kind != cos.TokString {
			return n
		}
		hi := lo
		if isRange {
			hi = l.Next()
		}
		cid := l.Next()
		if n++; cid.Kind == cos.TokNumber && codeOf(lo.Text) <= codeOf(hi.Text) {
			m.cids = append(m.cids, cidRange{codeOf(lo.Text), codeOf(hi.Text), int(max(0, min(cid.Num, 1<<20)))})
		}
	}
}

// codeOf is the number that the last four bytes make.
func codeOf(b []byte) uint32 {
	var v uint32
	for _, c := range b {
		v = v<<8 | uint32(c)
	}
	return v
}

// utf16Text decodes the UTF-16BE of a destination; a single byte is a
// character, as some writers have it.
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

// next takes the first code off s and says how many bytes it has, at least one.
func (m *cmap) next(s string) (code uint32, n int) {
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
	return codeOf([]byte(s[:n])), n
}

// inSpace reports whether every byte of a code lies in its range (Adobe
// Technical Note 5014, 7.1).
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
	// Of overlapping ranges the one that begins last wins.
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
