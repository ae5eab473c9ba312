package vector

import "golang.org/x/sys/cpu"

// kernels returns the kernels of this machine, the fastest first.
func kernels() []kernel {
	var k []kernel
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512VNNI && cpu.X86.HasAVX2 {
		k = append(k, kernel{"AVX-512 VNNI", func(dst []int32, codes []int8, q *dotQuery) {
			if len(dst) > 0 {
				_ = codes[len(dst)*len(q.codes)-1]
				dotVNNI(&dst[0], &codes[0], &q.codes[0], len(dst), len(q.codes), 128*q.sum)
			}
		}})
	}
	if cpu.X86.HasAVX2 {
		k = append(k, kernel{"AVX2", func(dst []int32, codes []int8, q *dotQuery) {
			if len(dst) > 0 {
				_ = codes[len(dst)*len(q.wide)-1]
				dotAVX2(&dst[0], &codes[0], &q.wide[0], len(dst), len(q.wide))
			}
		}})
	}
	return append(k, portable)
}

// dotAVX2 is a dotFunc for rows of stride bytes.
//
//go:noescape
func dotAVX2(dst *int32, codes *int8, query *int16, rows, stride int)

// dotVNNI is a dotFunc for rows of stride bytes. The instruction multiplies
// unsigned by signed bytes. So 128 is added to the codes, and bias, which is 128
// times the sum of the query, is subtracted from the result.
//
//go:noescape
func dotVNNI(dst *int32, codes *int8, query *int8, rows, stride int, bias int32)
