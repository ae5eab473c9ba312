package pdf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// mustRead reads a document and checks the properties of every text.
func mustRead(t *testing.T, data []byte) *Text {
	t.Helper()
	x, err := Read(t.Context(), data, 0)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	checkText(t, x)
	return x
}

func checkText(t *testing.T, x *Text) {
	t.Helper()
	for _, s := range []string{x.Title, x.Body} {
		if !utf8.ValidString(s) || strings.IndexFunc(s,
			func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) >= 0 {
			t.Fatalf("%q is not plain text", s)
		}
	}
	last := -1
	for _, h := range x.Headings {
		if h.Offset <= last || h.Offset >= len(x.Body) || h.Level < 1 || h.Level > 6 || h.Text == "" ||
			strings.ContainsAny(h.Text, "\n\t") {
			t.Fatalf("bad heading %+v after offset %d in %d bytes", h, last, len(x.Body))
		}
		last = h.Offset
	}
}

// page reads a page with Helvetica at 10 points as F1.
func page(t *testing.T, content string) string {
	t.Helper()
	return mustRead(t, newMaker(helvetica, "BT /F1 10 Tf "+content+" ET").bytes()).Body
}

func TestLayout(t *testing.T) {
	const long = "(Some rather long line that fills the column to its very end, as lines do) Tj "
	tests := []struct{ name, content, want string }{
		{"one string", "72 700 Td (Hello, world) Tj", "Hello, world"},
		{"kerning and a blank made by moving", "72 700 Td [(He) 20 (llo,) -300 (wor) 30 (ld)] TJ", "Hello, world"},
		{"words placed one by one", "1 0 0 1 72 700 Tm (Hello) Tj 1 0 0 1 98 700 Tm (world) Tj", "Hello world"},
		{"letters placed one by one", "1 0 0 1 72 700 Tm (H) Tj 1 0 0 1 79.22 700 Tm (i) Tj", "Hi"},
		{"letters spaced out one by one", "72 700 Td [(i) -115 (m) -115 (p) -115 (o) -115 (r) -115 (t) -600 (f) -90 (m) -90 (t)] TJ", "import fmt"},
		{"digits in columns", "72 700 Td [(1) -500 (2) -500 (3) -500 (4) -500 (5) -500 (6)] TJ", "1 2 3 4 5 6"},
		{"dots between spaced words", "72 700 Td [(A) -200 (B) -200 (C) -150 (.) -150 (.) -150 (.) -150 (.) -150 (.) -150 (9)] TJ", "A B C … 9"},
		{"a blank taken back", "72 700 Td [(func) 278 ( tion) 250 ( al)] TJ", "functional"},
		{"a blank below a ligature", "72 700 Td [(fi) 390 ( ) -112 (elds)] TJ", "fields"},
		{"an accent narrower than its letter", "72 700 Td [(EXP) -167 (\\264) 720 (E) (RIENCE)] TJ", "EXPÉRIENCE"},
		{"a word that begins with an accent", "72 700 Td [(EXP) -500 (\\264) 500 (ETE)] TJ", "EXP ÉTE"},
		{"word space", "72 700 Td 5 Tw (a b) Tj", "a b"},
		{"letters spaced out", "72 700 Td 4 Tc (spaced) Tj", "spaced"},
		{"a blank made of letter space", "72 700 Td (GML-DO) Tj 2.5 Tc 36.7 0 Td (Tc) Tj 0 Tc 13.6 0 Td (onverters) Tj",
			"GML-DOT converters"},
		{"running text", "12 TL 72 700 Td " + long + "T* " + long + "T* (end.) Tj",
			"Some rather long line that fills the column to its very end, as lines do Some rather long line that fills the column to its very end, as lines do end."},
		{"lines that end early", "12 TL 72 700 Td " + long + "T* (Yours,) Tj T* (a friend) Tj",
			"Some rather long line that fills the column to its very end, as lines do Yours,\na friend"},
		{"paragraphs by distance", "12 TL 72 700 Td " + long +
			"T* (one.) Tj 0 -24 Td (two) Tj T* (three) Tj T* (four) Tj",
			"Some rather long line that fills the column to its very end, as lines do one.\n\ntwo three four"},
		{"paragraphs by indentation", "12 TL 72 700 Td " + long + "T* (one.) Tj 15 -12 Td (Two) Tj",
			"Some rather long line that fills the column to its very end, as lines do one.\n\nTwo"},
		{"a cut word", "12 TL 72 700 Td (Words at the end of a line may be cut by a hyphen, say exam-) Tj T* (ple, and go on) Tj",
			"Words at the end of a line may be cut by a hyphen, say example, and go on"},
		{"a cut compound", "12 TL 72 700 Td (The well-known words keep their hyphen where they are well-) Tj T* (known, as here) Tj",
			"The well-known words keep their hyphen where they are well-known, as here"},
		{"a column continues", "12 TL 72 112 Td " + long +
			"T* (and the other ends in the mid-) Tj 300 600 Td (dle of a word. Then more) Tj",
			"Some rather long line that fills the column to its very end, as lines do and the other ends in the middle of a word. Then more"},
		{"cells of a table", "72 700 Td (Name) Tj 200 0 Td (Value) Tj -200 -12 Td (a) Tj 200 0 Td (1) Tj",
			"Name\tValue\na\t1"},
		{"table of contents", "12 TL 72 700 Td (One . . . . . . . . . . . . 1) Tj T* (Two ........... 2) Tj",
			"One … 1\nTwo … 2"},
		{"raised mark", "72 700 Td (word) Tj /F1 6 Tf 4 Ts (1) Tj 0 Ts /F1 10 Tf ( next) Tj", "word1 next"},
		{"footnote", "72 700 Td /F1 6 Tf 4 Ts (1) Tj 0 Ts /F1 10 Tf (Text) Tj", "1 Text"},
		{"bold by painting twice", "1 0 0 1 72 700 Tm (Bold) Tj 1 0 0 1 72.3 700 Tm (Bold) Tj", "Bold"},
		{"accents over letters", "72 700 Td [(caf\xb4) 333 (e) ] TJ", "café"},
		{"quote operators", "14 TL 72 700 Td (a.) Tj (B) ' 1 1 (C d) \"", "a.\nB\nC d"},
		{"TD sets the leading", "72 700 Td (a) Tj 0 -12 TD (b) Tj T* (c) Tj", "a b c"},
		{"scaled by matrix", "ET q 10 0 0 10 0 0 cm BT /F1 1 Tf 7 70 Td [(big) -300 (words)] TJ ET Q BT", "big words"},
		{"stretched", "200 Tz 72 700 Td [(wide) -300 (words)] TJ", "wide words"},
		{"turned by 90 degrees", "0 1 -1 0 300 100 Tm (up) Tj 0 1 -1 0 312 100 Tm (wards) Tj", "up wards"},
		{"upside down", "-1 0 0 -1 300 100 Tm [(a) -400 (b)] TJ", "a b"},
		{"painted invisibly over a scan", "3 Tr 72 700 Td (found by OCR) Tj", "found by OCR"},
		{"actual text", "72 700 Td (A) Tj /Span <</ActualText <FEFF00660069>>> BDC (x) Tj EMC (g) Tj", "Afig"},
		{"inline image", "ET BI /W 2 /H 1 /CS /G /BPC 8 ID \x00( EI\xff EI\nBT /F1 10 Tf 72 700 Td (after) Tj",
			"after"},
		{"escapes", `72 700 Td (a\(b\)\051 \101\x \\ (c)) Tj <64 6> Tj`, "a(b)) Ax \\ (c)d`"},
		{"ligatures of old fonts", "72 700 Td (o\x95ce) Tj", "o•ce"},
		{"nothing breaks at junk", "72 700 Td [(a) << ] ) Tj } (b) Tj 1 2 3 re -- 0-5 w (c) Tj", "bc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := page(t, tt.content); got != tt.want {
				t.Errorf("body = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestProgramText(t *testing.T) {
	m := newMaker("<</Type/Font/Subtype/Type1/BaseFont/Courier>>",
		"BT /F1 10 Tf 12 TL 72 700 Td (func main\\(\\) {) Tj 24 -12 Td (go run\\(\\)) Tj -24 -12 Td (}) Tj ET")
	if got, want := mustRead(t, m.bytes()).Body, "func main() {\n    go run()\n}"; got != want {
		t.Errorf("body = %q, want %q", got, want)
	}
}

func TestHeadings(t *testing.T) {
	m := newMaker(helvetica, "BT /F1 24 Tf 72 700 Td (The Book) Tj /F1 16 Tf 0 -50 Td (First) Tj 0 -18 Td (Chapter) Tj "+
		"/F1 10 Tf 0 -30 Td (Text of the first chapter, the longest there is.) Tj /F1 16 Tf 0 -40 Td (Second) Tj /F1 10 Tf 0 -30 Td (And more.) Tj ET")
	x := mustRead(t, m.bytes())
	var got []string
	for _, h := range x.Headings {
		line, _, _ := strings.Cut(x.Body[h.Offset:], "\n")
		got = append(got, fmt.Sprintf("%d %s @ %s", h.Level, h.Text, line))
	}
	want := []string{"1 The Book @ The Book", "2 First Chapter @ First Chapter", "2 Second @ Second"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headings (-want +got):\n%s", diff)
	}
	if x.Title != "The Book" {
		t.Errorf("title = %q, want the largest line", x.Title)
	}
}

// A line in the size and weight of the body is no title.
func TestTitleByWeight(t *testing.T) {
	const text = "/F1 10 Tf 0 -40 Td (Body text here, the longest.) Tj 0 -12 Td (It goes on, and on.) Tj"
	line := func(font, size string) string {
		return "BT 72 700 Td /" + font + " " + size + " Tf (First line) Tj " + text + " ET"
	}
	font := func(rest string) string { return "<</Type/Font/Subtype/Type1" + rest + "/Encoding/WinAnsiEncoding>>" }
	const composite = "<</Type/Font/Subtype/Type0/BaseFont/A/Encoding/UniGB-UTF16-H/DescendantFonts" +
		"[<</Subtype/CIDFontType0/BaseFont/ABCDEF+Noto-Bold>>]>>"
	for _, tt := range []struct{ name, second, content, want string }{
		{"one paragraph", helvetica, "BT 72 700 Td " + text + " ET", ""},
		{"a line of the same size", helvetica, line("F2", "10"), ""},
		{"a line of nearly the same size", helvetica, line("F2", "10.1"), ""},
		{"a small line", font("/BaseFont/Helvetica-Bold"), line("F2", "8"), ""},
		{"a larger line", helvetica, line("F2", "11"), "First line"},
		{"a bold line", font("/BaseFont/Helvetica-Bold"), line("F2", "10"), "First line"},
		{"a bold line of TeX", font("/BaseFont/ABCDEF+CMBX10"), line("F2", "10"), "First line"},
		{"bold by its weight", font("/BaseFont/A/FontDescriptor<</FontWeight 700>>"), line("F2", "10"), "First line"},
		{"bold by its flags", font("/BaseFont/A/FontDescriptor<</Flags 262180>>"), line("F2", "10"), "First line"},
		{"a composite font", composite, "BT 72 700 Td /F2 10 Tf <4F604F60> Tj " + text + " ET", "你你"},
		{"a bold line before a larger one", font("/BaseFont/Helvetica-Bold"),
			"BT 72 700 Td /F2 10 Tf (Bold) Tj /F1 20 Tf 0 -40 Td (Large) Tj " + text + " ET", "Large"},
		{"a bold line below the text", font("/BaseFont/Helvetica-Bold"),
			"BT 72 700 Td " + text + " /F2 10 Tf 0 -40 Td (Bold line) Tj 0 -40 Td (And another) Tj ET", "Bold line"},
		{"a bold word", font("/BaseFont/Helvetica-Bold"), "BT 72 700 Td /F2 10 Tf (Note: ) Tj /F1 10 Tf (what a line is) Tj " +
			text + " ET", ""},
		{"all is bold", font("/BaseFont/Helvetica-Bold"), strings.ReplaceAll(line("F2", "10"), "F1", "F2"), ""},
	} {
		x := mustRead(t, newMaker(helvetica+"/F2 "+tt.second, tt.content).bytes())
		if x.Title != tt.want {
			t.Errorf("%s: title = %q, want %q (%q)", tt.name, x.Title, tt.want, x.Body)
		}
	}
}

func TestTitle(t *testing.T) {
	const xmp = `<?xpacket?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="r" xmlns:dc="d"><rdf:Description>
		<dc:title><rdf:Alt><rdf:li xml:lang="x-default">From &amp; XMP</rdf:li></rdf:Alt></dc:title></rdf:Description></rdf:RDF></x:xmpmeta>`
	tests := []struct{ name, info, xmp, want string }{
		{"plain", "<</Title(A  Title\n)>>", "", "A Title"},
		{"PDFDocEncoding", "<</Title(na\xefve \x84 \x93\xa0)>>", "", "naïve — ﬁ€"},
		{"UTF-16", "<</Title<FEFF65E5672C0020D83DDE00>>>", "", "日本 😀"},
		{"UTF-8", "<</Title(\xef\xbb\xbfcaf\xc3\xa9)>>", "", "café"},
		{"UTF-8 without a mark", "<</Title(caf\xc3\xa9)>>", "", "café"},
		{"of Word", "<</Title(Microsoft Word - The Plan)>>", "", "The Plan"},
		{"a file name", "<</Title(Microsoft Word - plan_v2 final.docx)>>", "", "Big line"},
		{"nothing", "<</Title(untitled)>>", "", "Big line"},
		{"XMP", "<</Title()>>", xmp, "From & XMP"},
		{"Info before XMP", "<</Title(T)>>", xmp, "T"},
		{"damaged XMP", "", xmp[:120], "Big line"},
	}
	for _, tt := range tests {
		m := newMaker(helvetica, "BT /F1 10 Tf 72 700 Td (small words here) Tj /F1 20 Tf 0 -40 Td (Big line) Tj ET")
		m.info = tt.info
		if tt.xmp != "" {
			m.objects[0] = "<</Type/Catalog/Pages 2 0 R/Metadata " + m.add(streamObject("/Type/Metadata", tt.xmp)) +
				"/Lang(de-CH)>>"
		}
		x := mustRead(t, m.bytes())
		if x.Title != tt.want {
			t.Errorf("%s: title = %q, want %q", tt.name, x.Title, tt.want)
		}
		if tt.xmp != "" && x.Lang != "de-CH" {
			t.Errorf("%s: lang = %q, want de-CH", tt.name, x.Lang)
		}
	}
}

func TestFormsAndAnnotations(t *testing.T) {
	m := newMaker(helvetica, "")
	res := "/Resources<</Font<</F9 " + helvetica + ">>>>"
	form := m.add(streamObject("/Subtype/Form/Matrix[1 0 0 1 0 500]"+res, "BT /F9 10 Tf 72 100 Td (in a form) Tj ET"))
	field := m.add(streamObject("/Subtype/Form/BBox[0 0 100 20]"+res, "BT /F9 10 Tf 2 5 Td (filled in) Tj ET"))
	m.objects[2] = "<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 " + helvetica + ">>/XObject<</X " +
		form + ">>>>/Annots[" +
		"<</Subtype/Widget/Rect[72 300 172 320]/AP<</N " + field + ">>>><</Subtype/Widget/F 2/Rect[0 0 9 9]/AP<</N " +
		field + ">>>><</Subtype/Link>>]>>"
	m.objects[3] = streamObject("", "BT /F1 10 Tf 72 700 Td (before) Tj ET q /X Do Q BT 72 550 Td (after) Tj ET")
	if got, want := mustRead(t, m.bytes()).Body, "before\n\nin a form\n\nafter\n\nfilled in"; got != want {
		t.Errorf("body = %q, want %q", got, want)
	}
}

func TestRightToLeft(t *testing.T) {
	cmap := "1 beginbfrange <01> <1b> <05D0> endbfrange 2 beginbfchar <20> <0020> <28> <0028> endbfchar 1 beginbfrange <30> <7a> <0030> endbfrange"
	m := newMaker("5 0 R", "BT /F1 10 Tf 72 700 Td (12\x20\x08\x07 ab \x03\x02\x01) Tj ET")
	m.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>")
	m.add(streamObject("", cmap))
	if got, want := mustRead(t, m.bytes()).Body, "אבג ab זח 12"; got != want {
		t.Errorf("body = %q, want %q", got, want)
	}
}

// Ligatures of Arabic letters, and Arabic digits, are painted from left to right.
func TestArabic(t *testing.T) {
	m := newMaker("5 0 R", "BT /F1 10 Tf 72 700 Td (\\007\\006\\005\\006 \\003\\001\\002) Tj 0 -40 Td (\\003\\004\\002) Tj ET")
	m.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>")
	m.add(streamObject("", "8 beginbfchar <01> <06440627> <02> <0633> <03> <0645> <04> <FEFB> <05> <0660> <06> <0661> <07> <0662> <20> <0020> endbfchar"))
	if got, want := mustRead(t, m.bytes()).Body, "سلام ٢١٠١\n\nسلام"; got != want {
		t.Errorf("body = %q, want %q", got, want)
	}
}

func TestRefuses(t *testing.T) {
	unmapped := newMaker("<</Type/Font/Subtype/Type0/Encoding/Identity-H/DescendantFonts[<</Subtype/CIDFontType0>>]>>",
		"BT /F1 10 Tf 72 700 Td <0123012401250126> Tj ET")
	unknownCMap := newMaker(composite("/KSC-Johab-V2", "", collection("Korea1")),
		"BT /F1 10 Tf 72 700 Td <0ce004d60ce0> Tj ET")
	private := newMaker("5 0 R", "BT /F1 10 Tf 72 700 Td <0123012401250126> Tj ET")
	private.add("<</Type/Font/Subtype/Type0/Encoding/Identity-H/ToUnicode 6 0 R/DescendantFonts[<</Subtype/CIDFontType0>>]>>")
	private.add(streamObject("", "1 beginbfrange <0000> <ffff> <E000> endbfrange"))
	noFont := newMaker(helvetica, "")
	noFont.objects[2] = "<</Type/Page/Parent 2 0 R/Contents 4 0 R>>"
	tests := []struct {
		name string
		data []byte
		kind error
		want string
	}{
		{"empty", nil, errkind.Corrupt, "no objects: save or download it again"},
		{"head only", []byte("%PDF-1.7\n"), errkind.Corrupt, "no objects"},
		{"no pages", []byte("%PDF-1.7\n1 0 obj\n<</Type/Catalog>>\nendobj\n"), errkind.Corrupt,
			"no pages: save or download it again"},
		{"scan", noFont.bytes(), errkind.Unsupported, "scanned"},
		{"no character map", unmapped.bytes(), errkind.Unsupported, "character map"},
		{"unknown CMap", unknownCMap.bytes(), errkind.Unsupported, "character map"},
		{"private characters", private.bytes(), errkind.Unsupported, "character map"},
		{"other encryption", []byte("%PDF-1.7\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R/Encrypt<</Filter/Own>>>>"), errkind.Unsupported, "encryption"},
	}
	for _, tt := range tests {
		x, err := Read(t.Context(), tt.data, 0)
		if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Read = %v, %v, want kind %v and %q", tt.name, x, err, tt.kind, tt.want)
		}
	}
}

// TestEncrypted reads files that qpdf encrypted; all of them contain the same page.
func TestEncrypted(t *testing.T) {
	for _, name := range []string{"rc4-40", "rc4-128", "aes-128", "aes-256", "aes-256-r5"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".pdf"))
		if err != nil {
			t.Fatal(err)
		}
		for _, cut := range []bool{false, true} {
			if cut { // the table must be rebuilt
				data = data[:strings.LastIndex(string(data), "startxref")]
			}
			if x := mustRead(t, data); x.Title != "Sealed title" || x.Body != "Everybody may read this page." {
				t.Errorf("%s, cut %t: %q, %q, want the title and the page", name, cut, x.Title, x.Body)
			}
		}
	}
	for _, name := range []string{"locked-128", "locked-256"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".pdf"))
		if err != nil {
			t.Fatal(err)
		}
		if x, err := Read(t.Context(), data, 0); !errors.Is(err, errkind.Unsupported) ||
			!strings.Contains(err.Error(), "password") {
			t.Errorf("%s: Read = %v, %v, want kind Unsupported and a word about the password", name, x, err)
		}
	}
}

// Legibility is that of each page: what is clear is read, and the pages that are
// not are counted.
func TestIllegiblePages(t *testing.T) {
	const clear = "BT /F1 10 Tf 72 700 Td (A page with a sentence that everybody can read.) Tj ET"
	signs := func(letters string, unknown int) string { // F2 has no character map
		return "BT /F1 10 Tf 72 700 Td (" + letters + ") Tj /F2 10 Tf 0 -30 Td <" + strings.Repeat("0123", unknown) +
			"> Tj ET"
	}
	const read = "A page with a sentence that everybody can read."
	for _, tt := range []struct {
		name, want string // want is "" if the document is refused
		illegible  int
		pages      []string
	}{
		{"clear", read + "\n\n" + read, 0, []string{clear, clear}},
		{"the first page is clear", read, 3, []string{clear, signs("", 300), signs("", 300), signs("", 300)}},
		{"the last page is clear", read, 2, []string{signs("", 300), signs("", 300), clear}},
		{"page numbers", read, 2, []string{clear, signs("2", 100), signs("3", 100)}},
		{"half of a page", "Half of the page\n\n" + read, 1, []string{signs("Half of the page", 13), clear}},
		{"ornaments", "Ornaments\n\n" + read, 0, []string{signs("Ornaments", 3), clear, signs("", 3)}},
		{"formulas", "The sum of all of these numbers is\n\n" + read, 0,
			[]string{signs("The sum of all of these numbers is", 9), clear}},
		{"nothing is clear", "", 0, []string{signs("1", 100), signs("2", 100)}},
	} {
		m := newMaker(helvetica, tt.pages[0])
		font := m.add("<</Type/Font/Subtype/Type0/Encoding/Identity-H/DescendantFonts[<</Subtype/CIDFontType0>>]>>")
		for _, content := range tt.pages[1:] {
			m.page(content)
		}
		for i, o := range m.objects {
			m.objects[i] = strings.Replace(o, "<</Font<<", "<</Font<</F2 "+font, 1)
		}
		x, err := Read(t.Context(), m.bytes(), 0)
		if tt.want == "" {
			if !errors.Is(err, errkind.Unsupported) || !strings.Contains(err.Error(), "character map") {
				t.Errorf("%s: Read = %+v, %v, want an error about the character map", tt.name, x, err)
			}
			continue
		}
		if err != nil || x.Body != tt.want || x.Illegible != tt.illegible {
			t.Errorf("%s: Read = %+v, %v, want %q and %d illegible pages", tt.name, x, err, tt.want, tt.illegible)
			continue
		}
		checkText(t, x)
	}
}
