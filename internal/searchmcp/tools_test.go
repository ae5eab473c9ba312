package searchmcp

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
	"github.com/knowhow-mcp/knowhow/internal/search"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// required are arguments with which each tool works on the corpus.
var required = map[string]args{
	"search":        {"query": "test"},
	"suggest":       {"prefix": "foo"},
	"popular_words": {},
	"list_labels":   {},
	"health":        {},
	"get_document":  {"docId": "d3"},
	"read_content":  {"docId": "d3"},
}

// toolNames is the order of tools/list; job_get, which needs a job, comes last.
var toolNames = []string{"search", "suggest", "popular_words", "list_labels", "health", "get_document", "read_content"}

// TestTranscripts compares the lists and one answer of each tool and resource
// with testdata/transcripts.txtar.
func TestTranscripts(t *testing.T) {
	const path = "testdata/transcripts.txtar"
	jobs := job.New(job.Options{Threshold: time.Minute})
	c := start(t, Options{Domain: finance, Backend: corpus(), MaxPageSize: 2, Jobs: jobs}, mcpserver.Pinned)
	newest := start(t, Options{Domain: finance, Backend: corpus(), Jobs: jobs}, "2025-11-25")
	got := &txtar.Archive{Comment: []byte("What clients see. Written by go test -update.\n")}
	add := func(name string, a mcptest.Message) {
		raw := a.Result
		if a.Error != nil {
			b, err := json.Marshal(a.Error)
			if err != nil {
				t.Fatal(err)
			}
			raw = b
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, raw, "", "  "); err != nil {
			t.Fatal(err)
		}
		got.Files = append(got.Files, txtar.File{Name: name, Data: append(indented.Bytes(), '\n')})
	}
	add("tools/list", c.Call("tools/list", nil))
	for _, name := range toolNames {
		add(name, c.tool(name, required[name]))
	}
	add("search refused, 2025-11-25", newest.tool("search", args{"query": "test", "sort": "date"}))
	add("search refused", c.tool("search", args{"query": "test", "sort": "date"}))
	add("job_get of an unknown job", c.tool("job_get", args{"jobId": "made-up"}))
	add("get_document of an unknown id", c.tool("get_document", args{"docId": "nope"}))
	list := c.Call("resources/list", nil)
	add("resources/list", list)
	var page struct{ NextCursor string }
	list.Decode(t, &page)
	add("resources/list, second page", c.Call("resources/list", args{"cursor": page.NextCursor}))
	add("resources/templates/list", c.Call("resources/templates/list", nil))
	add("resources/read of a document", c.Call("resources/read", args{"uri": "fess://finance/doc/d3"}))
	add("resources/read of a text", c.Call("resources/read", args{"uri": "fess://finance/doc/d3/content"}))
	add("resources/read of an unknown document", c.Call("resources/read", args{"uri": "fess://finance/doc/x1"}))

	if *update {
		if err := os.WriteFile(path, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(txtar.Format(want)), string(txtar.Format(got))); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nrun go test -update and look at the difference", path, diff)
	}
}

// listedTool is an entry of tools/list.
type listedTool struct {
	Name, Title, Description string
	InputSchema              json.RawMessage
	Annotations              map[string]any
}

func listTools(t *testing.T, c session) ([]listedTool, []byte) {
	t.Helper()
	a := c.Call("tools/list", nil)
	var r struct{ Tools []listedTool }
	a.Decode(t, &r)
	return r.Tools, a.Result
}

// TestToolListing is AT-TOOL-001.
func TestToolListing(t *testing.T) {
	c := start(t, Options{Domain: finance, Backend: corpus(), Jobs: job.New(job.Options{})}, mcpserver.Pinned)
	tools, _ := listTools(t, c)
	var names []string
	for _, tool := range tools {
		names = append(names, strings.TrimPrefix(tool.Name, "fess_finance_"))
		if !strings.HasSuffix(tool.Description, "\n\n"+finance.Block(OfFess)) ||
			strings.Count(tool.Description, "[Knowledge Domain]") != 1 {
			t.Errorf("%s: description = %q, want it to end with the block", tool.Name, tool.Description)
		}
		want := map[string]any{"title": tool.Title, "readOnlyHint": true, "destructiveHint": false,
			"idempotentHint": true, "openWorldHint": false}
		if diff := cmp.Diff(want, tool.Annotations); diff != "" || tool.Title == "" {
			t.Errorf("%s: title %q, annotations (-want +got):\n%s", tool.Name, tool.Title, diff)
		}
	}
	if diff := cmp.Diff(append(slices.Clone(toolNames), "job_get"), names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	for i, first := range []string{
		"Search the knowledge domain for documents matching a query.",
		"Suggest related terms for a query in the knowledge domain.",
		"Retrieve popular words in the knowledge domain.",
		"List all labels configured in the underlying Fess server.",
		"Check the health status of the underlying Fess server.",
		"", "",
		"Retrieve progress information for a long-running operation.",
	} {
		if !strings.HasPrefix(tools[i].Description, first) {
			t.Errorf("%s: description begins %.60q, want %q", tools[i].Name, tools[i].Description, first)
		}
	}
}

// The tools of a session cost a model no more than 8 KB, in every revision.
func TestToolListSize(t *testing.T) {
	jobs := job.New(job.Options{Threshold: time.Minute})
	for _, revision := range []mcpserver.Revision{mcpserver.Cody, mcpserver.Pinned, "2025-06-18", "2025-11-25"} {
		_, raw := listTools(t, start(t, Options{Domain: finance, Backend: corpus(), Jobs: jobs}, revision))
		if len(raw) > 8<<10 {
			t.Errorf("tools/list of revision %s takes %d bytes, want at most %d", revision, len(raw), 8<<10)
		}
	}
	c := start(t, Options{Domain: finance, Backend: corpus(), Jobs: jobs}, "2025-11-25")
	a := c.Call("tools/list", args{"_meta": args{"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         args{"name": "t", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": args{}}})
	if len(a.Result) > 8<<10 || a.Error != nil {
		t.Errorf("tools/list of revision 2026-07-28 takes %d bytes, want at most %d; error %v", len(a.Result), 8<<10,
			a.Error)
	}
}

// TestDomainIsolation proves that every call but those for labels and health
// carries the domain's label, whatever the caller says.
func TestDomainIsolation(t *testing.T) {
	f := corpus()
	c := start(t, Options{Domain: finance, Backend: f}, mcpserver.Pinned)
	for _, query := range []string{"test", "test OR", "NOT", "a label:hr OR", `x" OR label:"hr`} {
		c.ok("search", args{"query": query, "facets": args{"field": "label", "query": "label:hr"}})
	}
	for _, name := range toolNames {
		c.ok(name, required[name])
	}
	for _, id := range []string{"x1", "nope"} {
		for _, name := range []string{"get_document", "read_content"} {
			if a := c.tool(name, args{"docId": id}); a.Error == nil {
				t.Errorf("%s(%s) = %s, want an error", name, id, a.Result)
			}
		}
		for _, uri := range []string{"fess://finance/doc/" + id, "fess://finance/doc/" + id + "/content",
			"fess://hr/doc/" + id} {
			if a := c.Call("resources/read", args{"uri": uri}); a.Error == nil {
				t.Errorf("resources/read(%s) = %s, want an error", uri, a.Result)
			}
		}
	}
	c.Call("resources/list", nil)
	seen := map[string]int{}
	for _, call := range f.calls {
		seen[call.method]++
		want := []string{"finance_docs"}
		if call.method == "Labels" || call.method == "Health" {
			want = nil
		}
		if diff := cmp.Diff(want, call.labels); diff != "" {
			t.Errorf("%s was called with labels (-want +got):\n%s", call.method, diff)
		}
	}
	for _, method := range []string{"Search", "Find", "ReadText", "Suggest", "PopularWords", "Labels", "Health"} {
		if seen[method] == 0 {
			t.Errorf("%s was never called", method)
		}
	}
}

func TestSuggest(t *testing.T) {
	f := corpus()
	f.terms = append(f.terms, search.Suggestion{Text: "odd\u202e\nword", Labels: []string{"l\u200b"}})
	c := start(t, Options{Domain: finance, Backend: f}, mcpserver.Pinned)
	got := c.ok("suggest", args{"prefix": "foo", "num": 5, "fields": []string{"content", "_default"}, "lang": "en"})
	want := `{"suggestions":[{"text":"foo report","labels":["finance_docs"]},{"text":"football","labels":[]},{"text":"odd word","labels":["l"]}]}`
	if got != want {
		t.Errorf("suggest = %s, want %s", got, want)
	}
	query := search.SuggestQuery{Prefix: "foo", Num: 5, Labels: []string{"finance_docs"},
		Fields: []string{"content", "_default"}, Langs: []string{"en"}}
	if diff := cmp.Diff(query, f.suggest); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
	c.ok("suggest", args{"prefix": "foo"})
	if diff := cmp.Diff(search.SuggestQuery{Prefix: "foo", Num: 10, Labels: []string{"finance_docs"}},
		f.suggest); diff != "" {
		t.Errorf("query by default (-want +got):\n%s", diff)
	}
}

func TestPopularWords(t *testing.T) {
	f := corpus()
	c := start(t, Options{Domain: finance, Backend: f}, mcpserver.Pinned)
	for _, tt := range []struct {
		args args
		want search.WordsQuery
	}{
		{args{}, search.WordsQuery{Labels: []string{"finance_docs"}}},
		{args{"seed": 0, "field": "title"}, search.WordsQuery{Seed: "0", Labels: []string{"finance_docs"},
			Fields: []string{"title"}}},
		{args{"seed": -7}, search.WordsQuery{Seed: "-7", Labels: []string{"finance_docs"}}},
	} {
		c.ok("popular_words", tt.args)
		if diff := cmp.Diff(tt.want, f.popular); diff != "" {
			t.Errorf("query of %v (-want +got):\n%s", tt.args, diff)
		}
	}
}

// A service that has nothing gives empty lists, not null.
func TestEmptyLists(t *testing.T) {
	c := start(t, Options{Domain: finance, Backend: &fakeBackend{}}, mcpserver.Pinned)
	for name, want := range map[string]string{
		"suggest":       `{"suggestions":[]}`,
		"popular_words": `{"words":[]}`,
		"list_labels":   `{"labels":[]}`,
	} {
		if got := c.ok(name, required[name]); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
	if a := c.Call("resources/list", nil); string(a.Result) != `{"resources":[]}` {
		t.Errorf("resources/list = %s, want an empty list", a.Result)
	}
}

// get_document says what the resource says, under both names of the id.
func TestGetDocument(t *testing.T) {
	c := start(t, Options{Domain: finance, Backend: corpus()}, mcpserver.Pinned)
	var r struct{ Contents []struct{ Text string } }
	c.Call("resources/read", args{"uri": "fess://finance/doc/d3"}).Decode(t, &r)
	for _, name := range []string{"docId", "doc_id"} {
		if got := c.ok("get_document", args{name: "d3"}); got != r.Contents[0].Text {
			t.Errorf("get_document(%s) = %s, want %s", name, got, r.Contents[0].Text)
		}
	}
}

// read_content walks through a text as the resource does.
func TestReadContent(t *testing.T) {
	text := longText(5000)
	c := start(t, Options{Domain: finance, Backend: withText(text), MaxChunkBytes: 1024}, mcpserver.Pinned)
	var all strings.Builder
	for next, n := "", 0; ; n++ {
		a := args{"docId": "d1"}
		if next != "" {
			a["cursor"] = next
		}
		var p Piece
		c.into("read_content", a, &p)
		all.WriteString(p.Text)
		if p.IsLast {
			break
		}
		if next = p.NextCursor; n > 100 {
			t.Fatal("the text never ends")
		}
	}
	if all.String() != text {
		t.Errorf("read %d bytes, want the text of %d bytes", all.Len(), len(text))
	}
}
