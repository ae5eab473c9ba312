package serving

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/console"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fessserver"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kbserver"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
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

// Routes returns the routes of the server.
func (s *Server) Routes() []httpguard.Route {
	all := s.users.Route(MCPPath, func(w http.ResponseWriter, r *http.Request) {
		if !s.users.ServeMCP(w, r, "") {
			s.users.Refused(r, http.StatusServiceUnavailable)
			mcpserver.Refuse(w, r, httpguard.Refusal{Reason: httpguard.Unavailable,
				Status: http.StatusServiceUnavailable, Message: "the server is shutting down"})
		}
	})
	all.Refuse = console.RefuseWithPage(mcpserver.Refuse)
	one := all
	one.Tree, one.Handler, one.Shutdown = true, http.HandlerFunc(s.serveLabel), nil
	fess := fessserver.Route(fessserver.Options{Prefix: fessPath, Log: s.o.Log})
	fess.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.viewOf(r.Context()).fess.ServeHTTP(w, r)
	})
	page, data, events := console.Routes(console.Options{Status: s.status, Latest: s.latest,
		LeftOut: s.leftOut, File: s.file, Pages: s.pages, Similar: s.similar, Connect: s.connect, Refuse: mcpserver.Refuse, Log: s.o.Log})
	routes := []httpguard.Route{
		all, one,
		s.users.Limited(fess),
		s.users.Limited(kbserver.Route(kbserver.Options{Base: s.base, Prefix: kbPath,
			TempDir: kb.Incoming(s.o.Folder.Dir), MaxUpload: s.o.MaxUpload, Log: s.o.Log})),
		{Path: "/", Tree: true}, // requires the token for every path
		page,
		s.users.Limited(data), s.users.Stream(events),
	}
	if s.o.Tools != nil && s.o.Tools.UploadPath != "" {
		routes = append(routes, s.users.Limited(s.o.Tools.Uploads.Route(s.o.Tools.UploadPath)))
	}
	return routes
}

// viewOf returns what the caller of a request sees.
func (s *Server) viewOf(ctx context.Context) *view {
	v, _ := s.users.User(ctx).View().(*view)
	return v
}

// serveLabel serves the MCP server over the source in the path.
func (s *Server) serveLabel(w http.ResponseWriter, r *http.Request) {
	label := strings.TrimPrefix(r.URL.Path, MCPPath+"/")
	sources, err := s.current(r.Context())
	if err != nil {
		s.o.Log.Error("reading the sources", "error", err)
		s.users.Refused(r, http.StatusInternalServerError)
		mcpserver.Refuse(w, r, httpguard.Refusal{Status: http.StatusInternalServerError,
			Message: "the index cannot be read, see the log of knowhow"})
		return
	}
	if slices.ContainsFunc(sources, func(src document.Source) bool { return src.Label == label }) &&
		s.users.ServeMCP(w, r, label) {
		return
	}
	s.users.Refused(r, http.StatusNotFound)
	mcpserver.Refuse(w, r, httpguard.Refusal{Reason: httpguard.NotFound, Status: http.StatusNotFound,
		Message: "this server serves no source with this label, start it with the folder, or see knowhow sources"})
}
