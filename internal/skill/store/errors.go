package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// explain returns an error with one sentence about an error of the file system
// and what to do. path is the path of the operation.
func explain(operation, path string, err error) error {
	if err == nil {
		return nil
	}
	disk := errkind.Disk(operation+" "+path, err)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s %s: permission denied: check the permissions of %s: %w", operation, path, nearest(path),
			errkind.Denied)
	case errors.Is(disk, errkind.Denied):
		return fmt.Errorf("%s %s: the file system is read-only: mount it writable or choose another folder: %w",
			operation, path, errkind.Denied)
	case errors.Is(disk, errkind.DiskFull), errors.Is(disk, errkind.Unavailable):
		return disk
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s %s: a file is in the way of the folder %s: move it or choose another folder: %w",
			operation, path, path, errkind.Conflict)
	}
	return fmt.Errorf("%s %s: %w: check %s or choose another folder", operation, path, cause(err), nearest(path))
}

// nearest returns path if it is an existing folder, or else its first parent
// that exists.
func nearest(path string) string {
	for {
		if info, err := os.Stat(path); err == nil && info.IsDir() || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// cause returns an error of the file system without the path and the name of
// the system call.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err
	}
	return err
}
