package kbmcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kbclient"
)

// A fakeEngine is an engine with a note (42), a PDF (43) and a job (7). It
// records what it is asked.
type fakeEngine struct {
	mu       sync.Mutex
	requests []string
	tags     []string // of the note
}

// newEngine returns a fake engine and a client of it.
func newEngine(t *testing.T) (*fakeEngine, kb.Base) {
	e := &fakeEngine{tags: []string{"collection:memory", "email", "feedback"}}
	web := httptest.NewServer(e)
	t.Cleanup(web.Close)
	return e, engineClient(t, web.URL)
}

// engineClient returns a client of an engine.
func engineClient(t *testing.T, url string) kb.Base {
	c, err := kbclient.New(kbclient.Options{BaseURL: url, Key: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// taken returns the requests since the last call.
func (e *fakeEngine) taken() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := strings.Join(e.requests, "\n")
	e.requests = nil
	return all
}

const times = `"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:06Z"`

// document returns a document as JSON.
func (e *fakeEngine) document(id int, chunks string) string {
	d := fmt.Sprintf(`{"document_id":%d,"title":"Report","source_path":"reports/report.pdf","type":"pdf","tags":["collection:documents"],%s`, id, times)
	if id == 42 {
		tags, _ := json.Marshal(e.tags)
		d = fmt.Sprintf(`{"document_id":42,"title":"Style","source_path":"","type":"note","tags":%s,%s`, tags, times)
	}
	if chunks != "" {
		d += `,"chunks":` + chunks
	}
	return d + "}"
}

func (e *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if boundary := strings.TrimPrefix(r.Header.Get("Content-Type"),
		"multipart/form-data; boundary="); boundary != r.Header.Get("Content-Type") {
		body = []byte(strings.ReplaceAll(strings.ReplaceAll(string(body), boundary, "BOUNDARY"), "\r\n", "\n"))
	}
	e.requests = append(e.requests, strings.TrimRight(fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, body), " \n"))
	status, answer := e.answer(r, body)
	if r.Header.Get("Authorization") != "Bearer secret" {
		status, answer = 401, `{"error":{"code":"UNAUTHORIZED","message":"a key is required"}}`
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		io.WriteString(w, answer)
	}
}

// answer returns the response to a request.
func (e *fakeEngine) answer(r *http.Request, body []byte) (int, string) {
	chunks := `[{"index":0,"text":"Users prefer"},{"index":1,"text":"bullet\u202e \udb40\udc41points"},{"index":2,"text":"to prose"}]`
	path, _ := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/api/v1"))
	if note, tag, _ := strings.Cut(path, "/tags/"); r.Method == "DELETE" && note == "/documents/42" && tag != "" {
		e.tags = slices.DeleteFunc(e.tags, func(s string) bool { return s == tag })
		path = "/documents/42/tags"
	}
	switch call := r.Method + " " + path; call {
	case "POST /search":
		if strings.Contains(string(body), "unicorns") {
			return 200, `{"results":[],"total":0}`
		}
		return 200, `{"results":[{"document_id":42,"chunk_index":1,"text":"bullet\u202e points","score":0.51234567,"title":"Style",
			"source_path":"","type":"note","tags":["collection:memory","feedback","email"],"updated_at":"2026-01-02T03:04:06Z"}],"total":1}`
	case "POST /jobs":
		return 202, `{"job_id":7}`
	case "GET /jobs":
		return 200, `{"jobs":[{"job_id":7,"status":"failed","type":"file","filename":"a.pdf","document_id":null,"error":"it has a password",` + times + `}]}`
	case "GET /documents/42", "PATCH /notes/42":
		return 200, e.document(42, chunks)
	case "GET /documents/43":
		return 200, e.document(43, `[]`)
	case "PATCH /notes/43":
		return 409, `{"error":{"code":"CONFLICT","message":"document 43 is not a note"}}`
	case "POST /documents/42/tags", "DELETE /documents/42/tags":
		var in struct{ Tags []string }
		_ = json.Unmarshal(body, &in)
		if slices.ContainsFunc(in.Tags, func(s string) bool { return strings.Contains(s, "refused") }) {
			return 503, `{"error":{"code":"UNAVAILABLE","message":"the disk is full"}}`
		}
		e.tags = append(e.tags, in.Tags...)
		slices.Sort(e.tags)
		tags, _ := json.Marshal(e.tags)
		return 200, `{"tags":` + string(tags) + `}`
	case "GET /documents":
		if q := r.URL.Query(); q.Get("tag") == "collection:mem" || strings.HasPrefix(q.Get("source_path"), "nothing") {
			return 200, `{"documents":[],"total":0}`
		} else if q.Get("source_path") != "" {
			return 200, `{"documents":[` + e.document(43, "") + `],"total":1}`
		}
		return 200, `{"documents":[` + e.document(43, "") + "," + e.document(42, "") + `],"total":2}`
	case "DELETE /documents/42":
		return 204, ""
	case "GET /status":
		return 200, `{"version":"1.2","model":{"name":"m"},"device":{"type":"cpu\u202e"},"documents":{"total":2,"by_type":{"note":1,"pdf":1}},"queue":{"queued":0,"running":0,"failed":1}}`
	}
	return 404, `{"error":{"code":"NOT_FOUND","message":"no such thing"}}`
}
