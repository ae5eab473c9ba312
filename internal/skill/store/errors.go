package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"knowhow/internal/errkind"
)

// explain returns an error with one sentence about an error of the file system
// and what to do. path is the path of the operation.
func explain(operation, path string, err error) error {
	dir := nearest(path)
	switch {
	case err == nil:
		return nil
	case isFull(err):
		return fmt.Errorf("%s %s: free space on the disk of %s: %w", operation, path, dir, cause(err))
	case isReadOnly(err):
		return fmt.Errorf("%s %s: the file system is read-only: mount it writable or choose another folder: %w",
			operation, path, errkind.Denied)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s %s: permission denied: check the permissions of %s: %w", operation, path, dir, errkind.Denied)
	}
	if way := inTheWay(filepath.Dir(path)); way != "" {
		return blockedBy(operation, path, way)
	}
	return fmt.Errorf("%s %s: %w", operation, path, cause(err))
}

// explainFolder is like [explain], for an operation on a folder itself.
func explainFolder(operation, path string, err error) error {
	if way := inTheWay(path); way != "" {
		return blockedBy(operation, path, way)
	}
	return explain(operation, path, err)
}

func blockedBy(operation, path, way string) error {
	return fmt.Errorf("%s %s: a file is in the way of the folder %s: move it or choose another folder: %w",
		operation, path, way, errkind.Conflict)
}

// isFull reports whether err means that no space is left, or none for this
// user.
func isFull(err error) bool {
	if runtime.GOOS == "windows" { // ERROR_DISK_FULL, ERROR_HANDLE_DISK_FULL
		return errors.Is(err, syscall.Errno(112)) || errors.Is(err, syscall.Errno(39))
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// isReadOnly reports whether err means that the file system is read-only.
func isReadOnly(err error) bool {
	if runtime.GOOS == "windows" { // ERROR_WRITE_PROTECT
		return errors.Is(err, syscall.Errno(19))
	}
	return errors.Is(err, syscall.EROFS)
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
