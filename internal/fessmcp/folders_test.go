package fessmcp

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"knowhow/internal/job"
	"knowhow/internal/mcpserver"
	"knowhow/internal/search"

	"github.com/google/go-cmp/cmp"
)

// folders is how command serve offers the corpus by default.
func folders(f *fakeBackend) Options {
	return Options{Domain: finance, Backend: f, Wording: OfFolders, Groups: []Group{SearchTools}, PageSize: 8}
}

// speaksOfFess matches what texts about folders must not contain. The name of a
// line of the Knowledge Domain block and the scheme of resources are fixed.
var speaksOfFess = regexp.MustCompile(`(?i)fess`)

func checkWords(t *testing.T, what, text string) {
	t.Helper()
	text = strings.NewReplacer("fessLabel:", "", "fess://", "").Replace(text)
	if speaksOfFess.MatchString(text) {
		t.Errorf("%s speaks of Fess: %s", what, text)
	}
}

// Over folders there are three tools, in about 700 tokens, and no text speaks of
// Fess. The block is in the description of search alone.
func TestFolderTools(t *testing.T) {
	c := start(t, folders(corpus()), mcpserver.Latest)
	tools, raw := listTools(t, c)
	checkWords(t, "tools/list", string(raw))
	if len(raw) > 3100 {
		t.Errorf("tools/list takes %d bytes, want at most 3100", len(raw))
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
		block, line := strings.Count(tool.Description, finance.Block()), strings.Count(tool.Description, "\nDomain finance: Budgets and reports")
		if isSearch := tool.Name == "finance_search"; isSearch != (block == 1) || isSearch == (line == 1) {
			t.Errorf("%s: description = %q, want the block in search and one line in the others", tool.Name, tool.Description)
		}
		if strings.Contains(string(tool.InputSchema), "geo") {
			t.Errorf("%s offers geo: %s", tool.Name, tool.InputSchema)
		}
	}
	if diff := cmp.Diff([]string{"finance_search", "finance_get_document", "finance_read_content"}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	for _, method := range []string{"resources/list", "resources/templates/list"} {
		checkWords(t, method, string(c.Call(method, nil).Result))
	}
}

// The groups select tools.
func TestToolGroups(t *testing.T) {
	reading := []string{"search", "get_document", "read_content"}
	for _, tt := range []struct {
		groups []Group
		want   []string
	}{
		{nil, append(slices.Clone(toolNames), "job_get")},
		{[]Group{SearchTools, FessTools}, append(slices.Clone(toolNames), "job_get")},
		{[]Group{SearchTools}, reading},
		{[]Group{FessTools}, []string{"suggest", "popular_words", "list_labels", "health", "job_get"}},
	} {
		o := folders(corpus())
		o.Groups = tt.groups
		if len(tt.groups) != 1 || tt.groups[0] == FessTools {
			o.Jobs = job.New(job.Options{})
		}
		tools, raw := listTools(t, start(t, o, mcpserver.Latest))
		checkWords(t, "tools/list", string(raw))
		var names []string
		for _, tool := range tools {
			names = append(names, strings.TrimPrefix(tool.Name, "finance_"))
		}
		if diff := cmp.Diff(tt.want, names); diff != "" {
			t.Errorf("tools of %v (-want +got):\n%s", tt.groups, diff)
		}
	}
}

// Hits of folders have a path and, if there are several, a source, whatever
// fields are asked for.
func TestFolderHits(t *testing.T) {
	f := corpus()
	f.page = &search.Page{Total: 1, Hits: []search.Hit{{ID: "d1", Title: "Report", URL: "file:///docs/a/report.md", Path: "a/report\u202e.md",
		Digest: search.Excerpt{Text: "the report", Matches: []search.Span{{Start: 4, End: 10}}}, Labels: []string{"docs"}, Langs: []string{"en"}}}}
	for _, tt := range []struct {
		several bool
		fields  []string
		want    string
	}{
		{false, nil, `{"doc_id":"d1","title":"Report","path":"a/report%E2%80%AE.md","url":"file:///docs/a/report.md","digest":"the report"}`},
		{true, nil, `{"doc_id":"d1","title":"Report","path":"a/report%E2%80%AE.md","source":"docs","url":"file:///docs/a/report.md","digest":"the report"}`},
		{true, []string{"lang"}, `{"doc_id":"d1","path":"a/report%E2%80%AE.md","source":"docs","lang":["en"]}`},
	} {
		o := folders(f)
		o.NameSource = tt.several
		c := start(t, o, mcpserver.Latest)
		a := args{"query": "test"}
		if tt.fields != nil {
			a["includeFields"] = tt.fields
		}
		if got, want := c.ok("search", a), `{"total":1,"start":0,"pageSize":8,"results":[`+tt.want+`]}`; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Errors for folders are worded for folders.
func TestFolderErrors(t *testing.T) {
	c := start(t, folders(corpus()), mcpserver.Latest)
	for _, tt := range []struct {
		tool string
		args args
	}{
		{"search", args{"query": "test", "geo": args{"point": "1,2", "distance": "1km"}}},
		{"search", args{"query": "test", "sort": "size"}},
		{"search", args{"query": `"`}},
		{"get_document", args{"docId": "nope"}},
		{"read_content", args{"docId": "d3", "cursor": "x"}},
		{"suggest", args{"prefix": "x"}},
	} {
		a := c.tool(tt.tool, tt.args)
		if _, err := c.ToolText(a); err == nil {
			t.Errorf("%s(%v) = %s, want an error", tt.tool, tt.args, a.Raw)
		}
		checkWords(t, tt.tool, string(a.Raw))
	}
	a := c.Call("resources/read", args{"uri": "fess://finance/doc/x1"})
	if a.Error == nil {
		t.Errorf("resources/read = %s, want an error", a.Raw)
	}
	checkWords(t, "resources/read", string(a.Raw))
	var r searchAnswer
	c.into("search", args{"query": "zebra"}, &r)
	if want := "Nothing found in domain finance. Try fewer or other words."; r.Hint != want {
		t.Errorf("hint = %q, want %q", r.Hint, want)
	}
}

// A question is searched for by its words, a query that cannot be parsed too, and
// only a text without any word is refused: over folders and by the bridge.
func TestQuestions(t *testing.T) {
	for _, wording := range []Wording{OfFess, OfFolders} {
		f := corpus()
		f.total = 1 // nothing is searched for twice
		c := start(t, Options{Domain: finance, Backend: f, Wording: wording}, mcpserver.Latest)
		for _, tt := range []struct {
			query, want string
			relaxed     bool
		}{
			{`Where is the "annual report" (draft) for R&D: is it in docs/finance?`, "Where is the annual report draft for R&D is it in docs finance", false},
			{"test OR", "test", true},
			{`"test`, "test", true},
			{"label:hr OR", "label hr", true},
			{`title:test OR "a b"`, `title:test OR "a b"`, false},
		} {
			var r searchAnswer
			c.into("search", args{"query": tt.query}, &r)
			if f.query.Text != tt.want || r.Relaxed != tt.relaxed {
				t.Errorf("search(%q) asked for %q, relaxed %v, want %q, %v", tt.query, f.query.Text, r.Relaxed, tt.want, tt.relaxed)
			}
		}
		for _, q := range []string{" ", `"`, "&&", `|| "`, "!"} {
			a := c.tool("search", args{"query": q})
			if _, err := c.ToolText(a); err == nil || !strings.Contains(string(a.Raw), "at least one word") {
				t.Errorf("search(%q) = %s, want a refusal that asks for a word", q, a.Raw)
			}
		}
	}
}

// While documents are being indexed, the model that reads the result learns of it.
func TestIndexingInResult(t *testing.T) {
	f := corpus()
	o := folders(f)
	o.Backend = indexingBackend{f}
	c := start(t, o, mcpserver.Latest)
	indexing := func() string {
		var r struct{ Indexing json.RawMessage }
		c.into("search", args{"query": "test"}, &r)
		return string(r.Indexing)
	}
	if got := indexing(); got != "" {
		t.Errorf("indexing when idle = %s, want none", got)
	}
	f.busy = true
	if got, want := indexing(), `{"done":3,"total":40}`; got != want {
		t.Errorf("indexing = %s, want %s", got, want)
	}
}
