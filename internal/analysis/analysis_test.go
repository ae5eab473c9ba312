package analysis_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
)

func tokenTexts(s string) []string {
	var texts []string
	for t := range analysis.Tokens(s, analysis.English) {
		texts = append(texts, t.Text)
	}
	return texts
}

func TestTokens(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"no words", " -- !? \t\n", ""},
		{"stems", "Configuring the configured configurations", "configur the configur configur"},
		{"numbers", "go1.26 x86_64 3,000", "go1 26 x86 64 3 000"},
		{"capitals", "HTTP/2 Server IDs", "http 2 server id"},
		{"accents", "Café cafe\u0301 naïve Łódź Straße œuvre", "cafe cafe naiv lodz strass oeuvr"},
		{"dotted i", "İstanbul ISTANBUL", "istanbul istanbul"},
		{"full width", "Ｇｏ１．２６ ＡＰＩ", "go1 26 api"},
		{"ligature", "ﬁle oﬃce", "file offic"},
		{"apostrophes", "don't Don’t DON'T", "dont dont dont"},
		{"clitics", "dog's we'll I'm they've you're he'd", "dog we i they you he"},
		{"other apostrophes", "O'Reilly l'application rock'n'roll 'quoted' can''t x'",
			"o reilli l applic rock n roll quot can t x"},
		{"apostrophe before CJK", "don't検索", "dont 検索 索"},
		{"apostrophe and more", "it'so it's2", "it so it s2"},
		{"soft hyphen", "infor\u00admation", "inform"},
		{"variation selector", "葛\U000E0100城市", "葛城 城市 市"},
		{"two kanji", "検索", "検索 索"},
		{"one kanji", "値", "値"},
		{"runs", "全文検索エンジン", "全文 文検 検索 索エ エン ンジ ジン ン"},
		{"runs and words", "SQLite検索の3章、設定", "sqlite 検索 索の の 3 章 設定 定"},
		{"half-width kana", "ﾃﾞｰﾀﾍﾞｰｽ", "デー ータ タベ ベー ース ス"},
		{"decomposed kana", "か\u3099く", "がく く"},
		{"prolonged sound and middle dot", "サーバー・ログ", "サー ーバ バー ー ログ グ"},
		{"iteration marks", "人々 〆切 二〇", "人々 々 〆切 切 二〇 〇"},
		{"squared words", "㍿", "株式 式会 会社 社"},
		{"hangul", "검색 엔진", "검색 색 엔진 진"},
		{"hangul jamo", "\u1100\u1161\u11a8", "각"},
		{"thai", "ภาษาไทย", "ภา าษ ษา าไ ไท ทย ย"},
		{"cyrillic", "Поиск й", "поиск й"},
		{"greek", "Αναζήτηση ΑΝΑΖΉΤΗΣΗ ΑΝΑΖΗΤΗΣΗ αναζήτηση ΐ", "αναζητηση αναζητηση αναζητηση αναζητηση ι"},
		{"arabic marks stay", "كِتاب", "كِتاب"},
		{"mark without a letter", "\u0301 a", "a"},
		{"keycap", "1\uFE0F\u20E3", "1"},
		{"invalid UTF-8", "ab\xffcd\xe3\x81 ef", "ab cd ef"},
		{"fraction", "1½", "11 2"},
		{"long word", strings.Repeat("ab1", 50), strings.Repeat("ab1", 21) + "a"},
		{"long word of letters", strings.Repeat("x", 1000) + " y", strings.Repeat("x", 64) + " y"},
		{"long accented word", strings.Repeat("é", 70), strings.Repeat("e", 64)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(tokenTexts(tt.in), " "); got != tt.want {
				t.Errorf("Tokens(%q) = %q, want %q", tt.in, got, tt.want)
			}
			var tokens []string
			for x := range analysis.Analyze(tt.in, analysis.English) {
				if x.Token != "" && !x.Beside {
					tokens = append(tokens, x.Token)
				}
			}
			if got := strings.Join(tokens, " "); got != tt.want {
				t.Errorf("Analyze(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestTokenFields(t *testing.T) {
	const in = "Ｔｈｅ Dogs' café’s 検索"
	type token struct {
		Text, Surface, Original string
		CJK                     bool
	}
	var got []token
	for tk := range analysis.Tokens(in, analysis.English) {
		got = append(got, token{tk.Text, tk.Surface, in[tk.Start:tk.End], tk.CJK})
	}
	want := []token{
		{"the", "the", "Ｔｈｅ", false},
		{"dog", "dogs", "Dogs", false},
		{"cafe", "cafe", "café’s", false},
		{"検索", "検索", "検索", true},
		{"索", "索", "索", true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Tokens(%q) (-want +got):\n%s", in, diff)
	}
}

func TestTokensStops(t *testing.T) {
	for _, in := range []string{"one two three", "検索検索検索", "é é é", "x² ½ é検索"} {
		n := 0
		for range analysis.Tokens(in, analysis.English) {
			n++
			break
		}
		if n != 1 {
			t.Errorf("Tokens(%q) yielded %d tokens before the loop ended, want 1", in, n)
		}
	}
}

// termsOf returns the terms of s in English.
func termsOf(s string) []string {
	for _, terms := range analysis.Variants(s, []analysis.Language{analysis.English}, false) {
		return terms
	}
	return nil
}

func TestVariantsInEnglish(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"...", nil},
		{"検索", []string{"検索"}},
		{"値", []string{"値"}},
		{"全文検索", []string{"全文", "文検", "検索"}},
		{"検索。", []string{"検索"}},
		{"検索 engine", []string{"検索", "索", "engin"}},
		{"engine 検索", []string{"engin", "検索"}},
		{"engine 値", []string{"engin", "値"}},
		{"検索 値", []string{"検索", "索", "値"}},
		{"full-text", []string{"full", "text"}},
		{"検", []string{"検"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, termsOf(tt.in)); diff != "" {
			t.Errorf("terms of %q (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestLone(t *testing.T) {
	for term, want := range map[string]bool{"値": true, "検索": false, "a": false, "": false, "ー": true} {
		if got := analysis.Lone(term); got != want {
			t.Errorf("Lone(%q) = %v, want %v", term, got, want)
		}
	}
}

func TestIsCJK(t *testing.T) {
	for _, r := range "検索あアーヽ々〇ｱ\U00020000검ไ\u0e31ຂက\u1781ㄅ" {
		if r == 'ｱ' { // is folded to ア first
			continue
		}
		if !analysis.IsCJK(r) {
			t.Errorf("IsCJK(%q) = false, want true", r)
		}
	}
	for _, r := range "aéßЖα5・。、「（　゠๏ \u0301" {
		if analysis.IsCJK(r) {
			t.Errorf("IsCJK(%q) = true, want false", r)
		}
	}
}

func TestAnalyze(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"Configuring a Café I", []string{"configuring", "café"}},
		{"don't dog's", []string{"dont", "dog"}},
		{"全文検索エンジンのサーバー設定", []string{"全文検索", "エンジン", "サーバー", "設定"}},
		{"すーぱー値", nil},
		{"ﾃﾞｰﾀと人々", []string{"データ", "人々"}},
		{"검색 엔진을", []string{"검색", "엔진을"}},
		{strings.Repeat("x", 40) + " " + strings.Repeat("y", 41), []string{strings.Repeat("x", 40)}},
		{strings.Repeat("漢", 20) + " " + strings.Repeat("漢", 21), []string{strings.Repeat("漢", 20)}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, words(tt.in)); diff != "" {
			t.Errorf("Analyze(%q) words (-want +got):\n%s", tt.in, diff)
		}
	}
	for range analysis.Analyze("one two 検索 設定", analysis.English) {
		break
	}
}

// words returns the words of s as people write them.
func words(s string) (all []string) {
	for x := range analysis.Analyze(s, analysis.English) {
		if x.Word != "" {
			all = append(all, x.Word)
		}
	}
	return all
}

func TestLower(t *testing.T) {
	for in, want := range map[string]string{
		"Straße Ångström!": "straße ångström!", "ＡＢｃ\u00a0ﾃﾞ": "abc デ", "plain text-1": "plain text-1",
		"q\u0307": "q\u0307",
	} {
		if got := analysis.Lower(in); got != want {
			t.Errorf("Lower(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestStopwordsAreTheirOwnStems(t *testing.T) {
	words := strings.Fields("a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with")
	if len(words) != 33 {
		t.Fatalf("the list has %d words, want 33", len(words))
	}
	for _, w := range words {
		if got := tokenTexts(w); !analysis.StopToken(w) || !slices.Equal(got, []string{w}) {
			t.Errorf("StopToken(%q) = %v, Tokens = %q; want true and the word itself", w, analysis.StopToken(w), got)
		}
	}
	if analysis.StopToken("search") {
		t.Error(`StopToken("search") = true, want false`)
	}
}

// The terms of every pair of kanji in a text are found in sequence among its
// tokens, and every single kanji is found as a prefix, so a search finds what a
// substring search would find.
func TestJapaneseSubstrings(t *testing.T) {
	const text = "全文検索サーバFessは、Elasticsearchの設定を管理者が3分で行う。値段表。京都と東京都"
	rs := []rune(text)
	tokens := tokenTexts(text)
	for n := 1; n <= 5; n++ {
		for i := 0; i+n <= len(rs); i++ {
			sub := rs[i : i+n]
			if slices.ContainsFunc(sub, func(r rune) bool { return !analysis.IsCJK(r) }) {
				continue
			}
			if found := termsOf(string(sub)); !consecutive(tokens, found) {
				t.Errorf("terms %q of %q are not in sequence in %q", found, string(sub), tokens)
			}
		}
	}
	for _, absent := range []string{"索検", "索サF", "表京", "文索"} {
		if consecutive(tokens, termsOf(absent)) {
			t.Errorf("terms %q of %q are in sequence in a text that does not contain it", termsOf(absent), absent)
		}
	}
}

// consecutive reports whether tokens contain the terms in sequence. The last
// term is matched as a prefix if it is a single CJK character.
func consecutive(tokens, terms []string) bool {
	if len(terms) == 0 {
		return true
	}
	last := len(terms) - 1
	for i := 0; i+len(terms) <= len(tokens); i++ {
		if !slices.Equal(tokens[i:i+last], terms[:last]) {
			continue
		}
		if tokens[i+last] == terms[last] || analysis.Lone(terms[last]) &&
			strings.HasPrefix(tokens[i+last], terms[last]) {
			return true
		}
	}
	return false
}

func TestConcurrentUse(t *testing.T) {
	text := strings.Repeat("Searching indexed documents quickly, 検索 and réindexing. ", 200)
	want := strings.Join(tokenTexts(text), " ")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got := strings.Join(tokenTexts(text), " "); got != want {
				t.Error("Tokens yields different tokens when it is called concurrently")
			}
		})
	}
	wg.Wait()
}

func addTexts(f *testing.F) {
	for _, s := range []string{"", "Full-text search, don't dog's", "検索エンジン値 3章", "ﾃﾞｰﾀ が か\u3099 é e\u0301 ½ ㍿",
		"ab\xff\xe3\x81", "İ ß ﬁ \u0301\u0302", "검색 ภาษาไทย", "1\uFE0F\u20E3 葛\U000E0100城", "x\u00ady can't’s''"} {
		f.Add(s)
	}
}

func FuzzTokens(f *testing.F) {
	addTexts(f)
	f.Fuzz(func(t *testing.T, s string) {
		border := func(i int) bool { return i == len(s) || utf8.RuneStart(s[i]) || !utf8.ValidString(s) }
		var tokens []analysis.Token
		start := 0
		for tk := range analysis.Tokens(s, analysis.English) {
			if tk.Start < start || tk.End <= tk.Start || tk.End > len(s) || !border(tk.Start) || !border(tk.End) {
				t.Fatalf("Tokens(%q): bad offsets in %+v", s, tk)
			}
			if tk.Text == "" || utf8.RuneCountInString(tk.Surface) > 64 {
				t.Fatalf("Tokens(%q): bad length of %+v", s, tk)
			}
			for _, r := range tk.Text + tk.Surface {
				if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '〇' {
					t.Fatalf("Tokens(%q): %q in %+v", s, r, tk)
				}
			}
			start = tk.Start
			tokens = append(tokens, tk)
		}
		texts := tokenTexts(s)
		for i := range tokens {
			for j := i; j < min(i+4, len(tokens)); j++ {
				if !wordBorders(s, tokens, i, j) {
					continue
				}
				sub := s[tokens[i].Start:tokens[j].End]
				if found := termsOf(sub); !consecutive(texts, found) {
					t.Fatalf("terms %q of %q are not in sequence in %q, tokens of %q", found, sub, texts, s)
				}
			}
		}
	})
}

// wordBorders reports whether tokens i to j of s begin and end at word borders:
// not inside one character that stands for several words, such as ½, and not
// next to an apostrophe or an invisible character whose meaning depends on the
// text beyond the tokens.
func wordBorders(s string, tokens []analysis.Token, i, j int) bool {
	overlap := func(a, b analysis.Token) bool { return a.End > b.Start && !(a.CJK && b.CJK) }
	if i > 0 && (overlap(tokens[i-1], tokens[i]) || tokens[i-1].Start == tokens[i].Start) ||
		j+1 < len(tokens) && (overlap(tokens[j], tokens[j+1]) || tokens[j].Start == tokens[j+1].Start) {
		return false
	}
	for k := i; k < j; k++ {
		if overlap(tokens[k], tokens[k+1]) {
			return false
		}
	}
	after, _ := utf8.DecodeRuneInString(s[tokens[j].End:])
	return !unicode.IsMark(after) && !unicode.Is(unicode.Cf, after) && !unicode.IsLetter(after) || analysis.IsCJK(after)
}

var corpus = strings.Repeat("Full-text search in the embedded index: the analyzer folds letters, cuts endings and keeps positions. "+
	"Configure the crawler (see the administrator's guide), then restart the server with `knowhow serve docs`.\n", 500)

var corpusJA = strings.Repeat("全文検索サーバの設定は、管理画面の「システム」から行います。データベースとの接続を確認してください。\n", 500)

func benchmarkTokens(b *testing.B, text string) {
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		n := 0
		for range analysis.Tokens(text, analysis.English) {
			n++
		}
		if n == 0 {
			b.Fatal("no tokens")
		}
	}
}

func BenchmarkTokensEnglish(b *testing.B)  { benchmarkTokens(b, corpus) }
func BenchmarkTokensJapanese(b *testing.B) { benchmarkTokens(b, corpusJA) }
func BenchmarkTokensAccented(b *testing.B) {
	benchmarkTokens(b, strings.Repeat("Où est le café à côté de l'église ? Über die Brücke gehört es schön grüßen. ",
		500))
}

func BenchmarkAnalyze(b *testing.B) {
	b.SetBytes(int64(len(corpus)))
	for b.Loop() {
		for range analysis.Analyze(corpus, analysis.English) {
		}
	}
}
