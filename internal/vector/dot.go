package vector

import "sync"

// A dotFunc sets each element of dst to the inner product of the query and a row
// of codes. There are len(dst) rows, each as long as the query, which is a
// multiple of 64.
type dotFunc func(dst []int32, codes []int8, q *dotQuery)

// A kernel is an implementation of dotFunc. All have the same results, because
// sums of integers are exact.
type kernel struct {
	name string
	dot  dotFunc
}

// A dotQuery is a query in the forms that the kernels need.
type dotQuery struct {
	codes []int8
	wide  []int16 // the same values
	sum   int32   // of the values
}

func newDotQuery(codes []int8) dotQuery {
	q := dotQuery{codes: codes, wide: make([]int16, len(codes))}
	for i, c := range codes {
		q.wide[i] = int16(c)
		q.sum += int32(c)
	}
	return q
}

// fastest returns the function of the fastest kernel of this machine.
var fastest = sync.OnceValue(func() dotFunc { return firstRight(kernels()) })

// firstRight returns the function of the first kernel of a list that computes the
// same as the portable one in an example. A kernel for instructions of new
// processors may have been tested on few of them.
func firstRight(list []kernel) dotFunc {
	const rows, stride = 5, 128
	query, codes := make([]int8, stride), make([]int8, rows*stride)
	for i := range query {
		query[i] = int8(37 * i)
	}
	for i := range codes {
		codes[i] = int8(71*i + i/256)
	}
	q := newDotQuery(query)
	var want [rows]int32
	dotPortable(want[:], codes, &q)
	for _, k := range list {
		var got [rows]int32
		if k.dot(got[:], codes, &q); got == want {
			return k.dot
		}
	}
	return dotPortable
}

// portable is the kernel of all machines.
var portable = kernel{"portable", dotPortable}

func dotPortable(dst []int32, codes []int8, q *dotQuery) {
	for i := range dst {
		a, b := q.wide, codes[i*len(q.wide):][:len(q.wide)]
		var s0, s1, s2, s3 int32
		for len(a) >= 4 && len(b) >= 4 {
			s0 += int32(a[0]) * int32(b[0])
			s1 += int32(a[1]) * int32(b[1])
			s2 += int32(a[2]) * int32(b[2])
			s3 += int32(a[3]) * int32(b[3])
			a, b = a[4:], b[4:]
		}
		dst[i] = s0 + s1 + s2 + s3
	}
}
