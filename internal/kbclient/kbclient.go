// Package kbclient is a client of the engine API of a knowledge base. It
// implements [kb.Base] over HTTP.
//
// What the engine refuses is an error of the kind that [kb.Base] names for it,
// with the engine's message. Every other failure is an *errkind.Remote. Errors
// contain neither the host of the engine nor the key.
package kbclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpclient"
	"github.com/knowhow-mcp/knowhow/internal/kb"
)

// Options that an error can be due to; see [errkind.ReasonOf].
const (
	AddressReason errkind.Reason = "kbclient: BaseURL"
	KeyReason     errkind.Reason = "kbclient: Key"
	TimeoutReason errkind.Reason = "kbclient: Timeout"
)

// Options configure a Client.
type Options struct {
	// BaseURL is the absolute http or https URL of the engine. It may contain a
	// path, which is prefixed to the paths of the API.
	BaseURL string

	Key string // sent as a bearer token; "" for none

	// Timeout is the limit for one request, and for each silence while a file
	// is sent; 0 means 30 s.
	Timeout time.Duration

	UserAgent string            // "" means "knowhow"
	Transport http.RoundTripper // nil means one that uses the proxy of the environment
	Log       *slog.Logger      // nil discards
}

const (
	defaultTimeout = 30 * time.Second
	maxBody        = 128 << 20 // bytes of an answer: a document with all of its chunks

	// attempts is how often a request that changes nothing is sent if the
	// engine cannot be reached or asks to try again, and firstWait the time
	// before the second attempt, which doubles for each further one.
	attempts  = 3
	firstWait = 200 * time.Millisecond
)

// api is the path of the API.
const api = "/api/v1"

// A Client calls one engine. It is safe for concurrent use. Create one with New.
type Client struct {
	base    string // URL without a slash at the end
	options Options
	http    *http.Client
}

var _ kb.Base = (*Client)(nil)

// New returns a client. It makes no request. Invalid options are errors of kind
// Invalid.
func New(o Options) (*Client, error) {
	u, err := httpclient.ParseBaseURL("the address of the engine", o.BaseURL)
	if err != nil {
		return nil, &errkind.Restriction{Reason: AddressReason, Err: err}
	}
	if err := httpclient.CheckKey("the key of the engine", o.Key); err != nil {
		return nil, &errkind.Restriction{Reason: KeyReason, Err: err}
	}
	o.Timeout = cmp.Or(max(o.Timeout, 0), defaultTimeout)
	o.UserAgent = cmp.Or(o.UserAgent, "knowhow")
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	base := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(u.String(), "/"), api), "/")
	return &Client{base: base, options: o, http: httpclient.New(o.Transport)}, nil
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Search implements [kb.Base].
func (c *Client) Search(ctx context.Context, q kb.SearchQuery) (*kb.SearchResult, error) {
	r := &kb.SearchResult{}
	if q.Tags == nil {
		q.Tags = []string{}
	}
	if err := c.call(ctx, request{method: http.MethodPost, path: "/search", body: q, member: "results", safe: true},
		r); err != nil {
		return nil, err
	}
	r.Results = list(r.Results)
	return r, nil
}

// AddNote implements [kb.Base].
func (c *Client) AddNote(ctx context.Context, n kb.Note) (int64, error) {
	n.Tags = list(n.Tags)
	var r struct {
		ID int64 `json:"job_id"`
	}
	err := c.call(ctx, request{method: http.MethodPost, path: "/jobs", member: "job_id", body: struct {
		Type string `json:"type"`
		kb.Note
	}{kb.TypeNote, n}}, &r)
	return r.ID, err
}

// Jobs implements [kb.Base].
func (c *Client) Jobs(ctx context.Context, f kb.JobFilter) ([]kb.Job, error) {
	var r struct {
		Jobs []kb.Job `json:"jobs"`
	}
	q := url.Values{"limit": {strconv.Itoa(f.Limit)}}
	if f.Status != "" {
		q.Set("status", f.Status)
	}
	err := c.call(ctx, request{method: http.MethodGet, path: "/jobs", query: q, member: "jobs", safe: true}, &r)
	return list(r.Jobs), err
}

// Job implements [kb.Base].
func (c *Client) Job(ctx context.Context, id int64) (*kb.Job, error) {
	return get[kb.Job](ctx, c, request{method: http.MethodGet, path: "/jobs/" + number(id), about: "job " + number(id),
		member: "job_id", safe: true})
}

// Document implements [kb.Base].
func (c *Client) Document(ctx context.Context, id int64, from, to int) (*kb.Document, error) {
	d, err := c.document(ctx, aboutDocument(http.MethodGet, "/documents/", id, ""))
	if err == nil { // engines answer with all chunks
		to = min(to, len(d.Chunks))
		d.Chunks = d.Chunks[min(from, to):to]
	}
	return d, err
}

// document makes a request whose answer is a document.
func (c *Client) document(ctx context.Context, r request) (*kb.Document, error) {
	r.member = "document_id"
	d, err := get[kb.Document](ctx, c, r)
	if err == nil {
		d.TotalChunks = len(d.Chunks)
	}
	return d, err
}

// Documents implements [kb.Base].
func (c *Client) Documents(ctx context.Context, f kb.DocumentFilter) (*kb.DocumentList, error) {
	q := url.Values{"limit": {strconv.Itoa(f.Limit)}}
	if f.SourcePath != "" {
		q.Set("source_path", f.SourcePath)
	}
	if f.Tag != "" {
		q.Set("tag", f.Tag)
	}
	if f.Collection != "" {
		q.Set("collection", f.Collection)
	}
	if f.Added {
		q.Set("added", "true")
	}
	if f.Offset != 0 {
		q.Set("offset", strconv.Itoa(f.Offset))
	}
	r, err := get[kb.DocumentList](ctx, c, request{method: http.MethodGet, path: "/documents",
		query: q, member: "documents", safe: true})
	if err == nil {
		r.Documents = list(r.Documents)
	}
	return r, err
}

// UpdateNote implements [kb.Base].
func (c *Client) UpdateNote(ctx context.Context, id int64, change kb.NoteChange) (*kb.Document, error) {
	r := aboutDocument(http.MethodPatch, "/notes/", id, "")
	r.body = change
	return c.document(ctx, r)
}

// AddTags implements [kb.Base].
func (c *Client) AddTags(ctx context.Context, id int64, tags []string) ([]string, error) {
	r := aboutDocument(http.MethodPost, "/documents/", id, "/tags")
	r.body = map[string]any{"tags": list(tags)}
	return c.tags(ctx, r)
}

// RemoveTag implements [kb.Base].
func (c *Client) RemoveTag(ctx context.Context, id int64, tag string) ([]string, error) {
	if tag == "." || tag == ".." {
		// Such a path would be resolved on its way to the engine.
		return nil, &errkind.Argument{Name: "tag", Value: tag, Want: "another tag"}
	}
	left, err := c.tags(ctx, aboutDocument(http.MethodDelete, "/documents/", id, "/tags/"+url.PathEscape(tag)))
	if !errors.Is(err, errkind.NotFound) {
		return left, err
	}
	// Some engines answer so if the document does not have the tag.
	d, err := c.Document(ctx, id, 0, 0)
	if err != nil {
		return nil, err
	}
	return d.Tags, nil
}

func (c *Client) tags(ctx context.Context, r request) ([]string, error) {
	var result struct {
		Tags []string `json:"tags"`
	}
	err := c.call(ctx, r, &result)
	return result.Tags, err
}

// Delete implements [kb.Base].
func (c *Client) Delete(ctx context.Context, id int64) error {
	return c.call(ctx, aboutDocument(http.MethodDelete, "/documents/", id, ""), nil)
}

// Status implements [kb.Base].
func (c *Client) Status(ctx context.Context) (*kb.Status, error) {
	return get[kb.Status](ctx, c, request{method: http.MethodGet, path: "/status", member: "documents", safe: true})
}

// number returns an id as it stands in a path.
func number(id int64) string { return strconv.FormatInt(id, 10) }

// list returns a list that is not nil.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// A request is a call of the API.
type request struct {
	method string
	path   string // below that of the API, escaped
	query  url.Values
	body   any    // sent as JSON; nil for none
	about  string // what the path names and may not exist, such as "document 5"; "" for none
	member string // that the result has: an id, or a value that may be null; "" for none
	safe   bool   // it changes nothing and may be sent more than once
}

// aboutDocument returns a request about a document, whose id is between two
// parts of the path.
func aboutDocument(method, before string, id int64, after string) request {
	return request{method: method, path: before + number(id) + after, about: "document " + number(id),
		safe: method == http.MethodGet}
}

// answeredBy reports whether a JSON object has the member that the result has.
func (r request) answeredBy(answer []byte) bool {
	if r.member == "" {
		return true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(answer, &members) != nil {
		return false
	}
	value, ok := members[r.member]
	return ok && !(strings.HasSuffix(r.member, "_id") && string(value) == "null")
}

// endpoint returns the path for errors.
func (r request) endpoint() string { return api + r.path }

// get returns the result of a call.
func get[T any](ctx context.Context, c *Client, r request) (*T, error) {
	result := new(T)
	if err := c.call(ctx, r, result); err != nil {
		return nil, err
	}
	return result, nil
}

// call makes a call and decodes its result; nil ignores the result.
func (c *Client) call(ctx context.Context, r request, result any) error {
	wait := firstWait
	for n := 1; ; n++ {
		err := c.once(ctx, r, result)
		remote, ok := errors.AsType[*errkind.Remote](err)
		if !ok || !r.safe || n == attempts || !again(remote) {
			return err
		}
		c.options.Log.DebugContext(ctx, "calling the engine again", "endpoint", r.endpoint(), "error", err)
		select {
		case <-time.After(max(wait, remote.Retry)):
			wait *= 2
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// maxRetry is how long a call waits at most because the engine asks for it.
const maxRetry = 2 * time.Second

// again reports whether a call that failed is repeated. A call that took its
// whole time is not, because its caller has waited long enough.
func again(r *errkind.Remote) bool {
	if r.Retry > maxRetry {
		return false
	}
	switch r.Status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return errkind.Retryable(r)
	}
	return false
}

// once sends a request once.
func (c *Client) once(ctx context.Context, r request, result any) error {
	call, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	var body io.Reader
	if r.body != nil {
		text, err := compact.Marshal(r.body)
		if err != nil {
			return fmt.Errorf("encoding a request for the engine: %w", err)
		}
		body = bytes.NewReader(text)
	}
	return c.send(ctx, call, r, body, "application/json", result)
}

// send sends a request with a body. call ends with ctx or when the time of the
// request ends.
func (c *Client) send(ctx, call context.Context, r request, body io.Reader, mediaType string, result any) error {
	u := c.base + r.endpoint()
	if len(r.query) > 0 {
		u += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(call, r.method, u, body)
	if err != nil {
		return fmt.Errorf("preparing a request for the engine: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.options.UserAgent)
	if body != nil {
		req.Header.Set("Content-Type", mediaType)
	}
	if c.options.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.options.Key)
	}
	start := time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		return c.callError(ctx, call, r.endpoint(), err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	c.options.Log.DebugContext(ctx, "called the engine", "endpoint", r.endpoint(), "status", resp.StatusCode, "bytes",
		len(answer),
		"took", time.Since(start).Round(time.Microsecond))
	switch {
	case err != nil:
		return c.callError(ctx, call, r.endpoint(), err)
	case len(answer) > maxBody:
		return &errkind.Remote{Endpoint: r.endpoint(), Status: http.StatusBadGateway,
			Message: "the engine's answer is too large; ask for less"}
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return r.refusal(resp, answer)
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(answer, result); err != nil || !r.answeredBy(answer) {
		return &errkind.Remote{Endpoint: r.endpoint(), Status: http.StatusBadGateway, Reason: AddressReason,
			Message: "the engine answered with something other than the JSON of its API; check its address"}
	}
	return nil
}

// AddFile implements [kb.Base].
func (c *Client) AddFile(ctx context.Context, f kb.File, r io.Reader) (int64, error) {
	if strings.ContainsFunc(f.Filename, unicode.IsControl) {
		// It would be escaped on its way, and arrive as another name.
		return 0, &errkind.Argument{Name: "file", Value: f.Filename, Want: "a file name without control characters"}
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for _, tag := range f.Tags {
		if err := w.WriteField("tags", tag); err != nil {
			return 0, fmt.Errorf("encoding a file for the engine: %w", err)
		}
	}
	if f.SourcePath != "" {
		if err := w.WriteField("source_path", f.SourcePath); err != nil {
			return 0, fmt.Errorf("encoding a file for the engine: %w", err)
		}
	}
	if _, err := w.CreatePart(fileHeader(f)); err != nil {
		return 0, fmt.Errorf("encoding a file for the engine: %w", err)
	}
	end := "\r\n--" + w.Boundary() + "--\r\n"

	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.options.Timeout, func() { cancel(context.DeadlineExceeded) })
	defer silence.Stop()
	body := &watched{Reader: io.MultiReader(&form, r, strings.NewReader(end)),
		read: func() { silence.Reset(c.options.Timeout) }}
	var result struct {
		ID int64 `json:"job_id"`
	}
	err := c.send(ctx, call, request{method: http.MethodPost, path: "/jobs", member: "job_id"}, body,
		w.FormDataContentType(), &result)
	if failed := body.failed.Load(); failed != nil {
		return 0, *failed
	}
	return result.ID, err
}
