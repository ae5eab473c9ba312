package analysis_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
)

// terms returns wanted terms.
func terms(ts ...string) *analysis.Wanted { return analysis.NewWanted(ts, nil) }

// bracketed puts the spans of a text in brackets.
func bracketed(text string, spans []analysis.Span) string {
	var b strings.Builder
	at := 0
	for _, s := range spans {
		b.WriteString(text[at:s.Start] + "[" + text[s.Start:s.End] + "]")
		at = s.End
	}
	return b.String() + text[at:]
}

func TestDigest(t *testing.T) {
	filler := strings.Repeat("lorem ipsum dolor ", 20)
	tests := []struct {
		name, text string
		want       *analysis.Wanted
		size       int
		digest     string
	}{
		{"empty", "", terms("a"), 20, ""},
		{"blank", " \n\t ", terms("a"), 20, ""},
		{"no terms", "The quick brown fox jumps", nil, 15, "The quick brown…"},
		{"no match", "  The quick\n\nbrown fox jumps", terms("zebra"), 15, "The quick brown…"},
		{"whole text", "The quick brown fox", terms("fox"), 40, "The quick brown [fox]"},
		{"stems", "He was running and runs", terms("run"), 40, "He was [running] and [runs]"},
		{"no function words", "the fox and the hound", terms("the", "hound"), 40, "the fox and the [hound]"},
		{"only function words", "the fox and the hound", terms("the", "and"), 40, "[the] fox [and] [the] hound"},
		{"prefix", "the theory of thermals", analysis.NewWanted(nil, []string{"the"}), 40,
			"the [theory] of [thermals]"},
		{"prefix of function words", "the fox and they", analysis.NewWanted(nil, []string{"the"}), 40,
			"[the] fox and [they]"},
		{"prefix and term", "the fox thinks", analysis.NewWanted([]string{"fox"}, []string{"th"}), 40,
			"the [fox] [thinks]"},
		{"middle", filler + "the needle lies here " + filler, terms("needl"), 30, "…the [needle] lies here lorem…"},
		{"end", filler + "the needle", terms("needl"), 30, "…lorem ipsum dolor the [needle]"},
		{"most terms", "alpha alpha alpha " + filler + "alpha beta " + filler, terms("alpha", "beta"), 20,
			"…[alpha] [beta] lorem…"},
		{"most matches", "alpha " + filler + "alpha x alpha " + filler, terms("alpha"), 25,
			"…dolor [alpha] x [alpha] lorem…"},
		{"bigrams as one", "日本語の全文検索エンジンです", terms("全文", "文検", "検索"), 40, "日本語の[全文検索]エンジンです"},
		{"one kanji", "価値と値段の値", terms("値"), 40, "価[値]と[値]段の[値]"},
		{"one kana, half width", "ﾃﾞｰﾀ", terms("デ"), 40, "[ﾃﾞ]ｰﾀ"},
		{"cut CJK", strings.Repeat("あ", 30) + "検索" + strings.Repeat("い", 30), terms("検索"), 10, "…ああ[検索]いいいいいい…"},
		{"accents", "Un café noir", terms("cafe"), 40, "Un [café] noir"},
		{"long word is cut", strings.Repeat("x", 50), nil, 10, "xxxxxxxxxx…"},
		{"long match is cut", "a " + strings.Repeat("x", 100), terms(strings.Repeat("x", 64)), 10, "…[xxxxxxxxxx]…"},
		{"control characters", "one\x00two\x1b[31m", nil, 40, "one two [31m"},
		{"invalid UTF-8", "one\xfftwo", terms("two"), 40, "one\uFFFD[two]"},
		{"blanks at both ends", "\n one two \n", terms("two"), 40, "one [two]"},
		{"exact size", "one two three", nil, 13, "one two three"},
		{"one less", "one two three", nil, 12, "one two…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := bracketed(analysis.Digest(tt.text, analysis.English, tt.want, tt.size)); got != tt.digest {
				t.Errorf("Digest(%q) = %q, want %q", tt.text, got, tt.digest)
			}
		})
	}
}

func FuzzDigest(f *testing.F) {
	addTexts(f)
	f.Add("alpha beta gamma 検索と値段 ﾃﾞｰﾀ \x00\xff the end")
	f.Fuzz(func(t *testing.T, s string) {
		list := []string{"値", "search"}
		n := 0
		for tk := range analysis.Tokens(s, analysis.English) {
			if n++; n%3 == 0 {
				list = append(list, tk.Text)
			}
		}
		want := terms(list...)
		for _, size := range []int{1, 7, 40} {
			text, spans := analysis.Digest(s, analysis.English, want, size)
			if !utf8.ValidString(text) {
				t.Fatalf("Digest(%q, %d) = %q is not valid UTF-8", s, size, text)
			}
			at := 0
			for _, m := range spans {
				if m.Start < at || m.End <= m.Start || m.End > len(text) || !utf8.ValidString(text[m.Start:m.End]) {
					t.Fatalf("Digest(%q, %d) = %q, %v, want spans in order and in the text", s, size, text, spans)
				}
				at = m.End
			}
			text = strings.TrimSuffix(strings.TrimPrefix(text, "…"), "…")
			if n := utf8.RuneCountInString(text); n > size+2 || n > size && !strings.Contains(s, "…") {
				t.Fatalf("Digest(%q, %d) = %q has %d runes", s, size, text, n)
			}
		}
	})
}

func BenchmarkDigest(b *testing.B) {
	text := strings.Repeat(corpus, 10)
	b.Run("early", func(b *testing.B) {
		for b.Loop() {
			analysis.Digest(text, analysis.English, terms("crawler", "knowhow"), 240)
		}
	})
	b.Run("one term absent", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			analysis.Digest(text, analysis.English, terms("administr", "zebra"), 240)
		}
	})
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct{ text, wanted, want string }{
		{"Reports and a report", "report", "[Reports] and a [report]"},
		{"全文検索の設定", "検索", "全文[検索]の設定"},
		{"nothing", "report", "nothing"},
		{"", "report", ""},
	} {
		got, at := "", 0
		for _, s := range analysis.Matches(tt.text, analysis.English, analysis.NewWanted(termsOf(tt.wanted), nil)) {
			got += tt.text[at:s.Start] + "[" + tt.text[s.Start:s.End] + "]"
			at = s.End
		}
		if got += tt.text[at:]; got != tt.want {
			t.Errorf("Matches(%q, %q) = %q, want %q", tt.text, tt.wanted, got, tt.want)
		}
	}
	if got := analysis.Matches("a", analysis.English, nil); got != nil {
		t.Errorf("Matches() without anything wanted = %v", got)
	}
}
