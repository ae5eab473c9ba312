package extract

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// TestHugeMarkup checks that texts in markup languages that have very many lines
// are kept as they are written: their readers would take a hundred bytes a line.
func TestHugeMarkup(t *testing.T) {
	body := "Title\n=====\n\n" + strings.Repeat("a\n", textLimit.lines+1)
	for _, name := range []string{"a.rst", "a.adoc", "a.org", "a.tex", "a.man", "a.srt"} {
		text, err := Extract(t.Context(), Input{Name: name, Data: []byte(body)})
		if err != nil || text.Body != strings.TrimSpace(body) {
			t.Errorf("%s: %v; its text is not as it is written", name, err)
		}
	}
}

// TestHugeTagOfHTML checks that a page is read up to a tag that has too many bytes,
// and reported as damaged.
func TestHugeTagOfHTML(t *testing.T) {
	page := "<p>first</p>" + strings.Repeat("a\n", plain.MaxToken) + "<p>last</p>"
	text, err := Extract(t.Context(), Input{Name: "a.html", Data: []byte(page)})
	if err != nil || !text.Damaged || !strings.HasPrefix(text.Body, "first\n\na a") ||
		strings.Contains(text.Body, "last") {
		t.Errorf("Extract() = %v, damaged: %v, %d bytes", err, text.Damaged, len(text.Body))
	}
}

// TestMaxUnpacked checks the error for a file that unpacks to more than it may.
func TestMaxUnpacked(t *testing.T) {
	in := Input{Name: "a.txt.gz", Data: gzipOf(t, []byte(strings.Repeat("text ", 1000))), MaxUnpacked: 4999}
	yield := func(Part) error { return nil }
	keep := func(string) bool { return true }
	if err := Parts(t.Context(), in, keep, yield); !errors.Is(err, ErrUnpacked) {
		t.Errorf("Parts() = %v, want ErrUnpacked", err)
	}
	in.MaxUnpacked++
	if err := Parts(t.Context(), in, keep, yield); err != nil {
		t.Errorf("Parts() = %v", err)
	}
}

// A PDF document that takes much memory is not read beside others.
func TestMaxUnpackedOfPDF(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	data, err := os.ReadFile("pdf/testdata/pdf-hang.pdf")
	if err != nil {
		t.Fatal(err)
	}
	keep := func(string) bool { return true }
	yield := func(p Part) error { return p.Err }
	for _, in := range []Input{{Name: "a.pdf", Data: data},
		{Name: "a.zip", Data: zipOf(t, zipEntry{"a.pdf", string(data)})}} {
		if err := Parts(t.Context(), in, keep, yield); !errors.Is(err, errkind.TooLarge) ||
			errors.Is(err, ErrUnpacked) {
			t.Errorf("Parts(%s) = %v, want that it takes too much work", in.Name, err)
		}
		in.MaxUnpacked = 4 << 20
		if err := Parts(t.Context(), in, keep, yield); !errors.Is(err, ErrUnpacked) {
			t.Errorf("Parts(%s) = %v, want ErrUnpacked", in.Name, err)
		}
	}
}
