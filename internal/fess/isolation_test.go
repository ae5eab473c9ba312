package fess

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// inMemory answers requests by a handler, without a network.
type inMemory struct{ http.Handler }

func (h inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	r.RequestURI = r.URL.RequestURI()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// isolated returns a client of a fake over [searchtest.Secrets], and the fake.
func isolated(t testing.TB, api string) (*Client, *fesstest.Handler) {
	t.Helper()
	h := fesstest.NewHandler(searchtest.Secrets(), fesstest.Options{API: api})
	c, err := New(Options{BaseURL: "http://fess.example"})
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport = inMemory{h}
	return c, h
}

// foreign returns the first hit outside label finance, "" if there is none.
func foreign(hits []search.Hit) string {
	for _, h := range hits {
		if !strings.HasPrefix(h.ID, "finance") {
			return h.ID
		}
	}
	return ""
}

// TestIsolation sends operator queries, through the client and as they are. The
// server leaks the latter, which shows that the former are a test.
func TestIsolation(t *testing.T) {
	count := 2_000
	if os.Getenv("CI") == "true" && !testing.Short() {
		count = 20_000
	}
	t.Run("v1", func(t *testing.T) { checkIsolation(t, "v1", count) })
	t.Run("v2", func(t *testing.T) { checkIsolation(t, "v2", count/4) })
}

func checkIsolation(t *testing.T, api string, count int) {
	c, h := isolated(t, api)
	random := rand.New(rand.NewPCG(1, 2))
	found, refused, leaks := 0, 0, 0
	for i := range count {
		text := searchtest.OperatorQuery(random)
		read := query.Parse
		if i%2 == 0 { // as the tools send it
			read = query.Read
		}
		asked, err := read(text)
		var p *search.Page
		if err == nil {
			p, err = c.Search(t.Context(), search.Query{Text: asked, Labels: []string{"finance"}, Num: 100})
		}
		switch {
		case errors.Is(err, errkind.Invalid):
			refused++
		case err != nil:
			t.Fatalf("Search(%q) = %v, want a page or an error of kind Invalid", text, err)
		case foreign(p.Hits) != "":
			t.Fatalf("Search(%q) in finance found %s", text, foreign(p.Hits))
		case len(p.Hits) > 0:
			found++
		}
		if i%5 == 1 && foreign(rawHits(t, c, text)) != "" {
			leaks++
		}
		if i%1000 == 0 {
			h.Forget()
		}
	}
	t.Logf("%d found documents, %d were refused; %d of %d leak as they are", found, refused, leaks, count/5)
	if leaks < count/1000 || found < count/10 || refused > count/2 {
		t.Errorf("of %d queries %d found documents, %d were refused, %d leak: the test has no teeth", count, found,
			refused, leaks)
	}
}

// rawHits sends a query as it is, as a careless client would.
func rawHits(t testing.TB, c *Client, text string) []search.Hit {
	t.Helper()
	a := &wire.Page{}
	answer, err := c.get(t.Context(), question{to: documentsCall,
		params: []param{{"q", text}, {"fields.label", "finance"}, {"num", "100"}}})
	if err == nil {
		a, err = decodePage(answer)
	}
	if err != nil && !errors.Is(err, errkind.Invalid) {
		t.Fatalf("raw query %q = %v", text, err)
	}
	if err != nil {
		return nil
	}
	return pageOf(a, search.Query{Num: 100}).Hits
}

// TestRawQueriesLeak checks that the fake behaves like a real Fess 15.4.
func TestRawQueriesLeak(t *testing.T) {
	c, _ := isolated(t, "v1")
	tests := []struct {
		text string
		leak bool
	}{
		{"alpha", false}, {"alpha OR", true}, {"alpha ||", true}, {"alpha\tOR", true}, {"alpha\u3000OR", true},
		{"NOT", true},
		{"alpha NOT", true}, {"alpha AND NOT", true}, {"alpha label:hr OR", true}, {"content_length:[0 TO *] OR", true},
		{"alpha OR(beta)", false}, {`alpha\`, false}, {`\`, false}, {"(alpha", false}, {"alpha AND", false},
		{"alpha OR beta", false},
	}
	for _, test := range tests {
		if got := foreign(rawHits(t, c, test.text)) != ""; got != test.leak {
			t.Errorf("raw query %q leaks: %v, want %v", test.text, got, test.leak)
		}
	}
}

// TestSortCannotHoldOperators checks the other text that Fess puts behind a query.
func TestSortCannotHoldOperators(t *testing.T) {
	c, h := isolated(t, "v1")
	_, err := c.Search(t.Context(), search.Query{Text: query.MustParse("alpha"), Labels: []string{"finance"}, Num: 10,
		Sort: []search.SortKey{{Field: "score.desc label:hr OR title"}}})
	if !errors.Is(err, errkind.Invalid) {
		t.Errorf("Search with operators in the sort order = %v, want an error of kind Invalid", err)
	}
	if n := len(h.Requests()); n != 0 {
		t.Errorf("Search with operators in the sort order made %d requests, want none", n)
	}
}

func FuzzIsolation(f *testing.F) {
	for _, text := range []string{"alpha", "alpha OR", "NOT", `\`, "allintitle:alpha OR", `"alpha`, "(alpha",
		"alpha) OR (beta", "a^ OR"} {
		f.Add(text)
	}
	c, h := isolated(f, "v1")
	f.Fuzz(func(t *testing.T, text string) {
		asked, err := query.Parse(text)
		if err != nil {
			return
		}
		p, err := c.Search(context.Background(), search.Query{Text: asked, Labels: []string{"finance"}, Num: 100})
		if err == nil && foreign(p.Hits) != "" {
			t.Errorf("Search(%q) in finance found %s", text, foreign(p.Hits))
		}
		h.Forget()
	})
}
