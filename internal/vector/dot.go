package vector

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
