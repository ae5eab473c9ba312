package embed

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// ReadFile returns the content of a file of a model, of at most limit bytes. A
// missing file is an error of kind NotFound, a larger one of kind TooLarge, and
// something other than a file of kind Invalid.
func ReadFile(files fs.FS, name string, limit int64) ([]byte, error) {
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the model: its folder has no file %s: %w", name, errkind.NotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the model: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the model: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("reading the model: %s is not a file: %w", name, errkind.Invalid)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("reading the model: %s has more than %d bytes: %w", name, limit, errkind.TooLarge)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("reading the model: %s: %w", name, err)
	}
	return data, nil
}
