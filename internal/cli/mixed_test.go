package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/knowhow-mcp/knowhow/internal/cli"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
)

// Moods of a moodyFess.
const (
	healthy int32 = iota
	failing       // every answer is 500
	hanging       // no answer before the client gives up
)

// A moodyFess is a fake Fess server whose mood changes.
type moodyFess struct {
	*httptest.Server
	mood atomic.Int32
}

func newMoodyFess(t *testing.T, docs []document.Document) *moodyFess {
	f := &moodyFess{}
	h := fesstest.NewHandler(docs, fesstest.Options{SendContent: true})
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch f.mood.Load() {
		case failing:
			http.Error(w, "out of order", http.StatusInternalServerError)
		case hanging:
			<-r.Context().Done()
		default:
			h.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(f.stop)
	return f
}

// stop ends the server. It may be called twice.
func (f *moodyFess) stop() {
	f.CloseClientConnections()
	f.Close()
}

// A mixture is one source of each kind, with documents that have the word pears. Each
// kind has a document in its own words, and one whose text two other kinds have, too.
type mixture struct {
	dir  string
	fess *moodyFess
}

// The text that a folder, a dataset and Fess have.
const shared = "Pears are stored in the cellar from October until the winter ends."

// newMixture makes the sources. The labels are docs, hr, datasets and kb.
func newMixture(t *testing.T) *mixture {
	t.Helper()
	m := &mixture{dir: t.TempDir()}
	m.fess = newMoodyFess(t, []document.Document{
		fessDocument("hr1", "hr", "Holidays", "Holidays for those who pick pears are in winter."),
		fessDocument("hr2", "hr", "Cellar", shared),
		fessDocument("pay1", "finance", "Salaries", "Pears cost more than the salaries of finance."),
	})
	m.write(t, "docs/orchard.md", "# Orchard\n\nThe orchard has rows of pears that are old.\n")
	m.write(t, "docs/cellar.md", shared+"\n")
	m.write(t, "hr.json", fmt.Sprintf(
		`{"fessBaseUrl": %q, "domain": {"id": "hr", "name": "People", "labelFilter": "hr", "description": "About people"}}`,
		m.fess.URL))
	m.write(t, "fruit/recipes.md", "# Recipes\n\nA cake needs three pears and some butter.\n")
	m.write(t, "fruit/cellar.md", shared+"\n")
	m.run(t, "datasets", "create", "--id", "fruit", "--source", m.path("fruit"), "--datasets", m.path("sets"),
		"--embedder", "none")
	m.run(t, "note", "add", "--collection", "memory", "--title", "Meeting", "Customers asked for green pears today.")
	m.run(t, "note", "add", "--title", "Plain", "A plain note about pears.")
	return m
}

// fessDocument returns a document of a fake Fess server.
func fessDocument(id, label, title, text string) document.Document {
	return document.Document{ID: id, Label: label, Path: id + ".txt", URL: "https://intranet.example.com/" + id,
		Title: title, Text: text, Lang: "en", MIMEType: "text/plain", FileType: "txt", Filename: id + ".txt",
		Host: "intranet.example.com", Modified: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Size: int64(len(text))}
}

func (m *mixture) path(name string) string { return filepath.Join(m.dir, name) }

// write writes a file.
func (m *mixture) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.path(name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// sources returns the operands of serve for all sources.
func (m *mixture) sources() []string {
	return []string{m.path("docs"), "fess:" + m.path("hr.json"), "datasets:" + m.path("sets"), "kb"}
}

// env returns the environment of the commands.
func (m *mixture) env() cli.Env {
	variables := map[string]string{"HOME": m.dir, "KNOWHOW_DATA": m.path("data"), "KNOWHOW_EMBEDDER": "none"}
	return cli.Env{Program: "knowhow", Lookup: func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}}
}

// run runs a command that must succeed, and returns what it prints.
func (m *mixture) run(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if status := cli.Main(t.Context(), args, m.env(), strings.NewReader(""), &out, &errs); status != 0 {
		t.Fatalf("%q ended with status %d: %s%s", args, status, &out, &errs)
	}
	return out.String()
}

// serve serves over HTTP until the test ends, and returns the URL http://HOST:PORT.
func (m *mixture) serve(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, done := newTranscript(), make(chan struct{})
	go func() {
		defer close(done)
		args := append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)
		if status := cli.Main(ctx, args, m.env(), strings.NewReader(""), out, out); status != 0 {
			t.Errorf("%q ended with status %d: %s", args, status, out)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	if !out.await("listening on http://", done) || !out.await("/mcp\n", done) {
		t.Fatalf("%q is not ready: %s", args, out)
	}
	return regexp.MustCompile(`http://[\d.:]+`).FindString(out.String())
}

// connect returns a session with an MCP server over HTTP.
func connect(t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	return session(t, &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true})
}

func session(t *testing.T, over mcp.Transport) *mcp.ClientSession {
	t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), over, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// stdio returns a session with knowhow mcp on standard input and output.
func (m *mixture) stdio(t *testing.T, args ...string) *mcp.ClientSession {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	errs, done := newTranscript(), make(chan struct{})
	go func() {
		defer close(done)
		defer out.Close()
		args := append([]string{"mcp"}, args...)
		if status := cli.Main(context.Background(), args, m.env(), in, out, errs); status != 0 {
			t.Errorf("%q ended with status %d: %s", args, status, errs)
		}
	}()
	t.Cleanup(func() {
		toServer.Close()
		fromServer.Close()
		<-done
	})
	return session(t, &mcp.IOTransport{Reader: fromServer, Writer: toServer})
}

// A hit is a hit of the search tool.
type hit struct {
	DocID    string `json:"doc_id"`
	Title    string
	Source   string
	Path     string
	Also     []string
	Passages []struct{ Text string }
}

// A found is a result of the search tool.
type found struct {
	Total     int
	Results   []hit
	NextStart int
	Partial   bool
	Failed    []struct{ Source, Message string }
	Hint      string
	JobID     string
	Facets    json.RawMessage
}

// sources returns the sources of the hits, sorted, each once.
func (f found) sources() []string {
	var out []string
	for _, h := range f.Results {
		out = append(out, h.Source)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// call calls a tool, and returns the text of its result, of an error with its metadata.
func call(t *testing.T, s *mcp.ClientSession, tool string, arguments map[string]any) (text string, failed bool) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err.Error(), true
	}
	if len(res.Content) != 1 {
		t.Fatalf("%s %v = %d blocks, want one", tool, arguments, len(res.Content))
	}
	text = res.Content[0].(*mcp.TextContent).Text
	if res.IsError {
		meta, err := json.Marshal(res.Meta)
		if err != nil {
			t.Fatal(err)
		}
		text += string(meta)
	}
	return text, res.IsError
}

// callInto calls a tool that must succeed, and decodes its result.
func callInto(t *testing.T, s *mcp.ClientSession, tool string, arguments map[string]any, into any) {
	t.Helper()
	text, failed := call(t, s, tool, arguments)
	if failed {
		t.Fatalf("%s %v failed: %s", tool, arguments, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s %v = %s: %v", tool, arguments, text, err)
	}
}

// search calls a search tool.
func search(t *testing.T, s *mcp.ClientSession, tool string, arguments map[string]any) (f found) {
	t.Helper()
	callInto(t, s, tool, arguments, &f)
	if f.JobID != "" {
		t.Errorf("%s %v is a job, want a result", tool, arguments)
	}
	return f
}

// indexed waits until a search finds so many documents. What serve indexes shows in its
// answers alone.
func indexed(t *testing.T, s *mcp.ClientSession, tool, query string, total int) found {
	t.Helper()
	limit := time.After(bridgeTime)
	for {
		f := search(t, s, tool, map[string]any{"query": query, "pageSize": 20})
		if f.Total == total {
			return f
		}
		select {
		case <-limit:
			t.Fatalf("%s %s finds %+v, want %d documents", tool, query, f, total)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// all is how many documents of a mixture have the word pears.
const all = 8

// One search finds what every kind of source has, over every transport.
func TestMixedSearch(t *testing.T) {
	t.Parallel()
	m := newMixture(t)
	url := m.serve(t, m.sources()...)
	for name, s := range map[string]*mcp.ClientSession{
		"over HTTP":  connect(t, url+"/mcp"),
		"over stdio": m.stdio(t, m.sources()...),
	} {
		t.Run(name, func(t *testing.T) {
			f := indexed(t, s, "all_search", "pears", all)
			if want := []string{"datasets", "docs", "hr", "kb"}; !slices.Equal(f.sources(), want) || f.Partial || f.Failed != nil {
				t.Errorf("all_search finds documents of %q (%+v), want those of %q", f.sources(), f, want)
			}
			if len(f.Results) != all-2 {
				t.Errorf("all_search has %d hits, want %d: one text is in three sources", len(f.Results), all-2)
			}
			for _, h := range f.Results {
				wantAlso := 0
				if len(h.Passages) > 0 && strings.Contains(h.Passages[0].Text, "cellar") {
					wantAlso = 2
				}
				if len(h.Also) != wantAlso || len(h.Passages) == 0 || !strings.Contains(strings.ToLower(h.Passages[0].Text), "pears") {
					t.Errorf("hit %+v, want a passage with pears, and %d in also", h, wantAlso)
				}
				checkReadable(t, s, h)
			}
			checkPaging(t, s, len(f.Results))
		})
	}
	for label, want := range map[string]struct {
		tool   string
		titles []string
	}{
		"docs":     {"docs_search", []string{"Orchard", "cellar.md"}},
		"hr":       {"hr_search", []string{"Cellar", "Holidays"}},
		"datasets": {"datasets_search", []string{"Recipes", "cellar.md"}},
		"kb":       {"kb_docs_search", []string{"Meeting", "Plain"}},
	} {
		f := search(t, connect(t, url+"/mcp/"+label), want.tool, map[string]any{"query": "pears"})
		var titles []string
		for _, h := range f.Results {
			titles = append(titles, h.Title)
		}
		slices.Sort(titles)
		if !slices.Equal(titles, want.titles) || f.Total != 2 {
			t.Errorf("/mcp/%s finds %q of %d, want %q", label, titles, f.Total, want.titles)
		}
	}
	if _, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: url + "/mcp/finance", DisableStandaloneSSE: true}, nil); err == nil {
		t.Error("/mcp/finance answers, want no such source")
	}
}

// checkReadable checks that the tools that read accept the id of a hit.
func checkReadable(t *testing.T, s *mcp.ClientSession, h hit) {
	t.Helper()
	var d struct {
		DocID string `json:"doc_id"`
		Title string
	}
	callInto(t, s, "all_get_document", map[string]any{"docId": h.DocID}, &d)
	if d.DocID != h.DocID || d.Title != h.Title {
		t.Errorf("all_get_document %s (%s) = %+v", h.DocID, h.Title, d)
	}
	var r struct {
		DocID string `json:"doc_id"`
		Text  string
	}
	callInto(t, s, "all_read_content", map[string]any{"docId": h.DocID}, &r)
	if r.DocID != h.DocID || !strings.Contains(strings.ToLower(r.Text), "pears") {
		t.Errorf("all_read_content %s (%s) = %+v", h.DocID, h.Title, r)
	}
}

// checkPaging checks that pages of two hits contain every one of so many hits once.
func checkPaging(t *testing.T, s *mcp.ClientSession, hits int) {
	t.Helper()
	seen := map[string]bool{}
	for start := 0; start < hits; start += 2 {
		f := search(t, s, "all_search", map[string]any{"query": "pears", "start": start, "pageSize": 2})
		if f.Total != all {
			t.Errorf("total from %d = %d, want %d", start, f.Total, all)
		}
		for _, h := range f.Results {
			if seen[h.DocID] {
				t.Errorf("%s from %d was on a page before", h.Title, start)
			}
			seen[h.DocID] = true
		}
	}
	if len(seen) != hits {
		t.Errorf("the pages have %d hits, want %d", len(seen), hits)
	}
	f := search(t, s, "all_search", map[string]any{"query": "pears", "start": hits, "pageSize": 2})
	if len(f.Results) != 0 {
		t.Errorf("%d hits after the last one", len(f.Results))
	}
}

// The two tools of --tools openai find and read documents of every kind.
func TestMixedConnector(t *testing.T) {
	t.Parallel()
	m := newMixture(t)
	s := m.stdio(t, append([]string{"--tools", "openai"}, m.sources()...)...)
	type result struct{ ID, Title, URL string }
	var r struct{ Results []result }
	limit := time.After(bridgeTime)
	for len(r.Results) < all-2 {
		callInto(t, s, "search", map[string]any{"query": "pears"}, &r)
		select {
		case <-limit:
			t.Fatalf("search finds %+v, want %d documents", r.Results, all-2)
		case <-time.After(20 * time.Millisecond):
		}
	}
	sources := map[string]bool{}
	for _, x := range r.Results {
		var d struct {
			ID, Title, Text string
			Metadata        struct{ Source string }
		}
		callInto(t, s, "fetch", map[string]any{"id": x.ID}, &d)
		if d.ID != x.ID || d.Title != x.Title || !strings.Contains(strings.ToLower(d.Text), "pears") {
			t.Errorf("fetch %+v = %+v", x, d)
		}
		sources[d.Metadata.Source] = true
	}
	if len(sources) != 4 {
		t.Errorf("the documents are of %v, want four sources", sources)
	}
}

// The labels of sources that are asked can be chosen, and have numbers if others have
// them.
func TestMixedLabels(t *testing.T) {
	t.Parallel()
	m := newMixture(t)
	m.write(t, "other/hr/a.md", "pears")
	s := m.stdio(t, m.path("other/hr"), "--label", "staff", "--description", "All about staff", "fess:"+m.path("hr.json"),
		"--label", "Fruit.Sets", "datasets:"+m.path("sets"), "--label", "notes", "kb:memory")
	f := indexed(t, s, "all_search", "pears", 6)
	if want := []string{"Fruit.Sets", "hr", "notes", "staff"}; !slices.Equal(f.sources(), want) {
		t.Errorf("all_search finds documents of %q, want those of %q", f.sources(), want)
	}
	if got := s.InitializeResult().Instructions; !strings.Contains(got, "All about staff") {
		t.Errorf("instructions = %q, want the description of the source", got)
	}
	s = m.stdio(t, m.path("other/hr"), "fess:"+m.path("hr.json"))
	f = indexed(t, s, "all_search", "pears", 3)
	if want := []string{"hr", "hr-2"}; !slices.Equal(f.sources(), want) {
		t.Errorf("all_search finds documents of %q, want those of %q", f.sources(), want)
	}
}

// A source that fails, hangs or is gone is named, and changes nothing of the others.
func TestMixedFailures(t *testing.T) {
	t.Parallel()
	m := newMixture(t)
	const limit = "8s"
	url := m.serve(t, append([]string{"--source-timeout", limit}, m.sources()...)...)
	without := m.serve(t, m.path("docs"), "datasets:"+m.path("sets"), "kb")
	s := connect(t, url+"/mcp")
	indexed(t, s, "all_search", "pears", all)
	want := indexed(t, connect(t, without+"/mcp"), "all_search", "pears", all-2)
	for _, tt := range []struct {
		name    string
		begin   func()
		message string
		again   bool // whether the same search may succeed later
	}{
		{"failing", func() { m.fess.mood.Store(failing) }, "500", false},
		{"hanging", func() { m.fess.mood.Store(hanging) }, "no answer within " + limit, true},
		{"stopped", m.fess.stop, "cannot be reached", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.begin()
			begun := time.Now()
			f := search(t, s, "all_search", map[string]any{"query": "pears", "pageSize": 20})
			if d := time.Since(begun); d > time.Minute {
				t.Errorf("the search took %v", d)
			}
			if !f.Partial || len(f.Failed) != 1 || f.Failed[0].Source != "hr" || !strings.Contains(f.Failed[0].Message, tt.message) ||
				!strings.Contains(f.Hint, "hr") {
				t.Errorf("partial %v, failed %+v, hint %q, want the source hr with %q", f.Partial, f.Failed, f.Hint, tt.message)
			}
			if f.Total != want.Total || !cmp.Equal(want.Results, f.Results) {
				t.Errorf("total %d, want %d; hits (-without the source +with it)\n%s", f.Total, want.Total,
					cmp.Diff(want.Results, f.Results))
			}
			text, failed := call(t, connect(t, url+"/mcp/hr"), "hr_search", map[string]any{"query": "pears"})
			if !failed || !strings.Contains(text, fmt.Sprintf(`"retryable":%v`, tt.again)) {
				t.Errorf("/mcp/hr answers %s, want an error, retryable: %v", text, tt.again)
			}
			for _, h := range f.Results {
				checkReadable(t, s, h)
			}
		})
	}
}

// If all sources fail, so does the search.
func TestMixedAllFail(t *testing.T) {
	t.Parallel()
	m := newMixture(t)
	other := newMoodyFess(t, nil)
	m.write(t, "pay.json", fmt.Sprintf(
		`{"fessBaseUrl": %q, "domain": {"id": "pay", "name": "Pay", "labelFilter": "pay"}}`, other.URL))
	s := m.stdio(t, "--source-timeout", "3s", "fess:"+m.path("hr.json"), "fess:"+m.path("pay.json"))
	if f := search(t, s, "all_search", map[string]any{"query": "pears"}); f.Total != 2 {
		t.Errorf("all_search finds %+v, want two documents", f)
	}
	other.mood.Store(hanging)
	m.fess.mood.Store(failing) // which alone is not retryable
	text, failed := call(t, s, "all_search", map[string]any{"query": "pears"})
	if !failed || !strings.Contains(text, `"retryable":true`) || !strings.Contains(text, "hr: ") || !strings.Contains(text, "pay: ") {
		t.Errorf("all_search = %s, want an error that may be retried and names both sources", text)
	}
	m.fess.mood.Store(healthy)
	if f := search(t, s, "all_search", map[string]any{"query": "pears"}); f.Total != 2 || len(f.Failed) != 1 {
		t.Errorf("all_search finds %+v, want two documents and one failure", f)
	}
}

// A dataset that cannot be read is named, and does not hide the others of its folder.
func TestMixedBadDataset(t *testing.T) {
	t.Parallel()
	m := newMixture(t)
	m.write(t, "sets/broken/manifest.json",
		`{"id":"broken","name":"Broken","description":"d","index":"index","metadata":"metadata.json"}`)
	m.write(t, "sets/broken/metadata.json", `[{"id":"x","content":"pears of a broken dataset"}]`)
	s := m.stdio(t, m.sources()...)
	if f := indexed(t, s, "all_search", "pears", all); len(f.Failed) != 1 ||
		f.Failed[0].Source != "datasets" || len(f.sources()) != 4 {
		t.Errorf("all_search finds documents of %q, failed %+v, want four sources and the bad dataset",
			f.sources(), f.Failed)
	}
}
