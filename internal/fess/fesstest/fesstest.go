// Package fesstest provides a fake Fess server for tests. It serves API v1 (as
// Fess 15.4 does), v2 (Fess 15.7) or both over documents in memory. It
// reproduces behaviour that a client must handle:
//
//   - It appends labels, sort order and extra conditions to the query as text
//     and parses the whole as Lucene does, so that a query that ends with an
//     operator matches documents outside the requested label.
//   - It reduces a number of hits above its maximum without an error, and has
//     10 as the default.
//   - It answers 200 with no hits if its search engine fails.
//   - Its error codes have the key "error_code:", numbers may be strings, and
//     empty values may be missing.
//   - Its API v2 answers an invalid token with status 500, and its errors
//     contain details that a caller must not see.
//
// [New] starts a server for one test. A [Handler] is for programs that serve it
// themselves.
package fesstest

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Options configures the fake. The zero Options describe a healthy server at
// "/" that requires no token.
type Options struct {
	ContextPath string // path before /api, such as "/fess"

	// Token is required in every request except health checks, as "Bearer
	// TOKEN" or alone. If it is "", requests need no token, and any token
	// that is not in Roles is refused, as Fess does.
	Token string

	// Roles are further valid tokens with the roles of their owners. If
	// Token is "", requests without a token are those of a guest, who has
	// no roles.
	Roles map[string][]string

	API string // versions of the API: "v1" (also ""), "v2" or "both"

	Engine string // state of the search engine: "green" (also ""), "yellow", "red", or "down"

	MaxPageSize int  // maximum number of hits on a page, 0 means 100; larger numbers are reduced to it
	SendContent bool // hits contain the field content
	OmitColon   bool // as the plugin for Fess 15.7: error codes have the key "error_code", and hits have more fields
	StackTraces bool // errors contain a stack trace instead of their code

	// More holds, by document ID, what a document.Document does not.
	More map[string]More

	Labels       []search.Label // what /labels lists; nil means the documents' labels
	HiddenLabels []HiddenLabel  // labels that /labels lists only for some callers

	// Delay, if set, is called before each answer and may block. It should
	// return when the request's context ends.
	Delay func(*http.Request)
}

// A HiddenLabel is a label that is listed only for some callers.
type HiddenLabel struct {
	search.Label
	Role   string // role of the callers who see it; "" means all
	Locale string // value of Accept-Language; "" means any
}

// More is what a Fess document may have in addition to a document.Document.
type More struct {
	Labels []string // instead of Document.Label; nil means that one
	Roles  []string // roles of the callers who may see it; nil means all
	Point  string   // location, "lat,lon"
	Copy   string   // the stored copy, HTML
	Loaded bool     // loaded through the admin API: numbers are not strings
}

// A Request is a request that the server received.
type Request struct {
	Method string
	Path   string
	Query  string // as sent
	Header http.Header
}

// A Handler is the fake server. It is safe for concurrent use.
type Handler struct {
	o     Options
	docs  []doc
	words []word // for suggestions, the most frequent first

	mu       sync.Mutex // guards the fields below
	engine   string
	requests []Request
}

// NewHandler returns a fake server with docs. It uses their Label, ID, URL,
// Title, Text, Lang, MIMEType, FileType, Filename, Host, Modified and
// Stamp.Size.
func NewHandler(docs []document.Document, o Options) *Handler {
	h := &Handler{o: o, engine: o.Engine}
	if h.engine == "" {
		h.engine = "green"
	}
	if h.o.MaxPageSize <= 0 {
		h.o.MaxPageSize = 100
	}
	for _, d := range docs {
		h.docs = append(h.docs, newDoc(d, o.More[d.ID]))
	}
	h.words = countWords(h.docs)
	if o.Labels == nil {
		for _, d := range docs {
			if !slices.ContainsFunc(h.o.Labels, func(l search.Label) bool { return l.Value == d.Label }) {
				h.o.Labels = append(h.o.Labels, search.Label{Name: strings.ToUpper(d.Label[:1]) + d.Label[1:],
					Value: d.Label})
			}
		}
	}
	return h
}

// SetEngine sets the state of the search engine; see Options.Engine.
func (h *Handler) SetEngine(state string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.engine = state
}

// engineState returns the state of the search engine.
func (h *Handler) engineState() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.engine
}

// Requests returns the requests received since the last Forget, in order.
func (h *Handler) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// Forget forgets the requests received.
func (h *Handler) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = nil
}

// A Server is a running fake server.
type Server struct {
	*Handler
	URL string // for Options.BaseURL of package fess: with the context path, without a trailing slash
}

// New starts a fake server with docs. It stops when the test ends.
func New(t testing.TB, docs []document.Document, o Options) *Server {
	t.Helper()
	h := NewHandler(docs, o)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return &Server{h, s.URL + o.ContextPath}
}
