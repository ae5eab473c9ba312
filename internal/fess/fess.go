// Package fess is a client of a Fess server. It supports Fess's API v1 (in the
// core of Fess 14.8 to 15.6, in a plugin from 15.7 on) and API v2 (in the core
// from 15.7 on), detects the version of the server, and implements the
// interfaces of package search.
//
// Fess appends the condition on a label to the text of the query, silently
// clamps values that are out of range, and answers with an empty page when its
// engine fails. The client protects callers from all three: queries are
// processed by [query.Guard], limits are checked before a request is made, and
// after an empty page that may be a failure, the client checks the server's
// health.
//
// Errors of calls are of type *errkind.Remote, errors of arguments that Fess
// does not accept are of type *errkind.Argument. They do not contain the
// server's host, a token, or text for the server's own log.
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

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpclient"
)

// Options configure a Client.
type Options struct {
	// BaseURL is the absolute http or https URL of the server. It may contain a
	// path, which is prefixed to the paths of the API.
	BaseURL string

	// AccessToken is sent as a bearer token with every request. With "", none
	// is sent, and Fess answers as for guests.
	AccessToken string

	// PassThrough sends the caller's own token (search.WithToken) instead of
	// AccessToken, so that each caller sees what the caller's roles permit. A
	// call without a token fails with kind Unauthorized.
	PassThrough bool

	// API is the version: "v1", "v2", or "auto" (also ""), which is v1 if the
	// server has it, and otherwise v2.
	API string

	CAFile             string // PEM file with additional certificate authorities; "" means only those of the system
	InsecureSkipVerify bool   // accept any certificate

	Timeout   time.Duration // limit of one call to the server; 0 means 30 s
	MaxConns  int           // idle connections kept for reuse, 0 means 32
	MaxBody   int64         // maximum size of an answer in bytes, after decompression; 0 means 16 MiB
	UserAgent string        // "" means "knowhow"

	Log *slog.Logger // nil discards
}

// Defaults of Options.
const (
	defaultTimeout  = 30 * time.Second
	defaultMaxConns = 32
	defaultMaxBody  = 16 << 20
)

// A Client is a client of one Fess server. It is safe for concurrent use.
type Client struct {
	base        *url.URL
	userAgent   string
	token       string // not sent if passThrough is set
	passThrough bool
	http        *http.Client
	timeout     time.Duration
	maxBody     int64
	log         *slog.Logger
	api         detector
	sawCapped   atomic.Bool // the lower page size of the server has been logged
}

// New returns a client. It makes no request. Invalid options are an error of
// kind Invalid.
func New(o Options) (*Client, error) {
	base, err := httpclient.ParseBaseURL("Fess's base URL", o.BaseURL)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := o.tls()
	if err != nil {
		return nil, err
	}
	if err := httpclient.CheckKey("Fess's access token", o.AccessToken); err != nil {
		return nil, err
	}
	fixed, ok := map[string]version{"": unknown, "auto": unknown, "v1": v1, "v2": v2}[o.API]
	if !ok {
		return nil, fmt.Errorf("reading Fess's API version: got %q, want auto, v1 or v2: %w", o.API, errkind.Invalid)
	}
	if o.MaxConns <= 0 {
		o.MaxConns = defaultMaxConns
	}
	transport := httpclient.NewTransport(o.MaxConns)
	transport.TLSClientConfig = tlsConfig
	transport.MaxIdleConns = o.MaxConns
	transport.ReadBufferSize = 32 << 10 // a page of hits in one read
	c := &Client{
		base:        base.JoinPath(),
		userAgent:   cmp.Or(o.UserAgent, "knowhow"),
		token:       o.AccessToken,
		passThrough: o.PassThrough,
		timeout:     o.Timeout,
		maxBody:     o.MaxBody,
		log:         o.Log,
		api:         detector{fixed: fixed},
		// The API never redirects. A redirect leads to an HTML page, and
		// possibly to another host.
		http: httpclient.New(transport),
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

// maxCAFile is the maximum size of the file of certificates, in bytes.
const maxCAFile = 4 << 20

// tls returns the TLS settings, or nil for Go's defaults.
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
		return nil, fmt.Errorf("reading certificate authorities: %s contains no PEM certificate: %w", o.CAFile,
			errkind.Invalid)
	}
	config.RootCAs = pool
	return config, nil
}
