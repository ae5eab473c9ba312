package fess_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// realFess returns the URL of a real Fess server with exactly
// searchtest.Corpus. It skips the test where there is none, or where the server is
// not set up in one of the ways given. .ci/real-fess starts one and sets
//
//	KNOWHOW_REAL_FESS         its URL
//	KNOWHOW_REAL_FESS_SETUP   plain; content, where it sends texts and labels; or down, without its engine
//	KNOWHOW_REAL_FESS_NOBODY  a token of a role that may see nothing
func realFess(t *testing.T, setups ...string) string {
	t.Helper()
	base, setup := os.Getenv("KNOWHOW_REAL_FESS"), os.Getenv("KNOWHOW_REAL_FESS_SETUP")
	if base == "" {
		t.Skip("KNOWHOW_REAL_FESS is not set; run .ci/real-fess")
	}
	if !slices.Contains(setups, setup) {
		t.Skipf("the server is %s, this test is for %s", setup, strings.Join(setups, " or "))
	}
	return base
}

// realClient returns a client of a real server.
func realClient(t *testing.T, base, token string) *fess.Client {
	t.Helper()
	c, err := fess.New(fess.Options{BaseURL: base, AccessToken: token})
	if err != nil {
		t.Fatalf("New() = %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestRealFessContract runs the contract suite. The service without documents is
// the same server for a caller without any role.
func TestRealFessContract(t *testing.T) {
	base := realFess(t, "plain", "content")
	searchtest.Run(t, searchtest.Options{
		Open: func(t *testing.T, docs []document.Document) search.Service {
			if len(docs) == 0 {
				return realClient(t, base, os.Getenv("KNOWHOW_REAL_FESS_NOBODY"))
			}
			return realClient(t, base, "")
		},
		NoText: os.Getenv("KNOWHOW_REAL_FESS_SETUP") != "content",
		NoTags: true, NoPassages: true,
	})
}

// TestRealFessIsolation sends 10,000 operator queries in one label through the
// client, and some of them as they are, which shows that the server does leak.
func TestRealFessIsolation(t *testing.T) {
	// A page shows all documents of the label and more, so that none stays unseen.
	const queries, workers, rawEvery, page = 10_000, 4, 10, 20
	base := realFess(t, "plain")
	c := realClient(t, base, "")
	ours := map[string]bool{}
	for _, d := range searchtest.Corpus() {
		if d.Label == "finance" {
			ours[d.ID] = true
		}
	}
	if len(ours) >= page {
		t.Fatalf("label finance has %d documents, want fewer than %d", len(ours), page)
	}
	var found, refused, leaks atomic.Int64
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			for i := range queries / workers {
				text := searchtest.CorpusQuery(random)
				asked, err := query.Parse(text)
				var p *search.Page
				if err == nil {
					p, err = c.Search(t.Context(), search.Query{Text: asked, Labels: []string{"finance"}, Num: page})
				}
				switch {
				case errors.Is(err, errkind.Invalid):
					refused.Add(1)
				case err != nil:
					t.Errorf("Search(%q) = %v, want a page or an error of kind Invalid", text, err)
					return
				case p.Total > len(ours) || len(p.Hits) != p.Total ||
					slices.ContainsFunc(p.Hits, func(h search.Hit) bool { return !ours[h.ID] }):
					t.Errorf("Search(%q) in finance = %d documents, %d of them hits; want only those of finance, and all", text, p.Total, len(p.Hits))
				case len(p.Hits) > 0:
					found.Add(1)
				}
				if i%rawEvery == 0 {
					ids, err := rawIDs(t.Context(), base, text)
					if err != nil {
						t.Errorf("raw query %q: %v", text, err)
						return
					}
					if slices.ContainsFunc(ids, func(id string) bool { return !ours[id] }) {
						leaks.Add(1)
					}
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d queries, %d found documents, %d were refused; %d of %d leak as they are",
		queries, found.Load(), refused.Load(), leaks.Load(), queries/rawEvery)
	if leaks.Load() < 10 || found.Load() < queries/20 || refused.Load() > queries/2 {
		t.Error("the test has no teeth")
	}
}

// rawIDs sends a query in label finance as it is, as a careless client would, and
// returns the IDs of what it finds.
func rawIDs(ctx context.Context, base, text string) ([]string, error) {
	q := url.Values{"q": {text}, "fields.label": {"finance"}, "num": {"100"}}
	req, err := http.NewRequestWithContext(ctx, "GET", base+"/api/v1/documents?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var a struct {
		Data []struct {
			ID string `json:"doc_id"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return nil, fmt.Errorf("HTTP %d: %w", resp.StatusCode, err)
	}
	ids := map[string]bool{}
	for _, d := range a.Data {
		ids[d.ID] = true
	}
	return slices.Collect(maps.Keys(ids)), nil
}

// TestRealFessLeaks compares the protection of package query with the server:
// were it to change, the protection would have to be looked at again.
func TestRealFessLeaks(t *testing.T) {
	base := realFess(t, "plain")
	ours := map[string]bool{}
	for _, d := range searchtest.Corpus() {
		ours[d.ID] = d.Label == "finance"
	}
	tests := []struct {
		text string
		leak bool
	}{
		{"budget", false}, {"budget OR", true}, {"budget ||", true}, {"budget\tOR", true}, {"budget\u3000OR", true},
		{"NOT", true},
		{"budget NOT", true}, {"budget AND NOT", true}, {"budget label:hr OR", true},
		{"content_length:[0 TO *] OR", true},
		{"budget OR(travel)", false}, {`budget\`, false}, {`\`, false}, {"(budget", false}, {"budget AND", false},
		{"budget OR travel", false},
	}
	for _, test := range tests {
		ids, err := rawIDs(t.Context(), base, test.text)
		if err != nil {
			t.Errorf("raw query %q: %v", test.text, err)
		}
		if got := slices.ContainsFunc(ids, func(id string) bool { return !ours[id] }); got != test.leak {
			t.Errorf("raw query %q leaks: %v, want %v", test.text, got, test.leak)
		}
	}
}

// TestRealFessEngineDown checks that a Fess whose engine is gone, and which
// answers searches with 200 and no hits, is not taken at its word.
func TestRealFessEngineDown(t *testing.T) {
	base := realFess(t, "down")
	c := realClient(t, base, "")
	_, err := c.Search(t.Context(), search.Query{Text: query.MustParse("budget"), Labels: []string{"finance"}, Num: 10})
	if r, ok := errors.AsType[*errkind.Remote](err); !ok || !errors.Is(err, errkind.Unavailable) || r.Status < 500 {
		t.Errorf("Search without the engine = %v, want an error of kind Unavailable", err)
	}
	if _, err := c.Find(t.Context(), searchtest.Corpus()[0].ID, nil); !errors.Is(err, errkind.Unavailable) {
		t.Errorf("Find without the engine = %v, want an error of kind Unavailable", err)
	}
	if _, err := c.Suggest(t.Context(), search.SuggestQuery{Prefix: "zepp", Num: 5}); !errors.Is(err,
		errkind.Unavailable) {
		t.Errorf("Suggest without the engine = %v, want an error of kind Unavailable", err)
	}
}
