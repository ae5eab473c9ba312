// Package fetch fetches documents from the web under a policy, because the URLs
// may come from untrusted authors. The policy covers schemes, hosts, private
// addresses (checked when connecting), redirects, size and time. The search
// bridge uses it for documents whose text is not in its index.
//
// Errors that are due to an option carry an [errkind.Reason].
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

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A Resolver resolves host names; [net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options are the policy and the limits of a Fetcher.
type Options struct {
	Schemes []string // of "http" and "https"; nil allows both

	// AllowedHosts, unless empty, are the only permitted hosts: exact names,
	// addresses, or "*.example.com" for every name below it. They may be in a
	// private network.
	AllowedHosts []string

	// AllowPrivate allows addresses that are not public: private networks, this
	// machine, link-local (cloud metadata), multicast and reserved addresses.
	AllowPrivate bool

	MaxBytes     int64         // largest document, after decompression; 0 means 5 MiB
	Timeout      time.Duration // time limit of a Get, including redirects; 0 means 20 s
	MaxRedirects int           // 0 means 5, a negative number means none
	UserAgent    string        // printable ASCII; "" means "knowhow"

	// Proxy is used for all requests. nil means no proxy, even if the
	// environment names one. A proxy resolves names itself, so with a proxy
	// only URLs are checked, and not the addresses of names.
	Proxy *url.URL

	RootCAs *x509.CertPool // nil means those of the system

	// Resolver and Dial are for tests; nil means package net. Dial is called
	// with addresses that were checked, or with that of the proxy.
	Resolver Resolver
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

// Defaults of Options.
const (
	defaultMaxBytes     = 5 << 20
	defaultTimeout      = 20 * time.Second
	defaultMaxRedirects = 5
	defaultUserAgent    = "knowhow"
)

const (
	maxHeader    = 64 << 10 // bytes of a response header
	maxMediaType = 256      // bytes of its Content-Type
	readSize     = 64 << 10 // bytes read between two reports
)

// A Document is a document as sent by a server.
type Document struct {
	URL       string // after redirects; without fragment and credentials
	MediaType string // the Content-Type as sent, including parameters; "" if there is none
	Data      []byte // the body, decompressed
}

// A Fetcher fetches documents. It is safe for concurrent use.
type Fetcher struct {
	policy       *policy
	header       http.Header
	maxBytes     int64
	timeout      time.Duration
	maxRedirects int
	transport    *http.Transport
}

// New returns a fetcher. Invalid options are errors of kind Invalid.
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

// newTransport returns the transport of the HTTP client. It keeps and sends no
// cookies, credentials or referrers.
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
			return nil, fmt.Errorf("reading the proxy's URL: want an absolute http, https or socks5 URL: %w",
				errkind.Invalid)
		}
		t.Proxy, t.DialContext = http.ProxyURL(o.Proxy), d.dial
	}
	return t, nil
}

// Close closes idle connections. It does not affect calls in progress.
func (f *Fetcher) Close() { f.transport.CloseIdleConnections() }

// Check reports, without any network access, whether Get would refuse the URL
// for its scheme, its host name, or an address in it. Errors are as those of
// Get.
func (f *Fetcher) Check(rawURL string) error {
	_, err := f.policy.check(rawURL)
	return err
}

// Get returns the document at a URL. It follows redirects, and the policy
// applies to each hop. If report is not nil, it is called with the number of
// bytes received and the total; a total of 0 is unknown.
//
// An error is of kind Denied if the policy forbids the URL, with a sentence
// that names the restriction; of kind TooLarge if the document is larger than
// MaxBytes; of kind Unsupported if the URL or the encoding cannot be read; and
// of type *errkind.Remote if the request failed (status 502, or 504 after
// Timeout) or the response has another status than 200. Errors contain nothing
// about networks that is not in rawURL: neither the address of its host nor the
// target of a redirect. If ctx ends first, the error is that of ctx.
func (f *Fetcher) Get(ctx context.Context, rawURL string, report func(done, total int64)) (*Document, error) {
	call, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	at := rawURL
	var named *url.URL // the URL that errors name: rawURL
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

// onHop adds to an error that it concerns the target of a redirect. The caller
// knows the URL of the document, but must not learn to which host of a private
// network a server redirects.
func onHop(hop int, err error) error {
	if hop == 0 || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		err = r.redirected()
	}
	return fmt.Errorf("following a redirect of the document: %w", err)
}

// next returns the target of the redirect in the response of u, or "" if the
// response contains the document. Errors are about named.
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
		return "", remote(named, resp.StatusCode, nil,
			"the document's server redirects too often; correct the document's address")
	}
	to, err := u.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return "", remote(named, resp.StatusCode, nil,
			"the document's server redirects to nowhere; correct the document's address")
	}
	return to.String(), nil
}

// read reads the document from the body of a response. Errors are about named.
func (f *Fetcher) read(ctx, call context.Context, named *url.URL, resp *http.Response,
	report func(done, total int64)) ([]byte, error) {
	defer resp.Body.Close()
	if e := strings.ToLower(resp.Header.Get("Content-Encoding")); e != "" && e != "identity" {
		return nil, fmt.Errorf("the document's server sent it in a compression that was not asked for: %w",
			errkind.Unsupported)
	}
	total := max(resp.ContentLength, 0)
	if total > f.maxBytes {
		return nil, f.tooLarge()
	}
	// Content-Length may be larger than the body.
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
	return &errkind.Restriction{Reason: SizeReason, Err: fmt.Errorf("the document is larger than %d bytes: %w",
		f.maxBytes, errkind.TooLarge)}
}
