//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package kb

import (
	"os"
	"syscall"
)

// lock locks a file until it is closed, or its process ends. It returns false if it
// is locked already, or the file system has no locks.
func lock(f *os.File) bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }
