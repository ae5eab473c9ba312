// Package mcpserver serves MCP. It is the only package that uses the MCP SDK
// for servers. Other packages describe their tools and resources to a [Server]
// in plain Go values and serve it over stdio or HTTP; the API does not contain
// types of the SDK.
//
// A connection is a conn. It has one of three framings: lines on stdio,
// Streamable HTTP, and HTTP+SSE. It reads the messages and passes them to the
// SDK, with layers of this package as middleware.
//
// The package adds features to the SDK: pinned revisions, the gate before
// notifications/initialized, the domain block, exact argument errors, one table
// of error codes, no response after a cancellation, limits on requests in
// flight, and transports that tolerate bad input.
package mcpserver

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Revision is the revision of the MCP specification that a server uses.
type Revision string

// Revisions for a server. The zero value is [Latest].
const (
	Pinned Revision = "2025-03-26" // for the bridge in front of Fess
	Cody   Revision = "2024-11-05" // for Sourcegraph Cody
	Latest Revision = "latest"     // the revision that the client requests, if the SDK supports it
)

// Revisions with changes that this package implements.
const (
	unbatchedRevision = "2025-06-18" // no more batches
	resultsRevision   = "2025-11-25" // failures of tools are results
	statelessRevision = "2026-07-28" // no handshake; each request specifies the revision
)

// pinned reports whether the server supports only one revision.
func (r Revision) pinned() bool { return r == Pinned || r == Cody }

// versions returns the revisions for the SDK; nil is all that it supports.
func (r Revision) versions() []string {
	if r.pinned() {
		return []string{string(r)}
	}
	return nil
}

// A Domain describes the documents behind a server. It is published in
// serverInfo.domain and in capabilities.experimental.domain, because some
// clients drop unknown members of one of the two.
type Domain struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	LabelFilter string `json:"labelFilter"`
}

// Options configure a Server. The zero value of a limit is its default.
type Options struct {
	Name         string // serverInfo.name
	Title        string // serverInfo.title; "" omits it
	Version      string // serverInfo.version
	Instructions string // sent in the response to initialize; "" omits them
	Domain       *Domain
	Revision     Revision
	MaxInFlight  int           // concurrent tool calls and reads; 0 is 32
	QueueWait    time.Duration // how long further ones wait; 0 is 2 s
	Limit        *Limiter      // shared with other servers, in place of one of MaxInFlight and QueueWait
	Log          *slog.Logger  // nil discards

	// Header adds values from the HTTP header of a request to ctx for its
	// handler, for example a token. It may be nil. It is called before the
	// handler of each request except initialize and ping, must be safe for
	// concurrent use, and must not change the header. Over HTTP+SSE the header
	// is that of the GET that opened the stream. On stdio Header is not called.
	Header func(ctx context.Context, h http.Header) context.Context

	// Around, if set, is called for each request but ping. It calls answer once, with
	// ctx or a context derived from it, which runs the handler. If it returns an
	// error, that is the answer to the request, whatever the handler returned; then
	// answer may not have been called.
	Around func(ctx context.Context, r Request, answer func(context.Context) Outcome) error
}

// A Request describes a request of a client.
type Request struct {
	Method  string // for example tools/call
	Name    string // of the tool, or the URI of the resource, as the client sent it; otherwise ""
	Client  string // name of the program, as in clientInfo; "" if it is not known
	Session string // its ID; "" if there is none
}

// An Outcome is how a request ended.
type Outcome struct {
	Code int64  // of the JSON-RPC error; 0 if there is none
	Name string // of the error, for example INVALID_ARGUMENT; "" if there is none
}

// A Server answers MCP requests. Its tools and resources must be set before it
// is first served. Then it may be served on any number of connections
// concurrently.
type Server struct {
	sdk   *mcp.Server
	opts  Options
	log   *slog.Logger
	limit *Limiter
	offer atomic.Pointer[offer]
}

// An offer is what a server offers to its clients.
type offer struct {
	info         *mcp.Implementation
	instructions string
	domain       *Domain
	tools        []*tool
	byName       map[string]*tool
	res          Resources
	template     []Template
}

// New returns a server without tools and resources.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		opts:  o,
		log:   o.Log,
		limit: o.Limit,
	}
	if s.limit == nil {
		s.limit = NewLimiter(LimiterOptions{InFlight: o.MaxInFlight, QueueWait: o.QueueWait})
	}
	first := &offer{info: &mcp.Implementation{Name: o.Name, Title: o.Title, Version: o.Version},
		instructions: o.Instructions, domain: o.Domain, byName: map[string]*tool{}, res: noResources{}}
	s.offer.Store(first)
	s.sdk = mcp.NewServer(first.info, &mcp.ServerOptions{
		Instructions:              o.Instructions,
		SupportedProtocolVersions: o.Revision.versions(),
		Capabilities:              &mcp.ServerCapabilities{},
	})
	s.sdk.AddReceivingMiddleware(s.guard, s.identify, s.dispatch)
	return s
}

// Replace makes s offer what another server offers from the next request on: its
// tools, resources, instructions, names and domain. Sessions continue. Afterwards the
// other server must not be changed.
func (s *Server) Replace(other *Server) { s.offer.Store(other.offer.Load()) }

// capabilities declares the features of the server. It does not declare
// list_changed, which is never sent.
func (s *Server) capabilities() *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}
	offer := s.offer.Load()
	if offer.hasResources() {
		c.Resources = &mcp.ResourceCapabilities{}
	}
	if offer.domain != nil {
		c.Experimental = map[string]any{"domain": offer.domain}
	}
	return c
}
