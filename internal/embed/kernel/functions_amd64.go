package kernel

import "golang.org/x/sys/cpu"

// hasVectors reports whether the functions below can run.
var hasVectors = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// geluVector is GELU of n numbers, a multiple of 16.
//
//go:noescape
func geluVector(x *float32, n int)

// softmaxVector is Softmax of n numbers, a multiple of 8.
//
//go:noescape
func softmaxVector(x *float32, n int)

// maxAbsVector returns the largest absolute value of n numbers, a multiple of 32.
//
//go:noescape
func maxAbsVector(x *float32, n int) float32

// quantizeVector is quantizePortable for n numbers, a multiple of 32.
//
//go:noescape
func quantizeVector(q *int8, x *float32, n int, factor float32)
