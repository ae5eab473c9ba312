package extract

import (
	"errors"
	"strings"
	"testing"
)

// TestHugeMarkup checks that texts in markup languages that have very many lines
// are kept as they are written: their readers would take a hundred bytes a line.
func TestHugeMarkup(t *testing.T) {
	body := "Title\n=====\n\n" + strings.Repeat("a\n", maxMarkupLines+1)
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
	page := "<p>first</p>" + strings.Repeat("a\n", maxToken) + "<p>last</p>"
	text, err := Extract(t.Context(), Input{Name: "a.html", Data: []byte(page)})
	if err != nil || !text.Damaged || !strings.HasPrefix(text.Body, "first\n\na a") || strings.Contains(text.Body, "last") {
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
