package mcpserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Guard lets a request through to next if its token, its Host and its Origin
// pass the checks that o describes, and otherwise answers 401 or 403 with a
// JSON-RPC error. It is for the other handlers of a listener that serves MCP.
// Of o it reads Token, AllowedHosts and AllowedOrigins.
func Guard(o HTTPOptions, next http.Handler) http.Handler {
	a := newAccess(o)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.admit(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// Health answers GET with 200 and {"status":"ok"}. It asks for no token, and
// checks Host and Origin as [Guard] does.
func Health(o HTTPOptions) http.Handler {
	o.Token = ""
	return Guard(o, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			refuseMethod(w, "GET, HEAD")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"ok"}` + "\n")) // an error means that the client is gone
	}))
}

// access decides who may talk to a listener.
type access struct {
	token   [sha256.Size]byte // of equal length, so that comparing tells nothing
	open    bool              // no token is asked for
	hosts   []string
	origins []string
}

func newAccess(o HTTPOptions) *access {
	return &access{token: sha256.Sum256([]byte(o.Token)), open: o.Token == "",
		hosts: lower(o.AllowedHosts), origins: lower(o.AllowedOrigins)}
}

func lower(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.ToLower(strings.TrimSuffix(s, "/"))
	}
	return out
}

// admit says whether a request may pass. If not, it has been answered.
func (a *access) admit(w http.ResponseWriter, r *http.Request) bool {
	if !a.authorized(r) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="mcp"`)
		refuse(w, http.StatusUnauthorized, "a bearer token is required, and this request has none or a wrong one")
		return false
	}
	if !a.hostAllowed(r) {
		refuse(w, http.StatusForbidden, "the Host header names another host than this one, allow it with --allow-host")
		return false
	}
	if !a.originAllowed(r) {
		refuse(w, http.StatusForbidden, "requests from this web origin are not allowed, allow it with --allow-origin")
		return false
	}
	return true
}

func (a *access) authorized(r *http.Request) bool {
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
func (a *access) hostAllowed(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); !ok || !loopback(local.String()) {
		return true
	}
	return loopback(r.Host) || a.hostListed(r.Host)
}

// hostListed says whether the operator allowed a host, with its port or
// without one.
func (a *access) hostListed(host string) bool {
	host = strings.ToLower(host)
	return slices.Contains(a.hosts, host) || slices.Contains(a.hosts, hostname(host))
}

// originAllowed checks what browsers send. Other clients send no Origin. Pages
// of this machine pass, and so do pages that this listener served itself, if it
// was reached by an address or an allowed name: any other name could belong to
// the page's author.
func (a *access) originAllowed(r *http.Request) bool {
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

// refuse answers with an HTTP status and a JSON-RPC error of no request.
func refuse(w http.ResponseWriter, status int, message string) {
	reply(w, status, jsonrpc.ID{}, protocolError(codeInvalidRequest, message, nil))
}

func refuseMethod(w http.ResponseWriter, allowed string) {
	w.Header().Set("Allow", allowed)
	refuse(w, http.StatusMethodNotAllowed, "this method is not allowed here, use "+allowed)
}

// reply answers a request with an HTTP status and a JSON-RPC error.
func reply(w http.ResponseWriter, status int, id jsonrpc.ID, e *jsonrpc.Error) {
	writeJSON(w, status, refusal(id, e))
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client is gone
}
