package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"knowhow/internal/document"
	"knowhow/internal/fessserver"
	"knowhow/internal/mcpserver"
	"knowhow/internal/search/scope"
)

const (
	// mcpPath is where all sources are served; below it lies one path a
	// source.
	mcpPath = "/mcp"

	// fessPath is where the API of a Fess server is served, so that fess
	// and any other client of Fess work against serve.
	fessPath = "/fess"
)

// listen serves every source on one listener until ctx ends. index is called
// once it listens.
func (s *serving) listen(ctx context.Context, server *mcpserver.Server, index func()) error {
	all := server.HTTP(s.httpOptions(mcpPath))
	labels := &labelHandlers{serving: s, made: map[string]*mcpserver.HTTPHandler{}}
	return s.serveHTTP(ctx, httpService{
		host: s.host, port: s.port, path: mcpPath,
		handlers: map[string]http.Handler{
			mcpPath:              all,
			mcpPath + "/{label}": mcpserver.Guard(s.httpOptions(mcpPath), labels),
			"/":                  mcpserver.Guard(s.httpOptions(mcpPath), http.NotFoundHandler()),
			fessPath + "/":       mcpserver.Guard(s.httpOptions(fessPath), fessserver.New(fessserver.Options{Backend: s.backend, Prefix: fessPath, Log: s.log})),
		},
		shutdown: []func(context.Context) error{all.Shutdown, labels.shutdown},
		ready: func(url string) {
			fmt.Fprint(s.stderr, snippets(s.snippetName(), url, s.o.token != ""))
			index()
		},
		portHint: "End the program that uses it, or choose a port with --addr 127.0.0.1:PORT (0: any free one).",
		log:      s.log,
	})
}

// snippetName is what clients are told to call the server.
func (s *serving) snippetName() string {
	if len(s.sources) == 1 {
		return s.sources[0].Label
	}
	return "knowhow"
}

// httpOptions are those of an MCP endpoint at path.
func (s *serving) httpOptions(path string) mcpserver.HTTPOptions {
	return mcpserver.HTTPOptions{Path: path, Token: s.o.token, AllowedHosts: s.o.hosts, AllowedOrigins: s.o.origins}
}

// labelHandlers serve one source each, for the sources of the process. A handler
// is made at the first request for its source.
type labelHandlers struct {
	*serving

	mu   sync.Mutex
	made map[string]*mcpserver.HTTPHandler
}

// ServeHTTP passes a request to the endpoint of the source that its path
// names.
func (l *labelHandlers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	label := r.PathValue("label")
	sources, err := l.current(r.Context())
	if err != nil {
		l.log.Error("reading the sources", "error", err)
		http.Error(w, "the index cannot be read: see the log of knowhow", http.StatusInternalServerError)
		return
	}
	i := slices.IndexFunc(sources, func(s document.Source) bool { return s.Label == label })
	if i < 0 {
		http.Error(w, "this server serves no source with this label; start it with the folder, or see knowhow sources", http.StatusNotFound)
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
		server := l.server(sourceDomain(src), scope.New(l.index, src.Label))
		h = server.HTTP(l.httpOptions(mcpPath + "/" + src.Label))
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
