package errkind

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
)

// Disk returns the error of an operation that failed because of the disk, without
// the path: of kind DiskFull if the disk is full, of kind Unavailable if it
// fails, and of kind Denied if it is read-only or its permissions forbid the
// operation. All other errors, and nil, are returned unchanged.
func Disk(operation string, err error) error {
	full, failed, denied := []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT}, []syscall.Errno{syscall.EIO},
		[]syscall.Errno{syscall.EROFS, syscall.EACCES, syscall.EPERM}
	if runtime.GOOS == "windows" {
		// ERROR_DISK_FULL, ERROR_HANDLE_DISK_FULL; ERROR_IO_DEVICE;
		// ERROR_WRITE_PROTECT, ERROR_ACCESS_DENIED
		full, failed, denied = []syscall.Errno{112, 39}, []syscall.Errno{1117}, []syscall.Errno{19, 5}
	}
	switch {
	case isAny(err, full):
		return fmt.Errorf("%s: the disk is full: free space on it and try again: %w", operation, DiskFull)
	case isAny(err, failed):
		return fmt.Errorf("%s: the disk fails: check it and try again: %w", operation, Unavailable)
	case isAny(err, denied):
		return fmt.Errorf("%s: the data folder cannot be written: change its permissions or choose another one: %w",
			operation, Denied)
	}
	return err
}

// isAny reports whether err is one of some errors of the system.
func isAny(err error, numbers []syscall.Errno) bool {
	for _, n := range numbers {
		if errors.Is(err, n) {
			return true
		}
	}
	return false
}
