package chunk

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// pieces returns the texts of the chunks and checks that they cover text.
func pieces(t *testing.T, text string, cs []document.Chunk) []string {
	t.Helper()
	var out []string
	at := 0
	for i, c := range cs {
		if c.Offset != at || c.Length <= 0 || c.Offset+c.Length > len(text) {
			t.Fatalf("chunk %d is %d+%d of %d bytes, want it to begin at %d", i, c.Offset, c.Length, len(text), at)
		}
		at += c.Length
		out = append(out, text[c.Offset:at])
	}
	if at != len(text) {
		t.Fatalf("the chunks end at %d, want %d", at, len(text))
	}
	return out
}

func TestSplit(t *testing.T) {
	long := strings.Repeat("word ", 10)
	tests := []struct {
		name     string
		text     string
		headings []document.Heading
		o        Options
		want     []string
		paths    []string
	}{
		{"empty", "", nil, Options{}, nil, nil},
		{"small", "one\n\ntwo", nil, Options{}, []string{"one\n\ntwo"}, []string{""}},
		{"paragraphs", "aaaa bbbb\n\ncccc dddd\n\neeee ffff", nil, Options{Size: 12, Max: 14},
			[]string{"aaaa bbbb\n\n", "cccc dddd\n\n", "eeee ffff"}, []string{"", "", ""}},
		{"empty line with blanks", "aaaa bbbb\n \t\ncccc dddd eeee", nil, Options{Size: 14, Max: 15},
			[]string{"aaaa bbbb\n \t\n", "cccc dddd eeee"}, []string{"", ""}},
		{"paragraph somewhat over the size", "aaaa bbbb cccc\n\ndddd eeee ffff gggg", nil, Options{Size: 12, Max: 20},
			[]string{"aaaa bbbb cccc\n\n", "dddd eeee ffff gggg"}, []string{"", ""}},
		{"lines", "aaaa bbbb\ncccc dddd\neeee", nil, Options{Size: 12, Max: 12},
			[]string{"aaaa bbbb\n", "cccc dddd\n", "eeee"}, []string{"", "", ""}},
		{"sentences", "Aaa bbb. Ccc ddd eee? Fff ggg", nil, Options{Size: 14, Max: 14},
			[]string{"Aaa bbb. ", "Ccc ddd eee? ", "Fff ggg"}, []string{"", "", ""}},
		{"Japanese sentences", "今日は。明日は雨です", nil, Options{Size: 18, Max: 20},
			[]string{"今日は。", "明日は雨です"}, []string{"", ""}},
		{"words", "aaaa bbbb cccc", nil, Options{Size: 7, Max: 7}, []string{"aaaa ", "bbbb ", "cccc"},
			[]string{"", "", ""}},
		{"no word border", "aaaaaaaaaa", nil, Options{Size: 4, Max: 4}, []string{"aaaa", "aaaa", "aa"},
			[]string{"", "", ""}},
		{"runes", "ééééé", nil, Options{Size: 5, Max: 5}, []string{"éé", "éé", "é"}, []string{"", "", ""}},
		{"rune longer than the size", "日本", nil, Options{Size: 1, Max: 4}, []string{"日", "本"}, []string{"", ""}},
		{"headings", "intro intro\n\n# A\n\n" + long + "\n\n## B\n\n" + long + "\n\n# C\n\n" + long,
			[]document.Heading{{Offset: 13, Level: 1, Text: "A"}, {Offset: 70, Level: 2, Text: "B"},
				{Offset: 128, Level: 1, Text: "C"}}, Options{Size: 40, Max: 80},
			[]string{"intro intro\n\n", "# A\n\n" + long + "\n\n", "## B\n\n" + long + "\n\n", "# C\n\n" + long},
			[]string{"", "A", "A > B", "C"}},
		{"a short section is joined to the next", "# A\n\n## B\n\n" + long,
			[]document.Heading{{Offset: 0, Level: 1, Text: "A"}, {Offset: 5, Level: 2, Text: "B"}},
			Options{Size: 60, Max: 80}, []string{"# A\n\n## B\n\n" + long}, []string{"A"}},
		{"headings outside are ignored", "é text",
			[]document.Heading{{Offset: -1, Level: 1, Text: "x"}, {Offset: 1, Level: 1, Text: "y"},
				{Offset: 99, Level: 1, Text: "z"}},
			Options{}, []string{"é text"}, []string{""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cs := Split(tt.text, tt.headings, tt.o)
			if diff := cmp.Diff(tt.want, pieces(t, tt.text, cs)); diff != "" {
				t.Errorf("Split(%q) (-want +got):\n%s", tt.text, diff)
			}
			var paths []string
			for _, c := range cs {
				paths = append(paths, c.Heading)
			}
			if diff := cmp.Diff(tt.paths, paths); diff != "" {
				t.Errorf("headings of Split(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestPathIsBounded(t *testing.T) {
	var p path
	for level := 1; level <= 20; level++ {
		p.enter(document.Heading{Level: level, Text: strings.Repeat("é", 200) + "\n"})
	}
	if s := p.String(); len(s) > maxPath || !utf8.ValidString(s) || !strings.Contains(s, pathSep) {
		t.Errorf("path = %q (%d bytes), want at most %d bytes of valid UTF-8 with two parts", s, len(s), maxPath)
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		name   string
		window string
		max    int
		last   bool
		want   string
	}{
		{"empty", "", 10, true, ""},
		{"fits", "aaa\n\nbbb", 10, true, "aaa\n\nbbb"},
		{"fits, but is not the last", "aaa\n\nbbb", 10, false, "aaa\n\n"},
		{"paragraph before line", "aaaa\n\nb\ncc dd", 10, false, "aaaa\n\n"},
		{"paragraph in the first half is ignored", "a\n\nbbb ccc ddd", 12, false, "a\n\nbbb ccc "},
		{"line", "aaaa bb\ncc ddd", 10, false, "aaaa bb\n"},
		{"sentence", "aaaa b. cc ddd", 12, false, "aaaa b. "},
		{"blank", "aaaa bbbb cccc", 12, false, "aaaa bbbb "},
		{"runes", "日本語日本語", 10, false, "日本語"},
		{"max is at least a rune", "😀😀", 1, false, "😀"},
		{"incomplete rune at the end", "日\xe6\x9c", 10, false, "日"},
		{"only an incomplete rune", "\xe6\x9c", 10, false, ""},
		{"invalid UTF-8", "\x80\x80\x80\x80\x80\x80", 4, false, "\x80\x80\x80\x80"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.window[:Cut(tt.window, tt.max, tt.last)]; got != tt.want {
				t.Errorf("Cut(%q, %d, %t) returns %q, want %q", tt.window, tt.max, tt.last, got, tt.want)
			}
		})
	}
}

func TestHash(t *testing.T) {
	// The example of FIPS 180-2, appendix B.1.
	const want = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if got := Hash("abc"); got != want {
		t.Errorf("Hash(abc) = %s, want %s", got, want)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("# A\n\ntext text. text\n\n## B\n\n日本語。", 0, 6, 20, 40)
	f.Add("\x80\xff日本", 1, 1, 0, 0)
	f.Fuzz(func(t *testing.T, text string, h1, h2, size, max int) {
		size, max = size%5000, max%5000
		cs := Split(text, []document.Heading{{Offset: h2, Level: 2, Text: text}, {Offset: h1, Level: 1, Text: "A"}},
			Options{Size: size, Max: max})
		limit := max
		if limit <= 0 {
			limit = defaultMax
		}
		for _, p := range pieces(t, text, cs) {
			if len(p) > limit && len(p) > minMax {
				t.Errorf("chunk of %d bytes, want at most %d", len(p), limit)
			}
			if utf8.ValidString(text) && !utf8.ValidString(p) {
				t.Errorf("chunk %q cuts a rune", p)
			}
		}
	})
}

func FuzzCut(f *testing.F) {
	f.Add("one two.\n\nthree 日本語。four\nfive", 10, 5)
	f.Add("\xf0\x9f\x98\x80\x80\x80", 0, 0)
	f.Fuzz(func(t *testing.T, text string, max, more int) {
		max %= 5000
		limit := max
		if limit < minMax {
			limit = minMax
		}
		more = limit + (more%100+100)%100 // a window of at least the maximum
		var b strings.Builder
		for rest := text; rest != ""; {
			window := rest[:min(len(rest), more)]
			n := Cut(window, max, len(window) == len(rest))
			if n <= 0 || n > limit {
				t.Fatalf("Cut(%q, %d) = %d, want 1 to %d", window, max, n, limit)
			}
			if m := Cut(rest, max, true); m != n && len(rest) > limit {
				t.Fatalf("Cut depends on the window: %d of %d bytes, %d of %d bytes", n, len(window), m, len(rest))
			}
			if utf8.ValidString(text) && !utf8.ValidString(rest[:n]) {
				t.Fatalf("piece %q cuts a rune", rest[:n])
			}
			b.WriteString(rest[:n])
			rest = rest[n:]
		}
		if b.String() != text {
			t.Errorf("the joined pieces differ from the text")
		}
	})
}

func BenchmarkSplit(b *testing.B) {
	text := strings.Repeat("Some words make a sentence. And another one follows it here.\n\n", 2000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Split(text, nil, Options{})
	}
}
