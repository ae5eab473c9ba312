//go:build unix

package configfile

import (
	"os"
	"syscall"
)

// keepOwner gives f the owner of the file at path, so that a file stays readable
// for its user when an administrator changes it.
func keepOwner(f *os.File, path string) error {
	was, err := os.Stat(path)
	if err != nil {
		return nil // a new file
	}
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
