// Package fess is a client of a Fess server. It speaks Fess's API v1 (in the
// core of Fess 14.8 to 15.6, a plugin from 15.7 on) and API v2 (in the core from
// 15.7 on), finds out which of them the server speaks, and implements the
// interfaces of package search over it.
//
// Fess appends the condition on a label to the text of the query, silently clamps
// values that are out of bounds, and answers with an empty page when its engine
// fails. The client hides all three: queries pass through [query.Guard], bounds are
// checked before a request is made, and after an empty page that looks like a
// failure the client asks for the server's health.
//
// Errors of calls are of type *errkind.Remote, those of arguments that Fess does not
// accept *errkind.Argument. Neither contains the server's host, a token, or text
// that the server meant for its own log.
package fess

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"knowhow/internal/errkind"
)

// Options name the server of a Client and how to connect to it.
type Options struct {
	// BaseURL is the absolute http or https URL of the server. It may contain
	// a path, to which the paths of the API are added.
	BaseURL string

	// AccessToken is sent as a bearer token with every request; "" sends
	// none, and Fess then answers as for guests.
	AccessToken string

	// PassThrough sends the caller's own token (search.WithToken) in place
	// of AccessToken, so that each caller sees what the caller's roles allow.
	// A call without a token is refused with kind Unauthorized.
	PassThrough bool

	// API is the version to speak: "v1", "v2", or "auto" (also ""): v1 where
	// the server has it, else v2.
	API string

	CAFile             string // PEM file of further certificate authorities; "" for the system's alone
	InsecureSkipVerify bool   // accept any certificate

	Timeout   time.Duration // limit of one call to the server, 0 means 30 s
	MaxConns  int           // idle connections kept for reuse, 0 means 32
	MaxBody   int64         // largest answer in bytes, after decompression; 0 means 16 MiB
	UserAgent string        // "" means "knowhow"

	Log *slog.Logger // nil logs nothing
}

// The defaults of Options.
const (
	defaultTimeout  = 30 * time.Second
	defaultMaxConns = 32
	defaultMaxBody  = 16 << 20
)

// A Client asks one Fess server. It is safe for concurrent use.
type Client struct {
	base        *url.URL
	userAgent   string
	token       string // never sent where passThrough is set
	passThrough bool
	http        *http.Client
	timeout     time.Duration
	maxBody     int64
	log         *slog.Logger
	api         detector
	sawCapped   atomic.Bool  // the server's lower page size has been logged
	usual       atomic.Int64 // bytes of the last answer
}

// New returns a client of the server that o names. It makes no request. An
// Options that cannot work is an error of kind Invalid.
func New(o Options) (*Client, error) {
	base, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := o.tls()
	if err != nil {
		return nil, err
	}
	if !visible(o.AccessToken) {
		return nil, fmt.Errorf("reading Fess's access token: want printable ASCII without blanks, at most %d characters: %w", maxToken, errkind.Invalid)
	}
	fixed, ok := map[string]version{"": unknown, "auto": unknown, "v1": v1, "v2": v2}[o.API]
	if !ok {
		return nil, fmt.Errorf("reading Fess's API version: got %q, want auto, v1 or v2: %w", o.API, errkind.Invalid)
	}
	if o.MaxConns <= 0 {
		o.MaxConns = defaultMaxConns
	}
	c := &Client{
		base:        base,
		userAgent:   cmp.Or(o.UserAgent, "knowhow"),
		token:       o.AccessToken,
		passThrough: o.PassThrough,
		timeout:     o.Timeout,
		maxBody:     o.MaxBody,
		log:         o.Log,
		api:         detector{fixed: fixed},
		http: &http.Client{
			Transport: &http.Transport{
				Proxy:               http.ProxyFromEnvironment,
				TLSClientConfig:     tlsConfig,
				ForceAttemptHTTP2:   true,
				MaxIdleConns:        o.MaxConns,
				MaxIdleConnsPerHost: o.MaxConns,
				IdleConnTimeout:     90 * time.Second,
				ReadBufferSize:      32 << 10, // a page of hits in one read
				TLSHandshakeTimeout: 10 * time.Second,
			},
			// The API never redirects. A redirect leads to an HTML page,
			// and it may lead to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	if c.maxBody <= 0 {
		c.maxBody = defaultMaxBody
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Close closes idle connections. Calls in progress continue.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// parseBase checks the server's URL. Its messages leave out the URL, which may
// hold a password.
func parseBase(s string) (*url.URL, error) {
	base, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading Fess's base URL: want an absolute http or https URL: %w", errkind.Invalid)
	case base.Scheme != "http" && base.Scheme != "https", base.Host == "", base.Opaque != "":
		return nil, fmt.Errorf("reading Fess's base URL: want an absolute http or https URL: %w", errkind.Invalid)
	case base.User != nil:
		return nil, fmt.Errorf("reading Fess's base URL: want no user or password in it, Fess takes access tokens: %w", errkind.Invalid)
	case base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("reading Fess's base URL: want no query and no fragment in it: %w", errkind.Invalid)
	}
	return base.JoinPath(), nil
}

// maxCAFile bounds the file of certificates, in bytes.
const maxCAFile = 4 << 20

// tls returns the TLS settings, nil where Go's own will do.
func (o Options) tls() (*tls.Config, error) {
	if o.CAFile == "" && !o.InsecureSkipVerify {
		return nil, nil
	}
	config := &tls.Config{InsecureSkipVerify: o.InsecureSkipVerify}
	if o.CAFile == "" {
		return config, nil
	}
	f, err := os.Open(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading certificate authorities: %w", err)
	}
	defer f.Close()
	pem, err := io.ReadAll(io.LimitReader(f, maxCAFile))
	if err != nil {
		return nil, fmt.Errorf("reading certificate authorities: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading certificate authorities: %s holds no PEM certificate: %w", o.CAFile, errkind.Invalid)
	}
	config.RootCAs = pool
	return config, nil
}
