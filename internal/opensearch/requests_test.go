package opensearch_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/opensearch"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// counted returns the address of a store through a proxy, and the number of
// requests so far.
func counted(t *testing.T, address string) (string, *atomic.Int32) {
	t.Helper()
	u, err := url.Parse(strings.TrimPrefix(address, "opensearch+"))
	if err != nil {
		t.Fatal(err)
	}
	prefix := u.Path
	u.Path = ""
	n := &atomic.Int32{}
	proxy := httputil.NewSingleHostReverseProxy(u)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return "opensearch+" + server.URL + prefix, n
}

// TestRequests checks how many requests, which are made one after another, a search
// needs at most: two by words, and one more by words and meaning, for the documents
// that are close in meaning only. Words that no document has need two more: for
// similar words, and to search again. If the documents have languages that the
// process has not seen, the first search is repeated after its first request.
func TestRequests(t *testing.T) {
	a := address(t)
	s := openWith(t, a, constant{})
	var changes []document.Change
	for i := range 150 {
		lang := "en"
		if i%10 == 0 {
			lang = "de"
		}
		var text strings.Builder
		var chunks []document.Chunk
		for j := range 5 { // the chunks are short, so passages need the text around them
			begin := text.Len()
			fmt.Fprintf(&text, "The walrus number %d sleeps on ice floe %d.\n\n", i/2*2, j)
			chunks = append(chunks, document.Chunk{Offset: begin, Length: text.Len() - begin})
		}
		d := document.Document{ID: fmt.Sprint(i), Label: "l", Path: fmt.Sprint(i), Title: "Walrus", Lang: lang,
			Text: text.String(), Chunks: chunks,
			Hash: fmt.Sprint("sha256:", i/2), Tags: []string{"tag"}}
		changes = append(changes, document.Change{Put: &d})
	}
	if err := s.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	for s.HasVectors() {
		if n, err := s.EmbedNext(t.Context(), constant{}, nil, 1000); err != nil {
			t.Fatal(err)
		} else if n == 0 {
			break
		}
	}
	through, requests := counted(t, a)
	for name, e := range map[string]embed.Embedder{"words": nil, "meaning": constant{}} {
		s, err := opensearch.New(opensearch.Options{Address: through, Embedder: e})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		limit := int32(2)
		if e != nil && s.HasVectors() {
			limit = 3
		}
		most := limit
		find := func(q search.Query) {
			t.Helper()
			requests.Store(0)
			p, err := s.Search(t.Context(), q)
			if err != nil || q.Num > 0 && len(p.Hits) != 8 {
				t.Fatalf("%s: Search(%q) = %+v, %v, want 8 hits", name, q.Text, p, err)
			}
			for _, h := range p.Hits {
				if q.Distinct && len(h.Also) != 1 {
					t.Errorf("%s: Search(%q): %s is also %q, want one other document", name, q.Text, h.Path, h.Also)
				}
				if q.Passages > 0 && (len(h.Passages) == 0 || len(h.Passages[0].Text) < 190) {
					t.Errorf("%s: Search(%q): %s has the passages %+v", name, q.Text, h.Path, h.Passages)
				}
			}
			if n := requests.Load(); n > most {
				t.Errorf("%s: Search(%q) made %d requests, want at most %d", name, q.Text.String(), n, most)
			}
		}
		most = limit + 1
		find(search.Query{Text: query.MustParse("walrus sleeps on the ice floe"), Num: 8})
		for _, text := range []string{"walrus sleeps on the ice floe", "walrus ice", "walrus", "", "walrus OR penguin",
			`"ice floe"`, "walrus sleeps on ice with the penguni and walrsu"} {
			most = limit
			switch {
			case strings.Contains(text, "walrsu"):
				most = 2 * limit
			case text == "": // copies follow each other, so more documents are read
				most = limit + 1
			}
			find(search.Query{Text: query.MustParse(text), Num: 8})
			find(search.Query{Text: query.MustParse(text), Num: 8, Distinct: true, Passages: 6000,
				Labels: []string{"l"},
				Facets: &search.Facets{Fields: []string{"lang"}, Queries: []string{"title:walrus"}}})
			find(search.Query{Text: query.MustParse(text)})
		}
		for _, by := range []search.Ranking{search.ByWords, search.ByBoth, search.ByMeaning} {
			if by == search.ByMeaning && limit == 2 {
				continue // it needs vectors
			}
			for _, text := range []string{"walrus sleeps on the ice floe", "walrus ice"} {
				requests.Store(0)
				p, err := s.SearchChunks(t.Context(),
					search.ChunkQuery{Text: query.MustParse(text), Ranking: by, Top: 8})
				if err != nil || len(p.Hits) != 8 {
					t.Fatalf("%s: SearchChunks(%q) = %+v, %v, want 8 hits", name, text, p, err)
				}
				if n := requests.Load(); n > limit {
					t.Errorf("%s: SearchChunks(%q) by %d made %d requests, want at most %d", name, text, by, n, limit)
				}
			}
		}
	}
}
