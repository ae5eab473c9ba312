package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/datasetsearch"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fessbridge"
	"github.com/knowhow-mcp/knowhow/internal/fessconfig"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/source"
)

// A servedSource is a source to be served.
type servedSource struct {
	document.Source
	fess *fessconfig.Config // of a Fess domain, otherwise nil
}

// asked returns the source with a path that is asked when a search comes, with what its
// operand says. The others have their labels already. Over stdio, a configuration of the
// bridge must not need headers.
func (v *invocation) asked(path string, arg sourceFlags, others []document.Source, stdio bool) (
	s servedSource, err error) {
	name, description := "", arg.Description
	switch kind, rest := source.KindOf(path); kind {
	case source.Notes:
		if name = rest; rest == "" {
			name = "kb"
		}
	case source.Datasets:
		name = "datasets"
	case source.Fess:
		if s.fess, err = v.fessConfig(rest, stdio); err != nil {
			return s, err
		}
		name, description = s.fess.Domain.ID, cmp.Or(description, s.fess.Domain.Description)
	}
	s.Source, err = source.Ask(others, path, name, string(arg.Label))
	s.Description = description
	return s, labelError(err)
}

// fessConfig reads a configuration file of the bridge.
func (v *invocation) fessConfig(path string, stdio bool) (*fessconfig.Config, error) {
	c, warnings, err := fessconfig.Read(path, fessconfig.Options{Env: v.Lookup, Home: v.home(), HTTP: !stdio})
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		v.warn(w)
	}
	return c, nil
}

// askedServices are the services of the sources that are asked when a search comes.
type askedServices struct {
	services map[string]search.Service // by the label of the source
	header   func(context.Context, http.Header) context.Context
	watch    []func(context.Context)
	closers  []func()
}

// close ends the services.
func (a *askedServices) close() {
	for _, c := range a.closers {
		c()
	}
}

// openAsked opens the services of those of the sources that are asked.
func (v *invocation) openAsked(sources []servedSource, o *serveCommand, log *slog.Logger) (
	a *askedServices, err error) {
	a = &askedServices{services: map[string]search.Service{}}
	for _, src := range sources {
		switch kind, rest := source.KindOf(src.Path); kind {
		case source.Datasets:
			model := modelFlags{Embedder: o.Embedder, embedServer: o.embedServer}
			embedders, err := model.embedders(v)
			if err != nil {
				return a, err
			}
			r, err := dataset.New(dataset.Options{Dir: rest, Log: log, Embedders: embedders, Explain: explainModel,
				Written: true})
			if err != nil {
				return a, err
			}
			a.watch = append(a.watch, r.Watch)
			s := datasetsearch.New(r, src.Label, log)
			a.closers = append(a.closers, s.Close)
			a.services[src.Label] = s
		case source.Fess:
			if err := setFessToken(src.fess, o.FessToken); err != nil {
				return a, err
			}
			s, err := fessbridge.NewSource(fessbridge.SourceOptions{Config: src.fess, Label: src.Label,
				Version: version(), Log: log})
			if err != nil {
				return a, &hintError{fmt.Errorf("source %s: %w", src.Label, err),
					"Check fessBaseUrl, fessAuth, tls and contentFetch in the configuration."}
			}
			a.closers = append(a.closers, s.Close)
			a.services[src.Label] = s
			if h := fessbridge.Header(src.fess); h != nil {
				a.header = h
			}
		}
	}
	return a, nil
}
