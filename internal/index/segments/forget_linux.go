package segments

import "syscall"

// forget makes the pages of a mapped file that were read count no longer as
// memory of this process, until they are read again. They stay in the system's
// cache of files.
func forget(mapped []byte) { _ = syscall.Madvise(mapped, syscall.MADV_DONTNEED) } // without effect if it fails
