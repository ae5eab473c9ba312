//go:build !windows

package store

import (
	"errors"
	"syscall"
)

// isFull reports whether err means that there is no space, or none for this user.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// isReadOnly reports whether err means that nothing can be written at all.
func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
