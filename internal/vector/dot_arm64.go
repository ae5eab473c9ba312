package vector

import "golang.org/x/sys/cpu"

// kernels returns the kernels of this machine, the fastest first.
func kernels() []kernel {
	var k []kernel
	if cpu.ARM64.HasASIMDDP {
		k = append(k, kernel{"SDOT", func(dst []int32, codes []int8, q *dotQuery) {
			if len(dst) > 0 {
				_ = codes[len(dst)*len(q.codes)-1]
				dotSDOT(&dst[0], &codes[0], &q.codes[0], len(dst), len(q.codes))
			}
		}})
	}
	return append(k, kernel{"NEON", func(dst []int32, codes []int8, q *dotQuery) {
		if len(dst) > 0 {
			_ = codes[len(dst)*len(q.codes)-1]
			dotNEON(&dst[0], &codes[0], &q.codes[0], len(dst), len(q.codes))
		}
	}}, portable)
}

// dotSDOT is a dotFunc for rows of stride bytes, with the instructions of the
// dot product extension.
//
//go:noescape
func dotSDOT(dst *int32, codes *int8, query *int8, rows, stride int)

// dotNEON is a dotFunc for rows of stride bytes.
//
//go:noescape
func dotNEON(dst *int32, codes *int8, query *int8, rows, stride int)
