package scope_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/scope"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// open returns an index with documents.
func open(t *testing.T, docs ...document.Document) *index.Index {
	t.Helper()
	x, err := index.Open(t.Context(), index.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	var changes []document.Change
	for i := range docs {
		changes = append(changes, document.Change{Put: &docs[i]})
	}
	if err := x.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	return x
}

// others are the documents of the corpus once more, under labels that are not in
// the scope.
func others() []document.Document {
	docs := searchtest.Corpus()
	for i := range docs {
		docs[i].ID = "other-" + docs[i].ID
		docs[i].Label = "other-" + docs[i].Label
	}
	return docs
}

// A scope behaves like a service that contains only the documents of its
// labels: totals, facets, suggestions, popular words and labels included.
func TestContract(t *testing.T) {
	searchtest.Run(t, searchtest.Options{
		Open: func(t *testing.T, docs []document.Document) search.Service {
			return scope.New(open(t, append(docs, others()...)...), "finance", "hr", "docs")
		},
	})
}

// Notes are what users wrote in collections, under one label. The files of sources
// with the labels of these collections stay outside.
func TestNotes(t *testing.T) {
	ctx := t.Context()
	doc := func(id, label string, file bool) document.Document {
		return document.Document{ID: id, Label: label, FromSource: file, Path: id + ".md", Title: id, Text: "the budget of " + id}
	}
	x := open(t, doc("file", "docs", true), doc("other", "secret", true), doc("plan", "plans", false),
		doc("note", "docs", false), doc("leak", "secret", false), doc("private", "diary", false))
	collections := func(context.Context) ([]string, error) { return []string{"plans", "docs", "secret"}, nil }
	notes := []scope.Notes{{Label: "kb", Collections: collections}}
	tests := []struct {
		name   string
		labels []string // of the scope
		asked  []string
		want   map[string]string // label by id
	}{
		{"notes alone", nil, nil, map[string]string{"plan": "kb", "note": "kb", "leak": "kb"}},
		{"a folder and the notes", []string{"docs"}, nil,
			map[string]string{"file": "docs", "note": "docs", "plan": "kb", "leak": "kb"}},
		{"only the notes are asked", []string{"docs"}, []string{"kb"},
			map[string]string{"note": "kb", "plan": "kb", "leak": "kb"}},
		{"only the folder is asked", []string{"docs"}, []string{"docs"}, map[string]string{"file": "docs", "note": "docs"}},
		{"a collection is no label", nil, []string{"plans"}, map[string]string{}},
		{"nothing is asked", []string{"docs"}, []string{}, map[string]string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scope.WithNotes(x, tt.labels, notes)
			page, err := s.Search(ctx, search.Query{Text: query.MustParse("budget"), Num: 10, Labels: tt.asked,
				Facets: &search.Facets{Fields: []string{"label"}}})
			if err != nil {
				t.Fatal(err)
			}
			got, counts, want := map[string]string{}, map[string]int{}, map[string]int{}
			for _, h := range page.Hits {
				got[h.ID] = h.Labels[0]
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || page.Total != len(tt.want) {
				t.Errorf("%d documents are found (-want +got):\n%s", page.Total, diff)
			}
			for _, c := range page.Facets.Fields[0].Counts {
				counts[c.Value] = c.Count
			}
			for _, label := range tt.want {
				want[label]++
			}
			if diff := cmp.Diff(want, counts); diff != "" {
				t.Errorf("facets (-want +got):\n%s", diff)
			}
			kb, err := s.Search(ctx, search.Query{Text: query.MustParse("label:kb budget"), Num: 10, Labels: tt.asked,
				Facets: &search.Facets{Queries: []string{"label:kb", "NOT label:kb"}}})
			if err != nil || kb.Total != want["kb"] ||
				kb.Facets.Queries[0] != (search.Count{Value: "label:kb", Count: want["kb"]}) || kb.Facets.Queries[1].Count != 0 {
				t.Errorf("label:kb finds %+v, %v, want %d documents", kb, err, want["kb"])
			}
			for _, id := range []string{"file", "other", "plan", "note", "leak", "private"} {
				label, in := tt.want[id]
				h, err := s.Find(ctx, id, tt.asked)
				if (err == nil) != in || in && h.Labels[0] != label || !in && !errors.Is(err, errkind.NotFound) {
					t.Errorf("Find(%s) = %+v, %v, want label %q", id, h, err, label)
				}
				if _, err := s.ReadText(ctx, id, tt.asked, 0, 10); (err == nil) != in {
					t.Errorf("ReadText(%s) = %v", id, err)
				}
				if _, err := s.Sections(ctx, id, tt.asked); (err == nil) != in {
					t.Errorf("Sections(%s) = %v", id, err)
				}
				places, err := s.Locate(ctx, id+".md", tt.asked)
				if err != nil || (len(places) == 1) != in || in && places[0].Label != label {
					t.Errorf("Locate(%s) = %v, %v, want label %q", id, places, err, label)
				}
			}
		})
	}
}

// Nothing outside the scope can be reached by asking for its label or its id.
func TestOutside(t *testing.T) {
	ctx := t.Context()
	x := open(t, append(searchtest.Corpus(), others()...)...)
	s := scope.New(x, "finance")
	for _, labels := range [][]string{{"other-finance"}, {"hr"}, {}, {"nothing"}} {
		p, err := s.Search(ctx, search.Query{Text: query.MustParse("budget"), Labels: labels, Num: 10,
			Facets: &search.Facets{Fields: []string{"label"}}})
		if err != nil || p.Total != 0 || len(p.Facets.Fields[0].Counts) != 0 {
			t.Errorf("Search of labels %v = %+v, %v, want nothing", labels, p, err)
		}
		if found, err := s.Suggest(ctx, search.SuggestQuery{Prefix: "b", Num: 10, Labels: labels}); err != nil ||
			len(found) != 0 {
			t.Errorf("Suggest of labels %v = %v, %v, want nothing", labels, found, err)
		}
		if words, err := s.PopularWords(ctx, search.WordsQuery{Labels: labels}); err != nil || len(words) != 0 {
			t.Errorf("PopularWords of labels %v = %v, %v, want nothing", labels, words, err)
		}
	}
	for _, d := range append(searchtest.Corpus(), others()...) {
		_, err := s.Find(ctx, d.ID, nil)
		if _, readErr := s.ReadText(ctx, d.ID, nil, 0, 10); (err == nil) != (d.Label == "finance") ||
			(readErr == nil) != (err == nil) {
			t.Errorf("Find and ReadText of a document of label %s = %v, %v", d.Label, err, readErr)
		}
		if _, err := s.Find(ctx, d.ID, []string{d.Label}); (err == nil) != (d.Label == "finance") {
			t.Errorf("Find under label %s = %v", d.Label, err)
		}
	}
	labels, err := s.Labels(ctx)
	if diff := cmp.Diff([]search.Label{{Name: "finance", Value: "finance"}}, labels); err != nil || diff != "" {
		t.Errorf("Labels() = %v (-want +got):\n%s", err, diff)
	}
	if p, err := scope.New(x).Search(ctx, search.Query{Num: 10}); err != nil || p.Total != 0 {
		t.Errorf("Search in a scope without a label = %+v, %v, want nothing", p, err)
	}
	for _, step := range []struct {
		label string
		busy  bool
	}{{"public", false}, {"finance", true}} {
		if err := x.SetProgress(ctx, index.Progress{Label: step.label, Done: 1, Total: 2}); err != nil {
			t.Fatal(err)
		}
		if _, _, busy := s.Indexing(ctx, nil); busy != step.busy {
			t.Errorf("Indexing() while %s is indexed reports %v, want %v", step.label, busy, step.busy)
		}
	}
	if h, err := s.Health(ctx); err != nil || h.Status != "green" {
		t.Errorf("Health() = %+v, %v, want green", h, err)
	}
	if diff := cmp.Diff(x.FacetFields(), s.FacetFields()); diff != "" {
		t.Errorf("FacetFields() (-want +got):\n%s", diff)
	}
}
