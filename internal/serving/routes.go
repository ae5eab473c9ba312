package serving

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/console"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fessserver"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kbserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/searchmcp"
	"github.com/knowhow-mcp/knowhow/internal/source"
)

const (
	// MCPPath is the path of the MCP server over all sources. Each source has a path
	// below it.
	MCPPath = "/mcp"

	// fessPath is the path of the Fess API, with which the bridge and other clients
	// of Fess can use the server.
	fessPath = "/fess"

	// kbPath is the path of the knowledge base, before the paths of the engine
	// API.
	kbPath = "/kb"
)

// Routes returns the routes of the server, with the MCP server over all sources.
func (s *Server) Routes(mcp *mcpserver.Server) []httpguard.Route {
	all := mcp.HTTP(mcpserver.HTTPOptions{}).Route(MCPPath)
	all.Refuse = console.RefuseWithPage(mcpserver.Refuse)
	labels := &labelHandlers{Server: s, made: map[string]*mcpserver.HTTPHandler{}}
	one := all
	one.Tree, one.Handler, one.Shutdown = true, labels, labels.shutdown
	routes := []httpguard.Route{
		all, one,
		fessserver.Route(fessserver.Options{Backend: s.backend, Prefix: fessPath, Log: s.o.Log}),
		kbserver.Route(kbserver.Options{Base: s.base, Prefix: kbPath, TempDir: kb.Incoming(s.o.Folder.Dir),
			MaxUpload: s.o.MaxUpload, Log: s.o.Log}),
		{Path: "/", Tree: true}, // requires the token for every path
	}
	routes = append(routes, console.Routes(console.Options{Status: s.status, Refuse: mcpserver.Refuse,
		Log: s.o.Log})...)
	if s.o.Tools != nil && s.o.Tools.UploadPath != "" {
		routes = append(routes, s.o.Tools.Uploads.Route(s.o.Tools.UploadPath))
	}
	return routes
}

// labelHandlers serve one source each, for the sources of the process. A
// handler is created at the first request for its source.
type labelHandlers struct {
	*Server

	mu   sync.Mutex
	made map[string]*mcpserver.HTTPHandler
}

// ServeHTTP passes a request to the endpoint of the source in its path.
func (l *labelHandlers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	label := strings.TrimPrefix(r.URL.Path, MCPPath+"/")
	sources, err := l.current(r.Context())
	if err != nil {
		l.o.Log.Error("reading the sources", "error", err)
		mcpserver.Refuse(w, r, httpguard.Refusal{Status: http.StatusInternalServerError,
			Message: "the index cannot be read, see the log of knowhow"})
		return
	}
	i := slices.IndexFunc(sources, func(s document.Source) bool { return s.Label == label })
	if i < 0 {
		mcpserver.Refuse(w, r, httpguard.Refusal{Reason: httpguard.NotFound, Status: http.StatusNotFound,
			Message: "this server serves no source with this label, start it with the folder, or see knowhow sources"})
		return
	}
	l.handler(sources[i]).ServeHTTP(w, r)
}

// handler returns the endpoint of a source.
func (l *labelHandlers) handler(src document.Source) *mcpserver.HTTPHandler {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.made[src.Label]
	if !ok {
		h = l.mcp(sourceDomain(src), l.over([]document.Source{src}), nil).HTTP(mcpserver.HTTPOptions{})
		l.made[src.Label] = h
	}
	return h
}

// shutdown ends all endpoints.
func (l *labelHandlers) shutdown(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, h := range l.made {
		errs = append(errs, h.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

// status returns what the console shows. It lists the paths that are left out of the
// source with the label leftOut.
func (s *Server) status(ctx context.Context, leftOut string) (console.Status, error) {
	f, status := s.o.Folder, console.Status{Version: s.o.Version, Sources: []console.Source{}}
	sources, err := s.current(ctx)
	if err != nil {
		return status, err
	}
	status.Endpoints = s.endpoints(sources)
	indexed, err := f.Status(ctx, Labels(Indexed(sources)), leftOut != "")
	if err != nil {
		return status, err
	}
	if done, total, err := f.Index.Embedding(ctx, Labels(Indexed(sources))); err != nil {
		return status, err
	} else if total > 0 {
		status.Vectors = &console.Vectors{Done: done, Total: total, Seconds: int64(indexed.Stats.VectorTime.Seconds())}
	}
	for _, src := range indexed.Sources {
		to := console.Source{
			Label: src.Label, Path: src.Path, Description: src.Description,
			Documents: src.Documents, TextBytes: src.TextBytes,
			Watched: src.Process != nil, Indexing: (*console.Progress)(src.Indexing),
			LeftOut: src.LeftOut, InPart: src.InPart,
		}
		if src.Incomplete != nil {
			to.Incomplete = src.Incomplete.State()
		}
		if src.Label == leftOut {
			for _, p := range src.LeftOutPaths {
				to.Paths = append(to.Paths, console.Path(p))
			}
		}
		status.Sources = append(status.Sources, to)
	}
	for _, src := range sources {
		if kind, _ := source.KindOf(src.Path); kind != source.Indexed {
			status.Sources = append(status.Sources, console.Source{Label: src.Label, Path: src.Path,
				Description: src.Description, Kind: string(kind), LeftOut: map[string]int{}})
		}
	}
	return status, nil
}

// endpoints returns the MCP endpoints with search tools, that of all sources first.
func (s *Server) endpoints(sources []document.Source) []console.Endpoint {
	endpoints := []console.Endpoint{}
	asked := slices.Contains(s.o.Groups, searchmcp.SearchTools)
	if asked || len(s.o.Groups) == 0 && s.o.Tools == nil {
		endpoints = append(endpoints, console.Endpoint{Path: MCPPath, Domain: s.domain().ID})
		if len(sources) < 2 {
			return endpoints
		}
	}
	if asked || len(s.o.Groups) == 0 {
		for _, src := range sources {
			endpoints = append(endpoints, console.Endpoint{Path: MCPPath + "/" + src.Label,
				Domain: source.Domain(src.Label), Label: src.Label})
		}
	}
	return endpoints
}
