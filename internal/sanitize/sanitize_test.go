package sanitize

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// ignorable is Default_Ignorable_Code_Point of Unicode 16.0,
// DerivedCoreProperties.txt.
var ignorable = [][2]rune{
	{0x00ad, 0x00ad}, {0x034f, 0x034f}, {0x061c, 0x061c}, {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f},
	{0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},
	{0xffa0, 0xffa0}, {0xfff0, 0xfff8}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
}

func TestInvisible(t *testing.T) {
	listed := map[rune]bool{}
	for _, span := range ignorable {
		for r := span[0]; r <= span[1]; r++ {
			listed[r] = true
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		switch {
		case listed[r] || unicode.IsControl(r) || r&0xfffe == 0xfffe:
			if !Invisible(r) {
				t.Errorf("Invisible(%U) = false", r)
			}
		case unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S, unicode.M, unicode.Zs):
			if Invisible(r) {
				t.Errorf("Invisible(%U) = true", r)
			}
		}
	}
}

// No character of the set passes on its own, and none after a letter.
func TestNoIgnorableCharacterPasses(t *testing.T) {
	for _, span := range ignorable {
		for r := span[0]; r <= span[1]; r++ {
			in := "a" + string(r) + "b"
			for name, got := range map[string]string{"Line": Line(in), "Text": Text(in)} {
				if got != "ab" {
					t.Errorf("%s(%+q) = %+q, want \"ab\"", name, in, got)
				}
			}
			for name, got := range map[string]string{"Escape": Escape(in), "QuoteJSON": QuoteJSON(in),
				"QuoteYAML": QuoteYAML(in)} {
				if strings.ContainsFunc(got, Invisible) {
					t.Errorf("%s(%+q) = %+q, which has an invisible character", name, in, got)
				}
			}
		}
	}
}

func TestHideUserinfo(t *testing.T) {
	for text, want := range map[string]string{
		"https://me:pass@host/x and ftp://me@host": "https://***@host/x and ftp://***@host",
		"git+HTTPS://me:p@ss:1@host":               "git+HTTPS://***@host",
		"mail me@example.com":                      "mail me@example.com",
		"https://host/a@b":                         "https://host/a@b",
		"a://b 'c@d'":                              "a://b 'c@d'",
	} {
		if got := HideUserinfo(text); got != want {
			t.Errorf("HideUserinfo(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "Annual report", "Annual report"},
		{"blanks", "a  b ", "a b"},
		{"one blank", " ", ""},
		{"white space", "  a\t\tb\r\n c\u00a0\u3000d\u2028e ", "a b c d e"},
		{"control characters", "a\x00b\x1b[31mc\x7f", "ab[31mc"},
		{"bidirectional override", "invoice\u202egpj.exe", "invoicegpj.exe"},
		{"zero width", "a\u200bb\u2060c\ufeffd", "abcd"},
		{"joiners in Latin", "pass\u200dwo\u200crd", "password"},
		{"tag characters", "hi\U000e0049\U000e0067", "hi"},
		{"fillers", "a\u3164b\u115fc", "abc"},
		{"Persian keeps its joiner", "می\u200cخواهم", "می\u200cخواهم"},
		{"Mongolian keeps its selector", "ᠠ\u180b", "ᠠ\u180b"},
		{"emoji keeps its joiners", "❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥"},
		{"selectors after a letter", "א\ufe0fב", "אב"},
		{"data hidden in selectors", "🔥\U000e0101\U000e0102\ufe01\ufe02", "🔥"},
		{"data hidden in joiners", "❤\u200c\u200d\u200c\u200d", "❤\u200c\u200d"},
		{"invalid UTF-8", "a\xffb", "a\ufffdb"},
		{"only invisible", "\u200b \u200b", ""},
		{"letters that look odd stay", "日本語 Ωmega naïve", "日本語 Ωmega naïve"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Line(tt.in); got != tt.want {
				t.Errorf("Line(%+q) = %+q, want %+q", tt.in, got, tt.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "one\n\ntwo", "one\n\ntwo"},
		{"line ends", "a\r\nb\rc\vd\fe\u0085f\u2028g\u2029h", "a\nb\nc\nd\ne\nf\ng\nh"},
		{"blanks", "a  \n \t \n\n\n\tb \n\n", "a\n\n\tb"},
		{"empty lines at the start", "\n\n a", " a"},
		{"hidden", "a\u200bb\n\U000e0041\nc\x1b[2Jd", "ab\n\nc[2Jd"},
		{"invalid UTF-8", "a\xff", "a\ufffd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Text(tt.in); got != tt.want {
				t.Errorf("Text(%+q) = %+q, want %+q", tt.in, got, tt.want)
			}
		})
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		in           string
		runes, bytes int
		want         string
	}{
		{"short", 10, 10, "short"},
		{"exactly ten", 11, 11, "exactly ten"},
		{"one two three", 9, 99, "one two…"},
		{strings.Repeat("x", 50), 10, 99, strings.Repeat("x", 9) + "…"},
		{"日本語日本語", 99, 12, "日本語…"},
		{"日本語日本語", 4, 99, "日本語…"},
	} {
		if got := Cut(tt.in, tt.runes, tt.bytes); got != tt.want {
			t.Errorf("Cut(%q, %d, %d) = %q, want %q", tt.in, tt.runes, tt.bytes, got, tt.want)
		}
	}
}

func TestEscape(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"plain text, 日本語", "plain text, 日本語"},
		{"a\nb\tc", `a\nb\tc`},
		{"\x1b[31mred", `\x1b[31mred`},
		{"a\u202eb\ufe0fc\u3164", `a\u202eb\ufe0fc\u3164`},
		{"a\u00a0b", `a\u00a0b`},
		{"a\xffb", "a\ufffdb"},
	} {
		if got := Escape(tt.in); got != tt.want {
			t.Errorf("Escape(%+q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestQuote(t *testing.T) {
	for _, tt := range []struct{ in, json, yaml string }{
		{`say "hi" \ there`, `"say \"hi\" \\ there"`, `"say \"hi\" \\ there"`},
		{"a\nb\tc\x00", `"a\nb\tc\u0000"`, `"a\nb\tc\u0000"`},
		{"x\U000e0041", `"x\udb40\udc41"`, `"x\U000e0041"`},
		{"a --- b -----", `"a --- b -----"`, `"a \u002d-- b \u002d\u002d\u002d--"`},
	} {
		if got := QuoteJSON(tt.in); got != tt.json {
			t.Errorf("QuoteJSON(%+q) = %s, want %s", tt.in, got, tt.json)
		}
		if got := QuoteYAML(tt.in); got != tt.yaml {
			t.Errorf("QuoteYAML(%+q) = %s, want %s", tt.in, got, tt.yaml)
		}
	}
}

func TestShowJSON(t *testing.T) {
	in := "{\n\t\"a\u200b\": \"\U000e0041\"\r\n}"
	if got, want := string(ShowJSON([]byte(in))), "{\n\t\"a\\u200b\": \"\\udb40\\udc41\"\r\n}"; got != want {
		t.Errorf("ShowJSON(%+q) = %+q, want %+q", in, got, want)
	}
}

func FuzzSanitize(f *testing.F) {
	for _, s := range []string{"", "a b", "❤\ufe0f\u200d🔥", "\xff\xfe", "a\u202eb\n\n\nc", "--- ---", "می\u200cخواهم"} {
		f.Add(s, 10, 20)
	}
	f.Fuzz(func(t *testing.T, s string, runes, bytes int) {
		runes, bytes = max(1, min(runes, 100)), max(3, min(bytes, 400))
		if got := Line(s); Line(got) != got || strings.ContainsAny(got, "\r\n\t") || !utf8.ValidString(got) {
			t.Errorf("Line(%+q) = %+q", s, got)
		}
		if got := Text(s); Text(got) != got || !utf8.ValidString(got) {
			t.Errorf("Text(%+q) = %+q, and Text of that is %+q", s, got, Text(got))
		}
		if got := Short(s, runes, bytes); len(got) > bytes || utf8.RuneCountInString(got) > runes {
			t.Errorf("Short(%+q, %d, %d) = %+q", s, runes, bytes, got)
		}
		if got := Escape(s); strings.ContainsFunc(got, unprintable) {
			t.Errorf("Escape(%+q) = %+q", s, got)
		}
		var back string
		if err := json.Unmarshal([]byte(QuoteJSON(s)), &back); err != nil ||
			back != strings.ToValidUTF8(back, "\ufffd") {
			t.Errorf("QuoteJSON(%+q) = %s: %v", s, QuoteJSON(s), err)
		}
		if got := QuoteYAML(s); strings.Contains(got, "---") || strings.ContainsFunc(got, Invisible) {
			t.Errorf("QuoteYAML(%+q) = %+q", s, got)
		}
	})
}

func TestLines(t *testing.T) {
	for in, want := range map[string]string{
		"":                                    "",
		"a\r\n\r\n\r\n  b \n":                 "a\n\n\n  b \n",
		"\ta\u00a0b":                          "\ta\u00a0b",
		"a\x1b[31mb\u009bc\x07\u202ed":        "a[31mbcd",
		"\u062e\u200c\u0627":                  "\u062e\u200c\u0627",
		"a\xff":                               "a\ufffd",
		"one\u2028two\x0bthree\x0cfour\u0085": "one\ntwo\nthree\nfour\n",
	} {
		if got := Lines(in); got != want {
			t.Errorf("Lines(%q) = %q, want %q", in, got, want)
		}
	}
}
