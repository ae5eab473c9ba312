package ingest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Open opens a regular file in a folder. Its name has forward slashes. The error is of kind
// NotFound if the folder has no such file, or if a part of the name is a link: the file
// of a document is only there where the document was read.
func Open(folder, name string) (*os.File, error) {
	if !fs.ValidPath(name) {
		return nil, notThere(fs.ErrInvalid)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, notThere(err)
	}
	d := diskFolder{root}
	defer func() { d.Close() }() // nothing is written
	parts := strings.Split(name, "/")
	for _, part := range parts[:len(parts)-1] {
		sub, err := d.Folder(part)
		if err != nil {
			return nil, notThere(err)
		}
		d.Close()
		d = sub.(diskFolder)
	}
	f, err := d.root.OpenFile(parts[len(parts)-1], os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, notThere(err)
	}
	opened, err := f.Stat()
	named, nameErr := d.root.Lstat(parts[len(parts)-1])
	if err = errors.Join(err, nameErr); err == nil && (!opened.Mode().IsRegular() || !os.SameFile(opened, named)) {
		err = errReplaced
	}
	if err != nil {
		f.Close()
		return nil, notThere(err)
	}
	return f, nil
}

// notThere returns the error for a file that cannot be opened, without its path.
func notThere(err error) error {
	return fmt.Errorf("opening the file of a document: %w: %w", cause(err), errkind.NotFound)
}
