//go:build !windows

package dataset

import (
	"os"

	"github.com/gofrs/flock"
)

// lockFolder locks a folder, also under another name, until release is called or
// the process ends. ok is false if another process has locked it. The error is
// one of the file system: it has no locks for folders, or the folder does not
// exist.
func lockFolder(path string) (release func(), ok bool, err error) {
	l := flock.New(path, flock.SetFlag(os.O_RDONLY))
	ok, err = l.TryLock()
	return func() { _ = l.Close() }, ok, err
}

// rename renames a folder.
func rename(from, to string) error { return os.Rename(from, to) }
