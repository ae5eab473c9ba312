package kbmcp_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kbclient"
	"github.com/knowhow-mcp/knowhow/internal/kbmcp"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type args = map[string]any

// newServer returns a server over a base.
func newServer(t *testing.T, o kbmcp.Options) *mcpserver.Server {
	t.Helper()
	if o.Uploads == nil {
		o.Uploads = staging(t, kbmcp.UploadOptions{})
	}
	o.Version = "1"
	s := mcpserver.New(mcpserver.Options{Name: "knowhow-kb", Version: "1", Instructions: kbmcp.Instructions(nil)})
	kbmcp.Register(s, o)
	return s
}

// staging returns a staging area.
func staging(t *testing.T, o kbmcp.UploadOptions) *kbmcp.Uploads {
	t.Helper()
	o.Dir = t.TempDir()
	a, err := kbmcp.OpenUploads(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// connect returns a session with a server, after the handshake.
func connect(t *testing.T, revision string, o kbmcp.Options) *mcptest.Session {
	t.Helper()
	s := newServer(t, o)
	c := mcptest.Stdio(t, func(ctx context.Context, in io.Reader, out io.Writer) error {
		return s.ServeStdio(ctx, in, out)
	})
	c.Initialize(revision)
	return c
}

// tool calls a tool that must succeed and decodes its result.
func tool[T any](t *testing.T, c *mcptest.Session, name string, a args) T {
	t.Helper()
	text, e := c.Tool(name, a)
	if e != nil {
		t.Fatalf("%s: %v", name, e)
	}
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// base64Of returns a text as the data of a chunk.
func base64Of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// varying matches what differs between two runs.
var varying = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

// TestTranscripts compares what clients see, and what the engine is asked, with
// golden files.
func TestTranscripts(t *testing.T) {
	engine, base := newEngine(t)
	latest := connect(t, "2025-11-25", kbmcp.Options{Base: base, Extra: true, UploadPath: "/upload"})
	old := connect(t, "2025-06-18", kbmcp.Options{Base: base})
	got := &txtar.Archive{Comment: []byte("What clients see, and below it what the engine is asked. Written by go test " +
		"-update.\n")}
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
		text := out.String() + "\n"
		if asked := engine.taken(); asked != "" {
			text += asked + "\n"
		}
		got.Files = append(got.Files, txtar.File{Name: name, Data: varying.ReplaceAll([]byte(text), []byte("UUID"))})
	}
	call := func(c *mcptest.Session, tool string, a args) mcptest.Message {
		return c.Call("tools/call", args{"name": tool, "arguments": a})
	}
	add("tools/list", latest.Call("tools/list", nil))
	type step struct {
		name, tool string
		args       args
	}
	for _, s := range []step{
		{"search", "kb_search", args{"query": "pension revaluation", "top": 5}},
		{"search with a collection", "kb_search", args{"query": "email preferences", "collection": "memory"}},
		{"search with tags and a collection", "kb_search", args{"query": "feedback", "tags": []string{"email"},
			"collection": "memory"}},
		{"search by words", "kb_search", args{"query": "error log", "fts_only": true}},
		{"search without results", "kb_search", args{"query": "unicorns"}},
		{"search in an unknown collection", "kb_search", args{"query": "unicorns", "collection": "mem"}},
		{"note", "kb_addnote", args{"text": "User prefers concise responses"}},
		{"note in a collection", "kb_addnote", args{"text": "User prefers concise responses", "title": "Style",
			"collection": "memory", "tags": []string{"feedback"}}},
		{"new text", "kb_update_note", args{"document_id": 42,
			"text": "Updated preference: user prefers bullet points"}},
		{"new collection", "kb_update_note", args{"document_id": 42, "collection": "archive"}},
		{"same collection", "kb_update_note", args{"document_id": 42, "collection": "archive"}},
		{"new tags", "kb_update_note", args{"document_id": 42, "tags": []string{"email", "a/b c"}}},
		{"no tags", "kb_update_note", args{"document_id": 42, "tags": []string{}}},
		{"collection that cannot be set", "kb_update_note", args{"document_id": 42, "collection": "refused"}},
		{"tags that cannot be set after a new title", "kb_update_note", args{"document_id": 42, "title": "T",
			"tags": []string{"refused"}}},
		{"update of an unknown document", "kb_update_note", args{"document_id": 99, "text": "x"}},
		{"new text of a file", "kb_update_note", args{"document_id": 43, "text": "x"}},
		{"get", "kb_get", args{"document_id": 42}},
		{"get a page", "kb_get", args{"document_id": 42, "offset": 1, "limit": 1}},
		{"get a document without text", "kb_get", args{"document_id": 43}},
		{"get by source path", "kb_get", args{"source_path": "reports/report.pdf"}},
		{"get by an unknown source path", "kb_get", args{"source_path": "nothing.md"}},
		{"get an unknown document", "kb_get", args{"document_id": 99}},
		{"status", "kb_status", nil},
		{"jobs", "kb_jobs", nil},
		{"failed jobs", "kb_jobs", args{"status": "failed", "limit": 5}},
		{"start an upload", "kb_upload_start", args{"filename": "report.pdf", "total_size": 5242880,
			"tags": []string{"insurance"}, "collection": "documents"}},
		{"list", "kb_list", args{"collection": "memory", "limit": 1}},
		{"list by tag", "kb_list", args{"tag": "email", "offset": 1}},
		{"collections", "kb_collections", nil},
		{"delete", "kb_delete", args{"document_id": 42}},
		{"delete an unknown document", "kb_delete", args{"document_id": 99}},
	} {
		add(s.name, call(latest, s.tool, s.args))
	}
	id := tool[struct {
		UploadID string `json:"upload_id"`
	}](t, latest, "kb_upload_start", args{"filename": `a "b".md`, "total_size": 6, "tags": []string{"t"},
		"collection": "c", "source_path": "x/a.md"}).UploadID
	for _, s := range []step{
		{"chunk", "kb_upload_chunk", args{"upload_id": id, "data": base64Of("def"), "chunk_index": 1}},
		{"finish too early", "kb_upload_finish", args{"upload_id": id}},
		{"first chunk", "kb_upload_chunk", args{"upload_id": id, "data": base64Of("abc"), "chunk_index": 0}},
		{"damaged chunk", "kb_upload_chunk", args{"upload_id": id, "data": "YW_j", "chunk_index": 0}},
		{"finish", "kb_upload_finish", args{"upload_id": id}},
		{"finish again", "kb_upload_finish", args{"upload_id": id}},
		{"chunk after finish", "kb_upload_chunk", args{"upload_id": id, "data": "", "chunk_index": 2}},
		{"chunk of an unknown upload", "kb_upload_chunk", args{"upload_id": "nope", "data": "", "chunk_index": 0}},
		{"finish an unknown upload", "kb_upload_finish", args{"upload_id": "nope"}},
	} {
		add(s.name, call(latest, s.tool, s.args))
	}
	for _, s := range []step{
		{"get an unknown document", "kb_get", args{"document_id": 99}},
		{"new text of a file", "kb_update_note", args{"document_id": 43, "text": "x"}},
		{"unknown upload", "kb_upload_finish", args{"upload_id": "nope"}},
		{"extra tool", "kb_delete", args{"document_id": 42}},
	} {
		add(s.name+", 2025-06-18", call(old, s.tool, s.args))
	}
	golden(t, "testdata/transcripts.txtar", got)
}

// TestRefusals calls each tool with arguments that it does not accept. The
// golden file has one message for each.
func TestRefusals(t *testing.T) {
	engine, base := newEngine(t)
	c := connect(t, "2025-06-18", kbmcp.Options{Base: base, Extra: true, Uploads: staging(t,
		kbmcp.UploadOptions{MaxSize: 1000})})
	long := func(n int) string { return strings.Repeat("x", n) }
	many := make([]string, 51)
	for i := range many {
		many[i] = "t"
	}
	var out strings.Builder
	for _, s := range []struct {
		tool string
		args []args
	}{
		{"kb_search", []args{{}, {"query": ""}, {"query": long(2001)}, {"query": 5}, {"query": "x", "top": 0},
			{"query": "x",
				"top": 101}, {"query": "x", "top": "5"},
			{"query": "x", "collection": ""}, {"query": "x", "collection": "a b"},
			{"query": "x", "collection": long(101)},
			{"query": "x", "tags": "a"},
			{"query": "x", "tags": []string{""}}, {"query": "x", "tags": []string{"a", "collection:b"}}, {"query": "x",
				"tags": many}, {"query": "x", "fts_only": "yes"},
			{"query": "x", "vector_only": true}}},
		{"kb_addnote", []args{{}, {"text": ""}, {"text": long(1000001)}, {"text": "x", "title": long(251)},
			{"text": "x",
				"collection": "a/b"},
			{"text": "x", "tags": []string{" a"}}, {"text": "x", "tags": []string{"a\nb"}}, {"text": "x",
				"tags": []string{long(201)}}}},
		{"kb_update_note", []args{{}, {"document_id": 42}, {"document_id": 0, "text": "x"}, {"document_id": "42",
			"text": "x"}, {"document_id": 4.5, "text": "x"},
			{"document_id": 42, "text": ""}, {"document_id": 42, "title": ""}, {"document_id": 42, "collection": "-/"},
			{"document_id": 42, "tags": []string{"collection:x"}}}},
		{"kb_upload_start", []args{{}, {"filename": "a"}, {"total_size": 5}, {"filename": "", "total_size": 5},
			{"filename": "a/b", "total_size": 5}, {"filename": "..", "total_size": 5},
			{"filename": "a", "total_size": 0}, {"filename": "a", "total_size": 1001}, {"filename": "a",
				"total_size": 5, "sha256": "abc"},
			{"filename": "a", "total_size": 5, "sha256": long(64)},
			{"filename": "a", "total_size": 5, "collection": "?"},
			{"filename": "a", "total_size": 5, "tags": []string{""}}}},
		{"kb_upload_chunk", []args{{}, {"upload_id": "a", "data": "", "chunk_index": -1}, {"upload_id": "a", "data": "",
			"chunk_index": 100000},
			{"upload_id": "a", "data": "YQ", "chunk_index": 0}, {"upload_id": "a", "chunk_index": 0}, {"upload_id": "a",
				"data": ""}, {"upload_id": "", "data": "", "chunk_index": 0},
			{"upload_id": "a", "data": long(2000001), "chunk_index": 0}}},
		{"kb_upload_finish", []args{{}, {"upload_id": ""}, {"upload_id": 5}}},
		{"kb_get", []args{{}, {"document_id": 0}, {"document_id": "42"}, {"source_path": ""}, {"document_id": 42,
			"source_path": "a"}, {"source_path": "a", "limit": 5},
			{"document_id": 42, "offset": -1}, {"document_id": 42, "offset": 3}, {"document_id": 42, "limit": 0},
			{"document_id": 42, "limit": 101}}},
		{"kb_status", []args{{"verbose": true}}},
		{"kb_jobs", []args{{"status": "gone"}, {"limit": 0}, {"limit": 1001}}},
		{"kb_list", []args{{"limit": 0}, {"offset": -1}, {"collection": "a b"}, {"tag": "a", "collection": "b"},
			{"tag": "collection:a"}}},
		{"kb_collections", []args{{"limit": 5}}},
		{"kb_delete", []args{{}, {"document_id": -1}}},
	} {
		for _, a := range s.args {
			in, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			text, e := c.Tool(s.tool, a)
			if e == nil {
				t.Errorf("%s %s succeeds: %s", s.tool, in, text)
				continue
			}
			if e.Field("retryable") != "false" {
				t.Errorf("%s %s can be retried", s.tool, in)
			}
			if len(in) > 100 {
				in = append(in[:100], "..."...)
			}
			out.WriteString(s.tool + " " + string(in) + "\n\t" + e.Field("code") + ": " + e.Message + "\n")
		}
	}
	asked := engine.taken()
	for line := range strings.Lines(asked) {
		if strings.TrimSpace(line) != "GET /api/v1/documents/42" { // for the number of its chunks
			t.Errorf("the engine was asked %s", line)
		}
	}
	golden(t, "testdata/refusals.txtar", &txtar.Archive{Comment: []byte("Arguments that are refused. Written by go test " +
		"-update.\n"),
		Files: []txtar.File{{Name: "refusals", Data: []byte(out.String())}}})
}

// golden compares an archive with a golden file.
func golden(t *testing.T, path string, got *txtar.Archive) {
	t.Helper()
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

// Without an engine, every tool that needs it says so, and a later call may
// succeed.
func TestEngineDown(t *testing.T) { synctest.Test(t, testEngineDown) }

func testEngineDown(t *testing.T) {
	base, err := kbclient.New(kbclient.Options{BaseURL: "http://engine.internal:8000", Transport: down{}})
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, "2025-06-18", kbmcp.Options{Base: base, Extra: true, Explain: func(err error) error {
		if errkind.ReasonOf(err) == "" {
			t.Errorf("%v has no reason", err)
		}
		return err
	}})
	id := tool[struct {
		UploadID string `json:"upload_id"`
	}](t, c, "kb_upload_start", args{"filename": "a", "total_size": 1}).UploadID
	tool[any](t, c, "kb_upload_chunk", args{"upload_id": id, "data": "YQ==", "chunk_index": 0})
	for name, a := range map[string]args{
		"kb_search": {"query": "x"}, "kb_addnote": {"text": "x"}, "kb_update_note": {"document_id": 1, "text": "x"},
		"kb_upload_finish": {"upload_id": id},
		"kb_get":           {"document_id": 1}, "kb_status": nil, "kb_jobs": nil, "kb_list": nil, "kb_collections": nil,
		"kb_delete": {"document_id": 1},
	} {
		_, e := c.Tool(name, a)
		if e == nil || e.Code != -31503 || !strings.Contains(e.Message, "the engine cannot be reached") ||
			e.Field("retryable") != "true" ||
			e.Field("httpStatus") != "502" || strings.Contains(e.Message, "engine.internal") {
			t.Errorf("%s: error = %+v", name, e)
		}
		if name == "kb_status" && (!strings.Contains(e.Message,
			"the MCP server works (version 1, 1 uploads in progress)") ||
			e.Field("mcp") != `{"version":"1","uploads":1}`) {
			t.Errorf("kb_status does not describe the MCP server: %+v", e)
		}
	}
}

// A path that no argument names is missing because the address of the engine is
// wrong, which no further attempt corrects.
func TestWrongAddress(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	c := connect(t, "2025-06-18", kbmcp.Options{Base: engineClient(t, web.URL), Extra: true,
		Explain: func(err error) error {
			if errkind.ReasonOf(err) == kbclient.AddressReason {
				return &mcpserver.Error{Err: err, Data: args{"explained": true}}
			}
			return err
		}})
	id := tool[struct {
		UploadID string `json:"upload_id"`
	}](t, c, "kb_upload_start", args{"filename": "a", "total_size": 1}).UploadID
	tool[any](t, c, "kb_upload_chunk", args{"upload_id": id, "data": "YQ==", "chunk_index": 0})
	for name, tt := range map[string]struct {
		args     args
		endpoint string
	}{
		"kb_search": {args{"query": "x"}, "search"}, "kb_addnote": {args{"text": "x"}, "jobs"},
		"kb_upload_finish": {args{"upload_id": id}, "jobs"}, "kb_get": {args{"source_path": "x"}, "documents"},
		"kb_status": {nil, "status"}, "kb_jobs": {nil, "jobs"}, "kb_list": {nil, "documents"},
		"kb_collections": {nil, "documents"},
	} {
		_, e := c.Tool(name, tt.args)
		if e == nil || e.Code != -31502 || !strings.Contains(e.Message, "check the address and its path") ||
			e.Field("code") != "UPSTREAM_ERROR" || e.Field("retryable") != "false" || e.Field("httpStatus") != "404" ||
			e.Field("endpoint") != "/api/v1/"+tt.endpoint || e.Field("explained") != "true" {
			t.Errorf("%s: error = %+v", name, e)
		}
	}
	for name, a := range map[string]args{"kb_get": {"document_id": 5}, "kb_delete": {"document_id": 5},
		"kb_update_note": {"document_id": 5, "title": "x"}} {
		if _, e := c.Tool(name, a); e == nil || e.Code != -32002 || e.Message != "document 5 does not exist" {
			t.Errorf("%s of a document: error = %+v", name, e)
		}
	}
}

// Documents of an engine that sends no collection are in the default one, and
// scores are those of the engine.
func TestPlainEngine(t *testing.T) {
	const d = `{"document_id":1,"title":"t","tags":["a"],"chunks":[]`
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/search":
			io.WriteString(w, `{"results":[`+d+`,"score":0.0163934426229508},`+d+`,"score":1e-7}],"total":2}`)
		case "/api/v1/documents":
			io.WriteString(w, `{"documents":[`+d+`}],"total":1}`)
		default:
			io.WriteString(w, d+`}`)
		}
	}))
	t.Cleanup(web.Close)
	c := connect(t, "2025-06-18", kbmcp.Options{Base: engineClient(t, web.URL), Extra: true})
	for name, tt := range map[string]struct {
		args args
		want []string
	}{
		"kb_search": {args{"query": "x"}, []string{`"score":0.0163934426229508,`, `"score":1e-7,`,
			`"collection":"documents","tags":["a"]`}},
		"kb_get":         {args{"document_id": 1}, []string{`"collection":"documents","tags":["a"]`}},
		"kb_list":        {nil, []string{`"collection":"documents","tags":["a"]`}},
		"kb_collections": {nil, []string{`{"name":"documents","documents":1}`}},
	} {
		text, e := c.Tool(name, tt.args)
		for _, want := range tt.want {
			if e != nil || !strings.Contains(text, want) {
				t.Errorf("%s = %s, %v; want %s", name, text, e, want)
			}
		}
	}
}

// down is the transport to an engine that does not run.
type down struct{}

func (down) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// failing is a base of which some calls fail.
type failing struct {
	kb.Base
	err   error // of AddTags, if set
	times int   // how often
	calls []string
}

func (f *failing) AddTags(ctx context.Context, id int64, tags []string) ([]string, error) {
	f.calls = append(f.calls, "add "+strings.Join(tags, " "))
	if f.times--; f.times >= 0 {
		return nil, f.err
	}
	return tags, nil
}

func (f *failing) RemoveTag(_ context.Context, _ int64, tag string) ([]string, error) {
	f.calls = append(f.calls, "remove "+tag)
	return nil, nil
}

func (f *failing) Document(context.Context, int64, int, int) (*kb.Document, error) {
	return &kb.Document{ID: 1, Tags: []string{"a", "collection:old"}}, nil
}

// The old collection is restored if the new one cannot be set, and the error
// says which collection the document has.
func TestRestoreCollection(t *testing.T) {
	down := &errkind.Remote{Kind: errkind.Unavailable, Status: 502, Message: "down"}
	for _, tt := range []struct {
		name  string
		err   error
		times int
		want  string // part of the error
		calls []string
	}{
		{"moved", nil, 0, "", []string{"remove collection:old", "add collection:new"}},
		{"restored", down, 1, "could not be moved and stays in the collection old: down",
			[]string{"remove collection:old",
				"add collection:new", "add collection:old"}},
		{"not restored", down, 2, "is no longer in its collection old; call kb_update_note again",
			[]string{"remove collection:old", "add collection:new", "add collection:old"}},
		{"refused", errors.Join(errors.New("it belongs to a folder"), errkind.Conflict), 1,
			"stays in the collection old: it belongs to a folder",
			[]string{"remove collection:old", "add collection:new", "add collection:old"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &failing{err: tt.err, times: tt.times}
			_, e := connect(t, "2025-11-25", kbmcp.Options{Base: f}).Tool("kb_update_note",
				args{"document_id": 1, "collection": "new"})
			if (e == nil) != (tt.want == "") || e != nil && !strings.Contains(e.Message, tt.want) {
				t.Errorf("error = %v, want %q", e, tt.want)
			}
			if diff := cmp.Diff(tt.calls, f.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPutUpload sends a whole file over HTTP, behind the same guard as /mcp.
func TestPutUpload(t *testing.T) {
	engine, base := newEngine(t)
	uploads := staging(t, kbmcp.UploadOptions{})
	c := connect(t, "2025-11-25", kbmcp.Options{Base: base, Uploads: uploads, UploadPath: "/upload"})
	web := httptest.NewServer(httpguard.New(httpguard.Options{Token: "key",
		Routes: []httpguard.Route{uploads.Route("/upload")}}))
	defer web.Close()
	start := tool[struct {
		PutPath  string `json:"put_path"`
		UploadID string `json:"upload_id"`
	}](t, c, "kb_upload_start", args{"filename": "a.txt", "total_size": 600000})
	put := func(method, path, token, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, web.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	whole := strings.Repeat("abc", 200000)
	for _, tt := range []struct {
		name, method, path, token, body string
		status                          int
		want                            string
	}{
		{"no token", "PUT", start.PutPath, "", whole, 401, `"message"`},
		{"wrong method", "POST", start.PutPath, "key", whole, 405, `send the file with PUT`},
		{"unknown upload", "PUT", "/upload/nope", "key", whole, 404, `"code":"NOT_FOUND"`},
		{"no upload", "PUT", "/upload", "key", whole, 404, `"message"`},
		{"too short", "PUT", start.PutPath, "key", "abc", 400, `the body has 3 bytes, but total_size is 600000`},
		{"complete", "PUT", start.PutPath, "key", whole, 200, `"received":600000,"total_size":600000,"chunks":1`},
		{"again", "PUT", start.PutPath, "key", whole, 200, `"received":600000`},
	} {
		if status, text := put(tt.method, tt.path, tt.token, tt.body); status != tt.status ||
			!strings.Contains(text, tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.name, status, text, tt.status, tt.want)
		}
	}
	tool[any](t, c, "kb_upload_finish", args{"upload_id": start.UploadID})
	if asked := engine.taken(); !strings.Contains(asked, whole) {
		t.Errorf("the engine was asked %.500s", asked)
	}
	if status, text := put("PUT", start.PutPath, "key", whole); status != 409 {
		t.Errorf("a PUT after finish: %d %s", status, text)
	}
}

// A long result is cut, and says so.
func TestLongResults(t *testing.T) {
	big := &bigBase{}
	c := connect(t, "2025-11-25", kbmcp.Options{Base: big})
	found := tool[struct {
		Results []struct {
			Text string
			Cut  bool
		}
	}](t, c, "kb_search", args{"query": "x", "top": 100})
	total := 0
	for _, r := range found.Results {
		total += len(r.Text)
	}
	if n := len(found.Results); n != 100 || total > 50_000 || found.Results[0].Cut || !found.Results[99].Cut ||
		found.Results[99].Text == "" {
		t.Errorf("%d results with %d characters, the last: %+v", n, total, found.Results[n-1])
	}
	p := tool[struct {
		Chunks      []kb.Chunk
		TotalChunks int `json:"total_chunks"`
		NextOffset  int `json:"next_offset"`
	}](t, c, "kb_get", args{"document_id": 1, "limit": 100})
	if len(p.Chunks) != 12 || p.TotalChunks != 200 || p.NextOffset != 12 {
		t.Errorf("%d of %d chunks, next %d", len(p.Chunks), p.TotalChunks, p.NextOffset)
	}
}

// bigBase has long documents.
type bigBase struct{ kb.Base }

func (bigBase) Search(_ context.Context, q kb.SearchQuery) (*kb.SearchResult, error) {
	r := &kb.SearchResult{Results: make([]kb.Result, q.Top)}
	for i := range r.Results {
		r.Results[i].Text = strings.Repeat("word ", 400)
	}
	return r, nil
}

func (bigBase) Document(_ context.Context, _ int64, from, to int) (*kb.Document, error) {
	d := &kb.Document{Chunks: make([]kb.Chunk, 200), TotalChunks: 200}
	for i := range d.Chunks {
		d.Chunks[i] = kb.Chunk{Index: i, Text: strings.Repeat("word ", 1000)}
	}
	d.Chunks = d.Chunks[min(from, 200):min(to, 200)]
	return d, nil
}

// The page on the knowledge base has every tool with its arguments, the required ones in
// bold.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/kb.md")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Tools []struct {
			Name        string
			InputSchema struct {
				Properties map[string]any
				Required   []string
			}
		}
	}
	_, base := newEngine(t)
	connect(t, "2025-11-25", kbmcp.Options{Base: base}).Call("tools/list", nil).Decode(t, &list)
	for _, tool := range list.Tools {
		row := regexp.MustCompile("(?m)^\\| `" + tool.Name + "` \\|(.*?) \\|").FindSubmatch(page)
		if row == nil {
			t.Errorf("docs/kb.md has no row for %s", tool.Name)
			continue
		}
		got := map[string]bool{}
		for _, m := range regexp.MustCompile("(\\*\\*)?`(\\w+)`").FindAllStringSubmatch(string(row[1]), -1) {
			got[m[2]] = m[1] != ""
		}
		want := map[string]bool{}
		for name := range tool.InputSchema.Properties {
			want[name] = slices.Contains(tool.InputSchema.Required, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("docs/kb.md, arguments of %s (-want +got):\n%s", tool.Name, diff)
		}
	}
}
