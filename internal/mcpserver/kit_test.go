package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver/mcptest"
)

var testDomain = &mcpserver.Domain{ID: "finance", Name: "Finance", Description: "Reports & <figures>",
	LabelFilter: "fin"}

// kit is a server with tools that do what a test tells them to.
type kit struct {
	server  *mcpserver.Server
	started chan string   // receives the name argument of the hold tool
	release chan struct{} // the hold tool continues when this is closed
	causes  chan error    // why the context of the hold tool ended
}

type searchIn struct {
	Query    string   `json:"query" jsonschema:"What to look for." limits:"minLength=1 maxLength=20"`
	PageSize int      `json:"pageSize,omitempty" limits:"minimum=1 maximum=100 default=20"`
	Exact    bool     `json:"exact,omitempty"`
	Sort     string   `json:"sort,omitempty" limits:"enum=score|date"`
	Fields   []string `json:"fields,omitempty" limits:"maxItems=3"`
	Boost    float64  `json:"boost,omitempty" limits:"maximum=10"`
	Facets   struct {
		Field []string `json:"field,omitempty" limits:"oneOrMany"`
		Size  int      `json:"size,omitempty" limits:"minimum=1 maximum=1000 default=10"`
	} `json:"facets,omitzero"`
}

// searchOut is a searchIn that leaves nothing out.
type searchOut struct {
	Query    string   `json:"query"`
	PageSize int      `json:"pageSize"`
	Exact    bool     `json:"exact"`
	Sort     string   `json:"sort"`
	Fields   []string `json:"fields"`
	Boost    float64  `json:"boost"`
	Facets   struct {
		Field []string `json:"field"`
		Size  int      `json:"size"`
	} `json:"facets"`
}

func newKit(o mcpserver.Options) *kit {
	o.Name, o.Title, o.Version, o.Domain = "knowhow", "Knowhow", "1.2.3", testDomain
	k := &kit{server: mcpserver.New(o), started: make(chan string, 100), release: make(chan struct{}),
		causes: make(chan error, 100)}
	mcpserver.AddTool(k.server, mcpserver.Tool{
		Name: "search", Title: "Search", Description: "Searches <everything> & more.", ReadOnly: true, Idempotent: true,
		Meta: map[string]any{"kind": "sample"},
	}, func(_ context.Context, in searchIn) (any, error) { return searchOut(in), nil })
	k.addBehaviours()
	k.server.SetResources(documents{}, mcpserver.Template{URITemplate: "fess://finance/doc/{docId}", Name: "document",
		MIMEType: "application/json"})
	return k
}

type nameIn struct {
	Name string `json:"name,omitempty"`
}

func (k *kit) addBehaviours() {
	add := func(name string, h func(context.Context, nameIn) (any, error)) {
		mcpserver.AddTool(k.server, mcpserver.Tool{Name: name, Title: name, Description: name}, h)
	}
	add("echo", func(_ context.Context, in nameIn) (any, error) { return map[string]string{"name": in.Name}, nil })
	add("hold", func(ctx context.Context, in nameIn) (any, error) {
		k.started <- in.Name
		select {
		case <-k.release:
			return map[string]string{"held": in.Name}, nil
		case <-ctx.Done():
			k.causes <- context.Cause(ctx)
			return nil, ctx.Err()
		}
	})
	add("stuck", func(_ context.Context, in nameIn) (any, error) {
		k.started <- in.Name
		<-k.release
		return nil, nil
	})
	add("progress", func(ctx context.Context, _ nameIn) (any, error) {
		for _, done := range []float64{1, 1, 0.5, 2, 3} {
			mcpserver.Progress(ctx, done, 3, fmt.Sprintf("at %g", done))
		}
		return "done", nil
	})
	add("job", func(ctx context.Context, _ nameIn) (any, error) {
		ctx = context.WithoutCancel(ctx)
		go func() {
			<-k.release
			for i := range 3 {
				mcpserver.Progress(ctx, float64(i+1), 0, "working")
			}
		}()
		return map[string]string{"jobId": "j1"}, nil
	})
	add("meta", func(context.Context, nameIn) (any, error) {
		return &mcpserver.Result{Value: map[string]string{"html": "<b>&amp;</b>"}, Meta: map[string]any{"took": 5}}, nil
	})
	add("list", func(context.Context, nameIn) (any, error) { return []int{1, 2}, nil })
	add("panic", func(context.Context, nameIn) (any, error) { panic("boom") })
	add("fail", func(_ context.Context, in nameIn) (any, error) { return nil, failures[in.Name] })
}

// failures are what the fail tool returns, by its name argument.
var failures = map[string]error{
	"plain":       errors.New("dial tcp 10.0.0.1: secret"),
	"argument":    &errkind.Argument{Name: "sort", Value: "x", Want: "score or date"},
	"notfound":    fmt.Errorf("there is no document %q: %w", "d1", errkind.NotFound),
	"conflict":    fmt.Errorf("the note was changed: %w", errkind.Conflict),
	"denied":      fmt.Errorf("PDF files are off, set contentFetch.enablePdf: %w", errkind.Denied),
	"login":       fmt.Errorf("the token is wrong: %w", errkind.Unauthorized),
	"large":       fmt.Errorf("the text is too long: %w", errkind.TooLarge),
	"unsupported": fmt.Errorf("no such backend: %w", errkind.Unsupported),
	"busy":        fmt.Errorf("the queue is full: %w", errkind.Busy),
	"unavailable": fmt.Errorf("the index is closed: %w", errkind.Unavailable),
	"timeout":     fmt.Errorf("the index did not answer: %w", errkind.Timeout),
	"corrupt":     fmt.Errorf("the index is damaged: %w", errkind.Corrupt),
	"deadline":    fmt.Errorf("searching 10.0.0.1: %w", context.DeadlineExceeded),
	"own": &mcpserver.Error{Err: fmt.Errorf("no dataset x: %w", errkind.NotFound), Code: "DATASET_NOT_FOUND",
		Data: map[string]any{"dataset": "x"}},
	"remote": &errkind.Remote{Endpoint: "/api/v1/documents", Status: 500, Kind: errkind.Unsupported, Code: "E42",
		Message: "Fess failed, see its log"},
	"unreachable": fmt.Errorf("searching: %w", &errkind.Remote{Endpoint: "/json",
		Status: 502, Message: "Fess was not reached, check fessBaseUrl"}),
	"slow": &errkind.Remote{Endpoint: "/json", Status: 504, Kind: errkind.Timeout,
		Message: "Fess did not answer in time"},
	"throttled": &errkind.Remote{Endpoint: "/json", Status: 429, Kind: errkind.Busy, Message: "Fess is busy",
		Retry: 3 * time.Second},
	"rejected": fmt.Errorf("searching: %w", &errkind.Remote{Endpoint: "/json", Status: 400, Kind: errkind.Invalid,
		Message: "Fess does not understand the query"}),
	"clash": &errkind.Remote{Endpoint: "/doc", Status: 409, Kind: errkind.Conflict, Message: "the note was changed"},
	"oversize": &errkind.Remote{Endpoint: "/doc", Status: 413, Kind: errkind.TooLarge,
		Message: "the document is too large"},
	"gone": &errkind.Remote{Endpoint: "/doc", Status: 404, Kind: errkind.NotFound,
		Message: "there is no such document"},
	"two lines": fmt.Errorf("one\n two\x00\xff: %w", errkind.Conflict),
}

// documents is 250 resources and the three parts of each.
type documents struct{}

func (documents) ListResources(_ context.Context, cursor string) (*mcpserver.ResourceList, error) {
	start, err := strconv.Atoi("0" + cursor)
	if err != nil || start > 249 {
		return nil, &errkind.Argument{Name: "cursor", Value: cursor, Want: "a nextCursor"}
	}
	l := &mcpserver.ResourceList{}
	for i := start; i < min(start+100, 250); i++ {
		l.Resources = append(l.Resources, mcpserver.Resource{URI: fmt.Sprintf("fess://finance/doc/d%d",
			i), Name: fmt.Sprintf("d%d", i),
			MIMEType: "application/json", Meta: map[string]any{"doc_id": i}})
	}
	if start+100 < 250 {
		l.NextCursor = strconv.Itoa(start + 100)
	} else {
		l.Meta = map[string]any{"total": 250}
	}
	return l, nil
}

func (documents) ReadResource(_ context.Context, uri, cursor string) (*mcpserver.Contents, error) {
	switch uri {
	case "fess://finance/doc/d1/content", "fess://finance/doc/d1/content?lang=en":
	case "fess://finance/doc/empty":
		return &mcpserver.Contents{IsLast: true}, nil
	default:
		return nil, fmt.Errorf("there is no resource %q: %w", uri, errkind.NotFound)
	}
	parts := []string{"first <", "second", "third"}
	n, err := strconv.Atoi("0" + cursor)
	if err != nil || n > 2 {
		return nil, &errkind.Argument{Name: "cursor", Value: cursor, Want: "a nextCursor"}
	}
	c := &mcpserver.Contents{MIMEType: "text/plain", Text: parts[n], Meta: map[string]any{"hash": "sha256:00"},
		ResultMeta: map[string]any{"took": 1}, IsLast: n == 2}
	if n < 2 {
		c.NextCursor = strconv.Itoa(n + 1)
	}
	return c, nil
}

// stdio starts the kit's server on pipes.
func (k *kit) stdio(t testing.TB) *mcptest.Session {
	t.Helper()
	return mcptest.Stdio(t, k.server.ServeStdio)
}

// memory is a listener that is reached without a network, so that it works in
// a synctest bubble.
type memory struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { m.once.Do(func() { close(m.done) }); return nil }
func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7411} }

// memoryConn says that it was reached on loopback.
type memoryConn struct{ net.Conn }

func (memoryConn) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7411} }

// site is the kit's server on HTTP, in memory.
type site struct {
	handler *mcpserver.HTTPHandler
	client  *http.Client
	url     string
}

func (k *kit) http(t testing.TB, o mcpserver.HTTPOptions) *site {
	t.Helper()
	return k.guarded(t, o, httpguard.Options{})
}

// guarded is http with checks of the listener besides those that it has anyway.
func (k *kit) guarded(t testing.TB, o mcpserver.HTTPOptions, g httpguard.Options) *site {
	t.Helper()
	m := &memory{conns: make(chan net.Conn), done: make(chan struct{})}
	h := k.server.HTTP(o)
	hs := &http.Server{Handler: guard(h, g)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = hs.Serve(m) // always an error: closed
	}()
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case m.conns <- memoryConn{theirs}:
			return ours, nil
		case <-m.done:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(func() {
		if err := h.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown() = %v, want nil", err)
		}
		tr.CloseIdleConnections()
		hs.Close()
		<-ended
	})
	return &site{handler: h, client: &http.Client{Transport: tr}, url: "http://127.0.0.1:7411/mcp"}
}

// guard mounts an endpoint at /mcp.
func guard(h *mcpserver.HTTPHandler, g httpguard.Options) http.Handler {
	g.Routes, g.Refuse = []httpguard.Route{h.Route("/mcp")}, mcpserver.Refuse
	return httpguard.New(g)
}

func (s *site) session(t testing.TB) *mcptest.Session {
	t.Helper()
	return mcptest.HTTPClient(t, s.client, s.url, nil)
}

// request sends one HTTP request and returns the status, the header and the
// body.
func (s *site) request(t testing.TB, method, body string, header map[string]string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequest(method, s.url, reader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range header {
		switch {
		case name == "Host":
			req.Host = value
		case name == "Path":
			req.URL.Path = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
	}
	res, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() // read to its end
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(b)
}

// transports runs a test on stdio and on HTTP, with streams and without.
func transports(t *testing.T, o mcpserver.Options, test func(t *testing.T, k *kit, s *mcptest.Session)) {
	t.Run("stdio", func(t *testing.T) {
		k := newKit(o)
		test(t, k, k.stdio(t))
	})
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprintf("http,sse=%t", !off), func(t *testing.T) {
			k := newKit(o)
			test(t, k, k.http(t, mcpserver.HTTPOptions{DisableSSE: off}).session(t))
		})
	}
}

func field(t testing.TB, raw json.RawMessage, path ...string) string {
	t.Helper()
	for _, p := range path {
		var m map[string]json.RawMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatalf("%s in %s: %v", p, raw, err)
		}
		raw = m[p]
	}
	return string(raw)
}
