//go:build !linux

package index

// forget is for Linux only.
func forget([]byte) {}

// residentFiles is for Linux only.
func residentFiles() int64 { return 0 }
