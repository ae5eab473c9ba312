package ingest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A tree is the folder that a source is read from. Names are relative to it,
// with forward slashes, as the file system spells them.
type tree interface {
	// Folder opens the folder itself.
	Folder() (openFolder, error)

	// Open opens a file without waiting for a peer, should it be a pipe. It
	// opens nothing outside of the tree.
	Open(name string) (file, error)

	// Target returns the name and state of the file that a link leads to, or
	// errOutside. Only one goroutine may call it.
	Target(name string) (string, fs.FileInfo, error)
}

// An openFolder is an open folder of a tree. It stays the same folder when somebody
// renames it or puts another one in its place.
type openFolder interface {
	// ReadDir returns the entries of the folder in any order.
	ReadDir() ([]fs.DirEntry, error)

	// Folder opens the folder with this name inside the folder. It follows no
	// link; if the name is that of a link or a file, it returns errReplaced.
	Folder(name string) (openFolder, error)

	Close() error
}

// A file is an open file.
type file interface {
	io.ReadCloser
	Stat() (fs.FileInfo, error)
}

// errOutside means that a link leads out of the tree.
var errOutside = errors.New("link leads out of the source")

// errReplaced means that a folder has become a link or a file.
var errReplaced = errors.New("no longer a folder")

// A diskTree is a folder on disk. All access goes through an [os.Root], which
// holds even if somebody exchanges folders for links meanwhile.
type diskTree struct {
	root *os.Root
	base string // path of root without links, once Target has needed it
}

func openTree(path string) (tree, func() error, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, nil, err
	}
	return &diskTree{root: root}, root.Close, nil
}

func (t *diskTree) Folder() (openFolder, error) {
	root, err := t.root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	return diskFolder{root}, nil
}

// A diskFolder is an open folder on disk.
type diskFolder struct{ root *os.Root }

func (d diskFolder) ReadDir() ([]fs.DirEntry, error) {
	f, err := d.root.OpenFile(".", os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

func (d diskFolder) Folder(name string) (openFolder, error) {
	// The dot makes the system open a folder or nothing: opening a pipe
	// would wait for a writer.
	sub, err := d.root.OpenRoot(name + "/.")
	named, nameErr := d.root.Lstat(name)
	if err != nil {
		if nameErr == nil && !named.IsDir() {
			err = errReplaced
		}
		return nil, err
	}
	// An os.Root follows links inside of it, so that another folder may have
	// been opened than the one that has the name.
	opened, err := sub.Stat(".")
	if err = errors.Join(err, nameErr); err == nil && !os.SameFile(opened, named) {
		err = errReplaced
	}
	if err != nil {
		sub.Close()
		return nil, err
	}
	return diskFolder{sub}, nil
}

func (d diskFolder) Close() error { return d.root.Close() }

func (t *diskTree) Open(name string) (file, error) {
	return t.root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
}

// maxLinkDepth is how many folders may lie above a link: resolving one costs a
// look at each of them, in every walk.
const maxLinkDepth = 100

func (t *diskTree) Target(name string) (string, fs.FileInfo, error) {
	if strings.Count(name, "/") > maxLinkDepth {
		return "", nil, fmt.Errorf("link below more than %d folders: index the file by its own name", maxLinkDepth)
	}
	if t.base == "" {
		var err error
		if t.base, err = filepath.EvalSymlinks(t.root.Name()); err != nil {
			return "", nil, err
		}
	}
	path, err := filepath.EvalSymlinks(filepath.Join(t.base, filepath.FromSlash(name)))
	if err != nil {
		return "", nil, err
	}
	rel, err := filepath.Rel(t.base, path)
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
