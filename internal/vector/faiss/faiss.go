// Package faiss reads the vectors of index files of FAISS, and writes flat index
// files that are equal to those of FAISS byte for byte.
//
// An index is read for the vectors that it stores, which are then searched
// exactly, for example by package vector. So graphs are skipped, and of inverted
// lists only the contents are used. Vectors that are stored as codes are decoded
// to what FAISS itself would compare with a query.
//
// The bytes are not trusted: numbers are checked before memory is allocated.
package faiss

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A Metric is FAISS's number of a metric.
type Metric int32

// The common metrics. An index may have another one.
const (
	InnerProduct Metric = 0
	L2           Metric = 1 // scores are squares of distances
)

// String returns the name of the metric, for example "L2".
func (m Metric) String() string {
	switch m {
	case InnerProduct:
		return "inner product"
	case L2:
		return "L2"
	case 2:
		return "L1"
	case 3:
		return "Linf"
	}
	return fmt.Sprintf("metric %d", int32(m))
}

// A Header describes an index.
type Header struct {
	Type    string // four characters, for example "IxFI" for IndexFlatIP
	Dim     int    // of queries, 1 to 2^20
	Count   int    // number of vectors
	Metric  Metric
	Trained bool // false if FAISS cannot search it yet
}

// Kind returns a short name of the type for people, such as "flat" or "HNSW". Types
// without one are returned as they are.
func (h Header) Kind() string {
	switch {
	case strings.HasPrefix(h.Type, "IxF"):
		return "flat"
	case strings.HasPrefix(h.Type, "IH"):
		return "HNSW"
	case strings.HasPrefix(h.Type, "Iw"):
		return "IVF"
	case h.Type == "IxSQ":
		return "scalar quantizer"
	case h.Type == "IxPq", h.Type == "IxPQ", h.Type == "IxPo":
		return "product quantizer"
	}
	return h.Type
}

// An Index has the vectors of an index file.
type Index struct {
	Header

	// Vectors are Count vectors of Stored values, one after the other; nil if
	// they were left in the file, see [Index.Vector]. Stored differs from Dim if
	// the index transforms vectors; see [Index.Query].
	Vectors []float32
	Stored  int

	// IDs are the ids of the vectors; nil means 0, 1, 2, and so on. Ids may be
	// negative, and may be in any order.
	IDs []int64

	chain []transform
	file  io.ReaderAt // has the vectors at offset, if they were left there
	at    int64
}

// Vector returns the vector of a row, which must not be changed. A vector that
// was left in the file is read into buf, which has Stored values.
func (x *Index) Vector(row int, buf []float32) ([]float32, error) {
	if x.file == nil {
		return x.Vectors[row*x.Stored:][:x.Stored], nil
	}
	size := 4 * int64(x.Stored)
	if _, err := x.file.ReadAt(bytesOf(buf), x.at+int64(row)*size); err != nil {
		return nil, fmt.Errorf("faiss: reading a vector: %w", err)
	}
	return buf, nil
}

// Query returns a query in the form in which it is compared with the vectors. If
// the index does not transform queries, that is q itself. It returns an error of
// kind [errkind.Invalid] if q is not of dimension Dim.
func (x *Index) Query(q []float32) ([]float32, error) {
	if len(q) != x.Dim {
		return nil, fmt.Errorf("faiss: the query is of dimension %d, the index of %d: %w", len(q), x.Dim,
			errkind.Invalid)
	}
	for _, t := range x.chain {
		q = t.apply(q)
	}
	return q, nil
}

// Options are options of [Read]. The zero value has useful defaults.
type Options struct {
	// MaxBytes limits the memory for vectors and for what decodes them. 0 means
	// the size of the file, but at least 1 GiB. A few bytes of a file can stand
	// for a long vector.
	MaxBytes int64

	// MaxCount limits the number of vectors. 0 means no limit.
	MaxCount int

	// InPlace leaves vectors of float32 that stand one after the other in the
	// file, which must stay open and must not change. Machines that store numbers
	// with the most significant byte first ignore it.
	InPlace bool
}

// Read reads the index in the first size bytes of r. What follows the index is
// ignored, as FAISS does.
//
// Errors are of kind [errkind.Corrupt] if the bytes are no index or are damaged,
// [errkind.Unsupported] if the type of the index, or of a part, is not supported,
// and [errkind.TooLarge] if there are more vectors, or they need more memory, than
// opts allow. Read
// returns the error of ctx if that ends.
func Read(ctx context.Context, r io.ReaderAt, size int64, opts Options) (*Index, error) {
	budget := opts.MaxBytes
	if budget <= 0 {
		budget = max(size, 1<<30)
	}
	d := &decoder{r: r, size: size, budget: budget, most: int64(opts.MaxCount), inPlace: opts.InPlace && !bigEndian(),
		done: ctx.Err}
	if d.most <= 0 {
		d.most = maxCount
	}
	x := d.index(true, 0)
	if d.err != nil {
		return nil, d.err
	}
	return x, nil
}
