package pdf

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// pageList returns the labels of pages with the beginning of their texts.
func pageList(x *Text) []string {
	var list []string
	for _, p := range x.Pages {
		text := x.Body[p.Offset:]
		list = append(list, p.Label+" "+text[:min(len(text), 4)])
	}
	return list
}

func TestPageLabels(t *testing.T) {
	tests := []struct{ name, labels, want string }{
		{"none", "", "1 Tex0,2 Tex1,3 Tex2,4 Tex3"},
		{"front matter", "<</Nums[0<</S/r>>2<</S/D>>]>>", "i Tex0,ii Tex1,1 Tex2,2 Tex3"},
		{"prefix and start", "<</Nums[0<</S/A/St 26>>2<</S/D/P(B-)/St 9>>3<</P(End)>>]>>",
			"Z Tex0,AA Tex1,B-9 Tex2,End Tex3"},
		{"tree", "<</Kids[<</Nums[2<</S/R/St 1994>>]>><</Nums[0<</S/a>>]>>]>>",
			"a Tex0,b Tex1,MCMXCIV Tex2,MCMXCV Tex3"},
		{"pages before the first range, and without a label", "<</Nums[1<</S/r>>2<<>>]>>",
			"1 Tex0,i Tex1,3 Tex2,4 Tex3"},
		{"numbers too large for the style", "<</Nums[0<</S/r/St 4000>>2<</S/a/St 99999999>>]>>",
			"4000 Tex0,4001 Tex1,1000000 Tex2,1000001 Tex3"},
		{"nonsense", "<</Nums[(a) 5 -1<</S/r>>99<</S/r>>1 null]>>", "1 Tex0,2 Tex1,3 Tex2,4 Tex3"},
		{"loop", "5 0 R", "1 Tex0,2 Tex1,3 Tex2,4 Tex3"},
	}
	for _, tt := range tests {
		m := newMaker(helvetica, "BT /F1 10 Tf 72 700 Td (Tex0.) Tj ET")
		m.add("<</Kids[5 0 R 5 0 R]>>")
		for i := 1; i < 4; i++ {
			m.page(fmt.Sprintf("BT /F1 10 Tf 72 700 Td (Tex%d.) Tj ET", i))
		}
		if tt.labels != "" {
			m.objects[0] = "<</Type/Catalog/Pages 2 0 R/PageLabels " + tt.labels + ">>"
		}
		if got := strings.Join(pageList(mustRead(t, m.bytes())), ","); got != tt.want {
			t.Errorf("%s: pages %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A page begins inside a sentence or a word that continues from the previous
// page. A page without text has no place.
func TestPageOffsets(t *testing.T) {
	m := newMaker(helvetica, "BT /F1 10 Tf 72 700 Td (A sentence that ends on the second of the) Tj 0 -12 Td (pages: elephants and hippopo-) Tj ET")
	m.page("BT /F1 10 Tf 72 700 Td (tamuses swim.) Tj ET")
	m.page("")
	m.page("BT /F1 10 Tf 72 700 Td (Last.) Tj ET")
	want := []string{"1 A se", "2 tamu", "4 Last"}
	if got := pageList(mustRead(t, m.bytes())); !slices.Equal(got, want) {
		t.Errorf("pages %q, want %q", got, want)
	}
}
