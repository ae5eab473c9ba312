// Package access decides who may talk to an HTTP listener that serves MCP, by
// token, Host and Origin, and answers those who may not with JSON-RPC errors. It
// is used by the MCP server's HTTP endpoint, and through that by the other
// handlers of its listener.
package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"knowhow/internal/compact"
)

// Options says who may talk to a listener.
type Options struct {
	Token          string   // the bearer token that is asked for; "" asks for none
	AllowedOrigins []string // web origins besides those of this machine
	AllowedHosts   []string // hosts besides loopback that a loopback listener answers to, with or without port
	ExposedHeaders string   // of answers, which web pages may read, as a list with commas
}

// Guard lets a request through to next if it is admitted.
func (a *Access) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.Admit(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// Health answers GET and HEAD with 200 and {"status":"ok"}.
func Health(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		RefuseMethod(w, "GET, HEAD")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"status":"ok"}` + "\n")) // an error means that the client is gone
}

// An Access decides who may talk to a listener. Make one with [New]. Its methods
// may be called by many goroutines at once.
type Access struct {
	token   [sha256.Size]byte // of equal length, so that comparing tells nothing
	open    bool              // no token is asked for
	hosts   []string
	origins []string
	expose  string
}

// New returns the Access that o describes.
func New(o Options) *Access {
	return &Access{token: sha256.Sum256([]byte(o.Token)), open: o.Token == "",
		hosts: lower(o.AllowedHosts), origins: lower(o.AllowedOrigins), expose: o.ExposedHeaders}
}

func lower(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.ToLower(strings.TrimSuffix(s, "/"))
	}
	return out
}

// Admit says whether a request may pass. If not, it has been answered, with 401
// for its token and 403 for its Host or Origin, in this order.
func (a *Access) Admit(w http.ResponseWriter, r *http.Request) bool {
	if !a.authorized(r) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="mcp"`)
		Drain(w, r, maxRefused)
		Refuse(w, http.StatusUnauthorized, "a bearer token is required, and this request has none or a wrong one")
		return false
	}
	if !a.hostAllowed(r) {
		Drain(w, r, maxRefused)
		Refuse(w, http.StatusForbidden, "the Host header names another host than this one, allow it with --allow-host")
		return false
	}
	if !a.originAllowed(r) {
		Drain(w, r, maxRefused)
		Refuse(w, http.StatusForbidden, "requests from this web origin are not allowed, allow it with --allow-origin")
		return false
	}
	return true
}

func (a *Access) authorized(r *http.Request) bool {
	if a.open {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(given[:], a.token[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// hostAllowed keeps web pages that point a name of their own to this machine
// away from a loopback listener (DNS rebinding). A listener that is reached
// from outside was opened on purpose, under names that we do not know.
func (a *Access) hostAllowed(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); !ok || !loopback(local.String()) {
		return true
	}
	return loopback(r.Host) || a.hostListed(r.Host)
}

// hostListed says whether the operator allowed a host, with its port or
// without one.
func (a *Access) hostListed(host string) bool {
	host = strings.ToLower(host)
	return slices.Contains(a.hosts, host) || slices.Contains(a.hosts, hostname(host))
}

// originAllowed checks what browsers send. Other clients send no Origin. Pages
// of this machine pass, and so do pages that this listener served itself, if it
// was reached by an address or an allowed name: any other name could belong to
// the page's author.
func (a *Access) originAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(a.origins, strings.ToLower(origin)) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	if loopback(u.Host) {
		return true
	}
	return strings.EqualFold(u.Host, r.Host) && (net.ParseIP(hostname(r.Host)) != nil || a.hostListed(r.Host))
}

// Preflight answers the request by which a browser asks whether a page may send
// another. It carries no token. To all others of a page that passes the checks
// it adds what lets the page read the answer. It says whether the request has
// been answered; methods is a list with commas.
func (a *Access) Preflight(w http.ResponseWriter, r *http.Request, methods string) bool {
	if r.Header.Get("Origin") == "" || !a.hostAllowed(r) || !a.originAllowed(r) {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", a.expose)
	h.Set("Vary", "Origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "7200") // seconds; browsers allow no more
	w.WriteHeader(http.StatusNoContent)
	return true
}

// hostname returns a host without its port and brackets.
func hostname(hostport string) string {
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		return h
	}
	return strings.Trim(hostport, "[]")
}

// loopback says whether a host, with or without a port, is this machine.
func loopback(hostport string) bool {
	h := hostname(hostport)
	ip := net.ParseIP(h)
	return strings.EqualFold(h, "localhost") || ip != nil && ip.IsLoopback()
}

// How much of a body is read before a request is not admitted, in bytes, and
// for how long before any refusal.
const (
	maxRefused = 8 << 20
	drainWait  = 5 * time.Second
)

// Drain reads a body that will be refused, limit bytes of it at most and for 5
// seconds at most. Many clients look for an answer only
// when they have sent all of it; to them a connection that is closed before is
// broken, and the status is lost. The deadline stays: it ends what the
// http.Server reads of the body itself, which sets another for the next request.
func Drain(w http.ResponseWriter, r *http.Request, limit int64) {
	if r.ContentLength == 0 || r.Header.Get("Expect") != "" { // the latter waits for the answer
		return
	}
	if http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainWait)) == nil {
		_, _ = io.CopyN(io.Discard, r.Body, limit) // the refusal follows in any case
	}
}

// Refuse answers with an HTTP status and a JSON-RPC error of no request.
func Refuse(w http.ResponseWriter, status int, message string) {
	e, answer := &compact.Object{}, &compact.Object{}
	e.Add("code", invalidRequest)
	e.Add("message", message)
	answer.Add("jsonrpc", "2.0")
	answer.Add("id", nil)
	answer.Add("error", e.Bytes())
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(answer.Bytes()) // an error means that the client is gone
}

// invalidRequest is JSON-RPC's code for what is no valid request.
const invalidRequest = -32600

// RefuseMethod answers a request whose method is not among those of the list.
func RefuseMethod(w http.ResponseWriter, allowed string) {
	w.Header().Set("Allow", allowed)
	Refuse(w, http.StatusMethodNotAllowed, "this method is not allowed here, use "+allowed)
}
