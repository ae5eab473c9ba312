package bert

import "math"

// layerNorm normalizes each row of x to mean 0 and variance 1, and applies the
// weights.
func layerNorm(x []float32, n int, weight, bias []float32, epsilon float64) {
	weight, bias = weight[:n], bias[:n]
	for ; len(x) >= n; x = x[n:] {
		row := x[:n]
		var sum float64
		for _, v := range row {
			sum += float64(v)
		}
		mean := float32(sum / float64(n))
		var squares float64
		for i, v := range row {
			v -= mean
			row[i] = v
			squares += float64(v) * float64(v)
		}
		scale := float32(1 / math.Sqrt(squares/float64(n)+epsilon))
		for i, v := range row {
			row[i] = v*scale*weight[i] + bias[i]
		}
	}
}
