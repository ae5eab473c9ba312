package pdf

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

// standardA0, symbol20 and symbolA0 are the built-in encodings of fonts (ISO
// 32000-1, D.2 and D.5), from the code in their name on; U+FFFD means no
// character.
const (
	standardA0 = "\ufffd¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ\ufffd–†‡·\ufffd¶•‚„”»…‰\ufffd¿\ufffd`´ˆ˜¯˘˙¨\ufffd˚¸\ufffd˝˛ˇ—" +
		"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd" +
		"Æ\ufffdª\ufffd\ufffd\ufffd\ufffdŁØŒº\ufffd\ufffd\ufffd\ufffd\ufffdæ\ufffd\ufffd\ufffdı\ufffd\ufffdłøœß"
	symbol20 = " !∀#∃%&∍()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
	symbolA0 = "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪\ufffd〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭"
)

// A byteEncoding contains the text of each code of a simple font, or "" if
// there is none.
type byteEncoding [256]string

func fill(e *byteEncoding, from int, text string) {
	for _, r := range text {
		if r != '\ufffd' {
			e[from] = string(r)
		}
		from++
	}
}

func asciiEncoding() *byteEncoding {
	var e byteEncoding
	for c := 0x20; c < 0x7f; c++ {
		e[c] = string(rune(c))
	}
	return &e
}

// namedEncoding returns an encoding by its name in PDF, or the standard
// encoding for an unknown name.
func namedEncoding(n cos.Name) *byteEncoding {
	e := asciiEncoding()
	switch n {
	case "WinAnsiEncoding":
		fromCharmap(e, charmap.Windows1252)
		for _, c := range []int{0x7f, 0x81, 0x8d, 0x8f, 0x90, 0x9d} {
			e[c] = "•" // ISO 32000-1, D.2, note 3
		}
		e[0xa0], e[0xad] = " ", "-"
	case "MacRomanEncoding":
		fromCharmap(e, charmap.Macintosh)
		e[0xca] = " "
	case "Symbol":
		fill(e, 0x20, symbol20)
		fill(e, 0xa0, symbolA0)
	default:
		e['\''], e['`'] = "’", "‘"
		fill(e, 0xa0, standardA0)
	}
	return e
}

func fromCharmap(e *byteEncoding, m *charmap.Charmap) {
	for c := 0x80; c < 256; c++ {
		if r := m.DecodeByte(byte(c)); r != '\ufffd' {
			e[c] = string(r)
		}
	}
}

// glyphNamesText contains pairs of a glyph name and a code point in
// hexadecimal: the Adobe Glyph List For New Fonts 1.7 (Copyright 2002-2019
// Adobe, BSD 3-clause licence), its Cyrillic names, and the names of TeX's
// fonts.
//
//go:embed glyphnames.txt
var glyphNamesText string

var glyphNames = sync.OnceValue(func() map[string]rune {
	words := strings.Fields(glyphNamesText)
	m := make(map[string]rune, len(words)/2)
	for i := 0; i+1 < len(words); i += 2 {
		if v, err := strconv.ParseUint(words[i+1], 16, 21); err == nil {
			m[words[i]] = rune(v)
		}
	}
	return m
})

// maxGlyphName is the length of the longest known name of a glyph, in bytes.
const maxGlyphName = 200

// glyphText returns the text of a glyph's name (Adobe Glyph List Specification,
// 2). ok is false for names without a meaning, such as "g17".
func glyphText(n string) (text string, ok bool) {
	if len(n) > maxGlyphName {
		return "", false
	}
	n, _, _ = strings.Cut(n, ".") // "a.sc"
	if n == "" {
		return "", false
	}
	if len(n) == 1 && (n[0]|0x20 >= 'a' && n[0]|0x20 <= 'z') {
		return n, true
	}
	if r, ok := glyphNames()[n]; ok {
		return string(r), true
	}
	if strings.Contains(n, "_") { // "f_i"
		for part := range strings.SplitSeq(n, "_") {
			s, ok := glyphText(part)
			if !ok {
				return "", false
			}
			text += s
		}
		return text, true
	}
	hex, isUni := strings.CutPrefix(n, "uni")
	if isUni && len(hex) >= 4 && len(hex)%4 == 0 {
		for ; len(hex) >= 4; hex = hex[4:] {
			v, err := strconv.ParseUint(hex[:4], 16, 32)
			if err != nil || v >= 0xd800 && v < 0xe000 {
				return "", false
			}
			text += string(rune(v))
		}
		return text, true
	}
	if hex, isU := strings.CutPrefix(n, "u"); isU && len(hex) >= 4 && len(hex) <= 6 {
		if v, err := strconv.ParseUint(hex, 16, 32); err == nil && v <= 0x10ffff && (v < 0xd800 || v >= 0xe000) {
			return string(rune(v)), true
		}
	}
	return "", false
}

// A charset is a character set that a predefined CMap encodes (ISO 32000-1,
// table 118).
type charset struct {
	encoding encoding.Encoding
	high     bool // codes lack the high bits (the plain row and cell of JIS)
	unicode  int  // bytes of a UTF-16 (2) or UTF-32 (4) unit; 0 for others
}

// predefined returns the code lengths and the character set of a predefined
// CMap, or nil for an unknown name.
func predefined(n string) (*cmap, *charset) {
	m := &cmap{vertical: strings.HasSuffix(n, "V")}
	two := func(lo, hi uint32) codeRange { return codeRange{lo, hi, 2} }
	one := func(lo, hi uint32) codeRange { return codeRange{lo, hi, 1} }
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(n, p) {
				return true
			}
		}
		return false
	}
	switch {
	case n == "Identity-H" || n == "Identity-V":
		m.identity = true
		return m, nil
	case has("UTF16", "UCS2"):
		m.spaces = []codeRange{{0xd800dc00, 0xdbffdfff, 4}, two(0, 0xd7ff), two(0xe000, 0xffff)}
		return m, &charset{unicode: 2}
	case has("UTF32"):
		m.spaces = []codeRange{{0, 0x0010ffff, 4}}
		return m, &charset{unicode: 4}
	case has("RKSJ"):
		m.spaces = []codeRange{one(0, 0x80), one(0xa0, 0xdf), two(0x8140, 0x9ffc), two(0xe040, 0xfcfc)}
		return m, &charset{encoding: japanese.ShiftJIS}
	case has("GBK2K"):
		m.spaces = []codeRange{one(0, 0x7f), {0x81308130, 0xfe39fe39, 4}, two(0x8140, 0xfefe)}
		return m, &charset{encoding: simplifiedchinese.GB18030}
	case has("GBK", "GB-EUC", "GBpc"):
		m.spaces = []codeRange{one(0, 0x80), two(0x8140, 0xfefe)}
		return m, &charset{encoding: simplifiedchinese.GBK}
	case has("B5", "ETen", "HKscs"):
		m.spaces = []codeRange{one(0, 0x80), two(0x8140, 0xfefe)}
		return m, &charset{encoding: traditionalchinese.Big5}
	case has("KSC"):
		m.spaces = []codeRange{one(0, 0x80), two(0x8141, 0xfefe)}
		return m, &charset{encoding: korean.EUCKR}
	case n == "EUC-H" || n == "EUC-V":
		m.spaces = []codeRange{one(0, 0x80), two(0x8ea0, 0x8edf), two(0xa1a1, 0xfefe)}
		return m, &charset{encoding: japanese.EUCJP}
	case n == "H" || n == "V" || n == "78-H" || n == "78-V" || n == "Ext-H" || n == "Ext-V" || n == "Add-H" ||
		n == "Add-V":
		m.spaces = []codeRange{two(0x2121, 0x7e7e)}
		return m, &charset{encoding: japanese.EUCJP, high: true}
	}
	return nil, nil
}

// text returns the text of a code of n bytes.
func (c *charset) text(code uint32, n int) (string, bool) {
	b := []byte{byte(code >> 24), byte(code >> 16), byte(code >> 8), byte(code)}[4-n:]
	switch {
	case c.unicode == 4:
		return string(rune(code & 0x1fffff)), code <= 0x10ffff
	case c.unicode == 2 && n < 2:
		return "", false
	case c.unicode == 2:
		return utf16Text(b), true
	case c.high:
		for i := range b {
			b[i] |= 0x80
		}
	}
	out, err := c.encoding.NewDecoder().Bytes(b)
	return string(out), err == nil && !strings.ContainsRune(string(out), '\ufffd')
}
