package store

import (
	"errors"

	"golang.org/x/sys/windows"
)

// isFull reports whether err means that there is no space.
func isFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

// isReadOnly reports whether err means that nothing can be written at all.
func isReadOnly(err error) bool { return errors.Is(err, windows.ERROR_WRITE_PROTECT) }
