//go:build !windows && !darwin && !dragonfly && !freebsd && !illumos && !linux && !netbsd && !openbsd

package kb

import (
	"errors"
	"os"
)

// lock returns an error: this system has no locks that end with a process.
func lock(*os.File) error { return errors.ErrUnsupported }
