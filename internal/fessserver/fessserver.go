// Package fessserver serves Fess's HTTP API over any search implementation: API
// v1 as in Fess 15.4, API v2 as in Fess 15.7, and the page /cache/. Clients of Fess,
// package fess among them, can use it.
//
// Answers have the keys, types, defaults, limits and statuses that were
// recorded from these servers. The differences are:
//
//   - No operator in a query can undo the condition on a label (fields.label).
//     Fess appends the condition to the text of the query.
//   - Some requests that Fess answers with an empty page give an error: 500 if
//     the search fails, 400 for a facet that Fess does not count, a malformed
//     number, a bound that is not a date, and a start below 0.
//   - Words are joined with AND, also if the implementation treats a query of
//     words alone in another way.
//
// If the implementation lacks a function of Fess, the answer is that of a Fess
// server without such data: a field that is not counted has no counts, and no
// document is near a location.
//
// Every document with a text has a cached copy. A request for one document by
// its ID returns its text in the field content, unless it is long. There is no
// CORS and no session.
//
// The handler does not check the token, Host or Origin: mount it with [Route]
// on a server that does.
package fessserver

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Options configure the handler.
type Options struct {
	Backend search.Service
	Prefix  string       // path before /api, for example "/fess"; "" for none
	Log     *slog.Logger // nil discards
}

// maxURL is the maximum length of a request's target in bytes, as in Tomcat.
const maxURL = 8 << 10

// New returns a handler for all paths below o.Prefix. It accepts paths with
// repeated slashes and with a slash at the end, as Fess does. An
// [http.ServeMux] in front of it must not redirect them.
func New(o Options) http.Handler { return newHandler(o) }

// Route mounts a new handler at o.Prefix on a guarded listener. Refusals have the
// form of the API that the path belongs to.
func Route(o Options) httpguard.Route {
	h := newHandler(o)
	return httpguard.Route{Path: cmp.Or(h.prefix, "/"), Tree: true, Handler: h, Refuse: h.refuse}
}

func newHandler(o Options) *handler {
	h := &handler{backend: o.Backend, prefix: strings.TrimRight(o.Prefix, "/"), log: o.Log}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	return h
}

// A handler serves the API. It is safe for concurrent use.
type handler struct {
	backend search.Service
	prefix  string
	log     *slog.Logger
}

// A call is one request.
type call struct {
	*handler
	w      http.ResponseWriter
	r      *http.Request
	path   string // below the API's own path, without a slash at the end
	params url.Values
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if max(len(r.RequestURI), len(r.URL.Path)+len(r.URL.RawQuery)) > maxURL {
		writeHTML(w, http.StatusBadRequest, "The address is too long: it may have 8192 bytes.")
		return
	}
	// A semicolon has no special meaning in Fess.
	params, err := url.ParseQuery(strings.ReplaceAll(r.URL.RawQuery, ";", "%3B"))
	if err != nil {
		writeHTML(w, http.StatusBadRequest, "The parameters are not well-formed: write a percent sign as %25.")
		return
	}
	for _, values := range params {
		for i, v := range values {
			values[i] = string([]rune(v)) // U+FFFD for each invalid byte
		}
	}
	c := &call{handler: h, w: w, r: r, params: params}
	below, ok := wire.Below(path.Clean("/"+r.URL.Path), h.prefix)
	if !ok {
		writeHTML(w, http.StatusNotFound, "Nothing is here.")
		return
	}
	if v1, ok := wire.Below(below, "/api/v1"); ok {
		c.path = v1
		c.serveV1()
		return
	}
	if v2, ok := wire.Below(below, "/api/v2"); ok {
		c.path = v2
		c.serveV2()
		return
	}
	if below == "/cache" {
		c.cachePage()
		return
	}
	writeHTML(w, http.StatusNotFound,
		"Nothing is here. The API is at "+h.prefix+"/api/v1/documents and "+h.prefix+"/api/v2/search.")
}

// refuse is an [httpguard.RefuseFunc].
func (h *handler) refuse(w http.ResponseWriter, r *http.Request, f httpguard.Refusal) {
	c := &call{handler: h, w: w, r: r}
	below, _ := wire.Below(path.Clean("/"+r.URL.Path), h.prefix)
	if _, ok := wire.Below(below, "/api/v1"); ok {
		c.writeV1(f.Status, wire.Message{Message: f.Message})
	} else if _, ok := wire.Below(below, "/api/v2"); ok {
		c.refuseV2(f.Status, f.Message)
	} else {
		writeHTML(w, f.Status, f.Message)
	}
}

// list returns the values of a parameter that may be repeated.
func (c *call) list(name string) []string { return wire.Values(c.params, name) }
