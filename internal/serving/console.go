package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/console"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/indexing"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/repository"
	"github.com/knowhow-mcp/knowhow/internal/searchmcp"
	"github.com/knowhow-mcp/knowhow/internal/site"
	"github.com/knowhow-mcp/knowhow/internal/source"
)

// status returns what the console shows.
func (s *Server) status(ctx context.Context) (console.Status, error) {
	f, v := s.o.Folder, s.viewOf(ctx)
	status := console.Status{Version: s.o.Version, User: consoleUser(v.caller), Tools: v.toolGroups(),
		MaxUpload: cmp.Or(s.o.MaxUpload, kb.MaxUploadBytes), Sources: []console.Source{}}
	sources, err := v.current(ctx)
	if err != nil {
		return status, err
	}
	status.Endpoints = v.endpoints(sources)
	indexed, err := f.Status(ctx, Labels(Indexed(sources)), false)
	if err != nil {
		return status, err
	}
	if done, total, err := f.Index.Embedding(ctx, Labels(Indexed(sources))); err != nil {
		return status, err
	} else if total > 0 {
		status.Vectors = &console.Vectors{Done: done, Total: total}
		if v.caller == nil { // it depends on all documents
			status.Vectors.Seconds = int64(indexed.Stats.VectorTime.Seconds())
		}
	}
	for _, src := range indexed.Sources {
		to := console.Source{
			Label: src.Label, Path: src.Path, Description: src.Description, Kind: kindOf(src.Path),
			Documents: src.Documents, TextBytes: src.TextBytes,
			Watched: src.Process != nil, Errors: src.Errors, LeftOut: src.LeftOut, InPart: src.InPart,
		}
		if !src.Looked.IsZero() {
			to.Indexed = &src.Looked
		}
		if p := src.Indexing; p != nil {
			to.Indexing = (*console.Progress)(p)
		}
		if src.Incomplete != nil {
			to.Incomplete = src.Incomplete.State()
		}
		status.Sources = append(status.Sources, to)
	}
	for _, src := range sources {
		if !isIndexed(src) {
			to := console.Source{Label: src.Label, Path: src.Path, Description: src.Description,
				Kind: kindOf(src.Path), LeftOut: map[string]int{}}
			to.Datasets, to.MoreDatasets = datasetsOf(v.o.Asked[src.Label])
			status.Sources = append(status.Sources, to)
		}
	}
	return status, nil
}

// latestTime is how old a status may be for [Server.latest].
const latestTime = 450 * time.Millisecond

// A latestStatus is the status of a view that all its streams of events share.
type latestStatus struct {
	mu     sync.Mutex
	status console.Status
	until  time.Time // when it is read again
}

// latest returns what the console shows as of a moment ago. To read it takes at most a
// tenth of the time, however many streams there are.
func (s *Server) latest(ctx context.Context) (console.Status, error) {
	l := &s.viewOf(ctx).latestStatus
	l.mu.Lock()
	defer l.mu.Unlock()
	began := time.Now()
	if began.Before(l.until) {
		return l.status, nil
	}
	status, err := s.status(ctx)
	if err != nil {
		return status, err
	}
	l.status, l.until = status, began.Add(max(latestTime, 10*time.Since(began)))
	return status, nil
}

// leftOut returns what is left out of a source that the caller may read.
func (s *Server) leftOut(ctx context.Context, label string) ([]console.Path, error) {
	sources, err := s.viewOf(ctx).current(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(Indexed(sources), func(src document.Source) bool { return src.Label == label }) {
		return nil, fmt.Errorf("no source with this label is indexed: %w", errkind.NotFound)
	}
	audit.From(ctx).AddLabels(label)
	left, err := s.o.Folder.Index.LeftOut(ctx, label)
	if err != nil {
		return nil, err
	}
	paths := make([]console.Path, len(left.Paths))
	for i, p := range left.Paths {
		paths[i] = console.Path(p)
	}
	return paths, nil
}

// file returns the original of a document that the caller may read.
func (s *Server) file(ctx context.Context, id string) (*console.File, error) {
	v := s.viewOf(ctx)
	hit, err := v.documents.Find(ctx, id, nil)
	if err != nil {
		return nil, err
	}
	sources, err := v.current(ctx)
	if err != nil {
		return nil, err
	}
	r, err := s.store().RecordOf(ctx, id) // a Fess server that is asked could name any path
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(Indexed(sources), func(src document.Source) bool { return src.Label == r.Label })
	if i < 0 || !r.FromSource {
		return nil, fmt.Errorf("the document was not read from a file: %w", errkind.NotFound)
	}
	f, err := indexing.OpenOriginal(s.o.Folder.Dir, Indexed(sources)[i], r.Path, hit.URL)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &console.File{Name: path.Base(r.Path), Modified: info.ModTime(), Content: f}, nil
}

// pages returns the pages of a document that the caller may read. Documents of sources
// that are asked have none.
func (s *Server) pages(ctx context.Context, id string) ([]console.Page, error) {
	if _, err := s.viewOf(ctx).documents.Find(ctx, id, nil); err != nil {
		return nil, err
	}
	pages, err := s.store().Pages(ctx, id)
	if errors.Is(err, errkind.NotFound) {
		return nil, nil
	}
	list := make([]console.Page, len(pages))
	for i, p := range pages {
		list[i] = console.Page(p)
	}
	return list, err
}

// store returns what has the documents.
func (s *Server) store() kb.Store {
	if s.o.Folder.Store != nil {
		return s.o.Folder.Store
	}
	return s.o.Folder.Index
}

// current returns those of the current sources that the caller may read.
func (v *view) current(ctx context.Context) ([]document.Source, error) {
	sources, err := v.Server.current(ctx)
	return slices.DeleteFunc(sources, func(src document.Source) bool { return !v.readable(v.caller, src) }), err
}

// consoleUser returns what the console shows of a caller. Collections that the caller may
// not read are not named.
func consoleUser(c *access.Caller) console.User {
	if c == nil {
		return console.User{Admin: true, Write: console.Labels{All: true}}
	}
	u := console.User{Name: c.Name, Admin: c.Admin, Write: console.Labels{All: c.MayWrite(access.All)}}
	if len(c.Write) > 0 {
		u.Write.Some = slices.DeleteFunc(slices.Concat([]string{}, c.Write),
			func(l string) bool { return l == access.All || !c.MayRead(l) })
	}
	return u
}

// toolGroups returns the groups of tools that the caller has at the endpoint of all
// sources.
func (v *view) toolGroups() []string {
	groups := []string{}
	for _, g := range v.groups(v.o.Tools != nil) {
		groups = append(groups, string(g))
	}
	if v.o.Tools != nil {
		groups = append(groups, "kb")
	}
	return groups
}

// kindOf returns the kind of the source with a path.
func kindOf(path string) string {
	kind, _ := source.KindOf(path)
	switch {
	case kind != source.Indexed:
		return string(kind)
	case repository.Is(path):
		return console.Repository
	case site.Is(path):
		return console.Site
	}
	return console.Folder
}

// endpoints returns the MCP endpoints with search tools, that of all sources first.
func (v *view) endpoints(sources []document.Source) []console.Endpoint {
	endpoints := []console.Endpoint{}
	if slices.Contains(v.groups(v.o.Tools != nil), searchmcp.SearchTools) {
		endpoints = append(endpoints, console.Endpoint{Path: MCPPath, Domain: v.domain().ID})
		if len(sources) < 2 {
			return endpoints
		}
	}
	if slices.Contains(v.groups(false), searchmcp.SearchTools) {
		for _, src := range sources {
			endpoints = append(endpoints, console.Endpoint{Path: MCPPath + "/" + src.Label,
				Domain: source.Domain(src.Label), Label: src.Label})
		}
	}
	return endpoints
}
