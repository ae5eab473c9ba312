// Package safetensors reads files of tensors in the safetensors format
// (https://huggingface.co/docs/safetensors): the length of a JSON header, the
// header, and the values in little-endian order.
//
// It checks files from outside: a header that is too large, shapes that
// overflow, and ranges outside the file are errors of kind Corrupt.
package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// maxHeader is the maximum size of a header, in bytes. Models with thousands of
// tensors need less than 1 MB.
const maxHeader = 16 << 20

// maxRank is the maximum number of dimensions of a tensor.
const maxRank = 8

// A File is the content of a safetensors file.
type File struct {
	Metadata map[string]string // nil if there is none
	Tensors  map[string]Tensor // by name
}

// A Tensor is one array of values.
type Tensor struct {
	Type  string // "F32", "F16", "BF16", "F64", "I8", "U8", "I32", "I64", ...
	Shape []int  // sizes of the dimensions, the last one contiguous
	Data  []byte // part of the slice that was parsed
}

// sizes are the sizes of the types that can be read, in bytes.
var sizes = map[string]int{"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1,
	"BOOL": 1}

// Parse reads a file. The tensors refer to data. Tensors of unknown types are
// left out.
func Parse(data []byte) (*File, error) {
	if len(data) < 8 {
		return nil, corrupt("the file is shorter than the length of its header")
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader || n > uint64(len(data)-8) {
		return nil, corrupt("a header of %d bytes does not fit", n)
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(data[8:8+n], &header); err != nil {
		return nil, corrupt("the header is not JSON: %v", err)
	}
	values := data[8+n:]
	f := &File{Tensors: make(map[string]Tensor, len(header))}
	for name, raw := range header {
		if name == "__metadata__" {
			if err := json.Unmarshal(raw, &f.Metadata); err != nil {
				return nil, corrupt("the metadata is not an object of strings: %v", err)
			}
			continue
		}
		t, err := parseTensor(raw, values)
		if err != nil {
			return nil, fmt.Errorf("tensor %.100q: %w", name, err)
		}
		if t.Data != nil {
			f.Tensors[name] = t
		}
	}
	return f, nil
}

// parseTensor reads one entry of the header. It returns a tensor without data if
// the type is unknown.
func parseTensor(raw json.RawMessage, values []byte) (Tensor, error) {
	var h struct {
		Type    string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets []int  `json:"data_offsets"`
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return Tensor{}, corrupt("its entry in the header does not parse: %v", err)
	}
	size, known := sizes[h.Type]
	if !known {
		return Tensor{}, nil
	}
	if len(h.Offsets) != 2 || len(h.Shape) > maxRank {
		return Tensor{}, corrupt("it has %d offsets and %d dimensions", len(h.Offsets), len(h.Shape))
	}
	start, end := h.Offsets[0], h.Offsets[1]
	if start < 0 || end < start || end > len(values) {
		return Tensor{}, corrupt("bytes %d to %d are outside the file", start, end)
	}
	count, err := product(h.Shape)
	if err != nil {
		return Tensor{}, err
	}
	if hi, lo := bits.Mul64(uint64(count), uint64(size)); hi != 0 || lo != uint64(end-start) {
		return Tensor{}, corrupt("%d values of type %s do not fill %d bytes", count, h.Type, end-start)
	}
	return Tensor{Type: h.Type, Shape: h.Shape, Data: values[start:end:end]}, nil
}

// product returns the number of values of a tensor.
func product(shape []int) (int, error) {
	n := 1
	for _, d := range shape {
		if d < 0 {
			return 0, corrupt("a dimension is %d", d)
		}
		hi, lo := bits.Mul64(uint64(n), uint64(d))
		if hi != 0 || lo > math.MaxInt {
			return 0, corrupt("its shape is too large")
		}
		n = int(lo)
	}
	return n, nil
}

// Has reports whether the tensor has this shape.
func (t Tensor) Has(shape ...int) bool {
	if len(shape) != len(t.Shape) {
		return false
	}
	for i, d := range shape {
		if d != t.Shape[i] {
			return false
		}
	}
	return true
}

// Float32 returns a copy of the values of a floating point tensor as float32.
// Another type is an error of kind Unsupported.
func (t Tensor) Float32() ([]float32, error) {
	size := sizes[t.Type]
	if size == 0 {
		return nil, fmt.Errorf("values of type %.20q are not numbers: %w", t.Type, errkind.Unsupported)
	}
	var value func([]byte) float32
	switch t.Type {
	case "F64":
		value = func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) }
	case "F32":
		value = func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
	case "F16":
		value = func(b []byte) float32 { return half(binary.LittleEndian.Uint16(b)) }
	case "BF16":
		value = func(b []byte) float32 { return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16) }
	case "I8":
		value = func(b []byte) float32 { return float32(int8(b[0])) }
	default:
		return nil, fmt.Errorf("values of type %s cannot be read as floating point numbers: %w", t.Type,
			errkind.Unsupported)
	}
	out := make([]float32, len(t.Data)/size)
	for i := range out {
		out[i] = value(t.Data[i*size:])
	}
	return out, nil
}

// half converts an IEEE 754 half precision number.
func half(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp, frac := uint32(h>>10)&31, uint32(h)&1023
	switch exp {
	case 0: // zero or subnormal: frac * 2^-24
		return math.Float32frombits(math.Float32bits(float32(frac)*0x1p-24) | sign)
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// Append appends a file with the tensors in the order of names. The values begin
// at a multiple of 64 bytes. It is for files of this program, whose tensors are
// correct.
func Append(dst []byte, metadata map[string]string, names []string, tensors map[string]Tensor) ([]byte, error) {
	type entry struct {
		Type    string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	header := map[string]any{}
	if metadata != nil {
		header["__metadata__"] = metadata
	}
	at := 0
	for _, name := range names {
		t := tensors[name]
		header[name] = entry{t.Type, t.Shape, [2]int{at, at + len(t.Data)}}
		at += len(t.Data)
	}
	h, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("writing the header: %w", err)
	}
	for (8+len(h))%64 != 0 {
		h = append(h, ' ')
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(h)))
	dst = append(dst, h...)
	for _, name := range names {
		dst = append(dst, tensors[name].Data...)
	}
	return dst, nil
}

// corrupt returns an error of kind Corrupt.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("reading tensors: "+format+": %w", append(args, errkind.Corrupt)...)
}
