package searchmcp

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/search"

	"github.com/google/go-cmp/cmp"
)

// folders is how command serve offers the corpus by default.
func folders(f *fakeBackend) Options {
	return Options{Domain: finance, Backend: f, Wording: OfFolders, Groups: []Group{SearchTools}, PageSize: 8}
}

// speaksOfFess matches what texts about folders must not contain.
var speaksOfFess = regexp.MustCompile(`(?i)fess`)

func checkWords(t *testing.T, what, text string) {
	t.Helper()
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
		block, line := strings.Count(tool.Description, finance.Block(OfFolders)),
			strings.Count(tool.Description, "\nDomain finance: Budgets and reports")
		if isSearch := tool.Name == "finance_search"; isSearch != (block == 1) || isSearch == (line == 1) {
			t.Errorf("%s: description = %q, want the block in search and one line in the others", tool.Name,
				tool.Description)
		}
		if strings.Contains(string(tool.InputSchema), "geo") {
			t.Errorf("%s offers geo: %s", tool.Name, tool.InputSchema)
		}
	}
	if diff := cmp.Diff([]string{"finance_search", "finance_get_document", "finance_read_content"}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	for _, method := range []string{"resources/list", "resources/templates/list"} {
		result := string(c.Call(method, nil).Result)
		checkWords(t, method, result)
		if !strings.Contains(result, `"knowhow://finance/doc/`) {
			t.Errorf("%s = %s, want URIs of folders", method, result)
		}
	}
	for _, uri := range []string{"knowhow://finance/doc/d3", "fess://finance/doc/d3",
		"knowhow://finance/doc/d3/content", "fess://finance/doc/d3/content"} {
		if a := c.Call("resources/read", args{"uri": uri}); a.Error != nil ||
			!strings.Contains(string(a.Result), `"uri":"`+uri+`"`) {
			t.Errorf("resources/read of %s = %s, want contents with the same URI", uri, a.Raw)
		}
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
		{[]Group{ConnectorTools}, []string{"search", "fetch"}},
	} {
		o := folders(corpus())
		o.Groups = tt.groups
		if tt.groups == nil || slices.Contains(tt.groups, FessTools) {
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
// fields are asked for. The URL of a file is returned only if it is asked for.
func TestFolderHits(t *testing.T) {
	const file, web, git = "file:///docs/a/report.md", "https://example.com/report", "git+ssh://example.com/r#1:a/report.md"
	for _, tt := range []struct {
		url     string
		several bool
		fields  []string
		want    string
	}{
		{file, false, nil, `{"doc_id":"d1","title":"Report","path":"a/report%E2%80%AE.md","digest":"the report"}`},
		{file, true, nil, `{"doc_id":"d1","title":"Report","path":"a/report%E2%80%AE.md","source":"docs","digest":"the report"}`},
		{file, true, []string{"lang"}, `{"doc_id":"d1","path":"a/report%E2%80%AE.md","source":"docs","lang":["en"]}`},
		{file, false, []string{"url"}, `{"doc_id":"d1","path":"a/report%E2%80%AE.md","url":"` + file + `"}`},
		{"", false, nil, `{"doc_id":"d1","title":"Report","path":"a/report%E2%80%AE.md","digest":"the report"}`},
		{web, false, nil, `{"doc_id":"d1","title":"Report","path":"a/report%E2%80%AE.md","url":"` + web + `","digest":"the report"}`},
		{git, false, nil, `{"doc_id":"d1","title":"Report","path":"a/report%E2%80%AE.md","url":"` + git + `","digest":"the report"}`},
		{web, false, []string{"lang"}, `{"doc_id":"d1","path":"a/report%E2%80%AE.md","lang":["en"]}`},
	} {
		f := corpus()
		f.page = &search.Page{Total: 1, Hits: []search.Hit{{ID: "d1", Title: "Report", URL: tt.url,
			Path:   "a/report\u202e.md",
			Digest: search.Excerpt{Text: "the report", Matches: []search.Span{{Start: 4, End: 10}}},
			Labels: []string{"docs"}, Langs: []string{"en"}}}}
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
	a := c.Call("resources/read", args{"uri": "knowhow://finance/doc/x1"})
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

// A search that finds nothing because no document has the value of a field lists the
// values that documents have.
func TestValuesHint(t *testing.T) {
	for _, tt := range []struct {
		wording     Wording
		field       string
		query, want string
	}{
		{OfFolders, "filetype", "filetype:xlsx zebra", " The values of filetype are html, pdf."},
		{OfFolders, "filetype", "filetype:md zebra",
			" The values of filetype are html, pdf. For the ending of a file's name, write filename:*.md."},
		{OfFolders, "filetype", "filetype:htm zebra", ""},
		{OfFolders, "label", "label:xyz", " The values of label are html, pdf."},
		{OfFolders, "filename", "filename:xyz", ""},
		{OfFolders, "filetype", "zebra -filetype:xyz", ""},
		{OfFess, "filetype", "filetype:xlsx", " The values of filetype are html, pdf."},
		{OfFess, "label", "label:xyz", ""},
	} {
		f := corpus()
		f.facets = []search.FieldCounts{{Name: tt.field, Counts: []search.Count{{Value: "html", Count: 2},
			{Value: "pdf", Count: 1}}}}
		c := start(t, Options{Domain: finance, Backend: f, Wording: tt.wording}, mcpserver.Latest)
		var r searchAnswer
		c.into("search", args{"query": tt.query}, &r)
		_, got, _ := strings.Cut(r.Hint, "other words")
		if _, got, _ = strings.Cut(got, "."); got != tt.want {
			t.Errorf("hint for %q = %q, want %q at its end", tt.query, r.Hint, tt.want)
		}
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
			{`Where is the "annual report" (draft) for R&D: is it in docs/finance?`,
				"Where is the annual report draft for R&D is it in docs finance", false},
			{"test OR", "test", true},
			{`"test`, "test", true},
			{"label:hr OR", "label hr", true},
			{`title:test OR "a b"`, `title:test OR "a b"`, false},
		} {
			var r searchAnswer
			c.into("search", args{"query": tt.query}, &r)
			if f.query.Text.String() != tt.want || r.Relaxed != tt.relaxed {
				t.Errorf("search(%q) asked for %q, relaxed %v, want %q, %v", tt.query, f.query.Text, r.Relaxed, tt.want,
					tt.relaxed)
			}
		}
		for _, q := range []string{" ", `"`, "&&", `|| "`, "!", "???", "? ?", "...", "—", ",", "/", "()"} {
			a := c.tool("search", args{"query": q})
			if _, err := c.ToolText(a); err == nil || !strings.Contains(string(a.Raw), "at least one word") {
				t.Errorf("search(%q) = %s, want a refusal that asks for a word", q, a.Raw)
			}
		}
	}
}

// Hits have passages instead of a digest, and the caller chooses how many
// characters they may have.
func TestPassages(t *testing.T) {
	f := corpus()
	f.page = &search.Page{Total: 2, Hits: []search.Hit{
		{ID: "d1", Title: "Report", Path: "a.md", Digest: search.Excerpt{Text: "the report"},
			Passages: []search.Passage{
				{Heading: "Report 2026 > Install > From\u202e source", Page: "12", Offset: 120,
					Text: "Type make.  \n\n\nThen wait."}, {Page: "iv\u202e", Offset: 0, Text: "Start\u200b"}}},
		{ID: "d2", Title: "Other", Path: "b.md", Digest: search.Excerpt{Text: "another"},
			Also: []string{"c.md", "d\u202e.md"}},
	}}
	c := start(t, folders(f), mcpserver.Latest)
	want := `{"total":2,"start":0,"pageSize":8,"results":[{"doc_id":"d1","title":"Report","path":"a.md",` +
		`"passages":[{"heading":"Report 2026 > Install > From source","page":12,"offset":120,"text":"Type make.  \n\n\nThen wait."},{"page":"iv","offset":0,"text":"Start"}]},` +
		`{"doc_id":"d2","title":"Other","path":"b.md","also":["c.md","d%E2%80%AE.md"],"digest":"another"}]}`
	if got := c.ok("search", args{"query": "test"}); got != want {
		t.Errorf("search = %s\nwant     %s", got, want)
	}
	if !f.query.Distinct {
		t.Error("documents with the same text are several hits")
	}
	if f.query.Passages != 6000 {
		t.Errorf("searched for %d characters, want 6000", f.query.Passages)
	}
	for chars := range map[int]bool{0: true, 100000: true} {
		c.ok("search", args{"query": "test", "maxChars": chars})
		if f.query.Passages != chars {
			t.Errorf("maxChars %d searched for %d characters", chars, f.query.Passages)
		}
	}
	for _, chars := range []any{-1, 100001, "many"} {
		a := c.tool("search", args{"query": "test", "maxChars": chars})
		if _, err := c.ToolText(a); err == nil {
			t.Errorf("maxChars %v: %s, want an error", chars, a.Raw)
		}
	}
	fess := start(t, Options{Domain: finance, Backend: f}, mcpserver.Latest)
	fess.ok("search", args{"query": "test"})
	if f.query.Passages != 0 {
		t.Errorf("the bridge searched for %d characters, want none", f.query.Passages)
	}
}

// manual is a document with sections.
const manual = "Guide\n\nIntro.\n\nInstall\n\nFirst.\n\nFrom source\n\nType make.\n\nUse\n\nRun it. 日本語"

func manuals() folderBackend {
	f := corpus()
	f.docs = append(f.docs, fakeDoc{id: "m1", label: "finance_docs", title: "Guide", text: manual})
	at := func(s string) int { return strings.Index(manual, s) }
	f.parts = map[string][]document.Section{"m1": {{Heading: "Guide"},
		{Heading: "Guide > Install", Offset: at("Install")},
		{Heading: "Guide > Install > From source", Offset: at("From")}, {Heading: "Guide > Use", Offset: at("Use")}}}
	f.places = map[string][]search.Place{"new\nline.md": {{ID: "m1", Label: "finance_docs"}},
		"guide.md":       {{ID: "m1", Label: "finance_docs"}},
		"gu\u00efde.md":  {{ID: "m1", Label: "finance_docs"}}, // composed
		"gui\u0301de.md": {{ID: "m1", Label: "finance_docs"}}, // decomposed
		"twice.md":       {{ID: "d2", Label: "finance_docs"}, {ID: "d3", Label: "other"}}}
	return folderBackend{f}
}

// A document of a folder is read from its beginning, from an offset, from a
// cursor, or by section.
func TestReadFolderContent(t *testing.T) {
	o := folders(nil)
	o.Backend = manuals()
	c := start(t, o, mcpserver.Latest)
	type answer struct {
		Text, Heading, NextCursor string
		Offset                    int
		IsLast                    bool
	}
	use := strings.Index(manual, "Use")
	for _, tt := range []struct {
		args args
		want answer
	}{
		{args{"docId": "m1"}, answer{Text: manual, Heading: "Guide", IsLast: true}},
		{args{"path": "guide.md"}, answer{Text: manual, Heading: "Guide", IsLast: true}},
		{args{"path": "gui\u0308de.md"}, answer{Text: manual, Heading: "Guide", IsLast: true}},
		{args{"path": "gu\u00edde.md"}, answer{Text: manual, Heading: "Guide", IsLast: true}},
		{args{"path": "finance_docs/guide.md", "from": use + 5},
			answer{Text: manual[use+5:], Heading: "Guide > Use", Offset: use + 5, IsLast: true}},
		{args{"docId": "m1", "section": "install"}, answer{Text: "Install\n\nFirst.\n\nFrom source\n\nType make.\n\n",
			Heading: "Guide > Install", Offset: 15, NextCursor: "+"}},
		{args{"docId": "m1", "section": "Guide > Install >  From source"},
			answer{Text: "From source\n\nType make.\n\n", Heading: "Guide > Install > From source", Offset: 32,
				NextCursor: "+"}},
		{args{"docId": "m1", "section": "Install > from source", "maxChars": 13},
			answer{Text: "From source\n\n", Heading: "Guide > Install > From source", Offset: 32, NextCursor: "+"}},
		{args{"docId": "m1", "section": "Use"}, answer{Text: manual[use:], Heading: "Guide > Use", Offset: use,
			IsLast: true}},
		{args{"docId": "m1", "from": len(manual)}, answer{Heading: "Guide > Use", Offset: len(manual), IsLast: true}},
		{args{"docId": "m1", "from": len(manual) - 5}, answer{Text: "語", Heading: "Guide > Use",
			Offset: len(manual) - 3, IsLast: true}},
		{args{"docId": "m1", "from": len(manual) - 1}, answer{Heading: "Guide > Use", Offset: len(manual),
			IsLast: true}},
		{args{"docId": "m1", "maxChars": 2}, answer{Text: "Gu", Heading: "Guide", NextCursor: "+"}},
		{args{"path": "new%0Aline.md", "from": len(manual)}, answer{Heading: "Guide > Use", Offset: len(manual),
			IsLast: true}},
		{args{"docId": "m1", "maxChars": 5}, answer{Text: "Guide", Heading: "Guide", NextCursor: "+"}},
	} {
		var got answer
		c.into("read_content", tt.args, &got)
		next := got.NextCursor
		if next != "" {
			got.NextCursor = "+"
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("read_content(%v) (-want +got):\n%s", tt.args, diff)
		}
		if next == "" {
			continue
		}
		var rest answer
		c.into("read_content", args{"docId": "m1", "cursor": next}, &rest)
		if want := manual[got.Offset+len(got.Text):]; rest.Text != want {
			t.Errorf("after read_content(%v) = %q, want %q", tt.args, rest.Text, want)
		}
	}
	for _, tt := range []struct {
		args args
		want string
	}{
		{args{}, "want the doc_id or the path of a search hit"},
		{args{"docId": "m1", "path": "guide.md"}, "only one of docId and path"},
		{args{"docId": "m1", "from": 1, "section": "Use"}, "at most one of from, section and cursor"},
		{args{"docId": "m1", "section": "Instal"}, `such as \"Install\"`},
		{args{"docId": "d2", "section": "Use"}, "has no headings"},
		{args{"docId": "m1", "from": len(manual) + 1}, "an offset in the text"},
		{args{"path": "none.md"}, "no document has the path"},
		{args{"path": "twice.md"}, "d3 in other"},
		{args{"docId": "x1"}, "x1"},
	} {
		a := c.tool("read_content", tt.args)
		if _, err := c.ToolText(a); err == nil || !strings.Contains(string(a.Raw), tt.want) &&
			!strings.Contains(string(a.Raw), strings.ReplaceAll(tt.want, `"`, `\"`)) {
			t.Errorf("read_content(%v) = %s, want an error with %q", tt.args, a.Raw, tt.want)
		}
	}
}

// get_document lists the sections.
func TestFolderSections(t *testing.T) {
	o := folders(nil)
	o.Backend = manuals()
	c := start(t, o, mcpserver.Latest)
	var got struct {
		Sections []section `json:"sections"`
	}
	for _, a := range []args{{"docId": "m1"}, {"path": "guide.md"}} {
		c.into("get_document", a, &got)
		if len(got.Sections) != 4 || got.Sections[1] != (section{"Guide > Install", 15}) {
			t.Errorf("get_document(%v) has the sections %v", a, got.Sections)
		}
	}
	if text := c.ok("get_document", args{"docId": "d2"}); !strings.Contains(text, `"sections":[]`) {
		t.Errorf("get_document without headings = %s, want an empty list", text)
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

// A result reports which documents are missing because indexing has stopped.
func TestIncompleteInResult(t *testing.T) {
	f := corpus()
	o := folders(f)
	o.Backend = indexingBackend{f}
	c := start(t, o, mcpserver.Latest)
	check := func(wantPartial bool, want, wantHint string) {
		t.Helper()
		var r struct {
			Partial              bool
			Hint                 string
			Incomplete, Indexing json.RawMessage
		}
		c.into("search", args{"query": "test"}, &r)
		if r.Partial != wantPartial || string(r.Incomplete) != want || r.Hint != wantHint || r.Indexing != nil {
			t.Errorf("partial = %v, incomplete = %s, hint = %q, indexing = %s, want %v, %s and %q", r.Partial,
				r.Incomplete, r.Hint, r.Indexing, wantPartial, want, wantHint)
		}
	}
	check(false, "", "")
	f.unfinished = []search.Unfinished{{Label: "a", Done: 3, Total: 40, Stop: search.DiskFull, Earlier: true},
		{Label: "b", Stop: search.Interrupted}}
	check(true, `[{"source":"a","done":3,"total":40,"reason":"disk-full"},{"source":"b","done":0,"total":0,"reason":"interrupted"}]`,
		"Documents are missing: of a, 3 of 40 are indexed; the documents of b have not been counted. Indexing has stopped; ask the user to look at: knowhow status")
	// Questions in other words find more when all vectors are there.
	for embedded, want := range map[int]string{2: " Searching by meaning is 40 % ready: the same question may find more later.", 5: ""} {
		f.embedded = embedded
		var r struct{ Hint string }
		f.unfinished = nil
		c.into("search", args{"query": "nothingness"}, &r)
		if r.Hint != "Nothing found in domain finance. Try fewer or other words."+want {
			t.Errorf("hint = %q, want %q at the end", r.Hint, want)
		}
	}
	// The documents of a source that cannot be read now are still there.
	f.unfinished = []search.Unfinished{{Label: "a", Stop: search.Failed, Earlier: true}}
	check(false, "", "")
}

// missingBackend finds documents for words of which no document has some.
type missingBackend struct{ indexingBackend }

func (b missingBackend) Search(ctx context.Context, q search.Query) (*search.Page, error) {
	p, err := b.indexingBackend.Search(ctx, q)
	if p != nil {
		p.Missing = []string{"zebra\x1b[1m", "a", "b", "c", "d", "e"}
	}
	return p, err
}

// A result names words of the question that no document has, cleaned and not too many.
func TestMissingInHint(t *testing.T) {
	f := corpus()
	o := folders(f)
	o.Backend = missingBackend{indexingBackend{f}}
	var r searchAnswer
	start(t, o, mcpserver.Latest).into("search", args{"query": "test"}, &r)
	want := "No document has: zebra[1m, a, b, c, d. The hits are those of the other words."
	if r.Hint != want {
		t.Errorf("hint = %q, want %q", r.Hint, want)
	}
}
