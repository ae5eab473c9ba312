// Package console serves a web page on which people search the documents that a
// server serves, read them, and see what is indexed.
//
// The page is one static text without data, made of the files in web when it is first
// requested. It searches and reads with the tools of the server's MCP endpoints, so
// people see what agents see. Only what is indexed comes from this package.
package console

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/httpguard"
)

// Options configures the routes of the console.
type Options struct {
	// Status returns the state of the server for the caller of a request.
	Status func(ctx context.Context) (Status, error)

	// Latest is like Status, but may return a status that is a little old: it is called very
	// often.
	Latest func(ctx context.Context) (Status, error)

	// LeftOut returns what is left out of the source with a label, in order.
	LeftOut func(ctx context.Context, label string) ([]Path, error)

	// File returns the original of the document with an ID. The error is of kind NotFound if
	// it has none.
	File func(ctx context.Context, id string) (*File, error)

	// Pages returns the pages of the document with an ID, in order; none if it has none.
	Pages func(ctx context.Context, id string) ([]Page, error)

	// Similar returns the documents that are similar in meaning to the one with an ID, the
	// most similar first.
	Similar func(ctx context.Context, id string) ([]Similar, error)

	// Connect returns how clients are connected to the server, which the caller has reached
	// at a URL without a path.
	Connect func(ctx context.Context, url string) ([]Client, error)

	// Refuse writes refusals for clients that do not ask for a page.
	Refuse httpguard.RefuseFunc

	Log *slog.Logger // nil discards
}

const (
	pagePath = "/"
	dataPath = "/console" // of the data, which is below it

	eventsPath = dataPath + "/events"
)

// Routes returns the routes of the page, of its data, and of the events that tell it about
// changes. They require the token of the listener.
//
// A browser sends no token when it loads a page, so a browser that asks for the
// page without one gets it as the body of the response 401. The page contains no
// data. It asks for the token and sends it with its own requests.
func Routes(o Options) (page, data, events httpguard.Route) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &console{o: o, ended: make(chan struct{})}
	return httpguard.Route{Path: pagePath, Handler: c.method(servePage), Refuse: RefuseWithPage(o.Refuse)},
		httpguard.Route{Path: dataPath, Tree: true, Handler: c.method(c.serveData), Refuse: o.Refuse},
		httpguard.Route{Path: eventsPath, Handler: c.method(c.serveEvents), Refuse: o.Refuse, Shutdown: c.shutdown}
}

// A console serves the routes.
type console struct {
	o     Options
	end   sync.Once
	ended chan struct{} // is closed when the server shuts down
}

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
		writePage(w, r, f.Status)
	}
}

// secure sets the headers of every response.
func secure(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}
