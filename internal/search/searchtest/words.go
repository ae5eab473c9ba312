package searchtest

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// exactWords are the words that cases search for unchanged; they must differ
// enough from every other word of the corpus.
var exactWords = [...]string{"budget", "travel", "quarterly", "walrus", "invoice", "zeppelin", "handbook", "vacation",
	"xylophone", "infrastructure", "alpenglow", "barometer", "audit"}

// words checks the results of each form of query.
func (s *suite) words(t *testing.T) {
	titled := func(word string) func(document.Document) bool {
		return func(d document.Document) bool { return has(word)(document.Document{Title: d.Title}) }
	}
	tests := []struct {
		query  string
		labels []string
		want   func(document.Document) bool
	}{
		{query: "budget", want: has("budget")},
		{query: "BUDGET", want: has("budget")},
		{query: "budget travel", want: has("budget", "travel")},
		{query: "travel AND budget", want: has("budget", "travel")},
		{query: "+travel +budget", want: has("budget", "travel")},
		{query: `"quarterly budget"`, want: has("quarterly budget")},
		{query: `"budget quarterly"`, want: has("budget quarterly")},
		{query: "walrus OR zeppelin", want: or(has("walrus"), has("zeppelin"))},
		{query: "walrus || zeppelin", want: or(has("walrus"), has("zeppelin"))},
		{query: "budget NOT travel", want: and(has("budget"), not(has("travel")))},
		{query: "budget -travel", want: and(has("budget"), not(has("travel")))},
		{query: "(walrus OR zeppelin) AND budget", want: and(or(has("walrus"), has("zeppelin")), has("budget"))},
		{query: "infra*", want: has("infra")},
		{query: "title:handbook", want: titled("handbook")},
		{query: "title:budget", want: titled("budget")},
		{query: "filetype:pdf", want: func(d document.Document) bool { return d.FileType == "pdf" }},
		{query: "budget filetype:html", want: and(has("budget"),
			func(d document.Document) bool { return d.FileType == "html" })},
		{query: "label:hr zeppelin", want: inLabel("hr", has("zeppelin"))},
		{query: "timestamp:[2024-03-01 TO 2024-06-30]", want: func(d document.Document) bool {
			day := d.Modified.Format("2006-01-02")
			return "2024-03-01" <= day && day <= "2024-06-30"
		}},
		// The words stand in the first and in the last chunk of one text.
		{query: "alpenglow barometer", want: has("alpenglow", "barometer")},
		{query: "alpenglow NOT barometer", want: and(has("alpenglow"), not(has("barometer")))},
		{query: "*:*", want: has()},
		{query: "", want: has()},
		{query: "helicopter", want: has("helicopter")},
		{query: "budget", labels: []string{"finance"}, want: inLabel("finance", has("budget"))},
		{query: "zeppelin", labels: []string{"finance"}, want: inLabel("finance", has("zeppelin"))},
		{query: "walrus OR zeppelin", labels: []string{"hr"}, want: inLabel("hr", has("zeppelin"))},
	}
	for _, test := range tests {
		want := s.want(test.want)
		if got := s.names(t, test.query, test.labels...); !gocmp.Equal(got, want) {
			t.Errorf("Search(%q, %v): (-want +got)\n%s", test.query, test.labels, gocmp.Diff(want, got))
		}
	}
}

func and(a, b func(document.Document) bool) func(document.Document) bool {
	return func(d document.Document) bool { return a(d) && b(d) }
}

func or(a, b func(document.Document) bool) func(document.Document) bool {
	return func(d document.Document) bool { return a(d) || b(d) }
}

func not(a func(document.Document) bool) func(document.Document) bool {
	return func(d document.Document) bool { return !a(d) }
}

// japanese checks that words of two characters are found in every position,
// in a word or across two.
func (s *suite) japanese(t *testing.T) {
	for _, query := range []string{"検索", "予算", "京都", "索引", "休暇", "全文検索", "手順"} {
		want := s.want(has(query))
		if len(want) == 0 {
			t.Fatalf("no document of the corpus contains %q", query)
		}
		if got := s.names(t, query); !gocmp.Equal(got, want) {
			t.Errorf("Search(%q): (-want +got)\n%s", query, gocmp.Diff(want, got))
		}
	}
	// An ideographic space separates words.
	want := s.want(has("索引", "検索"))
	if got := s.names(t, "索引\u3000検索"); !gocmp.Equal(got, want) {
		t.Errorf("Search with U+3000: (-want +got)\n%s", gocmp.Diff(want, got))
	}
}

// questions checks what search.Relax finds: the words of a question need not stand
// together, and a word that a query excludes never comes back.
func (s *suite) questions(t *testing.T) {
	yosan, kyuka, manual := s.placeOf("finance/yosan.txt"), s.placeOf("hr/kyuka.html"), s.placeOf("docs/manual.txt")
	tests := []struct {
		query string
		want  []string // all of them
		first bool     // there may be others
	}{
		{query: "alpenglow -barometer", want: []string{}},
		{query: "alpenglow NOT barometer", want: []string{}},
		{query: "alpenglow -walrus", want: []string{manual}},
		{query: "zebrafish alpenglow", want: []string{manual}},
		{query: "休暇の事務所", want: []string{kyuka}},
		{query: "来年度の東京都", want: []string{yosan}},
		{query: "申請の規則はどこですか", want: []string{kyuka}},
		{query: "三月に何が決まりますか", want: []string{yosan}},
		{query: "在東京都有几天", want: []string{yosan}, first: true},
		{query: `zebrafish lemur "quarterly budget" quokka`, want: []string{s.placeOf("finance/budget-2024.md")}, first: true},
		{query: `zebrafish lemur "budget quarterly" quokka`, want: []string{s.placeOf("finance/reversed.txt")}, first: true},
		{query: "(zebrafish alpenglow -barometer", want: []string{}},
		{query: "(zebrafish alpenglow -walrus", want: []string{manual}},
	}
	for _, test := range tests {
		text, err := query.Read(test.query)
		if err != nil {
			t.Fatal(err)
		}
		p, err := search.Relax(t.Context(), s.svc, search.Query{Text: text, Num: 100})
		if err != nil {
			t.Errorf("Search(%q) = %v", test.query, err)
			continue
		}
		got := s.places(t, p.Hits)
		if test.first {
			got = got[:min(len(got), len(test.want))]
		}
		if !gocmp.Equal(got, test.want) {
			t.Errorf("Search(%q) with Relax: (-want +got)\n%s", test.query, gocmp.Diff(test.want, got))
		}
	}
}

// filters checks that conditions on fields restrict what a question finds, and that some
// of its words are still enough.
func (s *suite) filters(t *testing.T) {
	some := or(has("walrus"), or(has("zeppelin"), has("fjord")))
	ofType := func(name string) func(document.Document) bool {
		return func(d document.Document) bool { return d.FileType == name }
	}
	tests := []struct {
		query string
		want  func(document.Document) bool
	}{
		{"walrus zeppelin fjord", some},
		{"walrus zeppelin fjord filetype:pdf", and(some, ofType("pdf"))},
		{`filetype:"html" walrus zeppelin fjord`, and(some, ofType("html"))},
		{"walrus (filetype:pdf OR filetype:html) zeppelin fjord", and(some, or(ofType("pdf"), ofType("html")))},
		{"walrus, zeppelin, fjord? -filetype:html", and(some, not(ofType("html")))},
		{"walrus zeppelin fjord timestamp:[2024-03-01 TO *] filetype:txt", and(and(some, ofType("txt")),
			func(d document.Document) bool { return d.Modified.Format("2006-01-02") >= "2024-03-01" })},
		{"walrus zeppelin fjord label:hr", inLabel("hr", some)},
		{"budget travel filetype:html", and(has("budget", "travel"), ofType("html"))},
		{"walrus zeppelin fjord filetype:excel", not(has())},
	}
	for _, test := range tests {
		text, err := query.Read(test.query)
		if err != nil {
			t.Fatal(err)
		}
		p, err := search.Relax(t.Context(), s.svc, search.Query{Text: text, Num: 100})
		if err != nil {
			t.Errorf("Search(%q) = %v", test.query, err)
			continue
		}
		got := s.places(t, p.Hits)
		slices.Sort(got)
		if want := s.want(test.want); !gocmp.Equal(got, want) || p.Total != len(want) {
			t.Errorf("Search(%q) with Relax finds %d: (-want +got)\n%s", test.query, p.Total, gocmp.Diff(want, got))
		}
	}
}

// suggest checks completion.
func (s *suite) suggest(t *testing.T) {
	texts := func(q search.SuggestQuery) map[string][]string {
		t.Helper()
		list, err := s.svc.Suggest(t.Context(), q)
		if err != nil {
			t.Fatalf("Suggest(%+v) = %v", q, err)
		}
		if len(list) > q.Num {
			t.Errorf("Suggest(%+v) gives %d words, want at most %d", q, len(list), q.Num)
		}
		m := map[string][]string{}
		for _, x := range list {
			m[x.Text] = x.Labels
		}
		return m
	}
	label := cmp.Or(s.o.Label, "hr")
	got := texts(search.SuggestQuery{Prefix: "zepp", Num: 10})
	if labels, ok := got["zeppelin"]; !ok || !gocmp.Equal(labels, []string{label}) {
		t.Errorf("Suggest(zepp) = %v, want zeppelin of label %s", got, label)
	}
	if got := texts(search.SuggestQuery{Prefix: "zepp", Num: 10, Labels: []string{label}}); len(got) != 1 {
		t.Errorf("Suggest(zepp) in %s = %v, want one word", label, got)
	}
	for _, q := range []search.SuggestQuery{
		{Prefix: "zepp", Num: 10, Labels: []string{"finance"}},
		{Prefix: "zepp", Num: 10, Labels: []string{"nosuch"}},
		{Prefix: "qqqq", Num: 10},
	} {
		if got := texts(q); len(got) != 0 {
			t.Errorf("Suggest(%+v) = %v, want none", q, got)
		}
	}
	texts(search.SuggestQuery{Prefix: "b", Num: 1})
}

// popularWords checks the list of popular words. The service decides which
// words these are.
func (s *suite) popularWords(t *testing.T) {
	for _, q := range []search.WordsQuery{{}, {Seed: "7"}, {Labels: []string{"finance"}}} {
		words, err := s.svc.PopularWords(t.Context(), q)
		if err != nil {
			t.Errorf("PopularWords(%+v) = %v", q, err)
		}
		for _, w := range words {
			if w == "" {
				t.Errorf("PopularWords(%+v) = %q, want no empty word", q, words)
			}
		}
	}
	q := search.WordsQuery{Labels: []string{"nosuch"}}
	if words, err := s.svc.PopularWords(t.Context(), q); err != nil || len(words) != 0 {
		t.Errorf("PopularWords(%+v) = %q, %v, want none", q, words, err)
	}
}
