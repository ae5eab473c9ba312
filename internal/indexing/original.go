package indexing

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/ingest"
	"github.com/knowhow-mcp/knowhow/internal/repository"
	"github.com/knowhow-mcp/knowhow/internal/site"
)

// OpenOriginal opens the file that a document of a source was read from, with the path and
// the URL of the document: the file in the folder, or in the copy of the repository or of
// the site in the data folder dir. The error is of kind NotFound if there is none, such as
// for a file in an archive, and if it is not in the source any more.
func OpenOriginal(dir string, src document.Source, path, url string) (*os.File, error) {
	folder, name := src.Path, path
	switch {
	case repository.Is(src.Path):
		remote, err := repository.Parse(src.Path)
		if err != nil {
			return nil, err
		}
		folder = repository.Open(remote.Dir(dir), remote, nil).Root()
	case site.Is(src.Path):
		s, err := site.Parse(src.Path)
		if err != nil {
			return nil, err
		}
		var ok bool
		if folder, name, ok = s.File(dir, path, url); !ok {
			return nil, fmt.Errorf("the document has no file of its own: %w", errkind.NotFound)
		}
	default:
		if info, err := os.Stat(src.Path); err == nil && !info.IsDir() { // the source is this file
			folder = filepath.Dir(src.Path)
			if name != filepath.Base(src.Path) {
				return nil, fmt.Errorf("the document has no file of its own: %w", errkind.NotFound)
			}
		}
	}
	return ingest.Open(folder, name)
}
