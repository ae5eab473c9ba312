// Package kbserver serves the engine API of a knowledge base over HTTP. The API is
// described by the OpenAPI document that it serves at /openapi.json.
//
// The handler does not check the token, Host or Origin: mount it with [Route] on
// a server that does.
package kbserver

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/kb"
)

// A Base is a knowledge base that lists its collections.
type Base interface {
	kb.Base

	// Collections returns the names of the collections that contain notes or files
	// that users added, sorted.
	Collections(ctx context.Context) ([]string, error)
}

// Options configure the handler.
type Options struct {
	Base    Base
	Prefix  string // path before /api, for example "/kb"; "" for none
	TempDir string // for files while they arrive; created if it does not exist; required

	// MaxUpload is the maximum size of a file in bytes; 0 means
	// kb.MaxUploadBytes. The limit of the Base should be the same.
	MaxUpload int64

	Log *slog.Logger // nil discards
}

// Route mounts a new handler at o.Prefix on a guarded listener. Refusals have the
// form of the API.
func Route(o Options) httpguard.Route {
	h := newHandler(o)
	return httpguard.Route{Path: cmp.Or(h.o.Prefix, "/"), Tree: true, Handler: h, Refuse: Refuse}
}

// New returns a handler for all paths below o.Prefix.
func New(o Options) http.Handler { return newHandler(o) }

func newHandler(o Options) *handler {
	o.Prefix = strings.TrimRight(o.Prefix, "/")
	if o.MaxUpload <= 0 {
		o.MaxUpload = kb.MaxUploadBytes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &handler{o: o}
}

// A handler serves the API. It is safe for concurrent use.
type handler struct{ o Options }

// An operation is a call of the API. A segment of its path in braces stands for
// a value.
type operation struct {
	method, path string
	serve        func(*call) (status int, body any, err error)
}

// api is the prefix of the paths of the operations.
const api = "/api/v1"

var operations = []operation{
	{http.MethodPost, api + "/search", (*call).search},
	{http.MethodPost, api + "/jobs", (*call).addJob},
	{http.MethodGet, api + "/jobs", (*call).jobs},
	{http.MethodGet, api + "/jobs/{job_id}", (*call).job},
	{http.MethodGet, api + "/documents", (*call).documents},
	{http.MethodGet, api + "/documents/{id}", (*call).document},
	{http.MethodDelete, api + "/documents/{id}", (*call).deleteDocument},
	{http.MethodPost, api + "/documents/{id}/tags", (*call).addTags},
	{http.MethodDelete, api + "/documents/{id}/tags/{tag}", (*call).removeTag},
	{http.MethodGet, api + "/collections", (*call).collections},
	{http.MethodPatch, api + "/notes/{id}", (*call).updateNote},
	{http.MethodGet, api + "/status", (*call).status},
	{http.MethodGet, "/openapi.json", (*call).openAPI},
}

// A call is one request.
type call struct {
	*handler
	w      http.ResponseWriter
	r      *http.Request
	values map[string]string // from the path
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{handler: h, w: w, r: r}
	serve, err := c.route()
	var body any
	status := 0
	if err == nil {
		status, body, err = serve(c)
	}
	if err != nil {
		c.fail(err)
		return
	}
	write(w, status, body)
}

// route returns the operation of a request.
func (c *call) route() (func(*call) (int, any, error), error) {
	path, ok := strings.CutPrefix(c.r.URL.EscapedPath(), c.o.Prefix)
	if !ok {
		return nil, errNoPath
	}
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var allowed []string
	for _, o := range operations {
		values, ok := match(o.path, path)
		if !ok {
			continue
		}
		if o.method == method {
			c.values = values
			return o.serve, nil
		}
		allowed = append(allowed, o.method)
	}
	if allowed == nil {
		return nil, errNoPath
	}
	slices.Sort(allowed)
	c.w.Header().Set("Allow", strings.Join(allowed, ", "))
	return nil, &failure{http.StatusMethodNotAllowed, "method_not_allowed", "this method is not allowed here: use " +
		strings.Join(allowed, " or ")}
}

var errNoPath = &failure{http.StatusNotFound, "not_found", "nothing is served at this path: the API is described at " +
	"openapi.json"}

// match returns the values of the segments in braces of a pattern.
func match(pattern, escaped string) (values map[string]string, ok bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(escaped, "/")
	if len(want) != len(got) {
		return nil, false
	}
	values = map[string]string{}
	for i, s := range want {
		v, err := url.PathUnescape(got[i])
		if err != nil {
			return nil, false
		}
		if name, ok := strings.CutPrefix(s, "{"); ok {
			values[strings.TrimSuffix(name, "}")] = v
		} else if s != v {
			return nil, false
		}
	}
	return values, true
}

// id returns the integer in the path with a name.
func (c *call) id(name string) (int64, error) {
	id, err := strconv.ParseInt(c.values[name], 10, 64)
	if err != nil {
		return 0, &errkind.Argument{Name: name, Value: c.values[name], Want: "an integer"}
	}
	return id, nil
}

// A failure is an error with its own status and code.
type failure struct {
	status  int
	code    string
	message string
}

func (f *failure) Error() string { return f.message }

// statuses has the status and the code of each kind of error.
var statuses = []struct {
	kind   error
	status int
	code   string
}{
	{errkind.Invalid, http.StatusBadRequest, "invalid"},
	{errkind.NotFound, http.StatusNotFound, "not_found"},
	{errkind.Conflict, http.StatusConflict, "conflict"},
	{errkind.Denied, http.StatusForbidden, "denied"},
	{errkind.TooLarge, http.StatusRequestEntityTooLarge, "too_large"},
	{errkind.Unsupported, http.StatusUnprocessableEntity, "unsupported"},
	{errkind.Busy, http.StatusTooManyRequests, "busy"},
	{errkind.Unavailable, http.StatusServiceUnavailable, "unavailable"},
	{errkind.Timeout, http.StatusGatewayTimeout, "timeout"},
}

// fail answers with an error. The text of an error without a kind is only
// logged.
func (c *call) fail(err error) {
	f, ok := errors.AsType[*failure](err)
	if c.r.Context().Err() != nil { // the server ends, or the client is gone
		f, ok = &failure{http.StatusServiceUnavailable, "unavailable", "the server is ending: send the request again"},
			true
	}
	if !ok {
		f = &failure{http.StatusInternalServerError, "internal",
			"an internal error occurred: see the log of the server"}
		for _, s := range statuses {
			if errors.Is(err, s.kind) {
				f = &failure{s.status, s.code, errkind.Message(err)}
				break
			}
		}
	}
	if f.status >= 500 && c.r.Context().Err() == nil {
		c.o.Log.Error("a request of the knowledge base API failed", "method", c.r.Method, "status", f.status, "error",
			err)
	}
	httpguard.Drain(c.w, c.r, httpguard.MaxDrained)
	write(c.w, f.status, errorOf(f.code, f.message))
}

// errorOf returns the body of an error.
func errorOf(code, message string) any {
	return map[string]any{"error": map[string]string{"code": code, "message": message}}
}

// Refuse is an [httpguard.RefuseFunc].
func Refuse(w http.ResponseWriter, _ *http.Request, f httpguard.Refusal) {
	code := map[httpguard.Reason]string{
		httpguard.NoToken: "unauthorized", httpguard.NotFound: "not_found", httpguard.WrongMethod: "method_not_allowed",
		httpguard.Overloaded: "busy", httpguard.Unavailable: "unavailable",
	}[f.Reason]
	write(w, f.Status, errorOf(cmp.Or(code, "denied"), f.Message))
}

// write answers with JSON, or without a body if it is nil.
func write(w http.ResponseWriter, status int, body any) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if body == nil {
		w.WriteHeader(status)
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if part, ok := body.(*partOfDocument); ok {
		if err := part.write(w); err != nil {
			panic(http.ErrAbortHandler) // so that the client notices that the answer is not complete
		}
		return
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(body) // an error means that the client is gone
}

// chunksAtOnce is how many chunks of a document are in memory at the same time.
const chunksAtOnce = 1000

// A partOfDocument is a document with its first chunks.
type partOfDocument struct {
	*kb.Document
	more func(from, to int) (*kb.Document, error) // returns it with other chunks
}

// write writes the document with all of its chunks as JSON.
func (p *partOfDocument) write(w io.Writer) error {
	out := bufio.NewWriter(w)
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	// add writes a value without the last characters of its JSON.
	add := func(v any, without string) error {
		buf.Reset()
		err := e.Encode(v)
		if err == nil {
			_, err = out.Write(bytes.TrimSuffix(buf.Bytes(), []byte(without+"\n")))
		}
		return err
	}
	if err := add(p.Document, "]}"); err != nil {
		return err
	}
	for n := len(p.Chunks); n < p.TotalChunks; {
		d, err := p.more(n, n+chunksAtOnce)
		if err == nil && (len(d.Chunks) == 0 || d.TotalChunks != p.TotalChunks || !d.UpdatedAt.Equal(p.UpdatedAt)) {
			err = fmt.Errorf("document %d has changed: %w", p.ID, errkind.Conflict)
		}
		if err != nil {
			return err
		}
		for _, c := range d.Chunks {
			out.WriteByte(',')
			if err := add(c, ""); err != nil {
				return err
			}
		}
		n += len(d.Chunks)
	}
	out.WriteString("]}\n")
	return out.Flush()
}

//go:embed openapi.json
var openAPI []byte

// openAPI answers with the description of the API.
func (c *call) openAPI() (int, any, error) {
	var d map[string]any
	if err := json.Unmarshal(openAPI, &d); err != nil {
		return 0, nil, err
	}
	d["servers"] = []any{map[string]any{"url": cmp.Or(c.o.Prefix, "/")}}
	return http.StatusOK, d, nil
}

func (c *call) search() (int, any, error) {
	q := struct {
		kb.SearchQuery
		Top *int `json:"top"`
	}{}
	if err := c.decode(&q, maxJSON, "shorten the query"); err != nil {
		return 0, nil, err
	}
	q.SearchQuery.Top = kb.DefaultTop
	if q.Top != nil {
		q.SearchQuery.Top = *q.Top
	}
	r, err := c.o.Base.Search(c.r.Context(), q.SearchQuery)
	return http.StatusOK, r, err
}

func (c *call) jobs() (int, any, error) {
	p, err := c.params("status", "limit")
	if err != nil {
		return 0, nil, err
	}
	limit, err := p.integer("limit", kb.DefaultLimit)
	if err != nil {
		return 0, nil, err
	}
	jobs, err := c.o.Base.Jobs(c.r.Context(), kb.JobFilter{Status: p["status"], Limit: limit})
	return http.StatusOK, map[string]any{"jobs": jobs}, err
}

func (c *call) job() (int, any, error) {
	id, err := c.id("job_id")
	if err != nil {
		return 0, nil, err
	}
	j, err := c.o.Base.Job(c.r.Context(), id)
	return http.StatusOK, j, err
}

func (c *call) documents() (int, any, error) {
	p, err := c.params("source_path", "tag", "collection", "added", "limit", "offset")
	if err != nil {
		return 0, nil, err
	}
	f := kb.DocumentFilter{SourcePath: p["source_path"], Tag: p["tag"], Collection: p["collection"],
		Added: p["added"] == "true"}
	if added, ok := p["added"]; ok && added != "true" && added != "false" {
		return 0, nil, &errkind.Argument{Name: "added", Value: added, Want: "true or false"}
	}
	if f.Limit, err = p.integer("limit", kb.DefaultLimit); err != nil {
		return 0, nil, err
	}
	if f.Offset, err = p.integer("offset", 0); err != nil {
		return 0, nil, err
	}
	list, err := c.o.Base.Documents(c.r.Context(), f)
	return http.StatusOK, list, err
}

func (c *call) collections() (int, any, error) {
	names, err := c.o.Base.Collections(c.r.Context())
	if names == nil {
		names = []string{}
	}
	return http.StatusOK, map[string]any{"collections": names}, err
}

func (c *call) document() (int, any, error) {
	return c.withID(func(ctx context.Context, id int64) (any, error) {
		more := func(from, to int) (*kb.Document, error) { return c.o.Base.Document(ctx, id, from, to) }
		d, err := more(0, chunksAtOnce)
		if err != nil || len(d.Chunks) == d.TotalChunks {
			return d, err
		}
		return &partOfDocument{d, more}, nil
	})
}

// withID calls f with the ID in the path.
func (c *call) withID(f func(ctx context.Context, id int64) (any, error)) (int, any, error) {
	id, err := c.id("id")
	if err != nil {
		return 0, nil, err
	}
	body, err := f(c.r.Context(), id)
	return http.StatusOK, body, err
}

func (c *call) deleteDocument() (int, any, error) {
	_, _, err := c.withID(func(ctx context.Context, id int64) (any, error) { return nil, c.o.Base.Delete(ctx, id) })
	return http.StatusNoContent, nil, err
}

func (c *call) addTags() (int, any, error) {
	return c.withID(func(ctx context.Context, id int64) (any, error) {
		var body struct {
			Tags []string `json:"tags"`
		}
		if err := c.decode(&body, maxJSON, "send fewer tags at once"); err != nil {
			return nil, err
		}
		tags, err := c.o.Base.AddTags(ctx, id, body.Tags)
		return map[string]any{"tags": tags}, err
	})
}

func (c *call) removeTag() (int, any, error) {
	return c.withID(func(ctx context.Context, id int64) (any, error) {
		tags, err := c.o.Base.RemoveTag(ctx, id, c.values["tag"])
		return map[string]any{"tags": tags}, err
	})
}

func (c *call) updateNote() (int, any, error) {
	return c.withID(func(ctx context.Context, id int64) (any, error) {
		var change kb.NoteChange
		if err := c.decode(&change, maxNote, noteAdvice); err != nil {
			return nil, err
		}
		return c.o.Base.UpdateNote(ctx, id, change)
	})
}

func (c *call) status() (int, any, error) {
	s, err := c.o.Base.Status(c.r.Context())
	return http.StatusOK, s, err
}
