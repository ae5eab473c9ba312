// Package vector finds the vectors that are most similar to a query vector.
//
// An [Index] holds vectors of float32 with codes of int8 (see [New]), or codes
// alone (see [Open] and [Writer]), which take a quarter of the memory. A search
// scans the codes of all vectors. From each code follow bounds of the exact
// score, and the vectors whose bounds allow it are scored exactly. So the
// result is that of an exact search, in the order of the exact scores. There is
// no approximate index; below a million vectors none is needed.
package vector

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"unsafe"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// MaxDim is the greatest dimension of a vector. The sum of so many products of
// two int8 fits an int32.
const MaxDim = 1 << 16

// A Metric defines the score of a vector for a query.
type Metric int

const (
	InnerProduct Metric = iota // the inner product; a greater one is better
	L2                         // the square of the Euclidean distance; a smaller one is better
	Cosine                     // the cosine of the angle; a greater one is better; 0 if one of the vectors is 0
	metricCount
)

// String returns the name of the metric, for example "cosine".
func (m Metric) String() string {
	switch m {
	case InnerProduct:
		return "inner product"
	case L2:
		return "L2"
	case Cosine:
		return "cosine"
	}
	return fmt.Sprintf("metric %d", int(m))
}

// An Index is an immutable list of vectors that can be searched. Its methods may
// be called from several goroutines.
type Index struct {
	dim    int
	stride int // bytes of a row in codes
	metric Metric
	rows   []row
	most   float32 // greatest norm of a decoded vector, as in rows
	codes  []int8  // len(rows) times stride; the bytes of a row after dim are 0
	dot    dotFunc

	at   RowFunc // nil if there are only codes
	file *file   // nil if there is at
}

// A row has what a scan needs to know of a vector v besides its codes c. The
// decoded vector is scale·c. With the metric Cosine, all fields are divided by
// the norm of v.
type row struct {
	scale float32 // NaN if v has a value that is not finite: it is never a result
	norm  float32 // of the decoded vector
	err   float32 // norm of the difference between v and the decoded vector, or more
	bias  float32 // -|v|² with the metric L2, otherwise 0
}

// slack is an upper bound of all relative errors of rounding in a row, in its
// bounds, which are computed with float32, and in scores.
const slack = 1.0 / (1 << 18)

// underflow is an upper bound of the rounding of tiny numbers.
const underflow = 64 * math.SmallestNonzeroFloat32

// New returns an index of vectors, which consists of vectors of dim values, one
// after the other. It keeps the slice, which must not be changed. The codes take
// a quarter of its size in addition. A vector that has a value that is not finite
// is never a result.
//
// New returns an error of kind [errkind.Invalid] if dim is not between 1 and
// [MaxDim], or does not divide the number of values.
func New(vectors []float32, dim int, metric Metric) (*Index, error) {
	if err := check(dim, metric); err != nil {
		return nil, err
	}
	if len(vectors)%dim != 0 {
		return nil, fmt.Errorf("vector: %d values are not vectors of dimension %d: %w", len(vectors), dim,
			errkind.Invalid)
	}
	return NewFunc(len(vectors)/dim, func(row int, _ []float32) []float32 { return vectors[row*dim:][:dim] }, dim,
		metric)
}

// A RowFunc returns the vector of a row, in buf, which has its length, or in
// another slice, which is not changed. It may be called from several goroutines.
type RowFunc func(row int, buf []float32) []float32

// NewFunc is [New] of n vectors that need not be in memory. Only the codes are.
// If a vector changes afterwards, the results of searches mean nothing.
func NewFunc(n int, at RowFunc, dim int, metric Metric) (*Index, error) {
	if err := check(dim, metric); err != nil {
		return nil, err
	}
	x := &Index{
		dim: dim, stride: stride(dim), metric: metric, dot: fastest(),
		rows: make([]row, n), codes: make([]int8, n*stride(dim)), at: at,
	}
	var wait sync.WaitGroup
	for _, part := range split(n, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			buf := make([]float32, dim)
			for i := part.from; i < part.to; i++ {
				v := at(i, buf)
				x.rows[i] = newRow(v, quantize(x.codes[i*x.stride:][:dim], v), metric)
			}
		})
	}
	wait.Wait()
	x.setMost()
	return x, nil
}

// setMost sets x.most from the rows.
func (x *Index) setMost() {
	for i := range x.rows {
		if n := x.rows[i].norm; n > x.most {
			x.most = n
		}
	}
}

// check returns an error if dim or metric is out of bounds.
func check(dim int, metric Metric) error {
	if dim < 1 || dim > MaxDim {
		return fmt.Errorf("vector: the dimension is %d, and must be between 1 and %d: %w", dim, MaxDim, errkind.Invalid)
	}
	if metric < 0 || metric >= metricCount {
		return fmt.Errorf("vector: unknown metric %d: %w", int(metric), errkind.Invalid)
	}
	return nil
}

// Size returns the number of bytes of memory that [NewFunc] takes for n vectors.
func Size(n, dim int) int64 { return int64(n) * (int64(stride(dim)) + int64(unsafe.Sizeof(row{}))) }

// stride returns the number of bytes between the codes of two vectors: a multiple
// of 64, so that the SIMD code needs no special case for the end of a row.
func stride(dim int) int { return (dim + 63) &^ 63 }

// Len returns the number of vectors.
func (x *Index) Len() int { return len(x.rows) }

// Dim returns the number of values of a vector.
func (x *Index) Dim() int { return x.dim }

// Metric returns the metric.
func (x *Index) Metric() Metric { return x.metric }

// Scores returns the scores of some rows for a query, as in a [Hit]. The score of
// a vector with a value that is not finite means nothing. Errors are as those of
// [Index.Search], and of kind [errkind.Invalid] if there is no such row.
func (x *Index) Scores(query []float32, rows []int) ([]float64, error) {
	if err := x.checkQuery(query); err != nil {
		return nil, err
	}
	n, buf, scores := norm(query), make([]float32, x.dim), make([]float64, len(rows))
	for i, row := range rows {
		if row < 0 || row >= len(x.rows) {
			return nil, fmt.Errorf("vector: there is no row %d, only %d rows: %w", row, len(x.rows), errkind.Invalid)
		}
		scores[i] = x.exact(query, n, row, buf)
	}
	return scores, nil
}

// checkQuery returns an error if a search for v is not possible.
func (x *Index) checkQuery(v []float32) error {
	if len(v) != x.dim {
		return fmt.Errorf("vector: the query is of dimension %d, the index of %d: %w", len(v), x.dim, errkind.Invalid)
	}
	if !finite(v) {
		return fmt.Errorf("vector: the query has a value that is not finite: %w", errkind.Invalid)
	}
	return nil
}

// vector returns the vector of a row. If there are only codes, it is decoded into
// buf, which has the length of a vector.
func (x *Index) vector(row int, buf []float32) []float32 {
	if x.at != nil {
		return x.at(row, buf)
	}
	scale := x.file.scale(row)
	for i, c := range x.codes[row*x.stride:][:x.dim] {
		buf[i] = scale * float32(c)
	}
	return buf
}

// exact returns the score of a row. The query has the given norm; buf is as for
// vector. The result does not depend on the machine.
func (x *Index) exact(query []float32, queryNorm float64, row int, buf []float32) float64 {
	v := x.vector(row, buf)
	switch x.metric {
	case L2:
		return distance(query, v)
	case Cosine:
		if n := queryNorm * norm(v); n != 0 {
			if c := Dot(query, v) / n; c == c { // else v is not finite
				return c
			}
		}
		return 0
	}
	return Dot(query, v)
}

// Dot returns the inner product of two vectors. The products are exact, so the
// result is the same whether or not the processor fuses multiplication and
// addition.
func Dot(a, b []float32) float64 {
	var s0, s1, s2, s3 float64
	for len(a) >= 4 && len(b) >= 4 {
		s0 += float64(a[0]) * float64(b[0])
		s1 += float64(a[1]) * float64(b[1])
		s2 += float64(a[2]) * float64(b[2])
		s3 += float64(a[3]) * float64(b[3])
		a, b = a[4:], b[4:]
	}
	for i := range min(len(a), len(b)) {
		s0 += float64(a[i]) * float64(b[i])
	}
	return (s0 + s1) + (s2 + s3)
}

// distance returns the square of the Euclidean distance of two vectors. The
// conversions forbid fused operations, whose result would differ.
func distance(a, b []float32) float64 {
	square := func(a, b float32) float64 {
		d := float64(a) - float64(b)
		return float64(d * d)
	}
	var s0, s1, s2, s3 float64
	for len(a) >= 4 && len(b) >= 4 {
		s0 += square(a[0], b[0])
		s1 += square(a[1], b[1])
		s2 += square(a[2], b[2])
		s3 += square(a[3], b[3])
		a, b = a[4:], b[4:]
	}
	for i := range min(len(a), len(b)) {
		s0 += square(a[i], b[i])
	}
	return (s0 + s1) + (s2 + s3)
}

// norm returns the Euclidean norm of a vector.
func norm(v []float32) float64 { return math.Sqrt(Dot(v, v)) }

// finite reports whether all values of v are numbers and not infinite.
func finite(v []float32) bool {
	for _, f := range v {
		if math.Float32bits(f)&0x7f800000 == 0x7f800000 {
			return false
		}
	}
	return true
}

// A quantized describes the codes of a vector.
type quantized struct {
	scale float32 // the decoded vector is scale times the codes; NaN if a value is not finite
	norm  float64 // of the decoded vector
	err   float64 // norm of the difference
}

// quantize writes codes from -127 to 127 for v, which has the same length.
func quantize(codes []int8, v []float32) quantized {
	if !finite(v) {
		return quantized{scale: float32(math.NaN())}
	}
	var most uint32 // the bits of absolute values are ordered as the values
	for _, f := range v {
		most = max(most, math.Float32bits(f)&^(1<<31))
	}
	scale := math.Float32frombits(most) / 127
	if scale == 0 { // v is 0, or nearly
		clear(codes)
		return quantized{err: norm(v)}
	}
	var sum int64
	var diff float64
	inverse := 1 / float64(scale)
	for i, f := range v {
		c := math.RoundToEven(float64(f) * inverse)
		c = max(-127, min(127, c)) // a tiny scale is itself rounded
		codes[i] = int8(c)
		sum += int64(c) * int64(c)
		d := float64(f) - float64(scale)*c
		diff += d * d
	}
	return quantized{scale: scale, norm: float64(scale) * math.Sqrt(float64(sum)), err: math.Sqrt(diff)}
}

// newRow returns the row of v, whose codes are q.
func newRow(v []float32, q quantized, metric Metric) row {
	scale, length := float64(q.scale), 1.0
	if metric == Cosine {
		if length = norm(v); length == 0 {
			return row{}
		}
	}
	r := row{scale: float32(scale / length), norm: float32(q.norm / length), err: float32(q.err / length)}
	if metric == L2 {
		r.bias = float32(-Dot(v, v))
	}
	return r
}

// A span is a range of rows.
type span struct{ from, to int }

// split divides n rows into at most parts spans of about the same length, none of
// which is so short that a goroutine for it would not pay.
func split(n, parts int) []span {
	parts = max(1, min(parts, n/4096))
	spans := make([]span, parts)
	for i := range spans {
		spans[i] = span{i * n / parts, (i + 1) * n / parts}
	}
	return spans
}
