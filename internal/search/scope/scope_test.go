package scope_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
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
