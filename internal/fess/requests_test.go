package fess_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// A requestCase is a call and the requests that it makes, below the base URL.
type requestCase struct {
	name string
	call func(*fess.Client, *testing.T) error
	want []string
}

// The paths of calls with parameters, as requestCases spell them.
const (
	documents    = "/api/v1/documents?"
	words        = "/api/v1/suggest-words?"
	popularWords = "/api/v1/popular-words?"
)

// find, suggest and popular make calls of queries.
func find(q search.Query) func(*fess.Client, *testing.T) error {
	return func(c *fess.Client, t *testing.T) error { _, err := c.Search(t.Context(), q); return err }
}

func relaxed(q search.Query) func(*fess.Client, *testing.T) error {
	return func(c *fess.Client, t *testing.T) error { _, err := search.Relax(t.Context(), c, q); return err }
}

func suggest(q search.SuggestQuery) func(*fess.Client, *testing.T) error {
	return func(c *fess.Client, t *testing.T) error { _, err := c.Suggest(t.Context(), q); return err }
}

func popular(q search.WordsQuery) func(*fess.Client, *testing.T) error {
	return func(c *fess.Client, t *testing.T) error { _, err := c.PopularWords(t.Context(), q); return err }
}

// TestQueryRequests compares the requests for texts and labels.
func TestQueryRequests(t *testing.T) {
	finance := []string{"finance"}
	checkRequests(t, []requestCase{
		{"AT-TOOL-002", find(search.Query{Text: query.MustParse("budget"), Labels: finance, Num: 20}),
			[]string{documents + "q=budget&fields.label=finance&start=0&num=20"}},
		{"AT-TOOL-003", find(search.Query{Text: query.MustParse("budget"), Labels: finance, Start: 30, Num: 30}),
			[]string{documents + "q=budget&fields.label=finance&start=30&num=30"}},
		{"two labels", find(search.Query{Text: query.MustParse("budget"), Labels: []string{"finance", "hr"}, Num: 1}),
			[]string{documents + "q=budget&fields.label=finance&fields.label=hr&start=0&num=1"}},
		{"no label", find(search.Query{Text: query.MustParse("budget"), Num: 1}),
			[]string{documents + "q=budget&start=0&num=1"}},
		{"no text", find(search.Query{Labels: finance, Num: 1}),
			[]string{documents + "fields.label=finance&start=0&num=1"}},
		{"blank text", find(search.Query{Text: query.MustParse(" \u3000"), Labels: finance, Num: 1}),
			[]string{documents + "fields.label=finance&start=0&num=1"}},
		{"nothing", find(search.Query{Num: 1}), []string{documents + "q=%2A%3A%2A&start=0&num=1"}},
		{"no hits wanted", find(search.Query{Text: query.MustParse("budget")}),
			[]string{documents + "q=budget&start=0&num=1"}},
		{"operators", find(search.Query{Text: query.MustParse("budget OR walrus"), Labels: finance, Num: 1}),
			[]string{documents + "q=%28budget+OR+walrus%29&fields.label=finance&start=0&num=1"}},
		{"stray operator", find(search.Query{Text: query.MustParse("budget ||"), Labels: finance, Num: 1}),
			[]string{documents + "q=budget&fields.label=finance&start=0&num=1"}},
		{"allintitle", find(search.Query{Text: query.MustParse("allintitle:budget"), Labels: finance, Num: 1}),
			[]string{documents + "q=allintitle%3Abudget&fields.label=finance&ex_q=%2A%3A%2A&start=0&num=1"}},
		{"signs", find(search.Query{Text: query.MustParse(`"a[b]{c}|d" budget`), Num: 1}),
			[]string{documents + "q=%28%22a%5Bb%5D%7Bc%7D%7Cd%22+budget%29&start=0&num=1"}},
		{"sort", find(search.Query{Text: query.MustParse("budget"), Num: 1,
			Sort: []search.SortKey{{Field: "score", Desc: true}, {Field: "filename"}}}),
			[]string{documents + "q=budget&start=0&num=1&sort=score.desc%2Cfilename.asc"}},
		{"languages", find(search.Query{Text: query.MustParse("budget"), Num: 1, Langs: []string{"en", "ja"}}),
			[]string{documents + "q=budget&start=0&num=1&lang=en&lang=ja"}},
	})
}

// TestConditionRequests compares the requests for the other conditions.
func TestConditionRequests(t *testing.T) {
	finance := []string{"finance"}
	checkRequests(t, []requestCase{
		{"facets", find(search.Query{Text: query.MustParse("budget"), Num: 1,
			Facets: &search.Facets{Fields: []string{"label", "host"},
				Queries: []string{"filetype:pdf", "a OR b"}, Size: 5, MinDocCount: 2, Sort: "term.asc",
				Missing: "none"}}),
			[]string{documents + "q=budget&start=0&num=1&facet.field=label&facet.field=host&facet.query=filetype%3Apdf&facet.query=a+OR+b" +
				"&facet.size=5&facet.minDocCount=2&facet.sort=term.asc&facet.missing=none"}},
		{"facets with a minimum of 0", find(search.Query{Text: query.MustParse("budget"), Num: 1,
			Facets: &search.Facets{Fields: []string{"host"}, MinDocCount: 0}}),
			[]string{documents + "q=budget&start=0&num=1&facet.field=host"}},
		{"facets of nothing", find(search.Query{Text: query.MustParse("budget"), Num: 1,
			Facets: &search.Facets{Size: 5}}),
			[]string{documents + "q=budget&start=0&num=1"}},
		{"place", find(search.Query{Text: query.MustParse("budget"), Num: 1,
			Geo: &search.Geo{Point: "35.68, -139.77", Distance: "10km"}}),
			[]string{documents + "q=budget&start=0&num=1&geo.location.point=35.68%2C-139.77&geo.location.distance=10km"}},
		{"relaxed", relaxed(search.Query{Text: query.MustParse("zeppelin walrus"), Labels: finance, Num: 5}),
			[]string{documents + "q=zeppelin+walrus&fields.label=finance&start=0&num=5",
				documents + "q=%28zeppelin+OR+walrus%29&fields.label=finance&start=0&num=5"}},
		{"one word that is nowhere", find(search.Query{Text: query.MustParse("helicopter"), Num: 5}),
			[]string{documents + "q=helicopter&start=0&num=5"}},
		{"operators that find nothing", find(search.Query{Text: query.MustParse("helicopter AND submarine"), Num: 5}),
			[]string{documents + "q=%28helicopter+AND+submarine%29&start=0&num=5"}},
		{"no labels at all", find(search.Query{Text: query.MustParse("budget"), Labels: []string{}, Num: 5}),
			[]string{}},
	})
}

// TestOtherRequests compares the requests of the other calls.
func TestOtherRequests(t *testing.T) {
	finance := []string{"finance"}
	checkRequests(t, []requestCase{
		{"find", func(c *fess.Client, t *testing.T) error {
			_, err := c.Find(t.Context(), searchtest.Corpus()[0].ID, finance)
			return err
		}, []string{documents + "q=doc_id%3A" + searchtest.Corpus()[0].ID + "&fields.label=finance&start=0&num=1"}},
		{"find a name that begins like an operator", func(c *fess.Client, t *testing.T) error {
			if _, err := c.Find(t.Context(), "-x", nil); !errors.Is(err, errkind.NotFound) {
				return err
			}
			return nil
		}, []string{documents + "q=doc_id%3A%22-x%22&start=0&num=1"}},
		{"AT-TOOL-004", suggest(search.SuggestQuery{Prefix: "foo", Num: 5, Labels: finance}),
			[]string{words + "q=foo&num=5&label=finance"}},
		{"suggest with all", suggest(search.SuggestQuery{Prefix: "b", Num: 1, Fields: []string{"title", "content"},
			Langs: []string{"en"}}),
			[]string{words + "q=b&num=1&field=title&field=content&fields=title%2Ccontent&lang=en"}},
		{"suggest without a prefix", suggest(search.SuggestQuery{Num: 1}), []string{words + "q=&num=1"}},
		{"AT-TOOL-005", popular(search.WordsQuery{Labels: finance}), []string{popularWords + "label=finance"}},
		{"popular words with all", popular(search.WordsQuery{Labels: finance, Seed: "7", Fields: []string{"title"}}),
			[]string{popularWords + "label=finance&seed=7&field=title"}},
		{"popular words of all", popular(search.WordsQuery{}), []string{"/api/v1/popular-words"}},
		{"AT-TOOL-006", func(c *fess.Client, t *testing.T) error { _, err := c.Labels(t.Context()); return err },
			[]string{"/api/v1/labels"}},
		{"AT-TOOL-007", func(c *fess.Client, t *testing.T) error { _, err := c.Health(t.Context()); return err },
			[]string{"/api/v1/health"}},
	})
}

// checkRequests makes calls and compares the requests that come of them.
func checkRequests(t *testing.T, tests []requestCase) {
	t.Helper()
	c, server := open(t, searchtest.Corpus(), fesstest.Options{ContextPath: "/some/path", Token: "s3cret"})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server.Forget()
			if err := test.call(c, t); err != nil {
				t.Fatalf("call = %v", err)
			}
			got := []string{}
			for _, r := range server.Requests() {
				line := r.Path
				if r.Query != "" {
					line += "?" + r.Query
				}
				if r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer s3cret" ||
					r.Header.Get("Accept") != "application/json" {
					t.Errorf("request %s %s with headers %v, want GET with our token for JSON", r.Method, line,
						r.Header)
				}
				got = append(got, line)
			}
			want := []string{}
			for _, line := range test.want {
				want = append(want, "/some/path"+line)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("requests: (-want +got)\n%s", diff)
			}
		})
	}
}

// TestRefused checks arguments that are refused without a request.
func TestRefused(t *testing.T) {
	facets := func(f search.Facets) search.Query { return search.Query{Num: 1, Facets: &f} }
	place := func(point, distance string) search.Query {
		return search.Query{Num: 1, Geo: &search.Geo{Point: point, Distance: distance}}
	}
	tests := []struct {
		argument string
		q        search.Query
	}{
		{"num", search.Query{Num: 101}},
		{"num", search.Query{Num: -1}},
		{"start", search.Query{Start: -1, Num: 1}},
		{"start", search.Query{Start: 9_991, Num: 10}},
		{"start", search.Query{Start: 10_000}},
		{"start", search.Query{Start: int(^uint(0) >> 1), Num: 100}},
		{"sort", search.Query{Num: 1, Sort: []search.SortKey{{Field: "nope"}}}},
		{"sort", search.Query{Num: 1, Sort: []search.SortKey{{Field: "score.desc label:hr OR"}}}},
		{"labels", search.Query{Num: 1, Labels: []string{`a" OR label:"b`}}},
		{"labels", search.Query{Num: 1, Labels: []string{"finance", ""}}},
		{"lang", search.Query{Num: 1, Langs: []string{"en&q=x"}}},
		{"facets.field", facets(search.Facets{Fields: []string{"title"}})},
		{"facets.field", facets(search.Facets{Fields: []string{"lang"}})},
		{"facets.query", facets(search.Facets{Queries: []string{`"a`}})},
		{"facets.query", facets(search.Facets{Queries: []string{""}})},
		{"facets.size", facets(search.Facets{Fields: []string{"label"}, Size: -1})},
		{"facets.minDocCount", facets(search.Facets{Fields: []string{"label"}, MinDocCount: -1})},
		{"facets.sort", facets(search.Facets{Fields: []string{"label"}, Sort: "count"})},
		{"geo.point", place("", "10km")},
		{"geo.point", place("91,0", "10km")},
		{"geo.point", place("0,-181", "10km")},
		{"geo.point", place("1,2,3", "10km")},
		{"geo.distance", place("1,2", "")},
		{"geo.distance", place("1,2", "-1km")},
		{"geo.distance", place("1,2", "10 parsecs")},
	}
	c, server := open(t, searchtest.Corpus(), fesstest.Options{})
	for _, test := range tests {
		if _, err := c.Search(t.Context(), test.q); argument(err) != test.argument {
			t.Errorf("Search(%+v) = %v, want an error about argument %s", test.q, err, test.argument)
		}
	}
	for _, q := range []search.SuggestQuery{{Num: 0}, {Num: 101}} {
		if _, err := c.Suggest(t.Context(), q); argument(err) != "num" {
			t.Errorf("Suggest(%+v) = %v, want an error about argument num", q, err)
		}
	}
	if n := len(server.Requests()); n != 0 {
		t.Errorf("refused queries made %d requests, want none", n)
	}
}

// argument returns the name of the argument that err is about.
func argument(err error) string {
	if a, ok := errors.AsType[*errkind.Argument](err); ok {
		return a.Name
	}
	return ""
}

// TestSmallPages checks that a server with a smaller greatest page still gives
// the hits that were asked for, and that this is noticed once.
func TestSmallPages(t *testing.T) {
	c, server := open(t, searchtest.Corpus(), fesstest.Options{MaxPageSize: 15})
	for range 2 {
		server.Forget()
		p, err := c.Search(t.Context(), search.Query{Num: 38, Start: 1})
		if err != nil || len(p.Hits) != 38 || p.Total != 40 {
			t.Fatalf("Search() = %d hits of %d, %v, want 38 of 40", len(p.Hits), p.Total, err)
		}
		var got []string
		for _, r := range server.Requests() {
			got = append(got, r.Query)
		}
		want := []string{"q=%2A%3A%2A&start=1&num=38", "q=%2A%3A%2A&start=16&num=15", "q=%2A%3A%2A&start=31&num=8"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("requests: (-want +got)\n%s", diff)
		}
	}
}

// TestEngineDown checks that a failing engine never looks like an empty index.
func TestEngineDown(t *testing.T) {
	c, server := open(t, searchtest.Corpus(), fesstest.Options{Engine: "down"})
	if err := ask(t, c, "/api/v1/documents", nil); err == nil {
		t.Error("Search() with the engine down = nil, want an error")
	}
	if _, err := c.Find(t.Context(), "x", nil); !errkind.Retryable(err) {
		t.Errorf("Find() with the engine down = %v, want an error that can be retried", err)
	}
	server.SetEngine("green")
	if p, err := c.Search(t.Context(), search.Query{Num: 1}); err != nil || p.Total != 40 {
		t.Errorf("Search() with the engine up again = %+v, %v, want 40 documents", p, err)
	}
}
