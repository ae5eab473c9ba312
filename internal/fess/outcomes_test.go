package fess

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// folders are the files of recordings.
var folders = []string{"v1", "v1-plugin-15.7", "v2"}

// recordings reads one file of recordings, by name.
func recordings(t testing.TB, folder string) map[string]fesstest.Recording {
	t.Helper()
	all := map[string]fesstest.Recording{}
	for _, r := range fesstest.Recordings(t, filepath.Join("testdata", "recordings", folder+".jsonl.gz")) {
		all[r.Name] = r
	}
	return all
}

// TestOutcomes gives the client every recorded answer and compares what comes of
// it with a golden file: each line holds the recording, the call it was the
// answer to, and the page, the words or the error that the caller gets.
// Recordings of calls that the client never makes answer its call for labels,
// which shows that it survives them.
func TestOutcomes(t *testing.T) {
	var got strings.Builder
	count := 0
	for _, folder := range folders {
		all := recordings(t, folder)
		names := []string{}
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(&got, "%s/%s: %s\n", folder, name, outcome(t, all, all[name]))
			count++
		}
	}
	if count < 500 {
		t.Errorf("there are %d recordings, want all of 524", count)
	}
	for _, secret := range []string{"127.0.0.1", "codelibs", "Exception", "wrongtoken", "error/notfound",
		"match_phrase", "Bearer"} {
		if strings.Contains(got.String(), secret) {
			t.Errorf("an outcome gives away %q", secret)
		}
	}
	file := filepath.Join("testdata", "outcomes.golden")
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("outcomes: (-want +got)\n%s", diff)
	}
}

// outcome makes the call that r is an answer to, of a server that answers what
// else it is asked with recordings of the same setting.
func outcome(t *testing.T, all map[string]fesstest.Recording, r fesstest.Recording) string {
	t.Helper()
	call, path := callOf(r.Path)
	o := Options{BaseURL: "http://fess.example"}
	if r.Headers["Authorization"] != "" {
		o.AccessToken = "some-token"
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport = inMemory{http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case q.URL.Path == path:
			r.ServeHTTP(w, q)
		case q.URL.Path == copyPath || versionOf(q.URL.Path) != versionOf(path):
			w.Header().Set("Location", "/error/notfound/")
			w.WriteHeader(http.StatusFound)
		default:
			sibling(all, r, q.URL.Path).ServeHTTP(w, q)
		}
	})}
	line, err := call(t, c, r)
	if err == nil {
		return line
	}
	line = fmt.Sprintf("%v", err)
	if e, ok := errors.AsType[*errkind.Remote](err); ok {
		code := e.Code
		if uuid.MatchString(code) {
			code = "UUID"
		}
		line = fmt.Sprintf("%v, %s %d %s, retry %v: %s", e.Unwrap(), e.Endpoint, e.Status, code, errkind.Retryable(e),
			e.Message)
	}
	return "error " + line
}

// uuid is the form of API v1's error codes.
var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// sibling returns the recording that answers a further request beside r.
func sibling(all map[string]fesstest.Recording, r fesstest.Recording, path string) fesstest.Recording {
	switch {
	case strings.HasSuffix(path, "/health") && strings.HasPrefix(r.Name, "down-"):
		return all["down-health"]
	case strings.HasSuffix(path, "/health") && all["health-green"].Status != 0:
		return all["health-green"]
	case strings.HasSuffix(path, "/health"):
		return all["health"]
	case strings.HasSuffix(path, "/labels") && r.Status == http.StatusInternalServerError &&
		r.Headers["Authorization"] != "":
		return all["auth-wrong-labels"]
	}
	return all["path-unknown"]
}

// A caller makes a call and says what came of it.
type caller func(*testing.T, *Client, fesstest.Recording) (string, error)

// callOf returns the call that belongs to a recorded path, and the path that the
// client will ask for.
func callOf(path string) (caller, string) {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/fess"), "/")
	calls := map[endpoint]caller{documentsCall: callSearch, suggestCall: callSuggest, popularCall: callPopular,
		labelsCall: callLabels, healthCall: callHealth}
	for e, call := range calls {
		for _, v := range []version{v1, v2} {
			if path == paths[e][v] {
				return call, path
			}
		}
	}
	if strings.HasPrefix(path, "/api/v2") {
		if strings.HasPrefix(path, "/api/v2/cache/") {
			return callCopy, path
		}
		return callLabels, paths[labelsCall][v2]
	}
	if path == "/cache" {
		return callPage, copyPath
	}
	return callLabels, paths[labelsCall][v1]
}

func callSearch(t *testing.T, c *Client, r fesstest.Recording) (string, error) {
	values, _ := url.ParseQuery(r.Query)
	q := search.Query{Text: query.MustParse("test"), Num: 10}
	if n, err := strconv.Atoi(values.Get("num")); err == nil && n >= 1 && n <= search.MaxNum {
		q.Num = n
	}
	for name := range values {
		if strings.HasPrefix(name, "facet.") {
			q.Facets = &search.Facets{Queries: values["facet.query"]}
			for _, field := range values["facet.field"] {
				if !slices.Contains(facetFields(), field) {
					field = "label" // the client refuses the other
				}
				q.Facets.Fields = append(q.Facets.Fields, field)
			}
			if q.Validate(facetFields()) != nil {
				q.Facets = &search.Facets{Fields: []string{"label"}}
			}
		}
	}
	p, err := c.Search(t.Context(), q)
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("page of %d of %d, at least %v", len(p.Hits), p.Total, p.AtLeast)
	if len(p.Hits) > 0 {
		h := p.Hits[0]
		line += fmt.Sprintf(", first %s %q %q scored %v, %d fields, %d characters of digest", h.ID, h.URL, h.Title,
			h.Score > 0, fieldsOf(h), len([]rune(h.Digest.Text)))
	}
	if p.Facets != nil {
		line += fmt.Sprintf(", facets %v", *p.Facets)
	}
	return line, nil
}

// fieldsOf counts the fields that Fess sent of a hit, besides those that every hit
// has.
func fieldsOf(h search.Hit) int {
	n := len(h.Extra)
	for _, known := range []bool{!h.Created.IsZero(), !h.Modified.IsZero(), !h.Timestamp.IsZero(), h.Size >= 0,
		h.TitleExcerpt.Text != "",
		h.Filename != "", h.FileType != "", h.MIMEType != "", h.Host != "", h.Labels != nil, h.Langs != nil} {
		if known {
			n++
		}
	}
	return n
}

func callSuggest(t *testing.T, c *Client, _ fesstest.Recording) (string, error) {
	words, err := c.Suggest(t.Context(), search.SuggestQuery{Prefix: "t", Num: 10})
	return fmt.Sprintf("suggestions %q", words), err
}

func callPopular(t *testing.T, c *Client, _ fesstest.Recording) (string, error) {
	words, err := c.PopularWords(t.Context(), search.WordsQuery{})
	return fmt.Sprintf("words %q", words), err
}

func callLabels(t *testing.T, c *Client, _ fesstest.Recording) (string, error) {
	labels, err := c.Labels(t.Context())
	return fmt.Sprintf("labels %q", labels), err
}

func callHealth(t *testing.T, c *Client, _ fesstest.Recording) (string, error) {
	h, err := c.Health(t.Context())
	return fmt.Sprintf("health %+v", h), err
}

// callCopy asks API v2 for the copy, without looking the document up.
func callCopy(t *testing.T, c *Client, r fesstest.Recording) (string, error) {
	framed, err := c.copyV2(t.Context(), r.Path[strings.LastIndexByte(r.Path, '/')+1:], errkind.Unsupported)
	return copied(framed), err
}

// callPage asks for the page of a copy, without looking the document up.
func callPage(t *testing.T, c *Client, _ fesstest.Recording) (string, error) {
	framed, err := c.copyPage(t.Context(), "id", errkind.Unsupported)
	return copied(framed), err
}

// copied says what is inside a frame.
func copied(framed []byte) string {
	data := wire.Unframe(framed)
	return fmt.Sprintf("copy of %d bytes %.60q", len(data), cmp.Or(string(data), "none"))
}
