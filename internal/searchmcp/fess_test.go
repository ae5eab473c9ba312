package searchmcp

import (
	"net/url"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fess"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"

	"github.com/google/go-cmp/cmp"
)

// startFess serves the tools over a fake Fess server with docs; the
// domain's label is finance.
func startFess(t *testing.T, docs []document.Document, o Options, fo fesstest.Options) (session, *fesstest.Server) {
	t.Helper()
	server := fesstest.New(t, docs, fo)
	client, err := fess.New(fess.Options{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	o.Domain, o.Backend = Domain{ID: "finance", Name: "Finance", Label: "finance"}, client
	return start(t, o, mcpserver.Pinned), server
}

// testDocs are n documents of each of two labels that contain the word "test".
func testDocs(n int) []document.Document {
	docs := searchtest.Corpus()
	base := docs[0]
	for i := range 2 * n {
		d := base
		d.Label = [...]string{"finance", "hr"}[i%2]
		d.ID = strings.Repeat("0", 28) + string([]byte{'a' + byte(i/676), 'a' + byte(i/26%26), 'a' + byte(i%26),
			d.Label[0]})
		d.Path, d.URL, d.Title, d.Text = d.ID, "https://example.com/"+d.ID, "A test "+d.ID, "This is a test."
		docs = append(docs, d)
	}
	return docs
}

// requests returns the queries of the requests for one path, decoded.
func requests(t *testing.T, s *fesstest.Server, path string) []url.Values {
	t.Helper()
	var all []url.Values
	for _, r := range s.Requests() {
		if !strings.HasSuffix(r.Path, path) {
			continue
		}
		v, err := url.ParseQuery(r.Query)
		if err != nil {
			t.Fatalf("query %q: %v", r.Query, err)
		}
		all = append(all, v)
	}
	return all
}

// AT-TOOL-002 and AT-TOOL-003: what a search asks of Fess and gives back.
func TestFessSearch(t *testing.T) {
	c, server := startFess(t, testDocs(40), Options{}, fesstest.Options{})
	for _, tt := range []struct {
		args args
		num  string
		want int
	}{
		{args{"query": "test"}, "20", 20},
		{args{"query": "test", "pageSize": 30}, "30", 30},
	} {
		var r searchAnswer
		c.into("search", tt.args, &r)
		seen := requests(t, server, "/api/v1/documents")
		q := seen[len(seen)-1]
		if q.Get("q") != "test" || q.Get("num") != tt.num || !cmp.Equal(q["fields.label"], []string{"finance"}) {
			t.Errorf("search(%v) sent %v, want q=test, fields.label=finance, num=%s", tt.args, q, tt.num)
		}
		if len(r.Results) != tt.want || r.Total < 40 || r.NextStart != tt.want {
			t.Errorf("search(%v) = %d hits of %d, next %d, want %d of at least 40", tt.args, len(r.Results), r.Total,
				r.NextStart, tt.want)
		}
		for _, hit := range r.Results {
			for _, key := range []string{"doc_id", "title", "url", "digest"} {
				if hit[key] == "" || hit[key] == nil {
					t.Errorf("hit %v lacks %s", hit, key)
				}
			}
		}
	}
	before := len(server.Requests())
	if a := c.tool("search", args{"query": "test", "pageSize": 150}); a.Error == nil ||
		!strings.Contains(a.Error.Message, "100") {
		t.Errorf("pageSize 150 = %s, want an error that says the limit", a.Raw)
	}
	if n := len(server.Requests()) - before; n != 0 {
		t.Errorf("pageSize 150 led to %d requests, want none", n)
	}
}

// Pages follow one another without a gap, by nextStart alone.
func TestFessPaging(t *testing.T) {
	c, _ := startFess(t, testDocs(25), Options{}, fesstest.Options{})
	seen, total := map[string]bool{}, 0
	for next := 0; ; {
		var r searchAnswer
		c.into("search", args{"query": `title:test`, "start": next, "pageSize": 10, "sort": "filename,timestamp"}, &r)
		for _, hit := range r.Results {
			seen[hit["doc_id"].(string)] = true
		}
		total += len(r.Results)
		if next = r.NextStart; next == 0 {
			if total != r.Total || len(seen) != total {
				t.Errorf("paged through %d hits, %d different, want %d", total, len(seen), r.Total)
			}
			return
		}
	}
}

// AT-TOOL-004 to AT-TOOL-007: the other tools' requests.
func TestFessTools(t *testing.T) {
	c, server := startFess(t, testDocs(1), Options{}, fesstest.Options{Engine: "yellow"})
	c.ok("suggest", args{"prefix": "foo", "num": 5})
	c.ok("popular_words", args{})
	labels, health := c.ok("list_labels", args{}), c.ok("health", args{})
	for path, want := range map[string]url.Values{
		"/api/v1/suggest-words": {"q": {"foo"}, "num": {"5"}, "label": {"finance"}},
		"/api/v1/popular-words": {"label": {"finance"}},
		"/api/v1/labels":        {},
		"/api/v1/health":        {},
	} {
		got := requests(t, server, path)
		if len(got) != 1 || !cmp.Equal(want, got[0]) {
			t.Errorf("requests for %s = %v, want one with %v", path, got, want)
		}
	}
	for _, l := range []string{"finance", "hr", "docs"} {
		if !strings.Contains(labels, `"value":"`+l+`"`) {
			t.Errorf("list_labels = %s, want label %s in it", labels, l)
		}
	}
	if want := `{"status":"yellow","timed_out":false}`; health != want {
		t.Errorf("health = %s, want %s", health, want)
	}
}

// AT-RES-001 to AT-RES-003 over Fess: the list has every document of the label
// and no other, and each of them can be read.
func TestFessResources(t *testing.T) {
	docs := testDocs(12)
	c, _ := startFess(t, docs, Options{MaxPageSize: 10}, fesstest.Options{})
	got := map[string]bool{}
	for next, pages := "", 0; ; pages++ {
		params := args{}
		if next != "" {
			params["cursor"] = next
		}
		var r struct {
			Resources  []struct{ URI, Description string }
			NextCursor string
		}
		c.Call("resources/list", params).Decode(t, &r)
		for _, entry := range r.Resources {
			if got[entry.URI] {
				t.Errorf("%s is listed twice", entry.URI)
			}
			got[entry.URI] = true
			if !strings.Contains(entry.Description, "[Knowledge Domain]\nid: finance\n") {
				t.Errorf("%s: description %q lacks the block", entry.URI, entry.Description)
			}
		}
		if next = r.NextCursor; next == "" {
			break
		}
		if len(r.Resources) != 10 || pages > 100 {
			t.Fatalf("page %d has %d resources, want 10", pages, len(r.Resources))
		}
	}
	want := map[string]bool{}
	for _, d := range docs {
		uri := "fess://finance/doc/" + d.ID
		a := c.Call("resources/read", args{"uri": uri})
		if d.Label == "finance" {
			want[uri] = true
			if a.Error != nil || !strings.Contains(string(a.Result), d.ID) {
				t.Errorf("resources/read(%s) = %s, want the document", uri, a.Raw)
			}
		} else if a.Error == nil || a.Error.Code != -32002 {
			t.Errorf("resources/read(%s) of label %s = %s, want error -32002", uri, d.Label, a.Raw)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed resources (-want +got):\n%s", diff)
	}
}

// AT-RES-004 over a Fess server that is set up to send texts.
func TestFessContent(t *testing.T) {
	docs := testDocs(1)
	i := len(docs) - 2 // of label finance
	docs[i].Text = longText(10_000)
	uri := "fess://finance/doc/" + docs[i].ID + "/content"
	c, _ := startFess(t, docs, Options{MaxChunkBytes: 1024}, fesstest.Options{SendContent: true})
	var all strings.Builder
	for next, n := "", 0; ; n++ {
		params := args{"uri": uri}
		if next != "" {
			params["cursor"] = next
		}
		var r struct {
			Contents   []struct{ Text string }
			NextCursor string
			IsLast     bool
		}
		c.Call("resources/read", params).Decode(t, &r)
		all.WriteString(r.Contents[0].Text)
		if next = r.NextCursor; r.IsLast {
			break
		}
		if next == "" || n > 100 {
			t.Fatalf("chunk %d is not the last and has nextCursor %q", n, next)
		}
	}
	if all.String() != docs[i].Text {
		t.Errorf("read %d bytes, want the text of %d bytes", all.Len(), len(docs[i].Text))
	}
}

// AT-ERR-002: a failing engine is an error with status and endpoint, and no
// empty answer.
func TestFessDown(t *testing.T) {
	c, _ := startFess(t, testDocs(1), Options{}, fesstest.Options{Engine: "down"})
	for _, name := range []string{"search", "health"} {
		a := c.tool(name, required[name])
		if a.Error == nil || a.Error.Field("httpStatus") == "" ||
			!strings.HasPrefix(a.Error.Field("endpoint"), "/api/v1/") {
			t.Errorf("%s with the engine down = %s, want an error with status and endpoint", name, a.Raw)
		}
	}
}
