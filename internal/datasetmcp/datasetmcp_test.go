package datasetmcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/datasetmcp"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type args = map[string]any

// newServer returns a server over datasets.
func newServer(o datasetmcp.Options) *mcpserver.Server {
	s := mcpserver.New(mcpserver.Options{Name: "knowhow-datasets", Version: "1",
		Instructions: datasetmcp.Instructions(o.Names)})
	datasetmcp.Register(s, o)
	return s
}

// connect returns a session with a server over datasets, after the handshake.
func connect(t *testing.T, revision string, o datasetmcp.Options) *mcptest.Session {
	t.Helper()
	s := newServer(o)
	c := mcptest.Stdio(t, func(ctx context.Context, in io.Reader,
		out io.Writer) error {
		return s.ServeStdio(ctx, in, out)
	})
	c.Initialize(revision)
	return c
}

// datasets returns a registry with MCPower's sample, a dataset without an index
// and one with a bad manifest.
func datasets(t *testing.T) *dataset.Registry {
	t.Helper()
	root := t.TempDir()
	sample := filepath.Join("..", "dataset", "testdata", "mcpower-sample")
	if err := os.CopyFS(filepath.Join(root, "sample"), os.DirFS(sample)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"broken/manifest.json": `{"id":"no-index","name":"No index","description":"The index is missing",` +
			`"index":"index","metadata":"metadata.json"}`,
		"broken/metadata.json":  `[]`,
		"invalid/manifest.json": `{"id":"Invalid"}`,
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := dataset.New(dataset.Options{Dir: root})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// varying matches what differs between two runs.
var varying = regexp.MustCompile(`(manifestPath\\?": ?\\?")[^"]*?([a-z]+)(/manifest.json)|(failedAt\\?": ` +
	`?\\?")[^"\\]*|(durationMs\\?": ?)\d+`)

// TestTranscripts compares everything that clients see with a golden file.
func TestTranscripts(t *testing.T) {
	got := &txtar.Archive{Comment: []byte("What clients see. Written by go test -update.\n")}
	r := datasets(t)
	old := connect(t, "2025-06-18", datasetmcp.Options{Datasets: r})
	latest := connect(t, "2025-11-25", datasetmcp.Options{Datasets: r})
	underscore := connect(t, "2025-11-25", datasetmcp.Options{Datasets: r, Names: datasetmcp.Underscore})
	add := func(name string, m mcptest.Message) {
		raw := m.Result
		if m.Error != nil {
			b, err := json.Marshal(m.Error)
			if err != nil {
				t.Fatal(err)
			}
			raw = b
		}
		var out bytes.Buffer
		if err := json.Indent(&out, raw, "", "  "); err != nil {
			t.Fatal(err)
		}
		text := varying.ReplaceAllString(out.String(), "${1}${2}${3}${4}${5}")
		got.Files = append(got.Files, txtar.File{Name: name, Data: []byte(text + "\n")})
	}
	call := func(c *mcptest.Session, tool string, a args) mcptest.Message {
		return c.Call("tools/call", args{"name": tool, "arguments": a})
	}
	add("tools/list", latest.Call("tools/list", nil))
	add("tools/list, underscore", underscore.Call("tools/list", nil))
	add("listDatasets", call(latest, "knowledge.listDatasets", nil))
	add("knowledge_list_datasets", call(underscore, "knowledge_list_datasets", args{}))
	add("search", call(latest, "knowledge.search", args{"dataset": "sample-docs",
		"query": "How do I configure datasets?", "topK": 2}))
	add("knowledge_search without hits", call(underscore, "knowledge_search",
		args{"dataset": "sample-docs", "query": "unicorns"}))
	for _, refused := range []struct {
		name string
		args args
	}{
		{"unknown dataset", args{"dataset": "sample-doc", "query": "x"}},
		{"dataset that is bad", args{"dataset": "no-index", "query": "x"}},
		{"dataset missing", args{"query": "x"}},
		{"blank query", args{"dataset": "sample-docs", "query": " "}},
		{"topK 0", args{"dataset": "sample-docs", "query": "x", "topK": 0}},
		{"topK a string", args{"dataset": "sample-docs", "query": "x", "topK": "5"}},
		{"unknown argument", args{"dataset": "sample-docs", "query": "x", "topk": 5}},
	} {
		add(refused.name+", 2025-06-18", call(old, "knowledge.search", refused.args))
		add(refused.name+", 2025-11-25", call(latest, "knowledge.search", refused.args))
	}
	const path = "testdata/transcripts.txtar"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(txtar.Format(got))); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nrun go test -update and look at the difference", path, diff)
	}
}

// TestResultShape: the members of results that the contract names, and their
// order and types.
func TestResultShape(t *testing.T) {
	c := connect(t, "2025-11-25", datasetmcp.Options{Datasets: datasets(t)})
	text, e := c.Tool("knowledge.search", args{"dataset": "sample-docs", "query": "configure datasets"})
	if e != nil {
		t.Fatal(e)
	}
	var search struct {
		Results []struct {
			Score   *float64
			Title   *string
			Path    *string
			Snippet *string
		}
		Metadata struct {
			Dataset, Query          *string
			ResultCount, DurationMs *int
			ScoreKind               string
		}
	}
	if err := json.Unmarshal([]byte(text), &search); err != nil {
		t.Fatal(err)
	}
	if m := search.Metadata; m.Dataset == nil || *m.Dataset != "sample-docs" || m.Query == nil ||
		*m.Query != "configure datasets" ||
		m.ResultCount == nil || *m.ResultCount != len(search.Results) || m.DurationMs == nil || m.ScoreKind != "bm25" {
		t.Errorf("metadata of %s", text)
	}
	if len(search.Results) == 0 || len(search.Results) > 5 {
		t.Fatalf("%d results, want 1 to defaultTopK", len(search.Results))
	}
	for _, r := range search.Results {
		if r.Score == nil || *r.Score < 0 || *r.Score > 1 || r.Title == nil || *r.Title == "" || r.Path == nil ||
			*r.Path == "" || r.Snippet == nil {
			t.Errorf("result %+v", r)
		}
	}
	text, e = c.Tool("knowledge.listDatasets", nil)
	if e != nil {
		t.Fatal(e)
	}
	var list struct {
		Datasets []map[string]any
		Metadata map[string]int
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, d := range list.Datasets {
		ids = append(ids, d["id"].(string))
		members := []string{"id", "name", "description", "defaultTopK", "status", "datasetSize", "manifestPath"}
		if d["status"] == "error" {
			members = append(members, "error", "failedAt")
		} else if d["status"] != "ready" || d["datasetSize"] != 5.0 || d["error"] != nil || d["failedAt"] != nil {
			t.Errorf("dataset %v", d)
		}
		for _, m := range members {
			if d[m] == nil {
				t.Errorf("%v has no %s", d["id"], m)
			}
		}
	}
	if !slices.IsSorted(ids) || len(ids) != 3 {
		t.Errorf("ids are %v", ids)
	}
	if diff := cmp.Diff(map[string]int{"totalDatasets": 3, "readyDatasets": 1, "errorDatasets": 2},
		list.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

// A fake is a registry whose calls fail or take long.
type fake struct {
	err   error
	takes time.Duration
	query dataset.Query
}

func (f *fake) List(ctx context.Context) ([]dataset.Info, error) { return nil, f.wait(ctx) }

func (f *fake) Search(ctx context.Context, q dataset.Query) (*dataset.Result, error) {
	f.query = q
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	return &dataset.Result{Kind: dataset.Fused, Hits: []dataset.Hit{
		{Dataset: "a", Score: 0.123456, ID: "1", Title: "T", Path: "p", Snippet: "s", StartLine: 2, EndLine: 3},
	}}, nil
}

func (f *fake) wait(ctx context.Context) error {
	select {
	case <-time.After(f.takes):
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TestErrorCodes: error.data.code, the code of the error and retryable.
func TestErrorCodes(t *testing.T) {
	for _, tt := range []struct {
		name      string
		fake      fake
		args      args
		wire      int64
		code      string
		retryable bool
	}{
		{"not found", fake{err: &dataset.UnknownDataset{ID: "x"}}, nil, -32002, "DATASET_NOT_FOUND", false},
		{"query too long", fake{}, args{"dataset": "a", "query": strings.Repeat("x", 1025)}, -32602, "INVALID_QUERY",
			false},
		{"query empty", fake{}, args{"dataset": "a", "query": ""}, -32602, "INVALID_QUERY", false},
		{"query blank", fake{err: &errkind.Argument{Name: "query", Want: "text"}}, nil, -32602, "INVALID_QUERY", false},
		{"no query", fake{}, args{"dataset": "a"}, -32602, "INVALID_QUERY", false},
		{"topK too large", fake{}, args{"dataset": "a", "query": "x", "topK": 101}, -32602, "INVALID_TOP_K", false},
		{"topK a fraction", fake{}, args{"dataset": "a", "query": "x", "topK": 1.5}, -32602, "INVALID_TOP_K", false},
		{"topK null", fake{}, args{"dataset": "a", "query": "x", "topK": nil}, -32602, "INVALID_TOP_K", false},
		{"topK refused later", fake{err: &errkind.Argument{Name: "topK", Want: "less"}}, nil, -32602, "INVALID_TOP_K",
			false},
		{"bad dataset", fake{err: fmt.Errorf("dataset a: index file: missing: %w", errkind.Corrupt)}, nil, -31500,
			"SERVICE_UNAVAILABLE", false},
		{"unavailable", fake{err: fmt.Errorf("down: %w", errkind.Unavailable)}, nil, -31503, "SERVICE_UNAVAILABLE",
			true},
		{"timeout", fake{takes: time.Minute}, nil, -31504, "SEARCH_TIMEOUT", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				a := tt.args
				if a == nil {
					a = args{"dataset": "a", "query": "x"}
				}
				_, e := connect(t, "2025-06-18", datasetmcp.Options{Datasets: &tt.fake}).Tool("knowledge.search", a)
				if e == nil || int64(e.Code) != tt.wire || e.Field("code") != tt.code ||
					e.Field("retryable") != fmt.Sprint(tt.retryable) {
					t.Errorf("error = %+v", e)
				}
				if took := time.Since(start); tt.fake.takes > 0 && took != 10*time.Second {
					t.Errorf("the call took %v, want 10 s", took)
				}
			})
		})
	}
}

// Several datasets are named in each result.
func TestMoreDatasets(t *testing.T) {
	f := &fake{}
	text, e := connect(t, "2025-11-25", datasetmcp.Options{Datasets: f}).
		Tool("knowledge.search", args{"dataset": "a", "query": "x", "moreDatasets": []string{"b"}})
	if e != nil {
		t.Fatal(e)
	}
	const want = `{"results":[{"score":0.1235,"title":"T","path":"p","snippet":"s","dataset":"a","startLine":2,` +
		`"endLine":3}],` +
		`"metadata":{"dataset":"a","query":"x","resultCount":1,"durationMs":0,"scoreKind":"fused","datasets":["a",` +
		`"b"]}}`
	if text != want {
		t.Errorf("got %s, want %s", text, want)
	}
	if diff := cmp.Diff([]string{"a", "b"}, f.query.Datasets); diff != "" {
		t.Errorf("datasets (-want +got):\n%s", diff)
	}
}

// TestOfficialClient searches with the client of the MCP SDK over HTTP.
func TestOfficialClient(t *testing.T) {
	s := newServer(datasetmcp.Options{Datasets: datasets(t)})
	web := httptest.NewServer(s.HTTP(mcpserver.HTTPOptions{}))
	defer web.Close()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff([]string{"knowledge.search", "knowledge.listDatasets"}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "knowledge.search",
		Arguments: args{"dataset": "sample-docs", "query": "troubleshooting"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := res.Content[0].(*mcp.TextContent).Text; res.IsError || res.StructuredContent != nil ||
		!strings.Contains(text, "docs/troubleshooting.md") {
		t.Errorf("result = %+v", res)
	}
	res, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "knowledge.search",
		Arguments: args{"dataset": "nope", "query": "x"}})
	if err != nil || !res.IsError || !strings.Contains(res.Content[0].(*mcp.TextContent).Text,
		"available datasets: sample-docs") {
		t.Errorf("result = %+v, %v", res, err)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "knowledge_search"}); err == nil ||
		errors.Is(err, context.Canceled) {
		t.Errorf("an unknown tool: %v", err)
	}
}
