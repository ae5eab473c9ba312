package pdf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract/pdf/cos"
)

// allocated returns how many bytes f allocates, which is more than it ever
// uses at a time.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// TestHostileFiles reads files that kept an earlier reader busy for hours, or
// took all memory.
func TestHostileFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("hostile input takes minutes under the race detector")
	}
	for name, kind := range map[string]error{
		"pdf-hang.pdf":  errkind.TooLarge,    // CMaps with 200,000 ranges of codes, and a string of 20 MB
		"pdf-hang2.pdf": errkind.Unsupported, // 300,000 times a form with its own fonts
		"pdf-oom.pdf":   errkind.Unsupported, // 1,500 fonts with a width for each of 65,536 characters
	} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		n := allocated(func() { _, err = Read(t.Context(), data, 0) })
		if !errors.Is(err, kind) || n > 300<<20 {
			t.Errorf("%s: Read = %v, with %d bytes allocated; want kind %v and at most 300 MiB", name, err, n, kind)
		}
	}
}

// The budget of TestHostile, a sixteenth of that of Read.
const (
	hostileSteps  = minSteps / 16
	hostileMemory = minMemory / 16
)

// document makes a document of a page with the given content stream and
// resources. The objects are those from 5 on.
func documentOf(content, resources string, objects ...string) []byte {
	m := newMaker(helvetica, "")
	m.objects[2] = "<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<<" + resources + ">>>>"
	m.objects[3] = content
	for _, o := range objects {
		m.add(o)
	}
	return m.bytes()
}

const f1 = "/Font<</F1 " + helvetica + ">>"

// page is a document whose page shows Hello, world after some content.
func pageOf(content, resources string, objects ...string) []byte {
	return documentOf(streamObject("/Filter/FlateDecode", deflate(content+" "+hello)), f1+resources, objects...)
}

// stream is a document whose page has a content stream with filters.
func stream(entries, data string, objects ...string) []byte {
	return documentOf(streamObject(entries, data), f1, objects...)
}

// fontsOf makes a document with a page that uses n fonts, each of which is made
// by a function.
func fontsOf(n int, font func(i int) string, objects ...string) []byte {
	var fonts, content strings.Builder
	content.WriteString("BT 72 700 Td ")
	for i := range n {
		fmt.Fprintf(&fonts, "/G%d %s", i, font(i))
		fmt.Fprintf(&content, "/G%d 10 Tf (Hello) Tj ", i)
	}
	return documentOf(streamObject("/Filter/FlateDecode", deflate(content.String()+"ET "+hello)),
		"/Font<</F1 "+helvetica+fonts.String()+">>", objects...)
}

// TestHostile reads small files that ask for much work or memory. Without the
// budget most of them take minutes or gigabytes, and all of them do with larger
// numbers.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("hostile input takes minutes under the race detector")
	}
	flate := func(entries, data string) string { return streamObject("/Filter/FlateDecode"+entries, deflate(data)) }
	times := strings.Repeat
	type0 := func(more, descendant string) func(int) string {
		return func(int) string { return composite("/Identity-H", more, descendant) }
	}
	subtables := func() string { // eight cmap subtables of 200,000 characters each
		be := binary.BigEndian
		var b []byte
		b = be.AppendUint16(be.AppendUint16(b, 0), 8)
		for i, k := range [][2]uint16{{3, 10}, {3, 1}, {0, 6}, {0, 4}, {0, 3}, {0, 2}, {0, 1}, {0, 0}} {
			b = be.AppendUint32(be.AppendUint16(be.AppendUint16(b, k[0]), k[1]), uint32(4+8*8+28*i))
		}
		for i := range 8 {
			b = be.AppendUint16(be.AppendUint16(b, 12), 0)
			for _, v := range []uint32{28, 0, 1, uint32(0x1000 * i), 0x10ffff, 1} {
				b = be.AppendUint32(b, v)
			}
		}
		head := "\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00cmap\x00\x00\x00\x00\x00\x00\x00\x1c"
		return head + string(be.AppendUint32(nil, uint32(len(b)))) + string(b)
	}
	post := func(n int) string { // n glyph names without a letter
		head := "\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00post\x00\x00\x00\x00\x00\x00\x00\x1c"
		table := "\x00\x02\x00\x00" + times("\x00", 28) + "\xff\xff" + times("\x01\x02", 65535) + times("\x00", n)
		return head + string(binary.BigEndian.AppendUint32(nil, uint32(len(table)))) + table
	}
	const (
		work   = "more work"
		memory = "more memory"
		noText = "without text that can be extracted"
		text   = "" // the text is read
	)
	shared := func(entries string) func(int) string { // the same font dictionary again and again
		return func(int) string { return "<</Subtype/Type1" + entries + ">>" }
	}
	catalog := func(entries string, objects ...string) []byte {
		m := newMaker(helvetica, hello)
		m.objects[0] = "<</Type/Catalog/Pages 2 0 R" + entries + ">>"
		for _, o := range objects {
			m.add(o)
		}
		return m.bytes()
	}
	for _, tt := range []struct {
		name, want string
		data       []byte
	}{
		{"page tree of missing pages", work, func() []byte {
			m := newMaker(helvetica, hello)
			m.objects[1] = "<</Type/Pages/Kids 5 0 R>>"
			m.add("[" + times("null ", 1<<14) + times("<</Kids 5 0 R>>", 10) + "]")
			return m.bytes()
		}()},
		{"ASCII85 zeros", memory, stream("/Filter[/FlateDecode/A85]", deflate(times("z", 8<<20)))},
		{"run lengths", memory, stream("/Filter[/FlateDecode/RL]", deflate(times("\x81 ", 1<<20)))},
		{"LZW", memory, stream("/Filter[/FlateDecode/LZW]", deflate(lzwBomb(1<<20)))},
		{"blocks without data", work, stream("/Filter[/FlateDecode/FlateDecode]", deflate(emptyBlocks(1<<17)))},
		{"rows of one byte", work, stream("/Filter/FlateDecode/DecodeParms<</Predictor 12>>",
			deflate(times("\x04 ", 2<<20)))},
		{"marks", text, pageOf(times("BMC ", 1<<18), "")},
		{"actual texts", memory, pageOf("BT /F1 10 Tf "+times("/P/N BDC (x) Tj EMC ", 10000)+"ET",
			"/Properties<</N<</ActualText("+times("x", 1<<14)+")>>>>")},
		{"escapes of languages", text, pageOf("BT /F1 10 Tf /P/N BDC (x) Tj EMC ET",
			"/Properties<</N<</ActualText(\xfe\xff"+times("\x00\x1b", 1<<18)+")>>>>")},
		{"escapes of languages in the title", text, func() []byte {
			m := newMaker(helvetica, hello)
			m.info = "<</Title(\xfe\xff" + times("\x00\x1b", 1<<18) + ")>>"
			return m.bytes()
		}()},
		{"images without an end", text, pageOf(hello+times(" BI ID EI\x01", 1<<18), "")},
		{"numbers in an object", memory, packedObject(pageOf("/X Do", "/XObject<</X 9 0 R>>"),
			"["+times("1 ", 1<<20)+"]")},
		{"dictionaries in an object", memory, packedObject(pageOf("/X Do", "/XObject<</X 9 0 R>>"),
			"["+times("<</A[]>>", 1<<17)+"]")},
		{"names of glyphs", work, fontsOf(1000, shared("/Encoding 5 0 R"),
			"<</Differences[65"+times("/"+times("a", 1<<16), 1<<8)+"]>>")},
		{"names of encodings", noText, fontsOf(200, func(int) string { return composite(" 5 0 R", "", "") },
			"/"+times("a", 1<<20))},
		{"differences", work, fontsOf(1000, shared("/Encoding 5 0 R"), "<</Differences["+times("65/A ", 1<<15)+"]>>")},
		{"fonts without an object", memory, fontsOf(5000, func(int) string { return "<<>>" })},
		{"widths of other fonts", memory, fontsOf(1000, type0("", "/W 5 0 R"), "["+times("1[2 3]", 1<<14)+"]")},
		{"overlapping widths", work, func() []byte {
			var codes strings.Builder
			for i := range 1 << 14 {
				fmt.Fprintf(&codes, "%04x", i)
			}
			m := newMaker(composite("/Identity-H", "/ToUnicode 5 0 R", "/W["+times("1 30000 5 ", 1<<12)+"]"),
				"BT /F1 10 Tf 72 700 Td <"+codes.String()+"> Tj ET")
			m.add(streamObject("", "1 beginbfrange <0000> <ffff> <0041> endbfrange"))
			return m.bytes()
		}()},
		{"entries of a CMap", memory, fontsOf(100, type0("/ToUnicode 5 0 R", ""),
			flate("", "1 beginbfchar "+times("<01><0041>", 1<<18)))},
		{"texts of a CMap", memory, fontsOf(100, type0("/ToUnicode 5 0 R", ""),
			flate("", "1 beginbfrange <0000><ffff>["+times("<"+times("0041", 100)+">", 1<<13)))},
		{"ranges of codes", work, fontsOf(100, func(int) string { return composite(" 5 0 R", "", "") },
			flate("", times("/90ms-RKSJ-H usecmap ", 1<<14)+times("1 begincodespacerange <00> <ff> ", 1<<14)))},
		{"characters of a font program", work, fontsOf(100, type0("", "/FontDescriptor<</FontFile2 5 0 R>>"),
			flate("", subtables()))},
		{"names in a font program", work, fontsOf(100, type0("", "/FontDescriptor<</FontFile2 5 0 R>>"),
			flate("", post(4<<20)))},
		{"map of glyphs", memory, fontsOf(100, type0("", "/FontDescriptor<</FontFile2 5 0 R>>/CIDToGIDMap 6 0 R"),
			flate("", ttf(false)), flate("", times("\x00\x01", 1<<20)))},
		{"strings of a CFF font", work, fontsOf(100, shared("/FontDescriptor<</FontFile3 5 0 R>>"),
			flate("/Subtype/Type1C", bigCFF(1<<16, 60000)))},
		{"collections of characters", text, fontsOf(300, func(i int) string {
			return composite("/Identity-H", "", collection([]string{"Japan1", "GB1", "CNS1", "Korea1",
				times("x", 1<<10)}[i%5]))
		})},
		{"columns of figures", text, pageOf(func() string {
			var c strings.Builder
			c.WriteString("BT /F1 1 Tf ")
			for i := range 300 {
				fmt.Fprintf(&c, "1 0 0 1 %d 700 Tm ", 10*i)
				c.WriteString(times("0 -1.2 Td (1) Tj ", 50))
			}
			return c.String() + "ET"
		}(), "")},
		{"text from right to left", memory, pageOf("BT /F1 10 Tf "+times("/P<</ActualText(\xfe\xff"+times("\xfd\xfa",
			1<<14)+")>>BDC (x) Tj EMC ", 64)+"ET", "")},
		{"lengths that lead to a comment", work, func() []byte {
			m := newMaker(helvetica, hello)
			var contents strings.Builder
			for range 1000 {
				contents.WriteString(m.add("<</Length 300000>>stream\nx endstream") + " ")
			}
			m.objects[2] = strings.Replace(m.objects[2], "4 0 R", "[4 0 R "+contents.String()+"]", 1)
			return append(m.bytes(), times("%", 1<<20)...)
		}()},
		{"table of objects", memory, func() []byte {
			b := pageOf("", "")
			table := streamObject("/Type/XRef/Root 1 0 R/Size 8388608/W[0 1 0]/Filter/FlateDecode",
				deflate(times("\x09", 2<<20)))
			return append(b, fmt.Sprintf("9 0 obj %s endobj startxref %d", table, len(b))...)
		}()},
		{"objects of an object stream", memory, addPacked(pageOf("/X Do", "/XObject<</X 9 0 R>>"), 1<<22,
			times("9 0 ", 1<<20))},
		{"tree of page labels", work, catalog("/PageLabels<</Kids 5 0 R>>",
			"["+times("null ", 1<<14)+times("<</Kids 5 0 R>>", 10)+"]")},
		{"page labels", text, catalog("/PageLabels<</Nums 5 0 R>>",
			"["+times("0<</P("+times("x", 100)+")>>", 1<<13)+"]")},
		{"tree of named places", work, catalog("/Names<</Dests<</Kids 6 0 R>>>>/Outlines<</First 5 0 R>>",
			"<</Title(A)/Dest(a)>>",
			"["+times("null ", 1<<14)+times("<</Kids 6 0 R>>", 10)+"]")},
		{"named places", text, catalog("/Names<</Dests<</Names 6 0 R>>>>/Outlines<</First 5 0 R>>",
			"<</Title(A)/Dest(a)>>", "["+times("(a)[3 0 R]", 1<<13)+"]")},
		{"bookmarks", work, func() []byte {
			m := newMaker(helvetica, "BT /F1 10 Tf 72 700 Td "+times("(Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa) Tj 0 -20 Td ", 1000)+" ET")
			m.objects[0] = "<</Type/Catalog/Pages 2 0 R/Outlines<</First 5 0 R>>>>"
			for i := range 2000 {
				m.add(fmt.Sprintf("<</Title(%sb)/Dest[3 0 R]/Next %d 0 R/First %d 0 R>>", times("a", 39), i+6, i+6))
			}
			return m.bytes()
		}()},
		{"metadata", work, func() []byte {
			m := newMaker(helvetica, hello)
			m.objects[0] = "<</Type/Catalog/Pages 2 0 R/Metadata 5 0 R>>"
			m.add(flate("", times("<a>", 1<<18)))
			return m.bytes()
		}()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			n := allocated(func() { _, err = read(tt.data, cos.NewBudget(hostileSteps, hostileMemory, nil)) })
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Read = %v, want %q", err, tt.want)
			}
			if n > 8*hostileMemory {
				t.Errorf("%d bytes were allocated, want hardly more than %d", n, hostileMemory)
			}
		})
	}
}

// packedObject adds an object with number 9 in an object stream.
func packedObject(data []byte, object string) []byte { return addPacked(data, 4, "9 0 "+object) }

// addPacked adds an object stream with the object 9. first is where its first
// object begins.
func addPacked(data []byte, first int, objects string) []byte {
	at := len(data)
	entries := fmt.Sprintf("/Type/ObjStm/N 9999999/First %d/Filter/FlateDecode", first)
	data = append(data, "8 0 obj "+streamObject(entries, deflate(objects))+" endobj\n"...)
	prev := bytes.LastIndex(data[:at], []byte("xref\n0"))
	xref := len(data)
	table := string([]byte{1, byte(at >> 16), byte(at >> 8), byte(at), 0, 2, 0, 0, 8, 0})
	entries = fmt.Sprintf("/Type/XRef/Root 1 0 R/Size 11/Index[8 2]/W[1 3 1]/Prev %d", prev)
	return append(data, fmt.Sprintf("10 0 obj %s endobj startxref %d", streamObject(entries, table), xref)...)
}

// emptyBlocks returns the n blocks without data of a zlib stream, each of which
// has its own Huffman codes (RFC 1951, 3.2.7).
func emptyBlocks(n int) string {
	out := []byte("\x78\x9c")
	var bits, have uint
	put := func(v, width uint) {
		bits, have = bits|v<<have, have+width
		for ; have >= 8; bits, have = bits>>8, have-8 {
			out = append(out, byte(bits))
		}
	}
	for range n {
		put(0b10_0, 3)      // not the last, dynamic codes
		put(14<<10, 14)     // 257 literals, 1 distance, 18 lengths of lengths
		put(1<<6|1<<51, 54) // those of 18, a run of zeros, and of 1
		put(127<<1|1, 8)    // 138 zeros
		put(107<<1|1, 8)    // 118 zeros
		put(0, 3)           // length 1 for the end of the block and the distance; the end
	}
	return string(out)
}

// lzwBomb returns LZW data of n codes, each of which stands for a longer run
// than the one before.
func lzwBomb(n int) string {
	var out []byte
	var bits, have, width uint
	put := func(code int) {
		bits, have = bits<<width|uint(code), have+width
		for have >= 8 {
			have -= 8
			out = append(out, byte(bits>>have))
		}
	}
	for n > 0 {
		width = 9
		put(256)
		put(' ')
		for next := 258; next < 4096 && n > 0; next++ {
			if next >= 1<<width-1 && width < 12 {
				width++
			}
			put(next)
			n--
		}
	}
	return string(out)
}

// bigCFF makes a CFF font of n glyphs whose one name has a number of letters.
func bigCFF(letters, n int) string {
	be := binary.BigEndian
	one := func(s string) string { // an INDEX of one element
		b := be.AppendUint32([]byte{0, 1, 4}, 1)
		return string(be.AppendUint32(b, uint32(1+len(s)))) + s
	}
	number := func(v int) string { return "\x1d" + string(be.AppendUint32(nil, uint32(v))) }
	head := "\x01\x00\x04\x01" + one("Test")
	names := one(strings.Repeat("x", letters)) + "\x00\x00"
	var charset, glyphs []byte
	charset = append(charset, 0)
	glyphs = append(be.AppendUint16(nil, uint16(n)), 1)
	for range n {
		charset = be.AppendUint16(charset, 391)
		glyphs = append(glyphs, 1)
	}
	glyphs = append(glyphs, 1)
	base := len(head) + len(one(strings.Repeat("x", 12))) + len(names)
	dict := number(base) + "\x0f" + number(base+len(charset)) + "\x11"
	return head + one(dict) + names + string(charset) + string(glyphs)
}
