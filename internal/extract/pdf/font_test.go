package pdf

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

// composite is a Type0 font with an encoding and what else its dictionaries hold.
func composite(encoding, more, descendant string) string {
	return "<</Type/Font/Subtype/Type0/Encoding" + encoding + more + "/DescendantFonts[<</Subtype/CIDFontType2" +
		descendant + ">>]>>"
}

// collection is an entry of a descendant: Adobe's collection with an ordering.
func collection(ordering string) string {
	return "/CIDSystemInfo<</Registry(Adobe)/Ordering(" + ordering + ")/Supplement 4>>"
}

// TestFonts decodes one string with many kinds of fonts. The stream of a font
// is object 5.
func TestFonts(t *testing.T) {
	toUnicode := func(s string) string { return streamObject("", s) }
	type1 := "%!PS-AdobeFont\n/Encoding 256 array\n0 1 255 {1 index exch /.notdef put} for\ndup 1 /fi put\ndup 65 /alpha put\ndup 66/a66 put\nreadonly def\neexec binary"
	tests := []struct{ name, font, stream, show, want string }{
		{"WinAnsi", "<</Subtype/TrueType/Encoding/WinAnsiEncoding>>", "", "(caf\xe9 \x93x\x94 \x80)", "café “x” €"},
		{"MacRoman", "<</Subtype/TrueType/Encoding/MacRomanEncoding>>", "", "(caf\x8e\xcax)", "café x"},
		{"Standard", "<</Subtype/Type1/Encoding/StandardEncoding>>", "", "(it's \xae\xaf \xf1\xfb)", "it’s fifl æß"},
		{"Symbol", "<</Subtype/Type1/BaseFont/ABCDEF+Symbol>>", "", "(abc \xa3 \xae \xfe\x22)", "αβχ ≤ → ⎭∀"},
		{"differences", "<</Subtype/Type1/Encoding<</BaseEncoding/WinAnsiEncoding/Differences[1/ff/f_f_i/uni0414 10/u1F600/A.sc/afii10017/g17]>>>>", "",
			"(x\\001\\002\\003\\012\\013\\014\\015)", "xffffiД😀AА"},
		{"bitmap font of TeX", "<</Subtype/Type3/FontMatrix[.01 0 0 .01 0 0]/FirstChar 65/Widths[50 50]/Encoding<</Differences[12/a12 50/2 65/a65/a66]>>>>", "", "(\\0142AB)", "fi2AB"},
		{"units of a bitmap font", "<</Subtype/Type3/FontMatrix[1 0 0 1 0 0]/FirstChar 97/Widths[.5 .5]/Encoding<</Differences[97/a/b]>>>>", "", "(a) Tj 6.2 0 Td (b) Tj 4 0 Td (a)", "a ba"},
		{"Type 1 program", "<</Subtype/Type1/FontDescriptor<</FontFile 5 0 R>>>>", streamObject("", type1), "(\\001AB)",
			"fiαB"},
		{"CFF program", "<</Subtype/Type1/FontDescriptor<</FontFile3 5 0 R>>>>",
			streamObject("/Subtype/Type1C", cffFont()), "(\\001\\002)", "Aω"},
		{"TrueType program", "<</Subtype/TrueType/FontDescriptor<</Flags 4/FontFile2 5 0 R>>>>",
			streamObject("", ttf(true)), "(\\001\\002)", "日x"},
		{"ToUnicode", "<</Subtype/Type1/ToUnicode 5 0 R>>",
			toUnicode("2 beginbfchar <01> <0041030A> <02> <D83DDE00> endbfchar 1 beginbfrange <10> <12> <0061> endbfrange 1 beginbfrange <20> <21> [<0078> <00660066>] endbfrange"),
			"(\\001\\002\\020\\022\\040\\041Z)", "A\u030a😀acxffZ"},
		{"Identity", composite("/Identity-H", "/ToUnicode 5 0 R", ""),
			toUnicode("1 beginbfrange <0001> <0002> <65E5> endbfrange"), "<00010002>", "日旦"},
		{"Identity, text of the program", composite("/Identity-H", "", "/FontDescriptor<</FontFile2 5 0 R>>"),
			streamObject("", ttf(false)), "<00010002>", "日x"},
		{"CIDToGIDMap", composite("/Identity-H", "", "/FontDescriptor<</FontFile2 5 0 R>>/CIDToGIDMap 6 0 R"),
			streamObject("", ttf(false)), "<00000001>", "x日"},
		{"UTF-16", composite("/UniJIS-UTF16-H", "", ""), "", "<65E5672CD83DDE000041>", "日本😀A"},
		{"UCS-2", composite("/UniGB-UCS2-H", "", ""), "", "<4E2D6587>", "中文"},
		{"UTF-32", composite("/UniJIS-UTF32-H", "", ""), "", "<000065E5>", "日"},
		{"Shift JIS", composite("/90ms-RKSJ-H", "", ""), "", "<93FA967BB141>", "日本ｱA"},
		{"EUC-JP", composite("/EUC-H", "", ""), "", "<C6FCCBDC41>", "日本A"},
		{"JIS", composite("/H", "", ""), "", "<467C4B5C>", "日本"},
		{"GBK", composite("/GBK-EUC-H", "", ""), "", "<D6D0CEC441>", "中文A"},
		{"Big5", composite("/ETen-B5-H", "", ""), "", "<A4A4A4E541>", "中文A"},
		{"Korean", composite("/KSCms-UHC-H", "", ""), "", "<C7D1B1DB41>", "한글A"},
		{"own encoding", composite(" 5 0 R", "/ToUnicode 6 0 R", ""),
			toUnicode("2 begincodespacerange <00> <7f> <8000> <ffff> endcodespacerange 1 begincidrange <8000> <80ff> 5 endcidrange"),
			"<41800141>", "A日A"},
		{"CIDs of Japanese characters", composite("/Identity-H", "", collection("Japan1")), "", "<0cd40e8a07a00022>",
			"日本語A"},
		{"CIDs of simplified Chinese characters", composite("/Identity-H", "", collection("GB1")), "", "<11cf0ed30062>",
			"中文。"},
		{"CIDs of traditional Chinese characters", composite("/Identity-H", "", collection("CNS1")), "", "<0a3710a7>",
			"國語"},
		{"CIDs of Korean characters", composite("/Identity-H", "", collection("Korea1")), "", "<0ce004d6>", "한글"},
		{"CIDs from top to bottom", composite("/Identity-V", "", collection("Japan1")), "",
			"<0cd40e8a> Tj 1 0 0 1 58 700 Tm <07a0>", "日本語"},
		{"CIDs, some with ToUnicode", composite("/Identity-H", "/ToUnicode 5 0 R", collection("Japan1")),
			toUnicode("1 beginbfchar <0cd4> <0058> endbfchar"), "<0cd40e8a>", "X本"},
		{"CIDs of an own encoding", composite(" 5 0 R", "", collection("Japan1")),
			toUnicode("1 begincodespacerange <00> <ff> endcodespacerange 2 begincidchar <41> 3284 <42> 3722 endcidchar"), "(AB)", "日本"},
		{"CIDs before the program", composite("/Identity-H", "",
			"/FontDescriptor<</FontFile2 5 0 R>>"+collection("Japan1")), streamObject("", ttf(false)), "<0cd40022>",
			"日A"},
		{"top to bottom", composite("/UniJIS-UTF16-V", "", ""), "", "<65E5672C> Tj 1 0 0 1 58 700 Tm <8A9E>", "日本語"},
	}
	for _, tt := range tests {
		m := newMaker(tt.font, "BT /F1 10 Tf 1 0 0 1 72 700 Tm "+tt.show+" Tj ET")
		m.add(tt.stream)
		switch tt.name {
		case "CIDToGIDMap":
			m.add(streamObject("", "\x00\x02\x00\x01"))
		case "own encoding":
			m.add(streamObject("", "1 beginbfchar <8001> <65E5> endbfchar 1 beginbfrange <0041> <005a> <0041> endbfrange"))
		}
		x, err := Read(t.Context(), m.bytes(), 0)
		if err != nil || x.Body != tt.want {
			t.Errorf("%s: Read = %+v, %v, want %q", tt.name, x, err, tt.want)
		}
	}
}

// TestWidths shows that widths tell words apart: the second string begins
// where the first ends, or a blank later.
func TestWidths(t *testing.T) {
	tests := []struct{ name, font, show string }{
		{"Widths", "<</Subtype/Type1/FirstChar 97/Widths[1000 1000]>>", "(ab) Tj 1 0 0 1 %s 700 Tm (a)"},
		{"MissingWidth", "<</Subtype/Type1/FirstChar 1/Widths[1]/FontDescriptor<</MissingWidth 1000>>>>",
			"(ab) Tj 1 0 0 1 %s 700 Tm (a)"},
		{"W", composite("/Identity-H", "/ToUnicode 5 0 R", "/DW 1/W[97[1000] 98 99 1000]"),
			"<00610062> Tj 1 0 0 1 %s 700 Tm <0061>"},
		{"DW", composite("/Identity-H", "/ToUnicode 5 0 R", ""), "<00610062> Tj 1 0 0 1 %s 700 Tm <0061>"},
	}
	for _, tt := range tests {
		for at, want := range map[string]string{"92": "aba", "95": "ab a"} {
			m := newMaker(tt.font, "BT /F1 10 Tf 1 0 0 1 72 700 Tm "+strings.Replace(tt.show, "%s", at, 1)+" Tj ET")
			m.add(streamObject("", "1 beginbfrange <0000> <ffff> <0000> endbfrange"))
			if got := mustRead(t, m.bytes()).Body; got != want {
				t.Errorf("%s: body = %q, want %q", tt.name, got, want)
			}
		}
	}
}

func TestGlyphText(t *testing.T) {
	tests := map[string]string{"A": "A", "eacute": "é", "uni65E5672C": "日本", "u1F600": "😀", "f_f_i": "ffi",
		"one.oldstyle": "1",
		"afii10049":    "Я", "ffl": "ﬄ", "": "", ".notdef": "", "g12": "", "uniD800": "", "u110000": "", "cid123": "",
		"_": ""}
	for n, want := range tests {
		if got, ok := glyphText(n); got != want || ok != (want != "") {
			t.Errorf("glyphText(%q) = %q, %t, want %q", n, got, ok, want)
		}
	}
}

// ttf makes a TrueType font of two glyphs, 日 and x. In a symbolic one the codes
// 1 and 2 lead to them, and Unicode only to the first: the second has a name.
func ttf(symbolic bool) string {
	be := binary.BigEndian
	format0 := make([]byte, 262)
	be.PutUint16(format0[2:], 262)
	format0[6+1], format0[6+2] = 1, 2
	u16s := func(vs ...int) (b []byte) {
		for _, v := range vs {
			b = be.AppendUint16(b, uint16(v))
		}
		return b
	}
	// Format 4: 0x65e5 -> 1, end of table.
	format4 := u16s(4, 32, 0, 4, 0, 0, 0, 0x65e5, 0xffff, 0, 0x65e5, 0xffff, 1-0x65e5, 1, 0, 0)
	var table []byte
	if symbolic {
		table = append(u16s(0, 2, 1, 0, 0, 20, 3, 1, 0, 20+len(format0)), append(format0, format4...)...)
	} else {
		table = append(u16s(0, 1, 3, 1, 0, 12), format4...)
	}
	post := append(append(u16s(2, 0), make([]byte, 28)...), u16s(3, 0, 0, 258)...)
	post = append(post, "\x01x"...)
	font := append([]byte("\x00\x01\x00\x00"), u16s(2, 0, 0, 0)...)
	at := 12 + 32
	for _, p := range []struct {
		tag  string
		data []byte
	}{{"cmap", table}, {"post", post}} {
		font = append(font, p.tag...)
		font = be.AppendUint32(font, 0)
		font = be.AppendUint32(font, uint32(at))
		font = be.AppendUint32(font, uint32(len(p.data)))
		at += len(p.data)
	}
	return string(append(append(font, table...), post...))
}

// cffFont makes a CFF font of the glyphs A (a standard name) and omega (its
// own name), which the codes 1 and 2 lead to.
func cffFont() string {
	index := func(items ...string) string {
		var b, data strings.Builder
		b.Write([]byte{0, byte(len(items)), 1, 1})
		at := 1
		for _, it := range items {
			at += len(it)
			b.WriteByte(byte(at))
			data.WriteString(it)
		}
		return b.String() + data.String()
	}
	number := func(v int) string { return "\x1c" + string([]byte{byte(v >> 8), byte(v)}) }
	head := "\x01\x00\x04\x01" + index("Test")
	names := index("omega") + "\x00\x00" // and no subroutines
	charset := "\x00\x00\x22\x01\x87"    // A is 34, omega 391
	encoding := "\x00\x02\x01\x02"
	// The offsets in the dictionary have a fixed size, so its own is known.
	base := len(head) + len(index(strings.Repeat("x", 12))) + len(names)
	dict := number(base) + "\x0f" + number(base+len(charset)) + "\x10" + number(base+len(charset)+len(encoding)) +
		"\x11"
	return head + index(dict) + names + charset + encoding + index("\x0e", "\x0e", "\x0e")
}

func FuzzFontPrograms(f *testing.F) {
	f.Add([]byte(cffFont()))
	f.Add([]byte(ttf(true)))
	f.Add([]byte("/Encoding 256 array dup 65 /A put readonly def"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const steps, memory = 1 << 22, 8 << 20
		b := cos.NewBudget(steps, memory, nil)
		n := allocated(func() {
			type1Encoding(data, b)
			s := parseSFNT(data, b)
			s.encoding()
			c := parseCFF(data, b)
			for gid, text := range c.texts() {
				if gid >= len(c.names) || text == "" {
					t.Fatalf("glyph %d has text %q", gid, text)
				}
			}
			c.encoding()
		})
		if n > 8*memory || b.Memory() > memory {
			t.Fatalf("%d bytes were allocated with a bound of %d, of which %d are left", n, memory, b.Memory())
		}
	})
}
