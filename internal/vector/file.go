package vector

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"unicode/utf8"
	"unsafe"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Version is the version of the file format. It is incremented whenever the
// format changes. A file of another version cannot be opened.
const Version = 1

// A file consists of a header and four sections, each of which is filled with
// zeros to a multiple of 64 bytes. Numbers are little-endian.
//
//	header   magic [8]byte, version, metric, dim, length of model uint32,
//	         count uint64, checksum of codes uint32, 24 zeros, checksum uint32
//	model    the name of the model
//	ids      count of uint64
//	rows     count of: scale float32, norm of the decoded vector float32
//	codes    count of: dim int8, filled with zeros to a multiple of 64 bytes
//
// The checksums are CRC-32 (Castagnoli). The last field of the header is the
// checksum of the bytes before it, and of the sections model, ids and rows.
const (
	magic      = "knowvec\x00"
	headerSize = 64
	maxModel   = 1 << 10
)

var (
	le         = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// A file is an open file of codes.
type file struct {
	model     string
	ids, rows []byte
	checksum  uint32 // of the codes
}

func (f *file) scale(row int) float32 { return math.Float32frombits(le.Uint32(f.rows[8*row:])) }

// sections are the sizes of the parts of a file, without what fills them.
type sections struct{ model, ids, rows, codes int }

// padded returns n rounded up to a multiple of 64.
func padded(n int) int { return (n + 63) &^ 63 }

func (s sections) size() int {
	return headerSize + padded(s.model) + padded(s.ids) + padded(s.rows) + padded(s.codes)
}

// split returns the sections of data, which has the right size.
func (s sections) split(data []byte) (model, ids, rows, codes []byte) {
	next := func(n int) []byte {
		section := data[:n:n]
		data = data[padded(n):]
		return section
	}
	data = data[headerSize:]
	return next(s.model), next(s.ids), next(s.rows), next(s.codes)
}

// checksum returns the checksum of a file without its codes.
func (s sections) checksum(data []byte) uint32 {
	c := crc32.Checksum(data[:headerSize-4], castagnoli)
	return crc32.Update(c, castagnoli, data[headerSize:s.size()-padded(s.codes)])
}

// A Writer gathers vectors and writes them as a file of codes. Its memory is that
// of the file. The zero Writer is not valid; see [NewWriter].
type Writer struct {
	model  string
	dim    int
	metric Metric
	ids    []uint64
	rows   []byte
	codes  []int8
}

// NewWriter returns a Writer for vectors of dim values from a model. The name of
// the model is part of the file. NewWriter returns an error of kind
// [errkind.Invalid] if dim is not between 1 and [MaxDim], or the name is longer
// than 1 KB or not UTF-8.
func NewWriter(model string, dim int, metric Metric) (*Writer, error) {
	if err := check(dim, metric); err != nil {
		return nil, err
	}
	if len(model) > maxModel || !utf8.ValidString(model) {
		return nil, fmt.Errorf("vector: the name of the model is longer than %d bytes or not UTF-8: %w", maxModel,
			errkind.Invalid)
	}
	return &Writer{model: model, dim: dim, metric: metric}, nil
}

// Add adds a vector, which it does not keep. Ids need not be unique or sorted.
// Add returns an error of kind [errkind.Invalid] if the vector is not of the
// dimension of the Writer, or has a value that is not finite.
func (w *Writer) Add(id uint64, v []float32) error {
	if len(v) != w.dim {
		return fmt.Errorf("vector: the vector is of dimension %d, want %d: %w", len(v), w.dim, errkind.Invalid)
	}
	end := len(w.codes)
	w.codes = append(w.codes, make([]int8, stride(w.dim))...)
	q := quantize(w.codes[end:end+w.dim], v)
	if q.scale != q.scale || q.norm > math.MaxFloat32 {
		w.codes = w.codes[:end]
		return fmt.Errorf("vector: the vector has a value that is not finite, or too great: %w", errkind.Invalid)
	}
	w.ids = append(w.ids, id)
	w.rows = le.AppendUint32(w.rows, math.Float32bits(q.scale))
	w.rows = le.AppendUint32(w.rows, math.Float32bits(float32(q.norm)))
	return nil
}

// AddFrom adds a row of a file of codes, exactly as it is there, with another id.
// It returns an error of kind [errkind.Invalid] if x is not a file of codes, or
// has another model, dimension or metric than the Writer.
func (w *Writer) AddFrom(x *Index, row int, id uint64) error {
	if x.file == nil || x.file.model != w.model || x.dim != w.dim || x.metric != w.metric {
		return fmt.Errorf("vector: the row is not from a file of codes with the same model, dimension and metric: %w",
			errkind.Invalid)
	}
	w.ids = append(w.ids, id)
	w.rows = append(w.rows, x.file.rows[8*row:8*row+8]...)
	w.codes = append(w.codes, x.codes[row*x.stride:][:x.stride]...)
	return nil
}

// Bytes returns the file. The Writer can be used further.
func (w *Writer) Bytes() []byte {
	s := sections{len(w.model), 8 * len(w.ids), len(w.rows), len(w.codes)}
	data := make([]byte, s.size())
	model, ids, rows, codes := s.split(data)
	copy(model, w.model)
	for i, id := range w.ids {
		le.PutUint64(ids[8*i:], id)
	}
	copy(rows, w.rows)
	copy(signed(codes), w.codes)

	copy(data, magic)
	le.PutUint32(data[8:], Version)
	le.PutUint32(data[12:], uint32(w.metric))
	le.PutUint32(data[16:], uint32(w.dim))
	le.PutUint32(data[20:], uint32(len(w.model)))
	le.PutUint64(data[24:], uint64(len(w.ids)))
	le.PutUint32(data[32:], crc32.Checksum(codes, castagnoli))
	le.PutUint32(data[headerSize-4:], s.checksum(data))
	return data
}

// signed returns b as signed bytes.
func signed(b []byte) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(b))), len(b))
}

// Open returns an index of the codes in a file. It reads data as long as it is in
// use: the bytes may be a mapped file, must not change, and are faster to search
// if they start at a multiple of 64. The vectors of the index are the decoded
// ones, whose values differ from those that were added by at most 1/254 of the
// greatest.
//
// Open returns an error of kind [errkind.Corrupt] if the file is damaged, and of
// kind [errkind.Unsupported] if it has another version. It does not read the
// codes; see [Index.Verify].
func Open(data []byte) (*Index, error) {
	corrupt := func(format string, args ...any) error {
		return fmt.Errorf("vector: opening codes: %s: %w", fmt.Sprintf(format, args...), errkind.Corrupt)
	}
	if len(data) < headerSize || string(data[:8]) != magic {
		return nil, corrupt("not a file of codes")
	}
	if v := le.Uint32(data[8:]); v != Version {
		return nil, fmt.Errorf("vector: opening codes: the file has version %d, this program reads version %d: %w", v,
			Version, errkind.Unsupported)
	}
	metric, dim, model, count := le.Uint32(data[12:]), le.Uint32(data[16:]), le.Uint32(data[20:]), le.Uint64(data[24:])
	if metric >= uint32(metricCount) || dim < 1 || dim > MaxDim || model > maxModel ||
		count > uint64(len(data)/stride(int(dim))) {
		return nil, corrupt("the header is out of bounds")
	}
	n := int(count)
	s := sections{int(model), 8 * n, 8 * n, n * stride(int(dim))}
	if s.size() != len(data) {
		return nil, corrupt("the size is %d bytes, the header requires %d", len(data), s.size())
	}
	if s.checksum(data) != le.Uint32(data[headerSize-4:]) {
		return nil, corrupt("the checksum is wrong")
	}
	name, ids, rows, codes := s.split(data)
	x := &Index{
		dim: int(dim), stride: stride(int(dim)), metric: Metric(metric), dot: fastest(),
		rows: make([]row, n), codes: signed(codes),
		file: &file{model: string(name), ids: ids, rows: rows, checksum: le.Uint32(data[32:])},
	}
	for i := range x.rows {
		scale, norm := float64(x.file.scale(i)), float64(math.Float32frombits(le.Uint32(rows[8*i+4:])))
		if !(scale >= 0 && norm >= 0 && scale <= math.MaxFloat32 && norm <= math.MaxFloat32) {
			return nil, corrupt("row %d is out of bounds", i)
		}
		length := 1.0
		if x.metric == Cosine && norm > 0 {
			length = norm
		}
		x.rows[i] = row{scale: float32(scale / length), norm: float32(norm / length)}
		if x.metric == L2 {
			x.rows[i].bias = float32(-norm * norm)
		}
	}
	x.setMost()
	return x, nil
}

// Verify reads all codes of a file and returns an error of kind [errkind.Corrupt]
// if they are damaged. Without it, damaged codes lead to wrong results, and to
// nothing worse. Verify returns nil for an index that is not from a file.
func (x *Index) Verify() error {
	if x.file == nil {
		return nil
	}
	codes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x.codes))), len(x.codes))
	if crc32.Checksum(codes, castagnoli) != x.file.checksum {
		return fmt.Errorf("vector: verifying codes: the checksum is wrong: %w", errkind.Corrupt)
	}
	return nil
}

// Model returns the name of the model whose vectors are in a file of codes, and
// "" for an index that is not from a file.
func (x *Index) Model() string {
	if x.file == nil {
		return ""
	}
	return x.file.model
}

// ID returns the id with which a row was added to a file of codes. For an index
// that is not from a file, it is the row.
func (x *Index) ID(row int) uint64 {
	if x.file == nil {
		return uint64(row)
	}
	return le.Uint64(x.file.ids[8*row:])
}
