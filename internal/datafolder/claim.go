package datafolder

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/opensearch"
)

// Claim records in the store that this data folder indexes a source. It is an error
// of kind Conflict if another one does.
func (f *Folder) Claim(ctx context.Context, src document.Source) error {
	owner, err := identify(f.Dir)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown" // the name only helps people
	}
	return f.Explain(f.Store.ClaimSource(ctx, src, owner, host))
}

// Sink returns what gets the documents of sources: the index, or the store, in which
// each source is claimed before it is indexed.
func (f *Folder) Sink(sources []document.Source) ingest.Sink {
	if f.Store == nil {
		return f.Index
	}
	return claimingSink{f.Store, f, sources}
}

// A claimingSink is a store in which a source is claimed before it is indexed.
type claimingSink struct {
	*opensearch.Store
	folder  *Folder
	sources []document.Source
}

// Stamps returns the stamps of the files of a source. It fails if the source
// cannot be claimed.
func (c claimingSink) Stamps(ctx context.Context, label string) (map[string]document.Stamp, error) {
	for _, src := range c.sources {
		if src.Label == label {
			if err := c.folder.Claim(ctx, src); err != nil {
				return nil, err
			}
		}
	}
	return c.Store.Stamps(ctx, label)
}

// identify returns the ID of a data folder, which is made when it is first needed.
func identify(dir string) (string, error) {
	file := filepath.Join(dir, "id")
	for {
		id, err := os.ReadFile(file)
		if err == nil && len(id) > 0 {
			return string(id), nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("reading the ID of the data folder: %w", err)
		}
		temporary := file + "-" + rand.Text()
		if err := os.WriteFile(temporary, []byte(rand.Text()), 0o600); err != nil {
			return "", fmt.Errorf("writing the ID of the data folder: %w", err)
		}
		err = os.Link(temporary, file) // fails if another process was faster
		if err != nil && !errors.Is(err, os.ErrExist) {
			err = os.Rename(temporary, file) // a file system without links
		} else {
			err = errors.Join(os.Remove(temporary))
		}
		if err != nil {
			return "", fmt.Errorf("writing the ID of the data folder: %w", err)
		}
	}
}
