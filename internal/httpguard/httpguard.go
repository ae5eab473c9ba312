// Package httpguard serves handlers on an HTTP listener to those who may use
// them. Before a handler sees a request, the package checks its bearer token,
// its Host (against DNS rebinding) and the web page that sent it. It bounds the
// time that headers and bodies may take, answers health checks, and ends
// gracefully.
//
// Handlers know nothing of tokens. A [Route] mounts a handler and names the
// function that writes refusals in the form that the clients of the handler
// understand.
package httpguard

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"knowhow/internal/spell"
)

// HealthPath is the path that answers GET and HEAD with 200 and
// {"status":"ok"} while the server runs. It requires no token, so that probes
// need none. Host and Origin are checked there as everywhere: a web page must
// not learn from it what runs on this machine. A request without a Host, which
// browsers never send and some load balancers do, passes there.
const HealthPath = "/healthz"

// Options describes a [Server].
type Options struct {
	Token          string   // the bearer token that requests must carry; "" requires none
	AllowedOrigins []string // origins of web pages that may send requests, besides those of this machine, for example "https://app.example"
	AllowedHosts   []string // hosts that pass on a loopback listener besides those of this machine, with or without a port

	// HostHint and OriginHint say in the message of a refusal how to allow the
	// Host or the Origin, for example "set allowedHosts". They may be "".
	HostHint, OriginHint string

	Routes []Route

	// Refuse writes the refusals of routes without a function of their own, of
	// paths without a route, and of HealthPath. nil writes plain text.
	Refuse RefuseFunc

	// Drain is how long requests may still run when the server ends, and Grace
	// how long they may then take to notice that they were cancelled. With 0
	// they get no time.
	Drain, Grace time.Duration

	Log *slog.Logger // nil discards
}

// A Route mounts a handler.
//
// The body of a request must arrive within 30 seconds, or within 5 if the route
// is Open; after that, reading it fails.
type Route struct {
	Path string // clean, for example "/mcp"; only this path
	Tree bool   // also all paths below Path; of several trees the longest holds
	Open bool   // requires no token

	// Handler serves the requests that pass. Their paths are as the client
	// sent them, repeated slashes and dots included: nothing is redirected.
	// nil refuses them with 404.
	Handler http.Handler

	Refuse RefuseFunc // nil is that of the Options

	// Methods are those that web pages of allowed origins may use (CORS), and
	// Expose the headers of responses that they may read, as lists with
	// commas. Without Methods there is no CORS: such pages can send requests
	// but not read the responses.
	Methods, Expose string

	// Shutdown, if set, is called when the server ends, before the listener
	// closes, to end what would keep connections busy. Its context ends after
	// Drain.
	Shutdown func(context.Context) error
}

// A RefuseFunc writes a refusal as the response: the status, and the message in
// the form that the clients of a handler understand. WWW-Authenticate and Allow
// are set before.
type RefuseFunc func(http.ResponseWriter, *http.Request, Refusal)

// A Reason says why a request is refused.
type Reason int

// The reasons.
const (
	NoToken       Reason = iota // 401: the token is missing or wrong
	ForeignHost                 // 403: the Host names another machine
	ForeignOrigin               // 403: a web page that is not allowed sent the request
	NotFound                    // 404
	WrongMethod                 // 405
)

// A Refusal says why a request is not served.
type Refusal struct {
	Reason  Reason
	Status  int    // the HTTP status
	Message string // for the client; says what to do
}

// A Server serves routes to those who may use them. Make one with [New].
type Server struct {
	o      Options
	token  [sha256.Size]byte // hashes have one length, so that comparing them takes one time
	health Route
}

// New returns the server that o describes.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Refuse == nil {
		o.Refuse = func(w http.ResponseWriter, _ *http.Request, f Refusal) { http.Error(w, f.Message, f.Status) }
	}
	o.AllowedHosts, o.AllowedOrigins, o.Routes = lower(o.AllowedHosts), lower(o.AllowedOrigins), slices.Clone(o.Routes)
	for i := range o.Routes {
		if o.Routes[i].Refuse == nil {
			o.Routes[i].Refuse = o.Refuse
		}
	}
	s := &Server{o: o, token: sha256.Sum256([]byte(o.Token))}
	s.health = Route{Path: HealthPath, Open: true, Handler: http.HandlerFunc(s.serveHealth), Refuse: o.Refuse}
	return s
}

// ServeHTTP implements [http.Handler]. It checks, in this order, the path (404),
// the token (401), the Host and the page that sent the request (403). A
// preflight of an allowed page is answered before the token is checked: it
// carries none.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	limitBody(w, r, refusedBodyTime)
	route := s.route(r.URL.Path)
	if route == nil {
		s.refuse(w, r, s.o.Refuse, s.notFound())
		return
	}
	if route.Methods != "" && s.cors(w, r, route) {
		return
	}
	if f := s.check(r, route); f != nil {
		s.refuse(w, r, route.Refuse, *f)
		return
	}
	if route.Handler == nil {
		s.refuse(w, r, route.Refuse, s.notFound())
		return
	}
	if !route.Open {
		limitBody(w, r, bodyTime)
	}
	route.Handler.ServeHTTP(w, r)
}

// route returns the route of a path, nil if there is none.
func (s *Server) route(path string) *Route {
	if path == HealthPath {
		return &s.health
	}
	var tree *Route
	for i := range s.o.Routes {
		route := &s.o.Routes[i]
		switch {
		case !route.Tree && path == route.Path:
			return route
		case route.Tree && within(path, route.Path) && (tree == nil || len(route.Path) > len(tree.Path)):
			tree = route
		}
	}
	return tree
}

// within reports whether a path is root or below it.
func within(path, root string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, write RefuseFunc, f Refusal) {
	s.o.Log.Debug("refused a request", "status", f.Status, "method", spell.Quote(r.Method), "path", spell.Quote(r.URL.Path), "reason", f.Message)
	if f.Reason == NoToken {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	Drain(w, r, maxRefused)
	write(w, r, f)
}

func (s *Server) notFound() Refusal {
	var paths []string
	for _, route := range s.o.Routes {
		if route.Handler != nil && !slices.Contains(paths, route.Path) {
			paths = append(paths, route.Path)
		}
	}
	return Refusal{NotFound, http.StatusNotFound, "nothing is served at this path, use " + strings.Join(append(paths, HealthPath), " or ")}
}

func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		s.refuse(w, r, s.o.Refuse, Refusal{WrongMethod, http.StatusMethodNotAllowed, "this method is not allowed here, use GET or HEAD"})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"status":"ok"}` + "\n")) // an error means that the client is gone
}
