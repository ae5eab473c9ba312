// Package console serves a web page on which people search the documents that a
// server serves, read them, and see what is indexed.
//
// The page is one static file without data. It searches and reads with the tools
// of the server's MCP endpoints, so people see what agents see. Only what is
// indexed comes from this package.
package console

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// Options configures the routes of the console.
type Options struct {
	// Status returns what is indexed. It lists the paths that are left out of
	// the source with the label leftOut, if that is not "".
	Status func(ctx context.Context, leftOut string) (Status, error)

	// Refuse writes refusals for clients that do not ask for a page.
	Refuse httpguard.RefuseFunc

	Log *slog.Logger // nil discards
}

// A Status is the state of a server that the page shows.
type Status struct {
	Version   string     `json:"version"`
	Endpoints []Endpoint `json:"endpoints"` // with search tools, the first one preselected
	Sources   []Source   `json:"sources"`
	Vectors   *Vectors   `json:"vectors,omitempty"` // nil if the documents are searched by words only
}

// Vectors is how many passages of all sources can be found by meaning.
type Vectors struct {
	Done    int   `json:"done"`
	Total   int   `json:"total"`
	Seconds int64 `json:"secondsLeft,omitempty"` // an estimate; 0 if it is not known
}

// An Endpoint is an MCP endpoint with the tools DOMAIN_search,
// DOMAIN_read_content and DOMAIN_get_document.
type Endpoint struct {
	Path   string `json:"path"` // such as "/mcp/docs"
	Domain string `json:"domain"`
	Label  string `json:"label,omitempty"` // of the only source; "" for all sources
}

// A Source counts the indexed documents of a source.
type Source struct {
	Label       string         `json:"label"`
	Path        string         `json:"path"`
	Description string         `json:"description,omitempty"`
	Kind        string         `json:"kind,omitempty"` // fess, datasets or kb: it is asked, not indexed, and what follows is zero
	Documents   int            `json:"documents"`
	TextBytes   int64          `json:"textBytes"`
	Watched     bool           `json:"watched"`              // by any process
	Indexing    *Progress      `json:"indexing,omitempty"`   // of documents; nil if none remain to be indexed
	Incomplete  string         `json:"incomplete,omitempty"` // what is missing, and why indexing has stopped, as a sentence
	LeftOut     map[string]int `json:"leftOut"`              // number of files and folders by reason
	InPart      map[string]int `json:"inPart,omitempty"`     // number of files that are indexed except for a part
	Paths       []Path         `json:"leftOutPaths,omitempty"`
}

// A Progress is how much of a number is done.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// A Path is a file or a folder that is left out.
type Path struct {
	Path    string `json:"path"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

const (
	pagePath   = "/"
	statusPath = "/console/status"
)

// Routes returns the routes of the page and of its data. Both require the token
// of the listener.
//
// A browser sends no token when it loads a page, so a browser that asks for the
// page without one gets it as the body of the response 401. The page contains no
// data. It asks for the token and sends it with its own requests.
func Routes(o Options) (page, status httpguard.Route) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &console{o}
	return httpguard.Route{Path: pagePath, Handler: c.method(servePage), Refuse: RefuseWithPage(o.Refuse)},
		httpguard.Route{Path: statusPath, Handler: c.method(c.serveStatus), Refuse: o.Refuse}
}

// A console serves the routes.
type console struct{ o Options }

// method refuses all methods but GET and HEAD.
func (c *console) method(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			h(w, r)
			return
		}
		w.Header().Set("Allow", "GET, HEAD")
		c.o.Refuse(w, r, httpguard.Refusal{Reason: httpguard.WrongMethod, Status: http.StatusMethodNotAllowed,
			Message: "this method is not allowed here, use GET or HEAD"})
	})
}

// RefuseWithPage returns a function that answers a browser that has no token
// with the page, and others with refuse. The page works at every path.
func RefuseWithPage(refuse httpguard.RefuseFunc) httpguard.RefuseFunc {
	return func(w http.ResponseWriter, r *http.Request, f httpguard.Refusal) {
		browser := (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
			strings.Contains(r.Header.Get("Accept"), "text/html")
		if f.Reason != httpguard.NoToken || !browser {
			refuse(w, r, f)
			return
		}
		writePage(w, f.Status)
	}
}

//go:embed page.html
var page []byte

// policy is the Content-Security-Policy of the page: nothing but its own script
// and style, and requests to this server. With Trusted Types, a browser refuses
// to read text as HTML.
var policy = "default-src 'none'; script-src '" + hash("script") + "'; style-src '" + hash("style") +
	"'; img-src data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// hash returns the source expression for the content of an element of the page.
func hash(element string) string {
	_, text, _ := strings.Cut(string(page), "<"+element+">")
	text, _, _ = strings.Cut(text, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func servePage(w http.ResponseWriter, _ *http.Request) { writePage(w, http.StatusOK) }

func writePage(w http.ResponseWriter, status int) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
	secure(h)
	w.WriteHeader(status)
	_, _ = w.Write(page) // an error means that the client is gone
}

// secure sets the headers of every response.
func secure(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}

// serveStatus sends the status as JSON. The parameter left-out is the label of
// the source whose paths are listed.
func (c *console) serveStatus(w http.ResponseWriter, r *http.Request) {
	status, err := c.o.Status(r.Context(), r.URL.Query().Get("left-out"))
	if err != nil {
		c.o.Log.Error("reading the status", "error", err)
		f := httpguard.Refusal{Status: http.StatusInternalServerError,
			Message: "the index cannot be read, see the log of knowhow"}
		if errors.Is(err, errkind.Unavailable) || errors.Is(err, errkind.Timeout) {
			f = httpguard.Refusal{Status: http.StatusServiceUnavailable,
				Message: "the store of the documents does not answer, try again later or see the log of knowhow"}
		}
		c.o.Refuse(w, r, f)
		return
	}
	body, err := json.Marshal(status)
	if err != nil {
		c.o.Log.Error("encoding the status", "error", err)
		c.o.Refuse(w, r, httpguard.Refusal{Status: http.StatusInternalServerError,
			Message: "the status cannot be sent, see the log of knowhow"})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	secure(w.Header())
	_, _ = w.Write(append(body, '\n'))
}
