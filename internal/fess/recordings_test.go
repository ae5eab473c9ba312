package fess_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// replay returns a client of a server that answers each call with the recording
// of its path, whatever the parameters, and everything else as Fess answers
// paths that it does not know. A name "path=name" answers another path with a
// recording; "plugin-name" is of API v1 as a plugin, "v2-name" of API v2.
func replay(t *testing.T, names ...string) *fess.Client {
	t.Helper()
	all := allRecordings(t)
	answers := map[string]fesstest.Recording{}
	for _, name := range names {
		path, name, moved := strings.Cut(name, "=")
		if !moved {
			name = path
		}
		r, ok := all[name]
		if !ok {
			t.Fatalf("no recording %s", name)
		}
		if !moved {
			path = r.Path
		}
		answers[path] = r
	}
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, ok := answers[r.URL.Path]
		if !ok {
			got = all["path-v2-health"]
		}
		got.ServeHTTP(w, r)
	})
}

// read are the recordings that allRecordings has read.
var read map[string]fesstest.Recording

// allRecordings returns the recordings of all files by name. Those of the
// plugin's and the second API have a prefix.
func allRecordings(t *testing.T) map[string]fesstest.Recording {
	t.Helper()
	if read == nil {
		all := map[string]fesstest.Recording{}
		for prefix, file := range map[string]string{"": "v1", "plugin-": "v1-plugin-15.7", "v2-": "v2"} {
			for _, r := range fesstest.Recordings(t, filepath.Join("testdata", "recordings", file+".jsonl.gz")) {
				all[prefix+r.Name] = r
			}
		}
		read = all
	}
	return read
}

// serve returns a client of a server that a test writes itself.
func serve(t *testing.T, handler http.HandlerFunc, change ...func(*fess.Options)) *fess.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	o := fess.Options{BaseURL: server.URL, Timeout: 10 * time.Second}
	for _, f := range change {
		f(&o)
	}
	c, err := fess.New(o)
	if err != nil {
		t.Fatalf("New(%+v) = %v", o, err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestRecordedSearch(t *testing.T) {
	for _, name := range []string{"search-plain", "plugin-search-plain"} {
		p, err := replay(t, name).Search(t.Context(), search.Query{Text: query.MustParse("test"),
			Labels: []string{"finance"}, Num: 20})
		if err != nil {
			t.Fatalf("Search() with %s = %v", name, err)
		}
		if p.Total != 8 || len(p.Hits) != 8 || p.AtLeast || p.Facets != nil || p.Relaxed {
			t.Errorf("Search() with %s = total %d, %d hits, %+v, want 8, 8 and nothing else", name, p.Total,
				len(p.Hits), p)
		}
		for _, h := range p.Hits {
			if h.ID == "" || h.Title == "" || h.URL == "" || h.Score <= 0 {
				t.Errorf("hit of %s = %+v, want ID, title, URL and score", name, h)
			}
			if strings.ContainsAny(h.Digest.Text+h.Title, "<>&") {
				t.Errorf("hit of %s = %+v, want plain text", name, h)
			}
		}
	}
	p, err := replay(t, "search-plain").Search(t.Context(), search.Query{Text: query.MustParse("test"), Num: 3})
	if err != nil {
		t.Fatal(err)
	}
	want := search.Hit{
		ID: "be468f86e1a64a259c4d45ac51d1ab23", Title: "Shared drive report",
		URL:          "file:///srv/share/finance/report%202024.xls",
		Digest:       search.Excerpt{Text: "Spreadsheet on a file share. Test file URL."},
		TitleExcerpt: search.Excerpt{Text: "Shared drive report"},
		Score:        1.0865598, Size: 9999, Filename: "report%202024.xls", FileType: "excel",
		MIMEType:  "application/vnd.ms-excel",
		Created:   time.Date(2023, 6, 27, 3, 4, 5, 0, time.UTC),
		Modified:  time.Date(2023, 6, 27, 8, 10, 0, 0, time.UTC),
		Timestamp: time.Date(2023, 6, 27, 8, 10, 0, 0, time.UTC),
		Extra: map[string]any{
			"_id":   "1553b0500586bb05283ead043df71cb0798963452a0f547d8b08af8031b46ab54779a86355f35f657aae0c5c07406e054d7ae182a43c89eafed38596c7fa75ac",
			"boost": 1.0, "content_description": "Test file URL....",
			"site": "srv/share/finance/report%202024.xls", "site_path": "srv/share/finance/report%202024.xls",
			"url_link": "file://srv/share/finance/report 2024.xls",
		},
	}
	if len(p.Hits) != 3 {
		t.Fatalf("Search(Num 3) = %d hits, want 3", len(p.Hits))
	}
	if diff := cmp.Diff(want, p.Hits[2]); diff != "" {
		t.Errorf("third hit: (-want +got)\n%s", diff)
	}
}

// TestRecordedMarkup checks an excerpt with entities and marks.
func TestRecordedMarkup(t *testing.T) {
	p, err := replay(t, "q-html").Search(t.Context(), search.Query{Text: query.MustParse("tags"), Num: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Hits[0].Extra["content_description"], `100% "quoted" <tags> & ampersands....`; got != want {
		t.Errorf("content_description = %q, want %q", got, want)
	}
}

func TestRecordedFacets(t *testing.T) {
	facets := &search.Facets{Fields: []string{"label"}, Queries: []string{"filetype:html"}}
	p, err := replay(t, "facet-field-and-query").Search(t.Context(),
		search.Query{Text: query.MustParse("test"), Num: 1, Facets: facets})
	if err != nil {
		t.Fatal(err)
	}
	want := &search.FacetCounts{
		Fields: []search.FieldCounts{{Name: "label", Counts: []search.Count{{Value: "tech", Count: 12},
			{Value: "hr", Count: 9}, {Value: "finance", Count: 8}}}},
		Queries: []search.Count{{Value: "filetype:html", Count: 17}},
	}
	if diff := cmp.Diff(want, p.Facets); diff != "" || p.Total != 27 {
		t.Errorf("Search() with facets: total %d, want 27 (-want +got)\n%s", p.Total, diff)
	}
	p, err = replay(t, "facet-zero-hits").Search(t.Context(),
		search.Query{Text: query.MustParse("zzzzqqqq"), Num: 1, Facets: &search.Facets{Fields: []string{"label"}}})
	if err != nil || p.Total != 0 || len(p.Facets.Fields) != 1 || len(p.Facets.Fields[0].Counts) != 0 {
		t.Errorf("Search() of nothing with facets = %+v, %v, want a field without counts", p, err)
	}
}

func TestRecordedPageBeyondTheEnd(t *testing.T) {
	p, err := replay(t, "search-page-beyond-end").Search(t.Context(),
		search.Query{Text: query.MustParse("test"), Start: 500, Num: 5})
	if err != nil || p.Total != 27 || len(p.Hits) != 0 {
		t.Errorf("Search(start 500) = %+v, %v, want no hits of 27", p, err)
	}
}

func TestRecordedWords(t *testing.T) {
	got, err := replay(t, "suggest-te").Suggest(t.Context(), search.SuggestQuery{Prefix: "te", Num: 3})
	want := []search.Suggestion{{Text: "test", Labels: []string{"finance", "hr", "tech"}},
		{Text: "template", Labels: []string{"finance"}},
		{Text: "tech", Labels: []string{"tech"}}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("Suggest(te) = %v, %v, want %v", got, err, want)
	}
	if got, err := replay(t, "suggest-nohit").Suggest(t.Context(),
		search.SuggestQuery{Prefix: "zzzz", Num: 3}); err != nil || got == nil || len(got) != 0 {
		t.Errorf("Suggest(zzzz) = %v, %v, want an empty list", got, err)
	}
	words, err := replay(t, "popular-plain").PopularWords(t.Context(), search.WordsQuery{})
	if want := []string{"検索", "leave", "budget", "remote", "docker", "opensearch", "fess", "tax"}; err != nil ||
		!cmp.Equal(words, want) {
		t.Errorf("PopularWords() = %q, %v, want %q", words, err, want)
	}
	labels, err := replay(t, "labels").Labels(t.Context())
	if want := []search.Label{{Name: "Finance", Value: "finance"}, {Name: "人事", Value: "hr"},
		{Name: "Tech", Value: "tech"}}; err != nil || !cmp.Equal(labels, want) {
		t.Errorf("Labels() = %v, %v, want %v", labels, err, want)
	}
}

func TestRecordedHealth(t *testing.T) {
	for _, state := range []string{"green", "yellow", "red"} {
		if h, err := replay(t, "health-"+state).Health(t.Context()); err != nil || h.Status != state || h.TimedOut {
			t.Errorf("Health() = %+v, %v, want %s", h, err, state)
		}
	}
}

// ask makes the call that a path belongs to.
func ask(t *testing.T, c *fess.Client, path string, facets *search.Facets) error {
	t.Helper()
	var err error
	switch path {
	case "/api/v1/documents":
		_, err = c.Search(t.Context(), search.Query{Text: query.MustParse("test"), Num: 10, Facets: facets})
	case "/api/v1/suggest-words":
		_, err = c.Suggest(t.Context(), search.SuggestQuery{Prefix: "t", Num: 10})
	case "/api/v1/popular-words":
		_, err = c.PopularWords(t.Context(), search.WordsQuery{})
	case "/api/v1/labels":
		_, err = c.Labels(t.Context())
	case "/api/v1/health":
		_, err = c.Health(t.Context())
	default:
		t.Fatalf("no call asks for %s", path)
	}
	return err
}

func TestRecordedErrors(t *testing.T) {
	const documents, suggest, popular, labels, health = "/api/v1/documents", "/api/v1/suggest-words",
		"/api/v1/popular-words", "/api/v1/labels", "/api/v1/health"
	tests := []struct {
		name   string
		path   string
		also   string // a further recording
		facets bool
		kind   error
		status int
		code   string
		says   string
	}{
		{name: "down-search-1", path: documents, also: "down-health", kind: errkind.Unavailable, status: 503, code: "*",
			says: "search engine does not answer"},
		{name: "down-search-1", path: documents, also: "health-red", kind: errkind.Unavailable, status: 503,
			says: "state red"},
		{name: "down-search-facet", path: documents, also: "health-green", facets: true, kind: errkind.Unavailable,
			status: 502, says: "facets"},
		{name: "facet-field-disallowed", path: documents, also: "health-green", facets: true, kind: errkind.Unavailable,
			status: 502, says: "facets"},
		{name: "down-health", path: health, kind: errkind.Unavailable, status: 500, code: "*",
			says: "search engine does not answer"},
		{name: "suggest-none", path: suggest, kind: errkind.Unavailable, status: 500, code: "*", says: "failed"},
		{name: "q-trailing-or", path: documents, kind: errkind.Invalid, status: 400,
			code: "33dd765d-1469-4ce2-9db1-deb4be61b700", says: "cannot understand the query"},
		{name: "plugin-q-unbalanced-quote", path: documents, kind: errkind.Invalid, status: 400,
			code: "3c4c160f-c910-4da6-ae6d-7c3e9e15011c", says: "cannot understand the query"},
		{name: "auth-bearer-wrong", path: documents, kind: errkind.Unauthorized, status: 401, code: "*",
			says: "access token"},
		{name: "plugin-auth-wrong", path: documents, kind: errkind.Unauthorized, status: 401,
			code: "bc7de37c-feb7-48e2-a327-e7d847ea1a40", says: "access token"},
		{name: "exc-included-sort", path: documents, kind: errkind.Invalid, status: 400,
			says: "cannot understand the query"},
		{name: "exc-included-token", path: documents, kind: errkind.Unauthorized, status: 401, says: "access token"},
		{name: "path-v2-health", path: labels, kind: errkind.Unavailable, status: 502,
			says: "the Fess server answered with a redirect"},
		{name: "ctx-outside-health", path: health, kind: errkind.Unsupported, status: 404, says: "path of its address"},
		{name: "path-unknown", path: popular, kind: errkind.Unsupported, status: 404, says: "path of its address"},
		{name: "q-raw-brackets", path: documents, kind: errkind.Invalid, status: 400, says: "shorter"},
		{name: "method-post-documents", path: documents, kind: errkind.Invalid, status: 405, says: "refuses"},
		{name: "favorites-disabled", path: popular, kind: errkind.Unsupported, status: 400, says: "disabled"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			recordings := []string{test.path + "=" + test.name}
			if test.also != "" {
				recordings = append(recordings, test.also)
			}
			var facets *search.Facets
			if test.facets {
				facets = &search.Facets{Fields: []string{"label"}}
			}
			err := ask(t, replay(t, recordings...), test.path, facets)
			r, ok := errors.AsType[*errkind.Remote](err)
			if !ok || !errors.Is(err, test.kind) || r.Status != test.status || r.Endpoint != test.path {
				t.Fatalf("error = %#v, want kind %v, status %d, endpoint %s", err, test.kind, test.status, test.path)
			}
			if test.code == "*" && len(r.Code) != 36 || test.code != "*" && r.Code != test.code {
				t.Errorf("code = %q, want %q", r.Code, test.code)
			}
			if !strings.Contains(r.Message, test.says) {
				t.Errorf("message = %q, want it to say %q", r.Message, test.says)
			}
			for _, secret := range []string{"127.0.0.1", "codelibs", "Exception", "wrongtoken", "error/notfound",
				"nope"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("error %q gives away %q", err, secret)
				}
			}
		})
	}
}

// TestRecordedEmptyAnswer checks that nothing found is nothing found where the
// server is well.
func TestRecordedEmptyAnswer(t *testing.T) {
	c := replay(t, "down-search-1", "health-yellow")
	if p, err := c.Search(t.Context(), search.Query{Text: query.MustParse("test"), Num: 1}); err != nil ||
		p.Total != 0 || p.Hits == nil {
		t.Errorf("Search() = %+v, %v, want an empty page", p, err)
	}
}
