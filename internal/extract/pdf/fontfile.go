package pdf

import (
	"bytes"
	"encoding/binary"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

// A program is an embedded font program.
type program struct {
	data []byte
	key  cos.Name // its key in the descriptor
	b    *cos.Budget
}

// fontProgram returns the embedded font of a descriptor. The caller must free
// it.
func fontProgram(f *cos.File, descriptor cos.Dict) program {
	for _, key := range []cos.Name{"FontFile", "FontFile2", "FontFile3"} {
		if s := f.Stream(descriptor[key]); s != nil {
			if data, err := f.Decode(s); err == nil {
				return program{data, key, f.Budget}
			}
		}
	}
	return program{b: f.Budget}
}

func (p program) free() { p.b.Free(len(p.data)) }

// builtinEncoding reads the encoding of an embedded font program. It returns
// nil if there is none or it does not name the glyphs.
func builtinEncoding(f *cos.File, descriptor cos.Dict) *byteEncoding {
	p := fontProgram(f, descriptor)
	defer p.free()
	switch {
	case p.key == "FontFile":
		return type1Encoding(p.data, p.b)
	case p.key == "FontFile2" || bytes.HasPrefix(p.data, []byte("true")):
		return parseSFNT(p.data, p.b).encoding()
	case p.key == "FontFile3":
		if bytes.HasPrefix(p.data, []byte("OTTO")) {
			p.data = parseSFNT(p.data, p.b).cff
		}
		return parseCFF(p.data, p.b).encoding()
	}
	return nil
}

// maxCID is the largest CID (ISO 32000-1, Annex C).
const maxCID = 65535

// glyphTexts returns the text of the glyphs of a composite font by CID, as far
// as the embedded font program contains it, or nil. Its memory is taken from
// mem.
func glyphTexts(f *cos.File, cidFont cos.Dict, mem *cos.Share) map[int]string {
	p := fontProgram(f, f.Dict(cidFont["FontDescriptor"]))
	defer p.free()
	var texts map[int]string
	switch {
	case p.key == "FontFile2", bytes.HasPrefix(p.data, []byte("OTTO")):
		texts = parseSFNT(p.data, p.b).texts()
	case p.key == "FontFile3":
		texts = parseCFF(p.data, p.b).texts()
	}
	if !mem.Alloc(stringSize * len(texts)) {
		return nil
	}
	s := f.Stream(cidFont["CIDToGIDMap"])
	if s == nil || texts == nil {
		return texts
	}
	toGID, err := f.Decode(s)
	if err != nil {
		return texts
	}
	defer f.Budget.Free(len(toGID))
	byCID := map[int]string{}
	for cid := 0; cid <= maxCID && 2*cid+1 < len(toGID) && p.b.Spend(4); cid++ {
		if t := texts[int(binary.BigEndian.Uint16(toGID[2*cid:]))]; t != "" && mem.Alloc(stringSize) {
			byCID[cid] = t
		}
	}
	return byCID
}

// type1Encoding reads the Encoding array in the clear text of a Type 1 font
// (Adobe Type 1 Font Format, 2.3).
func type1Encoding(data []byte, b *cos.Budget) *byteEncoding {
	if i := bytes.Index(data, []byte("eexec")); i >= 0 {
		data = data[:i]
	}
	i := bytes.Index(data, []byte("/Encoding"))
	if i < 0 {
		return nil
	}
	l := cos.NewLexer(data, i+len("/Encoding"), b)
	defer l.Free()
	var e byteEncoding
	for {
		t := l.Next()
		switch {
		case t.Kind == cos.TokEOF:
			return nil
		case t.Kind != cos.TokKeyword:
		case string(t.Text) == "StandardEncoding":
			return namedEncoding("StandardEncoding")
		case string(t.Text) == "def", string(t.Text) == "readonly":
			return &e
		case string(t.Text) == "dup":
			code, glyph := l.Next(), l.Next()
			if code.Kind == cos.TokNumber && code.Num >= 0 && code.Num < 256 && glyph.Kind == cos.TokName {
				e[int(code.Num)] = simpleGlyph(string(glyph.Text), int(code.Num))
			}
		}
	}
}

// A sfnt contains the required tables of a TrueType or OpenType font program. A
// missing table is empty.
type sfnt struct {
	cmap, post, cff []byte
	b               *cos.Budget
}

func parseSFNT(data []byte, b *cos.Budget) *sfnt {
	s := &sfnt{b: b}
	for i := range u16(data, 4) {
		at := 12 + 16*i
		if at+16 > len(data) || !b.Spend(4) {
			break
		}
		off, n := u32(data, at+8), u32(data, at+12)
		if off > len(data) {
			continue
		}
		table := data[off:min(off+n, len(data))]
		switch string(data[at : at+4]) {
		case "cmap":
			s.cmap = table
		case "post":
			s.post = table
		case "CFF ":
			s.cff = table
		}
	}
	return s
}

// u16 and u32 read a big-endian number. Beyond the end it is 0.
func u16(b []byte, at int) int {
	if at < 0 || at+2 > len(b) {
		return 0
	}
	return int(b[at])<<8 | int(b[at+1])
}

func u32(b []byte, at int) int { return u16(b, at)<<16 | u16(b, at+2) }

// subtable returns the cmap subtable of a platform and encoding.
func (s *sfnt) subtable(platform, encoding int) []byte {
	t := s.cmap
	for i := range u16(t, 2) {
		at := 4 + 8*i
		if at+8 > len(t) || !s.b.Spend(1) {
			break
		}
		if off := u32(t, at+4); u16(t, at) == platform && u16(t, at+2) == encoding && off < len(t) {
			return t[off:]
		}
	}
	return nil
}

// mappingSteps is the number of steps for a mapping of a cmap subtable.
const mappingSteps = 20

// each calls fn for the mappings of a cmap subtable (OpenType, cmap).
func (s *sfnt) each(t []byte, fn func(code, gid int)) {
	left := maxMappings
	more := func() bool { left--; return left >= 0 && s.b.Spend(mappingSteps) }
	switch u16(t, 0) {
	case 0:
		for c := 0; c < 256 && 6+c < len(t) && more(); c++ {
			fn(c, int(t[6+c]))
		}
	case 4:
		n := u16(t, 6) / 2
		for i := range n {
			if !s.b.Spend(1) {
				return
			}
			end, start := u16(t, 14+2*i), u16(t, 16+2*n+2*i)
			delta, off := u16(t, 16+4*n+2*i), u16(t, 16+6*n+2*i)
			for c := start; c <= end && c < 0xffff && more(); c++ {
				gid := c
				if off != 0 {
					if gid = u16(t, 16+6*n+2*i+off+2*(c-start)); gid == 0 {
						continue
					}
				}
				fn(c, (gid+delta)&0xffff)
			}
		}
	case 6:
		first := u16(t, 6)
		for i := 0; i < u16(t, 8) && more(); i++ {
			fn(first+i, u16(t, 10+2*i))
		}
	case 12:
		for i := 0; i < min(u32(t, 12), len(t)/12) && s.b.Spend(1); i++ {
			start, end, gid := u32(t, 16+12*i), u32(t, 20+12*i), u32(t, 24+12*i)
			for c := start; c <= end && c <= 0x10ffff && more(); c++ {
				fn(c, gid+c-start)
			}
		}
	}
}

// texts returns the text of glyphs by their number, from the font's own
// character map.
func (s *sfnt) texts() map[int]string {
	out := map[int]string{}
	mem := s.b.Share()
	defer mem.Free() // the caller reserves the memory that it keeps
	for _, k := range [][2]int{{3, 10}, {3, 1}, {0, 6}, {0, 4}, {0, 3}, {0, 2}, {0, 1}, {0, 0}} {
		s.each(s.subtable(k[0], k[1]), func(code, gid int) {
			if t := string(rune(code)); out[gid] == "" && gid > 0 && gid <= maxCID && meaningful(t) &&
				mem.Alloc(stringSize) {
				out[gid] = t
			}
		})
	}
	for gid, n := range s.names() {
		if t, ok := glyphText(n); ok && out[gid] == "" && s.b.Spend(charSteps) && mem.Alloc(stringSize+len(t)) {
			out[gid] = t
		}
	}
	return out
}

// names returns the glyph names in a post table of version 2, except those of
// the standard Macintosh order.
func (s *sfnt) names() map[int]string {
	t := s.post
	if u32(t, 0) != 0x00020000 {
		return nil
	}
	n := u16(t, 32)
	var own [][]byte
	for at := 34 + 2*n; at < len(t) && len(own) <= maxCID && s.b.Spend(10); {
		end := min(at+1+int(t[at]), len(t))
		own = append(own, t[at+1:end])
		at = end
	}
	out := map[int]string{}
	for gid := 0; gid < n && s.b.Spend(10); gid++ {
		if i := u16(t, 34+2*gid) - 258; i >= 0 && i < len(own) {
			out[gid] = string(own[i])
		}
	}
	return out
}

// encoding returns the text of codes in a simple symbolic font (ISO 32000-1,
// 9.6.6.4), or nil if its glyphs have no known text.
func (s *sfnt) encoding() *byteEncoding {
	texts := s.texts()
	var e byteEncoding
	found := false
	for _, k := range [][2]int{{3, 0}, {1, 0}} {
		s.each(s.subtable(k[0], k[1]), func(code, gid int) {
			if c := code & 0xff; (code < 256 || code>>8 == 0xf0) && e[c] == "" && texts[gid] != "" {
				e[c] = texts[gid]
				found = true
			}
		})
	}
	if !found {
		return nil
	}
	return &e
}
