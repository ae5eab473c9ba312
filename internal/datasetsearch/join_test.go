package datasetsearch

import (
	"strings"
	"testing"
)

func TestOverlap(t *testing.T) {
	para := "This is a sentence of many words. "
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"one", "two", 0},
		{"a\n}", "}\nb", 0}, // chance
		{"text\n## Setup it", "## Setup it\nmore", 11},
		{"x " + para, para + "y", len(para)},
		{para + para, para + para, 2 * len(para)},
		{"same", "same", 4},
		{strings.Repeat("a", 100_000), strings.Repeat("a", 100_000) + "b", maxOverlap},
		{"the end of it is", "of it is more", 0}, // too short
	} {
		if got := overlap(test.a, test.b); got != test.want {
			t.Errorf("overlap(%.20q, %.20q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

func FuzzOverlap(f *testing.F) {
	f.Add("one two three four five", "three four five six seven")
	f.Fuzz(func(t *testing.T, a, b string) {
		n := overlap(a, b)
		if n > len(b) || !strings.HasSuffix(a, b[:n]) {
			t.Errorf("overlap(%q, %q) = %d", a, b, n)
		}
	})
}
