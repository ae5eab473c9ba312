// Package httpguard serves HTTP handlers to authorized clients. Before a
// handler is called, the package checks the bearer token of the request, its
// Host (against DNS rebinding) and the web page that sent it. It limits the
// time in which headers and bodies must arrive, answers health checks, and
// shuts down gracefully.
//
// Handlers do not deal with tokens. A [Route] mounts a handler and has a
// function that writes refusals in the form that the clients of the handler
// understand.
package httpguard

import (
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
)

// HealthPath is the path that answers GET and HEAD with 200 and {"status":"ok"}
// while the server runs. It requires no token, so that probes need none. Host
// and Origin are checked as everywhere, so that a web page cannot find out what
// runs on this machine. A request without a Host is allowed there: browsers
// never send one, but some load balancers do.
const HealthPath = "/healthz"

// Health is the answer at [HealthPath].
const Health = `{"status":"ok"}` + "\n"

// wellKnownPath is the path below which nothing is served unless a route says so
// (RFC 8615). It requires no token.
const wellKnownPath = "/.well-known"

// Options configures a [Server].
type Options struct {
	Token string // the bearer token that requests must carry; "" requires none
	// origins of web pages that may send requests, besides those of this server,
	// for example "https://app.example"
	AllowedOrigins []string
	// hosts that are allowed on a loopback listener besides those of this
	// machine, with or without a port
	AllowedHosts []string

	// HostHint and OriginHint are added to the messages of refusals. They
	// explain how to allow the Host or the Origin, for example "set
	// allowedHosts". They may be "".
	HostHint, OriginHint string

	Routes []Route

	// Refuse writes the refusals of routes that have no Refuse function, of
	// paths without a route, and of HealthPath. nil writes plain text.
	Refuse RefuseFunc

	// Drain is how long requests may continue to run when the server ends.
	// Grace is how long the server then waits for cancelled requests.
	Drain, Grace time.Duration

	// Log receives refused requests, at most 20 a minute; nil discards.
	Log *slog.Logger
}

// A Route mounts a handler.
//
// The body of a request must arrive within 30 seconds, or within 5 if the route
// is Open; after that, reading it fails.
type Route struct {
	Path string // clean, for example "/mcp"; only this path
	Tree bool   // also all paths below Path; of several trees that match, the longest is used
	Open bool   // requires no token

	// Handler serves the requests that are not refused. Their paths are as
	// the client sent them, including repeated slashes and dots: nothing is
	// redirected. nil refuses all requests with 404.
	Handler http.Handler

	Refuse RefuseFunc // nil means that of the Options

	// Methods are the methods that web pages of allowed origins may use
	// (CORS), and Expose the response headers that they may read, as lists
	// with commas. Without Methods there is no CORS: such pages can send
	// requests but not read the responses.
	Methods, Expose string

	// Shutdown, if set, is called when the server ends, before the listener
	// closes. It ends whatever would keep connections busy, such as streams.
	// Its context ends after Drain.
	Shutdown func(context.Context) error
}

// A RefuseFunc writes a refusal as the response: the status, and the message in
// the form that the clients of a handler understand. The headers
// WWW-Authenticate and Allow are already set.
type RefuseFunc func(http.ResponseWriter, *http.Request, Refusal)

// A Reason is why a request is refused.
type Reason int

// The reasons.
const (
	NoToken       Reason = iota // 401: the token is missing or wrong
	ForeignHost                 // 403: the Host names another machine
	ForeignOrigin               // 403: the request was sent by a web page that is not allowed
	NotFound                    // 404
	WrongMethod                 // 405
)

// A Refusal describes why a request is refused.
type Refusal struct {
	Reason  Reason
	Status  int    // the HTTP status
	Message string // for the client; says what to do
}

// A Server serves routes to authorized clients. Create one with [New].
type Server struct {
	o      Options
	token  [sha256.Size]byte // hashes have the same length, so comparing them takes constant time
	health Route

	bodies   *semaphore.Weighted // bytes that the bodies of running requests may take
	refusals refusals            // in the log
}

// New returns a server configured by o.
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
	// Clients look for metadata there, and must learn without a token that there
	// is none.
	o.Routes = append(o.Routes, Route{Path: wellKnownPath, Tree: true, Open: true, Refuse: o.Refuse})
	s := &Server{o: o, token: sha256.Sum256([]byte(o.Token)), bodies: semaphore.NewWeighted(maxBodies)}
	s.health = Route{Path: HealthPath, Open: true, Handler: http.HandlerFunc(s.serveHealth), Refuse: o.Refuse}
	return s
}

// ServeHTTP implements [http.Handler]. It checks, in this order, the path
// (404), the token (401), the Host and the page that sent the request (403). A
// preflight request of an allowed page is answered before the token is checked,
// because it has none.
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
	held := &held{budget: s.bodies}
	defer func() { held.release(held.bytes) }()
	answer := &answer{ResponseWriter: w}
	route.Handler.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), heldKey{}, held)))
	if message := noted[answer.status]; message != "" {
		s.refusals.log(s.o.Log, slog.LevelWarn, r, answer.status, message)
	}
}

// route returns the route of a path, or nil.
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
	level := slog.LevelWarn
	if f.Status == http.StatusNotFound {
		level = slog.LevelInfo // browsers and clients look for icons and metadata
	}
	s.refusals.log(s.o.Log, level, r, f.Status, f.Message)
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
	return Refusal{NotFound, http.StatusNotFound, "nothing is served at this path, use " +
		strings.Join(append(paths, HealthPath), " or ")}
}

func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		Drain(w, r, maxRefused)
		s.o.Refuse(w, r, Refusal{WrongMethod, http.StatusMethodNotAllowed,
			"this method is not allowed here, use GET or HEAD"})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, Health) // an error means that the client is gone
}
