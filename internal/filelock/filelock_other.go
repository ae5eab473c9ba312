//go:build !windows && !darwin && !dragonfly && !freebsd && !illumos && !linux && !netbsd && !openbsd

package filelock

import (
	"errors"
	"os"
)

// Lock returns an error: this system has no locks that end with a process.
func Lock(*os.File) error { return errors.ErrUnsupported }
