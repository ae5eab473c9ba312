package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

const hello = "BT /F1 10 Tf 72 700 Td (Hello, world) Tj ET"

// TestStructure reads one page through all the ways in which a file can be
// built, and many in which it can be broken.
func TestStructure(t *testing.T) {
	doc := func() *maker { return newMaker(helvetica, hello) }
	plain := doc().bytes()
	replace := func(old, new string) []byte {
		out := bytes.Replace(plain, []byte(old), []byte(new), 1)
		if bytes.Equal(out, plain) {
			t.Fatalf("%q is not in the document", old)
		}
		return out
	}
	update := func() []byte { // an update replaces the page's content
		b := bytes.Replace(doc().bytes(), []byte("Hello, world"), []byte("An old text!"), 1)
		at := len(b)
		b = fmt.Appendf(b, "4 0 obj\n%s\nendobj\n", streamObject("", hello))
		xref := len(b)
		prev := bytes.LastIndex(b[:at], []byte("xref\n0"))
		return fmt.Appendf(b, "xref\n4 1\n%010d 00000 n \ntrailer\n<</Size 5/Root 1 0 R/Prev %d>>\nstartxref\n%d\n%%%%EOF", at, prev, xref)
	}
	split := doc()
	split.objects[2] = strings.Replace(split.objects[2], "4 0 R", "[4 0 R 5 0 R 99 0 R]", 1)
	split.objects[3] = streamObject("", hello[:20])
	split.add(streamObject("", hello[20:]))
	inherited := doc()
	inherited.objects[1] = "<</Type/Pages/Kids[5 0 R]/Resources<</Font<</F1 " + helvetica + ">>>>>>"
	inherited.objects[2] = "<</Type/Page/Contents 4 0 R>>"
	inherited.add("<</Type/Pages/Kids[3 0 R 2 0 R 5 0 R]>>")
	length := doc()
	length.objects[3] = strings.Replace(length.objects[3], fmt.Sprint("/Length ", len(hello)), "/Length 5 0 R", 1)
	length.add(fmt.Sprint(len(hello)))
	tests := map[string][]byte{
		"table":                   plain,
		"streams":                 doc().packed(),
		"streams without a table": doc().packed()[:bytes.LastIndex(doc().packed(), []byte("startxref"))],
		"update":                  update(),
		"junk before":             append([]byte("HTTP/1.1 200 OK\r\n\r\n"), plain...),
		"lines of old Macs":       bytes.ReplaceAll(plain, []byte("\n"), []byte("\r")),
		"cut":                     plain[:bytes.Index(plain, []byte("xref"))],
		"wrong startxref":         replace("startxref\n", "startxref\n9"),
		"wrong offset":            replace("00000 n", "00000 n "),
		"shifted":                 replace("%\xe2", "% one line more \n%\xe2"),
		"no root":                 replace("/Root 1 0 R", ""),
		"wrong length":            replace(fmt.Sprint("/Length ", len(hello)), "/Length 7"),
		"huge length":             replace(fmt.Sprint("/Length ", len(hello)), "/Length 7777777777"),
		"no length":               replace(fmt.Sprint("/Length ", len(hello)), ""),
		"length elsewhere":        length.bytes(),
		"length in itself":        replace(fmt.Sprint("/Length ", len(hello)), "/Length 4 0 R"),
		"no endobj":               bytes.ReplaceAll(plain, []byte("endobj"), nil),
		"no page tree":            replace("/Kids[3 0 R]", "/Kids[9 0 R]"),
		"contents in parts":       split.bytes(),
		"loop in the tree":        inherited.bytes(),
		"unknown filter first":    replace("/Contents 4 0 R", "/Contents[2 0 R 4 0 R]"),
	}
	for name, data := range tests {
		x, err := Read(t.Context(), data, 0)
		if err != nil || x.Body != "Hello, world" {
			t.Errorf("%s: Read = %v, %v, want Hello, world", name, x, err)
		}
	}
}

// TestContentsAreNotOverwritten reads content streams without filters, which are
// parts of the file. An earlier version wrote the second behind the first, over
// what follows in the file.
func TestContentsAreNotOverwritten(t *testing.T) {
	m := newMaker(helvetica, "BT /F1 10 Tf 72 700 Td (one) Tj")
	m.objects[2] = strings.Replace(m.objects[2], "4 0 R", "[4 0 R 6 0 R]", 1)
	third := m.add(streamObject("", "BT /F1 10 Tf 72 700 Td (Three) Tj ET"))
	m.add(streamObject("", "0 -12 Td (two) Tj ET"+strings.Repeat(" ", 200)))
	page := m.add("<</Type/Page/Contents " + third + "/Resources<</Font<</F1 " + helvetica + ">>>>>>")
	m.objects[1] = "<</Type/Pages/Kids[3 0 R " + page + "]>>"
	if got, want := mustRead(t, m.bytes()).Body, "one two\n\nThree"; got != want {
		t.Errorf("body = %q, want %q", got, want)
	}
}

// TestManyFonts reads a document whose fonts and objects take more memory than
// there is: those of earlier pages are dropped.
func TestManyFonts(t *testing.T) {
	const pages = 200
	m := newMaker(helvetica, hello)
	var want strings.Builder
	want.WriteString("Hello, world")
	for i := range pages {
		cmap := m.add(streamObject("", "1 beginbfchar <61> <0062> "+strings.Repeat("<01> <0001> ", 200)+" endbfchar"))
		font := m.add("<</Type/Font/Subtype/Type1/ToUnicode " + cmap + "/Unused[" + strings.Repeat("1 ", 200) + "]>>")
		content := m.add(streamObject("", fmt.Sprintf("BT /F1 10 Tf 72 700 Td (aaa) Tj /F2 10 Tf ( %d) Tj ET", i)))
		page := m.add("<</Type/Page/Contents " + content + "/Resources<</Font<</F1 " + font + "/F2 " + helvetica +
			">>>>>>")
		m.objects[1] = strings.Replace(m.objects[1], "]", " "+page+"]", 1)
		fmt.Fprintf(&want, "\n\nbbb %d", i)
	}
	x, err := read(m.bytes(), cos.NewBudget(maxSteps, 2<<20, nil))
	if err != nil || x.Body != want.String() {
		t.Errorf("Read = %v, %v, want the text of all pages", x, err)
	}
}

func TestPagesInOrder(t *testing.T) {
	m := newMaker(helvetica, hello)
	for i := range 5 {
		m.page(fmt.Sprintf("BT /F1 10 Tf 72 700 Td (Page %d) Tj ET", i+2))
	}
	for _, data := range [][]byte{m.bytes(), m.packed()} {
		if got, want := mustRead(t, data).Body, "Hello, world\n\nPage 2\n\nPage 3\n\nPage 4\n\nPage 5\n\nPage 6"; got != want {
			t.Errorf("body = %q, want %q", got, want)
		}
	}
}

// TestLimits reads small files that ask for endless work.
func TestLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("hostile input takes minutes under the race detector")
	}
	selfForm := newMaker(helvetica, "/X Do")
	selfForm.objects[2] = "<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</XObject<</X 5 0 R>>/Font<</F1 " +
		helvetica + ">>>>>>"
	selfForm.add(streamObject("/Subtype/Form", strings.Repeat("/X Do ", 10)+hello))
	bomb := newMaker(helvetica, "")
	bomb.objects[3] = streamObject("/Filter[/FlateDecode/FlateDecode]", deflate(deflate(strings.Repeat(" ", 20<<20))))
	bomb.objects[2] = strings.Replace(bomb.objects[2], "4 0 R", "["+strings.Repeat("4 0 R ", 1000)+"]", 1)
	pages := newMaker(helvetica, hello)
	var kids strings.Builder
	for range maxPages + 1 {
		kids.WriteString("<</Type/Page/Contents 4 0 R>>")
	}
	pages.objects[1] = "<</Type/Pages/Kids[" + kids.String() + "]>>"
	nested := newMaker(helvetica, hello)
	nested.objects[1] = strings.Repeat("[", 1<<20)
	states := newMaker(helvetica, strings.Repeat("q ", 1<<16)+"/P<</ActualText(x)>>BDC "+hello)
	for name, tt := range map[string]struct {
		data  []byte
		steps int
		kind  error
	}{
		"forms in themselves": {selfForm.bytes(), 8 << 20, errkind.TooLarge},
		"decoded size":        {bomb.bytes(), 50 << 20, errkind.TooLarge},
		"pages":               {pages.bytes(), 50 << 20, errkind.TooLarge},
		"nested arrays":       {nested.bytes(), 50 << 20, nil},
		"saved states":        {states.bytes(), 50 << 20, nil},
	} {
		x, err := read(tt.data, cos.NewBudget(tt.steps, maxMemory, nil))
		if !errors.Is(err, tt.kind) || err == nil && !strings.HasPrefix(x.Body, "Hello") && x.Body != "x" {
			t.Errorf("%s: Read = %v, %v, want kind %v", name, x, err, tt.kind)
		}
	}
}

// readBounded reads a document with a small budget. It checks that what is
// allocated is bounded by it, and that no more memory is given back than taken.
func readBounded(t *testing.T, data []byte) (x *Text, err error) {
	t.Helper()
	const steps, memory = 1 << 22, 8 << 20
	b := cos.NewBudget(steps, memory, nil)
	n := allocated(func() { x, err = read(data, b) })
	if n > 8*memory+8*len(data) {
		t.Fatalf("%d bytes were allocated for %d bytes, with a bound of %d", n, len(data), memory)
	}
	if b.Memory() > memory {
		t.Fatalf("%d bytes are left of %d", b.Memory(), memory)
	}
	return x, err
}

func FuzzRead(f *testing.F) {
	m := newMaker(helvetica, hello)
	m.info = "<</Title(T)>>"
	f.Add(m.bytes())
	f.Add(m.packed())
	comp := newMaker("5 0 R", "BT /F1 10 Tf 72 700 Td <00410042> Tj /P<</ActualText(x)>>BDC [(a)-500(b)]TJ EMC ET /X Do")
	comp.add("<</Subtype/Type0/Encoding/Identity-H/ToUnicode 6 0 R/DescendantFonts[<</W[1[500]3 9 600]/DW 1000>>]>>")
	comp.add(streamObject("", "1 begincodespacerange <0000> <ffff> endcodespacerange 1 beginbfrange <0041> <0042> <0391> endbfrange"))
	f.Add(comp.bytes())
	for _, font := range []string{"/FontFile2 5 0 R", "/FontFile3 6 0 R"} {
		program := newMaker("<</Subtype/Type1/FontDescriptor<<"+font+">>/FirstChar 1/Widths[9 9]>>",
			"BT /F1 10 Tf 72 700 Td (\001\002) Tj ET")
		program.add(streamObject("", ttf(true)))
		program.add(streamObject("/Subtype/Type1C", cffFont()))
		f.Add(program.bytes())
	}
	for _, ordering := range []string{"Japan1", "Korea1", "Identity"} {
		f.Add(newMaker(composite("/Identity-H", "", collection(ordering)),
			"BT /F1 10 Tf 72 700 Td <0cd40e8a07a0> Tj ET").bytes())
	}
	f.Add(paintedPage(painted{72, 700, "A"}, painted{72, 686, "B"}, painted{72, 672, "C"}, painted{300, 700, "1"},
		painted{300, 686, "2"}, painted{300, 672, "3"}))
	for _, name := range []string{"rc4-40", "aes-256"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".pdf"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := readBounded(t, data)
		if err == nil {
			checkText(t, x)
			return
		}
		if !errors.Is(err, errkind.Unsupported) && !errors.Is(err, errkind.Corrupt) &&
			!errors.Is(err, errkind.TooLarge) {
			t.Fatalf("Read = %v, want a kind of error", err)
		}
	})
}

// FuzzContent puts the bytes where no compression or table protects the code
// from them.
func FuzzContent(f *testing.F) {
	f.Add("(a) Tj T* [(b)-300(c)] TJ 0 1 -1 0 5 5 Tm (d) ' 1 2 (e) \"", "1 beginbfchar <61> <05D0> endbfchar")
	f.Add("q 2 0 0 2 0 0 cm (x\xb4e) Tj Q BI ID EI /P BMC EMC", "/WMode 1 def 1 begincidrange <00> <ff> 3 endcidrange")
	f.Add("<0cd40e8a> Tj (AB) Tj", "1 begincodespacerange <00> <ff> endcodespacerange 2 begincidchar <41> 3284 <42> 3722 endcidchar")
	f.Add("(A) Tj T* (B) Tj T* (C) Tj 300 40 Td (1) Tj T* (2) Tj T* (3) Tj", "")
	f.Fuzz(func(t *testing.T, content, cmap string) {
		m := newMaker("5 0 R", "BT /F1 10 Tf 14 TL 72 700 Td "+content)
		m.add("<</Subtype/Type1/ToUnicode 6 0 R/Encoding 6 0 R/DescendantFonts[7 0 R]>>")
		m.add(streamObject("", cmap))
		m.add("<<" + collection("Japan1") + ">>")
		for _, kind := range []string{"/Type1", "/Type0"} {
			m.objects[4] = strings.Replace(m.objects[4], "/Type1", kind, 1)
			if x, err := readBounded(t, m.bytes()); err == nil {
				checkText(t, x)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	const pages = 50
	m := newMaker(helvetica, hello)
	var c strings.Builder
	for i := range 45 {
		fmt.Fprintf(&c, "BT /F1 10 Tf 72 %d Td [(The quick brown fox) -250 (jumps over the l) 15 (azy dog and)] TJ ( runs away from it all) Tj ET\n", 720-14*i)
	}
	for range pages - 1 {
		m.page(c.String())
	}
	data := m.bytes()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Read(b.Context(), data, 0); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(pages)*float64(b.N)/b.Elapsed().Seconds(), "pages/s")
}
