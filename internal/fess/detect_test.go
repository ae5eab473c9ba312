package fess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// clientOf returns a client of a handler, without a network.
func clientOf(t testing.TB, h http.Handler, o Options) *Client {
	t.Helper()
	o.BaseURL = "http://fess.example/fess"
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport = inMemory{h}
	return c
}

// fakeOf returns a fake with a version of the API.
func fakeOf(api string) *fesstest.Handler {
	return fesstest.NewHandler(searchtest.Secrets(), fesstest.Options{ContextPath: "/fess", API: api})
}

// asked returns the paths that a fake was asked for.
func asked(h *fesstest.Handler) string {
	var all []string
	for _, r := range h.Requests() {
		all = append(all, strings.TrimPrefix(r.Path, "/fess/api/"))
	}
	return strings.Join(all, " ")
}

func searchAlpha(c *Client) error {
	_, err := c.Search(context.Background(), search.Query{Text: query.MustParse("alpha"), Labels: []string{"finance"},
		Num: 10})
	return err
}

func TestDetection(t *testing.T) {
	tests := []struct {
		server, api string
		asked       string // by a search and a call for labels
		says        string // in the search's error, "" for none
	}{
		{"v1", "", "v1/documents v1/labels", ""},
		{"v1", "auto", "v1/documents v1/labels", ""},
		{"both", "auto", "v1/documents v1/labels", ""},
		{"v2", "auto", "v1/documents v2/health v2/search v2/labels", ""},
		{"v2", "v2", "v2/search v2/labels", ""},
		{"both", "v2", "v2/search v2/labels", ""},
		{"v1", "v1", "v1/documents v1/labels", ""},
		{"v2", "v1", "v1/documents v1/labels", "redirect (302): check that its API is enabled"},
		{"v1", "v2", "v2/search v2/labels", "fessApi is v2, auto detects"},
	}
	for _, test := range tests {
		h := fakeOf(test.server)
		c := clientOf(t, h, Options{API: test.api})
		err := searchAlpha(c)
		if test.says == "" && err != nil || test.says != "" &&
			(err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("API %q of a server with %s: Search() = %v, want %q", test.api, test.server, err, test.says)
		}
		_, _ = c.Labels(t.Context())
		if got := asked(h); got != test.asked {
			t.Errorf("API %q of a server with %s asked for %s, want %s", test.api, test.server, got, test.asked)
		}
	}
	if _, err := New(Options{BaseURL: "http://h", API: "v3"}); !errors.Is(err, errkind.Invalid) {
		t.Errorf("New(API v3) = %v, want kind Invalid", err)
	}
}

// page answers with a status and a page that is none of Fess's.
func page(status int, contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
}

// TestDetectionChanges puts one server after the other behind a client, and a
// search to each.
func TestDetectionChanges(t *testing.T) {
	v1, v2, both := fakeOf("v1"), fakeOf("v2"), fakeOf("both")
	html := func(status int) http.Handler { return page(status, "text/html", "<html>") }
	json := func(status int, body string) http.Handler { return page(status, "application/json", body) }
	limited := json(429, `{"error":"rate_limit_exceeded","message":"Too many requests.","retry_after":60}`)
	busy := json(429, `{"response":{"status":9,"message":"Server is busy."}}`)
	tests := []struct {
		name    string
		servers []http.Handler
		ends    []error // kinds of the searches' errors, nil for none
		asked   string  // of the last server
	}{
		{"upgrade", []http.Handler{v1, v2}, []error{nil, nil}, "v1/documents v2/health v2/search"},
		{"downgrade", []http.Handler{v2, v1}, []error{nil, nil}, "v2/search v1/documents"},
		{"plugin appears", []http.Handler{v2, both}, []error{nil, nil}, "v2/search"},
		{"plugin goes", []http.Handler{both, v2}, []error{nil, nil}, "v1/documents v2/health v2/search"},
		{"proxy without a server", []http.Handler{html(502), v2}, []error{errkind.Unavailable, nil},
			"v1/documents v2/health v2/search"},
		{"outage of v2", []http.Handler{v2, html(503), v2}, []error{nil, errkind.Unavailable, nil}, "v2/search"},
		{"limits of rates", []http.Handler{limited, busy, v2}, []error{errkind.Busy, errkind.Busy, nil},
			"v1/documents v2/health v2/search"},
		{"login page", []http.Handler{v2, html(200), v1}, []error{nil, errkind.Unavailable, nil}, "v1/documents"},
		{"another program", []http.Handler{json(200, `{"status":"ok"}`), json(404, `{"detail":"Not Found"}`), v1},
			[]error{errkind.Unavailable, errkind.Unsupported, nil}, "v1/documents"},
		{"long request", []http.Handler{v2, html(400), v2}, []error{nil, errkind.Invalid, nil}, "v2/search"},
	}
	for _, test := range tests {
		c := clientOf(t, nil, Options{})
		for i, h := range test.servers {
			if fake, ok := h.(*fesstest.Handler); ok {
				fake.Forget()
			}
			c.http.Transport = inMemory{h}
			if err := searchAlpha(c); !errors.Is(err, test.ends[i]) {
				t.Errorf("%s: Search() of server %d = %v, want kind %v", test.name, i+1, err, test.ends[i])
			}
		}
		if got := asked(test.servers[len(test.servers)-1].(*fesstest.Handler)); got != test.asked {
			t.Errorf("%s: the last server was asked for %s, want %s", test.name, got, test.asked)
		}
	}
}

// TestDetectionFilters checks that nothing is learnt from answers of what stands
// before both versions of the API.
func TestDetectionFilters(t *testing.T) {
	for body, status := range map[string]int{`{"error":"rate_limit_exceeded","message":"Too many requests."}`: 429,
		`{"error":"ip_blocked","message":"Access denied."}`:     403,
		`{"response":{"status":9,"message":"Server is busy."}}`: 429} {
		c := clientOf(t, page(status, "application/json", body), Options{})
		if err := searchAlpha(c); err == nil || c.api.known() != unknown {
			t.Errorf("Search() answered with %s = %v, found %v, want an error and no version", body, err, c.api.known())
		}
	}
}

// TestDetectionUnreachable checks that a server that cannot be reached leaves
// nothing behind.
func TestDetectionUnreachable(t *testing.T) {
	c, err := New(Options{BaseURL: "http://nosuch.invalid/fess"})
	if err != nil {
		t.Fatal(err)
	}
	if err := searchAlpha(c); !errkind.Retryable(err) {
		t.Errorf("Search() of no server = %v, want an error that can be retried", err)
	}
	h := fakeOf("v2")
	c.http.Transport = inMemory{h}
	if err := searchAlpha(c); err != nil {
		t.Errorf("Search() when the server is there = %v, want a page", err)
	}
}

// TestV2Requests compares the requests of API v2.
func TestV2Requests(t *testing.T) {
	h := fakeOf("v2")
	c := clientOf(t, h, Options{API: "v2", AccessToken: ""})
	ctx := t.Context()
	tests := map[string]func() error{
		"search?q=alpha&fields.label=finance&start=0&num=10": func() error { return searchAlpha(c) },
		"search?q=%28alpha+OR+beta%29&start=20&num=5&sort=score.desc&lang=ja&facet.field=label&facet.size=5": func() error {
			_, err := c.Search(ctx, search.Query{Text: query.MustParse("alpha OR beta"), Start: 20, Num: 5,
				Sort:  []search.SortKey{{Field: "score", Desc: true}},
				Langs: []string{"ja"}, Facets: &search.Facets{Fields: []string{"label"}, Size: 5}})
			return err
		},
		"suggest-words?q=al&num=3&label=finance&fn=title&fn=content&lang=en": func() error {
			_, err := c.Suggest(ctx, search.SuggestQuery{Prefix: "al", Num: 3, Labels: []string{"finance"},
				Fields: []string{"title", "content"}, Langs: []string{"en"}})
			return err
		},
		"popular-words?label=hr&seed=7&field=_default": func() error {
			_, err := c.PopularWords(ctx, search.WordsQuery{Seed: "7", Labels: []string{"hr"},
				Fields: []string{"_default"}})
			return err
		},
		"labels": func() error { _, err := c.Labels(ctx); return err },
		"health": func() error { _, err := c.Health(ctx); return err },
	}
	for want, call := range tests {
		h.Forget()
		if err := call(); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		got := []string{}
		for _, r := range h.Requests() {
			got = append(got, strings.TrimSuffix(strings.TrimPrefix(r.Path, "/fess/api/v2/")+"?"+r.Query, "?"))
		}
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("requests: (-want +got)\n%s", diff)
		}
	}
}

// TestV2Limits checks what API v2 would refuse without saying why, or clamp.
func TestV2Limits(t *testing.T) {
	many := make([]string, 101)
	for i := range many {
		many[i] = "label"
	}
	long := strings.Repeat("検", 1001)
	facets := func(f search.Facets) search.Query { return search.Query{Num: 1, Facets: &f} }
	tests := []struct {
		argument string
		q        search.Query
	}{
		{"query", search.Query{Text: query.MustParse(long), Num: 1}},
		{"labels", search.Query{Num: 1, Labels: many}},
		{"facets.field", facets(search.Facets{Fields: many})},
		{"facets.query", facets(search.Facets{Queries: []string{long}})},
		{"facets.size", facets(search.Facets{Fields: []string{"label"}, Size: 1001})},
		{"facets.missing", facets(search.Facets{Fields: []string{"label"}, Missing: long})},
		{"", search.Query{Text: query.MustParse(strings.Repeat("x", 1000)), Num: 1}},
		{"", facets(search.Facets{Fields: []string{"label"}, Size: 1000})},
		{"", search.Query{Num: 1, Labels: many[:100]}},
	}
	h := fakeOf("v2")
	c := clientOf(t, h, Options{API: "v2"})
	for _, test := range tests {
		h.Forget()
		_, err := c.Search(t.Context(), test.q)
		name := ""
		if a, ok := errors.AsType[*errkind.Argument](err); ok {
			name = a.Name
		}
		if name != test.argument || name == "" && err != nil || name != "" && len(h.Requests()) > 0 {
			t.Errorf("Search(%.80v) = %v after %d requests, want an error about %q", test.q, err, len(h.Requests()),
				test.argument)
		}
	}
}

// TestRelaxedTooLong checks that a query that OR makes too long for Fess is sent
// only as it was.
func TestRelaxedTooLong(t *testing.T) {
	h := fakeOf("v2")
	var text strings.Builder
	for i := range 140 {
		fmt.Fprintf(&text, " zq%03d", i)
	}
	p, err := search.Relax(t.Context(), clientOf(t, h, Options{API: "v2"}),
		search.Query{Text: query.MustParse(text.String()[1:]), Num: 1})
	if err != nil || p.Total != 0 || p.Relaxed || strings.Count(asked(h), "search") != 1 {
		t.Errorf("Search() = %+v, %v, asked %s, want nothing found and one search", p, err, asked(h))
	}
}

// TestRetryAfterDate checks the other form of the header.
func TestRetryAfterDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for wait, want := range map[time.Duration]time.Duration{90 * time.Second: 90 * time.Second, -time.Minute: 0,
			48 * time.Hour: time.Hour} {
			for _, status := range []int{429, 503} {
				c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Retry-After", time.Now().Add(wait).UTC().Format(http.TimeFormat))
					page(status, "application/json", `{"message":"busy"}`).ServeHTTP(w, r)
				}), Options{})
				_, err := c.Labels(t.Context())
				if r, ok := errors.AsType[*errkind.Remote](err); !ok || r.Retry != want || r.Status != status ||
					!errkind.Retryable(err) {
					t.Errorf("Labels() answered %d with a date %v ahead = %+v, want a wait of %v", status, wait, err,
						want)
				}
			}
		}
	})
}
