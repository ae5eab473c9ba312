// Package fesstest is a fake Fess server for tests of package fess and of what
// is built on it. It serves API v1 (as Fess 15.4 does), v2 (Fess 15.7) or both
// over documents in memory, with the habits that a client must know:
//
//   - It joins labels, sort order and extra conditions to the query as text and
//     parses the whole as Lucene does, so that a query with an operator at its
//     end reaches beyond the label asked for.
//   - It clamps the number of hits without a word and has 10 for its default.
//   - It answers 200 with no hits where its engine fails.
//   - Its error codes have the key "error_code:", its numbers may be strings,
//     and what is empty may be missing.
//   - Its API v2 answers a bad token with status 500, and says in its errors
//     what a caller must not see.
//
// [New] starts a server for one test; a [Handler] is the same for programs that
// serve it themselves.
package fesstest

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"knowhow/internal/document"
	"knowhow/internal/search"
)

// Options say what kind of Fess server is faked. The zero Options are a healthy
// server at "/" that is open to everyone.
type Options struct {
	ContextPath string // path before /api, such as "/fess"

	// Token must come with every request as "Bearer TOKEN" or alone, but
	// for those for health. Without it no token is known, and one that is
	// sent is refused, as Fess does.
	Token string

	// Roles are further tokens that are good, each with the roles of its
	// owner. With a Token they are as good as it; without, requests
	// without a token are those of a guest, who has no role.
	Roles map[string][]string

	API string // versions of the API: "v1" (also ""), "v2" or "both"

	Engine string // state of the search engine: "green" (also ""), "yellow", "red", or "down"

	MaxPageSize int  // hits a page at most, 0 means 100; more is clamped
	SendContent bool // hits hold the field content
	OmitColon   bool // as the plugin for Fess 15.7: error codes have the key "error_code", hits more fields
	StackTraces bool // errors hold a stack trace in place of their code
	Scroll      bool // /documents/all is switched on
	Favorites   bool // favorites are switched on; every call for them lacks a session

	// More says by document ID what a document.Document has no room for.
	More map[string]More

	Labels       []search.Label // what /labels lists; nil means the documents' labels
	HiddenLabels []HiddenLabel  // what it lists for some only

	// Delay, if set, is called before each answer and may block. It should
	// return when the request's context ends.
	Delay func(*http.Request)
}

// A HiddenLabel is a label that not everyone sees in the list.
type HiddenLabel struct {
	search.Label
	Role   string // who sees it; "" is everyone
	Locale string // in which Accept-Language; "" is any
}

// More is what a Fess document may have beside what a document.Document holds.
type More struct {
	Labels []string // in place of Document.Label; nil means that one
	Roles  []string // who may see it; nil means everyone
	Point  string   // where it is, "lat,lon"
	Copy   string   // the stored copy, HTML
	Loaded bool     // it came through the administration's API: its numbers are numbers
}

// A Request is a request that the server got.
type Request struct {
	Method string
	Path   string
	Query  string // as sent
	Header http.Header
}

// A Handler is the fake. It is safe for concurrent use.
type Handler struct {
	o     Options
	docs  []doc
	words []word // for suggestions, the most frequent first

	mu       sync.Mutex // guards what follows
	engine   string
	requests []Request
}

// NewHandler returns a fake over docs, of which it uses Label, ID, URL, Title,
// Text, Lang, MIMEType, FileType, Filename, Host, Modified and Stamp.Size.
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
				h.o.Labels = append(h.o.Labels, search.Label{Name: strings.ToUpper(d.Label[:1]) + d.Label[1:], Value: d.Label})
			}
		}
	}
	return h
}

// SetEngine changes the state of the search engine, as in Options.
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

// Requests returns the requests so far, in the order in which they came.
func (h *Handler) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// Forget drops the requests so far.
func (h *Handler) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = nil
}

// A Server is a running fake.
type Server struct {
	*Handler
	URL string // for Options.BaseURL of package fess: with the context path, without a slash at its end
}

// New starts a fake over docs, which ends with the test.
func New(t testing.TB, docs []document.Document, o Options) *Server {
	t.Helper()
	h := NewHandler(docs, o)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return &Server{h, s.URL + o.ContextPath}
}
