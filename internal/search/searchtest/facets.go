package searchtest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// facets checks counts by field and by query.
func (s *suite) facets(t *testing.T) {
	tests := []struct {
		text   string
		labels []string
	}{{text: ""}, {text: "budget"}, {text: "budget", labels: []string{"finance"}}, {labels: []string{"hr", "docs"}},
		{text: "helicopter"}}
	for _, test := range tests {
		keep := hasText(test.text)
		if test.labels != nil {
			keep = and(keep, inLabels(test.labels))
		}
		p := s.search(t, search.Query{Text: query.MustParse(test.text), Labels: test.labels, Num: 1,
			Facets: &search.Facets{
				Fields:  []string{"filetype", "label", "mimetype"},
				Queries: []string{"zeppelin", "filetype:html", "walrus OR zeppelin", "timestamp:[2024-03-01 TO *]"},
			}})
		if p.Facets == nil {
			t.Errorf("Search(%q, %v).Facets = nil, want counts", test.text, test.labels)
			continue
		}
		wantFields := []counted{
			{"filetype", s.count(keep, func(d document.Document) string { return d.FileType })},
			{"label", s.count(keep, func(d document.Document) string { return d.Label })},
			{"mimetype", s.count(keep, func(d document.Document) string { return d.MIMEType })},
		}
		if got := fieldCounts(p.Facets); !cmp.Equal(got, wantFields) {
			t.Errorf("Search(%q, %v) by field: (-want +got)\n%s", test.text, test.labels, cmp.Diff(wantFields, got))
		}
		wantQueries := []search.Count{
			{Value: "zeppelin", Count: len(s.want(and(keep, has("zeppelin"))))},
			{Value: "filetype:html", Count: len(s.want(and(keep,
				func(d document.Document) bool { return d.FileType == "html" })))},
			{Value: "walrus OR zeppelin", Count: len(s.want(and(keep, or(has("walrus"), has("zeppelin")))))},
			{Value: "timestamp:[2024-03-01 TO *]", Count: len(s.want(and(keep, func(d document.Document) bool {
				return d.Modified.Format("2006-01-02") >= "2024-03-01"
			})))},
		}
		if !cmp.Equal(p.Facets.Queries, wantQueries) {
			t.Errorf("Search(%q, %v) by query: (-want +got)\n%s", test.text, test.labels,
				cmp.Diff(wantQueries, p.Facets.Queries))
		}
	}
	if p := s.search(t, search.Query{Num: 1}); p.Facets != nil {
		t.Errorf("Search without facets has %+v, want nil", p.Facets)
	}
}

// facetConditions checks sizes, least counts, orders, and what is refused.
func (s *suite) facetConditions(t *testing.T) {
	values := func(f search.Facets) []string {
		t.Helper()
		f.Fields = []string{"filetype"}
		got := []string{}
		for _, c := range s.search(t, search.Query{Num: 1, Facets: &f}).Facets.Fields[0].Counts {
			got = append(got, c.Value)
		}
		return got
	}
	// The corpus contains 34 txt, 4 html, 1 pdf and 1 word.
	tests := []struct {
		facets search.Facets
		want   []string
	}{
		{search.Facets{Size: 2}, []string{"txt", "html"}},
		{search.Facets{MinDocCount: 2}, []string{"txt", "html"}},
		{search.Facets{Sort: "term.asc"}, []string{"html", "pdf", "txt", "word"}},
		{search.Facets{Sort: "term.desc"}, []string{"word", "txt", "pdf", "html"}},
		{search.Facets{Sort: "term.asc", Size: 1}, []string{"html"}},
		{search.Facets{Sort: "count.asc", MinDocCount: 2}, []string{"html", "txt"}},
		{search.Facets{Sort: "count.desc", Size: 1}, []string{"txt"}},
	}
	for _, test := range tests {
		if got := values(test.facets); !cmp.Equal(got, test.want) {
			t.Errorf("Search with %+v = %q, want %q", test.facets, got, test.want)
		}
	}
	refused := map[string]search.Facets{
		"facets.field": {Fields: []string{"nosuch"}},
		"facets.query": {Queries: []string{`"open`}},
		"facets.sort":  {Fields: []string{"label"}, Sort: "bogus"},
		"facets.size":  {Fields: []string{"label"}, Size: -1},
	}
	if !slices.Contains(s.svc.FacetFields(), "lang") {
		refused["facets.field"] = search.Facets{Fields: []string{"lang"}}
	} else if got := s.search(t, search.Query{Facets: &search.Facets{Fields: []string{"lang"}}}).Facets.Fields; !cmp.Equal(got,
		[]search.FieldCounts{{Name: "lang", Counts: []search.Count{{Value: "en", Count: 36},
			{Value: "ja", Count: 4}}}}) {
		t.Errorf("Search by lang = %+v, want 36 en and 4 ja", got)
	}
	for want, f := range refused {
		if _, err := s.svc.Search(t.Context(), search.Query{Num: 1, Facets: &f}); argument(err) != want {
			t.Errorf("Search with %+v = %v, want an error about argument %s", f, err, want)
		}
	}
}

// counted are the counts of a field without their order, which ties leave open.
type counted struct {
	Name   string
	Counts map[string]int
}

// count counts the documents that keep accepts by value, except the empty
// value.
func (s *suite) count(keep func(document.Document) bool, value func(document.Document) string) map[string]int {
	m := map[string]int{}
	for _, d := range s.docs {
		if keep(d) && value(d) != "" {
			m[value(d)]++
		}
	}
	return m
}

// fieldCounts gives counts the shape of counted.
func fieldCounts(f *search.FacetCounts) []counted {
	var all []counted
	for _, field := range f.Fields {
		c := counted{field.Name, map[string]int{}}
		for _, x := range field.Counts {
			c.Counts[x.Value] += x.Count
		}
		all = append(all, c)
	}
	return all
}
