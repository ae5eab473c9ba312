//go:build unix

package doctor

import (
	"errors"

	"golang.org/x/sys/unix"
)

// writable returns an error unless this process may make files in a folder.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }

// alive reports whether a process runs.
func alive(pid int) bool {
	err := unix.Kill(pid, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}
