package cid

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	tests := []struct {
		ordering string
		cids     []int
		want     string
	}{
		{"Japan1", []int{3284, 3722, 1952, 34, 7888, 8295}, "日本語A。XIII"},
		{"GB1", []int{4559, 3795, 98}, "中文。"},
		{"CNS1", []int{2615, 4263}, "國語"},
		{"Korea1", []int{3296, 1238}, "한글"},
		{"Japan1", []int{0, -1, 1 << 20}, ""},
	}
	for _, tt := range tests {
		c := Load("Adobe", tt.ordering)
		var got string
		for _, cid := range tt.cids {
			got += c.Text(cid)
		}
		if got != tt.want {
			t.Errorf("%s, CIDs %v: text = %q, want %q", tt.ordering, tt.cids, got, tt.want)
		}
	}
	for _, name := range [][2]string{{"Adobe", "Identity"}, {"Adobe", ""}, {"", ""}, {"Own", "Japan1"},
		{"Adobe", "../cid"}} {
		if c := Load(name[0], name[1]); c != nil {
			t.Errorf("Load(%q, %q) is not nil", name[0], name[1])
		}
	}
}

// TestFiles reads the files to their ends.
func TestFiles(t *testing.T) {
	for name, want := range map[string]int{"CNS1": 19179, "GB1": 30284, "Japan1": 23060, "Korea1": 18352} {
		c := Load("Adobe", name)
		texts := 0
		for i := range c.first {
			s := c.Text(i)
			if s != "" {
				texts++
			}
			if !utf8.ValidString(s) {
				t.Errorf("%s: the text %q of CID %d is not valid", name, s, i)
			}
			for _, r := range s {
				if unicode.Is(unicode.Co, r) || unicode.Is(unicode.Variation_Selector, r) || unicode.IsControl(r) {
					t.Errorf("%s: CID %d has the character %U", name, i, r)
				}
			}
		}
		if len(c.first) != want || texts < want*98/100 {
			t.Errorf("%s: %d CIDs, %d with a text; want %d, nearly all with a text", name, len(c.first), texts, want)
		}
		if size := 4*len(c.first) + 64*len(c.rest); size > Size {
			t.Errorf("%s takes %d bytes, more than Size", name, size)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for range b.N {
		Load("Adobe", "Japan1")
	}
}
