package bert

import (
	"math"
	"testing"
)

func TestGELU(t *testing.T) {
	for x := float32(-12); x <= 12; x += 1.0 / 256 {
		got := []float32{x}
		gelu(got)
		want := float64(x) / 2 * (1 + math.Erf(float64(x)/math.Sqrt2))
		if math.Abs(float64(got[0])-want) > 1e-6*max(1, math.Abs(float64(x))) {
			t.Errorf("gelu(%v) = %v, want %v", x, got[0], want)
		}
	}
}

func TestExp(t *testing.T) {
	for x := float32(-86.5); x <= 0; x += 1.0 / 128 {
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
	x := []float32{1000, 999, -1000}
	softmax(x)
	if math.Abs(float64(x[0])-0.7310586) > 1e-6 || math.Abs(float64(x[1])-0.2689414) > 1e-6 || x[2] != 0 {
		t.Errorf("softmax() = %v", x)
	}
}

func TestQuantize(t *testing.T) {
	q := make([]int8, 5)
	scale := quantize(q, []float32{-254, 2, 2.9, 3.1, 254})
	want := []int8{-127, 1, 1, 2, 127}
	for i := range q {
		if q[i] != want[i] {
			t.Errorf("quantize() = %v with scale %v, want %v with 2", q, scale, want)
			break
		}
	}
	if scale != 2 {
		t.Errorf("the scale is %v, want 2", scale)
	}
	if scale := quantize(q, make([]float32, 5)); scale != 0 || q[0] != 0 || q[4] != 0 {
		t.Errorf("quantize() of zeros = %v with scale %v", q, scale)
	}
}

func TestLayerNorm(t *testing.T) {
	x := []float32{1, 3, 5, 7, 2, 2, 2, 2}
	layerNorm(x, 4, []float32{1, 1, 1, 2}, []float32{0, 0, 10, 0}, 1e-12)
	want := []float32{-1.3416408, -0.4472136, 10.4472136, 2.6832816, 0, 0, 10, 0}
	if d := distance(x, want); d > 1e-6 {
		t.Errorf("layerNorm() = %v, want %v", x, want)
	}
}
