package faiss

import "math"

// A transform is applied to a query before it is compared with vectors.
type transform struct {
	in, out int
	kind    string

	matrix []float32 // out rows of in values, for linear transforms
	offset []float32 // is added to the result; nil if there is none
	source []int32   // for RmDT: the value of the query for each value of the result; -1 is 0
}

// apply returns the transform of q, which has t.in values.
func (t transform) apply(q []float32) []float32 {
	r := make([]float32, t.out)
	switch t.kind {
	case "VNrm":
		var sum float64
		for _, v := range q {
			sum += float64(v) * float64(v)
		}
		scale := 1.0
		if sum > 0 {
			scale = 1 / math.Sqrt(sum)
		}
		for i, v := range q {
			r[i] = float32(float64(v) * scale)
		}
	case "VCnt":
		copy(r, q)
	case "RmDT":
		for i, s := range t.source {
			if s >= 0 {
				r[i] = q[s]
			}
		}
	default:
		for i := range r {
			var sum float64
			for j, a := range t.matrix[i*t.in : (i+1)*t.in] {
				sum += float64(a) * float64(q[j])
			}
			r[i] = float32(sum)
		}
	}
	for i, v := range t.offset {
		r[i] += v
	}
	return r
}

// transform reads a transformation of vectors of dimension dim.
func (d *decoder) transform(dim int) transform {
	t := transform{kind: d.fourcc()}
	bias := false
	switch t.kind {
	case "VNrm":
		if norm := d.float32(); d.err == nil && norm != 2 {
			d.unsupported("normalization with another norm than L2 is not supported")
		}
	case "VCnt":
		t.offset = d.float32s()
		for i := range t.offset {
			t.offset[i] = -t.offset[i]
		}
	case "RmDT":
		t.source = make([]int32, d.count(4))
		for i := range t.source {
			t.source[i] = d.int32()
		}
	case "PCAm", "PcAm", "Pcam":
		d.skip(4) // power of the eigenvalues
		if t.kind == "Pcam" {
			d.skip(4) // epsilon
		}
		d.skip(1) // random rotation
		if t.kind != "PCAm" {
			d.skip(4) // balanced bins
		}
		d.skipVector(4) // mean
		d.skipVector(4) // eigenvalues
		d.skipVector(4) // the whole matrix
		bias = d.linear(&t)
	case "Viqm":
		d.skip(4 + 4)
		bias = d.linear(&t)
	case "rrot", "LTra":
		bias = d.linear(&t)
	default:
		if d.err == nil {
			d.unsupported("transformation of type %q is not supported; write the vectors to an IndexFlatIP or IndexFlatL2", t.kind)
		}
		return transform{}
	}
	in, out := d.int32(), d.int32()
	d.skip(1) // whether it is trained
	if d.err != nil {
		return transform{}
	}
	if int(in) != dim || out < 1 || out > maxDim {
		d.corrupt("a transformation from dimension %d to %d, want from %d", in, out, dim)
		return transform{}
	}
	t.in, t.out = dim, int(out)
	ok := true
	switch t.kind {
	case "VNrm":
		ok = in == out
	case "VCnt":
		ok = in == out && len(t.offset) == t.in
	case "RmDT":
		ok = len(t.source) == t.out
		for _, s := range t.source {
			ok = ok && s >= -1 && s < in
		}
	default:
		size := int64(t.in) * int64(t.out)
		ok = int64(len(t.matrix)) >= size && (!bias || len(t.offset) >= t.out)
		if ok && bias {
			t.offset = t.offset[:t.out]
		} else {
			t.offset = nil
		}
	}
	if !ok {
		d.corrupt("a transformation of type %q from dimension %d to %d does not fit", t.kind, in, out)
		return transform{}
	}
	return t
}

// linear reads the matrix and the offset of a linear transform, and returns
// whether the offset is used.
func (d *decoder) linear(t *transform) (bias bool) {
	bias = d.bool()
	t.matrix = d.float32s()
	t.offset = d.float32s()
	return bias
}
