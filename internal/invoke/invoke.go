// Package invoke serves tools of MCP servers over plain HTTP. POST /invoke
// calls a tool, in the two formats of FR-7.2. GET /, /servers, /tools and
// /openapi.json describe the servers and tools. The start command serves it
// over a pool of connections.
package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// Servers are the MCP servers behind the bridge. Implementations must be safe
// for concurrent use.
type Servers interface {
	// Call sends a request to a server and returns the result as the server
	// wrote it, which is valid JSON. It may keep params. Errors are of kind
	// NotFound if no server has this id, Denied if it is disabled, Invalid if
	// its settings are invalid, Unavailable or Timeout; or a
	// [*mcpclient.RemoteError], which is the server's own error.
	Call(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error)

	// Catalog returns the tools of a server. Its errors are those of Call.
	Catalog(ctx context.Context, server string) (*mcpclient.Catalog, error)

	// Status returns all servers, including disabled ones, sorted by id. It
	// connects to none.
	Status() []mcpclient.Status
}

// Options configure the handler.
type Options struct {
	Servers    Servers
	NeedsToken bool         // for the OpenAPI document: a bearer token is required
	Version    string       // of the bridge, for GET / and the OpenAPI document
	Port       int          // the port of the listener, for the OpenAPI document; with 0 it is omitted there
	Log        *slog.Logger // nil discards
}

const (
	// maxInFlight is the maximum number of concurrent requests. Clients are
	// programs on this machine, so the limit is only reached if one of them is
	// faulty.
	maxInFlight = 1000

	maxBody = 4 << 20 // bytes of a request's body
)

// New returns the handler of the whole API. Every response is JSON. An error is
// {"status":"error","error":...,"detail":...}, with a status from the table in
// errors.go.
//
// The handler does not check the token, Host or Origin: mount it with [Routes]
// on a server that does. It checks, in this order, the path (404), the method
// (405), the number of requests in flight (502), and for POST /invoke the
// content type (415) and the size of the body (413).
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &handler{servers: o.Servers, version: o.Version, port: o.Port, log: o.Log,
		needsToken: o.NeedsToken, slots: make(chan struct{}, maxInFlight)}
	h.routes = map[string]route{
		"/":             {forReading, h.health},
		"/servers":      {forReading, h.listServers},
		"/tools":        {forReading, h.listTools},
		"/openapi.json": {forReading, h.openAPI},
		"/invoke":       {http.MethodPost, h.invoke},
	}
	return h
}

// Routes mounts a handler of [New] on a guarded listener. GET / requires no
// token, so that callers can find out whether the bridge runs.
func Routes(h http.Handler) []httpguard.Route {
	return []httpguard.Route{
		{Path: "/", Handler: h, Refuse: Refuse, Open: true},
		{Path: "/", Tree: true, Handler: h, Refuse: Refuse},
	}
}

// forReading is the Allow header of a path that can only be read.
const forReading = "GET, HEAD"

type route struct {
	methods string // separated by commas, as in the Allow header
	handle  func(*http.Request, *exchange) *failure
}

type handler struct {
	servers    Servers
	version    string
	port       int
	log        *slog.Logger
	needsToken bool
	slots      chan struct{}
	routes     map[string]route
}

// An exchange is one request and its response.
type exchange struct {
	body    [][]byte // of the response, in parts
	request request  // to a server, if the path is /invoke
	failure *failure // if not nil, sent instead of body
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	x := &exchange{}
	x.failure = h.work(r, x)
	if x.failure == nil || x.failure.status != statusGone {
		x.send(w, r)
		h.trace(r, x, start)
		return
	}
	h.trace(r, x, start)
	panic(http.ErrAbortHandler) // net/http's way to end a connection without an answer
}

// work handles the request. A panic fails only this request.
func (h *handler) work(r *http.Request, x *exchange) (f *failure) {
	defer h.catch(&f)
	to, ok := h.routes[r.URL.Path]
	if !ok {
		return noRoute(r.URL.Path)
	}
	if !slices.Contains(strings.Split(to.methods, ", "), r.Method) {
		return &failure{status: http.StatusMethodNotAllowed, text: "method not allowed",
			detail: "use " + to.methods + " for this path", header: "Allow", value: to.methods}
	}
	if r.URL.Path != "/" { // which must answer even under load
		select {
		case h.slots <- struct{}{}:
			defer func() { <-h.slots }()
		default:
			return busy(fmt.Sprintf("%d requests are in progress, try again in a second", cap(h.slots)))
		}
	}
	return to.handle(r, x)
}

// catch must be deferred. It turns a panic into a failure.
func (h *handler) catch(f **failure) {
	if v := recover(); v != nil {
		h.log.Error("a request panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		*f = internalFailure()
	}
}

// invoke answers POST /invoke.
func (h *handler) invoke(r *http.Request, x *exchange) *failure {
	req, f := readRequest(r)
	if f != nil {
		return f
	}
	x.request = req
	result, err := h.servers.Call(r.Context(), req.server, req.method, req.params)
	if err != nil {
		f := h.serverFailure(r.Context(), req.server, err)
		if f.remote != nil {
			if hint := h.unknownTool(r.Context(), req); hint != "" {
				f.detail += "; " + hint
			}
		}
		return f
	}
	if len(result) == 0 {
		result = json.RawMessage("null")
	}
	head := []byte(`{"status":"success",`)
	if isError(result) {
		head = append(head, `"isError":true,`...)
		if hint := h.unknownTool(r.Context(), req); hint != "" {
			head = append(compact.AppendString(append(head, `"detail":`...), hint), ',')
		}
	}
	x.body = [][]byte{append(head, `"result":`...), result, []byte("}\n")}
	return nil
}

// isError reports whether a result contains "isError": true.
func isError(result json.RawMessage) bool {
	if !bytes.Contains(result, []byte(`"isError"`)) {
		return false // without reading all of it
	}
	var r struct {
		IsError bool `json:"isError"`
	}
	return json.Unmarshal(result, &r) == nil && r.IsError
}

// unknownTool returns the detail for the call of a tool that the server does
// not have, with similar names. It returns "" if the server has the tool or its
// tools are not known.
func (h *handler) unknownTool(ctx context.Context, req request) string {
	name := req.tool
	if name == "" && req.method == "tools/call" {
		var p struct {
			Name string `json:"name"`
		}
		_ = json.Unmarshal(req.params, &p) // the server handles a call without a name
		name = p.Name
	}
	if name == "" {
		return ""
	}
	c, err := h.servers.Catalog(ctx, req.server)
	if err != nil {
		return ""
	}
	var names []string
	for _, t := range c.Tools {
		if t.Name == name {
			return ""
		}
		names = append(names, t.Name)
	}
	text := "the server " + spell.Quote(req.server) + " has no tool " + spell.Quote(name)
	if near := spell.Near(name, names, 3); len(near) > 0 {
		text += ", did you mean " + spell.List(near) + "?"
	} else if len(names) > 0 {
		text += ", it has " + spell.List(names[:min(len(names), 5)])
	}
	return text + " (GET /tools?server=" + url.QueryEscape(req.server) + " lists its tools)"
}

// readRequest reads and parses the body of POST /invoke.
func readRequest(r *http.Request) (request, *failure) {
	if f := checkType(r.Header); f != nil {
		return request{}, f
	}
	body, f := readBody(r)
	if f != nil {
		return request{}, f
	}
	return parse(body)
}

// trace logs one line about a request, without arguments and results.
func (h *handler) trace(r *http.Request, x *exchange, start time.Time) {
	if !h.log.Enabled(r.Context(), slog.LevelDebug) {
		return
	}
	status := http.StatusOK
	if x.failure != nil {
		status = x.failure.status
	}
	attrs := []slog.Attr{slog.String("path", spell.Quote(r.URL.Path)), slog.Int("status", status)}
	if q := x.request; q.server != "" {
		attrs = append(attrs, slog.String("server", spell.Quote(q.server)),
			slog.String("method", spell.Quote(q.method)))
		if q.tool != "" {
			attrs = append(attrs, slog.String("tool", spell.Quote(q.tool)))
		}
	}
	attrs = append(attrs, slog.Duration("duration", time.Since(start)))
	h.log.LogAttrs(r.Context(), slog.LevelDebug, "request", attrs...)
}

// abandoned returns the failure of a request whose context has ended, or nil.
// The context ends if the client disconnects or the bridge ends.
func abandoned(ctx context.Context) *failure {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(context.Cause(ctx), httpguard.ErrShutdown):
		return &failure{status: http.StatusBadGateway, text: "shutting down",
			detail: "the bridge was ended while the call ran; the server may have carried it out"}
	}
	return &failure{status: statusGone}
}
