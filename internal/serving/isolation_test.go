package serving_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/datasetsearch"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/fessbridge"
	"github.com/knowhow-mcp/knowhow/internal/fessconfig"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
	"github.com/knowhow-mcp/knowhow/internal/searchmcp"
	"github.com/knowhow-mcp/knowhow/internal/serving"
)

// Isolation: a process answers as if what it does not serve did not exist. Each test
// asks two servers of the same sources, of which one is alone and the other has the
// secrets beside them: folders in the same data folder, whose labels are also those of
// served sources and of collections, notes of other collections, another domain of the
// same Fess server, and another folder of datasets. Every answer must be the same.
//
// One thing is not so yet: words of files of a folder that is not served weigh in the
// scores of notes whose collection has the label of that folder.

// mark is in every secret: in titles, texts, paths, labels and descriptions.
const mark = "zzsecret"

// texts are in the words of [searchtest.OperatorQuery].
func texts() (out []string) {
	for i, d := range searchtest.Secrets() {
		if i%2 == 0 {
			out = append(out, d.Title)
		}
	}
	return out
}

// file returns a document of an index.
func file(label, path, title, text string) document.Document {
	return document.Document{ID: document.IDOf(label, path), Label: label, Path: path, FromSource: path[0] != '.',
		SourcePath: path, Title: title, Text: text, URL: "file:///" + label + "/" + path, Lang: "en",
		MIMEType: "text/plain", FileType: "txt", Type: "text", Filename: filepath.Base(path), Size: int64(len(text)),
		Modified: time.Unix(1_700_000_000, 0), Hash: "sha256:" + fmt.Sprintf("%064x", len(text)),
		Chunks: []document.Chunk{{Length: len(text)}}}
}

// folder returns a data folder with the source docs and notes of the collections memory,
// and other if it is not secret. With collide, there are secret folders whose labels are
// those of served collections.
func folder(t *testing.T, secrets, otherIsSecret, collide bool) *datafolder.Folder {
	t.Helper()
	f := &datafolder.Folder{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	if err := f.OpenIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	var docs []document.Document
	for i, text := range texts() {
		docs = append(docs, file("docs", fmt.Sprintf("%d.txt", i), text, text+" in a folder"),
			file("memory", fmt.Sprintf(".notes/m%d", i), text, text+" in a note"))
		if !otherIsSecret {
			docs = append(docs, file("other", fmt.Sprintf(".notes/o%d", i), text, text+" elsewhere"))
		}
	}
	sources := []string{"docs"}
	if secrets {
		sources = append(sources, "finance", "kb")
		if collide {
			sources = append(sources, "memory", "hr", "datasets")
		}
		if collide || otherIsSecret {
			sources = append(sources, "other")
		}
		for i, text := range texts() {
			for _, label := range sources[1:] {
				docs = append(docs, file(label, fmt.Sprintf("%s/%d.txt", mark, i), text+" "+mark, text+" "+mark+" alpha word"))
			}
			// The text of a document that is served.
			docs = append(docs, file("finance", fmt.Sprintf("%s/copy%d.txt", mark, i), text, text+" in a folder"))
			if otherIsSecret {
				docs = append(docs, file("other", fmt.Sprintf(".notes/%s%d", mark, i), text+" "+mark, text+" "+mark+" note"),
					file("other", fmt.Sprintf(".notes/%scopy%d", mark, i), text, text+" in a note"))
			}
		}
	}
	for _, label := range sources {
		src := document.Source{Label: label, Path: "/srv/" + label}
		if label != "docs" {
			src.Path, src.Description = "/srv/"+mark+"/"+label, mark
		}
		if err := f.Index.AddSource(t.Context(), src); err != nil {
			t.Fatal(err)
		}
	}
	var changes []document.Change
	for i := range docs {
		changes = append(changes, document.Change{Put: &docs[i]})
	}
	if err := f.Index.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	return f
}

// fess returns a source of the domain hr of a fake server.
func fess(t *testing.T, secrets bool) search.Service {
	var docs []document.Document
	add := func(id, label, title, text string) {
		d := file(label, id, title, text)
		d.ID, d.URL = id, "https://intranet.example.com/"+id
		docs = append(docs, d)
	}
	for i, text := range texts() {
		add(fmt.Sprintf("hr%d", i), "hr", text, text+" on a server")
	}
	for i, text := range texts() {
		if secrets {
			add(fmt.Sprintf("%s%d", mark, i), "finance", text+" "+mark, text+" "+mark)
			add(fmt.Sprintf("%scopy%d", mark, i), "finance", text, text+" on a server")
		}
	}
	server := fesstest.New(t, docs, fesstest.Options{SendContent: true})
	s, err := fessbridge.NewSource(fessbridge.SourceOptions{Config: fessconfig.New(server.URL, "hr", ""), Label: "hr"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// datasets returns the service of a folder of datasets.
func datasets(t *testing.T, secrets bool) search.Service {
	root := t.TempDir()
	write := func(dir, suffix string) {
		files := filepath.Join(root, "files", dir)
		if err := os.MkdirAll(files, 0o777); err != nil {
			t.Fatal(err)
		}
		for i, text := range texts() {
			name := filepath.Join(files, fmt.Sprintf("%d.md", i))
			if err := os.WriteFile(name, []byte("# "+text+suffix+"\n\n"+text+" in a dataset"+suffix+"\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := dataset.Create(t.Context(), dataset.CreateOptions{Dir: filepath.Join(root, dir), ID: dir,
			Description: "d", Sources: []string{files}}); err != nil {
			t.Fatal(err)
		}
	}
	write("sets", "")
	if secrets {
		write(mark, " "+mark)
	}
	r, err := dataset.New(dataset.Options{Dir: filepath.Join(root, "sets"), Written: true})
	if err == nil {
		err = r.Scan(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	s := datasetsearch.New(r, "datasets", nil)
	t.Cleanup(s.Close)
	return s
}

// served are the sources of the servers.
var served = []document.Source{{Label: "docs", Path: "/srv/docs"}, {Label: "hr", Path: "fess:/srv/hr.json"},
	{Label: "datasets", Path: "datasets:/srv/sets"}}

// A site is a server.
type site struct {
	handler http.Handler
	tools   map[string]*mcptest.Session // by path
}

// host is the address of every site.
const host = "http://127.0.0.1:7411"

// newSite serves the sources with the notes at a path.
func newSite(t *testing.T, secrets, collide bool, notes string) *site {
	t.Helper()
	f := folder(t, secrets, notes != "kb", collide)
	s := serving.New(serving.Options{Folder: f, Sources: append(served[:3:3], document.Source{Label: "kb", Path: notes}),
		Asked:         map[string]search.Service{"hr": fess(t, secrets), "datasets": datasets(t, secrets)},
		SourceTimeout: time.Minute, Groups: []searchmcp.Group{searchmcp.SearchTools, searchmcp.FessTools},
		Version: "devel", Log: slog.New(slog.DiscardHandler)})
	all := &site{handler: httpguard.New(httpguard.Options{Routes: s.Routes()}), tools: map[string]*mcptest.Session{}}
	server := httptest.NewServer(all.handler)
	t.Cleanup(server.Close)
	for _, path := range []string{"/mcp", "/mcp/docs", "/mcp/hr", "/mcp/datasets", "/mcp/kb"} {
		c := mcptest.HTTP(t, server.URL+path, nil)
		c.Initialize("2025-03-26")
		all.tools[path] = c
	}
	return all
}

// get returns the status and the body of an answer.
func (s *site) get(t *testing.T, path string) string {
	t.Helper()
	return s.send(t, httptest.NewRequest(http.MethodGet, host+path, nil))
}

func (s *site) post(t *testing.T, path string, body any) string {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, host+path, strings.NewReader(string(data)))
	r.Header.Set("Content-Type", "application/json")
	return s.send(t, r)
}

func (s *site) send(t *testing.T, r *http.Request) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return fmt.Sprint(w.Code, " ", w.Body.String())
}

// tool returns the result of a tool or its error.
func (s *site) tool(path, name string, args any) string {
	text, err := s.tools[path].Tool(name, args)
	if err != nil {
		return "error: " + err.Error()
	}
	return text
}

// varying matches what differs from call to call or with the number of a document.
var varying = regexp.MustCompile(
	`"(exec_time|query_time|created_at|updated_at|query_id|requested_time|id|document_id|chunk_id)":("[^"]*"|[\d.]+)|"(timestamp|created)":"[^"]*"|"error_code:":"[^"]*"`)

// A pair are two servers of the same sources.
type pair struct {
	alone, beside *site
	collide       bool
	found         int // answers with documents
	asked         int
}

func newPair(t *testing.T, notes string, collide bool) *pair {
	return &pair{alone: newSite(t, false, collide, notes), beside: newSite(t, true, collide, notes), collide: collide}
}

// contents matches what an answer contains, without scores and order.
var contents = regexp.MustCompile(`"(doc_id|total|record_count|count)":("[^"]*"|\d+)|"value":"[^"]*"`)

// unordered returns the contents of an answer, sorted.
func unordered(answer string) string {
	list := contents.FindAllString(answer, -1)
	slices.Sort(list)
	return answer[:min(3, len(answer))] + strings.Join(list, " ")
}

// check checks that both servers answer a question in the same way.
func (p *pair) check(t *testing.T, what string, ask func(*site) string) string {
	t.Helper()
	got := varying.ReplaceAllString(ask(p.beside), "")
	want := got
	if p.asked++; p.asked < 500 || p.asked%5 == 0 { // both take twice the time
		want = varying.ReplaceAllString(ask(p.alone), "")
	}
	if strings.Contains(what, "popular") { // equally popular words are in any order
		want = ""
	}
	if p.collide { // the words of the files of a label weigh in the scores of the notes with that label
		want, got = unordered(want), unordered(got)+strings.Repeat(mark, strings.Count(got, mark))
	}
	if want != "" && got != want || strings.Contains(got, mark) {
		t.Fatalf("%s: (-alone +beside secrets)\n%s", what, cmp.Diff(want, got))
	}
	if strings.Contains(got, `"doc_id":`) || p.collide || strings.Contains(got, "alpha in a") {
		p.found++
	}
	return got
}

// tools are the search tools by the paths of their servers.
var tools = [][2]string{{"/mcp", "all"}, {"/mcp/docs", "docs"}, {"/mcp/hr", "hr"}, {"/mcp/datasets", "datasets"},
	{"/mcp/kb", "kb_docs"}}

// queries returns how many queries a test of isolation asks.
func queries() int {
	switch {
	case testing.Short():
		return 200
	case os.Getenv("CI") == "true":
		return 5_000
	}
	return 1_000
}

func TestIsolationOfTools(t *testing.T) {
	t.Parallel()
	strict, collide := newPair(t, "kb:memory", false), newPair(t, "kb:memory", true)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range queries() {
		p := strict
		if i%4 == 3 {
			p = collide
		}
		at := tools[i%len(tools)]
		args := map[string]any{"query": searchtest.OperatorQuery(random), "pageSize": 100}
		switch i / len(tools) % 4 {
		case 0:
			args["facets"] = map[string]any{"field": []string{"label", "filename"}, "query": []string{"label:finance", "zz*", "alpha"}}
		case 1:
			args["maxChars"] = 0
		}
		p.check(t, fmt.Sprint(at[0], " ", args), func(s *site) string { return s.tool(at[0], at[1]+"_search", args) })
	}
	strict.checkTeeth(t)
}

// checkTeeth checks that enough questions were answered with documents.
func (p *pair) checkTeeth(t *testing.T) {
	t.Helper()
	t.Logf("%d of %d answers have documents", p.found, p.asked)
	if p.found < p.asked/5 {
		t.Errorf("%d of %d answers have documents: the test has no teeth", p.found, p.asked)
	}
}

func TestIsolationOfAPIs(t *testing.T) {
	t.Parallel()
	p, whole := newPair(t, "kb:memory", false), newPair(t, "kb", false)
	collide := newPair(t, "kb", true)
	random := rand.New(rand.NewPCG(2, 2))
	for i := range queries() {
		text := searchtest.OperatorQuery(random)
		whole := whole
		if i%12 > 8 {
			whole = collide
		}
		switch i % 4 {
		case 0, 1:
			q := url.Values{"q": {text}, "num": {"100"}}
			if i%8 < 2 {
				q["facet.field"], q["facet.query"] = []string{"label"}, []string{"label:finance", "zz*"}
			}
			if i%12 < 2 {
				q["fields.label"] = []string{[]string{"finance", "memory", "other", "hr", "kb"}[i/12%5]}
			}
			path := "/fess/api/v1/documents?" + q.Encode()
			p.check(t, path, func(s *site) string { return s.get(t, path) })
		case 2:
			body := map[string]any{"query": text, "top": 100}
			if i%8 == 2 {
				body["tags"] = []string{"collection:" + []string{"finance", "memory", "hr", "kb", "other"}[i/8%5]}
			}
			whole.check(t, fmt.Sprint("/kb ", body), func(s *site) string { return s.post(t, "/kb/api/v1/search", body) })
		case 3:
			args := map[string]any{"query": text, "pageSize": 100}
			whole.check(t, fmt.Sprint("/mcp/kb ", args), func(s *site) string { return s.tool("/mcp/kb", "kb_docs_search", args) })
		}
	}
	p.checkTeeth(t)
	whole.checkTeeth(t)
}

// What is not a query leads nowhere else either.
func TestIsolationOfTheRest(t *testing.T) {
	t.Parallel()
	for i, notes := range []string{"kb", "kb:memory", "kb", "kb:memory"} {
		p := newPair(t, notes, i > 1)
		if got := p.alone.get(t, "/console/status"); !strings.Contains(got, `"datasets":[{"id":"sets"`) {
			t.Errorf("the status has no datasets: %s", got)
		}
		for _, path := range []string{"/", "/console/status", "/console/status?left-out=finance", "/console/status?leftOut=finance",
			"/console/left-out?source=finance", "/console/left-out?source=docs&q=zz", "/console/left-out?source=memory",
			"/console/similar?id=" + document.IDOf("docs", "0.txt"), "/console/file?id=" + document.IDOf("docs", "0.txt"), "/fess/api/v1/labels",
			"/fess/api/v1/popular-words", "/fess/api/v1/suggest-words?q=zz&num=100", "/fess/api/v1/suggest-words?q=al&num=100",
			"/fess/api/v1/suggest-words?q=a&num=100&fields.label=finance", "/fess/api/v1/popular-words?label=finance",
			"/fess/api/v2/labels", "/fess/api/v2/popular-words", "/fess/api/v2/ui/config", "/mcp/finance", "/mcp/memory",
			"/mcp/other", "/mcp/../mcp/finance"} {
			p.check(t, path, func(s *site) string { return s.get(t, path) })
		}
		if notes == "kb" {
			for _, path := range []string{"/kb/api/v1/status", "/kb/api/v1/documents?limit=1000",
				"/kb/api/v1/documents?tag=collection:finance", "/kb/api/v1/documents?tag=collection:hr",
				"/kb/api/v1/documents?source_path=" + mark + "/0.txt", "/kb/api/v1/jobs"} {
				p.check(t, path, func(s *site) string { return s.get(t, path) })
			}
			for number := range 200 {
				if got := p.beside.get(t, fmt.Sprint("/kb/api/v1/documents/", number)); strings.Contains(got, mark) {
					t.Errorf("/kb/api/v1/documents/%d = %s", number, got)
				}
			}
		}
		for _, at := range tools {
			for _, method := range []string{"tools/list", "resources/list", "resources/templates/list"} {
				p.check(t, at[0]+" "+method, func(s *site) string {
					m := s.tools[at[0]].Call(method, nil)
					return string(m.Result)
				})
			}
			for _, tool := range []struct {
				name string
				args map[string]any
			}{
				{"suggest", map[string]any{"prefix": "zz"}}, {"suggest", map[string]any{"prefix": "al"}},
				{"popular_words", map[string]any{}}, {"list_labels", map[string]any{}}, {"health", map[string]any{}},
			} {
				p.check(t, fmt.Sprint(at, tool), func(s *site) string { return s.tool(at[0], at[1]+"_"+tool.name, tool.args) })
			}
			p.checkIDs(t, at[0], at[1])
		}
	}
}

// checkIDs checks that the tools do not read documents by ids and paths of others.
func (p *pair) checkIDs(t *testing.T, path, domain string) {
	t.Helper()
	var ids []string
	for i := range 2 {
		for _, label := range []string{"finance", "memory", "hr", "kb", "datasets", "other"} {
			ids = append(ids, document.IDOf(label, fmt.Sprintf("%s/%d.txt", mark, i)))
		}
		ids = append(ids, document.IDOf("hr", fmt.Sprint(mark, i)), fmt.Sprint(mark, i),
			document.IDOf("datasets", fmt.Sprintf("%s/%d.md", mark, i)))
		ids = append(ids, document.IDOf("finance", fmt.Sprintf("%s/copy%d.txt", mark, i)),
			document.IDOf("other", fmt.Sprintf(".notes/%s%d", mark, i)))
	}
	for _, id := range ids {
		for _, tool := range []string{"get_document", "read_content"} {
			got := p.beside.tool(path, domain+"_"+tool, map[string]any{"docId": id})
			if !strings.HasPrefix(got, "error: ") || strings.Contains(got, " alpha word") {
				t.Errorf("%s %s %s = %s, want an error", path, tool, id, got)
			}
		}
		m := p.beside.tools[path].Call("resources/read", map[string]any{"uri": "fess://" + domain + "/doc/" + id})
		if m.Error == nil {
			t.Errorf("%s resources/read %s = %s, want an error", path, id, m.Raw)
		}
	}
	for _, name := range []string{mark + "/0.txt", "finance/" + mark + "/0.txt", "/srv/" + mark + "/finance/" + mark + "/0.txt"} {
		for _, tool := range []string{"get_document", "read_content"} {
			if got := p.beside.tool(path, domain+"_"+tool, map[string]any{"path": name}); !strings.HasPrefix(got, "error: ") {
				t.Errorf("%s %s %s = %s, want an error", path, tool, name, got)
			}
		}
	}
}
