package fessserver_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/knowhow-mcp/knowhow/internal/fessserver"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

var update = flag.Bool("update", false, "rewrite testdata/answers.txtar")

// changing are the parts of an answer that are others at each call.
var changing = regexp.MustCompile(`("query_id":"|"error_code:":"|"exec_time":"?|"query_time":|"requested_time":)[0-9a-f.-]+`)

// TestGolden compares whole answers, byte for byte.
func TestGolden(t *testing.T) {
	at := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	hit := search.Hit{
		ID: "d0f11f509d8b4edc8706a9e118bb59cf", Title: "Bericht über \"A/B\"", URL: "file:///srv/docs/a%20b.txt",
		Digest: search.Excerpt{Text: "Ein Test 😀.", Matches: []search.Span{{Start: 4, End: 8}}},
		Score:  0.25, TextHash: "sha256:00", Size: 12, Created: at, Timestamp: at, Filename: "a b.txt", FileType: "txt",
		Labels: []string{"docs"},
		Extra:  map[string]any{"_id": "ab", "url_link": "file:///srv/docs/a b.txt"},
	}
	h := fessserver.New(fessserver.Options{Backend: &stub{
		page: search.Page{Total: 12, Hits: []search.Hit{hit}, Facets: &search.FacetCounts{
			Fields: []search.FieldCounts{{Name: "label", Counts: []search.Count{{Value: "docs", Count: 12}}}}}},
		hit:    hit,
		text:   &search.Text{Window: "Ein Test\n\n<&> 😀.", Size: 20},
		words:  []search.Suggestion{{Text: "prüfen", Labels: []string{"docs"}}, {Text: "pre"}},
		labels: []search.Label{{Name: "Dokumente/Ü", Value: "docs"}},
		health: search.Health{Status: "green"},
	}})
	var got txtar.Archive
	for _, target := range []string{
		"/api/v1/documents?q=Test&fields.label=docs&num=1&start=2",
		"/api/v1/documents?q=Test&sort=created.desc&facet.field=label", "/api/v1/documents",
		"/api/v1/documents?q=%22", "/api/v1/documents/all", "/api/v1/labels", "/api/v1/popular-words",
		"/api/v1/suggest-words?q=pr&num=1",
		"/api/v1/suggest-words?q=pr&num=0", "/api/v1/health", "/api/v1/favorites", "/api/v1/nosuch",
		"/api/v2/search?q=Test&fields.label=docs&num=1&start=2", "/api/v2/search?q=%22", "/api/v2/search?num=0",
		"/api/v2/labels", "/api/v2/popular-words",
		"/api/v2/suggest-words?q=pr", "/api/v2/health", "/api/v2/cache/d0f11f509d8b4edc8706a9e118bb59cf",
		"/api/v2/cache/a.b", "/api/v2/ui/config",
		"/api/v2/related-queries?q=a", "/api/v2/related-content?q=a", "/api/v2/documents/all", "/api/v2/nosuch",
		"/cache/?docId=d0f11f509d8b4edc8706a9e118bb59cf", "/nosuch",
	} {
		w := ask(t, h, http.MethodGet, target, nil)
		head := fmt.Sprintf("%d %s\n", w.Code, w.Header().Get("Content-Type"))
		body := changing.ReplaceAllString(w.Body.String(), "${1}0")
		got.Files = append(got.Files, txtar.File{Name: "GET " + target,
			Data: []byte(head + strings.TrimSuffix(body, "\n") + "\n")})
	}
	const file = "testdata/answers.txtar"
	text := txtar.Format(&got)
	if *update {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("answers differ from %s; -update rewrites it (-want +got)\n%s", file, diff)
	}
}
