package index

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// forget makes the pages of a mapped file that were read count no longer as
// memory of this process, until they are read again. They stay in the system's
// cache of files.
func forget(mapped []byte) { _ = syscall.Madvise(mapped, syscall.MADV_DONTNEED) } // without effect if it fails

// residentFiles returns how many bytes of mapped files are in the memory of this
// process, 0 if that is not known.
func residentFiles() int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(statm)
	if len(fields) < 3 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[2]), 10, 64) // 0 if it is no number
	return pages * int64(os.Getpagesize())
}
