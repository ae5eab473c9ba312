package serving

import (
	"context"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/metrics"
)

// State returns the options of metrics that describe the documents of the server.
func (s *Server) State() metrics.Options {
	return metrics.Options{
		Tools:   s.toolNames,
		Sources: s.sourceState,
		Jobs: func(ctx context.Context) (metrics.Jobs, error) {
			status, err := s.base.Status(access.With(ctx, nil)) // the jobs of all users
			if err != nil {
				return metrics.Jobs{}, err
			}
			return metrics.Jobs(status.Queue), nil
		},
		Vectors: func(ctx context.Context) (metrics.Vectors, error) {
			labels, err := s.base.Labels(ctx)
			if err != nil {
				return metrics.Vectors{}, err
			}
			v, err := s.store().Vectors(ctx, labels)
			return metrics.Vectors{Done: v.Embedded, Total: v.Chunks}, err
		},
		Store: func(ctx context.Context) error {
			_, err := s.o.Folder.Service().Health(ctx)
			return err
		},
	}
}

// toolNames returns the names of all tools, without the domain.
func (s *Server) toolNames() []string {
	all := s.view(nil)
	m := all.MCP("")
	server := mcpserver.New(m.Options)
	m.Add(server)
	if m.Close != nil {
		_ = m.Close(context.Background()) // nothing runs
	}
	names := server.ToolNames()
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], all.domain().ID+"_")
	}
	return names
}

// sourceState returns the state of the sources that are indexed.
func (s *Server) sourceState(ctx context.Context) ([]metrics.Source, error) {
	sources, err := s.indexed(ctx)
	if err != nil {
		return nil, err
	}
	status, err := s.o.Folder.Status(ctx, Labels(sources), false)
	if err != nil {
		return nil, err
	}
	out := make([]metrics.Source, len(status.Sources))
	for i, src := range status.Sources {
		out[i] = metrics.Source{Label: src.Label, Documents: src.Documents, TextBytes: src.TextBytes,
			Incomplete: src.Incomplete != nil, LeftOut: src.LeftOut}
		if src.Indexing != nil {
			out[i].Remaining = src.Indexing.Total - src.Indexing.Done
		}
	}
	return out, nil
}
