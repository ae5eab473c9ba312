package index_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

func TestQueries(t *testing.T) {
	x := open(t, t.TempDir())
	long := doc("a", "long", "Long one",
		"The happy sailor lives here.\n\nNobody reads this part.\n\nA tired captain sleeps.")
	cut := doc("a", "cut", "Cut", "one two three four 全文検索 five")
	cut.Chunks = []document.Chunk{{Offset: 0, Length: 8}, {Offset: 8, Length: 14},
		{Offset: 22, Length: len(cut.Text) - 22}}
	html := doc("b", "p.html", "Page", "running dogs")
	html.FileType, html.MIMEType, html.URL, html.Host, html.Lang = "html", "text/html",
		"https://example.com/sub/p.html", "example.com", "de"
	put(t, x, long, cut, html, doc("b", "cafe", "Café", "naïve text with x86 and go1.26"),
		doc("b", "marks", "A [b] * ?", "don't stop"))
	tests := []struct {
		text string
		want []string
	}{
		{"sailor captain", []string{"long"}},
		{`"sailor captain"`, nil},
		{`"tired captain"`, []string{"long"}},
		{`"two three"`, []string{"cut"}},
		{`"one two three four"`, []string{"cut"}},
		{"全文検索", []string{"cut"}},
		{"文検", []string{"cut"}},
		{"検", []string{"cut"}},
		{`"captain tired"~3`, []string{"long"}},
		{`"the lives"~1`, nil},
		{`"the lives"~2`, []string{"long"}},
		{"happy*", []string{"long"}},
		{"happ*", []string{"long"}},
		{"runn*", []string{"p.html"}},
		{"s?ilor", []string{"long"}},
		{"*ailor", []string{"long"}},
		{"sailer~1", []string{"long"}},
		{"sialor~1", []string{"long"}},
		{"sxyzor~", nil},
		{"cafe", []string{"cafe"}},
		{"CAFÉ", []string{"cafe"}},
		{"title:cafe", []string{"cafe"}},
		{"content:cafe", nil},
		{"title:(long OR page)", []string{"long", "p.html"}},
		{"filetype:html", []string{"p.html"}},
		{"filetype:HTML", nil},
		{"filetype:ht*", []string{"p.html"}},
		{"filename:*.html", []string{"p.html"}},
		{"mimetype:text\\/html", []string{"p.html"}},
		{"host:example.com", []string{"p.html"}},
		{"site:example.com\\/sub", []string{"p.html"}},
		{"site:ample.com", nil},
		{"inurl:sub", []string{"p.html"}},
		{"lang:de", []string{"p.html"}},
		{"label:b", []string{"cafe", "marks", "p.html"}},
		{"doc_id:" + long.ID, []string{"long"}},
		{"segment:x", nil},
		{"click_count:0", nil},
		{fmt.Sprintf("content_length:%d", len(html.Text)), []string{"p.html"}},
		{fmt.Sprintf("content_length:[%d TO *] label:a", len(cut.Text)+1), []string{"long"}},
		{fmt.Sprintf("content_length:{%d TO *] label:a", len(cut.Text)), []string{"long"}},
		{"timestamp:2025-01-01 dogs", []string{"p.html"}},
		{"timestamp:[2024 TO 2024] dogs", nil},
		{"timestamp:[* TO now] dogs", []string{"p.html"}},
		{"last_modified:{2025-01-01 TO *] dogs", nil},
		{"created:[now-1h TO now+1h] dogs", nil}, // created is not a search field of Fess, so this is text
		{"NOT label:b", []string{"cut", "long"}},
		{"dogs OR captain", []string{"long", "p.html"}},
		{"dogs^3 OR captain", []string{"long", "p.html"}},
		{"captain - sailor", []string{"long"}},
		{"captain –", []string{"long"}},
		{"don't", []string{"marks"}},
		{"dont", []string{"marks"}},
		{"*", []string{"cafe", "cut", "long", "marks", "p.html"}},
		{"…", nil},
	}
	for _, test := range tests {
		got := find(t, x, search.Query{Text: query.MustParse(test.text)})
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], "/example.com/sub/")
		}
		slices.Sort(got)
		if want := append([]string{}, test.want...); !cmp.Equal(got, want) {
			t.Errorf("Search(%q) = %v, want %v", test.text, got, want)
		}
	}
	for _, text := range []string{"timestamp:yesterday", "content_length:big", "timestamp:[now/q TO *]",
		"a*b*c*d*e*f*g*h*i*j*k", "content:[a TO b]"} {
		if _, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text)}); !errors.Is(err,
			errkind.Invalid) {
			t.Errorf("Search(%q) = %v, want an error of kind Invalid", text, err)
		}
	}
}

// TestJapanese compares the results for phrases, and for words in one script, with a
// substring search in the texts.
func TestJapanese(t *testing.T) {
	const runes = "検索設定認証京都東値サーバーのはを"
	r := rand.New(rand.NewPCG(5, 6))
	all := []rune(runes)
	x, docs := open(t, t.TempDir()), []document.Document{}
	for i := range 60 {
		var b strings.Builder
		for n := range 40 {
			b.WriteRune(all[r.IntN(len(all))])
			if r.IntN(9) == 0 {
				b.WriteString([]string{"。", "\n\n", " abc "}[n%3])
			}
		}
		docs = append(docs, doc("ja", fmt.Sprint(i), "題", b.String()))
	}
	put(t, x, docs...)
	var queries []string
	for _, a := range all {
		queries = append(queries, string(a))
		for _, b := range all {
			queries = append(queries, string(a)+string(b))
		}
	}
	for _, q := range queries {
		want := []string{}
		for _, d := range docs {
			if strings.Contains(d.Text, q) {
				want = append(want, d.Path)
			}
		}
		slices.Sort(want)
		texts := []string{query.Quote(q)}
		if parts, _ := query.Divide([]string{q}); slices.Equal(parts, []string{q}) { // one word
			texts = append(texts, q)
		}
		for _, text := range texts {
			got := find(t, x, search.Query{Text: query.MustParse(text)})
			slices.Sort(got)
			if !cmp.Equal(got, want) {
				t.Errorf("Search(%q): (-want +got)\n%s", text, cmp.Diff(want, got))
			}
		}
	}
}

func TestSomeWords(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x,
		doc("a", "some-two", "Two", "red green red green red green"),
		doc("a", "all-near", "Near", "the red green blue thing"),
		doc("a", "all-far", "Far", "red here\n\ngreen there\n\nblue elsewhere"),
		doc("a", "some-one", "One", "blue"),
		doc("b", "other", "Other", "red green blue"),
		doc("a", "none", "None", "yellow"))
	q := search.Query{Text: query.MustParse("red green blue"), Labels: []string{"a"}}
	p := page(t, x, q)
	if !p.Staged || p.AllWords != 2 || p.Total != 4 {
		t.Errorf("Search(%q) = staged %v, all words %d, total %d, want true, 2, 4", q.Text, p.Staged, p.AllWords,
			p.Total)
	}
	got := find(t, x, q)
	if len(got) == 0 || got[0] != "all-near" {
		t.Errorf("Search(%q) = %v, want all-near first", q.Text, got)
	}
	slices.Sort(got)
	if want := []string{"all-far", "all-near", "some-one", "some-two"}; !cmp.Equal(got, want) {
		t.Errorf("Search(%q) = %v, want %v", q.Text, got, want)
	}
	falls(t, p.Hits)
	q.Sort = []search.SortKey{{Field: "filename"}}
	if got, want := find(t, x, q), []string{"all-far", "all-near", "some-one", "some-two"}; !cmp.Equal(got, want) {
		t.Errorf("Search(%q) by file name = %v, want %v", q.Text, got, want)
	}
	// Fewer words, or words with an operator, are joined by AND.
	for text, want := range map[string]int{"red blue": 2, "(red green blue)": 2, "red AND green AND blue": 2,
		"red OR green OR blue": 4} {
		if p := page(t, x, search.Query{Text: query.MustParse(text), Labels: []string{"a"}}); p.Total != want ||
			p.Staged {
			t.Errorf("Search(%q) = total %d, staged %v, want %d, false", text, p.Total, p.Staged, want)
		}
	}
}

// TestRelaxed checks that a plain query of two words that no document contains
// together finds documents with one of them, within the label, and that other
// queries are not relaxed.
func TestRelaxed(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x, doc("a", "one", "One", "red"), doc("a", "two", "Two", "blue"), doc("b", "other", "Other", "red green"))
	for _, tt := range []struct {
		text    string
		total   int
		relaxed bool
	}{
		{"red blue", 2, true},
		{"green blue", 1, true},
		{"green nothing", 0, false},
		{"red AND blue", 0, false},
		{"(red blue)", 0, false},
		{"red", 1, false},
	} {
		p, err := search.Relax(t.Context(), x, search.Query{Text: query.MustParse(tt.text), Labels: []string{"a"}})
		if err != nil {
			t.Fatal(err)
		}
		if p.Total != tt.total || p.Relaxed != tt.relaxed || p.Staged {
			t.Errorf("Search(%q) = total %d, relaxed %v, staged %v, want %d, %v, false", tt.text, p.Total, p.Relaxed,
				p.Staged, tt.total, tt.relaxed)
		}
	}
}

// falls checks that scores are positive and decrease.
func falls(t *testing.T, hits []search.Hit) {
	t.Helper()
	for i, h := range hits {
		if h.Score <= 0 || i > 0 && h.Score > hits[i-1].Score {
			t.Errorf("hit %d has score %v after %v, want positive and decreasing scores", i, h.Score,
				hits[max(i-1, 0)].Score)
		}
	}
}

// TestPaging reads all pages of many queries and checks that each document
// occurs once and that the total is right.
func TestPaging(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute under the race detector, and has one goroutine")
	}
	x, g := open(t, t.TempDir()), newGenerator()
	g.fill(t, x, 60)
	texts := []string{"", word(0), word(40), word(3) + " " + word(60), word(0) + " " + word(1) + " " + word(2),
		word(1) + " " + word(90) + " " + word(400) + " " + word(7), word(5) + " OR " + word(300),
		word(2) + " -" + word(9), word(30)[:1] + "*", "(" + word(4) + " OR " + word(80) + ") " + word(6),
		"filetype:txt", word(9) + "^2 OR " + word(70)}
	sorts := [][]search.SortKey{nil, {{Field: "score", Desc: true}}, {{Field: "score"}},
		{{Field: "timestamp", Desc: true}},
		{{Field: "filename"}}, {{Field: "content_length"}, {Field: "score"}}, {{Field: "click_count"}}}
	for j, text := range texts {
		for i, sort := range sorts {
			if i > 0 && i != 1+j%(len(sorts)-1) {
				continue // each order with two of the texts
			}
			for _, labels := range [][]string{nil, {"label-1", "label-3"}} {
				q := search.Query{Text: query.MustParse(text), Sort: sort, Labels: labels, Num: 100}
				total := page(t, x, q).Total
				seen := map[string]bool{}
				n := 0
				for _, num := range []int{50} {
					clear(seen)
					for q.Start, q.Num, n = 0, num, 0; ; q.Start += num {
						p := page(t, x, q)
						if p.Total != total {
							t.Fatalf("%q %v %v: Total = %d at %d, want %d", text, sort, labels, p.Total, q.Start, total)
						}
						for _, h := range p.Hits {
							n++
							seen[h.ID] = true
						}
						if len(p.Hits) == 0 {
							break
						}
					}
					if n != total || len(seen) != total {
						t.Errorf("%q %v %v: pages of %d hold %d hits of %d documents, want %d", text, sort, labels,
							num, n, len(seen), total)
					}
				}
			}
		}
	}
}

// TestPagesFit checks that pages are windows on one list.
func TestPagesFit(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute under the race detector, and has one goroutine")
	}
	x, g := open(t, t.TempDir()), newGenerator()
	g.fill(t, x, 400) // so that some words are common
	for _, text := range []string{word(0) + " OR " + word(50), word(0) + " " + word(1) + " " + word(30), word(2)} {
		for _, start := range []int{0, 90, 200} {
			whole := find(t, x, search.Query{Text: query.MustParse(text), Start: start, Num: 60})
			var parts []string
			for off := 0; off < 60; off += 20 {
				parts = append(parts, find(t, x, search.Query{Text: query.MustParse(text), Start: start + off,
					Num: 20})...)
			}
			if !cmp.Equal(whole, append([]string{}, parts...)) {
				t.Errorf("%q from %d: (-one page +three)\n%s", text, start, cmp.Diff(whole, parts))
			}
			falls(t, page(t, x, search.Query{Text: query.MustParse(text), Start: start, Num: 100}).Hits)
		}
	}
}

// TestSortedDigest checks that the digests of a list by a field show the word that
// was searched for, wherever it is in the text.
func TestSortedDigest(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x, doc("docs", "long.txt", "Long", strings.Repeat("filler words of a paragraph\n\n",
		12_000)+"the walrus is at the end"))
	for _, field := range []string{"score", "timestamp"} {
		p := page(t, x, search.Query{Text: query.MustParse("walrus"),
			Sort: []search.SortKey{{Field: field, Desc: true}}})
		if len(p.Hits) != 1 || !strings.Contains(p.Hits[0].Digest.Text, "walrus") ||
			len(p.Hits[0].Digest.Matches) != 1 {
			t.Errorf("Search(walrus) by %s = %+v, want a digest with the word", field, p.Hits)
		}
	}
}

// TestTitledFirst checks that the document whose title is the query comes first,
// however many documents a search asks for.
func TestTitledFirst(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x,
		doc("a", "more.txt", "Walrus and walrus", strings.Repeat("walrus ", 20)),
		doc("a", "titled.txt", "Walrus", strings.Repeat("other words in a long text ", 60)),
		doc("a", "less.txt", "Animals", "One walrus."))
	for n := 1; n <= 3; n++ {
		if got := page(t, x, search.Query{Text: query.MustParse("walrus"), Num: n}).Hits[0].Path; got != "titled.txt" {
			t.Errorf("the first of %d documents is %s, want titled.txt", n, got)
		}
	}
}
