// Package atomicfile replaces files in one step, so that a reader finds the old bytes
// or the new ones at any time, also after a crash.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A Temporary is a complete file that has not replaced the one at path yet.
type Temporary struct {
	name, path string
	committed  bool
}

// Prepare writes a Temporary beside the file at path, to disk. It has the owner of that
// file. If there is none, and an administrator runs the process, it has the owner of the
// folder, so that the service which the folder belongs to can read it.
func Prepare(path string, data []byte, mode fs.FileMode) (*Temporary, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, err
	}
	t := &Temporary{name: f.Name(), path: path}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = keepOwner(f, path)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Remove()
		return nil, err
	}
	return t, nil
}

// Commit moves the Temporary to its place.
func (t *Temporary) Commit() error {
	err := os.Rename(t.name, t.path)
	if err != nil {
		t.Remove()
		return err
	}
	t.committed = true
	// The file is complete in any case, so the folder is synced as far as the
	// system allows it.
	if dir, err := os.Open(filepath.Dir(t.path)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
	return nil
}

// Remove removes the Temporary if it was not committed.
func (t *Temporary) Remove() {
	if !t.committed {
		_ = os.Remove(t.name)
	}
}

// Create opens the file at path for writing. A new file has mode 0600.
func Create(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return os.OpenFile(path, os.O_WRONLY, 0)
	}
	if err != nil {
		return nil, err
	}
	if err := inheritOwner(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Resolve follows links, also to a file that does not exist yet.
func Resolve(path string) (string, error) {
	const most = 40 // links in a row, as in Linux
	name, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for range most {
		dir, err := filepath.EvalSymlinks(filepath.Dir(name))
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		name = filepath.Join(dir, filepath.Base(name))
		target, err := os.Readlink(name)
		if err != nil { // no link, or nothing
			return name, nil
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		name = target
	}
	return "", fmt.Errorf("the link leads to itself; correct it: %w", errkind.Invalid)
}
