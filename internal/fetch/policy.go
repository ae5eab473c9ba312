package fetch

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"

	"golang.org/x/net/idna"
)

// A policy determines which URLs may be fetched and which addresses may be
// connected to.
type policy struct {
	schemes      []string
	hosts        []pattern // nil allows all
	allowPrivate bool
}

// A pattern is an entry in the list of allowed hosts.
type pattern struct {
	name       string     // canonical
	subdomains bool       // names below name, but not name itself
	addr       netip.Addr // valid if the entry is an address
}

// A host is the canonical form of a URL's host. The same form is checked and
// connected to.
type host struct {
	name string     // lower case ASCII, without a final dot; an address in its usual form
	addr netip.Addr // valid if the host is an address
}

// Options that an error can be due to; see [errkind.ReasonOf].
const (
	SchemeReason         errkind.Reason = "fetch: Schemes"
	RedirectSchemeReason errkind.Reason = "fetch: Schemes, of the address that the document redirects to"
	HostReason           errkind.Reason = "fetch: AllowedHosts"
	PrivateReason        errkind.Reason = "fetch: AllowedHosts or AllowPrivate"
	ReservedReason       errkind.Reason = "fetch: AllowPrivate"
	SizeReason           errkind.Reason = "fetch: MaxBytes"
	TimeReason           errkind.Reason = "fetch: Timeout"
	ProxyReason          errkind.Reason = "fetch: Proxy"
)

// A refusal is an error of kind Denied with a message for the user.
type refusal struct {
	message string
	unnamed string // the message about a target of a redirect: without the host
	reason  errkind.Reason
}

func (r *refusal) Error() string { return r.message }
func (r *refusal) Unwrap() error { return errkind.Denied }

// refuse returns a refusal of a host, which replaces the %s in the message,
// with the option that it is due to, if any.
func refuse(host, message string, reason errkind.Reason) error {
	return (&refusal{fmt.Sprintf(message, fmt.Sprintf("the host %q", host)), fmt.Sprintf(message,
		"the host that it leads to"), reason}).restriction()
}

// restriction returns the refusal as an error with its reason.
func (r *refusal) restriction() error { return &errkind.Restriction{Reason: r.reason, Err: r} }

// redirected returns the refusal of a target of a redirect.
func (r *refusal) redirected() error {
	reason := r.reason
	if reason == SchemeReason {
		reason = RedirectSchemeReason
	}
	return (&refusal{r.unnamed, r.unnamed, reason}).restriction()
}

// refuseScheme returns a refusal about a scheme.
func refuseScheme(scheme string) error {
	message := fmt.Sprintf("the scheme %q is not allowed", short(scheme))
	return (&refusal{message, message, SchemeReason}).restriction()
}

// Limits on foreign input.
const (
	maxURL  = 8 << 10 // bytes
	maxHost = 253     // RFC 1035, in the text form
)

// newPolicy parses the lists of the options.
func newPolicy(o Options) (*policy, error) {
	p := &policy{schemes: []string{"http", "https"}, allowPrivate: o.AllowPrivate}
	if o.Schemes != nil {
		p.schemes = nil
	}
	for _, s := range o.Schemes {
		s = strings.ToLower(s)
		if s != "http" && s != "https" {
			return nil, fmt.Errorf("reading the allowed schemes: got %q, want http or https: %w", s, errkind.Invalid)
		}
		p.schemes = append(p.schemes, s)
	}
	for _, s := range o.AllowedHosts {
		entry, err := parsePattern(s)
		if err != nil {
			return nil, err
		}
		p.hosts = append(p.hosts, entry)
	}
	return p, nil
}

func parsePattern(s string) (pattern, error) {
	name, subdomains := strings.CutPrefix(s, "*.")
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	h, err := parseHost(name)
	if err != nil || subdomains && h.addr.IsValid() {
		return pattern{}, fmt.Errorf("reading the allowed hosts: got %q, want a host name such as docs.example.com, "+
			"*.example.com for all below it, or an address, without scheme and port: %w", s, errkind.Invalid)
	}
	return pattern{h.name, subdomains, h.addr}, nil
}

// check returns the URL in its canonical form if it may be fetched, as far as
// can be decided without resolving the name. An error that is not a refusal is
// of kind Unsupported.
func (p *policy) check(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, fmt.Errorf("the document's address is longer than %d bytes: %w", maxURL, errkind.Unsupported)
	}
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return nil, errAddress
	}
	switch {
	case u.Scheme == "":
		return nil, errAddress
	case !slices.Contains(p.schemes, u.Scheme):
		return nil, refuseScheme(u.Scheme)
	case u.User != nil:
		return nil, errCredentials
	case u.Opaque != "":
		return nil, errAddress
	}
	h, err := parseHost(u.Hostname())
	if err != nil {
		return nil, err
	}
	port := u.Port()
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		return nil, errAddress
	}
	if err := p.checkHost(h); err != nil {
		return nil, err
	}
	u.Host = h.name
	switch {
	case port != "":
		u.Host = net.JoinHostPort(h.name, port)
	case h.addr.Is6():
		u.Host = "[" + h.name + "]"
	}
	u.Fragment, u.RawFragment = "", ""
	u.RawQuery = escape(u.RawQuery)
	return u, nil
}

// escape escapes characters that are not permitted in a request line. URLs in
// indexes contain blanks and letters of all kinds. The path is escaped
// separately.
func escape(query string) string {
	var b strings.Builder
	for i := range len(query) {
		if c := query[i]; c <= ' ' || c > '~' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

var errCredentials error = &refusal{message: "a document's address must not contain a user name or a password",
	unnamed: "the address that it leads to must not contain a user name or a password"}

var errAddress = fmt.Errorf("the document's address is not a web address that can be read: %w", errkind.Unsupported)

// checkHost checks a host before its name is resolved.
func (p *policy) checkHost(h host) error {
	switch {
	case p.hosts != nil && !p.named(h):
		return refuse(h.name, "%s is not allowed", HostReason)
	case h.addr.IsValid():
		return p.checkAddr(h, h.addr)
	case (h.name == "localhost" || strings.HasSuffix(h.name, ".localhost")) && !p.mayBePrivate(h):
		return refusePrivate(h) // RFC 6761, section 6.3
	}
	return nil
}

// named reports whether the list of allowed hosts contains h.
func (p *policy) named(h host) bool {
	return slices.ContainsFunc(p.hosts, func(e pattern) bool {
		switch {
		case e.addr.IsValid():
			return e.addr == h.addr
		case e.subdomains:
			return !h.addr.IsValid() && strings.HasSuffix(h.name, "."+e.name)
		}
		return e.name == h.name
	})
}

func (p *policy) mayBePrivate(h host) bool { return p.allowPrivate || p.named(h) }

// checkAddr reports whether connecting to an address of h is permitted. A name
// in the list may have a private address, but not a special one: otherwise the
// owner of the name could redirect to the metadata service of a cloud.
func (p *policy) checkAddr(h host, a netip.Addr) error {
	switch c := classOf(a); {
	case c == public, p.allowPrivate:
		return nil
	case c == private && p.named(h):
		return nil
	case h.addr.IsValid() && h.addr == a && p.named(h):
		return nil // the list contains this address
	case p.named(h):
		return refuse(h.name, "%s has a link-local, multicast or reserved address", ReservedReason)
	}
	return refusePrivate(h)
}

// refusePrivate returns a refusal that names the host, but never its resolved
// address.
func refusePrivate(h host) error {
	return refuse(h.name, "private network targets are not allowed, and %s is in a private or reserved network",
		PrivateReason)
}

// parseHost returns the canonical form of a host as returned by
// [url.URL.Hostname]. Errors are of kind Unsupported, or refusals.
func parseHost(s string) (host, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return host{a.String(), a}, nil
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) {
		// The HTTP client would do the same later: some characters become
		// digits and dots.
		ascii, err := idna.Lookup.ToASCII(s)
		if err != nil {
			return host{}, errAddress
		}
		s = ascii
	}
	s = strings.TrimSuffix(strings.ToLower(s), ".")
	if s == "" || len(s) > maxHost || strings.ContainsFunc(s, notHost) {
		return host{}, errAddress
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return host{a.String(), a}, nil
	}
	labels := strings.Split(s, ".")
	if slices.Contains(labels, "") {
		return host{}, errAddress
	}
	if numeric(labels[len(labels)-1]) {
		// Some resolvers read 127.1, 0x7f000001 and 017700000001 as addresses
		// (inet_aton). No host name ends in a number (WHATWG URL, "ends in a
		// number").
		return host{}, refuse(short(s), "%s is an address in an unusual spelling: write it as four decimal numbers", "")
	}
	return host{name: s}, nil
}

// notHost reports whether r cannot be in a host name. The underscore is not
// permitted in host names, but it occurs.
func notHost(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
}

// numeric reports whether the last label of a host is numeric, which makes the
// host an address.
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// short shortens foreign text for an error. The result is ASCII.
func short(s string) string { return s[:min(len(s), 100)] }
