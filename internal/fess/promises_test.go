package fess

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// A promise is a point in which the specification expects of Fess what no Fess
// does, and what the client makes of it. The numbers are those under which the
// points are known; those left out are met by the tools in front of the client.
type promise struct {
	name  string
	check func(*testing.T, *Client, *fesstest.Handler)
}

// lastQuery returns the parameters of the last request.
func lastQuery(t *testing.T, h *fesstest.Handler) url.Values {
	t.Helper()
	all := h.Requests()
	if len(all) == 0 {
		t.Fatal("no request was made, want one")
	}
	values, err := url.ParseQuery(all[len(all)-1].Query)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// refusedBefore checks that a search is refused without a request.
func refusedBefore(t *testing.T, c *Client, h *fesstest.Handler, name string, q search.Query) {
	t.Helper()
	h.Forget()
	_, err := c.Search(t.Context(), q)
	if a, ok := errors.AsType[*errkind.Argument](err); !ok || a.Name != name || len(h.Requests()) != 0 {
		t.Errorf("Search(%+v) = %v after %d requests, want an error about %s before any", q, err, len(h.Requests()),
			name)
	}
}

var searchPromises = []promise{
	{"1 page size is always sent", func(t *testing.T, c *Client, h *fesstest.Handler) {
		if err := searchAlpha(c); err != nil || lastQuery(t, h).Get("num") != "10" ||
			lastQuery(t, h).Get("start") != "0" {
			t.Errorf("Search() = %v with %v, want num and start", err, lastQuery(t, h))
		}
	}},
	{"2 page size beyond 100 is refused, not clamped", func(t *testing.T, c *Client, h *fesstest.Handler) {
		refusedBefore(t, c, h, "num", search.Query{Num: 101})
	}},
	{"5 no query leaves its label", func(t *testing.T, c *Client, h *fesstest.Handler) {
		for _, text := range []string{"alpha OR", "NOT", "alpha ||", "alpha label:hr OR", `alpha\`,
			"alpha) OR (label:hr"} {
			asked, err := query.Read(text)
			if err != nil {
				t.Fatal(err)
			}
			p, err := c.Search(t.Context(), search.Query{Text: asked, Labels: []string{"finance"}, Num: 100})
			if err == nil && foreign(p.Hits) != "" || err != nil && !errors.Is(err, errkind.Invalid) {
				t.Errorf("Search(%q) = %+v, %v, want documents of finance alone", text, p, err)
			}
		}
	}},
	{"6 a plain query goes as it is", func(t *testing.T, c *Client, h *fesstest.Handler) {
		if err := searchAlpha(c); err != nil {
			t.Fatal(err)
		}
		want := url.Values{"q": {"alpha"}, "fields.label": {"finance"}, "start": {"0"}, "num": {"10"}}
		if diff := cmp.Diff(want, lastQuery(t, h)); diff != "" {
			t.Errorf("parameters: (-want +got)\n%s", diff)
		}
	}},
	{"12 a document is found by its ID within the labels", func(t *testing.T, c *Client, h *fesstest.Handler) {
		if hit, err := c.Find(t.Context(), "finance0", []string{"finance"}); err != nil || hit.ID != "finance0" {
			t.Errorf("Find() = %+v, %v, want the document", hit, err)
		}
		if got := lastQuery(t, h); got.Get("q") != "doc_id:finance0" || got.Get("fields.label") != "finance" {
			t.Errorf("parameters %v, want the ID and the label", got)
		}
		for _, id := range []string{"hr0", "nosuch", "finance0 OR doc_id:hr0", "", "*"} {
			if _, err := c.Find(t.Context(), id, []string{"finance"}); !errors.Is(err, errkind.NotFound) {
				t.Errorf("Find(%q) = %v, want kind NotFound", id, err)
			}
		}
	}},
	{"13 a whole label is listed, up to the window", func(t *testing.T, c *Client, h *fesstest.Handler) {
		p, err := c.Search(t.Context(), search.Query{Labels: []string{"finance"},
			Sort: []search.SortKey{{Field: "timestamp", Desc: true}}, Num: 100})
		if err != nil || p.Total != 8 || lastQuery(t, h).Has("q") || lastQuery(t, h).Get("sort") != "timestamp.desc" {
			t.Errorf("Search() of a label = %+v, %v with %v, want all 8 without q", p, err, lastQuery(t, h))
		}
		refusedBefore(t, c, h, "start", search.Query{Start: 9_950, Num: 51})
	}},
	{"14 sort orders are checked, and never bare", func(t *testing.T, c *Client, h *fesstest.Handler) {
		if _, err := c.Search(t.Context(), search.Query{Text: query.MustParse("alpha"), Num: 1,
			Sort: []search.SortKey{{Field: "score", Desc: true}, {Field: "filename"}}}); err != nil {
			t.Fatal(err)
		}
		if got := lastQuery(t, h).Get("sort"); got != "score.desc,filename.asc" {
			t.Errorf("sort = %q, want score.desc,filename.asc", got)
		}
		refusedBefore(t, c, h, "sort", search.Query{Num: 1, Sort: []search.SortKey{{Field: "create_timestamp"}}})
	}},
	{"15 facets are checked", func(t *testing.T, c *Client, h *fesstest.Handler) {
		refusedBefore(t, c, h, "facets.field", search.Query{Num: 1, Facets: &search.Facets{Fields: []string{"doc_id"}}})
		refusedBefore(t, c, h, "facets.size", search.Query{Num: 1,
			Facets: &search.Facets{Fields: []string{"label"}, Size: -1}})
		p, err := c.Search(t.Context(), search.Query{Num: 1, Facets: &search.Facets{Fields: []string{"label"},
			Sort: "term.asc", Missing: "none", MinDocCount: 2}})
		if err != nil || len(p.Facets.Fields) != 1 || len(p.Facets.Fields[0].Counts) != 2 {
			t.Errorf("Search() with facets = %+v, %v, want two labels", p, err)
		}
	}},
	{"16 a place needs a point and a distance", func(t *testing.T, c *Client, h *fesstest.Handler) {
		refusedBefore(t, c, h, "geo.distance", search.Query{Num: 1, Geo: &search.Geo{Point: "1,2"}})
		refusedBefore(t, c, h, "geo.point", search.Query{Num: 1, Geo: &search.Geo{Distance: "1km"}})
	}},
	{"17 no score where a field sorts, no mark-up in excerpts", func(t *testing.T, c *Client, h *fesstest.Handler) {
		p, err := c.Search(t.Context(), search.Query{Text: query.MustParse("alpha"), Num: 1,
			Sort: []search.SortKey{{Field: "created"}}})
		if err != nil || len(p.Hits) != 1 || p.Hits[0].Score != 0 || p.Hits[0].URL != "file:///finance" ||
			p.Hits[0].Extra["url_link"] != "file:///finance" {
			t.Fatalf("Search() = %+v, %v, want a hit without a score", p, err)
		}
		description, _ := p.Hits[0].Extra["content_description"].(string)
		for _, s := range []string{p.Hits[0].TitleExcerpt.Text, description} {
			if s == "" || strings.Contains(s, "<") {
				t.Errorf("excerpt %q, want plain text", s)
			}
		}
	}},
	{"20 the three times come along", func(t *testing.T, c *Client, h *fesstest.Handler) {
		hit, err := c.Find(t.Context(), "finance0", nil)
		if err != nil || hit.Timestamp.IsZero() || hit.Created.IsZero() || hit.Modified.IsZero() {
			t.Errorf("Find() = %+v, %v, want timestamp, created and last_modified", hit, err)
		}
	}},
}

var otherPromises = []promise{
	{"3 suggest's fields go under every name they have", func(t *testing.T, c *Client, h *fesstest.Handler) {
		for _, fields := range [][]string{{"title", "content"}, nil} {
			if _, err := c.Suggest(t.Context(), search.SuggestQuery{Prefix: "al", Num: 5, Fields: fields}); err != nil {
				t.Fatal(err)
			}
			got := lastQuery(t, h)
			inV1 := cmp.Equal(got["field"], fields) && got.Get("fields") == strings.Join(fields, ",")
			if inV2 := cmp.Equal(got["fn"], fields); !inV1 && !inV2 || fields == nil &&
				(got.Has("field") || got.Has("fields") || got.Has("fn")) {
				t.Errorf("parameters %v, want the fields %v", got, fields)
			}
		}
	}},
	{"7 no words under a label are no error", func(t *testing.T, c *Client, h *fesstest.Handler) {
		got, err := c.Suggest(t.Context(), search.SuggestQuery{Prefix: "zzz", Num: 5, Labels: []string{"finance"}})
		words, wordsErr := c.PopularWords(t.Context(), search.WordsQuery{Labels: []string{"nosuch"}})
		if err != nil || wordsErr != nil || got == nil || words == nil || len(got)+len(words) != 0 {
			t.Errorf("Suggest() = %v, %v; PopularWords() = %v, %v, want empty lists", got, err, words, wordsErr)
		}
	}},
	{"8 seed and field of popular words are texts", func(t *testing.T, c *Client, h *fesstest.Handler) {
		_, err := c.PopularWords(t.Context(), search.WordsQuery{Seed: "7", Fields: []string{"a", "b"}})
		if got := lastQuery(t, h); err != nil || got.Get("seed") != "7" ||
			!cmp.Equal(got["field"], []string{"a", "b"}) {
			t.Errorf("PopularWords() = %v with %v, want seed and fields", err, got)
		}
	}},
	{"9 all labels, or an empty list", func(t *testing.T, c *Client, h *fesstest.Handler) {
		if got, err := c.Labels(t.Context()); err != nil || len(got) != 2 {
			t.Errorf("Labels() = %v, %v, want two", got, err)
		}
		for _, api := range []string{"v1", "v2"} {
			none := fesstest.NewHandler(nil, fesstest.Options{ContextPath: "/fess", API: api, Labels: []search.Label{}})
			if got, err := clientOf(t, none, Options{}).Labels(t.Context()); err != nil || got == nil || len(got) != 0 {
				t.Errorf("Labels() of none in %s = %v, %v, want an empty list", api, got, err)
			}
		}
	}},
	{"10 a red engine is an answer, an unreachable one an error", func(t *testing.T, c *Client, h *fesstest.Handler) {
		for _, state := range []string{"green", "yellow", "red"} {
			h.SetEngine(state)
			if got, err := c.Health(t.Context()); err != nil || got.Status != state || got.TimedOut {
				t.Errorf("Health() = %+v, %v, want %s", got, err, state)
			}
		}
		h.SetEngine("down")
		if got, err := c.Health(t.Context()); !errors.Is(err, errkind.Unavailable) {
			t.Errorf("Health() of an engine that is down = %+v, %v, want kind Unavailable", got, err)
		}
	}},
	{"11 an excerpt is not the text", func(t *testing.T, c *Client, h *fesstest.Handler) {
		if got, err := c.ReadText(t.Context(), "finance0", nil, 0, 10); !errors.Is(err, errkind.Unsupported) {
			t.Errorf("ReadText() = %+v, %v, want kind Unsupported", got, err)
		}
	}},
	{"18 errors contain the path, the status and a code, but not the message of Fess",
		func(t *testing.T, c *Client, h *fesstest.Handler) {
			_, err := c.Search(t.Context(), search.Query{Text: query.MustParse("alpha"), Labels: []string{"finance"},
				Num: 1, Facets: &search.Facets{Queries: []string{"(("}}})
			r, ok := errors.AsType[*errkind.Remote](err)
			if !ok || r.Status != http.StatusBadRequest || !strings.HasPrefix(r.Endpoint, "/api/v") || r.Code == "" ||
				errkind.Retryable(err) || strings.Contains(err.Error(), "bool") {
				t.Errorf("Search() of half a group = %#v, want path, status and code", err)
			}
		}},
	{"19 a token is a bearer's", func(t *testing.T, c *Client, h *fesstest.Handler) {
		locked := fesstest.NewHandler(searchtest.Secrets(), fesstest.Options{ContextPath: "/fess", Token: ours, API: "both"})
		if err := searchAlpha(clientOf(t, locked, Options{AccessToken: ours})); err != nil ||
			locked.Requests()[0].Header.Get("Authorization") != "Bearer "+ours {
			t.Errorf("Search() with a token = %v, want it to be sent as a bearer's", err)
		}
	}},
	{"22 a path before the API is kept", func(t *testing.T, c *Client, h *fesstest.Handler) {
		if err := searchAlpha(c); err != nil || !strings.HasPrefix(h.Requests()[0].Path, "/fess/api/") {
			t.Errorf("Search() = %v of %s, want a path below /fess", err, h.Requests()[0].Path)
		}
	}},
}

func TestPromises(t *testing.T) {
	for _, api := range []string{"v1", "v2"} {
		for _, p := range append(searchPromises, otherPromises...) {
			t.Run(api+"/"+p.name, func(t *testing.T) {
				h := fakeOf(api)
				p.check(t, clientOf(t, h, Options{}), h)
			})
		}
	}
}
