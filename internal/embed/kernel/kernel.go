// Package kernel has the inner loops of neural networks: products of matrices,
// quantization, GELU and softmax. Each runs on one core, with the vector
// instructions of the processor.
//
// The products of int8 are exact: every processor computes the same bits. Those of
// float32 differ in the order of additions and in rounding.
//
// Matrices of weights are packed in blocks of [Columns] columns. Rows of
// activations come in multiples of [Rows]; callers round up.
package kernel

// Sizes of a tile, the part of a product that is computed at a time.
const (
	Rows    = 4
	Columns = 16
)

// Inner is the number that the inner dimension of a product of int8 must be a
// multiple of.
const Inner = 16

// RoundUp returns n rounded up to a multiple of m.
func RoundUp(n, m int) int { return (n + m - 1) / m * m }

// An Int8 is a matrix of weights in int8, with one scale for each column (output
// channel).
type Int8 struct {
	Inner, Columns int

	// Weights are packed: for each block of 16 columns, for each 4 inner
	// indexes, 4 weights of each column. No weight is -128.
	Weights []int8

	Scale []float32 // by column
}

// PackInt8 packs a matrix of weights with one row for each column of the product,
// as PyTorch stores those of a linear layer. inner must be a multiple of [Inner]
// and columns one of [Columns].
func PackInt8(w []int8, inner, columns int) []int8 {
	packed := make([]int8, 0, len(w))
	for block := 0; block < columns; block += Columns {
		for k := 0; k < inner; k += 4 {
			for c := range Columns {
				at := (block+c)*inner + k
				packed = append(packed, w[at:at+4]...)
			}
		}
	}
	return packed
}

// MultiplyInt8 sets dst to x * w + bias, where row i of x is scaled by scale[i].
// rows is a multiple of [Rows]; x has rows of w.Inner numbers, dst rows of
// w.Columns.
func MultiplyInt8(dst []float32, x []int8, scale []float32, rows int, w *Int8, bias []float32) {
	if rows == 0 {
		return
	}
	// The kernels do not check bounds.
	_, _, _ = dst[rows*w.Columns-1], x[rows*w.Inner-1], scale[rows-1]
	_, _, _ = w.Weights[w.Inner*w.Columns-1], w.Scale[w.Columns-1], bias[w.Columns-1]
	if rows%Rows != 0 || w.Inner%Inner != 0 || w.Columns%Columns != 0 {
		panic("kernel: sizes are not multiples of a tile")
	}
	for c := 0; c < w.Columns; c += Columns {
		int8Kernel(&dst[c], w.Columns, &x[0], w.Inner, rows, &w.Weights[c*w.Inner], &scale[0], &w.Scale[c], &bias[c])
	}
}

// A Float32 is a matrix of weights in float32.
type Float32 struct {
	Inner, Columns int

	// Weights are packed: for each block of 16 columns, for each inner index, one
	// weight of each column.
	Weights []float32
}

// PackFloat32 packs a matrix of weights with one row for each column of the
// product. columns must be a multiple of [Columns].
func PackFloat32(w []float32, inner, columns int) []float32 {
	packed := make([]float32, 0, len(w))
	for block := 0; block < columns; block += Columns {
		for k := range inner {
			for c := range Columns {
				packed = append(packed, w[(block+c)*inner+k])
			}
		}
	}
	return packed
}

// MultiplyFloat32 sets dst to x * w + bias. rows is a multiple of [Rows]; x has
// rows of w.Inner numbers, dst rows of w.Columns.
func MultiplyFloat32(dst, x []float32, rows int, w *Float32, bias []float32) {
	if w.Columns%Columns != 0 {
		panic("kernel: sizes are not multiples of a tile")
	}
	for c := 0; c < w.Columns; c += Columns {
		block := w.Weights[c*w.Inner : (c+Columns)*w.Inner]
		multiply(dst[c:], w.Columns, x, w.Inner, rows, block, Columns, w.Inner, bias[c:c+Columns])
	}
}

// A Matrix is a part of a larger matrix in row order.
type Matrix struct {
	Data   []float32 // from the first value of the part on
	Stride int       // from one row to the next
}

// Multiply sets rows rows and columns columns of dst to a * b, where a has inner
// columns and b has inner rows. rows is a multiple of [Rows] and columns one of
// [Columns].
func Multiply(dst, a, b Matrix, rows, inner, columns int) {
	if columns%Columns != 0 {
		panic("kernel: sizes are not multiples of a tile")
	}
	for c := 0; c < columns; c += Columns {
		multiply(dst.Data[c:], dst.Stride, a.Data, a.Stride, rows, b.Data[c:], b.Stride, inner, zeros[:])
	}
}

// zeros is the bias of products without one.
var zeros [Columns]float32

// multiply computes 16 columns of a product.
func multiply(dst []float32, dstStride int, a []float32, aStride, rows int, b []float32, bStride, inner int,
	bias []float32) {
	if rows == 0 || inner == 0 {
		return
	}
	if rows%Rows != 0 {
		panic("kernel: sizes are not multiples of a tile")
	}
	// The kernels do not check bounds.
	_, _ = dst[(rows-1)*dstStride+Columns-1], a[(rows-1)*aStride+inner-1]
	_, _ = b[(inner-1)*bStride+Columns-1], bias[Columns-1]
	for r := 0; r < rows; r += Rows {
		float32Kernel(&dst[r*dstStride], dstStride, &a[r*aStride], aStride, &b[0], bStride, inner, &bias[0])
	}
}
