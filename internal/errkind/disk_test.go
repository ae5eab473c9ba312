package errkind_test

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestDisk(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the numbers of errors are those of Unix")
	}
	for number, kind := range map[syscall.Errno]error{
		syscall.ENOSPC: errkind.Unavailable, syscall.EIO: errkind.Unavailable, syscall.EROFS: errkind.Denied,
		syscall.EACCES: errkind.Denied,
	} {
		err := errkind.Disk("storing", fmt.Errorf("wrapped: %w",
			&fs.PathError{Op: "write", Path: "/secret", Err: number}))
		if !errors.Is(err, kind) || strings.Contains(err.Error(), "/secret") ||
			!strings.HasPrefix(err.Error(), "storing: ") {
			t.Errorf("%v: Disk() = %v, want %v without a path", number, err, kind)
		}
	}
	if err := errkind.Disk("storing", syscall.ENOSPC); !errors.Is(err, errkind.DiskFull) ||
		errkind.Message(err) != "storing: the disk is full: free space on it and try again" {
		t.Errorf("Disk(ENOSPC) = %v, want DiskFull", err)
	}
	for _, other := range []error{nil, errkind.NotFound, syscall.ENOENT} {
		if err := errkind.Disk("storing", other); err != other {
			t.Errorf("Disk(%v) = %v", other, err)
		}
	}
}
