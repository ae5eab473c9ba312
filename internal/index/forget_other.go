//go:build !linux

package index

// forget is for Linux only.
func forget([]byte) {}
