package index_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// alike are labels that a tokenizer might confuse.
var alike = []string{"docs", "Docs", "docs-2", "docs_2", "docs.2", "docs 2", "t1", "t2", `do"cs`, "docs*", "ドキュメント",
	"dócs"}

// alikeIndex holds two documents of each of the labels, which are their tags
// too.
func alikeIndex(t testing.TB) (x search.Service, labelOf map[string]string) {
	all, labelOf := []document.Document{}, map[string]string{}
	for i := range alike {
		all = append(all, alikeDocuments(i)...)
	}
	for _, d := range all {
		labelOf[d.ID] = d.Label
	}
	idx := open(t, t.TempDir())
	put(t, idx, all...)
	return idx, labelOf
}

// alikeDocuments returns the documents of one label.
func alikeDocuments(i int) []document.Document {
	docs := []document.Document{
		doc(alike[i], "one", "budget t1", "budget zeppelin own"+string(rune('a'+i))+"word"),
		doc(alike[i], "two", "walrus", "a walrus and a budget 検索\n\nt1 t2 label docs"),
	}
	for j := range docs {
		docs[j].Tags = []string{alike[i]}
	}
	return docs
}

// results returns the documents of a page with their scores, by path.
func results(p *search.Page) map[string]float64 {
	m := map[string]float64{}
	for _, h := range p.Hits {
		m[h.Path] = h.Score
	}
	return m
}

func TestLabelsApart(t *testing.T) {
	x, labelOf := alikeIndex(t)
	for _, label := range alike {
		for _, text := range []string{"", "budget", "budget zeppelin walrus", "t1", "*:*", "budget OR walrus"} {
			p, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text), Labels: []string{label}, Num: 100,
				Facets: &search.Facets{Fields: []string{"label"}, Queries: []string{"walrus", "label:docs OR budget"}}})
			if err != nil {
				t.Errorf("Search(%q, %q) = %v", text, label, err)
				continue
			}
			if p.Total == 0 || p.Total != len(p.Hits) || p.Total > 2 {
				t.Errorf("Search(%q, %q) = total %d, %d hits, want 1 or 2", text, label, p.Total, len(p.Hits))
			}
			for _, h := range p.Hits {
				if labelOf[h.ID] != label {
					t.Errorf("Search(%q, %q) found a document of label %q", text, label, labelOf[h.ID])
				}
			}
			if c := p.Facets.Fields[0].Counts; len(c) != 1 || c[0].Value != label || c[0].Count != p.Total {
				t.Errorf("Search(%q, %q) counts %v by label, want only its own", text, label, c)
			}
			for _, c := range p.Facets.Queries {
				if c.Count > p.Total {
					t.Errorf("Search(%q, %q) counts %d for %q, want at most %d", text, label, c.Count, c.Value, p.Total)
				}
			}
		}
		list, err := x.Suggest(t.Context(), search.SuggestQuery{Prefix: "own", Num: 100, Labels: []string{label}})
		if err != nil || len(list) != 1 || len(list[0].Labels) != 1 || list[0].Labels[0] != label {
			t.Errorf("Suggest(own, %q) = %v, %v, want one word of that label", label, list, err)
		}
		words, err := x.PopularWords(t.Context(), search.WordsQuery{Labels: []string{label}})
		for _, w := range words {
			if strings.HasPrefix(w, "own") && list[0].Text != w {
				t.Errorf("PopularWords(%q) = %v, which holds a word of another label", label, words)
			}
		}
		if err != nil || len(words) == 0 {
			t.Errorf("PopularWords(%q) = %v, %v, want words", label, words, err)
		}
	}
}

// pieces are the parts of the queries of FuzzIsolation.
var pieces = []string{"budget", "walrus", "zeppelin", "検索", "t1", "t2", "OR", "AND", "NOT", "&&", "||", "!", "+", "-",
	"(", ")", `"`, `\`,
	"*", "?", "~", "~1", "^2", ":", "label:", "label:docs", "label:Docs", `label:"docs-2"`, "title:", "tags:", "text:",
	"rowid:", "fts", "NEAR(", "{title text} :",
	"[a TO b]", "[", "{", "}", "]", "TO", "*:*", "lang:en", "doc_id:*", "inurl:", "site:", "timestamp:[* TO *]",
	"allintitle:", "allinurl:", "'", ";", "--", "\u3000", "\t", "\x00"}

// TestNoLabels checks that an empty list of labels admits no document, also after
// a search without a restriction.
func TestNoLabels(t *testing.T) {
	x, _ := alikeIndex(t)
	for range 2 {
		for _, labels := range [][]string{nil, {}} {
			p, err := x.Search(t.Context(), search.Query{Text: query.MustParse("budget"), Labels: labels, Num: 100})
			if err != nil {
				t.Fatalf("Search() = %v", err)
			}
			if want := map[bool]int{true: 2 * len(alike), false: 0}[labels == nil]; p.Total != want {
				t.Errorf("Search(budget, %#v) = %d, want %d", labels, p.Total, want)
			}
		}
	}
}

// FuzzIsolation runs any query within one label or tag and checks that it never
// returns documents of another one, and that the result for a label is that of
// an index that has nothing else, scores included.
func FuzzIsolation(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 400 {
		var b strings.Builder
		for range 1 + r.IntN(7) {
			b.WriteString(pieces[r.IntN(len(pieces))])
			if r.IntN(3) > 0 {
				b.WriteByte(' ')
			}
		}
		f.Add(b.String(), uint8(r.IntN(len(alike))), r.IntN(3) == 0)
	}
	x, labelOf := alikeIndex(f)
	alone := map[string]search.Service{}
	for i, label := range alike {
		idx := open(f, f.TempDir())
		put(f, idx, alikeDocuments(i)...)
		alone[label] = idx
	}
	f.Fuzz(func(t *testing.T, text string, n uint8, byTag bool) {
		label := alike[int(n)%len(alike)]
		asked, err := query.Parse(text)
		if err != nil {
			return
		}
		q := search.Query{Text: asked, Num: 100, Facets: &search.Facets{Fields: []string{"label"},
			Queries: []string{text}}}
		if byTag {
			q.Tags = []string{label}
		} else {
			q.Labels = []string{label}
		}
		p, err := x.Search(t.Context(), q)
		if err != nil {
			if !errors.Is(err, errkind.Invalid) || strings.Contains(err.Error(), "fts5") {
				t.Errorf("Search(%q) = %v, want a page or an error of kind Invalid", text, err)
			}
			return
		}
		if p.Total > 2 || p.Total != len(p.Hits) {
			t.Errorf("Search(%q, %q) = total %d, %d hits, want at most 2", text, label, p.Total, len(p.Hits))
		}
		for _, h := range p.Hits {
			if labelOf[h.ID] != label {
				t.Errorf("Search(%q, %q) found a document of label %q", text, label, labelOf[h.ID])
			}
		}
		if !byTag {
			want, err := alone[label].Search(t.Context(), q)
			if err != nil || !cmp.Equal(results(p), results(want)) {
				t.Errorf("Search(%q, %q): %v (-alone +among others)\n%s", text, label, err,
					cmp.Diff(results(want), results(p)))
			}
		}
		for _, c := range p.Facets.Fields[0].Counts {
			if c.Value != label {
				t.Errorf("Search(%q, %q) counts label %q", text, label, c.Value)
			}
		}
		for _, c := range p.Facets.Queries {
			if c.Count > 2 {
				t.Errorf("Search(%q, %q) counts %d, want at most 2", text, label, c.Count)
			}
		}
	})
}
