package cli

import (
	"context"
	"slices"

	"knowhow/internal/console"
	"knowhow/internal/document"
	"knowhow/internal/fessmcp"
	"knowhow/internal/source"
)

// consoleStatus returns what the console shows. It lists the paths that are left
// out of the source with the label leftOut.
func (s *serving) consoleStatus(ctx context.Context, leftOut string) (console.Status, error) {
	status := console.Status{Version: version(), Endpoints: []console.Endpoint{}, Sources: []console.Source{}}
	sources, err := s.current(ctx)
	if err != nil {
		return status, err
	}
	labels := make([]string, len(sources))
	for i, src := range sources {
		labels[i] = src.Label
	}
	var stored *storeStatus
	if s.store != nil {
		if stored, err = readStoreStatus(ctx, s.store); err != nil {
			return status, err
		}
	}
	indexed, stats, err := sourceStatuses(ctx, s.index, &statusCommand{Labels: labels, LeftOut: leftOut != ""}, stored)
	if err != nil {
		return status, err
	}
	status.Endpoints = s.searchEndpoints(sources)
	if done, total, err := s.index.Embedding(ctx, labels); err != nil {
		return status, err
	} else if total > 0 {
		status.Vectors = &console.Vectors{Done: done, Total: total, Seconds: int64(stats.VectorTime.Seconds())}
	}
	for _, src := range indexed {
		if !slices.Contains(labels, src.Label) {
			continue // without sources, sourceStatuses returns all
		}
		to := console.Source{
			Label: src.Label, Path: src.Path, Description: src.Description, Documents: src.Documents, TextBytes: src.TextBytes,
			Watched: src.Process != nil, Indexing: (*console.Progress)(src.Indexing), LeftOut: src.LeftOut, InPart: src.InPart,
		}
		if src.Incomplete != nil {
			to.Incomplete = src.Incomplete.state()
		}
		if src.Label == leftOut {
			for _, p := range src.LeftOutPaths {
				to.Paths = append(to.Paths, console.Path(p))
			}
		}
		status.Sources = append(status.Sources, to)
	}
	return status, nil
}

// searchEndpoints returns the MCP endpoints with search tools, that of all
// sources first.
func (s *serving) searchEndpoints(sources []document.Source) []console.Endpoint {
	endpoints := []console.Endpoint{}
	asked := slices.Contains(s.o.Tools.search, fessmcp.SearchTools)
	if asked || len(s.o.Tools.search) == 0 && !s.o.Tools.kb {
		endpoints = append(endpoints, console.Endpoint{Path: mcpPath, Domain: s.mainDomain().ID})
		if len(sources) < 2 {
			return endpoints
		}
	}
	if asked || len(s.o.Tools.search) == 0 {
		for _, src := range sources {
			endpoints = append(endpoints, console.Endpoint{Path: mcpPath + "/" + src.Label, Domain: source.Domain(src.Label), Label: src.Label})
		}
	}
	return endpoints
}
