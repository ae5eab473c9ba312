package searchtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// labels checks the condition on labels.
func (s *suite) labels(t *testing.T) {
	for _, labels := range [][]string{{"finance"}, {"hr"}, {"docs"}, {"finance", "hr"}, {"hr", "nosuch"}, {"nosuch"},
		{"HR"}} {
		for _, text := range []string{"", "budget", "*:*"} {
			want := s.want(and(inLabels(labels), hasText(text)))
			if got := s.names(t, text, labels...); !cmp.Equal(got, want) {
				t.Errorf("Search(%q, %v): (-want +got)\n%s", text, labels, cmp.Diff(want, got))
			}
		}
	}
	// Only nil means every label; with an empty list nothing is found.
	if p := s.search(t, search.Query{Labels: []string{}, Num: 10}); len(p.Hits) != 0 || p.Total != 0 {
		t.Errorf("Search with an empty list of labels = %d hits, total %d, want none", len(p.Hits), p.Total)
	}
}

// attacks are queries that try to find documents outside of a label.
var attacks = [...]string{
	"zeppelin OR", "zeppelin ||", "zeppelin\tOR", "zeppelin\nOR", "zeppelin\u3000OR", "zeppelin OR ",
	"NOT", "zeppelin NOT", "zeppelin AND NOT", "-", "zeppelin -", "zeppelin !",
	"zeppelin label:hr OR", "label:hr", "label:hr OR", "OR label:hr", `label:"hr" OR zeppelin`,
	"(zeppelin", "zeppelin)", "zeppelin) OR (label:hr", ") OR (zeppelin", "(zeppelin OR (",
	`zeppelin\`, `\`, `zeppelin OR \`, `\\`, `zeppelin"`, `" OR zeppelin`, `"zeppelin`,
	"*:* OR", "* OR", "NOT label:finance", "-label:finance", "zeppelin OR(label:hr)", "zeppelin OR NOT",
	"zeppelin || label:hr ||", "allintitle:zeppelin OR", "allintitle: vacation OR label:hr OR", "allinurl:hr OR",
	"title:(zeppelin OR", "[zeppelin TO", "{* TO *} OR", "zeppelin^2 OR", "zeppelin~ OR", "z* OR", "?* OR",
	"AND zeppelin OR",
	"OR OR OR", "zeppelin && ", "zeppelin OR && ||", "sort:score zeppelin OR", "zeppelin sort:nope OR",
}

// isolation checks that no query finds a document with a label that was not
// requested, whatever operators it ends with.
func (s *suite) isolation(t *testing.T) {
	for i, text := range slices.Concat(attacks[:], attacks[:]) {
		read := query.Parse
		if i >= len(attacks) {
			read = query.Read
		}
		asked, err := read(text)
		var p *search.Page
		if err == nil {
			p, err = s.svc.Search(t.Context(), search.Query{Text: asked, Labels: []string{"finance"}, Num: 100})
		}
		if err != nil {
			if !errors.Is(err, errkind.Invalid) {
				t.Errorf("Search(%q) = %v, want a page or an error of kind Invalid", text, err)
			}
			continue
		}
		for _, h := range p.Hits {
			if d := s.byID(h.ID); d == nil || d.Label != "finance" {
				t.Errorf("Search(%q) in finance found %+v", text, d)
			}
		}
		if n := len(s.want(inLabel("finance", has()))); p.Total > n {
			t.Errorf("Search(%q) in finance: Total = %d, want at most %d", text, p.Total, n)
		}
	}
	// Operators in the name of a label have no effect either.
	for _, label := range []string{`finance" OR label:"hr`, `finance"`, `fin*`, `*`, ``, `finance\`, "finance OR hr",
		"finance hr"} {
		p, err := s.svc.Search(t.Context(), search.Query{Text: query.MustParse("zeppelin"), Labels: []string{label},
			Num: 100})
		if err == nil && len(p.Hits) > 0 {
			t.Errorf("Search(zeppelin) in label %q found %v, want nothing", label, s.places(t, p.Hits))
		}
	}
}

// listLabels checks the list of labels.
func (s *suite) listLabels(t *testing.T) {
	labels, err := s.svc.Labels(t.Context())
	if err != nil {
		t.Fatalf("Labels() = %v", err)
	}
	var got []string
	for _, l := range labels {
		if l.Name == "" {
			t.Errorf("label %q has no name", l.Value)
		}
		got = append(got, l.Value)
	}
	slices.Sort(got)
	want := []string{"docs", "finance", "hr"}
	if s.o.Label != "" {
		want = []string{s.o.Label}
	}
	if !cmp.Equal(got, want) {
		t.Errorf("Labels() = %q, want %q", got, want)
	}
}

// tags checks that documents are found by all requested tags.
func (s *suite) tags(t *testing.T) {
	if s.o.NoTags {
		if p, err := s.svc.Search(t.Context(), search.Query{Tags: []string{"urgent"}}); !errors.Is(err,
			errkind.Unsupported) {
			t.Errorf("Search with tags = %+v, %v, want an error of kind Unsupported", p, err)
		}
		return
	}
	tagged := func(tags []string) func(document.Document) bool {
		return func(d document.Document) bool {
			has := append(slices.Clone(d.Tags), document.LabelTag(d.Label))
			return !slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(has, tag) })
		}
	}
	for _, tags := range [][]string{{}, {"urgent"}, {"URGENT"}, {"urgent", "to do"}, {"to do", "urgent", "urgent"},
		{"至急"},
		{"urgent", "nosuch"}, {""}, {"collection:finance"}, {"collection:docs", "urgent"},
		{"collection:docs", "collection:hr"}, {"collection:"}} {
		for _, labels := range [][]string{nil, {"finance"}, {"hr", "docs"}} {
			for _, text := range []string{"", "*:*", "budget", "予算"} {
				keep := and(tagged(tags), hasText(text))
				if labels != nil {
					keep = and(keep, inLabels(labels))
				}
				want := s.want(keep)
				p := s.search(t, search.Query{Text: query.MustParse(text), Tags: tags, Labels: labels, Num: 100})
				if got := slices.Sorted(slices.Values(s.places(t, p.Hits))); !slices.Equal(got, want) ||
					p.Total != len(want) {
					t.Errorf("Search(%q) with tags %q in %v: total %d (-want +got)\n%s", text, tags, labels, p.Total,
						cmp.Diff(want, got))
				}
			}
		}
	}
}
