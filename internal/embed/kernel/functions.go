package kernel

import "math"

// GELU applies the Gaussian error linear unit x/2 * (1 + erf(x/√2)) to each number.
// The error is below 1e-6.
func GELU(x []float32) {
	n := 0
	if hasVectors {
		n = len(x) &^ 15
		if n > 0 {
			geluVector(&x[0], n)
		}
	}
	geluPortable(x[n:])
}

// geluPortable is GELU in Go. erf is the rational approximation of Eigen
// (generic_fast_erf_float), whose error is below 4e-7.
func geluPortable(x []float32) {
	for i, v := range x {
		t := v * (1 / math.Sqrt2)
		if t > 4 {
			t = 4
		} else if t < -4 {
			t = -4
		}
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

// Softmax replaces the first n numbers of x by their exponentials, divided by the
// sum of these. It may change the others. n is at least 1.
func Softmax(x []float32, n int) {
	if end := RoundUp(n, 8); hasVectors && end <= len(x) {
		for i := n; i < end; i++ {
			x[i] = -math.MaxFloat32
		}
		softmaxVector(&x[0], end)
		return
	}
	softmaxPortable(x[:n])
}

// softmaxPortable is Softmax in Go.
func softmaxPortable(x []float32) {
	top := x[0]
	for _, v := range x {
		if v > top {
			top = v
		}
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

// round rounds a float32 to an integer that is then in its lowest bits, if it is
// added to it.
const round = 3 << 22

// Quantize sets q to x / scale, rounded, and returns the scale, which maps the
// number with the largest absolute value to 127. Every processor computes the same
// bits.
func Quantize(q []int8, x []float32) (scale float32) {
	n := 0
	if hasVectors {
		n = len(x) &^ 31
	}
	var top float32
	if n > 0 {
		top = maxAbsVector(&x[0], n)
	}
	top = max(top, maxAbsPortable(x[n:]))
	if top == 0 {
		clear(q)
		return 0
	}
	q = q[:len(x)]
	inverse := 127 / top
	if n > 0 {
		quantizeVector(&q[0], &x[0], n, inverse)
	}
	quantizePortable(q[n:], x[n:], inverse)
	return top / 127
}

// maxAbsPortable returns the largest absolute value.
func maxAbsPortable(x []float32) float32 {
	var top uint32 // numbers without a sign are ordered as their bits
	for _, v := range x {
		if b := math.Float32bits(v) &^ (1 << 31); b > top {
			top = b
		}
	}
	return math.Float32frombits(top)
}

// quantizePortable sets q to the rounded products of x and a factor.
func quantizePortable(q []int8, x []float32, factor float32) {
	q = q[:len(x)]
	for i, v := range x {
		q[i] = int8(math.Float32bits(float32(v*factor) + round))
	}
}
