package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"knowhow/internal/document"
	"knowhow/internal/embed"
	"knowhow/internal/errkind"
	"knowhow/internal/fessmcp"
	"knowhow/internal/index"
	"knowhow/internal/indexing"
	"knowhow/internal/job"
	"knowhow/internal/kb"
	"knowhow/internal/kbmcp"
	"knowhow/internal/mcpserver"
	"knowhow/internal/opensearch"
	"knowhow/internal/search/scope"
	"knowhow/internal/source"
)

// runServe indexes sources and serves them.
func (v *invocation) runServe(ctx context.Context, o *serveCommand) (err error) {
	if err := o.check(v); err != nil {
		return err
	}
	server, err := v.newServer(o.Transport, o.Addr, o.Level, o.Token, o.httpFlags)
	if err == nil {
		err = server.requireToken(o.Addr)
	}
	if err != nil {
		return err
	}
	s := &serving{server: server, o: o}
	queries, documents, wait, err := o.embedderFlags.open()
	if err != nil {
		return err
	}
	s.embedder = documents
	x, sources, err := openSources(ctx, v, o, index.Options{Dir: o.Data, Log: s.log, Embedder: queries, EmbedTime: wait})
	if err != nil {
		return err
	}
	s.index, s.sources = x, sources
	if s.store, err = o.storeFlags.open(queries, wait, s.log); err == nil && s.store != nil {
		err = s.openStore(ctx, queries != nil)
	}
	if err != nil {
		return errors.Join(err, x.Close())
	}
	options := kb.Options{Index: x, Dir: o.Data, Sources: s.labels(), MaxUpload: int64(o.MaxUpload), Version: version(), Log: s.log}
	s.backend = scope.New(x, s.labels()...)
	if s.store != nil {
		options.Store = s.store
		s.backend = scope.New(storedFolders{s.store, x}, s.labels()...)
		defer s.store.Close() // never fails
	}
	s.base = kb.NewLocal(options)
	return errors.Join(s.run(ctx), x.Close())
}

// openStore connects to the store and claims the sources there. If the store
// cannot be reached now, the sources are claimed before they are indexed.
func (s *serving) openStore(ctx context.Context, meaning bool) error {
	if err := s.connect(ctx, s.store, meaning); err != nil {
		return err
	}
	err := explainStore(claimSources(ctx, s.store, s.o.Data, s.sources))
	if errkind.Retryable(err) {
		return nil
	}
	return err
}

// A claimingSink is a store in which a source is claimed before it is indexed.
type claimingSink struct {
	*opensearch.Store
	s *serving
}

// Stamps returns the stamps of the files of a source. It fails if the source
// cannot be claimed.
func (c claimingSink) Stamps(ctx context.Context, label string) (map[string]document.Stamp, error) {
	for _, src := range c.s.sources {
		if src.Label == label {
			if err := explainStore(claimSources(ctx, c.Store, c.s.o.Data, []document.Source{src})); err != nil {
				return nil, err
			}
		}
	}
	return c.Store.Stamps(ctx, label)
}

// A serving is a running serve command.
type serving struct {
	*server
	o       *serveCommand
	index   *index.Index
	sources []document.Source // that this process serves
	store   *opensearch.Store // has the documents; nil if they are in index
	backend *scope.Scope      // the part of the documents that this process serves
	base    *kb.Local         // the same part, and what users added
	uploads *kbmcp.Uploads    // that are sent over HTTP; nil for none

	embedder embed.Embedder // of documents; nil: search by words only

	mu   sync.Mutex
	jobs []*job.Manager // of each server
}

// releaseTime is the time limit for releasing the leases of a server that could
// not listen.
const releaseTime = 300 * time.Millisecond

// firstAnswer is how long indexing waits, so that the first request, which a
// client sends at once, is answered before it takes the processor.
const firstAnswer = 50 * time.Millisecond

// run indexes in the background and serves until ctx ends or, on stdio, the
// client disconnects.
func (s *serving) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	options := indexing.Options{Index: s.index, Sources: s.current, Dir: s.o.Data, Lines: s.lines, Log: s.log, Once: s.o.NoWatch}
	embedding := indexing.EmbedOptions{Index: s.index, Embedder: s.embedder, Labels: s.base.Labels, Lines: s.lines, Log: s.log}
	if s.store != nil {
		options.Sink = claimingSink{s.store, s}
		embedding.Store = s.store
	}
	indexer := indexing.New(options)
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
	index := func() {
		background.Go(func() {
			select {
			case <-ctx.Done():
			case <-time.After(firstAnswer):
			}
			if err := indexer.Run(ctx); err != nil && ctx.Err() == nil {
				s.log.Error("indexing stopped; what is indexed can still be searched", "error", err)
			}
		})
		if s.embedder != nil {
			background.Go(func() { indexing.Embed(ctx, embedding) })
		}
	}
	background.Go(func() { s.base.Run(ctx) })
	if s.store != nil {
		background.Go(func() { maintainStore(ctx, s.store, s.log) })
	}
	var tools *kbmcp.Options
	if s.o.Tools.kb {
		uploads, err := openUploads(s.o.Data, kbmcp.UploadOptions{MaxSize: int64(s.o.MaxUpload)})
		if err != nil {
			return err
		}
		defer uploads.Close()
		tools = &kbmcp.Options{Base: s.base, Uploads: uploads, Version: version()}
		if !s.stdio {
			tools.UploadPath = uploadPath
			s.uploads = uploads
		}
	}
	s.mcp, s.path = s.mcpServer(s.mainDomain(), s.backend, tools), mcpPath
	if s.stdio {
		index()
	} else {
		s.routes()
		s.ready = func(url string) {
			fmt.Fprintf(s.stderr, "\nTo search in a browser:\n  %s/\n", strings.TrimSuffix(url, mcpPath))
			s.printSnippets(s.snippetName(), url, "KNOWHOW_TOKEN")
			if program, err := os.Executable(); err == nil && s.store == nil {
				fmt.Fprint(s.stderr, startSnippet(s.snippetName(), program, s.startArgs()))
			}
			index()
		}
	}
	return s.serve(ctx)
}

// labels returns the labels of the sources that this process serves.
func (s *serving) labels() []string {
	labels := make([]string, len(s.sources))
	for i, src := range s.sources {
		labels[i] = src.Label
	}
	return labels
}

// current returns the sources of this process that are still remembered:
// another process may have removed one, or assigned its label to another
// folder.
func (s *serving) current(ctx context.Context) ([]document.Source, error) {
	all, err := s.index.Sources(ctx)
	return slices.DeleteFunc(all, func(a document.Source) bool {
		return !slices.ContainsFunc(s.sources, func(src document.Source) bool { return src.Label == a.Label && src.Path == a.Path })
	}), err
}

// mainDomain returns the domain of /mcp: that of the only source, or of all
// sources.
func (s *serving) mainDomain() fessmcp.Domain {
	d := fessmcp.Domain{ID: "all", Name: "all"}
	if len(s.sources) == 1 {
		d = sourceDomain(s.sources[0])
	} else {
		about := make([]string, len(s.sources))
		for i, src := range s.sources {
			about[i] = src.Label
			if src.Description != "" {
				about[i] += " (" + src.Description + ")"
			}
		}
		d.Description = cutDescription("Documents of the sources " + strings.Join(about, ", "))
	}
	if s.o.Domain != "" {
		d.ID = string(s.o.Domain)
		if s.o.DomainName == "" {
			d.Name = d.ID
		}
	}
	if s.o.DomainName != "" {
		d.Name = s.o.DomainName
	}
	return d
}

// cutDescription shortens a combined description to 1,000 characters.
func cutDescription(s string) string {
	if runes := []rune(s); len(runes) > 2*maxDescription {
		return string(runes[:2*maxDescription-1]) + "…"
	}
	return s
}

// sourceDomain returns the domain of one source.
func sourceDomain(src document.Source) fessmcp.Domain {
	d := fessmcp.Domain{ID: source.Domain(src.Label), Name: src.Label, Label: src.Label, Description: src.Description}
	if d.Description == "" {
		what := "Documents in the folder "
		if info, err := os.Stat(src.Path); err == nil && !info.IsDir() {
			what = "The file "
		}
		d.Description = what + filepath.Base(src.Path)
	}
	return d
}

// folderPage is the default number of hits on a page.
const folderPage = 8

// mcpServer returns an MCP server for a domain over a part of the index, with the
// tools of the knowledge base if there are any.
func (s *serving) mcpServer(d fessmcp.Domain, backend *scope.Scope, tools *kbmcp.Options) *mcpserver.Server {
	o := fessmcp.Options{
		Domain:     d,
		Backend:    backend,
		Wording:    fessmcp.OfFolders,
		Groups:     s.o.Tools.search,
		NameSource: d.Label == "",
		PageSize:   folderPage,
		Log:        s.log,
	}
	if len(o.Groups) == 0 {
		o.Groups = []fessmcp.Group{} // none; nil would be all
		if tools == nil {
			o.Groups = []fessmcp.Group{fessmcp.SearchTools}
		}
	}
	if slices.Contains(s.o.Tools.search, fessmcp.FessTools) {
		o.Jobs = job.New(job.Options{Threshold: jobThreshold, Keep: jobKeep, Log: s.log})
		s.mu.Lock()
		s.jobs = append(s.jobs, o.Jobs)
		s.mu.Unlock()
	}
	var instructions []string
	if len(o.Groups) > 0 {
		instructions = append(instructions, fessmcp.Instructions(o))
	}
	if tools != nil {
		instructions = append(instructions, kbmcp.Instructions())
	}
	server := mcpserver.New(mcpserver.Options{
		Name: "knowhow", Title: "knowhow: " + d.Name, Version: version(),
		Instructions: strings.Join(instructions, "\n\n"),
		Domain:       &mcpserver.Domain{ID: d.ID, Name: d.Name, Description: d.Description, LabelFilter: d.Label},
		Revision:     mcpserver.Latest,
		Log:          s.log,
	})
	fessmcp.Register(server, o)
	if tools != nil {
		kbmcp.Register(server, *tools)
	}
	return server
}

// closeJobs ends the jobs of all servers.
func (s *serving) closeJobs(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	closeJobs(ctx, s.log, s.jobs...)
}
