//go:build !amd64 && !arm64

package vector

// kernels returns the kernels of this machine, the fastest first.
func kernels() []kernel { return []kernel{portable} }
