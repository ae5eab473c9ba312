package fessbridge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/chunk"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/fessconfig"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

// open returns a source with the label of a domain of a fake server, and what change
// makes of its configuration.
func open(t testing.TB, url, label string, change func(*fessconfig.Config)) *Source {
	t.Helper()
	c := fessconfig.New(url, label, "")
	if change != nil {
		change(c)
	}
	s, err := NewSource(SourceOptions{Config: c, Label: "ours", Version: "devel"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// members returns documents as those of a domain, and the same documents once more
// under another label.
func members(docs []document.Document) []document.Document {
	var all []document.Document
	for _, d := range docs {
		d.Label = "members"
		all = append(all, d)
		d.ID, d.Label = "other-"+d.ID, "others"
		all = append(all, d)
	}
	return all
}

func TestContract(t *testing.T) {
	for name, o := range map[string]fesstest.Options{
		"API v1":                       {SendContent: true},
		"API v2, below a path":         {SendContent: true, API: "v2", ContextPath: "/fess"},
		"a token":                      {SendContent: true, Token: "s3cret"},
		"small pages":                  {SendContent: true, MaxPageSize: 15},
		"small pages of configuration": {SendContent: true},
		"the whole index of a server":  {SendContent: true},
	} {
		t.Run(name, func(t *testing.T) {
			searchtest.Run(t, searchtest.Options{
				Open: func(t *testing.T, docs []document.Document) search.Service {
					label := "members"
					docs = members(docs)
					if name == "the whole index of a server" {
						label = ""
						for i := len(docs) - 1; i >= 0; i-- {
							if docs[i].Label == "others" {
								docs = append(docs[:i], docs[i+1:]...)
							}
						}
					}
					server := fesstest.New(t, docs, o)
					s := open(t, server.URL, label, func(c *fessconfig.Config) {
						c.FessAuth.AccessToken = o.Token
						if name == "small pages of configuration" {
							c.Limits.MaxPageSize = 7
						}
					})
					// A source knows the IDs of what it found.
					if _, err := s.Search(t.Context(), search.Query{Num: 100}); err != nil {
						t.Fatal(err)
					}
					return s
				},
				Served: func(d document.Document) document.Document {
					d.ID, d.Label = document.IDOf("ours", d.ID), "ours"
					return d
				},
				Label: "ours", NoTags: true, NoPassages: true, NoWritten: true,
			})
		})
	}
}

// Isolation: whatever a query says, Fess is asked for the label of the domain, and what
// other labels have is not found, counted or named. The label of the source is that of
// other documents in Fess.
func TestSourceIsolation(t *testing.T) {
	count := 2_000
	if os.Getenv("CI") == "true" && !testing.Short() {
		count = 10_000
	}
	for _, api := range []string{"v1", "v2"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			server := fesstest.New(t, searchtest.Secrets(), fesstest.Options{API: api})
			c := fessconfig.New(server.URL, "finance", "")
			s, err := NewSource(SourceOptions{Config: c, Label: "hr", Version: "devel"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			own := map[string]bool{}
			for _, d := range searchtest.Secrets() {
				if d.Label == "finance" {
					own[document.IDOf("hr", d.ID)] = true
				}
			}
			n := 0
			searchtest.Isolation{
				Service: s,
				Own: func(h search.Hit) bool {
					return own[h.ID] && h.URL == "file:///finance" && slices.Equal(h.Labels, []string{"hr"}) && h.Extra == nil
				},
				Total:   len(own),
				Queries: count,
				After: func(text string) bool {
					for _, r := range server.Requests() {
						q, err := url.ParseQuery(r.Query)
						if err != nil || strings.HasSuffix(r.Path, "/health") {
							continue
						}
						if got := q["fields.label"]; !slices.Equal(got, []string{"finance"}) ||
							slices.Contains(q["facet.field"], "label") ||
							slices.ContainsFunc(slices.Concat(q["q"], q["facet.query"]), namesLabel) {
							t.Errorf("Search(%q) asked %s?%s, want only label finance", text, r.Path, r.Query)
							return true
						}
					}
					server.Forget()
					n++
					return false
				},
			}.Run(t)
			if n != count {
				t.Errorf("%d of %d queries were sent", n, count)
			}
		})
	}
}

// namesLabel reports whether a query has a condition on labels.
func namesLabel(text string) bool {
	t, err := query.Parse(text)
	if err != nil {
		return false
	}
	resolved, ok, err := t.WithLabel("nosuch", func(string) string { return "" })
	return err != nil || !ok || !resolved.Equal(t)
}

// What is not a query leads nowhere else either.
func TestSourceOutside(t *testing.T) {
	server := fesstest.New(t, searchtest.Secrets(), fesstest.Options{SendContent: true})
	s := open(t, server.URL, "finance", nil)
	ctx := t.Context()
	if _, err := s.Search(ctx, search.Query{Num: 100}); err != nil {
		t.Fatal(err)
	}
	server.Forget()
	ours := document.IDOf("ours", "finance0")
	for id, labels := range map[string][]string{
		"finance0": nil, "hr0": nil, document.IDOf("ours", "hr0"): nil, document.IDOf("finance", "finance0"): nil,
		"": nil, "never-given": nil, strings.Repeat("x", 5000): nil, ours: {"finance"},
	} {
		for name, err := range map[string]error{
			"Find":     func() error { _, err := s.Find(ctx, id, labels); return err }(),
			"ReadText": func() error { _, err := s.ReadText(ctx, id, labels, 0, 10); return err }(),
		} {
			if !errors.Is(err, errkind.NotFound) || !strings.Contains(err.Error(), "search again") {
				t.Errorf("%s(%.20q, %v) = %v, want kind NotFound and the advice to search again", name, id, labels, err)
			}
		}
	}
	for _, labels := range [][]string{{"finance"}, {"hr"}, {}, {"OURS"}} {
		p, err := s.Search(ctx, search.Query{Labels: labels, Num: 10, Facets: &search.Facets{Fields: []string{"label"},
			Queries: []string{"alpha"}}})
		if err != nil || p.Total != 0 || len(p.Hits) != 0 || len(p.Facets.Fields[0].Counts) != 0 ||
			p.Facets.Queries[0].Count != 0 {
			t.Errorf("Search in %v = %+v, %v, want nothing", labels, p, err)
		}
		list, err := s.Suggest(ctx, search.SuggestQuery{Prefix: "al", Num: 9, Labels: labels})
		if err != nil || len(list) > 0 {
			t.Errorf("Suggest in %v = %v, %v, want nothing", labels, list, err)
		}
		if list, err := s.PopularWords(ctx, search.WordsQuery{Labels: labels}); err != nil || len(list) > 0 {
			t.Errorf("PopularWords in %v = %v, %v, want nothing", labels, list, err)
		}
	}
	if got := server.Requests(); len(got) != 0 {
		t.Errorf("Fess was asked %v, want no request", got)
	}
	list, err := s.Suggest(ctx, search.SuggestQuery{Prefix: "financ", Num: 9})
	if want := []search.Suggestion{{Text: "finance", Labels: []string{"ours"}}}; err != nil || !cmp.Equal(list, want) {
		t.Errorf("Suggest(financ) = %v, %v, want %v", list, err, want)
	}
	if h, err := s.Find(ctx, ours, []string{"other", "ours"}); err != nil || h.ID != ours || h.Labels[0] != "ours" {
		t.Errorf("Find(%s) = %+v, %v, want the document", ours, h, err)
	}
	if labels, err := s.Labels(ctx); err != nil || len(labels) != 1 || labels[0].Value != "ours" {
		t.Errorf("Labels() = %v, %v, want ours", labels, err)
	}
}

// A condition on labels is one on the label of the source, also in facets.
func TestSourceLabels(t *testing.T) {
	server := fesstest.New(t, searchtest.Secrets(), fesstest.Options{})
	s := open(t, server.URL, "finance", nil)
	all, err := s.Search(t.Context(), search.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"label:ours": all.Total, "label:finance": 0, "label:hr": 0, "NOT label:ours": 0, "NOT label:hr": all.Total,
		"label:ours OR nosuch": all.Total, "gamma label:ours": 1, "gamma label:finance": 0, "gamma OR label:finance": 1,
		"label:o*": all.Total, "label:f*": 0,
	} {
		p, err := s.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 100})
		if err != nil || p.Total != want || len(p.Hits) != want {
			t.Errorf("Search(%q) = %+v, %v, want %d documents", text, p, err, want)
		}
	}
	one, err := s.Search(t.Context(), search.Query{Num: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Search(t.Context(), search.Query{Text: query.MustParse("alpha"), Facets: &search.Facets{
		Fields:  []string{"filetype", "label", "label", "mimetype"},
		Queries: []string{"label:finance", "beta", "label:ours", "beta", "beta label:ours"}}})
	if err != nil {
		t.Fatal(err)
	}
	ours := one.Hits[0].ID
	for text, want := range map[string]int{"doc_id:" + ours: 1, `doc_id:"` + ours + `"`: 1, "doc_id:nosuch": 0,
		"NOT doc_id:" + ours: all.Total - 1, "doc_id:" + searchtest.Secrets()[0].ID: 0} {
		if p, err := s.Search(t.Context(), search.Query{Text: query.MustParse(text), Num: 10}); err != nil || p.Total != want {
			t.Errorf("Search(%q) = %+v, %v, want %d documents", text, p, err, want)
		}
	}
	beta := 2
	want := &search.FacetCounts{
		Fields: []search.FieldCounts{{Name: "filetype", Counts: []search.Count{{Value: "txt", Count: p.Total}}},
			{Name: "label", Counts: []search.Count{{Value: "ours", Count: p.Total}}},
			{Name: "mimetype", Counts: []search.Count{{Value: "text/plain", Count: p.Total}}}},
		Queries: []search.Count{{Value: "label:finance"}, {Value: "beta", Count: beta},
			{Value: "label:ours", Count: p.Total},
			{Value: "beta", Count: beta}, {Value: "beta label:ours", Count: beta}},
	}
	if diff := cmp.Diff(want, p.Facets); diff != "" {
		t.Errorf("facets of alpha (-want +got):\n%s", diff)
	}
	p, err = s.Search(t.Context(), search.Query{Facets: &search.Facets{Fields: []string{"label"}, MinDocCount: 100}})
	if err != nil || len(p.Facets.Fields[0].Counts) != 0 {
		t.Errorf("facets of labels with 100 documents = %+v, %v, want none", p, err)
	}
	if _, err := s.Search(t.Context(), search.Query{Num: 101}); !errors.Is(err, errkind.Invalid) {
		t.Errorf("Search for 101 hits = %v, want kind Invalid", err)
	}
}

// A question finds the documents with any of its words that count, and says how many have
// all. Other queries find the documents with all words.
func TestSourceQuestions(t *testing.T) {
	doc := func(id, text string) document.Document {
		return document.Document{ID: strings.Repeat(id, 32), Label: "finance", Title: id, Text: text, URL: "https://example.com/" + id}
	}
	server := fesstest.New(t, []document.Document{doc("a", "the invoice of Friday"), doc("b", "walrus"),
		doc("c", "how do I do this"), doc("d", "walrus invoice on a friday")}, fesstest.Options{})
	s := open(t, server.URL, "finance", nil)
	for _, tt := range []struct {
		text, want string
		staged     bool
		all        int
		sort       []search.SortKey
	}{
		{text: "How do I do the invoice of Friday?", want: "a d", staged: true, all: 2},
		{text: "invoice Friday walrus", want: "d a b", staged: true, all: 1},
		{text: "invoice walrus", want: "d"},
		{text: "invoice AND friday AND walrus", want: "d"},
		{text: "invoice friday walrus", want: "d", sort: []search.SortKey{{Field: "filename"}}},
	} {
		q := search.Query{Text: query.MustParse(tt.text), Num: 10, Sort: tt.sort}
		if strings.HasSuffix(tt.text, "?") {
			text, err := query.Read(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			q.Text = text
		}
		page, err := s.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var titles []string
		for _, h := range page.Hits {
			titles = append(titles, h.Title)
		}
		got := strings.Join(titles, " ")
		if got != tt.want || page.Staged != tt.staged || page.AllWords != tt.all || page.Facets != nil {
			t.Errorf("%q finds %s, staged %v, %d with all words, facets %v; want %s, %v, %d", tt.text, got, page.Staged,
				page.AllWords, page.Facets, tt.want, tt.staged, tt.all)
		}
	}
}

// If the time is over before Fess has said which documents have all words, those with
// some are returned in its order.
func TestSourceQuestionLate(t *testing.T) {
	doc := func(id, text string) document.Document {
		return document.Document{ID: strings.Repeat(id, 32), Label: "finance", Title: id, Text: text, URL: "https://example.com/" + id}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := fesstest.New(t, []document.Document{doc("a", "invoice"), doc("b", "walrus")}, fesstest.Options{
		Delay: func(r *http.Request) {
			if q := r.FormValue("q"); strings.Contains(q, "walrus") && !strings.Contains(q, " OR ") {
				cancel()
				<-r.Context().Done()
			}
		}})
	s := open(t, server.URL, "finance", nil)
	page, err := s.Search(ctx, search.Query{Text: query.MustParse("invoice friday walrus"), Num: 10})
	if err != nil || len(page.Hits) != 2 || page.Total != 2 || page.Staged {
		t.Errorf("Search = %+v, %v, want both documents in the order of Fess", page, err)
	}
	if ctx.Err() == nil {
		t.Error("Fess was not asked for the documents with all words")
	}
}

// The pages of a long result follow one another up to the thousandth hit, whatever the
// sizes of the pages that are permitted.
func TestSourcePages(t *testing.T) {
	var docs []document.Document
	for i := range 1_100 {
		docs = append(docs, document.Document{ID: fmt.Sprintf("%032x", i), Label: "finance", Title: "alpha",
			Text: "alpha", URL: fmt.Sprint("https://example.com/", i), Filename: fmt.Sprintf("%04d", i), FileType: "txt"})
	}
	server := fesstest.New(t, docs, fesstest.Options{})
	s := open(t, server.URL, "finance", func(c *fessconfig.Config) { c.Limits.MaxPageSize = 30 })
	for start := 0; start <= 1_000; start += 100 {
		p, err := s.Search(t.Context(), search.Query{Text: query.MustParse("alpha"), Start: start, Num: 100,
			Langs: []string{"en"}, Sort: []search.SortKey{{Field: "filename"}}})
		if err != nil || p.Total != len(docs) || len(p.Hits) != 100 {
			t.Fatalf("Search from %d = %d hits, %v, want 100", start, len(p.Hits), err)
		}
		for i, h := range p.Hits {
			if want := fmt.Sprintf("%04d", start+i); h.Filename != want || len(h.ID) != 16 {
				t.Fatalf("hit %d = %s with ID %s, want %s", start+i, h.Filename, h.ID, want)
			}
		}
	}
	for _, r := range server.Requests() {
		if q, _ := url.ParseQuery(r.Query); q.Has("num") {
			if n, err := strconv.Atoi(q.Get("num")); err != nil || n > 30 {
				t.Errorf("Fess was asked for %s hits, want at most 30", q.Get("num"))
			}
			if q.Get("lang") != "en" {
				t.Errorf("Fess was asked for the language %q, want en", q.Get("lang"))
			}
		}
	}
}

func TestIDs(t *testing.T) {
	table := newIDs(2)
	table.put("a", "1")
	table.put("b", "2")
	table.put("a", "1")
	table.put("c", "3") // drops b, which is the oldest
	for ours, want := range map[string]string{"a": "1", "b": "", "c": "3"} {
		if got, ok := table.get(ours); got != want || ok != (want != "") {
			t.Errorf("get(%s) = %q, %v, want %q", ours, got, ok, want)
		}
	}
	if len(table.byID) != table.used.Len() {
		t.Errorf("%d IDs for %d pairs", len(table.byID), table.used.Len())
	}
}

// A web is a web server with pages.
type web struct {
	*httptest.Server
	asked atomic.Int64
}

func newWeb(t *testing.T, pages map[string]string) *web {
	w := &web{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.asked.Add(1)
		page, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(out, r)
			return
		}
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(out, page)
	}))
	t.Cleanup(w.Close)
	return w
}

// onTheWeb is a document whose text Fess does not send.
func onTheWeb(id, label, url string) document.Document {
	return document.Document{ID: id, Label: label, Title: "alpha " + id,
		Text: strings.Repeat("alpha ", 500) + id, URL: url,
		Filename: id, FileType: "html", MIMEType: "text/html", Modified: time.Unix(1_700_000_000, 0),
		Stamp: document.Stamp{Size: 9_999}}
}

// A text that Fess does not send is that of the document at its URL or of the copy that
// Fess stored, under the policy of the configuration.
func TestSourceTexts(t *testing.T) {
	w := newWeb(t, map[string]string{"/page": "<h1>Heading</h1><p>The page.</p>"})
	docs := []document.Document{onTheWeb("page", "finance", w.URL+"/page"), onTheWeb("gone", "finance", w.URL+"/gone"),
		onTheWeb("copied", "finance", "smb://files/copied.html")}
	server := fesstest.New(t, docs, fesstest.Options{
		More: map[string]fesstest.More{"copied": {Copy: "<p>The copy.</p>"}}})
	private := func(c *fessconfig.Config) { c.ContentFetch.AllowPrivateNetworkTargets = true }
	for _, tt := range []struct {
		name   string
		id     string
		change func(*fessconfig.Config)
		want   string
		kind   error
		says   string // part of the error
	}{
		{"page", "page", private, "Heading\n\nThe page.", nil, ""},
		{"gone", "gone", private, "", errkind.NotFound, "no longer at its address"},
		{"private", "page", nil, "", errkind.Denied, "contentFetch.allowPrivateNetworkTargets"},
		{"host", "page", func(c *fessconfig.Config) { c.ContentFetch.AllowedHostAllowlist = []string{"example.com"} }, "",
			errkind.Denied, "contentFetch.allowedHostAllowlist"},
		{"disabled", "page", func(c *fessconfig.Config) { c.ContentFetch.Enabled = false }, "", errkind.Denied,
			"set contentFetch.enabled"},
		{"scheme", "copied", private, "", errkind.Denied, `contentFetch.fessCache to "always"`},
		{"copy", "copied", func(c *fessconfig.Config) { c.ContentFetch.FessCache = "always" }, "The copy.", nil, ""},
	} {
		s := open(t, server.URL, "finance", tt.change)
		if _, err := s.Search(t.Context(), search.Query{Num: 10}); err != nil {
			t.Fatal(err)
		}
		id := document.IDOf("ours", tt.id)
		got, err := s.ReadText(t.Context(), id, nil, 0, 1000)
		if tt.kind != nil {
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: ReadText = %+v, %v, want kind %v with %q", tt.name, got, err, tt.kind, tt.says)
			}
			continue
		}
		if err != nil || got.Window != tt.want || got.DocID != id || got.Size != int64(len(tt.want)) ||
			got.Hash != chunk.Hash(tt.want) {
			t.Errorf("%s: ReadText = %+v, %v, want %q", tt.name, got, err, tt.want)
			continue
		}
		if h, err := s.Find(t.Context(), id, nil); err != nil || h.TextHash != got.Hash {
			t.Errorf("%s: Find after reading = %+v, %v, want the hash of the text", tt.name, h, err)
		}
		// Further windows are of the cached text.
		before := w.asked.Load()
		again, err := s.ReadText(t.Context(), id, []string{"ours"}, 4, 5)
		if err != nil || again.Window != tt.want[4:9] || again.Offset != 4 || w.asked.Load() != before {
			t.Errorf("%s: second ReadText = %+v, %v after %d more requests, want %q", tt.name, again, err,
				w.asked.Load()-before, tt.want[4:9])
		}
	}
}

// What the token of one caller opens is not given to another one, also if it is cached.
func TestSourcePassThrough(t *testing.T) {
	w := newWeb(t, map[string]string{"/a": "<p>For Ann.</p>", "/b": "<p>For both.</p>"})
	docs := []document.Document{onTheWeb("a", "finance", w.URL+"/a"), onTheWeb("b", "finance", w.URL+"/b")}
	server := fesstest.New(t, docs,
		fesstest.Options{More: map[string]fesstest.More{"a": {Roles: []string{"Ra"}}, "b": {Roles: []string{"Ra", "Rb"}}},
			Roles: map[string][]string{"ann": {"Ra"}, "bob": {"Rb"}}})
	s := open(t, server.URL, "finance", func(c *fessconfig.Config) {
		c.FessAuth.PassThrough = true
		c.ContentFetch.AllowPrivateNetworkTargets = true
	})
	ann, bob := search.WithToken(t.Context(), "ann"), search.WithToken(t.Context(), "bob")
	a, b := document.IDOf("ours", "a"), document.IDOf("ours", "b")
	if p, err := s.Search(ann, search.Query{Num: 10}); err != nil || p.Total != 2 {
		t.Fatalf("Search of ann = %+v, %v, want both documents", p, err)
	}
	for _, id := range []string{a, b} {
		if _, err := s.ReadText(ann, id, nil, 0, 100); err != nil {
			t.Errorf("ReadText(%s) of ann = %v", id, err)
		}
	}
	if p, err := s.Search(bob, search.Query{Num: 10}); err != nil || p.Total != 1 || p.Hits[0].ID != b {
		t.Errorf("Search of bob = %+v, %v, want one document", p, err)
	}
	_, unknown := s.Find(bob, "never-given", nil)
	_, foundErr := s.Find(bob, a, nil)
	_, readErr := s.ReadText(bob, a, nil, 0, 100)
	for _, err := range []error{foundErr, readErr} {
		if !errors.Is(err, errkind.NotFound) ||
			strings.Replace(err.Error(), a, "never-given", 1) != unknown.Error() {
			t.Errorf("a document of ann for bob = %v, want the error of an unknown one: %v", err, unknown)
		}
	}
	if got, err := s.ReadText(bob, b, nil, 0, 100); err != nil || got.Window != "For both." {
		t.Errorf("ReadText of bob = %+v, %v, want the text", got, err)
	}
	for _, ctx := range []context.Context{t.Context(), search.WithToken(t.Context(), "mallory")} {
		for name, err := range map[string]error{
			"Search":   func() error { _, err := s.Search(ctx, search.Query{Num: 1}); return err }(),
			"Find":     func() error { _, err := s.Find(ctx, b, nil); return err }(),
			"ReadText": func() error { _, err := s.ReadText(ctx, b, nil, 0, 10); return err }(),
			"Suggest":  func() error { _, err := s.Suggest(ctx, search.SuggestQuery{Num: 1}); return err }(),
		} {
			if !errors.Is(err, errkind.Unauthorized) || strings.Contains(err.Error(), "mallory") {
				t.Errorf("%s without a valid token = %v, want kind Unauthorized", name, err)
			}
		}
	}
	if Header(s.config) == nil || Header(fessconfig.New("http://localhost", "x", "")) != nil {
		t.Error("Header is not nil exactly without passThrough")
	}
}

// A server that does not answer as Fess does is an error that names the key and not its
// address, and the context ends every call.
func TestSourceHostile(t *testing.T) {
	id := document.IDOf("ours", "known")
	calls := map[string]func(context.Context, *Source) error{
		"Search": func(ctx context.Context, s *Source) error {
			_, err := s.Search(ctx, search.Query{Text: query.MustParse("alpha"), Num: 10})
			return err
		},
		"Find":     func(ctx context.Context, s *Source) error { _, err := s.Find(ctx, id, nil); return err },
		"ReadText": func(ctx context.Context, s *Source) error { _, err := s.ReadText(ctx, id, nil, 0, 9); return err },
		"Suggest": func(ctx context.Context, s *Source) error {
			_, err := s.Suggest(ctx, search.SuggestQuery{Num: 1})
			return err
		},
		"PopularWords": func(ctx context.Context, s *Source) error {
			_, err := s.PopularWords(ctx, search.WordsQuery{})
			return err
		},
		"Health": func(ctx context.Context, s *Source) error { _, err := s.Health(ctx); return err },
	}
	hangs := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		change func(*fessconfig.Config)
		kind   error
		says   string
	}{
		{"500", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "at 10.0.0.1", 500) }, nil,
			errkind.Unavailable, ""},
		{"HTML", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<h1>Welcome to 10.0.0.1</h1>")
		}, nil, errkind.Unavailable, "(fessBaseUrl)"},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"response":`)
		}, nil, errkind.Unavailable, "(fessBaseUrl)"},
		{"token", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(401)
			fmt.Fprint(w, `{"error_code:":"x"}`)
		}, func(c *fessconfig.Config) { c.FessAuth.AccessToken = "s3cret" }, errkind.Unauthorized,
			"(fessAuth.accessToken)"},
		{"timeout", hangs, func(c *fessconfig.Config) { c.Timeouts.FessRequestTimeoutMs = 1 }, errkind.Timeout, "in time"},
	} {
		server := httptest.NewServer(tt.answer)
		defer server.Close()
		s := open(t, server.URL, "finance", func(c *fessconfig.Config) {
			c.FessAPI = "v1"
			if tt.change != nil {
				tt.change(c)
			}
		})
		s.ids.put(id, "known")
		for name, call := range calls {
			err := call(t.Context(), s)
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) ||
				strings.Contains(err.Error(), "10.0.0.1") || strings.Contains(err.Error(), "127.0.0.1") ||
				strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s: %s = %v, want kind %v with %q", tt.name, name, err, tt.kind, tt.says)
			}
		}
	}

	server := httptest.NewServer(http.HandlerFunc(hangs))
	defer server.Close()
	s := open(t, server.URL, "finance", func(c *fessconfig.Config) { c.Limits.MaxInFlightRequests = 2 })
	s.ids.put(id, "known")
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 3 { // more than may be in progress
		for name, call := range calls {
			group.Go(func() {
				if err := call(ctx, s); !errors.Is(err, context.Canceled) {
					t.Errorf("%s of a server that hangs = %v, want context.Canceled", name, err)
				}
			})
		}
	}
	for len(s.inFlight) < 2 {
		runtime.Gosched()
	}
	cancel()
	group.Wait()
	if n := len(s.inFlight); n != 0 {
		t.Errorf("%d calls are in progress after all", n)
	}
}

// A slow server delays its own calls alone, and no more of them are in progress than
// the configuration permits.
func TestSourceInFlight(t *testing.T) {
	var now, most atomic.Int64
	server := fesstest.New(t, searchtest.Secrets(), fesstest.Options{Delay: func(r *http.Request) {
		for n := now.Add(1); ; {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		for range 100 {
			runtime.Gosched()
		}
		now.Add(-1)
	}})
	s := open(t, server.URL, "finance", func(c *fessconfig.Config) { c.Limits.MaxInFlightRequests = 3 })
	var group sync.WaitGroup
	for range 30 {
		group.Go(func() {
			p, err := s.Search(t.Context(), search.Query{Text: query.MustParse("alpha"), Num: 10})
			if err != nil || p.Total == 0 {
				t.Errorf("Search = %+v, %v, want documents", p, err)
			}
		})
	}
	group.Wait()
	if n := most.Load(); n > 3 {
		t.Errorf("%d requests at a time, want at most 3", n)
	}
}
