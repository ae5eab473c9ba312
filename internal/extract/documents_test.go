package extract

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract/office"
)

// documents returns the files of testdata/documents.
func documents(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	names, err := filepath.Glob("testdata/documents/*")
	if err != nil || len(names) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = data
	}
	return files
}

// TestDocuments compares what Extract returns for documents of other programs
// with testdata/documents.txtar.
func TestDocuments(t *testing.T) {
	const file = "testdata/documents.txtar"
	var got txtar.Archive
	names, _ := filepath.Glob("testdata/documents/*")
	files := documents(t)
	for _, name := range names {
		name = filepath.Base(name)
		var b strings.Builder
		x, err := Extract(t.Context(), Input{Name: name, Data: files[name]})
		if err != nil {
			fmt.Fprintf(&b, "error: %s\n", errkind.Message(err))
		} else {
			checkText(t, x)
			fmt.Fprintf(&b, "title %q, language %q, %s, %s\n", x.Title, x.Lang, x.FileType, x.MediaType)
			for _, h := range titles(x) {
				fmt.Fprintln(&b, h)
			}
			for _, p := range x.Pages {
				line, _, _ := strings.Cut(x.Body[p.Offset:], "\n")
				fmt.Fprintf(&b, "page %s @ %s\n", p.Label, line)
			}
			fmt.Fprintf(&b, "\n%s\n", x.Body)
		}
		got.Files = append(got.Files, txtar.File{Name: name, Data: []byte(b.String())})
	}
	text := txtar.Format(&got)
	if *update {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("the texts differ from %s (-want +got):\n%s", file, diff)
	}
}

// packageOf makes an archive. parts are names and contents in turn; the first one
// is not compressed.
func packageOf(t testing.TB, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		h := &zip.FileHeader{Name: parts[i], Method: zip.Deflate}
		if i == 0 {
			h.Method = zip.Store
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write([]byte(parts[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// ooxml makes an Office Open XML document with a main part, its relationships
// (kind, target) and other parts (name, content).
func ooxml(t testing.TB, kind, part, main string, rels []string, parts ...string) []byte {
	t.Helper()
	var r strings.Builder
	for i := 0; i+1 < len(rels); i += 2 {
		fmt.Fprintf(&r, `<Relationship Id="rId%d" Type="http://x/relationships/%s" Target="%s"/>`, i/2+1, rels[i],
			rels[i+1])
	}
	dir, base := filepath.Split(part)
	return packageOf(t, append([]string{
		"[Content_Types].xml", `<Types><Override PartName="/` + part +
			`" ContentType="application/vnd.openxmlformats-officedocument.` + kind + `.main+xml"/></Types>`,
		"_rels/.rels", `<Relationships><Relationship Id="a" Type="http://x/officeDocument" Target="` + part +
			`"/></Relationships>`,
		dir + "_rels/" + base + ".rels", "<Relationships>" + r.String() + "</Relationships>",
		part, main,
	}, parts...)...)
}

func docxOf(t testing.TB, body string, parts ...string) []byte {
	rels := []string{"styles", "styles.xml", "numbering", "numbering.xml", "footnotes", "footnotes.xml", "header",
		"header1.xml", "header", "header2.xml"}
	for i := 0; i < len(parts); i += 2 {
		parts[i] = "word/" + parts[i]
	}
	return ooxml(t, "wordprocessingml.document", "word/document.xml",
		`<w:document xmlns:w="w"><w:body>`+body+`</w:body></w:document>`, rels, parts...)
}

func xlsxOf(t testing.TB, workbook, sheet string, parts ...string) []byte {
	for i := 0; i < len(parts); i += 2 {
		parts[i] = "xl/" + parts[i]
	}
	return ooxml(t, "spreadsheetml.sheet", "xl/workbook.xml",
		"<workbook>"+workbook+`<sheets><sheet name="S" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		[]string{"worksheet", "worksheets/sheet1.xml", "sharedStrings", "sharedStrings.xml", "styles", "styles.xml"},
		append([]string{"xl/worksheets/sheet1.xml", "<worksheet><sheetData>" + sheet + "</sheetData></worksheet>"},
			parts...)...)
}

func odfOf(t testing.TB, kind, content string, parts ...string) []byte {
	return packageOf(t, append([]string{"mimetype", "application/vnd.oasis.opendocument." + kind,
		"content.xml", `<?xml version="1.0"?><office:document-content>` + content + `</office:document-content>`},
		parts...)...)
}

func paragraphs(texts ...string) string {
	var b strings.Builder
	for _, s := range texts {
		b.WriteString("<w:p><w:r><w:t>" + s + "</w:t></w:r></w:p>")
	}
	return b.String()
}

func TestDOCX(t *testing.T) {
	const styles = `<w:styles><w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
		<w:style w:type="paragraph" w:styleId="Eigen"><w:name w:val="Mine"/><w:basedOn w:val="berschrift1"/></w:style>
		<w:style w:type="paragraph" w:styleId="Outline"><w:name w:val="Outline"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>
		<w:style w:type="paragraph" w:styleId="A"><w:name w:val="a"/><w:basedOn w:val="B"/></w:style>
		<w:style w:type="paragraph" w:styleId="B"><w:name w:val="b"/><w:basedOn w:val="A"/></w:style>
		<w:style w:type="paragraph" w:styleId="Verzeichnis1"><w:name w:val="toc 1"/></w:style></w:styles>`
	styled := func(style, text string) string {
		return `<w:p><w:pPr><w:pStyle w:val="` + style + `"/></w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
	}
	const numbering = `<w:numbering><w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:start w:val="4"/><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1."/></w:lvl>
		<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum>
		<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num></w:numbering>`
	item := func(level, text string) string {
		return `<w:p><w:pPr><w:numPr><w:ilvl w:val="` + level + `"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>` +
			text + `</w:t></w:r></w:p>`
	}
	for _, tt := range []struct {
		name, body, want string
		parts            []string
	}{
		{"styles of other languages, inherited and cyclic ones",
			styled("berschrift1", "One") + styled("Eigen", "Two") + styled("Outline", "Three") + styled("A", "cycle") +
				styled("Verzeichnis1", "One 1"),
			"One\n\nTwo\n\nThree\n\ncycle\n# One\n# Two\n### Three", []string{"styles.xml", styles}},
		{"built-in styles that are not defined",
			styled("Title", "All") + styled("Heading1", "One") + styled("Heading3", "Three") + styled("Heading10", "ten") +
				styled("Heading", "none"),
			"All\n\nOne\n\nThree\n\nten\n\nnone\n# All\n# One\n### Three", nil},
		{"a defined style with a built-in id", styled("Heading1", "One") + styled("Heading2", "Two"), "One\n\nTwo\n## Two",
			[]string{"styles.xml", `<w:styles><w:style w:styleId="Heading1"><w:name w:val="Normal"/></w:style></w:styles>`}},
		{"numbers", item("0", "a") + item("1", "b") + item("1", "c") + item("0", "d") + item("1", "e"),
			"IV. a\n  IV.a) b\n  IV.b) c\nV. d\n  V.a) e", []string{"numbering.xml", numbering}},
		{"tracked changes", `<w:p><w:ins><w:r><w:t>new </w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom><w:moveTo><w:r><w:t>here</w:t></w:r></w:moveTo></w:p>` +
			`<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t>joined </w:t></w:r></w:p>` + paragraphs("lines") +
			`<w:tbl><w:tr><w:trPr><w:del/></w:trPr><w:tc>` + paragraphs("gone") + `</w:tc></w:tr><w:tr><w:tc>` +
			paragraphs("kept") + `</w:tc></w:tr></w:tbl>`,
			"new here\n\njoined lines\n\nkept", nil},
		{"text boxes appear once", `<w:p><w:r><w:t>before</w:t></w:r><w:r><mc:AlternateContent><mc:Choice><w:drawing><wp:docPr descr="A  dog"/><w:txbxContent>` + paragraphs("boxed") + `</w:txbxContent></w:drawing></mc:Choice><mc:Fallback><w:pict>` + paragraphs("boxed") + `</w:pict></mc:Fallback></mc:AlternateContent></w:r></w:p>`,
			"boxed\n\nbefore [A dog]", nil},
		{"fields and signs", `<w:p><w:r><w:instrText>PAGEREF</w:instrText></w:r><w:ruby><w:rt><w:r><w:t>reading</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>r</w:t></w:r></w:rubyBase></w:ruby><w:r><w:t>a</w:t><w:noBreakHyphen/><w:t>b&amp;c</w:t><w:softHyphen/><w:tab/><w:sym w:char="F0B7"/><w:sym w:char="03B1"/><w:br/><w:t xml:space="preserve"> d</w:t></w:r></w:p>`,
			"ra-b&c\tα\n d", nil},
		{"tables", `<w:tbl><w:tr><w:tc>` + paragraphs("a", "b") +
			`</w:tc><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>` + paragraphs("c") + `</w:tc><w:tc>` +
			paragraphs("d") + `</w:tc></w:tr><w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>` + paragraphs("hidden") +
			`</w:tc><w:tc>` + paragraphs("e") + `</w:tc></w:tr></w:tbl>` +
			`<w:tbl><w:tr><w:tc>` + paragraphs("layout", "of text") +
			`</w:tc></w:tr></w:tbl><w:tbl><w:tr><w:tc><w:tbl><w:tr><w:tc>` + paragraphs("in") + `</w:tc><w:tc>` +
			paragraphs("ner") + `</w:tc></w:tr></w:tbl></w:tc><w:tc>` + paragraphs("outer") + `</w:tc></w:tr></w:tbl>`,
			"a b | c |  | d\n| e\n\nlayout\n\nof text\n\nin | ner | outer", nil},
		{"notes and headers appear once", `<w:p><w:r><w:t>x</w:t><w:footnoteReference w:id="2"/><w:t>y</w:t><w:footnoteReference w:id="2"/></w:r></w:p>` + paragraphs("z"),
			"x[1]y\n\n[1] the note\n\nz\n\nCompany", []string{"footnotes.xml",
				`<w:footnotes><w:footnote w:type="separator" w:id="1">` + paragraphs("sep") +
					`</w:footnote><w:footnote w:id="2">` + paragraphs("the note") + `</w:footnote></w:footnotes>`,
				"header1.xml", "<w:hdr>" + paragraphs("Company") + "</w:hdr>", "header2.xml",
				"<w:hdr>" + paragraphs("Company") + "</w:hdr>"}},
		{"entities are not expanded", `<!DOCTYPE x [<!ENTITY a "aaaa">]>` + paragraphs("x&a;y"), "x&a;y", nil},
		{"truncated markup", paragraphs("one", "two") + `<w:p><w:r><w:t>three`, "one\n\ntwo\n\nthree", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := mustExtract(t, Input{Name: "a.docx", Data: docxOf(t, tt.body, tt.parts...)})
			got := x.Body
			for _, h := range titles(x) {
				h, _, _ = strings.Cut(h, " @ ")
				got += "\n" + h
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestXLSX(t *testing.T) {
	for _, tt := range []struct {
		name, workbook, sheet, want string
		parts                       []string
	}{
		{"strings", "", `<row r="1"><c r="A1" t="s"><v>1</v></c><c r="C1" t="inlineStr"><is><t>in</t><r><t>line</t></r></is></c><c r="D1" t="str"><f>A1</f><v>text_x0041_</v></c><c t="s"><v>99</v></c></row>`,
			"S\n\nsha red |  | inline | textA", []string{"sharedStrings.xml",
				`<sst><si><t>no</t></si><si><r><t>sha </t></r><r><t>red</t></r><rPh><t>phonetic</t></rPh></si></sst>`}},
		{"values", "", `<row><c><v>0.30000000000000004</v></c><c t="b"><v>1</v></c><c t="b"><v>0</v></c><c t="e"><v>#DIV/0!</v></c><c><f>A1*2</f></c><c t="d"><v>2024-05-06T00:00:00</v></c><c><v>1E+20</v></c></row>`,
			"S\n\n0.3 | TRUE | FALSE | #DIV/0! | =A1*2 | 2024-05-06 | 1E+20", nil},
		{"formats", "", `<row><c s="0"><v>1234.5</v></c><c s="1"><v>45382</v></c><c s="2"><v>0.5</v></c><c s="3"><v>-3</v></c><c s="9"><v>7</v></c></row>`,
			"S\n\n1234.5 | 2024-03-31 | 50% | (3.00) | 7", []string{"styles.xml",
				`<styleSheet><numFmts><numFmt numFmtId="164" formatCode="0.00;(0.00)"/></numFmts><cellStyleXfs><xf numFmtId="9"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="9"/><xf numFmtId="164"/></cellXfs></styleSheet>`}},
		{"1904", `<workbookPr date1904="1"/>`, `<row><c s="0"><v>0</v></c></row>`, "S\n\n1904-01-01",
			[]string{"styles.xml", `<styleSheet><cellXfs><xf numFmtId="14"/></cellXfs></styleSheet>`}},
		{"gaps", "", `<row r="2"><c r="B2"><v>1</v></c></row><row r="3"><c r="A3"><v>2</v></c><c r="XFD3"><v>3</v></c></row><row r="1048576"><c r="A1048576"><v>4</v></c></row>`, "S\n\n| 1\n2 |  | 3\n\n4", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := mustExtract(t, Input{Name: "a.xlsx", Data: xlsxOf(t, tt.workbook, tt.sheet, tt.parts...)})
			if diff := cmp.Diff(tt.want, x.Body); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The names of columns are a heading, so that they are in the path of every
// passage of the table.
func TestHeaderRow(t *testing.T) {
	for name, tt := range map[string]struct {
		data string
		want []string
	}{
		"names":        {"city,people\nGraz,1\nLinz,2\n", []string{"# city | people @ city | people"}},
		"years":        {"city,2023,2024\nGraz,1,2\n", []string{"# city | 2023 | 2024 @ city | 2023 | 2024"}},
		"two tables":   {"a,b\n1,2\n\nc,d\n3,4\n", []string{"# a | b @ a | b", "# c | d @ c | d"}},
		"values first": {"1,2\n3,4\n", nil},
		"one row":      {"a,b\n", nil},
	} {
		if diff := cmp.Diff(tt.want, titles(mustExtract(t, Input{Name: "a.csv", Data: []byte(tt.data)}))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestCSV(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"a.csv", "a,\"b, c\"\r\n\"d \"\"e\"\"\",\"f\ng\"\r\n", "a | b, c\nd \"e\" | f g"},
		{"a.csv", "a;b\n1,5;2\n", "a | b\n1,5 | 2"},
		{"a.csv", "sep=;\na;b\n", "a | b"},
		{"a.csv", "a|b\nc|d\n", "a | b\nc | d"},
		{"a.tsv", "a\tb,c\n\td\n", "a | b,c\n| d"},
		{"a.csv", "a,b\n5\" pipe,x\n\"open,y\nc,d\n", "a | b\n5\" pipe | x\n\"open | y\nc | d"},
		{"a.csv", "only text\nin lines\n", "only text\nin lines"},
		{"a.csv", "a,b\n\n\nc,d\n", "a | b\n\nc | d"},
		{"a.csv", "\ufeffa,b\n", "a | b"},
		{"a.csv", "", ""},
	} {
		x := mustExtract(t, Input{Name: tt.name, Data: []byte(tt.in)})
		if x.Body != tt.want || x.Title != "" {
			t.Errorf("Extract(%s, %q) = %q with title %q, want %q without a title", tt.name, tt.in, x.Body, x.Title,
				tt.want)
		}
	}
}

func TestODF(t *testing.T) {
	for _, tt := range []struct{ name, kind, content, want string }{
		{"white space", "text", "<office:text><text:p>a\n  b<text:s text:c=\"3\"/>c<text:tab/>d<text:line-break/>e</text:p></office:text>", "a b   c\td\ne"},
		{"deleted text and contents are left out", "text",
			"<office:text><text:tracked-changes><text:changed-region><text:deletion><text:p>gone</text:p></text:deletion></text:changed-region></text:tracked-changes>" +
				"<text:table-of-content><text:p>One 1</text:p></text:table-of-content><text:p>k<text:change text:change-id=\"1\"/>ept</text:p></office:text>", "kept"},
		{"repeated cells", "spreadsheet", `<office:spreadsheet><table:table table:name="T"><table:table-row><table:table-cell table:number-columns-repeated="2"/><table:table-cell office:value-type="float" table:number-columns-repeated="3"><text:p>1</text:p></table:table-cell><table:table-cell table:number-columns-repeated="16300"/></table:table-row>` +
			`<table:table-row table:number-rows-repeated="2"><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row><table:table-row table:number-rows-repeated="1048573"><table:table-cell table:number-columns-repeated="16384"/></table:table-row></table:table></office:spreadsheet>`,
			"T\n\n|  | 1 | 1 | 1\nx\nx"},
		{"repeated content", "spreadsheet", `<office:spreadsheet><table:table table:name="T"><table:table-row table:number-rows-repeated="1048576"><table:table-cell table:number-columns-repeated="16384"><text:p>x</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>`,
			"T\n\n" + strings.TrimSuffix(strings.Repeat(strings.TrimSuffix(strings.Repeat("x | ", 100), " | ")+"\n",
				100), "\n")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := mustExtract(t, Input{Name: "a", Data: odfOf(t, tt.kind, "<office:body>"+tt.content+"</office:body>")})
			if diff := cmp.Diff(tt.want, x.Body); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestRTF(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"characters", `{\rtf1\ansi\ansicpg1252 caf\'e9 \u8364?5\~\endash \{x\}\\ \u-10179?\u-8704? \u12354\'82z\par}`,
			"café €5 –{x}\\ 😀 あz"},
		{"charsets of fonts", `{\rtf1{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}{\f2\fcharset128 C;}}\f1 \'cf\'f0\f2 \'82\'a0{\f0\'e9}}`, "Прあé"},
		{"headings and lists", `{\rtf1{\stylesheet{\s0 Normal;}{\s1 heading 1;}{\s5 Mine;}}{\pard\s1 One\par}{\listtext\pard 1.\tab}\pard\ilvl0 first\par{\listtext\pard\bullet\tab}\pard second\par\pard\outlinelevel1 Two\par text}`, "One\n\n1. first\n- second\n\nTwo\n\ntext"},
		{"tables", `{\rtf1\trowd\pard\intbl a\par b\cell c\cell\row\trowd\pard\intbl d\cell e\cell\row\pard after\par}`,
			"a b | c\nd | e\n\nafter"},
		{"what is not text", `{\rtf1{\info{\title T}{\author Ann}}{\*\generator X}{\pict\pngblip 8950}{\field{\*\fldinst HYPERLINK "u"}{\fldrslt link}}{\deleted gone}{\*\unknown no} \bin3 }}}end}`, "link end"},
		{"notes", `{\rtf1{\header H\par}{\header H\par}a{\super\chftn{\footnote\pard\chftn note}}b\par{\*\atnauthor Bo}{\*\annotation hm}c}`, "a[1]b\n\n[1] note\n\nc\n\nComment by Bo: hm\n\nH"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := mustExtract(t, Input{Name: "a.rtf", Data: []byte(tt.in)})
			if diff := cmp.Diff(tt.want, x.Body); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The content determines the format, not the name.
func TestWrongExtensions(t *testing.T) {
	docx := docxOf(t, paragraphs("words"))
	for _, tt := range []struct {
		name, data, media, body string
	}{
		{"a.txt", string(docx), office.DOCX, "words"},
		{"a", string(docx), office.DOCX, "words"},
		{"a.doc", string(docx), office.DOCX, "words"},
		{"a.xlsx", string(docx), office.DOCX, "words"},
		{"a.docx", "words", "text/plain", "words"},
		{"a.doc", `{\rtf1 words}`, office.RTF, "words"},
		{"a.xls", "<html><p>words", "text/html", "words"},
		{"a.odt", string(packageOf(t, "META-INF/manifest.xml", "<m/>", "content.xml",
			"<office:body><office:text><text:p>words</text:p></office:text></office:body>")), office.ODT, "words"},
	} {
		x, err := Extract(t.Context(), Input{Name: tt.name, Data: []byte(tt.data)})
		if err != nil || x.MediaType != tt.media || x.Body != tt.body {
			t.Errorf("Extract(%s) = %+v, %v, want %s and %q", tt.name, x, err, tt.media, tt.body)
		}
		if !Supported(tt.name, []byte(tt.data)) {
			t.Errorf("Supported(%s) = false", tt.name)
		}
	}
}

func TestUnreadableDocuments(t *testing.T) {
	ole := func(stream string) []byte {
		b := []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + strings.Repeat("\x00", 500))
		for _, c := range []byte(stream) {
			b = append(b, c, 0)
		}
		return b
	}
	docx := docxOf(t, paragraphs("words"))
	locked := `<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>`
	book := packageOf(t, "mimetype", "application/epub+zip", "META-INF/container.xml", `<rootfile full-path="o.opf"/>`,
		"o.opf", `<manifest><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine>`, "a.xhtml",
		"\x00\x01",
		"META-INF/encryption.xml", `<enc:CipherReference URI="a.xhtml"/>`)
	for _, tt := range []struct {
		name string
		data []byte
		kind error
		want string
	}{
		{"a.docx", nil, errkind.Corrupt, "damaged (empty) Word document: save or download it again"},
		{"a.zip", nil, errkind.Corrupt, "damaged (empty) ZIP archive: save or download it again"},
		{"a.txt.gz", nil, errkind.Corrupt, "damaged (empty) gzip file: save or download it again"},
		{"a.odp", nil, errkind.Corrupt, "damaged (empty) OpenDocument presentation: save or download it again"},
		{"a.docx", docx[:len(docx)/2], errkind.Corrupt, "damaged Word document: save or download it again"},
		{"a", docx[:len(docx)/2], errkind.Corrupt, "damaged ZIP archive: save or download it again"},
		{"a.docx", packageOf(t, "[Content_Types].xml",
			`<Override PartName="/word/document.xml" ContentType="x.wordprocessingml.x"/>`, "_rels/.rels",
			`<Relationship Type="x/officeDocument" Target="word/document.xml"/>`),
			errkind.Corrupt, "damaged Word document: save or download it again"},
		{"a.epub", packageOf(t, "mimetype", "application/epub+zip", "META-INF/container.xml",
			`<rootfile full-path="o.opf"/>`), errkind.Corrupt, "damaged EPUB book: save or download it again"},
		{"a.docx", []byte("\x00\x01\x02\x03"), errkind.Corrupt, "damaged Word document: save or download it again"},
		{"a.pptx", packageOf(t, "other", "x"), errkind.Corrupt,
			"damaged PowerPoint presentation: save or download it again"},
		{"a.docx", ole("EncryptedPackage"), errkind.Unsupported,
			"office document with a password: save a copy without it"},
		{"a.odt", odfOf(t, "text", "\x00", "META-INF/manifest.xml", locked), errkind.Unsupported,
			"OpenDocument text with a password: save a copy without it"},
		{"a.epub", book, errkind.Unsupported, "EPUB book: its text is encrypted (copy protection), which cannot be read"},
		{"a.doc", ole("WordDocument"), errkind.Unsupported, "Word document in the old format (.doc): save it as .docx"},
		{"a.xls", ole("Workbook"), errkind.Unsupported, "Excel workbook in the old format (.xls): save it as .xlsx"},
		{"a.ppt", ole("PowerPoint Document"), errkind.Unsupported,
			"PowerPoint presentation in the old format (.ppt): save it as .pptx"},
		{"a", ole("x"), errkind.Unsupported, "office document in an old format: save it in a current one"},
		{"a.xlsb", ooxml(t, "", "xl/workbook.bin", "", nil)[:40], errkind.Unsupported,
			"Excel workbook in binary format (.xlsb): save it as .xlsx"},
		{"a.numbers", packageOf(t, "Index/Document.iwa", "x"), errkind.Unsupported,
			"Numbers spreadsheet: export it as .xlsx"},
		{"a.odf", odfOf(t, "formula", ""), errkind.Unsupported,
			"OpenDocument file of another kind than text, spreadsheet and presentation: export it as PDF"},
	} {
		x, err := Extract(t.Context(), Input{Name: tt.name, Data: tt.data})
		if x != nil || !errors.Is(err, tt.kind) || errkind.Message(err) != "extracting text: "+tt.want {
			t.Errorf("Extract(%s) = %+v, %q, want kind %v and %q", tt.name, x, errkind.Message(err), tt.kind, tt.want)
		}
	}
}

// TestHostileDocuments checks that documents that were made to exhaust the
// program are refused, within little memory.
func TestHostileDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("hostile input takes minutes under the race detector")
	}
	long := strings.Repeat("a long text ", 1<<20/12)
	for name, tt := range map[string]struct {
		in   Input
		want string // in the error; "" for none
	}{
		"bomb": {Input{Name: "a.docx",
			Data: docxOf(t, "<w:p><w:r><w:t>x</w:t></w:r></w:p>"+strings.Repeat("<!--"+strings.Repeat(" ", 1<<20)+"-->",
				80))}, "expands to far more"},
		"bomb in shared strings": {Input{Name: "a.xlsx",
			Data: xlsxOf(t, "", "", "sharedStrings.xml", "<sst>"+strings.Repeat("<si/>", 1<<19)+"</sst>")}, ""},
		"long text": {Input{Name: "a.docx", Data: docxOf(t, strings.Repeat(paragraphs(long), 40))},
			"more than 32 MiB of text"},
		"long cell": {Input{Name: "a.docx",
			Data: docxOf(t, "<w:tbl><w:tr><w:tc>"+strings.Repeat(paragraphs(long), 70))}, "more than 32 MiB of text"},
		"long token": {Input{Name: "a.docx",
			Data: docxOf(t, "<w:p><w:r><w:t>"+strings.Repeat("x", 20<<20))}, "a tag or text of more than"},
		"nested elements": {Input{Name: "a.docx",
			Data: docxOf(t, strings.Repeat("<w:tbl><w:tr><w:tc>", 100000))}, "nested more than"},
		"nested lists": {Input{Name: "a.odt",
			Data: odfOf(t, "text", "<office:text>"+strings.Repeat("<text:list><text:list-item>", 100000))},
			"nested more than"},
		"nested groups": {Input{Name: "a.rtf", Data: []byte(`{\rtf1` + strings.Repeat("{", 1<<20))},
			"nested more than"},
		"empty paragraphs": {Input{Name: "a.docx", Data: docxOf(t, strings.Repeat("<w:p/>", 1<<18))}, ""},
		"short cells": {Input{Name: "a.docx",
			Data: docxOf(t, "<w:tbl><w:tr>"+strings.Repeat("<w:tc>"+paragraphs("x")+"</w:tc>", 1<<16))}, ""},
		"short paragraphs": {Input{Name: "a.docx",
			Data: docxOf(t, "<w:tbl><w:tr><w:tc>"+strings.Repeat("<w:p><w:t>x</w:t></w:p>", 1<<20))},
			"more than 32 MiB of text"},
		"cells in the last": {Input{Name: "a.xlsx",
			Data: xlsxOf(t, "", strings.Repeat(`<row><c r="A1"><v>1</v></c><c r="XFD1"><v>1</v></c></row>`, 1<<14))},
			""},
		"many styles": {Input{Name: "a.docx",
			Data: docxOf(t, paragraphs("x"), "styles.xml", strings.Repeat(`<w:style w:styleId="x"/>`, 1<<18))}, ""},
		"one slide many times": {Input{Name: "a.pptx",
			Data: ooxml(t, "presentationml.presentation", "ppt/p.xml",
				"<p>"+strings.Repeat(`<p:sldId r:id="rId1"/>`, 1<<20), []string{"slide", "s.xml"}, "ppt/s.xml",
				"<p:sld><p:spTree><p:sp><a:p><a:t>"+long+"</a:t></a:p></p:sp></p:spTree></p:sld>")}, "text"},
		"relationships in cycles": {Input{Name: "a.pptx",
			Data: ooxml(t, "presentationml.presentation", "ppt/p.xml", `<p:sldId r:id="rId1"/>`,
				[]string{"slide", "p.xml"})}, ""},
		"a part above the root": {Input{Name: "a.docx",
			Data: packageOf(t, "../../etc/passwd", "x", "[Content_Types].xml", "", "_rels/.rels",
				`<Relationship Type="x/officeDocument" Target="../../../etc/passwd"/>`)}, "unknown kind"},
		"laughs": {Input{Name: "a.docx",
			Data: packageOf(t, "_rels/.rels", `<Relationship Type="x/officeDocument" Target="word/d.xml"/>`,
				"[Content_Types].xml", "", "word/d.xml", `<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><w:body>`+paragraphs("&b;")+`</w:body>`)}, ""},
		"external entity": {Input{Name: "a.docx",
			Data: packageOf(t, "_rels/.rels", `<Relationship Type="x/officeDocument" Target="word/d.xml"/>`,
				"[Content_Types].xml", "", "word/d.xml", `<!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/passwd">]><w:body>`+paragraphs("&a;")+`</w:body>`)}, ""},
		"lists without a header": {Input{Name: "a.csv", Data: bytes.Repeat([]byte(`,`), 1<<20)}, ""},
		"open quotes":            {Input{Name: "a.csv", Data: bytes.Repeat([]byte("\"a,\n"), 1<<18)}, ""},
		"parts": {Input{Name: "a.docx", Data: bytes.Repeat([]byte("PK\x03\x04PK\x01\x02"), 1<<17)},
			"more than 50000 files"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			x, err := Extract(t.Context(), tt.in)
			runtime.ReadMemStats(&after)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Extract = %v, want an error with %q", err, tt.want)
			}
			if err != nil && !errors.Is(err, errkind.TooLarge) && !errors.Is(err, errkind.Unsupported) {
				t.Errorf("Extract = %v, want kind TooLarge or Unsupported", err)
			}
			if x != nil {
				checkText(t, x)
			}
			if heap := int64(after.HeapSys) - int64(before.HeapSys); heap > 300<<20 {
				t.Errorf("Extract took %d MiB of memory, want at most 300", heap>>20)
			}
		})
	}
}

// TestDamagedDocuments checks that truncated and changed documents return an
// error with a kind or the readable part.
func TestDamagedDocuments(t *testing.T) {
	for name, data := range documents(t) {
		for i := range 16 {
			cut := data[:len(data)*i/16]
			changed := bytes.Clone(data)
			changed[(len(data)-1)*i/16] ^= 0x15
			for _, d := range [][]byte{cut, changed} {
				x, err := Extract(t.Context(), Input{Name: name, Data: d})
				switch {
				case err == nil:
					checkText(t, x)
				case !errors.Is(err, errkind.Corrupt) && !errors.Is(err, errkind.Unsupported) &&
					!errors.Is(err, errkind.TooLarge):
					t.Errorf("Extract(%s) = %v, want a kind", name, err)
				}
			}
		}
	}
}

func TestIsDocument(t *testing.T) {
	for name, want := range map[string]bool{"a.PDF": true, "a.docx": true, "b/a.doc": true, "a.epub": true,
		"a.png": false, "a.txt": false, "docx": false, "b/~$a.docx": false} {
		if got := IsDocument(name); got != want {
			t.Errorf("IsDocument(%s) = %t, want %t", name, got, want)
		}
	}
}

// FuzzPackage changes the main part of each format that is a package.
func FuzzPackage(f *testing.F) {
	f.Add("<w:p><w:pPr><w:pStyle w:val='a'/></w:pPr><w:r><w:t>x</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>")
	f.Add(`<row r="2"><c r="B2" s="0" t="s"><v>0</v></c></row><sheet r:id="rId1"/><numFmt numFmtId="0" formatCode="0.0"/><si><t>x</t></si>`)
	f.Add(`<office:text><text:h>x</text:h><text:list><text:list-item><text:p>y</text:p></text:list-item></text:list><draw:page><draw:frame presentation:class="title"><draw:text-box><text:p>`)
	f.Add(`<p:sldId r:id="rId1"/><p:spTree><p:sp><p:ph type="title"/><a:p><a:t>t</a:t></a:p></p:sp></p:spTree>`)
	f.Add(`<html><body><h1>x</h1><p>y</body><item id="a" href="a.xhtml"/><itemref idref="a"/><dc:title>t</dc:title>`)
	f.Fuzz(func(t *testing.T, part string) {
		rels := []string{"slide", "m.xml", "styles", "m.xml", "numbering", "m.xml", "comments", "m.xml", "footnotes",
			"m.xml", "sharedStrings", "m.xml", "drawing", "m.xml", "worksheet", "m.xml", "notesSlide", "m.xml",
			"header", "m.xml"}
		for _, data := range [][]byte{
			ooxml(t, "wordprocessingml.document", "x/m.xml", "<w:body>"+part, rels),
			ooxml(t, "presentationml.presentation", "x/m.xml", part, rels),
			ooxml(t, "spreadsheetml.sheet", "x/m.xml", part, rels),
			odfOf(t, "text", part, "styles.xml", part),
			odfOf(t, "spreadsheet", "<office:spreadsheet><table:table>"+part),
			odfOf(t, "presentation", "<office:presentation>"+part),
			packageOf(t, "mimetype", "application/epub+zip", "META-INF/container.xml", `<rootfile full-path="o.opf"/>`,
				"o.opf", part, "a.xhtml", part),
		} {
			x, err := Extract(t.Context(), Input{Data: data})
			if err != nil {
				if !errors.Is(err, errkind.Corrupt) && !errors.Is(err, errkind.Unsupported) &&
					!errors.Is(err, errkind.TooLarge) {
					t.Fatalf("Extract = %v, want a kind", err)
				}
				continue
			}
			checkText(t, x)
		}
	})
}

func FuzzRTF(f *testing.F) {
	f.Add([]byte(`{\rtf1\ansi{\fonttbl{\f0\fcharset204 A;}}{\stylesheet{\s1 heading 1;}}\s1 a\'e9\u8364?\par\trowd\intbl b\cell\row{\footnote c}\bin2 xx}`))
	f.Add([]byte(`{\rtf1{\*\annotation x}{\listtext\bullet}{\header h}\uc2\u-10179 ab\u-8704 cd}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if x, err := Extract(t.Context(), Input{Data: append([]byte(`{\rtf`), data...)}); err == nil {
			checkText(t, x)
		} else if !errors.Is(err, errkind.TooLarge) {
			t.Fatal(err)
		}
	})
}

// A document that is cut at any point is reported as damaged, whatever its name
// is. Of RTF, the text before the cut is left.
func TestTruncatedDocuments(t *testing.T) {
	for name, data := range documents(t) {
		switch filepath.Ext(name) {
		case ".doc", ".xls":
			continue // not read
		}
		if name == "locked.docx" {
			continue
		}
		for i := range 60 {
			n := len(data) * i / 60
			if i == 0 {
				n = 4 // longer than the signature of a ZIP archive
			}
			for _, name := range []string{name, "download"} {
				x, err := Extract(t.Context(), Input{Name: name, Data: data[:n]})
				switch {
				case bytes.HasPrefix(data, []byte("PK")):
					if x != nil || !errors.Is(err, errkind.Corrupt) {
						t.Errorf("Extract of the first %d of %d bytes of %s = %v, want kind Corrupt", n, len(data),
							name, err)
					}
				case n > 10 && (err != nil || !x.Damaged):
					t.Errorf("Extract of the first %d of %d bytes of %s = %v, want a damaged document", n, len(data),
						name, err)
				}
			}
		}
	}
}
