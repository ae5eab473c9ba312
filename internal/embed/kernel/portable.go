package kernel

import "unsafe"

// An int8Func computes 16 columns of a product:
//
//	dst[i][j] = float32(sum over k of x[i][k]*w[j][k]) * xScale[i] * wScale[j] + bias[j]
//
// Strides are in numbers. inner, a multiple of [Inner], is also the stride of x. rows is a
// multiple of [Rows] and not 0.
type int8Func func(dst *float32, dstStride int, x *int8, inner, rows int, w *int8, xScale, wScale, bias *float32)

// An int8TileFunc is an int8Func for 4 rows.
type int8TileFunc func(dst *float32, dstStride int, x *int8, inner int, w *int8, xScale, wScale, bias *float32)

// tiles returns the int8Func that calls f for each tile.
func tiles(f int8TileFunc) int8Func {
	return func(dst *float32, dstStride int, x *int8, inner, rows int, w *int8, xScale, wScale, bias *float32) {
		out := unsafe.Slice(dst, (rows-1)*dstStride+Columns)
		xs, scales := unsafe.Slice(x, rows*inner), unsafe.Slice(xScale, rows)
		for r := 0; r < rows; r += Rows {
			f(&out[r*dstStride], dstStride, &xs[r*inner], inner, w, &scales[r], wScale, bias)
		}
	}
}

// A float32Func computes a tile of 4 x 16 numbers:
//
//	dst[i][j] = bias[j] + sum over k of a[i][k]*b[k][j]
type float32Func func(dst *float32, dstStride int, a *float32, aStride int, b *float32, bStride, inner int,
	bias *float32)

// int8Portable is the int8TileFunc in Go.
func int8Portable(dst *float32, dstStride int, x *int8, inner int, w *int8, xScale, wScale, bias *float32) {
	xs := unsafe.Slice(x, Rows*inner)
	ws := unsafe.Slice(w, Columns*inner)
	out := unsafe.Slice(dst, (Rows-1)*dstStride+Columns)
	scaleX, scaleW, add := unsafe.Slice(xScale, Rows), unsafe.Slice(wScale, Columns), unsafe.Slice(bias, Columns)
	var sum [Rows][Columns]int32
	for k := 0; k < inner; k += 4 {
		block := (*[4 * Columns]int8)(ws[k*Columns:])
		for r := range Rows {
			v := (*[4]int8)(xs[r*inner+k:])
			v0, v1, v2, v3 := int32(v[0]), int32(v[1]), int32(v[2]), int32(v[3])
			s := &sum[r]
			for c := range Columns {
				s[c] += v0*int32(block[4*c]) + v1*int32(block[4*c+1]) + v2*int32(block[4*c+2]) + v3*int32(block[4*c+3])
			}
		}
	}
	for r := range Rows {
		for c := range Columns {
			// The conversions prevent the compiler from fusing the operations,
			// so that every processor computes the same.
			scaled := float32(float32(sum[r][c]) * scaleX[r])
			out[r*dstStride+c] = float32(scaled*scaleW[c]) + add[c]
		}
	}
}

// float32Portable is the float32Func in Go.
func float32Portable(dst *float32, dstStride int, a *float32, aStride int, b *float32, bStride, inner int,
	bias *float32) {
	as := unsafe.Slice(a, (Rows-1)*aStride+inner)
	bs := unsafe.Slice(b, (inner-1)*bStride+Columns)
	out := unsafe.Slice(dst, (Rows-1)*dstStride+Columns)
	add := (*[Columns]float32)(unsafe.Pointer(bias))
	for r := range Rows {
		sum := *add
		for k := range inner {
			v := as[r*aStride+k]
			row := (*[Columns]float32)(bs[k*bStride:])
			for c := range Columns {
				sum[c] += v * row[c]
			}
		}
		copy(out[r*dstStride:], sum[:])
	}
}

// A namedKernel is an implementation of a function.
type namedKernel[F int8Func | float32Func] struct {
	name string
	run  F
}

// The kernels in use.
var (
	int8Kernel    = firstRight(int8Kernels)
	float32Kernel = float32Kernels[0].run
)

// firstRight returns the first kernel of a list that computes the same numbers as
// [int8Portable] in an example. A kernel for instructions of new processors may
// have been tested on few of them. The last kernel is not checked.
func firstRight(list []namedKernel[int8Func]) int8Func {
	const inner = 2 * Inner
	var x [Rows * inner]int8
	var w [Columns * inner]int8
	for i := range x {
		x[i] = int8(37 * i)
	}
	for i := range w {
		w[i] = max(int8(71*i), -127)
	}
	xScale := [Rows]float32{1, 0.5, 3, 0.1}
	var wScale, bias [Columns]float32
	for i := range Columns {
		wScale[i], bias[i] = 1/float32(i+1), float32(i)
	}
	var want [Rows * Columns]float32
	int8Portable(&want[0], Columns, &x[0], inner, &w[0], &xScale[0], &wScale[0], &bias[0])
	last := len(list) - 1
	for _, k := range list[:last] {
		var got [Rows * Columns]float32
		if k.run(&got[0], Columns, &x[0], inner, Rows, &w[0], &xScale[0], &wScale[0], &bias[0]); got == want {
			return k.run
		}
	}
	return list[last].run
}
