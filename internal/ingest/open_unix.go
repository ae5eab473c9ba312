//go:build unix

package ingest

import "syscall"

// nonBlocking keeps open(2) of a pipe from waiting for a writer.
const nonBlocking = syscall.O_NONBLOCK
