// Package fetch gets documents from the web under a policy that keeps whoever
// chooses the URLs out of the operator's network: schemes, hosts, private
// addresses (checked where the connection is made), redirects, size and time.
// The search bridge reads documents with it whose text its index does not hold.
//
// Errors that are due to an option say so by an [errkind.Reason].
package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"knowhow/internal/errkind"
)

// A Resolver finds the addresses of a name; [net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options are the policy and the limits of a Fetcher.
type Options struct {
	Schemes []string // of "http" and "https"; nil allows both

	// AllowedHosts, unless empty, are the only hosts that may be asked: exact
	// names, addresses, or "*.example.com" for every name below. They may be
	// in a private network.
	AllowedHosts []string

	// AllowPrivate allows addresses that are not public: private networks,
	// this machine, link-local (cloud metadata), multicast, reserved ones.
	AllowPrivate bool

	MaxBytes     int64         // largest document, after decompression; 0 means 5 MiB
	Timeout      time.Duration // limit of a whole Get, redirects included; 0 means 20 s
	MaxRedirects int           // 0 means 5, less than 0 none
	UserAgent    string        // printable ASCII; "" means "knowhow"

	// Proxy takes all requests; nil uses none, whatever the environment says.
	// A proxy resolves names itself, so that only URLs are checked then,
	// not the addresses behind names.
	Proxy *url.URL

	RootCAs *x509.CertPool // nil trusts the system's

	// Resolver and Dial are for tests; nil uses the net package. Dial gets
	// addresses that were checked, or the proxy's.
	Resolver Resolver
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

// The defaults of Options.
const (
	defaultMaxBytes     = 5 << 20
	defaultTimeout      = 20 * time.Second
	defaultMaxRedirects = 5
	defaultUserAgent    = "knowhow"
)

const (
	maxHeader    = 64 << 10 // bytes of an answer's header
	maxMediaType = 256      // bytes of its Content-Type
	readSize     = 64 << 10 // bytes read between two reports
)

// A Document is what a server sent.
type Document struct {
	URL       string // after redirects; without fragment, never with credentials
	MediaType string // the Content-Type as sent, parameters included; "" if none
	Data      []byte // the body, decompressed
}

// A Fetcher gets documents. It is safe for concurrent use.
type Fetcher struct {
	policy       *policy
	header       http.Header
	maxBytes     int64
	timeout      time.Duration
	maxRedirects int
	transport    *http.Transport
}

// New returns a fetcher. Options that cannot work are errors of kind Invalid.
func New(o Options) (*Fetcher, error) {
	p, err := newPolicy(o)
	if err != nil {
		return nil, err
	}
	if o.UserAgent == "" {
		o.UserAgent = defaultUserAgent
	}
	if strings.ContainsFunc(o.UserAgent, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, fmt.Errorf("reading the user agent: want printable ASCII: %w", errkind.Invalid)
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxRedirects == 0 {
		o.MaxRedirects = defaultMaxRedirects
	}
	t, err := newTransport(o, p)
	if err != nil {
		return nil, err
	}
	return &Fetcher{
		policy: p,
		header: http.Header{
			"Accept":     {"text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.8"},
			"User-Agent": {o.UserAgent},
		},
		maxBytes:     o.MaxBytes,
		timeout:      o.Timeout,
		maxRedirects: o.MaxRedirects,
		transport:    t,
	}, nil
}

// newTransport makes the HTTP client. Cookies, credentials and referrers are
// no matter of a transport: none are kept, and none are sent.
func newTransport(o Options, p *policy) (*http.Transport, error) {
	d := &dialer{policy: p, resolver: o.Resolver, dial: o.Dial}
	if d.resolver == nil {
		d.resolver = net.DefaultResolver
	}
	if d.dial == nil {
		d.dial = new(net.Dialer).DialContext
	}
	t := &http.Transport{
		DialContext:            d.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs},
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           16,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        30 * time.Second,
	}
	if o.Proxy != nil {
		if !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, o.Proxy.Scheme) || o.Proxy.Host == "" {
			return nil, fmt.Errorf("reading the proxy's URL: want an absolute http, https or socks5 URL: %w", errkind.Invalid)
		}
		t.Proxy, t.DialContext = http.ProxyURL(o.Proxy), d.dial
	}
	return t, nil
}

// Close ends the connections that lie idle. Calls in flight go on.
func (f *Fetcher) Close() { f.transport.CloseIdleConnections() }

// Check reports whether Get would refuse the URL before it asks anyone: for its
// scheme, its host's name, or an address written in it. Errors are as those of
// Get. It asks no name server.
func (f *Fetcher) Check(rawURL string) error {
	_, err := f.policy.check(rawURL)
	return err
}

// Get returns the document at a URL, following redirects; each hop is under the
// same policy. report, unless nil, is told how many bytes have come, of how
// many; a total of 0 is unknown.
//
// Errors are of kind Denied where the policy forbids the URL, with one sentence
// that names the restriction; of kind TooLarge where the document is larger than
// MaxBytes; of kind Unsupported where the URL or the encoding cannot be read;
// and of type *errkind.Remote for all that went wrong on the way (status 502,
// after Timeout 504) or that the server answered other than 200. They name
// nothing of a network that was not in rawURL: neither the address of its host
// nor where a redirect leads. Where ctx ends first, its error is returned.
func (f *Fetcher) Get(ctx context.Context, rawURL string, report func(done, total int64)) (*Document, error) {
	call, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	at := rawURL
	var named *url.URL // that errors are about: rawURL's
	for hop := 0; ; hop++ {
		u, err := f.policy.check(at)
		if err != nil {
			return nil, onHop(hop, err)
		}
		if hop == 0 {
			named = u
		}
		req := (&http.Request{Method: http.MethodGet, URL: u, Header: f.header.Clone()}).WithContext(call)
		resp, err := f.transport.RoundTrip(req)
		if err != nil {
			return nil, onHop(hop, f.callError(ctx, call, named, err, unreachable))
		}
		to, err := f.next(u, named, resp, hop)
		if err == nil && to == "" {
			data, err := f.read(ctx, call, named, resp, report)
			if err != nil {
				return nil, onHop(hop, err)
			}
			mediaType := resp.Header.Get("Content-Type")
			return &Document{u.String(), mediaType[:min(len(mediaType), maxMediaType)], data}, nil
		}
		resp.Body.Close()
		if err != nil {
			return nil, onHop(hop, err)
		}
		at = to
	}
}

// onHop says of an error that the document's own URL is not the one it is
// about. Who asks for a document knows where it is, but not to which host of
// whose network a server sends us from there.
func onHop(hop int, err error) error {
	if hop == 0 || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		err = r.redirected()
	}
	return fmt.Errorf("following a redirect of the document: %w", err)
}

// next returns where the answer of u leads, "" if it is the document. Errors
// are about named.
func (f *Fetcher) next(u, named *url.URL, resp *http.Response, hop int) (string, error) {
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNonAuthoritativeInfo:
		return "", nil
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return "", statusError(named, resp)
	}
	if hop >= f.maxRedirects {
		return "", remote(named, resp.StatusCode, nil, "the document's server redirects too often; correct the document's address")
	}
	to, err := u.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return "", remote(named, resp.StatusCode, nil, "the document's server redirects to nowhere; correct the document's address")
	}
	return to.String(), nil
}

// read takes the document's body from an answer. Errors are about named.
func (f *Fetcher) read(ctx, call context.Context, named *url.URL, resp *http.Response, report func(done, total int64)) ([]byte, error) {
	defer resp.Body.Close()
	if e := strings.ToLower(resp.Header.Get("Content-Encoding")); e != "" && e != "identity" {
		return nil, fmt.Errorf("the document's server sent it in a compression that was not asked for: %w", errkind.Unsupported)
	}
	total := max(resp.ContentLength, 0)
	if total > f.maxBytes {
		return nil, f.tooLarge()
	}
	// A server may promise much and send little.
	data := make([]byte, 0, max(min(total, 1<<20), 4<<10)+1)
	for {
		data = slices.Grow(data, 1)
		n, err := resp.Body.Read(data[len(data):min(cap(data), len(data)+readSize)])
		data = data[:len(data)+n]
		if int64(len(data)) > f.maxBytes {
			return nil, f.tooLarge()
		}
		if report != nil && n > 0 {
			report(int64(len(data)), total)
		}
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, f.callError(ctx, call, named, err, brokenOff)
		}
	}
}

func (f *Fetcher) tooLarge() error {
	return &errkind.Restriction{Reason: SizeReason, Err: fmt.Errorf("the document is larger than %d bytes: %w", f.maxBytes, errkind.TooLarge)}
}
