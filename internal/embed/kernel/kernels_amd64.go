package kernel

import "golang.org/x/sys/cpu"

//go:noescape
func int8AVX2(dst *float32, dstStride int, x *int8, inner int, w *int8, xScale, wScale, bias *float32)

// int8AVXVNNI uses VPDPBUSD in the encoding of AVX-VNNI.
//
//go:noescape
func int8AVXVNNI(dst *float32, dstStride int, x *int8, inner int, w *int8, xScale, wScale, bias *float32)

// int8AVX512VNNI uses VPDPBUSD of AVX-512 VNNI for 64 bytes.
//
//go:noescape
func int8AVX512VNNI(dst *float32, dstStride int, x *int8, inner, rows int, w *int8, xScale, wScale, bias *float32)

//go:noescape
func float32AVX2(dst *float32, dstStride int, a *float32, aStride int, b *float32, bStride, inner int, bias *float32)

// int8Kernels are the kernels that this processor can run, the fastest first.
var int8Kernels = func() []namedKernel[int8Func] {
	list := []namedKernel[int8Func]{{"portable", tiles(int8Portable)}}
	if !cpu.X86.HasAVX2 {
		return list
	}
	list = append([]namedKernel[int8Func]{{"AVX2", tiles(int8AVX2)}}, list...)
	if cpu.X86.HasAVXVNNI {
		list = append([]namedKernel[int8Func]{{"AVX-VNNI", tiles(int8AVXVNNI)}}, list...)
	}
	if cpu.X86.HasAVX512VNNI {
		list = append([]namedKernel[int8Func]{{"AVX-512 VNNI", int8AVX512VNNI}}, list...)
	}
	return list
}()

// float32Kernels are the kernels that this processor can run, the fastest first.
var float32Kernels = func() []namedKernel[float32Func] {
	list := []namedKernel[float32Func]{{"portable", float32Portable}}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		list = append([]namedKernel[float32Func]{{"AVX2", float32AVX2}}, list...)
	}
	return list
}()
