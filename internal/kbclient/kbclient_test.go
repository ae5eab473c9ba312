package kbclient_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kbclient"

	"github.com/google/go-cmp/cmp"
)

func TestNew(t *testing.T) {
	for _, base := range []string{"http://h", "https://h:8443/", "http://h/kb/", "http://[::1]:8000"} {
		if _, err := kbclient.New(kbclient.Options{BaseURL: base}); err != nil {
			t.Errorf("New(%q) = %v", base, err)
		}
	}
	for _, base := range []string{"", "h", "//h", "ftp://h", "http://", "http:h", "http://h?x", "http://h#x",
		"http://user:pa55@h", "\x00"} {
		_, err := kbclient.New(kbclient.Options{BaseURL: base})
		if !errors.Is(err, errkind.Invalid) || errkind.ReasonOf(err) != kbclient.AddressReason ||
			strings.Contains(err.Error(), "pa55") {
			t.Errorf("New(%q) = %v", base, err)
		}
	}
	_, err := kbclient.New(kbclient.Options{BaseURL: "http://h", Key: "a b"})
	if !errors.Is(err, errkind.Invalid) || errkind.ReasonOf(err) != kbclient.KeyReason ||
		strings.Contains(err.Error(), "a b") {
		t.Errorf("New with a bad key = %v", err)
	}
}

// client returns a client of a server with a handler.
func client(t *testing.T, path string, h http.HandlerFunc) *kbclient.Client {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	c, err := kbclient.New(kbclient.Options{BaseURL: web.URL + path, Key: "key"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestRequests compares the request of each method with the API.
func TestRequests(t *testing.T) {
	var got string
	c := client(t, "/kb/api/v1/", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, body))
		if r.Header.Get("Authorization") != "Bearer key" || r.Header.Get("Accept") != "application/json" {
			t.Errorf("header %v", r.Header)
		}
		if r.Method == "DELETE" && !strings.Contains(r.URL.Path, "/tags/") {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		io.WriteString(w, `{"job_id":3,"tags":["a"],"document_id":5,"results":[],"jobs":null,"documents":null}`)
	})
	text := "x"
	for _, tt := range []struct {
		call func(ctx context.Context) (any, error)
		want string
	}{
		{func(ctx context.Context) (any, error) {
			return c.Search(ctx, kb.SearchQuery{Query: "a <b>", Top: 3, VectorOnly: true})
		}, `POST /kb/api/v1/search {"query":"a <b>","top":3,"tags":[],"fts_only":false,"vector_only":true}`},
		{func(ctx context.Context) (any, error) { return c.AddNote(ctx, kb.Note{Text: "x"}) },
			`POST /kb/api/v1/jobs {"type":"note","text":"x","tags":[]}`},
		{func(ctx context.Context) (any, error) {
			return c.AddNote(ctx, kb.Note{Text: "x", Title: "t", SourcePath: "p", Tags: []string{"a"}})
		}, `POST /kb/api/v1/jobs {"type":"note","text":"x","title":"t","source_path":"p","tags":["a"]}`},
		{func(ctx context.Context) (any, error) { return c.Jobs(ctx, kb.JobFilter{Limit: 5, Status: kb.Done}) },
			`GET /kb/api/v1/jobs?limit=5&status=done`},
		{func(ctx context.Context) (any, error) { return c.Job(ctx, 5) }, `GET /kb/api/v1/jobs/5`},
		{func(ctx context.Context) (any, error) { return c.Document(ctx, 5, 0, kb.AllChunks) },
			`GET /kb/api/v1/documents/5`},
		{func(ctx context.Context) (any, error) {
			return c.Documents(ctx, kb.DocumentFilter{SourcePath: "a&b/c d", Tag: "t", Limit: 1, Offset: 2})
		}, `GET /kb/api/v1/documents?limit=1&offset=2&source_path=a%26b%2Fc+d&tag=t`},
		{func(ctx context.Context) (any, error) {
			return c.Documents(ctx, kb.DocumentFilter{Collection: "c", Added: true, Limit: 1})
		}, `GET /kb/api/v1/documents?added=true&collection=c&limit=1`},
		{func(ctx context.Context) (any, error) { return c.UpdateNote(ctx, 5, kb.NoteChange{Text: &text}) },
			`PATCH /kb/api/v1/notes/5 {"text":"x"}`},
		{func(ctx context.Context) (any, error) { return c.AddTags(ctx, 5, []string{"a/b"}) },
			`POST /kb/api/v1/documents/5/tags {"tags":["a/b"]}`},
		{func(ctx context.Context) (any, error) { return c.RemoveTag(ctx, 5, "a/../b?c#d%41 é") },
			`DELETE /kb/api/v1/documents/5/tags/a%2F..%2Fb%3Fc%23d%2541%20%C3%A9`},
		{func(ctx context.Context) (any, error) { return nil, c.Delete(ctx, 5) }, `DELETE /kb/api/v1/documents/5`},
		{func(ctx context.Context) (any, error) { return c.Status(ctx) }, `GET /kb/api/v1/status`},
	} {
		if _, err := tt.call(t.Context()); err != nil || got != tt.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
		}
	}
	got = ""
	if _, err := c.RemoveTag(t.Context(), 5, ".."); !errors.Is(err, errkind.Invalid) || got != "" {
		t.Errorf("RemoveTag(..) = %v, and asks %q", err, got)
	}
}

// A file is sent as a form, without being held in memory.
func TestAddFile(t *testing.T) {
	type sent struct {
		Tags                                []string
		SourcePath, Filename, Type, Content string
	}
	var got sent
	c := client(t, "", func(w http.ResponseWriter, r *http.Request) {
		_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil {
			t.Error(err)
		}
		for form := multipart.NewReader(r.Body, params["boundary"]); ; {
			p, err := form.NextPart()
			if errors.Is(err, io.EOF) {
				break
			}
			var text []byte
			if err == nil {
				text, err = io.ReadAll(p)
			}
			if err != nil { // the client ended the request
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			switch p.FormName() {
			case "tags":
				got.Tags = append(got.Tags, string(text))
			case "source_path":
				got.SourcePath = string(text)
			case "file":
				got.Filename, got.Type, got.Content = p.FileName(), p.Header.Get("Content-Type"), string(text)
			}
		}
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, `{"job_id":8}`)
	})
	content := strings.Repeat("0123456789", 100_000)
	id, err := c.AddFile(t.Context(), kb.File{Filename: "a \"b\" é.md", MediaType: "text/markdown; charset=utf-8",
		SourcePath: "p/a.md", Tags: []string{"a\r\n", "b"}},
		strings.NewReader(content))
	if id != 8 || err != nil {
		t.Fatalf("AddFile = %d, %v", id, err)
	}
	want := sent{[]string{"a\r\n", "b"}, "p/a.md", `a "b" é.md`, "text/markdown; charset=utf-8", content}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("form (-want +got):\n%.2000s", diff)
	}
	broken := errors.New("broken")
	if _, err := c.AddFile(t.Context(), kb.File{Filename: "a"}, io.MultiReader(strings.NewReader("x"),
		fails{broken})); !errors.Is(err, broken) {
		t.Errorf("with a reader that fails: %v", err)
	}
}

type fails struct{ err error }

func (f fails) Read([]byte) (int, error) { return 0, f.err }

// TestErrors checks the kinds and messages of what engines and others answer.
func TestErrors(t *testing.T) {
	const secret = "\u202e\x1b[31m/var/lib\n"
	for _, tt := range []struct {
		name, body string
		status     int
		kind       error
		remote     bool
		want       string
	}{
		{"invalid", `{"error":{"code":"INVALID","message":"top must be 1 to 100"}}`, 400, errkind.Invalid, false,
			"top must be 1 to 100: invalid"},
		{"unprocessable", `{"error":{"message":"no text"}}`, 422, errkind.Invalid, false, "no text: invalid"},
		{"not found", `{"error":{"message":"no such thing"}}`, 404, errkind.NotFound, false,
			"document 5 does not exist: not found"},
		{"conflict", `{"error":{"message":"document 5 is not a note"}}`, 409, errkind.Conflict, false,
			"document 5 is not a note: conflict"},
		{"too large", `{"error":{"message":"too many bytes"}}`, 413, errkind.TooLarge, false,
			"too many bytes: too large"},
		{"unsupported code", `{"error":{"code":"unsupported","message":"no vectors"}}`, 422, errkind.Unsupported, false,
			"no vectors: unsupported"},
		{"unsupported", `{"error":{"message":"no vectors"}}`, 501, errkind.Unsupported, false,
			"no vectors: unsupported"},
		{"hostile", `{"error":{"code":"<script>","message":"` + strings.Repeat("x", 600) + `\u202e\u001b[31m"}}`, 400,
			errkind.Invalid, false, "x…: invalid"},
		{"key", `{"error":{"code":"UNAUTHORIZED","message":"x"}}`, 401, errkind.Unauthorized, true,
			"the engine refuses the key"},
		{"forbidden", ``, 403, errkind.Denied, true, "the engine forbids the request; ask its operator"},
		{"a page", `<html>not found</html>`, 404, errkind.NotFound, false, "document 5 does not exist: not found"},
		{"redirect", ``, 302, errkind.Unavailable, true, "has no API of an engine (status 302)"},
		{"proxy limit", `<html>`, 413, errkind.TooLarge, true, "refuses a request of this size"},
		{"teapot", ``, 418, errkind.Invalid, true, "the engine refuses the request (status 418)"},
		{"failure", secret, 500, errkind.Unavailable, true, "the engine failed; see its log"},
		{"no JSON", `<html>`, 200, errkind.Unavailable, true, "something other than the JSON of its API"},
		{"other JSON", `{"tags":5}`, 200, errkind.Unavailable, true, "something other than the JSON of its API"},
		{"gateway timeout", ``, 504, errkind.Timeout, true, "did not answer in time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls := 0
			c := client(t, "", func(w http.ResponseWriter, _ *http.Request) {
				calls++
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			})
			_, err := c.AddTags(t.Context(), 5, []string{"a"})
			_, remote := errors.AsType[*errkind.Remote](err)
			if !errors.Is(err, tt.kind) || remote != tt.remote || !strings.Contains(err.Error(), tt.want) ||
				len(err.Error()) > 600 || strings.ContainsAny(err.Error(), secret[:4]) {
				t.Errorf("error = %v (remote: %v), want %q of kind %v", err, remote, tt.want, tt.kind)
			}
			if calls != 1 {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

// A script is a transport that answers requests in turn.
type script struct {
	answers []func() (*http.Response, error)
	times   []time.Duration // of the requests
	start   time.Time
}

func (s *script) RoundTrip(*http.Request) (*http.Response, error) {
	s.times = append(s.times, time.Since(s.start))
	return s.answers[min(len(s.times), len(s.answers))-1]()
}

func status(code int, header ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		r := &http.Response{StatusCode: code, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader(`{"results":[]}`))}
		if len(header) > 0 {
			r.Header.Set(header[0], header[1])
		}
		return r, nil
	}
}

func refuse() (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
}

// Calls that change nothing are repeated if that may help; other calls never.
func TestRetries(t *testing.T) {
	search := func(ctx context.Context, c *kbclient.Client) error {
		_, err := c.Search(ctx, kb.SearchQuery{})
		return err
	}
	add := func(ctx context.Context, c *kbclient.Client) error {
		_, err := c.AddNote(ctx, kb.Note{})
		return err
	}
	type answers = []func() (*http.Response, error)
	const ms = time.Millisecond
	for _, tt := range []struct {
		name    string
		call    func(context.Context, *kbclient.Client) error
		answers answers
		times   []time.Duration
		kind    error
	}{
		{"back soon", search, answers{refuse, status(503), status(200)}, []time.Duration{0, 200 * ms, 600 * ms}, nil},
		{"down", search, answers{refuse}, []time.Duration{0, 200 * ms, 600 * ms}, errkind.Unavailable},
		{"busy", search, answers{status(429, "Retry-After", "1"), status(200)}, []time.Duration{0, time.Second}, nil},
		{"busy until a date", search, answers{status(429, "Retry-After", "Sat, 01 Jan 2000 00:00:01 GMT"), status(200)},
			[]time.Duration{0, time.Second}, nil},
		{"busy for long", search, answers{status(429, "Retry-After", "60")}, []time.Duration{0}, errkind.Busy},
		{"failure", search, answers{status(500)}, []time.Duration{0}, errkind.Unavailable},
		{"refused", search, answers{status(400)}, []time.Duration{0}, errkind.Invalid},
		{"a change", add, answers{refuse}, []time.Duration{0}, errkind.Unavailable},
		{"a change while busy", add, answers{status(503)}, []time.Duration{0}, errkind.Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: tt.answers, start: time.Now()}
				c, err := kbclient.New(kbclient.Options{BaseURL: "http://engine.internal", Transport: s})
				if err != nil {
					t.Fatal(err)
				}
				err = tt.call(t.Context(), c)
				if !errors.Is(err, tt.kind) || (err == nil) != (tt.kind == nil) || err != nil &&
					strings.Contains(err.Error(),
						"engine.internal") {
					t.Errorf("error = %v, want kind %v", err, tt.kind)
				}
				if diff := cmp.Diff(tt.times, s.times); diff != "" {
					t.Errorf("times (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// hangs is a transport to an engine that never answers. It reads the body at
// one byte a second.
type hangs struct{}

func (hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		for {
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			if _, err := r.Body.Read(make([]byte, 1)); err != nil {
				break
			}
		}
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A call ends at its time limit, which begins again while a file makes progress.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := kbclient.New(kbclient.Options{BaseURL: "http://h", Transport: hangs{}, Timeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		check := func(what string, err error, least time.Duration) {
			t.Helper()
			remote, _ := errors.AsType[*errkind.Remote](err)
			if remote == nil || remote.Status != 504 || remote.Reason != kbclient.TimeoutReason ||
				!errkind.Retryable(err) {
				t.Errorf("%s: error = %v", what, err)
			}
			if got := time.Since(start); got < least || got > least+10*time.Minute {
				t.Errorf("%s took %v, want %v or a little more", what, got, least)
			}
			start = time.Now()
		}
		_, err = c.Status(t.Context())
		check("status", err, 5*time.Second)
		_, err = c.AddFile(t.Context(), kb.File{Filename: "a"}, strings.NewReader(strings.Repeat("x", 60)))
		check("a file that is sent slowly", err, 65*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err = c.Status(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled call: %v", err)
		}
	})
}

// The messages about connections say what to check.
func TestConnectionErrors(t *testing.T) {
	for want, err := range map[string]error{
		"host name cannot be resolved": &net.DNSError{Err: "no such host", Name: "engine.internal"},
		"certificate is not trusted":   &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		"does not speak TLS":           http.ErrSchemeMismatch,
		"check that it runs":           syscall.ECONNREFUSED,
	} {
		c, e := kbclient.New(kbclient.Options{BaseURL: "http://engine.internal",
			Transport: &script{answers: []func() (*http.Response, error){
				func() (*http.Response, error) { return nil, err }}}})
		if e != nil {
			t.Fatal(e)
		}
		_, got := c.AddNote(t.Context(), kb.Note{})
		if got == nil || !strings.Contains(got.Error(), want) || strings.Contains(got.Error(), "engine.internal") ||
			errkind.ReasonOf(got) != kbclient.AddressReason {
			t.Errorf("%v: error = %v, want %q", err, got, want)
		}
	}
}

// Times in a form that the API does not have fail no call.
func TestTimes(t *testing.T) {
	for _, form := range []string{`"2025-11-20T10:00:00.123456"`, `1763632800.5`, `null`, `""`} {
		times := fmt.Sprintf(`"created_at":%s,"updated_at":%[1]s`, form)
		c := client(t, "", func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/api/v1/search":
				io.WriteString(w, `{"results":[{"document_id":1,`+times+`}],"total":1}`)
			case "/api/v1/jobs":
				io.WriteString(w, `{"jobs":[{"job_id":1,`+times+`}]}`)
			case "/api/v1/documents":
				io.WriteString(w, `{"documents":[{"document_id":1,`+times+`}],"total":1}`)
			default:
				io.WriteString(w, `{"document_id":1,"job_id":1,`+times+`}`)
			}
		})
		for name, call := range map[string]func(ctx context.Context) (any, error){
			"search":    func(ctx context.Context) (any, error) { return c.Search(ctx, kb.SearchQuery{Query: "x", Top: 1}) },
			"jobs":      func(ctx context.Context) (any, error) { return c.Jobs(ctx, kb.JobFilter{Limit: 1}) },
			"job":       func(ctx context.Context) (any, error) { return c.Job(ctx, 1) },
			"document":  func(ctx context.Context) (any, error) { return c.Document(ctx, 1, 0, kb.AllChunks) },
			"documents": func(ctx context.Context) (any, error) { return c.Documents(ctx, kb.DocumentFilter{Limit: 1}) },
		} {
			v, err := call(t.Context())
			if err != nil {
				t.Errorf("%s with the time %s: %v", name, form, err)
				continue
			}
			got, err := json.Marshal(v)
			if want := `"updated_at":` + form; err != nil || !strings.Contains(string(got), want) {
				t.Errorf("%s returns %s, %v; want %s", name, got, err, want)
			}
		}
	}
}

// An answer in JSON that has nothing of the API is a failure of the engine, and
// never an empty result or a job without an id.
func TestOtherAnswers(t *testing.T) {
	for _, body := range []string{`{}`, `{"detail":"ok"}`, `{"job_id":null}`} {
		c := client(t, "", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) })
		for name, call := range map[string]func(ctx context.Context) (any, error){
			"search": func(ctx context.Context) (any, error) { return c.Search(ctx, kb.SearchQuery{Query: "x", Top: 1}) },
			"note":   func(ctx context.Context) (any, error) { return c.AddNote(ctx, kb.Note{Text: "x"}) },
			"file": func(ctx context.Context) (any, error) {
				return c.AddFile(ctx, kb.File{Filename: "x"}, strings.NewReader("x"))
			},
			"jobs":      func(ctx context.Context) (any, error) { return c.Jobs(ctx, kb.JobFilter{Limit: 1}) },
			"job":       func(ctx context.Context) (any, error) { return c.Job(ctx, 1) },
			"document":  func(ctx context.Context) (any, error) { return c.Document(ctx, 1, 0, kb.AllChunks) },
			"documents": func(ctx context.Context) (any, error) { return c.Documents(ctx, kb.DocumentFilter{Limit: 1}) },
			"status":    func(ctx context.Context) (any, error) { return c.Status(ctx) },
		} {
			v, err := call(t.Context())
			if remote, ok := errors.AsType[*errkind.Remote](err); !ok || remote.Status != http.StatusBadGateway {
				t.Errorf("%s with the answer %s = %v, %v; want an error with the status 502", name, body, v, err)
			}
		}
	}
}

// What does not exist is named in words of our own.
func TestMissing(t *testing.T) {
	text := "x"
	for _, body := range []string{`{"error":{"code":"x","message":"no such thing"}}`, `{"detail":"Not Found"}`, ``,
		`404 page not found`, `<html>404 Not Found</html>`} {
		requests := 0
		c := client(t, "", func(w http.ResponseWriter, r *http.Request) {
			requests++
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, body)
		})
		for want, calls := range map[string][]func(ctx context.Context) error{
			"document 4711 does not exist": {
				func(ctx context.Context) error { _, err := c.Document(ctx, 4711, 0, kb.AllChunks); return err },
				func(ctx context.Context) error {
					_, err := c.UpdateNote(ctx, 4711, kb.NoteChange{Text: &text})
					return err
				},
				func(ctx context.Context) error { _, err := c.AddTags(ctx, 4711, []string{"a"}); return err },
				func(ctx context.Context) error { _, err := c.RemoveTag(ctx, 4711, "a"); return err },
				func(ctx context.Context) error { return c.Delete(ctx, 4711) },
			},
			"job 4711 does not exist": {func(ctx context.Context) error { _, err := c.Job(ctx, 4711); return err }},
		} {
			for i, call := range calls {
				if err := call(t.Context()); !errors.Is(err, errkind.NotFound) || errkind.Message(err) != want {
					t.Errorf("answer %q, call %d: error %v, want %s", body, i, err, want)
				}
			}
		}
		// Without an id, it is the API that is missing. A further attempt is useless.
		for name, call := range map[string]func(ctx context.Context) error{
			"search": func(ctx context.Context) error {
				_, err := c.Search(ctx, kb.SearchQuery{Query: "x", Top: 1})
				return err
			},
			"note": func(ctx context.Context) error { _, err := c.AddNote(ctx, kb.Note{Text: "x"}); return err },
			"file": func(ctx context.Context) error {
				_, err := c.AddFile(ctx, kb.File{Filename: "x"}, strings.NewReader("x"))
				return err
			},
			"jobs": func(ctx context.Context) error { _, err := c.Jobs(ctx, kb.JobFilter{Limit: 1}); return err },
			"documents": func(ctx context.Context) error {
				_, err := c.Documents(ctx, kb.DocumentFilter{Limit: 1})
				return err
			},
			"status": func(ctx context.Context) error { _, err := c.Status(ctx); return err },
		} {
			requests = 0
			err := call(t.Context())
			remote, ok := errors.AsType[*errkind.Remote](err)
			if !ok || !errors.Is(err, errkind.Unavailable) || remote.Status != http.StatusNotFound ||
				remote.Reason != kbclient.AddressReason || errkind.Retryable(err) || requests != 1 {
				t.Errorf("answer %q: %s fails with %#v after %d requests", body, name, err, requests)
			}
		}
	}
}

// Engines that answer 404 for a tag that a document does not have are as good as
// those that ignore it.
func TestRemoveMissingTag(t *testing.T) {
	c := client(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			io.WriteString(w, `{"document_id":5,"tags":["b"]}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"detail":"Tag not found"}`)
	})
	tags, err := c.RemoveTag(t.Context(), 5, "a")
	if diff := cmp.Diff([]string{"b"}, tags); diff != "" || err != nil {
		t.Errorf("RemoveTag: %v (-want +got):\n%s", err, diff)
	}
}
