package kernel

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

//go:noescape
func int8SDOT(dst *float32, dstStride int, x *int8, inner int, w *int8, xScale, wScale, bias *float32)

//go:noescape
func float32NEON(dst *float32, dstStride int, a *float32, aStride int, b *float32, bStride, inner int, bias *float32)

// int8Kernels are the kernels that this processor can run, the fastest first.
var int8Kernels = func() []namedKernel[int8Func] {
	list := []namedKernel[int8Func]{{"portable", tiles(int8Portable)}}
	// Every processor of Apple has the instruction.
	if cpu.ARM64.HasASIMDDP || runtime.GOOS == "darwin" {
		list = append([]namedKernel[int8Func]{{"SDOT", tiles(int8SDOT)}}, list...)
	}
	return list
}()

// float32Kernels are the kernels that this processor can run, the fastest first.
var float32Kernels = []namedKernel[float32Func]{{"NEON", float32NEON}, {"portable", float32Portable}}
