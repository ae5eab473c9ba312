// Package httpguard serves HTTP handlers to authorized clients. Before a
// handler is called, the package checks who sent the request (a bearer token, or
// what [Options].Authenticate demands), its Host (against DNS rebinding) and the
// web page that sent it. It limits the time in which headers and bodies must
// arrive, answers health checks, and shuts down gracefully.
//
// Handlers do not deal with tokens. A [Route] mounts a handler and has a
// function that writes refusals in the form that the clients of the handler
// understand.
package httpguard

import (
	"context"
	"io"
	"log/slog"
	"maps"
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

	// Authenticate, if set, is called in place of the comparison with Token, for
	// every route that is not Open and for paths without a route. It returns the
	// context for the handler, derived from that of the request, or why the request
	// is refused, and then a context only for Refused, which may be nil. It can end the context before the request ends: a handler must
	// then return, and what it sends must arrive within 5 seconds. Handlers of Open
	// routes get the context of the request itself.
	Authenticate func(*http.Request) (context.Context, *Refusal)

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

	TLS *Certificate // of the listener; nil means no TLS

	// Refuse writes the refusals of routes that have no Refuse function, of
	// paths without a route, and of HealthPath. nil writes plain text.
	Refuse RefuseFunc

	// Drain is how long requests may continue to run when the server ends.
	// Grace is how long the server then waits for cancelled requests.
	Drain, Grace time.Duration

	// Refused, if set, is called for each request that is refused before it reaches
	// the handler of a route. Its context is that of Authenticate, if there is one.
	Refused func(r *http.Request, status int)

	// Log receives refused requests, at most 20 a minute, and as many failed
	// handshakes of TLS; nil discards.
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

	// Public makes the route Open, and lets web pages of every origin read it with
	// GET and HEAD (CORS without credentials), as metadata for clients in browsers
	// needs. The Host is checked.
	Public bool

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
// WWW-Authenticate and Allow and those of the refusal are already set.
type RefuseFunc func(http.ResponseWriter, *http.Request, Refusal)

// A Reason is why a request is refused.
type Reason int

// The reasons.
const (
	NoToken       Reason = iota // 401: the token is missing or wrong
	ForeignHost                 // 403: the Host names another machine
	ForeignOrigin               // 403: the request was sent by a web page that is not allowed
	NoRight                     // 403: the client is known and has no right
	NotFound                    // 404
	WrongMethod                 // 405
	Overloaded                  // 429: the client sends too many requests
	Unavailable                 // 503: whether the request is allowed cannot be found out now
)

// A Refusal describes why a request is refused.
type Refusal struct {
	Reason  Reason
	Status  int    // the HTTP status
	Message string // for the client; says what to do

	// Header is added to the response, for example WWW-Authenticate or Retry-After.
	// Its names are canonical.
	Header http.Header
}

// A Server serves routes to authorized clients. Create one with [New].
type Server struct {
	o       Options
	health  Route
	nothing Route // of paths without a route

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
		route := &o.Routes[i]
		route.Open = route.Open || route.Public
		if route.Refuse == nil {
			route.Refuse = o.Refuse
		}
	}
	// Clients look for metadata there, and must learn without a token that there
	// is none.
	o.Routes = append(o.Routes, Route{Path: wellKnownPath, Tree: true, Open: true, Refuse: o.Refuse})
	s := &Server{o: o, bodies: semaphore.NewWeighted(maxBodies)}
	s.health = Route{Path: HealthPath, Open: true, Handler: http.HandlerFunc(s.serveHealth), Refuse: o.Refuse}
	s.nothing = Route{Refuse: o.Refuse}
	return s
}

// ServeHTTP implements [http.Handler]. It checks, in this order, the token (401), the
// Host and the page that sent the request (403), and the path (404). So a client without
// a token does not learn the paths. A preflight request of an allowed page is
// answered before the token is checked, because it has none.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	limitBody(w, r, refusedBodyTime)
	route := s.route(r.URL.Path)
	if route == nil {
		route = &s.nothing
	}
	if (route.Methods != "" || route.Public) && s.cors(w, r, route) {
		return
	}
	ctx, f := s.check(r, route)
	if f == nil && route.Handler == nil {
		notFound := s.notFound()
		f = &notFound
	}
	if f != nil {
		if ctx != nil {
			r = r.WithContext(ctx)
		}
		s.refuse(w, r, route.Refuse, *f)
		return
	}
	if !route.Open {
		limitBody(w, r, bodyTime)
	}
	held := &held{budget: s.bodies}
	defer func() { held.release(held.bytes) }()
	defer limitEnd(ctx, w, r)()
	answer := &Answer{ResponseWriter: w}
	route.Handler.ServeHTTP(answer, r.WithContext(context.WithValue(ctx, heldKey{}, held)))
	if message := noted[answer.Status]; message != "" {
		s.refusals.log(s.o.Log, slog.LevelWarn, r, answer.Status, message)
	}
}

// limitEnd limits the time in which a response must be read when ctx ends before the
// request does. Otherwise a client that does not read would keep its handler. The
// returned function removes the limit.
func limitEnd(ctx context.Context, w http.ResponseWriter, r *http.Request) func() {
	if ctx == r.Context() {
		return func() {}
	}
	conn, set := http.NewResponseController(w), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(set)
		if r.Context().Err() == nil {
			_ = conn.SetWriteDeadline(time.Now().Add(endTime)) // without a connection, there is nothing to wait for
		}
	})
	return func() {
		if !stop() {
			<-set
			_ = conn.SetWriteDeadline(time.Time{})
		}
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
	maps.Copy(w.Header(), f.Header)
	if s.o.Refused != nil {
		s.o.Refused(r, f.Status)
	}
	Drain(w, r, MaxDrained)
	write(w, r, f)
}

// notFound returns the refusal of a path at which nothing is served. With
// Authenticate, it names no paths, because the client may not have the right to use
// them.
func (s *Server) notFound() Refusal {
	f := Refusal{Reason: NotFound, Status: http.StatusNotFound, Message: "nothing is served at this path"}
	if s.o.Authenticate != nil {
		return f
	}
	var paths []string
	for _, route := range s.o.Routes {
		if route.Handler != nil && !slices.Contains(paths, route.Path) {
			paths = append(paths, route.Path)
		}
	}
	f.Message += ", use " + strings.Join(append(paths, HealthPath), " or ")
	return f
}

func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		Drain(w, r, MaxDrained)
		s.o.Refuse(w, r, Refusal{Reason: WrongMethod, Status: http.StatusMethodNotAllowed,
			Message: "this method is not allowed here, use GET or HEAD"})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, Health) // an error means that the client is gone
}
