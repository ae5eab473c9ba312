package fessbridge

import (
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// TestRealFessSource searches one label of a real Fess server with searchtest.Corpus,
// which .ci/real-fess starts, as a source of another name. Each random query is also
// made in a whole index, so that the test sees that there is more to be found.
func TestRealFessSource(t *testing.T) {
	base := os.Getenv("KNOWHOW_REAL_FESS")
	if setup := os.Getenv("KNOWHOW_REAL_FESS_SETUP"); base == "" || setup == "down" {
		t.Skip("KNOWHOW_REAL_FESS is not set; run .ci/real-fess")
	}
	const queries, workers = 2_000, 4
	s, whole := open(t, base, "finance", nil), open(t, base, "", nil)
	own := map[string]string{} // texts by ID
	for _, d := range searchtest.Corpus() {
		if d.Label == "finance" {
			own[document.IDOf("ours", d.ID)] = d.Text
		}
	}
	p, err := s.Search(t.Context(), search.Query{Num: 100, Facets: &search.Facets{Fields: []string{"label", "filetype"},
		Queries: []string{"label:ours", "label:hr", "budget", "budget OR label:hr"}}})
	if err != nil || p.Total != len(own) || len(p.Hits) != len(own) {
		t.Fatalf("Search = %+v, %v, want %d documents", p, err, len(own))
	}
	if c := p.Facets.Fields[0].Counts; len(c) != 1 || c[0] != (search.Count{Value: "ours", Count: len(own)}) {
		t.Errorf("counts of labels = %v", c)
	}
	if q := p.Facets.Queries; q[0].Count != len(own) || q[1].Count != 0 || q[2].Count == 0 || q[2].Count != q[3].Count {
		t.Errorf("counts of queries = %v", q)
	}
	for text, want := range map[string]bool{"label:ours": true, "label:finance": false, "NOT label:ours": false,
		"budget OR label:ours": true, "-label:hr": true} {
		p, err := s.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 1})
		if err != nil || p.Total != map[bool]int{true: len(own)}[want] {
			t.Errorf("Search(%q) = %+v, %v, want all: %v", text, p, err, want)
		}
	}
	for id, text := range own {
		got, err := s.ReadText(t.Context(), id, nil, 0, 1<<20)
		switch {
		case err == nil && got.Window != text:
			t.Errorf("ReadText(%s) = %q, want %q", id, got.Window, text)
		case err != nil && !errors.Is(err, errkind.Denied) && !errors.Is(err, errkind.Unavailable):
			// The URLs of the corpus are those of files and of hosts that do not exist.
			t.Errorf("ReadText(%s) = %v", id, err)
		}
	}
	var found, more atomic.Int64
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 2))
			for range queries / workers {
				text := searchtest.CorpusQuery(random)
				asked, err := query.Read(text)
				if err != nil {
					continue
				}
				p, err := s.Search(t.Context(), search.Query{Text: asked, Num: 100})
				if err != nil && !errors.Is(err, errkind.Invalid) {
					t.Errorf("Search(%q) = %v, want a page or kind Invalid", text, err)
					return
				}
				if err != nil {
					continue
				}
				for _, h := range p.Hits {
					if _, ok := own[h.ID]; !ok {
						t.Errorf("Search(%q) found %+v", text, h)
					}
				}
				if p.Total > len(own) {
					t.Errorf("Search(%q) counts %d documents, want at most %d", text, p.Total, len(own))
				}
				if p.Total > 0 {
					found.Add(1)
				}
				if all, err := whole.Search(t.Context(), search.Query{Text: asked}); err == nil && all.Total > p.Total {
					more.Add(1)
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d of %d queries found documents, %d would find others", found.Load(), queries, more.Load())
	if found.Load() < queries/20 || more.Load() < queries/20 {
		t.Error("the test has no teeth")
	}
}
