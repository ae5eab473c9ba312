package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// line returns n numbers from low to high.
func line(low, high float32, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = low + (high-low)*float32(i)/float32(n-1)
	}
	return x
}

func TestGELU(t *testing.T) {
	in := append(line(-12, 12, 4099), 0, 1e30, -1e30)
	for name, gelu := range map[string]func([]float32){"GELU": GELU, "portable": geluPortable} {
		got := slices.Clone(in)
		gelu(got)
		for i, x := range in {
			want := float64(x) / 2 * (1 + math.Erf(float64(x)/math.Sqrt2))
			if math.Abs(float64(got[i])-want) > 1e-6*max(1, math.Abs(float64(x))) {
				t.Errorf("%s(%v) = %v, want %v", name, x, got[i], want)
			}
		}
	}
}

func TestExp(t *testing.T) {
	for _, x := range line(-86.5, 0, 10000) {
		want := math.Exp(float64(x))
		if got := exp(x); math.Abs(float64(got)-want) > 3e-7*want {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	for _, x := range []float32{-87.5, -1e30, float32(math.Inf(-1)), float32(math.NaN())} {
		if got := exp(x); got != 0 {
			t.Errorf("exp(%v) = %v, want 0", x, got)
		}
	}
}

func TestSoftmax(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	inputs := [][]float32{{0}, {1000, 999, -1000}, {-1e30, -1e30}, line(-90, 5, 257), {-1e38, 1e38}}
	for n := 1; n < 40; n++ {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rnd.NormFloat64() * 20)
		}
		inputs = append(inputs, x)
	}
	for _, in := range inputs {
		// The difference to the largest number is rounded to float32.
		sum, top := 0.0, slices.Max(in)
		for _, x := range in {
			sum += math.Exp(float64(x - top))
		}
		for name, softmax := range map[string]func(x []float32, n int){"Softmax": Softmax,
			"portable": func(x []float32, n int) { softmaxPortable(x[:n]) }} {
			for _, extra := range []int{0, 16} {
				got := append(slices.Clone(in), make([]float32, extra)...)
				softmax(got, len(in))
				for i, x := range in {
					if want := math.Exp(float64(x-top)) / sum; math.Abs(float64(got[i])-want) > 2e-6*want+1e-30 {
						t.Errorf("%s of %d numbers: number %d is %v, want %v", name, len(in), i, got[i], want)
					}
				}
			}
		}
	}
}

func TestQuantize(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 200; n++ {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rnd.NormFloat64())
		}
		switch n % 4 {
		case 1:
			x[rnd.IntN(n)] = -100
		case 2:
			x[rnd.IntN(n)] = 1e-30
		}
		got, want := make([]int8, n), make([]int8, n)
		scale := Quantize(got, x)
		top := maxAbsPortable(x)
		quantizePortable(want, x, 127/top)
		if !slices.Equal(got, want) || scale != top/127 {
			t.Fatalf("%d numbers: Quantize() = %v with scale %v, want %v with %v", n, got, scale, want, top/127)
		}
		for i, v := range got {
			if v == -128 || math.Abs(float64(x[i]-float32(v)*scale)) > 0.5001*float64(scale) {
				t.Errorf("%d numbers: %v is quantized to %d with scale %v", n, x[i], v, scale)
			}
		}
	}
	got := slices.Repeat([]int8{1}, 40)
	if scale := Quantize(got, make([]float32, 40)); scale != 0 || slices.Max(got) != 0 {
		t.Errorf("Quantize() of zeros = %v with scale %v", got, scale)
	}
}

// BenchmarkFunctions measures the functions on 1536 numbers.
func BenchmarkFunctions(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	in, x, q := make([]float32, 1536), make([]float32, 1536), make([]int8, 1536)
	for i := range in {
		in[i] = float32(rnd.NormFloat64() * 3)
	}
	for name, run := range map[string]func(){
		"GELU":     func() { copy(x, in); GELU(x) },
		"Softmax":  func() { copy(x, in); Softmax(x, len(x)) },
		"Quantize": func() { Quantize(q, in) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run()
			}
		})
	}
}
