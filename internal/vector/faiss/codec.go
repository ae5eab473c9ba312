package faiss

import "math"

// A codec decodes the codes of vectors.
type codec interface {
	dim() int                          // of a vector
	size() int                         // of a code, in bytes; at least 1
	decode(dst []float32, code []byte) // dst and code have these lengths
}

// flat is the codec of float32.
type flat struct{ d int }

func (c flat) dim() int  { return c.d }
func (c flat) size() int { return 4 * c.d }
func (c flat) decode(dst []float32, code []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(le.Uint32(code[4*i:]))
	}
}

// A productQuantizer divides a vector into m parts, and stores for each the
// number of the nearest of 1<<bits centroids.
type productQuantizer struct {
	d, m, bits int
	centroids  []float32 // m times 1<<bits times d/m
}

func (c productQuantizer) dim() int  { return c.d }
func (c productQuantizer) size() int { return (c.m*c.bits + 7) / 8 }

func (c productQuantizer) decode(dst []float32, code []byte) {
	part := c.d / c.m
	var acc uint64 // bits of the code that are not yet used, the first is the lowest
	have := 0
	for i := range c.m {
		for have < c.bits {
			acc |= uint64(code[0]) << have
			code = code[1:]
			have += 8
		}
		k := int(acc & (1<<c.bits - 1))
		acc >>= c.bits
		have -= c.bits
		copy(dst[i*part:(i+1)*part], c.centroids[(i<<c.bits+k)*part:])
	}
}

// productQuantizer reads a product quantizer for vectors of dimension dim.
func (d *decoder) productQuantizer(dim int) productQuantizer {
	dims, m, bits := d.uint64(), d.uint64(), d.uint64()
	centroids := d.float32s()
	if d.err != nil {
		return productQuantizer{}
	}
	if dims != uint64(dim) || m < 1 || m > dims || dims%m != 0 || bits < 1 || bits > 24 ||
		uint64(len(centroids)) != dims<<bits {
		d.corrupt("a product quantizer of %d parts of %d bits with %d values for dimension %d", m, bits, len(centroids),
			dims)
		return productQuantizer{}
	}
	return productQuantizer{dim, int(m), int(bits), centroids}
}

// twoLevel is the codec of a centroid and the difference to it.
type twoLevel struct {
	productQuantizer
	first     int // bytes of the number of the centroid
	centroids []float32
	bad       *bool // set if a centroid does not exist
}

func (c twoLevel) size() int { return c.first + c.productQuantizer.size() }

func (c twoLevel) decode(dst []float32, code []byte) {
	var list uint64
	for i, b := range code[:c.first] {
		list |= uint64(b) << (8 * i)
	}
	if list >= uint64(len(c.centroids)/c.d) {
		*c.bad = true
		return
	}
	c.productQuantizer.decode(dst, code[c.first:])
	for i, v := range c.centroids[int(list)*c.d:][:c.d] {
		dst[i] += v
	}
}

// The types of scalar quantizers, as FAISS numbers them.
const (
	sq8 = iota
	sq4
	sq8Uniform
	sq4Uniform
	sqFloat16
	sq8Direct
	sq6
	sqBfloat16
	sq8DirectSigned
	sqCount
)

// A scalarQuantizer stores each value of a vector in a few bits.
type scalarQuantizer struct {
	d    int
	kind int
	// least and step give the value of a code: least plus step times a number
	// in 0..1. They have one element for all dimensions, or one for each.
	least, step []float32
}

func (c scalarQuantizer) dim() int { return c.d }

func (c scalarQuantizer) size() int {
	switch c.kind {
	case sq4, sq4Uniform:
		return (c.d + 1) / 2
	case sq6:
		return (c.d*6 + 7) / 8
	case sqFloat16, sqBfloat16:
		return 2 * c.d
	}
	return c.d
}

func (c scalarQuantizer) decode(dst []float32, code []byte) {
	switch c.kind {
	case sqFloat16:
		for i := range dst {
			dst[i] = float16(le.Uint16(code[2*i:]))
		}
		return
	case sqBfloat16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(le.Uint16(code[2*i:])) << 16)
		}
		return
	case sq8Direct:
		for i := range dst {
			dst[i] = float32(code[i])
		}
		return
	case sq8DirectSigned:
		for i := range dst {
			dst[i] = float32(code[i]) - 128
		}
		return
	}
	for i := range dst {
		var f float32
		switch c.kind {
		case sq8, sq8Uniform:
			f = (float32(code[i]) + 0.5) / 255
		case sq4, sq4Uniform:
			f = (float32(code[i/2]>>(i%2*4)&15) + 0.5) / 15
		case sq6: // four values in three bytes, the first in the lowest bits
			bit := i * 6
			v := uint(code[bit/8]) >> (bit % 8)
			if bit%8 > 2 {
				v |= uint(code[bit/8+1]) << (8 - bit%8)
			}
			f = (float32(v&63) + 0.5) / 63
		}
		k := 0
		if len(c.least) > 1 {
			k = i
		}
		dst[i] = c.least[k] + c.step[k]*f
	}
}

// scalarQuantizer reads a scalar quantizer for vectors of dimension dim.
func (d *decoder) scalarQuantizer(dim int) scalarQuantizer {
	kind := d.int32()
	d.skip(4 + 4) // how it was trained
	dims, size := d.uint64(), d.uint64()
	trained := d.float32s()
	if d.err != nil {
		return scalarQuantizer{}
	}
	if kind < 0 || kind >= sqCount {
		d.unsupported("scalar quantizer of type %d is not supported; write the vectors to an IndexFlatIP or IndexFlatL2", kind)
		return scalarQuantizer{}
	}
	c := scalarQuantizer{d: dim, kind: int(kind)}
	n := 0 // ranges of values
	switch kind {
	case sq8, sq4, sq6:
		n = dim
	case sq8Uniform, sq4Uniform:
		n = 1
	}
	if dims != uint64(dim) || size != uint64(c.size()) || len(trained) < 2*n {
		d.corrupt("a scalar quantizer of type %d with codes of %d bytes and %d values for dimension %d", kind, size,
			len(trained), dims)
		return scalarQuantizer{}
	}
	c.least, c.step = trained[:n], trained[n:2*n]
	return c
}

// float16 returns the value of a half-precision number.
func float16(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exp {
	case 0: // subnormal
		return math.Float32frombits(sign | math.Float32bits(float32(frac)/(1<<24)))
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
