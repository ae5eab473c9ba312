//go:build !amd64 && !arm64

package kernel

var (
	int8Kernels    = []namedKernel[int8Func]{{"portable", tiles(int8Portable)}}
	float32Kernels = []namedKernel[float32Func]{{"portable", float32Portable}}
)
