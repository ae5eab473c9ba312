package kbserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kb/kbtest"
	"github.com/knowhow-mcp/knowhow/internal/kbserver"
)

// A server is a running engine.
type server struct {
	t    *testing.T
	url  string
	base *kb.Local
	dir  string
}

// token is the token of the servers.
const token = "secret"

// serve starts an engine with its API below a prefix.
func serve(t *testing.T, prefix string) *server {
	t.Helper()
	dir := t.TempDir()
	x, err := index.Open(t.Context(), index.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	b := kb.NewLocal(kb.Options{Index: x, Dir: dir, MaxUpload: kbtest.MaxUpload, Version: "test"})
	guard := httpguard.New(httpguard.Options{Token: token, Refuse: kbserver.Refuse, Routes: []httpguard.Route{
		kbserver.Route(kbserver.Options{Base: b, Prefix: prefix, TempDir: kb.Incoming(dir),
			MaxUpload: kbtest.MaxUpload}),
	}})
	h := httptest.NewServer(guard)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	t.Cleanup(func() {
		h.Close()
		cancel()
		running.Wait()
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return &server{t, h.URL + prefix, b, dir}
}

// send sends a request and returns the status and the body.
func (s *server) send(method, path, media string, body io.Reader) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(data)
}

// form returns a form with fields ("name=value") and files ("@filename=text"),
// in this order, and its media type.
func form(fields ...string) (media string, body io.Reader) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		var part io.Writer
		if file, ok := strings.CutPrefix(name, "@"); ok {
			part, _ = w.CreateFormFile("file", file)
		} else {
			part, _ = w.CreateFormField(name)
		}
		_, _ = io.WriteString(part, value)
	}
	w.Close()
	return w.FormDataContentType(), &b
}

const jsonMedia = "application/json"

// TestBadRequests sends every kind of bad request. None may leave a file.
func TestBadRequests(t *testing.T) {
	s := serve(t, "/kb")
	note := kbtest.Note(t, s.base, "A note.")
	file := kbtest.File(t, s.base, kb.File{Filename: "a.md"}, "A file.")
	id := func(path string, d *kb.Document) string { return fmt.Sprintf(path, d.ID) }
	long := strings.Repeat("x", 5000)
	for _, c := range []struct {
		method, path, media, body string
		status                    int
		code, about               string
	}{
		{"GET", "/api/v1/nothing", "", "", 404, "not_found", "openapi.json"},
		{"GET", "/api/v1/documents/", "", "", 400, "invalid", "id"},
		{"GET", "/api/v1//documents", "", "", 404, "not_found", "openapi.json"},
		{"PUT", "/api/v1/jobs", "", "", 405, "method_not_allowed", "GET or POST"},
		{"POST", "/api/v1/search", "", `{"query":"x"}`, 415, "unsupported_media_type", "application/json"},
		{"POST", "/api/v1/search", "text/plain", `{"query":"x"}`, 415, "unsupported_media_type", "application/json"},
		{"POST", "/api/v1/search", jsonMedia, ``, 400, "invalid", "JSON"},
		{"POST", "/api/v1/search", jsonMedia, `{`, 400, "invalid", "JSON"},
		{"POST", "/api/v1/search", jsonMedia, `[]`, 400, "invalid", "object"},
		{"POST", "/api/v1/search", jsonMedia, `{"query":"x"} {}`, 400, "invalid", "one JSON object"},
		{"POST", "/api/v1/search", jsonMedia, `{"query":5}`, 400, "invalid", `"query"`},
		{"POST", "/api/v1/search", jsonMedia, `{"query":""}`, 400, "invalid", `"query"`},
		{"POST", "/api/v1/search", jsonMedia, `{"query":"x","top":0}`, 400, "invalid", `"top"`},
		{"POST", "/api/v1/search", jsonMedia, `{"query":"x","top":101}`, 400, "invalid", `"top"`},
		{"POST", "/api/v1/search", jsonMedia, `{"query":"x","top":1.5}`, 400, "invalid", `"top"`},
		{"POST", "/api/v1/search", jsonMedia, `{"query":"x","top":"5"}`, 400, "invalid", `"top"`},
		{"POST", "/api/v1/search", jsonMedia, `{"query":"x","top":2.5}`, 400, "invalid",
			`"top": got a JSON number 2.5, want an integer`},
		{"POST", "/api/v1/search", jsonMedia, `{"query":"x","tags":"a"}`, 400, "invalid",
			`"tags": got a JSON string, want a list of strings`},
		{"POST", "/api/v1/search", jsonMedia, `{"query":"x","tags":"a"}`, 400, "invalid", `"tags"`},
		{"POST", "/api/v1/search", jsonMedia, `{"query":"x","fts_only":"yes"}`, 400, "invalid", `"fts_only"`},
		{"POST", "/api/v1/search", jsonMedia, `{"query":"x","limit":5}`, 400, "invalid", `"limit"`},
		{"POST", "/api/v1/search", jsonMedia, `{"query":"x","vector_only":true}`, 422, "unsupported", "vector_only"},
		{"POST", "/api/v1/search", jsonMedia, `{"query":"x","vector_only":true,"fts_only":true}`, 400, "invalid",
			`"vector_only"`},
		{"POST", "/api/v1/search", jsonMedia, `{"query":"` + strings.Repeat("x", kbtest.MaxUpload) + `"}`, 413,
			"too_large", "bytes"},
		{"POST", "/api/v1/jobs", "", ``, 415, "unsupported_media_type", "multipart/form-data"},
		{"POST", "/api/v1/jobs", "multipart/form-data", ``, 415, "unsupported_media_type", "multipart/form-data"},
		{"POST", "/api/v1/jobs", "multipart/form-data; boundary=x", `rubbish`, 400, "invalid", `"file"`},
		{"POST", "/api/v1/jobs", jsonMedia, `{"text":"x"}`, 400, "invalid", `"type"`},
		{"POST", "/api/v1/jobs", jsonMedia, `{"type":"file","text":"x"}`, 400, "invalid", `"type"`},
		{"POST", "/api/v1/jobs", jsonMedia, `{"type":"note"}`, 400, "invalid", `"text"`},
		{"POST", "/api/v1/jobs", jsonMedia, `{"type":"note","text":"x","tags":[1]}`, 400, "invalid", `"tags"`},
		{"POST", "/api/v1/jobs", jsonMedia, `{"type":"note","text":"x","tags":["collection:a","collection:b"]}`, 400,
			"invalid", `"tags"`},
		{"POST", "/api/v1/jobs", jsonMedia, `{"type":"note","text":"x","title":"a\nb"}`, 400, "invalid", `"title"`},
		{"POST", "/api/v1/jobs", jsonMedia, `{"type":"note","text":"x","source_path":"a\u0000"}`, 400, "invalid",
			`"source_path"`},
		{"GET", "/api/v1/jobs?limit=0", "", "", 400, "invalid", `"limit"`},
		{"GET", "/api/v1/jobs?limit=1001", "", "", 400, "invalid", `"limit"`},
		{"GET", "/api/v1/jobs?limit=x", "", "", 400, "invalid", `"limit"`},
		{"GET", "/api/v1/jobs?limit=", "", "", 400, "invalid", `"limit"`},
		{"GET", "/api/v1/jobs?limit=1&limit=2", "", "", 400, "invalid", `"limit"`},
		{"GET", "/api/v1/jobs?status=x", "", "", 400, "invalid", `"status"`},
		{"GET", "/api/v1/jobs?top=1", "", "", 400, "invalid", `"top"`},
		{"GET", "/api/v1/jobs?limit=%zz", "", "", 400, "invalid", "%25"},
		{"GET", "/api/v1/jobs/x", "", "", 400, "invalid", `"job_id"`},
		{"GET", "/api/v1/jobs/999", "", "", 404, "not_found", "999"},
		{"GET", "/api/v1/documents?offset=-1", "", "", 400, "invalid", `"offset"`},
		{"GET", "/api/v1/documents?offset=99999999999999999999", "", "", 400, "invalid", `"offset"`},
		{"GET", "/api/v1/documents?collection=a%20b", "", "", 400, "invalid", `"collection"`},
		{"GET", "/api/v1/documents?added=1", "", "", 400, "invalid", `"added"`},
		{"GET", "/api/v1/documents?tag=%20", "", "", 400, "invalid", `"tag"`},
		{"GET", "/api/v1/documents?source_path=" + long, "", "", 400, "invalid", `"source_path"`},
		{"GET", "/api/v1/documents/1e3", "", "", 400, "invalid", `"id"`},
		{"GET", "/api/v1/documents/999", "", "", 404, "not_found", "999"},
		{"DELETE", "/api/v1/documents/999", "", "", 404, "not_found", "999"},
		{"POST", "/api/v1/documents/999/tags", jsonMedia, `{"tags":["a"]}`, 404, "not_found", "999"},
		{"POST", id("/api/v1/documents/%d/tags", note), jsonMedia, `{"tags":[]}`, 400, "invalid", `"tags"`},
		{"POST", id("/api/v1/documents/%d/tags", note), jsonMedia, `{"tags":["collection:"]}`, 400, "invalid",
			`"tags"`},
		{"DELETE", "/api/v1/documents/999/tags/a", "", "", 404, "not_found", "999"},
		{"PATCH", "/api/v1/notes/999", jsonMedia, `{"text":"x"}`, 404, "not_found", "999"},
		{"PATCH", id("/api/v1/notes/%d", file), jsonMedia, `{"text":"x"}`, 409, "conflict", "not a note"},
		{"PATCH", id("/api/v1/notes/%d", note), jsonMedia, `{}`, 400, "invalid", `"text"`},
		{"PATCH", id("/api/v1/notes/%d", note), jsonMedia, `{"text":" "}`, 400, "invalid", `"text"`},
		{"PATCH", id("/api/v1/notes/%d", note), jsonMedia, `{"tags":["x"]}`, 400, "invalid", `"tags"`},
	} {
		resp, body := s.send(c.method, c.path, c.media, strings.NewReader(c.body))
		s.refused(fmt.Sprintf("%s %.60s %.60s", c.method, c.path, c.body), resp, body, c.status, c.code, c.about)
	}
	for name, fields := range map[string][]string{
		"file":        {"tags=a"},
		"one file":    {"@a.txt=x", "@b.txt=x"},
		"type":        {"type=file", "@a.txt=x"},
		"tags":        append(slices.Repeat([]string{"tags=a"}, kb.MaxTags+1), "@a.txt=x"),
		"collection":  {"tags=collection:a", "@a.txt=x", "tags=collection:b"},
		"source_path": {"@a.txt=x", "source_path=" + long},
		"repeated":    {"@a.txt=x", "source_path=a", "source_path=b"},
		"name":        {"@=x"},
	} {
		media, body := form(fields...)
		resp, text := s.send("POST", "/api/v1/jobs", media, body)
		s.refused("form without "+name, resp, text, 400, "invalid", name)
	}
	media, body := form("@a.txt=" + strings.Repeat("x", kbtest.MaxUpload+1))
	resp, text := s.send("POST", "/api/v1/jobs", media, body)
	s.refused("large file", resp, text, 413, "too_large", "bytes")
	media, body = form("@a.txt="+strings.Repeat("x", kbtest.MaxUpload), "tags=a")
	if resp, text := s.send("POST", "/api/v1/jobs", media, body); resp.StatusCode != 202 {
		t.Errorf("a file of the maximum size: %s, %s", resp.Status, text)
	}
	media, body = form("tags="+strings.Repeat("x", 3<<20), "@a.txt=x")
	if resp, _ := s.send("POST", "/api/v1/jobs", media, body); resp.StatusCode != 413 {
		t.Errorf("a field of 3 MiB: %s", resp.Status)
	}
	jobs, err := s.base.Jobs(t.Context(), kb.JobFilter{Limit: 10})
	if err != nil || len(jobs) != 3 {
		t.Fatalf("Jobs() = %+v, %v; want three", jobs, err)
	}
	kbtest.Await(t, s.base, jobs[0].ID)
	s.nothingLeft()
}

// nothingLeft checks that no file is left in the folder of uploads.
func (s *server) nothingLeft() {
	s.t.Helper()
	entries, err := os.ReadDir(kb.Incoming(s.dir))
	// the job has ended, its file is removed then
	for wait := time.Now().Add(10 * time.Second); len(entries) > 0 && time.Now().Before(wait); {
		entries, err = os.ReadDir(kb.Incoming(s.dir))
	}
	if err != nil || len(entries) > 0 {
		s.t.Errorf("files left: %v, %v", entries, err)
	}
}

// refused checks the response to a bad request.
func (s *server) refused(what string, resp *http.Response, body string, status int, code, about string) {
	s.t.Helper()
	var e struct {
		Error struct{ Code, Message string } `json:"error"`
	}
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil || resp.StatusCode != status || e.Error.Code != code ||
		!strings.Contains(e.Error.Message, about) {
		s.t.Errorf("%s: %d %s, want status %d, code %s and a message about %s", what, resp.StatusCode, body, status,
			code, about)
	}
	if media := resp.Header.Get("Content-Type"); media != jsonMedia {
		s.t.Errorf("%s: Content-Type %q", what, media)
	}
}

// TestUploads sends files in several ways.
func TestUploads(t *testing.T) {
	s := serve(t, "")
	add := func(fields ...string) *kb.Document {
		t.Helper()
		media, body := form(fields...)
		resp, text := s.send("POST", "/api/v1/jobs", media, body)
		var accepted struct {
			JobID int64 `json:"job_id"`
		}
		if err := json.Unmarshal([]byte(text), &accepted); err != nil || resp.StatusCode != http.StatusAccepted {
			t.Fatalf("%s, %s", resp.Status, text)
		}
		return kbtest.Stored(t, s.base, accepted.JobID)
	}
	first := add("tags=a", "tags=collection:memory", "source_path=x/y.md", "@y.md=# Title")
	if first.Title != "Title" || first.SourcePath != "x/y.md" || !cmp.Equal(first.Tags, []string{"a",
		"collection:memory"}) {
		t.Errorf("document = %+v", first)
	}
	after := add("@y.md=# Other", "source_path=x/y.md", "tags=b") // fields after the file
	if after.ID != first.ID || after.Title != "Other" || !cmp.Equal(after.Tags, []string{"b", "collection:memory"}) {
		t.Errorf("document = %+v", after)
	}
	if d := add(`@C:\dir\z.txt=x`); d.SourcePath != "z.txt" {
		t.Errorf("document = %+v", d)
	}
	s.nothingLeft()
}

// TestCutOff sends a part of an upload and closes the connection. Neither a job
// nor a file may stay.
func TestCutOff(t *testing.T) {
	s := serve(t, "")
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: "+
		"multipart/form-data; boundary=b\r\nContent-Length: 5000\r\n\r\n"+
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nbegin", token)
	for wait := time.Now().Add(10 * time.Second); time.Now().Before(wait); { // until the server has begun to write
		if entries, _ := os.ReadDir(kb.Incoming(s.dir)); len(entries) > 0 {
			break
		}
	}
	c.Close()
	s.nothingLeft()
	jobs, err := s.base.Jobs(t.Context(), kb.JobFilter{Limit: 10})
	if err != nil || len(jobs) > 0 {
		t.Errorf("Jobs() = %+v, %v", jobs, err)
	}
}

// TestToken checks that everything but the health check requires the token.
func TestToken(t *testing.T) {
	s := serve(t, "/kb")
	for _, path := range []string{"/api/v1/status", "/openapi.json", "/api/v1/nothing"} {
		resp, err := http.Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		s.refused(path, resp, string(body), 401, "unauthorized", "token")
	}
}

// failing is a base that fails.
type failing struct {
	kbserver.Base
	err error
}

func (f failing) AddNote(context.Context, kb.Note) (int64, error) { return 0, f.err }

func (f failing) AddFile(context.Context, kb.File, io.Reader) (int64, error) { return 0, f.err }

func (f failing) Search(context.Context, kb.SearchQuery) (*kb.SearchResult, error) { return nil, f.err }

func (f failing) UpdateNote(context.Context, int64, kb.NoteChange) (*kb.Document, error) {
	return nil, f.err
}

func (f failing) Status(context.Context) (*kb.Status, error) { return nil, f.err }

// TestErrors checks the status and the code of each kind of error.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		kind   error
		status int
		code   string
	}{
		{errkind.Invalid, 400, "invalid"}, {errkind.Denied, 403, "denied"}, {errkind.NotFound, 404, "not_found"},
		{errkind.Conflict, 409, "conflict"},
		{errkind.TooLarge, 413, "too_large"}, {errkind.Unsupported, 422, "unsupported"}, {errkind.Busy, 429, "busy"},
		{errkind.Unavailable, 503, "unavailable"}, {errkind.Timeout, 504, "timeout"},
		{errkind.Corrupt, 500, "internal"}, {io.ErrUnexpectedEOF, 500, "internal"},
	} {
		h := kbserver.New(kbserver.Options{Base: failing{err: fmt.Errorf("the reason: %w", c.kind)},
			TempDir: t.TempDir()})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/status", nil))
		if w.Code != c.status || !strings.Contains(w.Body.String(), `"code":"`+c.code+`"`) ||
			strings.Contains(w.Body.String(), "the reason") == (c.code == "internal") {
			t.Errorf("%v: %d %s, want %d %s", c.kind, w.Code, w.Body, c.status, c.code)
		}
	}
}

// TestEndingServer checks that a request that the end of the server interrupts is
// not answered as if it had succeeded.
func TestEndingServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h := kbserver.New(kbserver.Options{Base: failing{err: context.Canceled}, TempDir: t.TempDir()})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/api/v1/status", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "send the request again") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestOpenAPI compares the OpenAPI document with the handlers and their types.
func TestOpenAPI(t *testing.T) {
	s := serve(t, "/kb")
	_, body := s.send("GET", "/openapi.json", "", nil)
	type schema struct {
		Properties map[string]any
		Required   []string
	}
	var d struct {
		Servers    []struct{ URL string }
		Paths      map[string]map[string]any
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Servers) != 1 || d.Servers[0].URL != "/kb" {
		t.Errorf("servers = %v", d.Servers)
	}
	var described []string
	for path, methods := range d.Paths {
		for method := range methods {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(described)
	if diff := cmp.Diff(kbserver.Operations(), described); diff != "" {
		t.Errorf("operations (-handled +described):\n%s", diff)
	}
	for name, v := range map[string]any{
		"SearchQuery": kb.SearchQuery{}, "SearchResult": kb.SearchResult{}, "Result": kb.Result{}, "Job": kb.Job{},
		"Document": kb.Document{}, "Chunk": kb.Chunk{}, "Documents": kb.DocumentList{}, "NoteChange": kb.NoteChange{},
		"Status": kb.Status{},
	} {
		var members, required []string
		for f := range reflect.TypeOf(v).Fields() {
			tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if tag == "-" {
				continue
			}
			members = append(members, tag)
			if options != "omitempty" {
				required = append(required, tag)
			}
		}
		var properties []string
		for p := range d.Components.Schemas[name].Properties {
			properties = append(properties, p)
		}
		slices.Sort(members)
		slices.Sort(properties)
		if diff := cmp.Diff(members, properties); diff != "" {
			t.Errorf("members of %s (-type +schema):\n%s", name, diff)
		}
		if name == "SearchQuery" { // of its members, only one is required
			required = []string{"query"}
		}
		slices.Sort(required)
		stated := slices.Sorted(slices.Values(d.Components.Schemas[name].Required))
		if diff := cmp.Diff(required, stated); diff != "" {
			t.Errorf("required members of %s (-type +schema):\n%s", name, diff)
		}
	}
}

func FuzzJobs(f *testing.F) {
	dir := f.TempDir()
	f.Add(jsonMedia, []byte(`{"type":"note","text":"x","tags":["a"]}`))
	media, body := form("tags=a", "@a.txt=text", "source_path=b")
	data, _ := io.ReadAll(body)
	f.Add(media, data)
	f.Add("multipart/form-data; boundary=b", []byte("--b\r\nContent-Disposition: form-data; name=file; "+
		"filename*=utf-8''%2e%2e%2fa\r\n\r\nx\r\n--b--"))
	h := kbserver.New(kbserver.Options{Base: accepting{}, TempDir: dir, MaxUpload: 1 << 10})
	f.Fuzz(func(t *testing.T, media string, body []byte) {
		r := httptest.NewRequest("POST", "/api/v1/jobs", bytes.NewReader(body))
		r.Header.Set("Content-Type", media)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 202 && (w.Code < 400 || w.Code > 499) || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("files left: %v, %v", entries, err)
		}
	})
}

// accepting is a base that accepts everything.
type accepting struct{ kbserver.Base }

func (accepting) AddNote(context.Context, kb.Note) (int64, error) { return 1, nil }
func (accepting) AddFile(_ context.Context, _ kb.File, r io.Reader) (int64, error) {
	_, err := io.Copy(io.Discard, r)
	return 1, err
}

// A deadlines is a connection that remembers whether the time for the body was
// changed.
type deadlines struct {
	*httptest.ResponseRecorder
	set bool
}

func (d *deadlines) SetReadDeadline(time.Time) error { d.set = true; return nil }

// JSON arrives in the time that the listener gives to every body. Only files
// have more.
func TestTimeForBodies(t *testing.T) {
	media, body := form("@a.txt=x")
	file, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path, media, body string
		set               bool
	}{
		{"/api/v1/jobs", jsonMedia, `{"type":"note","text":"x"}`, false},
		{"/api/v1/jobs", media, string(file), true},
	} {
		r := httptest.NewRequest("POST", tc.path, strings.NewReader(tc.body))
		r.Header.Set("Content-Type", tc.media)
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		kbserver.New(kbserver.Options{Base: failing{}, TempDir: t.TempDir()}).ServeHTTP(w, r)
		if w.set != tc.set {
			t.Errorf("POST %s %s changes the time for the body: %v, want %v", tc.path, tc.media, w.set, tc.set)
		}
	}
}

// JSON is small, except the texts of notes.
func TestSizeOfJSON(t *testing.T) {
	for _, tc := range []struct {
		method, path, body string
		size, status       int
		want               string // part of the message
	}{
		{"POST", "/api/v1/search", `{"query":"%s"}`, 1<<20 + 1, 413, "1048576 bytes: shorten the query"},
		{"POST", "/api/v1/documents/1/tags", `{"tags":["%s"]}`, 1<<20 + 1, 413, "1048576 bytes: send fewer tags"},
		{"POST", "/api/v1/jobs", `{"type":"note","text":"%s"}`, 4 << 20, 500, ""}, // by the base, which has no room
		{"POST", "/api/v1/jobs", `{"type":"note","text":"%s"}`, 4<<20 + 1, 413, "add a long text as a file"},
		{"PATCH", "/api/v1/notes/1", `{"text":"%s"}`, 4 << 20, 500, ""},
		{"PATCH", "/api/v1/notes/1", `{"text":"%s"}`, 4<<20 + 1, 413, "add a long text as a file"},
	} {
		body := fmt.Sprintf(tc.body, strings.Repeat("x", tc.size-len(tc.body)+len("%s")))
		r := httptest.NewRequest(tc.method, tc.path, strings.NewReader(body))
		r.Header.Set("Content-Type", jsonMedia)
		w := httptest.NewRecorder()
		kbserver.New(kbserver.Options{Base: failing{err: errors.New("failed")}, TempDir: t.TempDir()}).ServeHTTP(w, r)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s %s with %d bytes = %d %s, want %d %s", tc.method, tc.path, len(body), w.Code, w.Body, tc.status,
				tc.want)
		}
	}
}
