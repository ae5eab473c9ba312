package pdf

import (
	"fmt"
	"strings"
	"testing"
)

// outlined returns a document of two pages with the entries of an outline, which
// are objects 10, 11 and so on; its pages are objects 3 and 6.
func outlined(catalog string, entries ...string) *maker {
	m := newMaker(helvetica, "BT /F1 10 Tf 72 700 Td (Contents) Tj 0 -12 Td (First part . . . . . . . . 1) Tj 0 -40 Td (1 First part) Tj 0 -40 Td "+
		"(First part of the text, which is long.) Tj /F1 14 Tf 0 -40 Td (Found by its size) Tj /F1 10 Tf 0 -40 Td (More.) Tj ET")
	m.page("BT /F1 20 Tf 72 760 Td (Chapter 2) Tj /F1 14 Tf 0 -60 Td (Second: the) Tj 0 -16 Td (end) Tj /F1 10 Tf 0 -40 Td (Some text. It is rather long.) Tj 0 -40 Td (Detail) Tj 0 -40 Td (Last.) Tj ET")
	for len(m.objects) < 8 {
		m.add("null")
	}
	m.add("<</First 10 0 R>>")
	for _, e := range entries {
		m.add("<<" + e + ">>")
	}
	m.objects[0] = "<</Type/Catalog/Pages 2 0 R/Outlines 9 0 R" + catalog + ">>"
	return m
}

func TestBookmarks(t *testing.T) {
	const bySize = "2 Found by its size,1 Chapter 2,2 Second: the end"
	tests := []struct {
		name, catalog string
		entries       []string
		want          string
	}{
		{"none", "", nil, bySize},
		{"by reference and by index", "", []string{"/Title(First part)/Dest[3 0 R/Fit]/Next 11 0 R",
			"/Title(2 Second: The End)/A<</S/GoTo/D[1/XYZ 0 0 0]>>"},
			"1 First part @ 1 First par,2 Found by its size @ Found by it,1 2 Second: The End @ Chapter 2\n\n"},
		{"by name, in levels", "/Dests<</b[6 0 R/Fit]>>/Names<</Dests<</Kids[<</Names[(a)<</D[3 0 R]>>]>>]>>>>",
			[]string{"/Title(First part)/Dest(a)/Next 11 0 R", "/Title(Second: the end)/Dest/b/First 12 0 R",
				"/Title(Detail)/Dest/b"},
			"1 First part @ 1 First par,2 Found by its size @ Found by it,1 Second: the end @ Chapter 2\n\n,2 Detail @ Detail\n\nLas"},
		{"to no page, without a title and in a loop", "",
			[]string{"/Title(Detail)/Next 11 0 R", "/Dest[6 0 R]/Next 12 0 R", "/Title(Detail)/Dest[2 0 R]/Next 13 0 R",
				"/Title(Detail)/Dest[9]/Next 14 0 R", "/Title(Detail)/Dest/c/First 10 0 R/Next 10 0 R"}, bySize},
		{"titles that are not on the page", "", []string{"/Title(Cover)/Dest[3 0 R]/Next 11 0 R",
			"/Title(7)/Dest[3 0 R]"}, bySize},
	}
	for _, tt := range tests {
		x := mustRead(t, outlined(tt.catalog, tt.entries...).bytes())
		var got []string
		for _, h := range x.Headings {
			s := fmt.Sprintf("%d %s", h.Level, h.Text)
			if tt.want != bySize {
				text := x.Body[h.Offset:]
				s += " @ " + text[:min(len(text), 11)]
			}
			got = append(got, s)
		}
		if got := strings.Join(got, ","); got != tt.want {
			t.Errorf("%s: headings\n%q, want\n%q", tt.name, got, tt.want)
		}
	}
}
