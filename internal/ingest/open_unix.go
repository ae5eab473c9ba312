//go:build unix

package ingest

import "syscall"

// nonBlocking prevents open(2) of a pipe from waiting for a writer.
const nonBlocking = syscall.O_NONBLOCK
