package cli

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"knowhow/internal/console"
	"knowhow/internal/document"
	"knowhow/internal/fessserver"
	"knowhow/internal/httpguard"
	"knowhow/internal/kb"
	"knowhow/internal/kbserver"
	"knowhow/internal/mcpserver"
	"knowhow/internal/search/scope"
)

const (
	// fessPath is the path of the Fess API, with which fess and other clients
	// of Fess can use serve.
	fessPath = "/fess"

	// kbPath is the path of the knowledge base, before the paths of the engine
	// API.
	kbPath = "/kb"
)

// routes sets the routes of the server.
func (s *serving) routes() {
	all := s.mcp.HTTP(mcpserver.HTTPOptions{}).Route(mcpPath)
	all.Refuse = console.RefuseWithPage(mcpserver.Refuse)
	labels := &labelHandlers{serving: s, made: map[string]*mcpserver.HTTPHandler{}}
	one := all
	one.Tree, one.Handler, one.Shutdown = true, labels, labels.shutdown
	s.guard.Routes = []httpguard.Route{
		all, one,
		fessserver.Route(fessserver.Options{Backend: s.backend, Prefix: fessPath, Log: s.log}),
		kbserver.Route(kbserver.Options{Base: s.base, Prefix: kbPath, TempDir: kb.Incoming(s.o.Data), MaxUpload: int64(s.o.MaxUpload), Log: s.log}),
		{Path: "/", Tree: true}, // requires the token for every path
	}
	s.guard.Routes = append(s.guard.Routes, console.Routes(console.Options{Status: s.consoleStatus, Refuse: mcpserver.Refuse, Log: s.log})...)
	if s.uploads != nil {
		s.guard.Routes = append(s.guard.Routes, s.uploads.Route(uploadPath))
	}
}

// startArgs returns the arguments with which a client starts a server of the
// same sources.
func (s *serving) startArgs() []string {
	args := []string{"mcp"}
	if standard, err := defaultData(s.Env); err != nil || standard != s.o.Data {
		args = append(args, "--data", s.o.Data)
	}
	for _, src := range s.sources {
		args = append(args, src.Path)
	}
	return args
}

// snippetName returns the name of the server in the snippets for clients.
func (s *serving) snippetName() string {
	if len(s.sources) == 1 {
		return s.sources[0].Label
	}
	return "knowhow"
}

// labelHandlers serve one source each, for the sources of the process. A
// handler is created at the first request for its source.
type labelHandlers struct {
	*serving

	mu   sync.Mutex
	made map[string]*mcpserver.HTTPHandler
}

// ServeHTTP passes a request to the endpoint of the source in its path.
func (l *labelHandlers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	label := strings.TrimPrefix(r.URL.Path, mcpPath+"/")
	sources, err := l.current(r.Context())
	if err != nil {
		l.log.Error("reading the sources", "error", err)
		mcpserver.Refuse(w, r, httpguard.Refusal{Status: http.StatusInternalServerError, Message: "the index cannot be read, see the log of knowhow"})
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
		h = l.mcpServer(sourceDomain(src), scope.New(l.index, src.Label), nil).HTTP(mcpserver.HTTPOptions{})
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
