package bert

import "testing"

func TestLayerNorm(t *testing.T) {
	x := []float32{1, 3, 5, 7, 2, 2, 2, 2}
	layerNorm(x, 4, []float32{1, 1, 1, 2}, []float32{0, 0, 10, 0}, 1e-12)
	want := []float32{-1.3416408, -0.4472136, 10.4472136, 2.6832816, 0, 0, 10, 0}
	if d := distance(x, want); d > 1e-6 {
		t.Errorf("layerNorm() = %v, want %v", x, want)
	}
}
