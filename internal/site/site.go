// Package site keeps copies of the pages of web sites on disk. A [Mirror] visits the
// pages below an address in rounds: it obeys robots.txt, finds pages by llms.txt,
// sitemaps and links, and asks for a page again only if it has changed. It says which
// file is which document, so that each text is one document, and which parts of its
// pages a site repeats.
package site

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A Site is the pages whose address begins with that of its first page, up to the last
// slash. The zero Site is none; see [Parse].
type Site struct {
	start string // address of the first page, in the form of address
	scope string // start up to the last slash of its path
	host  string // without the port
}

// Is reports whether a source is a web site: whether it begins with "http://" or
// "https://".
func Is(source string) bool {
	scheme, _, ok := strings.Cut(source, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// Parse parses a source: the address of a page. Errors are of kind errkind.Invalid.
func Parse(source string) (Site, error) {
	fail := func(want string) (Site, error) {
		return Site{}, fmt.Errorf("source %s: %s: %w", withoutUser(source), want, errkind.Invalid)
	}
	if !Is(source) || len(source) > maxAddress {
		return fail("want an address such as https://docs.example.com/guide/")
	}
	u, err := url.Parse(source)
	switch {
	case err == nil && u.User != nil:
		return fail("an address with a user name or a password would be stored and shown, and is not accepted")
	case err != nil, u.Hostname() == "", strings.ContainsFunc(u.Hostname(), notHost):
		return fail("want a host and a path, as in https://docs.example.com/guide/")
	}
	a, ok := address(nil, source)
	if !ok {
		return fail("want an address such as https://docs.example.com/guide/")
	}
	if u, err = url.Parse(a); err != nil {
		return fail("want an address such as https://docs.example.com/guide/")
	}
	before, _, _ := strings.Cut(a, "?")
	return Site{start: a, scope: before[:strings.LastIndexByte(before, '/')+1], host: u.Hostname()}, nil
}

// notHost reports whether r cannot be in the name of a host.
func notHost(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`"<>\^|{}%`+"`", r) }

// withoutUser returns a source without the user and the password in it.
func withoutUser(source string) string {
	scheme, rest, ok := strings.Cut(source, "://")
	host, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, tail = rest[:i], rest[i:]
	}
	if i := strings.LastIndexByte(host, '@'); ok && i >= 0 {
		return scheme + "://***" + host[i:] + tail
	}
	return source
}

// String returns the source in the form that Parse accepts.
func (s Site) String() string { return s.start }

// Host returns the name of the host, without the port.
func (s Site) Host() string { return s.host }

// Name returns the host and the last element of the path.
func (s Site) Name() string {
	u, err := url.Parse(s.start)
	if err != nil {
		return s.host
	}
	if last := path.Base(u.Path); last != "/" && last != "." {
		return s.host + " " + last
	}
	return s.host
}

// Dir returns the folder of the mirror in a data folder.
func (s Site) Dir(data string) string {
	sum := sha256.Sum256([]byte(s.start))
	return filepath.Join(data, "sites", hex.EncodeToString(sum[:8]))
}

// contains reports whether an address is below the site.
func (s Site) contains(address string) bool { return strings.HasPrefix(address, s.scope) }

// root returns the address of the top of the site's host.
func (s Site) root() string {
	i := strings.Index(s.scope, "://") + len("://")
	return s.scope[:i+strings.IndexByte(s.scope[i:], '/')+1]
}

// top is the path of the document of the site's own address.
const top = "index"

// path returns the path of the document with an address: the rest of the address
// after that of the site, with the characters that people read. It differs for each
// address, and never begins with a dot.
func (s Site) path(address string) string {
	rest := strings.TrimPrefix(address, s.scope)
	if rest == "" {
		return top
	}
	file, query, hasQuery := strings.Cut(rest, "?")
	file = readable(file)
	if file == top || strings.HasPrefix(file, ".") {
		file = fmt.Sprintf("%%%02X", file[0]) + file[1:]
	}
	if hasQuery {
		file += "?" + query
	}
	return file
}

// readable decodes the escapes of a path that are characters that can be printed and
// mean nothing in an address.
func readable(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		run, n := escapes(s[i:])
		if n == 0 {
			b.WriteByte(s[i])
			i++
			continue
		}
		for at, rest := i, run; len(rest) > 0; {
			r, size := utf8.DecodeRune(rest)
			if r == utf8.RuneError && size <= 1 || !unicode.IsPrint(r) || strings.ContainsRune("/?#%", r) {
				b.WriteString(s[at : at+3*size])
			} else {
				b.WriteRune(r)
			}
			at, rest = at+3*size, rest[size:]
		}
		i += n
	}
	return b.String()
}

// escapes decodes the run of escapes at the beginning of s, whose length is n.
func escapes(s string) (run []byte, n int) {
	for n+2 < len(s) && s[n] == '%' {
		c, ok := unhex(s[n+1], s[n+2])
		if !ok {
			break
		}
		run, n = append(run, c), n+3
	}
	return run, n
}

func unhex(a, b byte) (byte, bool) {
	var c [1]byte
	_, err := hex.Decode(c[:], []byte{a, b})
	return c[0], err == nil
}

// Limits on addresses.
const (
	maxAddress    = 4 << 10 // bytes; longer ones are ignored
	maxParameters = 30      // of a query; addresses with more are ignored
)

// address returns the form in which a reference of the page base is known, so that
// one page has one address: absolute, without a fragment and the parameters of
// sessions and of counting visitors, with the usual form of the host, of dots in the
// path and of escapes. ok is false if it is not the address of a web page.
func address(base *url.URL, ref string) (a string, ok bool) {
	ref = strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' {
			return -1 // as browsers do
		}
		return r
	}, strings.TrimSpace(ref))
	ref, _, _ = strings.Cut(ref, "#")
	if len(ref) > maxAddress {
		return "", false
	}
	if base != nil && base.Scheme != "" { // also as browsers do
		file, query, hasQuery := strings.Cut(ref, "?")
		if ref = strings.ReplaceAll(file, `\`, "/"); hasQuery {
			ref += "?" + query
		}
	}
	u, err := url.Parse(escape(ref))
	if err != nil {
		return "", false
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	u.Scheme = strings.ToLower(u.Scheme)
	if u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" || u.User != nil {
		return "", false
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	if h, err := url.PathUnescape(host); err == nil {
		host = h
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		if host, err = idna.Lookup.ToASCII(host); err != nil {
			return "", false
		}
	}
	if host = strings.ToLower(host); host == "" || strings.ContainsFunc(host, notHost) {
		return "", false
	}
	port := u.Port()
	if u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		port = ""
	}
	switch {
	case port != "":
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	scheme := u.Scheme
	// Resolving also removes dots from a reference that is absolute.
	u = (&url.URL{Path: "/"}).ResolveReference(&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery})
	file := withoutSession(escape(u.EscapedPath()))
	if !strings.HasPrefix(file, "/") {
		file = "/" + file
	}
	query, ok := withoutParameters(escape(u.RawQuery), isSession)
	if !ok {
		return "", false
	}
	if a = scheme + "://" + host + file; query != "" {
		a += "?" + query
	}
	return a, len(a) <= maxAddress
}

// escape returns an address with the usual form of escapes: none of characters that
// need none, and one of each byte that must not be in an address.
func escape(s string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' && i+2 < len(s) {
			if d, ok := unhex(s[i+1], s[i+2]); ok {
				i += 2
				if !unreserved(d) {
					b.Write([]byte{'%', hexDigits[d>>4], hexDigits[d&15]})
				} else {
					b.WriteByte(d)
				}
				continue
			}
		}
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"<>\^{|}`+"`%", c) >= 0 {
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unreserved reports whether a character needs no escape (RFC 3986, section 2.3).
func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// sessionInPath matches the sessions of servlets and of PHP in a path.
var sessionInPath = regexp.MustCompile(`(?i);(jsessionid|phpsessid|sid)=[^/;]*`)

func withoutSession(path string) string {
	if !strings.Contains(path, ";") {
		return path
	}
	return sessionInPath.ReplaceAllString(path, "")
}

// parameters are the names, in lower case, of parameters of sessions, and of those
// that count visitors.
var parameters = regexp.MustCompile(`^(utm_[a-z_]+|_ga|_gl|gclid|gclsrc|dclid|gbraid|wbraid|fbclid|msclkid|yclid|twclid|igshid|` +
	`mc_cid|mc_eid|_hsenc|_hsmi|mkt_tok|vero_id|oly_enc_id|oly_anon_id|s_cid|` +
	`phpsessid|jsessionid|aspsessionid[a-z]*|asp\.net_sessionid|cfid|cftoken|sid|sessid|sessionid|session_id|session|zenid|oscsid)$`)

func isSession(name string) bool { return parameters.MatchString(strings.ToLower(name)) }

// withoutParameters returns a query without the parameters whose names drop selects
// and without empty ones. ok is false if it has too many.
func withoutParameters(query string, drop func(name string) bool) (rest string, ok bool) {
	if strings.Count(query, "&") >= maxParameters {
		return "", false
	}
	var kept []string
	for p := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(p, "="); p != "" && !drop(name) {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "&"), true
}
