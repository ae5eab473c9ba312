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

// gelu applies the Gaussian error linear unit x/2 * (1 + erf(x/√2)). erf is the
// rational approximation of Eigen (generic_fast_erf_float), whose error is below
// 4e-7.
func gelu(x []float32) {
	for i, v := range x {
		t := v * (1 / math.Sqrt2)
		t = min(max(t, -4), 4)
		t2 := t * t
		p := t2*-2.72614225801306e-10 + 2.77068142495902e-08
		p = p*t2 + -2.10102402082508e-06
		p = p*t2 + -5.69250639462346e-05
		p = p*t2 + -7.34990630326855e-04
		p = p*t2 + -2.95459980854025e-03
		p = p*t2 + -1.60960333262415e-02
		q := t2*-1.45660718464996e-05 + -2.13374055278905e-04
		q = q*t2 + -1.68282697438203e-03
		q = q*t2 + -7.37332916720468e-03
		q = q*t2 + -1.42647390514189e-02
		x[i] = 0.5 * v * (1 + t*p/q)
	}
}

// softmax replaces the numbers of x by their exponentials, divided by the sum of
// these.
func softmax(x []float32) {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var sum float32
	for i, v := range x {
		e := exp(v - top)
		x[i] = e
		sum += e
	}
	scale := 1 / sum
	for i := range x {
		x[i] *= scale
	}
}

// exp returns e**x for x <= 0, and 0 below -87. The relative error is below 3e-7.
func exp(x float32) float32 {
	if !(x > -87) {
		return 0
	}
	// e**x = 2**n * e**r with |r| <= ln(2)/2. Adding and subtracting 1.5 * 2**23
	// rounds to an integer. The logarithm is in two parts, so that r is exact
	// (Cephes expf).
	const round = 3 << 22
	n := float32(x*math.Log2E+round) - round
	r := x - float32(n*0.693359375)
	r -= float32(n * -2.12194440e-4)
	p := r*1.9875691500e-4 + 1.3981999507e-3
	p = p*r + 8.3334519073e-3
	p = p*r + 4.1665795894e-2
	p = p*r + 1.6666665459e-1
	p = p*r + 5.0000001201e-1
	p = p*r*r + r + 1
	return p * math.Float32frombits(uint32(int32(n)+127)<<23)
}

// quantize sets q to x / scale, rounded, and returns the scale, which maps the
// number with the largest absolute value to 127.
func quantize(q []int8, x []float32) (scale float32) {
	var top float32
	for _, v := range x {
		top = max(top, v, -v)
	}
	if top == 0 {
		clear(q)
		return 0
	}
	scale = top / 127
	inverse := 127 / top
	const round = 3 << 22 // see exp
	q = q[:len(x)]
	for i, v := range x {
		// The lowest bits of the sum are the rounded number.
		q[i] = int8(math.Float32bits(float32(v*inverse) + round))
	}
	return scale
}
