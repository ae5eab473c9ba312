package fessserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fessserver"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// TestAllWords checks that words mean AND, although the index also finds documents
// with some of them.
func TestAllWords(t *testing.T) {
	x := open(t, corpus(t))
	h := fessserver.New(fessserver.Options{Backend: x})
	const text = "annual budget report"
	page, err := x.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 100})
	if err != nil {
		t.Fatal(err)
	}
	if !page.Staged || page.AllWords == 0 || page.AllWords == page.Total {
		t.Fatalf("Search(%q) = %d with all words of %d, staged %v: no use as a test", text, page.AllWords, page.Total,
			page.Staged)
	}
	want := []string{}
	for _, hit := range page.Hits[:page.AllWords] {
		want = append(want, hit.URL)
	}
	q := "?num=100&q=" + url.QueryEscape(text)
	for _, path := range []string{"/api/v1/documents", "/api/v2/search"} {
		_, answer := get(t, h, path+q)
		got := urls(t, answer)
		slices.Sort(got)
		slices.Sort(want)
		if !cmp.Equal(got, want) {
			t.Errorf("GET %s%s: (-want +got)\n%s", path, q, cmp.Diff(want, got))
		}
	}
	_, answer := get(t, h, "/api/v1/documents"+q)
	if got := answer["search_query"]; got != text {
		t.Errorf("search_query = %q, want %q", got, text)
	}
}

// labelsOf are the labels of the corpus by address.
func labelsOf(docs []document.Document) map[string]string {
	m := map[string]string{}
	for _, d := range docs {
		m[d.URL] = d.Label
	}
	return m
}

// TestNoLeak asks what made Fess 15.4.0 show documents of other labels.
func TestNoLeak(t *testing.T) {
	data, err := os.ReadFile("testdata/label-leak.json")
	if err != nil {
		t.Fatal(err)
	}
	var queries []struct{ Q, Label string }
	if err := json.Unmarshal(data, &queries); err != nil {
		t.Fatal(err)
	}
	docs := corpus(t)
	labels, h := labelsOf(docs), handler(t)
	answered := 0
	for _, q := range queries {
		for _, target := range []string{"/api/v1/documents?", "/api/v2/search?", "/api/v1/documents?ex_q=*:*&",
			"/api/v1/documents?fields.filetype=html&"} {
			target += "num=100&fields.label=" + url.QueryEscape(q.Label) + "&q=" + url.QueryEscape(q.Q)
			code, answer := get(t, h, target)
			if code == http.StatusBadRequest {
				continue
			}
			if code != http.StatusOK {
				t.Errorf("GET %s = %d %v, want 200 or 400", target, code, answer)
				continue
			}
			found := urls(t, answer)
			if len(found) > 0 {
				answered++
			}
			for _, u := range found {
				if labels[u] != q.Label {
					t.Errorf("GET %s finds %s of label %s", target, u, labels[u])
				}
			}
		}
	}
	if answered < 50 {
		t.Errorf("only %d queries found something: no use as a test", answered)
	}
}

// TestLabelValues checks that the value of a label is compared and nothing else.
func TestLabelValues(t *testing.T) {
	h := handler(t)
	total := func(params string) int {
		t.Helper()
		code, answer := get(t, h, "/api/v1/documents?"+params)
		if code != http.StatusOK {
			t.Errorf("GET ?%s = %d, want 200", params, code)
		}
		return number(answer["record_count"])
	}
	finance, hr := total("fields.label=finance"), total("fields.label=hr")
	if finance == 0 || hr == 0 || total("fields.label=finance&fields.label=hr") != finance+hr {
		t.Errorf("finance %d, hr %d: want both, and together their sum", finance, hr)
	}
	for _, v := range []string{`finance" OR label:"hr`, `finance\`, "finance OR hr", "*", "finan*", "Finance",
		"finance,hr", `"`, "nosuch"} {
		if got := total("fields.label=" + url.QueryEscape(v)); got != 0 {
			t.Errorf("fields.label=%s finds %d documents, want none", v, got)
		}
	}
	if all := total("q=*:*"); all != 57 || total("q=*:*&fields.label=") != all {
		t.Errorf("a blank label finds %d documents of %d, want all 57", total("q=*:*&fields.label="), all)
	}
}

// A witness remembers what it was asked.
type witness struct {
	stub
	asked search.Query
}

func (w *witness) Search(_ context.Context, q search.Query) (*search.Page, error) {
	w.asked = q
	return &search.Page{}, nil
}

// TestAsked checks what the backend is asked: labels never become text.
func TestAsked(t *testing.T) {
	tests := []struct {
		params string
		want   search.Query
	}{
		{"q=a&fields.label=x&fields.label=y%22+OR+z&fields.label=x&fields.label=+",
			search.Query{Text: query.MustParse("a"), Labels: []string{"x", `y" OR z`}, Num: 10}},
		{"fields.label=x&num=7&start=3&lang=ja", search.Query{Labels: []string{"x"}, Start: 3, Num: 7}},
		{"q=a+b&sort=score.asc,created.desc,filename", search.Query{Text: query.MustParse("(a b)"), Num: 10,
			Sort: []search.SortKey{{Field: "score"}, {Field: "created", Desc: true}, {Field: "filename"}}}},
		{"q=a&facet.field=host&facet.field=host&facet.query=b&facet.size=5000&facet.minDocCount=2&facet.sort=key.desc&facet.missing=none",
			search.Query{Text: query.MustParse("a"), Num: 10,
				Facets: &search.Facets{Fields: []string{"host"}, Queries: []string{"b"}, Size: 1000, MinDocCount: 2,
					Sort: "term.desc", Missing: "none"}}},
		{"q=a&geo.location.point=1.5,-2&geo.location.distance=3km",
			search.Query{Text: query.MustParse("a"), Num: 10, Geo: &search.Geo{Point: "1.5,-2", Distance: "3km"}}},
		{"q=a&geo.location.point=1.5,-2&facet.size=5", search.Query{Text: query.MustParse("a"), Num: 10}},
		{"q=a&sdh=x&fields.label=y", search.Query{Text: query.MustParse("a"), Labels: []string{}, Num: 10}},
	}
	for _, test := range tests {
		for _, path := range []string{"/api/v1/documents?", "/api/v2/search?"} {
			var w witness
			get(t, fessserver.New(fessserver.Options{Backend: &w}), path+test.params)
			if diff := cmp.Diff(test.want, w.asked); diff != "" {
				t.Errorf("GET %s%s asks: (-want +got)\n%s", path, test.params, diff)
			}
		}
	}
}

// TestParameters checks what the recordings don't show.
func TestParameters(t *testing.T) {
	h := handler(t)
	tests := []struct {
		params string
		code   int
		total  int
	}{
		{"q=budget", 200, 3},
		{"q=*:*&sdh=abc", 200, 0},
		{"ex_q=filetype:pdf", 200, 9},
		{"q=*:*&as.nq=budget", 200, 54},
		{"as.oq=budget+docker&as.nq=docker", 200, 3},
		{"as.q=allintitle:report", 200, 3},
		{"q=budget;leave", 200, 0},
		{"q=*:*&fields.host=hr.example.com&fields.filetype=html", 200, 1},
		{"q=*:*&track_total_hits=true", 200, 57},
		{"q=*:*&track_total_hits=10", 200, 10},
		{"q=budget&" + strings.Repeat("fields.label=a&", 3) + "fields.label=finance", 200, 3},
		{"q=budget&as.timestamp=%5B2020+TO", 400, 0},
		{"q=budget&as.timestamp=%5B2020+TO+*%5D+OR+*:*", 200, 57},
		{"q=budget&sort=score.desc,,created", 400, 0},
		{"q=budget&sort=created.desc.x", 400, 0},
		{"q=budget&facet.field=label&facet.size=2.5", 400, 0},
		{"q=budget&facet.query=test+OR", 400, 0},
		{"q=budget&num=100&start=9901", 400, 0},
		{"q=budget&num=100&start=2147483647", 400, 0},
	}
	for _, test := range tests {
		code, answer := get(t, h, "/api/v1/documents?"+test.params)
		if got := number(answer["record_count"]); code != test.code || got != test.total {
			t.Errorf("GET ?%s = %d, %d documents, want %d, %d", test.params, code, got, test.code, test.total)
		}
	}
	var many strings.Builder
	for i := range 101 {
		many.WriteString("&facet.query=w" + string(rune('a'+i%26)) + strings.Repeat("x", i/26))
	}
	for _, path := range []string{"/api/v1/documents?q=a", "/api/v2/search?q=a"} {
		if code, _ := get(t, h, path+many.String()); code != http.StatusBadRequest {
			t.Errorf("GET %s with 101 facets = %d, want 400", path, code)
		}
	}
}

// TestPaths checks where the API is found.
func TestPaths(t *testing.T) {
	x := open(t, nil)
	tests := []struct {
		prefix, target string
		code           int
	}{
		{"", "/api/v1/health", 200}, {"", "//api//v1/health", 200}, {"", "/api/v1/../v1/health/", 200},
		{"", "/api/v1/healthx", 404},
		{"/fess", "/fess/api/v1/health", 200}, {"/fess/", "/fess/api/v2/health/", 200},
		{"/fess", "//fess/api/v1/health", 200},
		{"/fess", "/api/v1/health", 404}, {"/fess", "/fessx/api/v1/health", 404}, {"/fess", "/fess", 404},
		{"/fess", "/fess/", 404},
		{"", "/api/v1/documents/all/", 400}, {"", "/api/v1/documents/x/favorite", 405}, {"", "/api/v2/cache", 404},
		{"", "/api/v11/health", 404},
		{"", "/api/v1/labels?x=%zz", 400}, {"", "/api/v1/labels?x=" + strings.Repeat("y", 8<<10), 400},
		{"", "/api/v1/labels?x=" + strings.Repeat("y", 8000), 200},
	}
	for _, test := range tests {
		h := fessserver.New(fessserver.Options{Backend: x, Prefix: test.prefix})
		if w := ask(t, h, http.MethodGet, test.target, nil); w.Code != test.code {
			t.Errorf("below %q: GET %.60s = %d, want %d", test.prefix, test.target, w.Code, test.code)
		}
	}
}

// TestNoCORS checks that no page of another origin can read answers.
func TestNoCORS(t *testing.T) {
	h := handler(t)
	for _, target := range []string{"/api/v1/documents?q=budget", "/api/v2/search?q=budget", "/cache/?docId=x",
		"/nosuch"} {
		for _, method := range []string{http.MethodGet, http.MethodOptions} {
			w := ask(t, h, method, target, map[string]string{"Origin": "http://evil.example.com",
				"Access-Control-Request-Method": "GET"})
			for name := range w.Header() {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s %s answers with the header %s", method, target, name)
				}
			}
		}
	}
}
