package ingest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A tree is the folder of a source. Names are relative to it, with forward
// slashes, in the bytes of the file system.
type tree interface {
	// Folder opens the folder of the tree.
	Folder() (openFolder, error)

	// Open opens a file. It does not block if the file is a pipe, and opens
	// nothing outside of the tree.
	Open(name string) (file, error)

	// Target returns the name and state of the target of a link, or errOutside or
	// errNowhere.
	// It must not be called concurrently.
	Target(name string) (string, fs.FileInfo, error)
}

// An openFolder is an open folder of a tree. It remains the same folder if it
// is renamed or another one takes its place.
type openFolder interface {
	// ReadDir returns the entries of the folder in any order.
	ReadDir() ([]fs.DirEntry, error)

	// Folder opens the subfolder with this name. It follows no links: if the
	// name is that of a link or a file, it returns errReplaced.
	Folder(name string) (openFolder, error)

	Close() error
}

// A file is an open file.
type file interface {
	io.ReadCloser
	Stat() (fs.FileInfo, error)
}

// errOutside reports that a link leads out of the tree.
var errOutside = errors.New("link leads out of the source")

// errNowhere reports that a link leads nowhere, or in a circle.
var errNowhere = errors.New("link leads nowhere")

// errReplaced reports that a folder has become a link or a file.
var errReplaced = errors.New("no longer a folder")

// A diskTree is a folder on disk. All access uses an [os.Root], which is safe
// even if folders are replaced by links at the same time.
type diskTree struct {
	root *os.Root
	base string // path of root without links; set by Target
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
	// The dot makes the system open only folders. Opening a pipe would wait for
	// a writer.
	sub, err := d.root.OpenRoot(name + "/.")
	named, nameErr := d.root.Lstat(name)
	if err != nil {
		if nameErr == nil && !named.IsDir() {
			err = errReplaced
		}
		return nil, err
	}
	// An os.Root follows links inside of it, so the opened folder may not be
	// the one with this name.
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

// maxLinkDepth is the maximum number of folders above a link: resolving a link
// examines each of them, in every walk.
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
	var ofSystem *fs.PathError
	switch {
	case err != nil &&
		(errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || !errors.As(err, &ofSystem)):
		return "", nil, errNowhere // the error for a circle is not one of the system
	case err != nil:
		return "", nil, err
	}
	rel, err := filepath.Rel(t.base, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", nil, errOutside
	}
	info, err := t.root.Lstat(rel)
	return filepath.ToSlash(rel), info, err
}

// cause returns the text of an error of the file system without the path, which
// is reported separately.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
