// Package serving serves sources of a data folder: the MCP tools over all of them and
// over each, the Fess API, the knowledge base and the console. It also keeps their
// documents up to date.
package serving

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/indexing"
	"github.com/knowhow-mcp/knowhow/internal/job"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kbmcp"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/repository"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/search/federated"
	"github.com/knowhow-mcp/knowhow/internal/search/scope"
	"github.com/knowhow-mcp/knowhow/internal/searchmcp"
	"github.com/knowhow-mcp/knowhow/internal/site"
	"github.com/knowhow-mcp/knowhow/internal/source"
	"github.com/knowhow-mcp/knowhow/internal/terminal"
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

	Once    bool            // examine the sources only once
	Lines   *terminal.Lines // for a progress bar and lines about the sources
	Version string          // of the program
	Log     *slog.Logger
}

// A Server serves sources. Create one with [New].
type Server struct {
	o       Options
	backend scope.Service // the documents that are served
	base    *kb.Local     // the same part, and what users added

	mu   sync.Mutex
	jobs []*job.Manager // of each MCP server
}

// New returns a server.
func New(o Options) *Server {
	s := &Server{o: o}
	s.backend = s.over(o.Sources)
	if o.Folder.Index != nil {
		s.base = o.Folder.Base(kb.Options{Sources: Labels(Indexed(o.Sources)), MaxUpload: o.MaxUpload, Version: o.Version})
	}
	return s
}

// over returns the documents of some sources.
func (s *Server) over(sources []document.Source) scope.Service {
	own := federated.Member{Labels: Labels(sources)} // in the data folder
	var labels []string
	var of, notes []scope.Notes // of come first: a collection belongs to the source that has its label
	var asked []federated.Member
	for _, src := range sources {
		switch kind, collection := source.KindOf(src.Path); kind {
		case source.Indexed:
			labels = append(labels, src.Label) // with the notes of the collection that has the label
		case source.Notes:
			notes = append(notes, scope.Notes{Label: src.Label, Collections: s.collections(collection)})
		default: // the notes of that collection, but no files: another process may have indexed a folder with the label
			of = append(of, scope.Notes{Label: src.Label, Collections: s.collections(src.Label)})
		}
		if service := s.o.Asked[src.Label]; service != nil {
			one := []string{src.Label}
			asked = append(asked, federated.Member{Labels: one, Sources: one, Service: service})
		} else {
			own.Sources = append(own.Sources, src.Label)
		}
	}
	documents := scope.WithNotes(s.o.Folder.Service(), labels, append(of, notes...))
	if asked == nil {
		return documents
	}
	own.Service = documents
	return federated.New(federated.Options{Members: append([]federated.Member{own}, asked...),
		Timeout: s.o.SourceTimeout, Log: s.o.Log})
}

// collections returns the function that lists the labels of a collection, or of all
// that users have written in if it is "".
func (s *Server) collections(one string) func(context.Context) ([]string, error) {
	if one != "" {
		return func(context.Context) ([]string, error) { return []string{one}, nil }
	}
	return func(ctx context.Context) ([]string, error) { return s.o.Folder.WrittenLabels(ctx) }
}

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
	defer s.closeJobs(ctx)
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

// maxDescription is the maximum length of the description of several sources, in
// characters. With it, the instructions of a server stay within what clients show.
const maxDescription = 1000

// domain returns the domain of all sources.
func (s *Server) domain() searchmcp.Domain {
	d := searchmcp.Domain{ID: "all", Name: "all"}
	if len(s.o.Sources) == 1 {
		d = sourceDomain(s.o.Sources[0])
	} else {
		about := make([]string, len(s.o.Sources))
		for i, src := range s.o.Sources {
			about[i] = src.Label
			if src.Description != "" {
				about[i] += " (" + src.Description + ")"
			}
		}
		d.Description = "Documents of the sources " + strings.Join(about, ", ")
		if runes := []rune(d.Description); len(runes) > maxDescription {
			d.Description = string(runes[:maxDescription-1]) + "…"
		}
	}
	d.ID, d.Name = cmp.Or(s.o.Domain, d.ID), cmp.Or(s.o.DomainName, s.o.Domain, d.Name)
	return d
}

// sourceDomain returns the domain of one source.
func sourceDomain(src document.Source) searchmcp.Domain {
	d := searchmcp.Domain{ID: source.Domain(src.Label), Name: src.Label, Label: src.Label, Description: src.Description}
	if d.Description == "" {
		what, name := "Documents in the folder ", filepath.Base(src.Path)
		kind, rest := source.KindOf(src.Path)
		switch {
		case kind == source.Notes && rest == "":
			what, name = "Notes and files that users and agents have added", ""
		case kind == source.Notes:
			what, name = "Notes and files that users and agents have added to the collection ", rest
		case kind == source.Datasets:
			what = "Datasets in the folder "
		case kind == source.Fess:
			what, name = "Documents of the Fess domain ", src.Label
		}
		if kind != source.Indexed {
			d.Description = what + name
			return d
		}
		if r, err := repository.Parse(src.Path); err == nil {
			what, name = "Documents in the repository ", r.Name()
		} else if site.Is(src.Path) {
			what, name = "Pages of the web site ", src.Path
		} else if info, err := os.Stat(src.Path); err == nil && !info.IsDir() {
			what = "The file "
		}
		d.Description = what + name
	}
	return d
}

// pageSize is the default number of hits on a page.
const pageSize = 8

// MCP returns the MCP server over all sources.
func (s *Server) MCP() *mcpserver.Server { return s.mcp(s.domain(), s.backend, s.o.Tools) }

// mcp returns an MCP server for a domain over a part of the documents, with the
// tools of the knowledge base if there are any.
func (s *Server) mcp(d searchmcp.Domain, backend scope.Service, tools *kbmcp.Options) *mcpserver.Server {
	o := searchmcp.Options{
		Domain:     d,
		Backend:    backend,
		Wording:    searchmcp.OfFolders,
		Groups:     s.o.Groups,
		NameSource: d.Label == "",
		PageSize:   pageSize,
		Log:        s.o.Log,
	}
	if len(o.Groups) == 0 {
		o.Groups = []searchmcp.Group{} // none; nil would be all
		if tools == nil {
			o.Groups = []searchmcp.Group{searchmcp.SearchTools}
		}
	}
	if slices.Contains(s.o.Groups, searchmcp.FessTools) {
		o.Jobs = job.New(job.Options{Threshold: jobThreshold, Log: s.o.Log})
		s.mu.Lock()
		s.jobs = append(s.jobs, o.Jobs)
		s.mu.Unlock()
	}
	documents := searchmcp.New(o)
	var instructions []string
	if len(o.Groups) > 0 {
		instructions = append(instructions, documents.Instructions())
	}
	if tools != nil {
		instructions = append(instructions, kbmcp.Instructions())
	}
	server := mcpserver.New(mcpserver.Options{
		Name: "knowhow", Title: "knowhow: " + d.Name, Version: s.o.Version,
		Instructions: strings.Join(instructions, "\n\n"),
		Domain:       &mcpserver.Domain{ID: d.ID, Name: d.Name, Description: d.Description, LabelFilter: d.Label},
		Revision:     mcpserver.Latest,
		Log:          s.o.Log,
		Header:       s.o.Header,
	})
	documents.Register(server)
	if tools != nil {
		all := *tools
		all.Base, all.Version = s.base, s.o.Version
		kbmcp.Register(server, all)
	}
	return server
}

const (
	// jobThreshold is the time after which a call becomes a job.
	jobThreshold = 2 * time.Second

	// jobStop is the time limit for the end of running jobs when the server ends,
	// which takes at most a second.
	jobStop = 100 * time.Millisecond
)

// closeJobs ends the jobs of all MCP servers. Work that does not return in time is
// abandoned.
func (s *Server) closeJobs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobStop)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.jobs {
		if err := m.Close(ctx); err != nil {
			s.o.Log.Warn("leaving jobs behind that do not end", "error", err)
		}
	}
}
