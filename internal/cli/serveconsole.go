package cli

import (
	"context"
	"slices"

	"knowhow/internal/console"
	"knowhow/internal/datafolder"
	"knowhow/internal/document"
	"knowhow/internal/search"
	"knowhow/internal/serving"
)

// consoleStatus returns the function for what the console shows of sources. It lists
// the paths that are left out of the source with the label leftOut.
func consoleStatus(f *datafolder.Folder) func(context.Context, []document.Source, string) (console.Status, error) {
	return func(ctx context.Context, sources []document.Source, leftOut string) (console.Status, error) {
		status := console.Status{Sources: []console.Source{}}
		labels := serving.Labels(sources)
		var stored *storeStatus
		if f.Store != nil {
			var err error
			if stored, err = readStoreStatus(ctx, f.Store); err != nil {
				return status, err
			}
		}
		indexed, stats, err := sourceStatuses(ctx, f.Index, &statusCommand{Labels: labels, LeftOut: leftOut != ""}, stored)
		if err != nil {
			return status, err
		}
		if done, total, err := f.Index.Embedding(ctx, labels); err != nil {
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
				to.Incomplete = incomplete(search.Unfinished(*src.Incomplete))
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
}
