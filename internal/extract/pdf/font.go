package pdf

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cid"
	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

// A char is the meaning of a character code.
type char struct {
	text  string
	width float64 // in units of text space at size 1
	known bool    // false if the file does not contain the text
}

// A font decodes the strings of a content stream.
type font struct {
	dict      cos.Dict
	composite bool
	codes     *cmap           // of composite fonts
	charset   *charset        // character set of the codes, if it is defined by a predefined CMap
	chars     *cid.Collection // of the CIDs, if it is known
	toUnicode *cmap           // nil if there is none
	glyphs    map[int]string
	encoding  byteEncoding // of other fonts
	widths    widths
	standard  *[95]uint16 // widths of a standard font
	missing   float64     // width of characters without an entry in widths
	unit      float64     // of widths
	em        float64     // size of the font at size 1
	bold      bool
	cache     map[uint32]char
	b         *cos.Budget
	mem       *cos.Share // of all fonts
}

// The memory of fonts, in bytes.
const (
	fontSize   = 6000 // including the texts of an encoding
	charSize   = 100  // an entry of the cache and its text
	stringSize = 64   // an entry of a map to short texts
)

const (
	fontSteps       = 1000    // steps of loading a font, in addition to those of its parts
	charSteps       = 100     // steps of decoding a character that is not in the cache
	collectionSteps = 1 << 17 // steps of loading a character collection

	maxChars = 1 << 17 // maximum number of characters in the cache of a font
)

// fonts caches the fonts of a document. A font is read once, wherever it is
// used.
type fonts struct {
	f           *cos.File
	byDict      map[uintptr]*font // by the address of the dictionary, which the font keeps alive
	mem         cos.Share
	collections map[collectionName]*cid.Collection // those that are in use
}

func newFonts(f *cos.File) *fonts {
	return &fonts{f: f, byDict: map[uintptr]*font{}, mem: f.Budget.Share(),
		collections: map[collectionName]*cid.Collection{}}
}

// A collectionName is the name of a character collection.
type collectionName struct{ registry, ordering string }

// maxCollectionName is the maximum length of a part of the name of a known
// collection.
const maxCollectionName = 16

// collection returns the character collection that a CIDSystemInfo names (ISO
// 32000-1, 9.7.3), or nil if it is unknown. It is read once for a document.
func (fs *fonts) collection(info cos.Dict) *cid.Collection {
	registry, _ := fs.f.Resolve(info["Registry"]).(string)
	ordering, _ := fs.f.Resolve(info["Ordering"]).(string)
	if len(registry) > maxCollectionName || len(ordering) > maxCollectionName {
		return nil
	}
	name := collectionName{registry, ordering}
	c, ok := fs.collections[name]
	if !ok && fs.f.Budget.Spend(fontSteps) {
		if c = cid.Load(registry, ordering); c != nil && fs.f.Budget.Spend(collectionSteps) &&
			fs.f.Budget.Alloc(cid.Size) {
			fs.collections[name] = c
		}
	}
	return c
}

// get returns the font that o is or refers to, or nil.
func (fs *fonts) get(o cos.Object) *font {
	d := fs.f.Dict(o)
	if d == nil {
		return nil
	}
	key := reflect.ValueOf(d).Pointer()
	ft, ok := fs.byDict[key]
	if !ok {
		ft = fs.load(d)
		fs.byDict[key] = ft
	}
	return ft
}

// trim drops all fonts if they take more than max bytes.
func (fs *fonts) trim(max int) {
	if fs.mem.Size() > max {
		clear(fs.byDict)
		fs.mem.Free()
	}
}

// load reads a font dictionary. It never fails: an unreadable font is one with
// unknown characters.
func (fs *fonts) load(d cos.Dict) *font {
	f, mem := fs.f, &fs.mem
	ft := &font{dict: d, unit: 0.001, em: 1, cache: map[uint32]char{}, b: f.Budget, mem: mem}
	if !f.Budget.Spend(fontSteps) || !mem.Alloc(fontSize) {
		return ft
	}
	if s := f.Stream(d["ToUnicode"]); s != nil {
		if data, err := f.Decode(s); err == nil {
			ft.toUnicode = parseCMap(data, func(string) *cmap { return nil }, f.Budget, mem)
			f.Budget.Free(len(data))
			if len(ft.toUnicode.text)+len(ft.toUnicode.ranges) == 0 {
				ft.toUnicode = nil
			}
		}
	}
	if f.Name(d["Subtype"]) == "Type0" {
		ft.loadComposite(fs, d)
	} else {
		ft.loadSimple(f, d)
	}
	return ft
}

// loadComposite reads a Type0 font and its descendant (ISO 32000-1, 9.7).
func (ft *font) loadComposite(fs *fonts, d cos.Dict) {
	f := fs.f
	ft.composite = true
	ft.codes, ft.charset = encodingCMap(f, d["Encoding"], ft.mem)
	var cidFont cos.Dict
	if ds := f.List(d["DescendantFonts"]); len(ds) > 0 {
		cidFont = f.Dict(ds[0])
	}
	ft.bold = isBold(f, baseName(f, cidFont), f.Dict(cidFont["FontDescriptor"]))
	ft.missing = f.Number(cidFont["DW"], 1000)
	ft.widths = widthsOf(f, f.Array(cidFont["W"]), ft.missing, ft.mem)
	// The CIDs of a CMap that is named, but not known, are not known either.
	if n := f.Name(d["Encoding"]); n == "" || n == "Identity-H" || n == "Identity-V" {
		ft.chars = fs.collection(f.Dict(cidFont["CIDSystemInfo"]))
	}
	if ft.toUnicode == nil && ft.charset == nil && ft.chars == nil && ft.codes.identity {
		ft.glyphs = glyphTexts(f, cidFont, ft.mem)
	}
}

// encodingCMap reads the Encoding of a composite font: a name or a stream.
func encodingCMap(f *cos.File, o cos.Object, mem *cos.Share) (*cmap, *charset) {
	if s := f.Stream(o); s != nil {
		base := func(n string) *cmap { m, _ := predefined(n); return m }
		if data, err := f.Decode(s); err == nil {
			m := parseCMap(data, base, f.Budget, mem)
			f.Budget.Free(len(data))
			if n := f.Name(s.Dict["UseCMap"]); n != "" {
				m.use(base(string(n)))
			}
			return m, nil
		}
	}
	if m, cs := predefined(string(f.Name(o))); m != nil {
		return m, cs
	}
	return &cmap{identity: true}, nil
}

// baseName returns the name of a font in small letters, without the prefix of a
// subset (ISO 32000-1, 9.6.4).
func baseName(f *cos.File, d cos.Dict) string {
	base := strings.ToLower(string(f.Name(d["BaseFont"])))
	if i := strings.IndexByte(base, '+'); i == 6 {
		base = base[7:]
	}
	return base
}

// The weight of bold fonts, and the flag of fonts that are always painted bold (ISO
// 32000-1, 9.8).
const (
	boldWeight = 600
	forceBold  = 1 << 18
)

// isBold reports whether a font is bold, by its name or descriptor. The bold fonts of
// TeX have short names, such as CMBX10.
func isBold(f *cos.File, base string, descriptor cos.Dict) bool {
	for _, s := range []string{"bold", "black", "heavy", "-demi"} {
		if strings.Contains(base, s) {
			return true
		}
	}
	for _, s := range []string{"cmb", "cmssbx", "ecbx", "sfbx"} {
		if strings.HasPrefix(base, s) {
			return true
		}
	}
	flags, _ := cos.Integer(f.Resolve(descriptor["Flags"]))
	return flags&forceBold != 0 || f.Number(descriptor["FontWeight"], 0) >= boldWeight
}

// loadSimple reads a Type1, TrueType or Type3 font (ISO 32000-1, 9.6).
func (ft *font) loadSimple(f *cos.File, d cos.Dict) {
	descriptor := f.Dict(d["FontDescriptor"])
	base := baseName(f, d)
	ft.bold = isBold(f, base, descriptor)
	ft.missing = f.Number(descriptor["MissingWidth"], 0)
	from, _ := cos.Integer(f.Resolve(d["FirstChar"]))
	list := f.Array(d["Widths"])
	ft.widths.add(f, from, list[:min(len(list), 256)], ft.missing, ft.mem)
	if len(ft.widths.ranges) == 0 {
		ft.standard, ft.missing = standardWidths(base)
	}
	type3 := f.Name(d["Subtype"]) == "Type3"
	if m := f.Array(d["FontMatrix"]); type3 && len(m) == 6 {
		ft.unit = f.Number(m[0], 0.001)
	}
	ft.encoding = *baseEncoding(f, d, descriptor, base)
	code := 0
	for _, o := range f.Array(f.Dict(d["Encoding"])["Differences"]) {
		if !f.Budget.Spend(20) {
			return
		}
		switch v := f.Resolve(o).(type) {
		case int:
			code = v
		case cos.Name:
			if code >= 0 && code < 256 {
				ft.encoding[code] = simpleGlyph(string(v), code)
			}
			code++
		}
	}
	if type3 {
		ft.em = ft.guessEm()
	}
}

// guessEm estimates the size of a Type3 font, which has its own units: an m is
// 0.8 em wide, and an average character half an em.
func (ft *font) guessEm() float64 {
	sum, n := 0.0, 0
	for code, text := range ft.encoding {
		w, _ := ft.widths.of(code, ft.b)
		w = math.Abs(w)
		if w > 0 && text == "m" {
			return w * ft.unit / 0.8
		}
		if w > 0 {
			sum, n = sum+w, n+1
		}
	}
	if n == 0 {
		return 1
	}
	return sum / float64(n) * ft.unit / 0.5
}

// simpleGlyph returns the text of a glyph in a Differences array. The names in
// bitmap fonts made by TeX contain the code itself: "a65".
func simpleGlyph(n string, code int) string {
	s, ok := glyphText(n)
	if ok || len(n) > maxGlyphName {
		return s
	}
	if len(n) == 1 && n[0] > ' ' && n[0] < 0x7f {
		return n // the character itself, as in "2" for "two"
	}
	digits := strings.TrimLeft(n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	if v, err := strconv.Atoi(digits); err == nil && len(n)-len(digits) <= 2 && v == code {
		switch {
		case code > 0x20 && code < 0x7f:
			return string(rune(code))
		case code >= 11 && code <= 15:
			return []string{"ff", "fi", "fl", "ffi", "ffl"}[code-11]
		}
	}
	return ""
}

// baseEncoding returns the encoding that Differences change.
func baseEncoding(f *cos.File, d, descriptor cos.Dict, base string) *byteEncoding {
	n := f.Name(d["Encoding"])
	if e := f.Dict(d["Encoding"]); e != nil {
		n = f.Name(e["BaseEncoding"])
	}
	if n != "" {
		return namedEncoding(n)
	}
	if e := builtinEncoding(f, descriptor); e != nil {
		return e
	}
	switch {
	case base == "symbol":
		return namedEncoding("Symbol")
	case base == "zapfdingbats":
		return new(byteEncoding)
	case f.Name(d["Subtype"]) == "Type3":
		return new(byteEncoding)
	case f.Name(d["Subtype"]) == "TrueType":
		return namedEncoding("WinAnsiEncoding")
	}
	return namedEncoding("StandardEncoding")
}

// next returns the first character in s and its length in bytes.
func (ft *font) next(s []byte) (char, uint32, int) {
	code, n := uint32(s[0]), 1
	if ft.composite {
		code, n = ft.codes.next(s)
	}
	key := uint32(n)<<30 ^ code
	c, ok := ft.cache[key]
	if !ok {
		if !ft.b.Spend(charSteps) {
			return char{}, code, n
		}
		c = ft.decode(code, n)
		if len(ft.cache) < maxChars && ft.mem.Alloc(charSize+len(c.text)) {
			ft.cache[key] = c
		}
	}
	return c, code, n
}

func (ft *font) decode(code uint32, n int) char {
	var c char
	if ft.toUnicode != nil {
		c.text, c.known = ft.toUnicode.lookup(code)
		if !meaningful(c.text) {
			c.text, c.known = "", false
		}
	}
	if !ft.composite {
		if !c.known {
			c.text = ft.encoding[byte(code)]
			c.known = c.text != ""
		}
		c.width = ft.simpleWidth(int(code)) * ft.unit
		return c
	}
	cid := ft.codes.cid(code)
	if !c.known && ft.charset != nil {
		c.text, c.known = ft.charset.text(code, n)
	}
	if !c.known && ft.chars != nil {
		c.text = ft.chars.Text(cid)
		c.known = c.text != ""
	}
	if !c.known && ft.glyphs != nil {
		c.text = ft.glyphs[cid]
		c.known = c.text != ""
	}
	w, ok := ft.widths.of(cid, ft.b)
	switch {
	case ok && (ft.charset == nil || len(ft.codes.cids) > 0):
	case ft.charset != nil && utf8.RuneCountInString(c.text) == 1 && isHalfWidth(c.text):
		w = 500 // the CIDs of predefined CMaps are unknown
	default:
		w = ft.missing
	}
	c.width = w * ft.unit
	return c
}

func isHalfWidth(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r < 0x100 || r >= 0xff61 && r <= 0xff9f
}

// meaningful reports whether a text is visible to readers: not only control
// characters, private use or replacement characters.
func meaningful(s string) bool {
	for _, r := range s {
		if r >= 0x20 && r != 0x7f && !(r >= 0x80 && r < 0xa0) && r != utf8.RuneError && !(r >= 0xe000 && r <= 0xf8ff) &&
			r < 0xf0000 {
			return true
		}
		if r == '\t' || r == '\n' || r == '\r' {
			return true
		}
	}
	return false
}

func (ft *font) simpleWidth(code int) float64 {
	if w, ok := ft.widths.of(code, ft.b); ok {
		return w
	}
	if ft.standard != nil && code >= 0x20 && code < 0x7f {
		return float64(ft.standard[code-0x20])
	}
	return ft.missing
}

// standardWidths returns the widths of a standard font without widths in the
// file (ISO 32000-1, 9.6.2.2): those of the printable ASCII characters, and one
// for all others. The widths of bold and italic fonts are similar enough for
// finding blanks.
func standardWidths(base string) (*[95]uint16, float64) {
	switch {
	case strings.Contains(base, "courier"), strings.Contains(base, "mono"):
		return nil, 600
	case strings.Contains(base, "times"), strings.Contains(base, "serif"), strings.Contains(base, "roman"):
		return &timesWidths, 500
	case strings.Contains(base, "symbol"), strings.Contains(base, "dingbats"):
		return nil, 600
	}
	return &helveticaWidths, 556
}

// Widths of Helvetica and Times-Roman from blank to tilde (Adobe's metrics of
// the core fonts).
var (
	helveticaWidths = [95]uint16{278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
		556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
		1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
		667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
		333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
		556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584}
	timesWidths = [95]uint16{250, 333, 408, 500, 500, 833, 778, 180, 333, 333, 500, 564, 250, 333, 250, 278,
		500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 278, 278, 564, 564, 564, 444,
		921, 722, 667, 667, 722, 611, 556, 722, 722, 333, 389, 722, 611, 889, 722, 722,
		556, 722, 667, 556, 611, 722, 722, 944, 722, 722, 500, 333, 278, 333, 469, 500,
		333, 444, 500, 444, 500, 444, 333, 500, 500, 278, 278, 500, 278, 778, 500, 500,
		500, 500, 333, 389, 278, 500, 500, 722, 500, 500, 444, 480, 200, 480, 541}
)
