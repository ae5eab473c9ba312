package fessmcp

import (
	"strings"
	"testing"
	"unicode/utf8"
)

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
		{"emoji keeps its joiners", "❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥"},
		{"data hidden in selectors", "🔥\U000e0101\U000e0102\U000e0103\U000e0104", "🔥\U000e0101\U000e0102"},
		{"invalid UTF-8", "a\xffb", "a\ufffdb"},
		{"only invisible", "\u200b \u200b", ""},
		{"letters that look odd stay", "日本語 Ωmega naïve", "日本語 Ωmega naïve"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := line(tt.in); got != tt.want {
				t.Errorf("line(%+q) = %+q, want %+q", tt.in, got, tt.want)
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
		if got := cut(tt.in, tt.runes, tt.bytes); got != tt.want {
			t.Errorf("cut(%q, %d, %d) = %q, want %q", tt.in, tt.runes, tt.bytes, got, tt.want)
		}
	}
}

func TestDigestLosesMarks(t *testing.T) {
	in := "the <strong>test</strong> of <b>tags</b>\nand\tlines"
	if got, want := digest(in, 240), "the test of <b>tags</b> and lines"; got != want {
		t.Errorf("digest(%q) = %q, want %q", in, got, want)
	}
}

// The work on a text is bounded, not its outcome alone.
func TestDigestOfLongText(t *testing.T) {
	for _, in := range []string{strings.Repeat("words ", 1<<20), strings.Repeat("日本", 1<<20), strings.Repeat("\xbf", 1<<20)} {
		got := digest(in, 240)
		if n := len(got); n > 360 || n < 200 || !strings.HasSuffix(got, "…") {
			t.Errorf("digest of %.12q repeated has %d bytes and ends with %q, want about 240 and an ellipsis", in, n, got[len(got)-6:])
		}
	}
}

func TestLink(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"https://example.com/a?b=c&d#e", "https://example.com/a?b=c&d#e"},
		{"file:///share/My Report ü.pdf", "file:///share/My Report ü.pdf"},
		{"https://example.com/a\u202eb\n", "https://example.com/a%E2%80%AEb%0A"},
		{"https://example.com/\U000e0041", "https://example.com/%F3%A0%81%81"},
	} {
		if got := link(tt.in); got != tt.want {
			t.Errorf("link(%+q) = %+q, want %+q", tt.in, got, tt.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("Annual <strong>test</strong>\u202e report\x00", 20)
	f.Add("日本語\U000e0041\u200d\u200d\u200d", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = 2 + min(max(n, 0), 1000)
		got := digest(s, n)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > n || len(got) > max(n*3/2, len("…")) {
			t.Errorf("digest(%+q, %d) = %+q: %d runes, %d bytes", s, n, got, utf8.RuneCountInString(got), len(got))
		}
		if again := line(got); again != got {
			t.Errorf("line(%+q) = %+q, want no change", got, again)
		}
		if strings.IndexFunc(link(s), isHidden) >= 0 {
			t.Errorf("link(%+q) = %+q hides something", s, link(s))
		}
	})
}
