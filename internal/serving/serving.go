// Package serving serves sources of a data folder: the MCP tools over all of them and
// over each, the Fess API, the knowledge base and the console. It also keeps their
// documents up to date.
package serving

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/indexing"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kbmcp"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/searchmcp"
	"github.com/knowhow-mcp/knowhow/internal/source"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
	"github.com/knowhow-mcp/knowhow/internal/users"
)

// Options configures a [Server].
type Options struct {
	Folder  *datafolder.Folder // with its index, except for calls of tools without Run; required
	Sources []document.Source  // that are served; required

	// Asked are the services of those of Sources that are neither indexed nor notes, by
	// their labels. A search waits for each at most SourceTimeout; 0 means two seconds.
	Asked         map[string]search.Service
	SourceTimeout time.Duration

	// Header keeps what services need of a request over HTTP; nil for nothing.
	Header func(context.Context, http.Header) context.Context

	Groups     []searchmcp.Group // none means search, unless there are tools of the knowledge base
	Domain     string            // of all sources; "" means the label of the only source, or all
	DomainName string            // its name; "" means the domain

	// Tools are the tools of the knowledge base, of which Base and Version are set;
	// nil for none.
	Tools     *kbmcp.Options
	MaxUpload int64 // bytes of a file; 0 means the default of package kb

	Users users.Options // without View

	// PublicURL is the URL without a path at which clients reach the server; "" means that
	// of the request.
	PublicURL string

	TokenVariable string // environment variable from which clients take the token

	Once    bool            // examine the sources only once
	Lines   *terminal.Lines // for a progress bar and lines about the sources
	Version string          // of the program
	Log     *slog.Logger
}

// A Server serves sources. Create one with [New].
type Server struct {
	o     Options
	base  *kb.Local // the documents that are served, and what users added
	users *users.Table
}

// New returns a server.
func New(o Options) *Server {
	s := &Server{o: o}
	o.Users.View, o.Users.Log = func(c *access.Caller) users.View { return s.view(c) }, o.Log
	s.users = users.New(o.Users)
	if o.Folder.Index != nil {
		s.base = o.Folder.Base(kb.Options{Sources: Labels(Indexed(o.Sources)), MaxUpload: o.MaxUpload, Version: o.Version})
	}
	return s
}

// Users returns the users of the server.
func (s *Server) Users() *users.Table { return s.users }

// Indexed returns those of the sources that are indexed.
func Indexed(sources []document.Source) []document.Source {
	return slices.DeleteFunc(slices.Clone(sources), func(src document.Source) bool { return !isIndexed(src) })
}

func isIndexed(src document.Source) bool {
	kind, _ := source.KindOf(src.Path)
	return kind == source.Indexed
}

// Labels returns the labels of sources.
func Labels(sources []document.Source) []string {
	labels := make([]string, len(sources))
	for i, src := range sources {
		labels[i] = src.Label
	}
	return labels
}

const (
	// releaseTime is the time limit for releasing the leases of a server that could
	// not listen.
	releaseTime = 300 * time.Millisecond

	// firstAnswer is how long indexing waits, so that the first request, which a
	// client sends at once, is answered before it takes the processor.
	firstAnswer = 50 * time.Millisecond
)

// Run calls serve, which serves clients and calls begin as soon as indexing may
// begin. It indexes until serve returns. The work of the data folder ends
// with the folder.
func (s *Server) Run(ctx context.Context, serve func(ctx context.Context, begin func()) error) error {
	ctx, cancel := context.WithCancel(ctx)
	f := s.o.Folder
	indexer := indexing.New(indexing.Options{
		Index: f.Index, Sink: f.Sink(Indexed(s.o.Sources)), Sources: s.indexed, Dir: f.Dir,
		Lines: s.o.Lines, Log: s.o.Log, Once: s.o.Once, Version: s.o.Version,
	})
	indexer.Prepare(ctx)
	defer func() { // after background.Wait
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		indexer.Close(ctx)
	}()
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	background.Go(func() { s.users.Run(ctx) })
	f.Work(ctx, s.base, s.o.Lines)
	return serve(ctx, func() {
		background.Go(func() {
			select {
			case <-ctx.Done():
			case <-time.After(firstAnswer):
			}
			if err := indexer.Run(ctx); err != nil && ctx.Err() == nil {
				s.o.Log.Error("indexing stopped; what is indexed can still be searched", "error", err)
			}
		})
	})
}

// current returns the sources of this process that are asked or still remembered:
// another process may have removed one, or assigned its label to another folder.
func (s *Server) current(ctx context.Context) ([]document.Source, error) {
	sources, err := s.o.Folder.Index.Sources(ctx)
	sources = slices.DeleteFunc(sources, func(a document.Source) bool {
		return !slices.ContainsFunc(s.o.Sources, func(src document.Source) bool {
			return src.Label == a.Label && src.Path == a.Path
		})
	})
	for _, src := range s.o.Sources {
		if !isIndexed(src) {
			sources = append(sources, src)
		}
	}
	return sources, err
}

// indexed returns those of the current sources that are indexed.
func (s *Server) indexed(ctx context.Context) ([]document.Source, error) {
	sources, err := s.current(ctx)
	return Indexed(sources), err
}
