package faiss

import (
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// supported are the types of indexes that can be read.
const supported = "IxFI IxF2 IxFl IxSQ IxPq IxPQ IxPo IHNf IHNs IHNp IHN2 IHNc IHc2 IHfP IH00 Ix2L IwFl IwPQ IwSq IwSQ IxPT IxMp IxM2 IxRF IxRP"

// names are those of some types that are not supported.
var names = map[string]string{
	"IxHe": "IndexLSH", "IxHE": "IndexLSH", "INSf": "IndexNSGFlat", "INSp": "IndexNSGPQ", "INSs": "IndexNSGSQ",
	"IPfs": "IndexPQFastScan", "IwPf": "IndexIVFPQFastScan", "IwQR": "IndexIVFPQR", "IxRq": "IndexResidualQuantizer",
	"IxRQ": "IndexResidualQuantizer",
	"IvFl": "IndexIVFFlat of an old version", "IvPQ": "IndexIVFPQ of an old version",
	"IvSQ": "IndexIVFScalarQuantizer of an old version",
	"ImRQ": "ResidualCoarseQuantizer", "IxLS": "IndexLocalSearchQuantizer", "IwRq": "IndexIVFResidualQuantizer",
	"IwLS": "IndexIVFLocalSearchQuantizer",
	"null": "no index",
}

// refuse fails because a type is not supported.
func (d *decoder) refuse(fourcc string) {
	name := names[fourcc]
	if name == "" && strings.HasPrefix(fourcc, "IB") {
		name = "a binary index"
	}
	if name != "" {
		name = " (" + name + ")"
	}
	d.unsupported("index type %q%s is not supported; write the vectors to an IndexFlatIP or IndexFlatL2", fourcc, name)
}

// header reads the header of an index of the given type.
func (d *decoder) header(fourcc string) Header {
	if d.err == nil && !slices.Contains(strings.Fields(supported), fourcc) {
		d.refuse(fourcc)
	}
	dim, count := d.int32(), int64(d.uint64())
	d.skip(16) // two numbers that FAISS does not use
	h := Header{Type: fourcc, Trained: d.bool(), Metric: Metric(d.int32())}
	if h.Metric > 1 {
		d.float32() // the argument of the metric
	}
	if d.err == nil && (dim < 1 || dim > maxDim || count < 0 || count >= maxCount || int64(int(count)) != count) {
		d.corrupt("%d vectors of dimension %d are out of bounds", count, dim)
	}
	if d.err == nil && count > d.most {
		d.fail(errkind.TooLarge, "%d vectors are more than the allowed %d", count, d.most)
	}
	if d.err != nil {
		return Header{}
	}
	h.Dim, h.Count = int(dim), int(count)
	return h
}

// index reads an index. If want is false, it has no vectors. It returns nil after
// an error. The depth is the number of indexes around it.
func (d *decoder) index(want bool, depth int) *Index {
	fourcc := d.fourcc()
	if depth >= maxDepth {
		d.corrupt("more than %d indexes are nested", maxDepth)
	}
	x := &Index{Header: d.header(fourcc)}
	if d.err != nil {
		return nil
	}
	x.Stored = x.Dim
	switch fourcc {
	case "IxFI", "IxF2", "IxFl":
		if n := d.count(4); d.err == nil && int64(n) != int64(x.Count)*int64(x.Dim) {
			d.corrupt("%d values are not %d vectors of dimension %d", n, x.Count, x.Dim)
		}
		d.codes(x, flat{x.Dim}, want)
	case "IxSQ":
		c := d.scalarQuantizer(x.Dim)
		d.codeCount(x, c)
		d.codes(x, c, want)
	case "IxPq", "IxPQ", "IxPo":
		c := d.productQuantizer(x.Dim)
		d.codeCount(x, c)
		d.codes(x, c, want)
		if fourcc != "IxPQ" {
			d.skip(4 + 1 + 4) // how to search
		}
		if fourcc != "IxPq" { // as FAISS reads these older types
			x.Metric = L2
		}
	case "IHNf", "IHNs", "IHNp", "IHN2", "IHNc", "IHc2", "IHfP", "IH00":
		d.hnsw(x, want, depth)
	case "Ix2L":
		d.twoLevel(x, want, depth)
	case "IwFl", "IwPQ", "IwSq", "IwSQ":
		d.inverted(x, want, depth)
	case "IxPT":
		d.transformed(x, want, depth)
	case "IxMp", "IxM2":
		sub := d.index(want, depth+1)
		n := d.count(8)
		if d.adopt(x, sub); d.err == nil && n != x.Count {
			d.corrupt("%d ids for %d vectors", n, x.Count)
		}
		ids := d.int64s(n)
		if d.err != nil {
			return nil
		}
		for i, id := range x.IDs { // the ids of an inverted file are positions here
			if id < 0 || id >= int64(n) {
				d.corrupt("vector %d has no id", id)
				return nil
			}
			x.IDs[i] = ids[id]
		}
		if x.IDs == nil {
			x.IDs = ids
		}
	case "IxRF", "IxRP":
		d.index(false, depth+1) // a coarse form of the same vectors
		sub := d.index(want, depth+1)
		d.skip(4) // the number of vectors to rank again
		if d.adopt(x, sub); d.err == nil && x.IDs != nil {
			d.unsupported("ids in the second index of %s are not supported", fourcc)
		}
	default:
		d.refuse(fourcc)
	}
	if d.err != nil {
		return nil
	}
	return x
}

// adopt gives x the vectors of an index in it, which must be for the same queries.
func (d *decoder) adopt(x, sub *Index) {
	if d.err != nil {
		return
	}
	if sub.Dim != x.Dim || sub.Count != x.Count {
		d.corrupt("an index of %d vectors of dimension %d is in one of %d vectors of dimension %d", sub.Count, sub.Dim,
			x.Count, x.Dim)
		return
	}
	x.take(sub)
	x.chain = sub.chain
}

// take gives x the vectors and ids of an index in it.
func (x *Index) take(sub *Index) {
	x.Vectors, x.Stored, x.IDs, x.file, x.at = sub.Vectors, sub.Stored, sub.IDs, sub.file, sub.at
}

// quantizer reads the index of the centroids of another index. Their number is
// not limited by that of vectors, and they are in memory.
func (d *decoder) quantizer(want bool, depth int) *Index {
	most, inPlace := d.most, d.inPlace
	d.most, d.inPlace = maxCount, false
	defer func() { d.most, d.inPlace = most, inPlace }()
	return d.index(want, depth)
}

// codeCount reads the length of the codes of x, which are of the size of c.
func (d *decoder) codeCount(x *Index, c codec) {
	if d.err != nil {
		return
	}
	if n := d.count(1); d.err == nil && (n%c.size() != 0 || n/c.size() != x.Count) {
		d.corrupt("%d bytes are not %d codes of %d bytes", n, x.Count, c.size())
	}
}

// codes reads the codes of all vectors of x.
func (d *decoder) codes(x *Index, c codec, want bool) {
	if d.err != nil {
		return
	}
	if !want {
		d.skip(int64(x.Count) * int64(c.size()))
		return
	}
	if _, ok := c.(flat); ok && d.inPlace {
		x.file, x.at = d.r, d.off
		d.skip(int64(x.Count) * int64(c.size()))
		return
	}
	x.Vectors = d.floats(x.Count, x.Dim)
	d.decode(x.Vectors, c)
}

// decode reads codes and decodes them into v.
func (d *decoder) decode(v []float32, c codec) {
	if _, ok := c.(flat); ok || d.err != nil {
		d.readFloats(v)
		return
	}
	size, dim := c.size(), c.dim()
	if int64(len(v)/dim) > (d.size-d.off)/int64(size) {
		d.corrupt("the file ends too early")
		return
	}
	buf := make([]byte, min(len(v)/dim, max(1, (256<<10)/size))*size)
	for len(v) > 0 && d.err == nil {
		n := min(len(v)/dim, len(buf)/size)
		d.read(buf[:n*size])
		for i := range n {
			c.decode(v[i*dim:(i+1)*dim], buf[i*size:(i+1)*size])
		}
		v = v[n*dim:]
	}
}

// hnsw skips a graph and reads the index with its vectors.
func (d *decoder) hnsw(x *Index, want bool, depth int) {
	switch x.Type {
	case "IHfP":
		d.skip(8)
		d.skipVector(4)
	case "IHNc":
		d.skip(1 + 1 + 4)
	case "IHc2":
		d.skip(1 + 1 + 4 + 4)
	}
	d.skipVector(8) // probabilities of levels
	d.skipVector(4) // numbers of neighbors of levels
	d.skipVector(4) // levels
	d.skipVector(8) // offsets
	d.skipVector(4) // neighbors
	d.skip(5 * 4)   // parameters
	d.adopt(x, d.index(want, depth+1))
}

// twoLevel reads codes that consist of the number of a centroid and the code of
// the difference to it.
func (d *decoder) twoLevel(x *Index, want bool, depth int) {
	quantizer := d.quantizer(true, depth+1)
	lists := d.uint64()
	d.skip(1)
	c := d.productQuantizer(x.Dim)
	first, second, size := d.uint64(), d.uint64(), d.uint64()
	if d.checkCentroids(x, quantizer, lists); d.err != nil {
		return
	}
	if first > 8 || second != uint64(c.size()) || size != first+second {
		d.corrupt("codes of %d and %d bytes", first, second)
		return
	}
	t := twoLevel{productQuantizer: c, first: int(first), centroids: quantizer.Vectors, bad: new(bool)}
	d.codeCount(x, t)
	d.codes(x, t, want)
	if *t.bad {
		d.corrupt("a centroid does not exist")
	}
}

// checkCentroids checks that a quantizer has a vector for each list.
func (d *decoder) checkCentroids(x, quantizer *Index, lists uint64) {
	if d.err != nil {
		return
	}
	if quantizer.IDs != nil || quantizer.chain != nil {
		d.unsupported("a quantizer of type %q in an index of type %q is not supported", quantizer.Type, x.Type)
	} else if quantizer.Dim != x.Dim || uint64(quantizer.Count) < lists {
		d.corrupt("a quantizer of %d vectors of dimension %d for %d lists of dimension %d", quantizer.Count,
			quantizer.Dim, lists, x.Dim)
	}
}

// inverted reads an inverted file.
func (d *decoder) inverted(x *Index, want bool, depth int) {
	lists := d.uint64()
	d.skip(8) // the number of lists to search
	residual := want && x.Type != "IwFl"
	quantizer := d.quantizer(residual, depth+1)
	switch kind := d.uint8(); kind { // how to find a vector by its id
	case 0, 1:
		d.skipVector(8)
	case 2:
		d.skipVector(8)
		d.skipVector(16)
	default:
		d.corrupt("direct map of kind %d", kind)
	}
	var c codec = flat{x.Dim}
	size := uint64(4 * x.Dim)
	switch x.Type {
	case "IwPQ":
		residual = d.bool() && residual
		size = d.uint64()
		c = d.productQuantizer(x.Dim)
	case "IwSq", "IwSQ":
		c = d.scalarQuantizer(x.Dim)
		size = d.uint64()
		if x.Type == "IwSq" {
			residual = d.bool() && residual
		}
	}
	if d.err != nil {
		return
	}
	if size != uint64(c.size()) {
		d.corrupt("codes of %d bytes, want %d", size, c.size())
		return
	}
	if residual {
		if d.checkCentroids(x, quantizer, lists); d.err != nil {
			return
		}
	}
	sizes := d.listSizes(x, lists, c.size())
	if d.err != nil {
		return
	}
	if want {
		x.Vectors = d.floats(x.Count, x.Dim)
	}
	if d.err != nil {
		return
	}
	x.IDs = make([]int64, 0, x.Count) // listSizes has checked that they are in the file
	v := x.Vectors
	for _, l := range sizes {
		if want {
			d.decode(v[:l.size*x.Dim], c)
			if residual {
				centroid := quantizer.Vectors[l.list*x.Dim:][:x.Dim]
				for i := range l.size * x.Dim {
					v[i] += centroid[i%x.Dim]
				}
			}
			v = v[l.size*x.Dim:]
		} else {
			d.skip(int64(l.size) * int64(c.size()))
		}
		x.IDs = append(x.IDs, d.int64s(l.size)...)
		if d.err != nil {
			return
		}
	}
}

// A listSize is the number of vectors in an inverted list.
type listSize struct{ list, size int }

// listSizes reads the sizes of the inverted lists that follow, in the order of
// the lists. Their sum is x.Count, and the lists are in the file.
func (d *decoder) listSizes(x *Index, lists uint64, codeSize int) []listSize {
	switch kind := d.fourcc(); {
	case d.err != nil:
		return nil
	case kind == "il00":
		if x.Count > 0 {
			d.unsupported("the inverted lists are not in the file; write an index with its lists")
		}
		return nil
	case kind == "ilod":
		d.unsupported("inverted lists in a file of their own (%q) are not supported; write an index with its lists",
			kind)
		return nil
	case kind != "ilar":
		d.unsupported("inverted lists of type %q are not supported", kind)
		return nil
	}
	if n, size := d.uint64(), d.uint64(); d.err == nil && (n != lists || size != uint64(codeSize)) {
		d.corrupt("%d inverted lists with codes of %d bytes, want %d with %d", n, size, lists, codeSize)
		return nil
	}
	var sizes []listSize
	sum, bytes := 0, int64(codeSize)+8
	add := func(list, size uint64) {
		// The rest of the file bounds the sum.
		if size > uint64(d.size-d.off)/uint64(bytes) || size > uint64(x.Count-sum) {
			d.corrupt("an inverted list of %d vectors", size)
		} else if size > 0 {
			sum += int(size)
			sizes = append(sizes, listSize{int(list), int(size)})
		}
	}
	switch kind := d.fourcc(); kind {
	case "full":
		n := d.count(8)
		if d.err == nil && uint64(n) != lists {
			d.corrupt("%d sizes for %d inverted lists", n, lists)
		}
		for i, size := range d.int64s(n) {
			if d.err == nil {
				add(uint64(i), uint64(size))
			}
		}
	case "sprs":
		next := uint64(0)
		n := d.count(8)
		if n%2 != 0 {
			d.corrupt("a list has no size")
		}
		pairs := d.int64s(n)
		for i := 0; i+1 < len(pairs) && d.err == nil; i += 2 {
			list := uint64(pairs[i])
			if list < next || list >= lists || list >= maxCount {
				d.corrupt("inverted list %d is out of order", list)
			}
			add(list, uint64(pairs[i+1]))
			next = list + 1
		}
	default:
		d.corrupt("sizes of inverted lists of type %q", kind)
	}
	if d.err == nil && (sum != x.Count || int64(sum) > (d.size-d.off)/bytes) {
		d.corrupt("%d vectors in inverted lists, want %d", sum, x.Count)
	}
	if d.err != nil {
		return nil
	}
	return sizes
}

// transformed reads a chain of transformations and the index after it.
func (d *decoder) transformed(x *Index, want bool, depth int) {
	n := d.int32()
	if d.err == nil && (n < 0 || n > maxChain) {
		d.corrupt("%d transformations", n)
	}
	dim := x.Dim
	var chain []transform
	for range n {
		t := d.transform(dim)
		if d.err != nil {
			return
		}
		chain = append(chain, t)
		dim = t.out
	}
	sub := d.index(want, depth+1)
	if d.err != nil {
		return
	}
	if sub.Dim != dim || sub.Count != x.Count {
		d.corrupt("an index of %d vectors of dimension %d follows transformations of %d vectors to dimension %d",
			sub.Count, sub.Dim, x.Count, dim)
		return
	}
	x.take(sub)
	x.chain = append(chain, sub.chain...)
}
