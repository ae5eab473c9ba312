//go:build unix

package atomicfile

import (
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner gives f the owner of the file at path, so that a file stays readable
// for its user when an administrator changes it. A new file gets the owner of its
// folder, if the process may set any.
func keepOwner(f *os.File, path string) error {
	was, err := os.Stat(path)
	if err != nil {
		return inheritOwner(f)
	}
	return chown(f, was)
}

// inheritOwner gives a new file the owner of its folder, if the process may set any.
func inheritOwner(f *os.File) error {
	folder, err := os.Stat(filepath.Dir(f.Name()))
	if err != nil || os.Geteuid() != 0 {
		return nil
	}
	return chown(f, folder)
}

// chown gives f the owner of a file.
func chown(f *os.File, was os.FileInfo) error {
	is, err := f.Stat()
	if err != nil {
		return err
	}
	from, _ := was.Sys().(*syscall.Stat_t)
	to, _ := is.Sys().(*syscall.Stat_t)
	if from == nil || to == nil || from.Uid == to.Uid && from.Gid == to.Gid {
		return nil
	}
	if err := f.Chown(int(from.Uid), int(from.Gid)); err != nil && from.Uid != to.Uid {
		return err
	}
	return nil
}
