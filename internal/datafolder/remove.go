package datafolder

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/indexing"
	"github.com/knowhow-mcp/knowhow/internal/repository"
	"github.com/knowhow-mcp/knowhow/internal/site"
)

// A Removed is the result of [Folder.RemoveSource].
type Removed struct {
	Path      string            // of the source; "" if it is not known
	Documents int               // that were removed
	Kept      int               // documents with the label, which users added
	Process   *indexing.Process // that still serves the source; nil if there is none
}

// RemoveSource removes a source and its documents from the store and from the index, if
// these are open. It is an error of kind NotFound if none of them has it.
func (f *Folder) RemoveSource(ctx context.Context, label string) (*Removed, error) {
	r := &Removed{}
	missing := fmt.Errorf("removing source %q: there is none: %w", label, errkind.NotFound)
	if f.Store != nil {
		var err error
		if r.Documents, err = f.Store.RemoveSource(ctx, label); err != nil {
			return nil, f.Explain(err)
		}
		missing = nil
	}
	if f.Index == nil {
		return r, missing
	}
	before, err := f.Index.Stats(ctx)
	if err != nil {
		return nil, err
	}
	known, err := f.Index.Sources(ctx)
	if err != nil {
		return nil, err
	}
	processes, err := indexing.Processes(ctx, f.Index)
	if err != nil {
		return nil, err
	}
	if err := f.Index.RemoveSource(ctx, label); err != nil && (f.Store == nil || !errors.Is(err, errkind.NotFound)) {
		return nil, err
	}
	after, err := f.Index.Stats(ctx)
	if err != nil {
		return nil, err
	}
	r.Kept = after.ByLabel[label].Documents
	r.Documents += before.ByLabel[label].Documents - r.Kept
	for _, src := range known {
		if src.Label == label {
			r.Path = src.Path
			if remote, err := repository.Parse(src.Path); err == nil {
				if err := os.RemoveAll(remote.Dir(f.Dir)); err != nil {
					return nil, fmt.Errorf("removing the copy of a repository: %w", err)
				}
			}
			if s, err := site.Parse(src.Path); err == nil {
				if err := os.RemoveAll(s.Dir(f.Dir)); err != nil {
					return nil, fmt.Errorf("removing the copy of a site: %w", err)
				}
			}
			if p, ok := processes[label]; ok {
				r.Process = &p
			}
		}
	}
	return r, nil
}
