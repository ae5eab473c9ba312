package fessbridge

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/fessconfig"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// open returns a source with the label of a domain of a fake server, and what change
// makes of its configuration.
func open(t testing.TB, url, label string, change func(*fessconfig.Config)) *Source {
	t.Helper()
	c := fessconfig.New(url, label, "")
	if change != nil {
		change(c)
	}
	s, err := NewSource(SourceOptions{Config: c, Label: "ours", Version: "devel"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// members returns documents as those of a domain, and the same documents once more
// under another label.
func members(docs []document.Document) []document.Document {
	var all []document.Document
	for _, d := range docs {
		d.Label = "members"
		all = append(all, d)
		d.ID, d.Label = "other-"+d.ID, "others"
		all = append(all, d)
	}
	return all
}

func TestContract(t *testing.T) {
	for name, o := range map[string]fesstest.Options{
		"API v1":                       {SendContent: true},
		"API v2, below a path":         {SendContent: true, API: "v2", ContextPath: "/fess"},
		"a token":                      {SendContent: true, Token: "s3cret"},
		"small pages":                  {SendContent: true, MaxPageSize: 15},
		"small pages of configuration": {SendContent: true},
		"the whole index of a server":  {SendContent: true},
	} {
		t.Run(name, func(t *testing.T) {
			searchtest.Run(t, searchtest.Options{
				Open: func(t *testing.T, docs []document.Document) search.Service {
					label := "members"
					docs = members(docs)
					if name == "the whole index of a server" {
						label = ""
						for i := len(docs) - 1; i >= 0; i-- {
							if docs[i].Label == "others" {
								docs = append(docs[:i], docs[i+1:]...)
							}
						}
					}
					server := fesstest.New(t, docs, o)
					s := open(t, server.URL, label, func(c *fessconfig.Config) {
						c.FessAuth.AccessToken = o.Token
						if name == "small pages of configuration" {
							c.Limits.MaxPageSize = 7
						}
					})
					// A source knows the IDs of what it found.
					if _, err := s.Search(t.Context(), search.Query{Num: 100}); err != nil {
						t.Fatal(err)
					}
					return s
				},
				Served: func(d document.Document) document.Document {
					d.ID, d.Label = document.IDOf("ours", d.ID), "ours"
					return d
				},
				Label: "ours", NoTags: true, NoPassages: true, NoWritten: true,
			})
		})
	}
}

// Isolation: whatever a query says, Fess is asked for the label of the domain, and what
// other labels have is not found, counted or named. The label of the source is that of
// other documents in Fess.
func TestSourceIsolation(t *testing.T) {
	count := 2_000
	if os.Getenv("CI") == "true" && !testing.Short() {
		count = 10_000
	}
	for _, api := range []string{"v1", "v2"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			server := fesstest.New(t, searchtest.Secrets(), fesstest.Options{API: api})
			c := fessconfig.New(server.URL, "finance", "")
			s, err := NewSource(SourceOptions{Config: c, Label: "hr", Version: "devel"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			own := map[string]bool{}
			for _, d := range searchtest.Secrets() {
				if d.Label == "finance" {
					own[document.IDOf("hr", d.ID)] = true
				}
			}
			n := 0
			searchtest.Isolation{
				Service: s,
				Own: func(h search.Hit) bool {
					return own[h.ID] && h.URL == "file:///finance" && slices.Equal(h.Labels, []string{"hr"}) && h.Extra == nil
				},
				Total:   len(own),
				Queries: count,
				After: func(text string) bool {
					for _, r := range server.Requests() {
						q, err := url.ParseQuery(r.Query)
						if err != nil || strings.HasSuffix(r.Path, "/health") {
							continue
						}
						if got := q["fields.label"]; !slices.Equal(got, []string{"finance"}) ||
							slices.Contains(q["facet.field"], "label") ||
							slices.ContainsFunc(slices.Concat(q["q"], q["facet.query"]), namesLabel) {
							t.Errorf("Search(%q) asked %s?%s, want only label finance", text, r.Path, r.Query)
							return true
						}
					}
					server.Forget()
					n++
					return false
				},
			}.Run(t)
			if n != count {
				t.Errorf("%d of %d queries were sent", n, count)
			}
		})
	}
}

// namesLabel reports whether a query has a condition on labels.
func namesLabel(text string) bool {
	t, err := query.Parse(text)
	if err != nil {
		return false
	}
	resolved, ok, err := t.WithLabel("nosuch")
	return err != nil || !ok || !resolved.Equal(t)
}

// What is not a query leads nowhere else either.
func TestSourceOutside(t *testing.T) {
	server := fesstest.New(t, searchtest.Secrets(), fesstest.Options{SendContent: true})
	s := open(t, server.URL, "finance", nil)
	ctx := t.Context()
	if _, err := s.Search(ctx, search.Query{Num: 100}); err != nil {
		t.Fatal(err)
	}
	server.Forget()
	ours := document.IDOf("ours", "finance0")
	for id, labels := range map[string][]string{
		"finance0": nil, "hr0": nil, document.IDOf("ours", "hr0"): nil, document.IDOf("finance", "finance0"): nil,
		"": nil, "never-given": nil, strings.Repeat("x", 5000): nil, ours: {"finance"},
	} {
		for name, err := range map[string]error{
			"Find":     func() error { _, err := s.Find(ctx, id, labels); return err }(),
			"ReadText": func() error { _, err := s.ReadText(ctx, id, labels, 0, 10); return err }(),
		} {
			if !errors.Is(err, errkind.NotFound) || !strings.Contains(err.Error(), "search again") {
				t.Errorf("%s(%.20q, %v) = %v, want kind NotFound and the advice to search again", name, id, labels, err)
			}
		}
	}
	for _, labels := range [][]string{{"finance"}, {"hr"}, {}, {"OURS"}} {
		p, err := s.Search(ctx, search.Query{Labels: labels, Num: 10, Facets: &search.Facets{Fields: []string{"label"},
			Queries: []string{"alpha"}}})
		if err != nil || p.Total != 0 || len(p.Hits) != 0 || len(p.Facets.Fields[0].Counts) != 0 ||
			p.Facets.Queries[0].Count != 0 {
			t.Errorf("Search in %v = %+v, %v, want nothing", labels, p, err)
		}
		if list, err := s.Suggest(ctx, search.SuggestQuery{Prefix: "al", Num: 9, Labels: labels}); err != nil || len(list) > 0 {
			t.Errorf("Suggest in %v = %v, %v, want nothing", labels, list, err)
		}
		if list, err := s.PopularWords(ctx, search.WordsQuery{Labels: labels}); err != nil || len(list) > 0 {
			t.Errorf("PopularWords in %v = %v, %v, want nothing", labels, list, err)
		}
	}
	if got := server.Requests(); len(got) != 0 {
		t.Errorf("Fess was asked %v, want no request", got)
	}
	list, err := s.Suggest(ctx, search.SuggestQuery{Prefix: "financ", Num: 9})
	if want := []search.Suggestion{{Text: "finance", Labels: []string{"ours"}}}; err != nil || !cmp.Equal(list, want) {
		t.Errorf("Suggest(financ) = %v, %v, want %v", list, err, want)
	}
	if h, err := s.Find(ctx, ours, []string{"other", "ours"}); err != nil || h.ID != ours || h.Labels[0] != "ours" {
		t.Errorf("Find(%s) = %+v, %v, want the document", ours, h, err)
	}
	if labels, err := s.Labels(ctx); err != nil || len(labels) != 1 || labels[0].Value != "ours" {
		t.Errorf("Labels() = %v, %v, want ours", labels, err)
	}
}

// A condition on labels is one on the label of the source, also in facets.
func TestSourceLabels(t *testing.T) {
	server := fesstest.New(t, searchtest.Secrets(), fesstest.Options{})
	s := open(t, server.URL, "finance", nil)
	all, err := s.Search(t.Context(), search.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"label:ours": all.Total, "label:finance": 0, "label:hr": 0, "NOT label:ours": 0, "NOT label:hr": all.Total,
		"label:ours OR nosuch": all.Total, "gamma label:ours": 1, "gamma label:finance": 0, "gamma OR label:finance": 1,
		"label:o*": all.Total, "label:f*": 0,
	} {
		p, err := s.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 100})
		if err != nil || p.Total != want || len(p.Hits) != want {
			t.Errorf("Search(%q) = %+v, %v, want %d documents", text, p, err, want)
		}
	}
	p, err := s.Search(t.Context(), search.Query{Text: query.MustParse("alpha"), Facets: &search.Facets{
		Fields:  []string{"filetype", "label", "label", "mimetype"},
		Queries: []string{"label:finance", "beta", "label:ours", "beta", "beta label:ours"}}})
	if err != nil {
		t.Fatal(err)
	}
	beta := 2
	want := &search.FacetCounts{
		Fields: []search.FieldCounts{{Name: "filetype", Counts: []search.Count{{Value: "txt", Count: p.Total}}},
			{Name: "label", Counts: []search.Count{{Value: "ours", Count: p.Total}}},
			{Name: "mimetype", Counts: []search.Count{{Value: "text/plain", Count: p.Total}}}},
		Queries: []search.Count{{Value: "label:finance"}, {Value: "beta", Count: beta}, {Value: "label:ours", Count: p.Total},
			{Value: "beta", Count: beta}, {Value: "beta label:ours", Count: beta}},
	}
	if diff := cmp.Diff(want, p.Facets); diff != "" {
		t.Errorf("facets of alpha (-want +got):\n%s", diff)
	}
	p, err = s.Search(t.Context(), search.Query{Facets: &search.Facets{Fields: []string{"label"}, MinDocCount: 100}})
	if err != nil || len(p.Facets.Fields[0].Counts) != 0 {
		t.Errorf("facets of labels with 100 documents = %+v, %v, want none", p, err)
	}
	if _, err := s.Search(t.Context(), search.Query{Num: 101}); !errors.Is(err, errkind.Invalid) {
		t.Errorf("Search for 101 hits = %v, want kind Invalid", err)
	}
}

// The pages of a long result follow one another up to the thousandth hit, whatever the
// sizes of the pages that are permitted.
func TestSourcePages(t *testing.T) {
	var docs []document.Document
	for i := range 1_100 {
		docs = append(docs, document.Document{ID: fmt.Sprintf("%032x", i), Label: "finance", Title: "alpha",
			Text: "alpha", URL: fmt.Sprint("https://example.com/", i), Filename: fmt.Sprintf("%04d", i), FileType: "txt"})
	}
	server := fesstest.New(t, docs, fesstest.Options{})
	s := open(t, server.URL, "finance", func(c *fessconfig.Config) { c.Limits.MaxPageSize = 30 })
	for start := 0; start <= 1_000; start += 100 {
		p, err := s.Search(t.Context(), search.Query{Text: query.MustParse("alpha"), Start: start, Num: 100,
			Langs: []string{"en"}, Sort: []search.SortKey{{Field: "filename"}}})
		if err != nil || p.Total != len(docs) || len(p.Hits) != 100 {
			t.Fatalf("Search from %d = %d hits, %v, want 100", start, len(p.Hits), err)
		}
		for i, h := range p.Hits {
			if want := fmt.Sprintf("%04d", start+i); h.Filename != want || len(h.ID) != 16 {
				t.Fatalf("hit %d = %s with ID %s, want %s", start+i, h.Filename, h.ID, want)
			}
		}
	}
	for _, r := range server.Requests() {
		if q, _ := url.ParseQuery(r.Query); q.Has("num") {
			if n, err := strconv.Atoi(q.Get("num")); err != nil || n > 30 {
				t.Errorf("Fess was asked for %s hits, want at most 30", q.Get("num"))
			}
			if q.Get("lang") != "en" {
				t.Errorf("Fess was asked for the language %q, want en", q.Get("lang"))
			}
		}
	}
}

func TestIDs(t *testing.T) {
	table := newIDs(2)
	table.put("a", "1")
	table.put("b", "2")
	table.put("a", "1")
	table.put("c", "3") // drops b, which is the oldest
	for ours, want := range map[string]string{"a": "1", "b": "", "c": "3"} {
		if got, ok := table.get(ours); got != want || ok != (want != "") {
			t.Errorf("get(%s) = %q, %v, want %q", ours, got, ok, want)
		}
	}
	if len(table.byID) != table.used.Len() {
		t.Errorf("%d IDs for %d pairs", len(table.byID), table.used.Len())
	}
}
