package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// fillInt8 fills a slice with random numbers, or with one number and its negative.
func fillInt8(rnd *rand.Rand, s []int8, kind string) {
	for i := range s {
		switch kind {
		case "random":
			s[i] = int8(rnd.IntN(255) - 127)
		case "largest":
			s[i] = 127
		case "smallest":
			s[i] = -127
		case "mixed":
			s[i] = []int8{127, -127}[rnd.IntN(2)]
		case "lowest":
			s[i] = -128
		}
	}
}

// TestInt8Kernels compares each kernel with the sums of products in int64, bit for
// bit.
func TestInt8Kernels(t *testing.T) {
	const rows = 3 * Rows
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, inner := range []int{16, 64, 384, 1536, 4096} {
		for _, kinds := range [][2]string{{"random", "random"}, {"largest", "largest"}, {"smallest", "largest"},
			{"smallest", "smallest"},
			{"mixed", "mixed"}, {"random", "mixed"}, {"lowest", "mixed"}, {"lowest", "smallest"}} {
			x, w := make([]int8, rows*inner), make([]int8, Columns*inner)
			fillInt8(rnd, x, kinds[0])
			fillInt8(rnd, w, kinds[1])
			var xScale [rows]float32
			var wScale, bias [Columns]float32
			for i := range wScale {
				xScale[i%rows], wScale[i], bias[i] = rnd.Float32(), rnd.Float32(), rnd.Float32()-0.5
			}
			packed := PackInt8(w, inner, Columns)
			for _, kernel := range int8Kernels {
				const stride = Columns + 3
				got := make([]float32, rows*stride)
				kernel.run(&got[0], stride, &x[0], inner, rows, &packed[0], &xScale[0], &wScale[0], &bias[0])
				for i := range got {
					r, c := i/stride, i%stride
					want := float32(0) // not written
					if c < Columns {
						var sum int64
						for k := range inner {
							sum += int64(x[r*inner+k]) * int64(w[c*inner+k])
						}
						want = float32(float32(float32(sum)*xScale[r])*wScale[c]) + bias[c]
					}
					if math.Float32bits(got[i]) != math.Float32bits(want) {
						t.Fatalf("%s, inner dimension %d, %s by %s: number %d of row %d is %v, want %v", kernel.name,
							inner, kinds[0], kinds[1], c, r, got[i], want)
					}
				}
			}
		}
	}
}

// A kernel that computes wrong numbers is not used.
func TestFirstRight(t *testing.T) {
	used := ""
	named := func(name string, wrong float32) namedKernel[int8Func] {
		return namedKernel[int8Func]{name, func(dst *float32, dstStride int, x *int8, inner, rows int, w *int8,
			xScale, wScale, bias *float32) {
			used = name
			tiles(int8Portable)(dst, dstStride, x, inner, rows, w, xScale, wScale, bias)
			*dst += wrong
		}}
	}
	for want, list := range map[string][]namedKernel[int8Func]{
		"right": {named("wrong", 1), named("right", 0), named("last", 0)},
		"last":  {named("wrong", 1), named("last", 0)},
		"only":  {named("only", 0)},
	} {
		run := firstRight(list)
		used = ""
		var dst [Rows * Columns]float32
		var x [Columns * Inner]int8
		var scale [Columns]float32
		if run(&dst[0], Columns, &x[0], Inner, Rows, &x[0], &scale[0], &scale[0], &scale[0]); used != want {
			t.Errorf("kernel %q is used, want %q", used, want)
		}
	}
}

// TestFloat32Kernels compares each kernel with products in float64.
func TestFloat32Kernels(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, inner := range []int{1, 2, 31, 32, 384, 1536} {
		const aExtra, bStride, stride = 5, Columns + 7, Columns + 3
		aStride := inner + aExtra
		a, b := make([]float32, Rows*aStride), make([]float32, inner*bStride)
		for i := range a {
			a[i] = float32(rnd.NormFloat64())
		}
		for i := range b {
			b[i] = float32(rnd.NormFloat64())
		}
		var bias [Columns]float32
		for i := range bias {
			bias[i] = float32(rnd.NormFloat64())
		}
		for _, kernel := range float32Kernels {
			got := make([]float32, Rows*stride)
			kernel.run(&got[0], stride, &a[0], aStride, &b[0], bStride, inner, &bias[0])
			for i := range got {
				r, c := i/stride, i%stride
				want := 0.0 // not written
				if c < Columns {
					want = float64(bias[c])
					for k := range inner {
						want += float64(a[r*aStride+k]) * float64(b[k*bStride+c])
					}
				}
				if math.Abs(float64(got[i])-want) > 2e-6*math.Sqrt(float64(inner))*10 || c >= Columns && got[i] != 0 {
					t.Fatalf("%s, inner dimension %d: number %d of row %d is %v, want %v", kernel.name, inner, c, r,
						got[i], want)
				}
			}
		}
	}
}

// TestMultiply checks whole products of several tiles.
func TestMultiply(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	const rows, inner, columns = 8, 32, 48
	x8, w8 := make([]int8, rows*inner), make([]int8, columns*inner)
	fillInt8(rnd, x8, "random")
	fillInt8(rnd, w8, "random")
	x, w := make([]float32, len(x8)), make([]float32, len(w8))
	for i, v := range x8 {
		x[i] = float32(v)
	}
	for i, v := range w8 {
		w[i] = float32(v)
	}
	scale, ones, bias := make([]float32, columns), make([]float32, rows), make([]float32, columns)
	for i := range scale {
		scale[i], bias[i] = 1, float32(i)
	}
	for i := range ones {
		ones[i] = 1
	}
	var want []float32
	for r := range rows {
		for c := range columns {
			sum := bias[c]
			for k := range inner {
				sum += x[r*inner+k] * w[c*inner+k] // exact: small integers
			}
			want = append(want, sum)
		}
	}
	got := make([]float32, rows*columns)
	check := func(name string) {
		t.Helper()
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%s: number %d is %v, want %v", name, i, got[i], want[i])
			}
			got[i] = 0
		}
	}
	MultiplyInt8(got, x8, ones, rows, &Int8{inner, columns, PackInt8(w8, inner, columns), scale}, bias)
	check("MultiplyInt8")
	MultiplyFloat32(got, x, rows, &Float32{inner, columns, PackFloat32(w, inner, columns)}, bias)
	check("MultiplyFloat32")
	transposed := make([]float32, len(w))
	for c := range columns {
		for k := range inner {
			transposed[k*columns+c] = w[c*inner+k]
		}
	}
	Multiply(Matrix{got, columns}, Matrix{x, inner}, Matrix{transposed, columns}, rows, inner, columns)
	for i := range got {
		got[i] += bias[i%columns]
	}
	check("Multiply")
}

// BenchmarkInt8 multiplies 64 rows by a layer of all-MiniLM-L6-v2.
func BenchmarkInt8(b *testing.B) {
	const rows, inner, columns = 64, 384, 1536
	x := make([]int8, rows*inner)
	w := &Int8{inner, columns, make([]int8, inner*columns), make([]float32, columns)}
	dst, scale, bias := make([]float32, rows*columns), make([]float32, rows), make([]float32, columns)
	was := int8Kernel
	defer func() { int8Kernel = was }()
	for _, kernel := range int8Kernels {
		b.Run(kernel.name, func(b *testing.B) {
			int8Kernel = kernel.run
			for b.Loop() {
				MultiplyInt8(dst, x, scale, rows, w, bias)
			}
			b.ReportMetric(float64(rows*inner*columns)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gmac/s")
		})
	}
}

// BenchmarkFloat32 is like BenchmarkInt8.
func BenchmarkFloat32(b *testing.B) {
	const rows, inner, columns = 64, 384, 1536
	x := make([]float32, rows*inner)
	w := &Float32{inner, columns, make([]float32, inner*columns)}
	dst, bias := make([]float32, rows*columns), make([]float32, columns)
	was := float32Kernel
	defer func() { float32Kernel = was }()
	for _, kernel := range float32Kernels {
		b.Run(kernel.name, func(b *testing.B) {
			float32Kernel = kernel.run
			for b.Loop() {
				MultiplyFloat32(dst, x, rows, w, bias)
			}
			b.ReportMetric(float64(rows*inner*columns)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gmac/s")
		})
	}
}
