package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"knowhow/internal/document"
	"knowhow/internal/fessmcp"
	"knowhow/internal/index"
	"knowhow/internal/indexing"
	"knowhow/internal/job"
	"knowhow/internal/mcpserver"
	"knowhow/internal/terminal"
)

// runServe indexes sources and serves them.
func runServe(ctx context.Context, v *invocation, args []string) error {
	o, err := parseServe(v, args)
	if err != nil {
		return err
	}
	lines := terminal.NewLines(v.stderr, nil)
	v.stderr = lines // whatever is written makes way for the progress bar
	s := &serving{invocation: v, o: o, lines: lines, log: slog.New(terminal.NewHandler(lines, slog.LevelWarn))}
	if !o.stdio {
		if s.host, s.port, err = o.listener(v); err != nil {
			return err
		}
	}
	x, sources, err := openSources(ctx, v, o)
	if err != nil {
		return err
	}
	s.index, s.sources = x, sources
	return errors.Join(s.run(ctx), x.Close())
}

// pathReason returns what is wrong with a path without repeating the path.
func pathReason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// openSources opens the data folder and adds the sources that the command line
// names to those it remembers.
func openSources(ctx context.Context, v *invocation, o *serveOptions) (*index.Index, []document.Source, error) {
	var paths []string
	for _, arg := range o.sources {
		path, err := resolveSource(arg.path)
		if err != nil {
			return nil, nil, err
		}
		paths = append(paths, path)
	}
	none := &usageError{"no source: nothing is indexed yet", fmt.Sprintf("Name a folder, for example: %s docs", v.name)}
	if len(paths) == 0 && !fileExists(filepath.Join(o.data, index.FileName)) {
		return nil, nil, none
	}
	x, err := index.Open(ctx, index.Options{Dir: o.data})
	if err != nil {
		return nil, nil, err
	}
	known, err := x.Sources(ctx)
	for i := 0; err == nil && i < len(paths); i++ {
		var src document.Source
		var added bool
		if src, added, err = addSource(known, paths[i], o.sources[i].label); err == nil && added {
			known = append(known, src)
			err = x.AddSource(ctx, src)
		}
	}
	if err == nil && len(known) == 0 {
		err = none
	}
	if err != nil {
		return nil, nil, errors.Join(err, x.Close())
	}
	return x, known, nil
}

// fileExists reports whether there is something at path.
func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A serving is a running serve.
type serving struct {
	*invocation
	o       *serveOptions
	host    string // to listen on
	port    int
	index   *index.Index
	sources []document.Source
	lines   *terminal.Lines // stderr
	log     *slog.Logger

	mu   sync.Mutex
	jobs []*job.Manager // of each server
}

// run indexes in the background and serves until ctx ends or, on stdio, the
// client goes away.
func (s *serving) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	defer s.closeJobs(ctx)
	index := func() {
		background.Go(func() {
			err := indexing.Run(ctx, indexing.Options{Index: s.index, Dir: s.o.data, Lines: s.lines, Log: s.log, Once: s.o.noWatch})
			if err != nil && ctx.Err() == nil {
				s.log.Error("indexing stopped; what is indexed can still be searched", "error", err)
			}
		})
	}
	server := s.server(s.mainDomain())
	if s.o.stdio {
		index()
		return server.ServeStdio(ctx, s.stdin, s.stdout)
	}
	return s.listen(ctx, server, index)
}

// mainDomain is the domain of /mcp: of the one source, or of all.
func (s *serving) mainDomain() fessmcp.Domain {
	d := fessmcp.Domain{ID: "all", Name: "all"}
	if len(s.sources) == 1 {
		d = labelDomain(s.sources[0].Label)
	} else {
		labels := make([]string, len(s.sources))
		for i, src := range s.sources {
			labels[i] = src.Label
		}
		d.Description = "Documents of the sources " + strings.Join(labels, ", ")
	}
	if s.o.domain != "" {
		d.ID = s.o.domain
		if s.o.domainName == "" {
			d.Name = s.o.domain
		}
	}
	if s.o.domainName != "" {
		d.Name = s.o.domainName
	}
	return d
}

// labelDomain is the domain of one source.
func labelDomain(label string) fessmcp.Domain {
	return fessmcp.Domain{ID: domainID(label), Name: label, Label: label, Description: "Documents of the source " + label}
}

// server returns an MCP server for a domain.
func (s *serving) server(d fessmcp.Domain) *mcpserver.Server {
	server := mcpserver.New(mcpserver.Options{
		Name: "knowhow", Title: "knowhow: " + d.Name, Version: version(),
		Instructions: fessmcp.Instructions(d),
		Domain:       &mcpserver.Domain{ID: d.ID, Name: d.Name, Description: d.Description, LabelFilter: d.Label},
		Revision:     mcpserver.Latest,
		Log:          s.log,
	})
	jobs := job.New(job.Options{Threshold: jobThreshold, Keep: jobKeep, Log: s.log})
	s.mu.Lock()
	s.jobs = append(s.jobs, jobs)
	s.mu.Unlock()
	fessmcp.Register(server, fessmcp.Options{Domain: d, Backend: s.index, Jobs: jobs, Log: s.log})
	return server
}

// closeJobs ends the jobs of all servers.
func (s *serving) closeJobs(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	closeJobs(ctx, s.log, s.jobs...)
}
