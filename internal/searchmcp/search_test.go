package searchmcp

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"

	"github.com/google/go-cmp/cmp"
)

type args = map[string]any

// read returns a text that was typed.
func read(t *testing.T, typed string) query.Text {
	t.Helper()
	text, err := query.Read(typed)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What of a search's arguments reaches the service.
func TestSearchQuery(t *testing.T) {
	base := search.Query{Text: read(t, "test"), Labels: []string{"finance_docs"}, Num: 20}
	with := func(change func(*search.Query)) search.Query {
		q := base
		change(&q)
		return q
	}
	for _, tt := range []struct {
		name string
		args args
		max  int
		want search.Query
	}{
		{"AT-TOOL-002 defaults", args{}, 0, base},
		{"AT-TOOL-003 pageSize", args{"pageSize": 30}, 0, with(func(q *search.Query) { q.Num = 30 })},
		{"largest page", args{"pageSize": 100}, 0, with(func(q *search.Query) { q.Num = 100 })},
		{"default page under a small limit", args{}, 7, with(func(q *search.Query) { q.Num = 7 })},
		{"integer with a fraction of zero", args{"pageSize": json.RawMessage("5.0")}, 0,
			with(func(q *search.Query) { q.Num = 5 })},
		{"last page of the window", args{"start": 9980}, 0, with(func(q *search.Query) { q.Start = 9980 })},
		{"query as it is", args{"query": " test  OR \"a b\" label:hr"}, 0,
			with(func(q *search.Query) { q.Text = read(t, " test  OR \"a b\" label:hr") })},
		{"sort", args{"sort": "timestamp.desc, filename,score,created.asc"}, 0, with(func(q *search.Query) {
			q.Sort = []search.SortKey{{Field: "timestamp", Desc: true}, {Field: "filename"},
				{Field: "score", Desc: true}, {Field: "created"}}
		})},
		{"worst first", args{"sort": "score.asc"}, 0,
			with(func(q *search.Query) { q.Sort = []search.SortKey{{Field: "score"}} })},
		{"empty sort and lang", args{"sort": "", "lang": ""}, 0, base},
		{"lang", args{"lang": "en"}, 0, with(func(q *search.Query) { q.Langs = []string{"en"} })},
		{"langs", args{"lang": "ja, zh-cn"}, 0, with(func(q *search.Query) { q.Langs = []string{"ja", "zh-cn"} })},
		{"geo", args{"geo": args{"point": "35.68, -139.7", "distance": "1.5km"}}, 0,
			with(func(q *search.Query) { q.Geo = &search.Geo{Point: "35.68, -139.7", Distance: "1.5km"} })},
		{"facets", args{"facets": args{"field": []string{"label", "filetype"}, "query": []string{"a", "b:c"},
			"size": 1000, "minDocCount": 2,
			"sort": "term.asc", "missing": "none"}}, 0, with(func(q *search.Query) {
			q.Facets = &search.Facets{Fields: []string{"label", "filetype"}, Queries: []string{"a", "b:c"}, Size: 1000,
				MinDocCount: 2,
				Sort:        "term.asc", Missing: "none"}
		})},
		{"single strings for lists", args{"facets": args{"field": "label", "query": "a"}}, 0,
			with(func(q *search.Query) {
				q.Facets = &search.Facets{Fields: []string{"label"}, Queries: []string{"a"}, Size: 10}
			})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := corpus()
			c := start(t, Options{Domain: finance, Backend: f, MaxPageSize: tt.max}, mcpserver.Pinned)
			if tt.args["query"] == nil {
				tt.args["query"] = "test"
			}
			c.ok("search", tt.args)
			if diff := cmp.Diff(tt.want, f.query); diff != "" {
				t.Errorf("query of %v (-want +got):\n%s", tt.args, diff)
			}
		})
	}
}

// TestSearchWholeIndex has no label to send, and says so where nothing is found.
func TestSearchWholeIndex(t *testing.T) {
	f := corpus()
	d := finance
	d.Label = ""
	c := start(t, Options{Domain: d, Backend: f}, mcpserver.Pinned)
	var r searchAnswer
	c.into("search", args{"query": "test"}, &r)
	if f.query.Labels != nil || r.Total != 3 {
		t.Errorf("labels = %v, total = %d, want none and 3", f.query.Labels, r.Total)
	}
	var list struct {
		Resources []struct{ Description string }
	}
	c.Call("resources/list", nil).Decode(t, &list)
	for _, entry := range list.Resources {
		if !strings.HasSuffix(entry.Description, "\n\n"+d.Block(OfFess)) {
			t.Errorf("description = %q, want it to end with %q", entry.Description, d.Block(OfFess))
		}
	}
	c.into("search", args{"query": "zebra"}, &r)
	if !strings.Contains(r.Hint, "the whole index") {
		t.Errorf("hint = %q, want it to say that the whole index was searched", r.Hint)
	}
}

// searchAnswer is a search result as clients decode it.
type searchAnswer struct {
	Total, Start, PageSize, NextStart int
	Results                           []map[string]any
	Relaxed, TotalIsLowerBound        bool
	AllWords                          *int
	Hint                              string
	Facets                            json.RawMessage
}

func TestSearchPage(t *testing.T) {
	hits := func(n int) []search.Hit { return make([]search.Hit, n) }
	for _, tt := range []struct {
		name string
		args args
		page search.Page
		want string // the result without its hits
	}{
		{"last page", args{"start": 20}, search.Page{Total: 25, Hits: hits(5)},
			`{"total":25,"start":20,"pageSize":20,"results":[]}`},
		{"more to come", args{}, search.Page{Total: 25, Hits: hits(20)},
			`{"total":25,"start":0,"pageSize":20,"results":[],"nextStart":20}`},
		{"server with smaller pages", args{"pageSize": 50}, search.Page{Total: 25, Hits: hits(10)},
			`{"total":25,"start":0,"pageSize":50,"results":[],"nextStart":10}`},
		{"total unknown", args{"pageSize": 2}, search.Page{Total: 2, AtLeast: true, Hits: hits(2)},
			`{"total":2,"start":0,"pageSize":2,"results":[],"nextStart":2,"totalIsLowerBound":true}`},
		{"end of the window", args{"start": 9980}, search.Page{Total: 12000, Hits: hits(20)},
			`{"total":12000,"start":9980,"pageSize":20,"results":[]}`},
		{"relaxed", args{}, search.Page{Total: 1, Hits: hits(1), Relaxed: true},
			`{"total":1,"start":0,"pageSize":20,"results":[],"relaxed":true}`},
		{"staged", args{}, search.Page{Total: 1, Hits: hits(1), Staged: true},
			`{"total":1,"start":0,"pageSize":20,"results":[],"allWords":0}`},
		{"similar words", args{}, search.Page{Total: 1, Hits: hits(1), Relaxed: true,
			DidYouMean: []string{"certi\u200bficate"}},
			`{"total":1,"start":0,"pageSize":20,"results":[],"relaxed":true,"didYouMean":["certificate"]}`},
		{"facets", args{"facets": args{"field": "label"}}, search.Page{Total: 1, Hits: hits(1),
			Facets: &search.FacetCounts{
				Fields:  []search.FieldCounts{{Name: "label", Counts: []search.Count{{Value: "a<b>", Count: 3}}}},
				Queries: []search.Count{{Value: "q", Count: 0}}}},
			`{"total":1,"start":0,"pageSize":20,"results":[],"facets":{"fields":[{"name":"label","result":[{"value":"a<b>","count":3}]}],` +
				`"queries":[{"value":"q","count":0}]}}`},
		{"facets that found nothing", args{"facets": args{"query": "q"}}, search.Page{Total: 1, Hits: hits(1)},
			`{"total":1,"start":0,"pageSize":20,"results":[],"facets":{"fields":[],"queries":[]}}`},
		{"nothing", args{}, search.Page{},
			`{"total":0,"start":0,"pageSize":20,"results":[],"hint":"Nothing found in domain finance ` +
				`(label finance_docs). Try fewer or other words, or fess_finance_suggest."}`},
		{"nothing in a language", args{"lang": "ja"}, search.Page{},
			`{"total":0,"start":0,"pageSize":20,"results":[],"hint":"Nothing found in domain finance ` +
				`(label finance_docs). Try fewer or other words, or fess_finance_suggest. Leaving out lang finds more."}`},
		{"past the end", args{"start": 40}, search.Page{Total: 25},
			`{"total":25,"start":40,"pageSize":20,"results":[],` +
				`"hint":"No hits from start 40 on: there are 25 in all."}`},
		{"partial", args{}, search.Page{Total: 3, AtLeast: true, Partial: true},
			`{"total":3,"start":0,"pageSize":20,"results":[],` +
				`"partial":true,"totalIsLowerBound":true,"hint":"Not all documents were searched: there was not enough time, or a part of the index is being ` +
				`built again. Use fewer words, or more letters before a wildcard, or search again in a few seconds."}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := corpus()
			f.page = &tt.page
			c := start(t, Options{Domain: finance, Backend: f}, mcpserver.Pinned)
			tt.args["query"] = "test"
			got := c.ok("search", tt.args)
			if i, j := strings.Index(got, `"results":[`), strings.Index(got, `}]`); len(tt.page.Hits) > 0 && j > i {
				got = got[:i] + `"results":[]` + got[j+2:]
			}
			if got != tt.want {
				t.Errorf("search(%v) = %s\nwant %s", tt.args, got, tt.want)
			}
		})
	}
}

func TestSearchHit(t *testing.T) {
	h := search.Hit{
		ID: "d1", Title: " Annual\u202e\n report ", URL: "file:///a b.txt", Score: 1.23456789, Size: 5, Host: "h",
		Labels:    []string{"a", "b\u200b"},
		Digest:    search.Excerpt{Text: "the test <b>", Matches: []search.Span{{Start: 4, End: 8}}},
		Timestamp: time.Date(2025, 11, 1, 9, 0, 0, 0, time.FixedZone("", 3600)),
		Extra: map[string]any{"url_link": "file://host/a b.txt", "boost": 1.5, "content": strings.Repeat("long ", 1000),
			"has_cache": true,
			"site":      map[string]any{"odd": 1}, "click_count": math.Inf(1)},
	}
	for _, tt := range []struct {
		name   string
		fields []string
		change func(*search.Hit)
		want   string
	}{
		{"default", nil, nil,
			`{"doc_id":"d1","title":"Annual report","url":"file:///a b.txt","digest":"the test <b>","score":1.2346,"url_link":"file://host/a b.txt"}`},
		{"same url_link, no score", nil, func(h *search.Hit) { h.URL, h.Score = "file://host/a b.txt", 0 },
			`{"doc_id":"d1","title":"Annual report","url":"file://host/a b.txt","digest":"the test <b>"}`},
		{"odd score", nil, func(h *search.Hit) { h.Score, h.Extra = math.NaN(), nil },
			`{"doc_id":"d1","title":"Annual report","url":"file:///a b.txt","digest":"the test <b>"}`},
		{"small score", []string{"score"}, func(h *search.Hit) { h.Score = 0.0000123456 },
			`{"doc_id":"d1","score":0.000012346}`},
		{"one field", []string{"host"}, nil, `{"doc_id":"d1","host":"h"}`},
		{"order is ours", []string{"label", "score", "title"}, nil,
			`{"doc_id":"d1","title":"Annual report","score":1.2346,"label":["a","b"]}`},
		{"twice the same", []string{"host", "host"}, nil, `{"doc_id":"d1","host":"h"}`},
		{"not sent", []string{"lang", "created"}, nil, `{"doc_id":"d1"}`},
		{"kinds", []string{"boost", "content_length", "has_cache", "site", "timestamp", "click_count"}, nil,
			`{"doc_id":"d1","boost":1.5,"content_length":5,"has_cache":true,"timestamp":"2025-11-01T08:00:00.000Z"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hit := h
			if tt.change != nil {
				tt.change(&hit)
			}
			f := corpus()
			f.page = &search.Page{Total: 1, Hits: []search.Hit{hit}}
			c := start(t, Options{Domain: finance, Backend: f}, mcpserver.Pinned)
			a := args{"query": "test"}
			if tt.fields != nil {
				a["includeFields"] = tt.fields
			}
			got := c.ok("search", a)
			if want := `{"total":1,"start":0,"pageSize":20,"results":[` + tt.want + `]}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	if got := fieldValue(&h, "content").(string); len([]rune(got)) > fieldRunes {
		t.Errorf("content has %d runes, want at most %d", len([]rune(got)), fieldRunes)
	}
}

func TestOtherLink(t *testing.T) {
	for _, tt := range []struct{ url, link, want string }{
		{"https://a.example/x", "", ""},
		{"https://a.example/x", "https://a.example/x", ""},
		{"https://a.example/x?a=%41", "https://a.example/x?a=A", "https://a.example/x?a=A"},
		{"file:///srv/share/finance/report%202024.xls", "file://srv/share/finance/report 2024.xls", ""},
		// as recorded of 15.4 and 15.7
		{"file:////server/share/a.txt", "file://server/share/a.txt", ""},
		{"file:///srv/docs/a%20b.txt", "file:///srv/docs/a b.txt", ""},
		{"file:///srv/100%.txt", "file://srv/100%.txt", ""},
		{"smb://files.example.com/hr/a.docx", "file://files.example.com/hr/a.docx",
			"file://files.example.com/hr/a.docx"},
		{"file:///srv/a.txt", "https://files.example.com/a.txt", "https://files.example.com/a.txt"},
		{"file:///srv/a.txt", "file:///mnt/a.txt", "file:///mnt/a.txt"},
	} {
		h := &search.Hit{URL: tt.url, Extra: map[string]any{"url_link": tt.link}}
		if got := otherLink(h); got != tt.want {
			t.Errorf("otherLink(%q, %q) = %q, want %q", tt.url, tt.link, got, tt.want)
		}
		b := New(Options{Domain: finance, Backend: corpus()})
		if got := b.summary(h).URLLink; got != link(tt.want) {
			t.Errorf("summary(%q, %q).URLLink = %q, want %q", tt.url, tt.link, got, link(tt.want))
		}
	}
}

// fullPage is a page of 20 ordinary hits with long texts.
func fullPage() *search.Page {
	p := &search.Page{Total: 12345}
	for i := range 20 {
		p.Hits = append(p.Hits, search.Hit{
			ID: fmt.Sprintf("%032x", i), Title: "Quarterly report of the year",
			URL:    fmt.Sprintf("https://docs.example.com/report%d.html", i),
			Digest: search.Excerpt{Text: strings.Repeat("many words of a text ", 500)}, Score: 12.34567,
			Extra: map[string]any{"content": strings.Repeat("x", 100_000),
				"url_link": fmt.Sprintf("https://docs.example.com/report%d.html", i)},
		})
	}
	return p
}

// Twenty ordinary hits take no more than 8 KB, whatever their texts.
func TestSearchSize(t *testing.T) {
	f := corpus()
	f.page = fullPage()
	c := start(t, Options{Domain: finance, Backend: f}, mcpserver.Pinned)
	if got := c.ok("search", args{"query": "test"}); len(got) > 8<<10 {
		t.Errorf("20 hits take %d bytes, want at most %d", len(got), 8<<10)
	}
}

// BenchmarkSearch is the cost of a search beyond the service's own.
func BenchmarkSearch(b *testing.B) {
	f := corpus()
	f.page = fullPage()
	br := New(Options{Domain: finance, Backend: f})
	b.ReportAllocs()
	for b.Loop() {
		r, err := br.search(b.Context(), SearchArgs{Query: "test", PageSize: 20})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := json.Marshal(r); err != nil {
			b.Fatal(err)
		}
	}
}

func TestSearchShowsIndexing(t *testing.T) {
	f := corpus()
	c := start(t, Options{Domain: finance, Backend: indexingBackend{f}}, mcpserver.Pinned)
	meta := func() map[string]any {
		var r struct {
			Meta map[string]any `json:"_meta"`
		}
		c.tool("search", args{"query": "test"}).Decode(t, &r)
		return r.Meta
	}
	if m := meta(); m["indexing"] != nil {
		t.Errorf("_meta when idle = %v, want no indexing", m)
	}
	f.busy = true
	want := map[string]any{"done": 3.0, "total": 40.0}
	if m := meta(); !cmp.Equal(want, m["indexing"]) {
		t.Errorf("_meta.indexing = %v, want %v", m["indexing"], want)
	}
}

// laterBackend is an indexingBackend that finds nothing before a time.
type laterBackend struct {
	indexingBackend
	ready time.Time
}

func (l laterBackend) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	if time.Now().Before(l.ready) {
		return &search.Page{}, nil
	}
	return l.indexingBackend.Search(ctx, q)
}

// A search that finds nothing waits a moment for documents that are being
// indexed.
func TestSearchAwaitsIndexing(t *testing.T) {
	for _, tc := range []struct {
		name  string
		busy  bool
		after time.Duration // the documents are indexed
		want  bool          // something is found
		took  time.Duration
	}{
		{"found", true, 0, true, 0},
		{"found soon", true, 100 * time.Millisecond, true, 100 * time.Millisecond},
		{"found too late", true, time.Minute, false, emptyWait},
		{"not indexing", false, time.Minute, false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := corpus()
				f.busy = tc.busy
				begin := time.Now()
				b := New(Options{Domain: finance, Backend: laterBackend{indexingBackend{f}, begin.Add(tc.after)}})
				page, progress, err := b.findPage(t.Context(), search.Query{Text: read(t, "test"), Num: 8})
				if err != nil {
					t.Fatal(err)
				}
				if found := page.Total > 0; found != tc.want || (progress != nil) != tc.busy {
					t.Errorf("findPage() = %d hits, progress %v, want hits: %v, progress: %v", page.Total, progress,
						tc.want, tc.busy)
				}
				if took := time.Since(begin); took != tc.took {
					t.Errorf("findPage() took %v, want %v", took, tc.took)
				}
			})
		})
	}
}

// Failures of the service come to the caller as they are (AT-ERR-002).
func TestSearchRemoteError(t *testing.T) {
	f := corpus()
	f.err = &errkind.Remote{Endpoint: "/api/v1/documents", Status: 502, Message: "the Fess server did not answer"}
	c := start(t, Options{Domain: finance, Backend: f}, mcpserver.Pinned)
	for _, name := range []string{"search", "suggest", "popular_words", "list_labels", "health", "get_document",
		"read_content"} {
		a := c.tool(name, required[name])
		if a.Error == nil || a.Error.Field("httpStatus") != "502" || a.Error.Field("endpoint") != "/api/v1/documents" ||
			a.Error.Field("retryable") != "true" {
			t.Errorf("%s = %s, want the upstream's error", name, a.Raw)
		}
	}
}
