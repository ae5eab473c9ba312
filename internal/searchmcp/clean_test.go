package searchmcp

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// The work on a text is bounded, not its outcome alone.
func TestDigestOfLongText(t *testing.T) {
	for _, in := range []string{strings.Repeat("words ", 1<<20), strings.Repeat("日本", 1<<20),
		strings.Repeat("\xbf", 1<<20)} {
		got := digest(in, 240)
		if n := len(got); n > 360 || n < 200 || !strings.HasSuffix(got, "…") {
			t.Errorf("digest of %.12q repeated has %d bytes and ends with %q, want about 240 and an ellipsis", in, n,
				got[len(got)-6:])
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
	f.Add("Annual test\u202e report\x00", 20)
	f.Add("日本語\U000e0041\u200d\u200d\u200d", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = 2 + min(max(n, 0), 1000)
		got := digest(s, n)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > n || len(got) > max(n*3/2, len("…")) {
			t.Errorf("digest(%+q, %d) = %+q: %d runes, %d bytes", s, n, got, utf8.RuneCountInString(got), len(got))
		}
		if again := sanitize.Line(got); again != got {
			t.Errorf("Line(%+q) = %+q, want no change", got, again)
		}
		if strings.IndexFunc(link(s), isHidden) >= 0 {
			t.Errorf("link(%+q) = %+q hides something", s, link(s))
		}
	})
}
