package pdf

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"strings"
)

// helvetica is a font that needs nothing else.
const helvetica = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"

// A maker writes small PDFs. Objects 1 to 3 are the catalog, the page tree and
// the first page; pages follow each other, and what is added gets the next
// free number.
type maker struct {
	objects []string // by number - 1
	info    string   // dictionary
	header  string
}

// newMaker returns a document with a page that has a font F1 and a content stream.
func newMaker(font, content string) *maker {
	m := &maker{header: "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"}
	m.objects = []string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 " + font + ">>>>>>", streamObject("", content)}
	return m
}

// add appends an object and returns a reference to it.
func (m *maker) add(o string) string {
	m.objects = append(m.objects, o)
	return fmt.Sprintf("%d 0 R", len(m.objects))
}

// page adds a page after the others.
func (m *maker) page(content string) {
	c := m.add(streamObject("", content))
	p := m.add("<</Type/Page/Parent 2 0 R/Contents " + c + "/Resources<</Font<</F1 " + helvetica + ">>>>>>")
	m.objects[1] = strings.Replace(m.objects[1], "]", " "+p+"]", 1)
}

func streamObject(entries, data string) string {
	return fmt.Sprintf("<<%s/Length %d>>stream\n%s\nendstream", entries, len(data), data)
}

// bytes writes the file with a cross-reference table.
func (m *maker) bytes() []byte {
	var b bytes.Buffer
	b.WriteString(m.header)
	var at []int
	for i, o := range m.objects {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	info := ""
	if m.info != "" {
		info = "/Info" + m.info
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, info, xref)
	return b.Bytes()
}

// packed writes the file with its objects, but for streams, in an object
// stream, and a cross-reference stream with a predictor.
func (m *maker) packed() []byte {
	var b, inside bytes.Buffer
	b.WriteString(m.header)
	n := len(m.objects)
	rows := make([][4]byte, n+3)
	var head strings.Builder
	count := 0
	for i, o := range m.objects {
		if strings.Contains(o, "stream") {
			rows[i+1] = row(1, b.Len(), 0)
			fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
			continue
		}
		rows[i+1] = row(2, n+1, count)
		fmt.Fprintf(&head, "%d %d ", i+1, inside.Len())
		inside.WriteString(o + "\n")
		count++
	}
	rows[n+1] = row(1, b.Len(), 0)
	body := deflate(head.String() + inside.String())
	fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", n+1,
		streamObject(fmt.Sprintf("/Type/ObjStm/N %d/First %d/Filter/FlateDecode", count, head.Len()), body))
	rows[n+2] = row(1, b.Len(), 0)
	xref := b.Len()
	var table []byte
	var prev [4]byte
	for _, r := range rows {
		table = append(table, 2) // PNG "up"
		for i := range r {
			table = append(table, r[i]-prev[i])
		}
		prev = r
	}
	fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\nstartxref\n%d\n%%%%EOF\n", n+2,
		streamObject(fmt.Sprintf("/Type/XRef/Size %d/W[1 2 1]/Root 1 0 R/Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 4>>", n+3),
			deflate(string(table))), xref)
	return b.Bytes()
}

func row(kind, a, b int) [4]byte {
	var r [4]byte
	r[0], r[3] = byte(kind), byte(b)
	binary.BigEndian.PutUint16(r[1:], uint16(a))
	return r
}

func deflate(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		panic(err) // a bytes.Buffer takes everything
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.String()
}
