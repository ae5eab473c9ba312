// Package mcpserver is the only package that uses the MCP SDK for servers. Front
// ends describe their tools and resources to a [Server] in plain Go values and
// serve it over stdio or HTTP; nothing of the SDK shows in this API.
//
// A connection is a conn, whatever carries it. Three framings feed it: lines on
// stdio, Streamable HTTP, and HTTP+SSE. It reads the messages, answers plain calls
// of tools itself and passes all else to the SDK, above which the same layers stand
// as middleware.
//
// The package adds to the SDK what this program promises to its users: pinned
// revisions, the gate before notifications/initialized, the domain block, exact
// argument errors, one table of error codes, silence after a cancellation,
// bounded work in flight, and transports that survive bad input.
package mcpserver

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Revision is a revision of the MCP specification that a server is pinned to.
type Revision string

// The revisions a server can be pinned to. The zero value is [Latest].
const (
	Pinned Revision = "2025-03-26" // what the bridge in front of Fess speaks
	Cody   Revision = "2024-11-05" // what Sourcegraph Cody speaks
	Latest Revision = "latest"     // whatever the client asks for, of all the SDK knows
)

// Revisions in which something changed that this package answers differently.
const (
	unbatchedRevision = "2025-06-18" // no more batches
	resultsRevision   = "2025-11-25" // failures of tools are results
	statelessRevision = "2026-07-28" // no handshake, the revision comes with each request
)

// pinned reports whether the server speaks one revision only.
func (r Revision) pinned() bool { return r == Pinned || r == Cody }

// versions returns the revisions that the SDK shall support; nil is all it knows.
func (r Revision) versions() []string {
	if r.pinned() {
		return []string{string(r)}
	}
	return nil
}

// A Domain says what the documents behind a server are about. It is published
// in serverInfo.domain and in capabilities.experimental.domain, because some
// clients drop what they do not know from one of the two.
type Domain struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	LabelFilter string `json:"labelFilter"`
}

// Options says what a server is. The zero value of a limit is its default.
type Options struct {
	Name         string // serverInfo.name
	Title        string // serverInfo.title; "" leaves it out
	Version      string // serverInfo.version
	Instructions string // sent to the client with the answer to initialize; "" leaves them out
	Domain       *Domain
	Revision     Revision
	MaxInFlight  int           // tool calls and reads that run at once; 0 is 32
	QueueWait    time.Duration // how long further ones wait for their turn; 0 is 2 s
	Log          *slog.Logger  // nil discards

	// Header takes from the HTTP header of a request what its handler needs
	// to know, for example a token, and returns ctx with that; nil takes
	// nothing. It is called before the handler of each request but initialize
	// and ping, by many goroutines at once, and must not change the header. Over
	// HTTP+SSE it sees the header of the GET that opened the stream; on stdio
	// it is not called.
	Header func(ctx context.Context, h http.Header) context.Context
}

// A Server answers MCP requests. Its tools and resources are set before it is
// first served; then it may be served on any number of connections at once.
type Server struct {
	sdk      *mcp.Server
	handle   mcp.MethodHandler // what the SDK's middleware is, without the SDK below it
	opts     Options
	info     *mcp.Implementation
	log      *slog.Logger
	limit    *limiter
	tools    []*tool
	byName   map[string]*tool
	res      Resources
	template []Template
}

// New returns a server without tools and resources.
func New(o Options) *Server {
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = 32
	}
	if o.QueueWait <= 0 {
		o.QueueWait = 2 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		opts:   o,
		info:   &mcp.Implementation{Name: o.Name, Title: o.Title, Version: o.Version},
		log:    o.Log,
		limit:  newLimiter(o.MaxInFlight, o.QueueWait),
		byName: map[string]*tool{},
	}
	s.sdk = mcp.NewServer(s.info, &mcp.ServerOptions{
		Instructions:              o.Instructions,
		SupportedProtocolVersions: o.Revision.versions(),
		Capabilities:              &mcp.ServerCapabilities{},
	})
	s.sdk.AddReceivingMiddleware(s.guard, s.identify, s.dispatch)
	s.handle = s.guard(s.identify(s.dispatch(func(_ context.Context, method string, _ mcp.Request) (mcp.Result, error) {
		return nil, errUnknownMethod(method) // nothing gets there
	})))
	return s
}

// capabilities declares what the server has. It never sends list_changed, so
// it does not promise it.
func (s *Server) capabilities() *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}
	if s.res != nil {
		c.Resources = &mcp.ResourceCapabilities{}
	}
	if s.opts.Domain != nil {
		c.Experimental = map[string]any{"domain": s.opts.Domain}
	}
	return c
}
