//go:build !linux

package segments

// forget is for Linux only.
func forget([]byte) {}
