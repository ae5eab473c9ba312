package httpguard

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// check returns the context for the handler, or why a request is refused. The context of a
// refused request may be nil.
func (s *Server) check(r *http.Request, route *Route) (context.Context, *Refusal) {
	ctx := r.Context()
	if !route.Open {
		var f *Refusal
		if ctx, f = s.authenticate(r); f != nil {
			return ctx, f
		}
	}
	return ctx, s.checkSender(r, route)
}

// TokenRequired is the message of a refusal with the reason [NoToken].
const TokenRequired = "a token is required, and this request has none or a wrong one"

// authenticate returns the context for the handler, or why the token of a request is
// refused.
func (s *Server) authenticate(r *http.Request) (context.Context, *Refusal) {
	switch {
	case s.o.Authenticate != nil:
		return s.o.Authenticate(r)
	case !HasToken(r, s.o.Token):
		return nil, &Refusal{Reason: NoToken, Status: http.StatusUnauthorized,
			Message: TokenRequired}
	}
	return r.Context(), nil
}

// checkSender returns why the Host of a request or the page that sent it is refused,
// or nil.
func (s *Server) checkSender(r *http.Request, route *Route) *Refusal {
	forbidden := func(reason Reason, message, hint string) *Refusal {
		if hint != "" {
			message += ", " + hint
		}
		return &Refusal{Reason: reason, Status: http.StatusForbidden, Message: message}
	}
	switch {
	case !s.hostAllowed(r) && !(r.Host == "" && r.URL.Path == HealthPath):
		return forbidden(ForeignHost, "the Host header names another host than this one", s.o.HostHint)
	case route.Public && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return nil
	case !s.originAllowed(r):
		return forbidden(ForeignOrigin, "requests from this web origin are not allowed", s.o.OriginHint)
	case !siteAllowed(r):
		return forbidden(ForeignOrigin, "a page of another site sent this request without an Origin header",
			"type the address or send the request from a program")
	}
	return nil
}

// HasToken reports whether the bearer token of a request is token; "" means any or none.
func HasToken(r *http.Request, token string) bool {
	if token == "" {
		return true
	}
	// Hashes have the same length, so comparing them takes constant time.
	given, want := sha256.Sum256([]byte(BearerToken(r))), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1
}

// BearerToken returns the bearer token of a request (RFC 6750, section 2.1), or "".
func BearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// hostAllowed reports whether the Host of a request is allowed. On a loopback
// listener, this prevents DNS rebinding: web pages whose authors point a name
// of their own to this machine. Other listeners are reachable on purpose, under
// names that the program does not know.
func (s *Server) hostAllowed(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); !ok || !Loopback(local.String()) {
		return true
	}
	return Loopback(r.Host) || s.hostListed(r.Host)
}

// hostListed reports whether AllowedHosts contains a host, with its port or
// without a port.
func (s *Server) hostListed(host string) bool {
	host = strings.ToLower(host)
	return slices.Contains(s.o.AllowedHosts, host) || slices.Contains(s.o.AllowedHosts, hostname(host))
}

// originAllowed reports whether the Origin of a request, which only browsers
// send, is allowed: an allowed one, or that of a page of this listener.
func (s *Server) originAllowed(r *http.Request) bool {
	for _, origin := range r.Header["Origin"] {
		if slices.Contains(s.o.AllowedOrigins, strings.ToLower(origin)) {
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			return false
		}
		if !s.own(u, r) {
			return false
		}
	}
	return true
}

// WantOrigin returns what is permitted in [Options].AllowedOrigins, or "" if origin is.
// A host without a scheme or a pattern never matches what browsers send.
func WantOrigin(origin string) string {
	if origin == "null" { // of pages without an address
		return ""
	}
	const want = "an origin such as https://chat.example.com"
	u, err := url.Parse(origin)
	switch {
	case err != nil || u.Scheme == "" || u.Hostname() == "" || !ValidPort(u) || strings.Contains(u.Host, "*"):
		return want
	case u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return want + ", without user name, path, query and fragment"
	}
	return ""
}

// ValidPort reports whether a URL has a port that can be connected to, or none.
func ValidPort(u *url.URL) bool {
	n, err := strconv.Atoi(u.Port())
	return u.Port() == "" || err == nil && n >= 1 && n <= 65535
}

// own reports whether an origin is that of this listener, which a request reached as
// its Host: by an address or an allowed name, because any other name could belong
// to the page's author. Of this machine's names, localhost and the address of the
// listener are one host; at another address, another port or with another scheme
// there is another server, whose pages are foreign.
func (s *Server) own(origin *url.URL, r *http.Request) bool {
	same := strings.EqualFold(origin.Host, r.Host)
	switch {
	case same && s.hostListed(r.Host): // perhaps through a proxy with TLS
		return true
	case Loopback(origin.Host) && Loopback(r.Host):
		here := same || strings.EqualFold(origin.Hostname(), "localhost") || origin.Hostname() == localIP(r)
		return here && origin.Port() == (&url.URL{Host: r.Host}).Port() && (origin.Scheme == "https") == (s.o.TLS != nil)
	}
	return same && net.ParseIP(hostname(r.Host)) != nil
}

// localIP returns the address of this machine at which a request arrived.
func localIP(r *http.Request) string {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return hostname(local.String())
	}
	return ""
}

// siteAllowed reports whether Sec-Fetch-Site is allowed. Browsers send this
// header also with requests that have no Origin, such as those for images,
// links and simple GETs. With an Origin, [Server.originAllowed] has decided.
// The value same-site means another port of the same host or another name of
// the same domain, whose pages are foreign.
func siteAllowed(r *http.Request) bool {
	if len(r.Header["Origin"]) > 0 {
		return true
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		switch strings.ToLower(site) {
		case "none", "same-origin":
		default:
			return false
		}
	}
	return true
}

// cors answers a preflight request and reports whether it did. To other
// requests of a page that is allowed, it adds the response headers that let the
// page read the response.
func (s *Server) cors(w http.ResponseWriter, r *http.Request, route *Route) bool {
	origin, methods := r.Header.Get("Origin"), route.Methods
	if origin == "" || !s.hostAllowed(r) || !route.Public && !s.originAllowed(r) {
		return false
	}
	h := w.Header()
	if route.Public {
		origin, methods = "*", "GET, HEAD"
	} else {
		h.Set("Vary", "Origin")
	}
	h.Set("Access-Control-Allow-Origin", origin)
	if route.Expose != "" {
		h.Set("Access-Control-Expose-Headers", route.Expose)
	}
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "7200") // seconds; browsers allow no more
	w.WriteHeader(http.StatusNoContent)
	return true
}

// Loopback reports whether a host, with or without a port, is a name or an
// address of the loopback interface.
func Loopback(hostport string) bool {
	host := hostname(hostport)
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// hostname returns a host without its port and brackets.
func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}

func lower(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.ToLower(strings.TrimSuffix(s, "/"))
	}
	return out
}
