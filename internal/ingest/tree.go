package ingest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A tree is the folder that a source is read from. Names are relative to it,
// with forward slashes, as the file system spells them; "." is the folder.
type tree interface {
	ReadDir(name string) ([]fs.DirEntry, error)

	// Open opens a file without waiting for a peer, should it be a pipe. It
	// opens nothing outside of the tree.
	Open(name string) (file, error)

	// Target returns the name and state of the file that a link leads to, or
	// errOutside.
	Target(name string) (string, fs.FileInfo, error)
}

// A file is an open file.
type file interface {
	io.ReadCloser
	Stat() (fs.FileInfo, error)
}

// errOutside means that a link leads out of the tree.
var errOutside = errors.New("link leads out of the source")

// A diskTree is a folder on disk. All access goes through an [os.Root], which
// holds even if somebody exchanges folders for links meanwhile.
type diskTree struct{ root *os.Root }

func openTree(path string) (tree, func() error, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, nil, err
	}
	return &diskTree{root}, root.Close, nil
}

func (t *diskTree) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := t.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

func (t *diskTree) Open(name string) (file, error) {
	return t.root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
}

func (t *diskTree) Target(name string) (string, fs.FileInfo, error) {
	base, err := filepath.EvalSymlinks(t.root.Name())
	if err != nil {
		return "", nil, err
	}
	path, err := filepath.EvalSymlinks(filepath.Join(base, filepath.FromSlash(name)))
	if err != nil {
		return "", nil, err
	}
	rel, err := filepath.Rel(base, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", nil, errOutside
	}
	info, err := t.root.Lstat(rel)
	return filepath.ToSlash(rel), info, err
}

// cause returns what an error of the file system says without the path, which
// its reader knows already.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// isHiddenName reports whether a name that the walk would not come by leads to
// a file.
func isHiddenName(name string) bool {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if isExcluded(p, i < len(parts)-1) {
			return true
		}
	}
	return false
}
