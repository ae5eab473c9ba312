package index_test

import (
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"

	"github.com/google/go-cmp/cmp"
)

// Documents with the same text are one hit if they are near in meaning, too.
func TestDistinctNear(t *testing.T) {
	e := &topics{id: "topics"}
	x := openWith(t, t.TempDir(), e)
	put(t, x, append(garage(), doc("a", "copy.md", "Garage", garage()[0].Text),
		doc("a", "mirror.md", "Clinic", garage()[1].Text))...)
	embedAll(t, x, e)
	for text, want := range map[string]int{"someone repairs broken car engines": 3, "the physician sees some patients": 1} {
		q := search.Query{Text: query.MustParse(text), Distinct: true, Num: 10}
		p := page(t, x, q)
		if p.Total != want || len(p.Hits) != want {
			t.Errorf("Search(%q) = %q of %d, want %d", text, names(p), p.Total, want)
		}
		q.Start = want
		if p = page(t, x, q); len(p.Hits) > 0 {
			t.Errorf("Search(%q) = %q behind the last one", text, names(p))
		}
	}
}

// Documents with the same text are one hit and count once, in totals, in allWords
// and in facets. Others are named only if they are searched and match. Empty
// texts are not the same.
func TestDistinct(t *testing.T) {
	x := open(t, t.TempDir())
	licence := "Permission is granted to copy the walrus.\n\nNo warranty of any kind."
	put(t, x,
		doc("a", "LICENSE", "Licence", licence),
		doc("a", "lib/COPYING", "Zebra", licence),
		doc("b", "LICENSE", "Licence", licence),
		doc("a", "other.md", "Other", "A walrus has permission."),
		doc("a", "empty.md", "Walrus", ""), doc("a", "void.md", "Walrus", ""))
	type result struct {
		total, all int
		also       map[string][]string // by label and path
		labels     int                 // documents counted by label
	}
	for _, tt := range []struct {
		name string
		q    search.Query
		want result
	}{
		{"not distinct", search.Query{Text: query.MustParse("warranty")}, result{total: 3, labels: 3}},
		{"a word", search.Query{Text: query.MustParse("warranty"), Distinct: true},
			result{total: 1, labels: 1, also: map[string][]string{"a:LICENSE": {"LICENSE", "lib/COPYING"}}}},
		{"one label", search.Query{Text: query.MustParse("warranty"), Distinct: true, Labels: []string{"a"}},
			result{total: 1, labels: 1, also: map[string][]string{"a:LICENSE": {"lib/COPYING"}}}},
		{"another label", search.Query{Text: query.MustParse("warranty"), Distinct: true, Labels: []string{"b"}},
			result{total: 1, labels: 1}},
		{"a tag", search.Query{Text: query.MustParse("warranty"), Distinct: true, Tags: []string{"collection:a"}},
			result{total: 1, labels: 1, also: map[string][]string{"a:LICENSE": {"lib/COPYING"}}}},
		{"those that match", search.Query{Text: query.MustParse("title:zebra OR other"), Distinct: true},
			result{total: 2, labels: 2}},
		{"some words", search.Query{Text: query.MustParse("walrus granted zebra"), Distinct: true},
			result{total: 4, all: 1, labels: 4, also: map[string][]string{"a:lib/COPYING": {"LICENSE", "LICENSE"}}}},
		{"by time", search.Query{Text: query.MustParse("warranty"), Distinct: true,
			Sort: []search.SortKey{{Field: "timestamp", Desc: true}}},
			result{total: 1, labels: 1, also: map[string][]string{"a:LICENSE": {"LICENSE", "lib/COPYING"}}}},
		{"everything", search.Query{Distinct: true}, result{total: 4, labels: 4,
			also: map[string][]string{"a:LICENSE": {"LICENSE", "lib/COPYING"}}}},
		{"everything of a label", search.Query{Distinct: true, Labels: []string{"a"}},
			result{total: 4, labels: 4, also: map[string][]string{"a:LICENSE": {"lib/COPYING"}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.q.Num, tt.q.Facets = 10, &search.Facets{Fields: []string{"label"}}
			p := page(t, x, tt.q)
			got := result{total: p.Total, all: p.AllWords}
			for _, h := range p.Hits {
				if h.Also == nil {
					continue
				}
				if got.also == nil {
					got.also = map[string][]string{}
				}
				got.also[h.Labels[0]+":"+h.Path] = h.Also
			}
			for _, c := range p.Facets.Fields[0].Counts {
				got.labels += c.Count
			}
			if len(p.Hits) != got.total {
				t.Errorf("%d hits, want %d", len(p.Hits), got.total)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
	// A changed text, and a document with a known text, are seen.
	put(t, x, doc("a", "other.md", "Other", licence), doc("a", "new.md", "New", "An emu."),
		doc("b", "new.md", "New", "An emu."))
	for text, want := range map[string]int{"warranty": 1, "emu": 1} {
		if p := page(t, x, search.Query{Text: query.MustParse(text), Distinct: true, Num: 10}); p.Total != want {
			t.Errorf("%s: %d documents, want %d", text, p.Total, want)
		}
	}
	put(t, x, doc("a", "other.md", "Other", "A walrus has permission."))

	// A change of a document is seen.
	if err := x.Apply(t.Context(), []document.Change{{Delete: &document.Ref{Label: "a",
		Path: "LICENSE"}}}); err != nil {
		t.Fatal(err)
	}
	p := page(t, x, search.Query{Text: query.MustParse("warranty"), Distinct: true, Num: 10})
	if p.Total != 1 || !cmp.Equal(p.Hits[0].Also, []string{"lib/COPYING"}) {
		t.Errorf("after a deletion: total %d, also %q, want 1 and lib/COPYING", p.Total, p.Hits[0].Also)
	}
}
