package faiss

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unsafe"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Limits of what a file may contain. FAISS itself allows no vector of 2^40 values.
const (
	maxDim   = 1 << 20
	maxCount = 1 << 40
	maxDepth = 8  // of indexes in indexes
	maxChain = 64 // transformations before an index
)

var le = binary.LittleEndian

// A decoder reads the fields of a file in order. After an error, fields are 0.
type decoder struct {
	r         io.ReaderAt
	off, size int64
	budget    int64        // bytes that may still be allocated
	most      int64        // vectors in an index
	inPlace   bool         // vectors of float32 stay in the file
	done      func() error // an error if the work must end
	err       error
	buf       [8]byte
}

// fail sets the error if there is none yet.
func (d *decoder) fail(kind error, format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("faiss: at byte %d: %s: %w", d.off, fmt.Sprintf(format, args...), kind)
	}
}

// corrupt fails with an error of kind Corrupt.
func (d *decoder) corrupt(format string, args ...any) { d.fail(errkind.Corrupt, format, args...) }

// unsupported fails with an error of kind Unsupported.
func (d *decoder) unsupported(format string, args ...any) {
	d.fail(errkind.Unsupported, format, args...)
}

// read fills b with the next bytes.
func (d *decoder) read(b []byte) {
	if d.err == nil {
		d.err = d.done()
	}
	if int64(len(b)) > d.size-d.off {
		d.corrupt("the file ends too early")
	}
	if d.err != nil {
		clear(b)
		return
	}
	n, err := d.r.ReadAt(b, d.off)
	if n < len(b) {
		clear(b)
		if err == nil || errors.Is(err, io.EOF) {
			d.corrupt("the file ends too early")
		} else {
			d.err = fmt.Errorf("faiss: reading the index: %w", err)
		}
		return
	}
	d.off += int64(n)
}

// skip passes over n bytes.
func (d *decoder) skip(n int64) {
	if n < 0 || n > d.size-d.off {
		d.corrupt("the file ends too early")
	}
	if d.err == nil {
		d.off += n
	}
}

func (d *decoder) uint8() uint8 {
	d.read(d.buf[:1])
	return d.buf[0]
}

func (d *decoder) bool() bool { return d.uint8() != 0 }

func (d *decoder) int32() int32 {
	d.read(d.buf[:4])
	return int32(le.Uint32(d.buf[:]))
}

func (d *decoder) uint64() uint64 {
	d.read(d.buf[:8])
	return le.Uint64(d.buf[:])
}

func (d *decoder) float32() float32 { return math.Float32frombits(uint32(d.int32())) }

// fourcc returns the four characters that name the type of what follows.
func (d *decoder) fourcc() string {
	d.read(d.buf[:4])
	s := string(d.buf[:4])
	if d.err == nil && strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		d.off -= 4
		d.corrupt("no FAISS index")
	}
	return s
}

// count returns the number of elements of the vector that follows, each of which
// takes the given number of bytes. They are all in the file.
func (d *decoder) count(bytes int) int {
	n := d.uint64()
	if d.err == nil && (n >= maxCount || n > uint64(d.size-d.off)/uint64(bytes)) {
		d.corrupt("a vector of %d elements of %d bytes is longer than the file", n, bytes)
	}
	if d.err != nil {
		return 0
	}
	return int(n)
}

// skipVector passes over a vector whose elements take the given number of bytes.
func (d *decoder) skipVector(bytes int) { d.skip(int64(d.count(bytes)) * int64(bytes)) }

// float32s returns the vector of float32 that follows.
func (d *decoder) float32s() []float32 {
	n := d.count(4)
	if !d.take(4 * int64(n)) {
		return nil
	}
	v := make([]float32, n)
	d.readFloats(v)
	return v
}

// int64s returns the next n int64, which are in the file.
func (d *decoder) int64s(n int) []int64 {
	if n < 0 || int64(n) > (d.size-d.off)/8 {
		d.corrupt("the file ends too early")
	}
	if !d.take(8 * int64(n)) {
		return nil
	}
	v := make([]int64, n)
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 8*n)
	d.readLarge(b)
	if bigEndian() {
		for i := range v {
			v[i] = int64(le.Uint64(b[8*i:]))
		}
	}
	return v
}

// readFloats fills v. It reads into v itself, because a copy would double the
// memory for large files.
func (d *decoder) readFloats(v []float32) {
	b := bytesOf(v)
	d.readLarge(b)
	if bigEndian() {
		for i := range v {
			v[i] = math.Float32frombits(le.Uint32(b[4*i:]))
		}
	}
}

// bytesOf returns the memory of v.
func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// readLarge is read, but the work can end before all has been read.
func (d *decoder) readLarge(b []byte) {
	for len(b) > 0 && d.err == nil {
		n := min(len(b), 16<<20)
		d.read(b[:n])
		b = b[n:]
	}
}

// bigEndian reports whether this machine stores numbers with the most significant
// byte first.
func bigEndian() bool { return binary.NativeEndian.Uint16([]byte{0, 1}) == 1 }

// floats returns memory for n vectors of dim values, or nil if that is too much.
func (d *decoder) floats(n, dim int) []float32 {
	if d.err != nil {
		return nil
	}
	bytes := int64(n) * int64(dim) * 4 // at most 2^62
	if bytes > d.budget || bytes > math.MaxInt {
		d.fail(errkind.TooLarge, "%d vectors of dimension %d take %d bytes of memory, which is more than the allowed %d bytes", n, dim, bytes, d.budget)
		return nil
	}
	d.budget -= bytes
	return make([]float32, n*dim)
}

// take takes memory from the budget, and reports whether there is as much and no
// error. A file may have holes, so that it takes less space than memory.
func (d *decoder) take(bytes int64) bool {
	if d.err == nil && bytes > d.budget {
		d.fail(errkind.TooLarge, "the index needs more than the allowed memory")
	}
	if d.err != nil {
		return false
	}
	d.budget -= bytes
	return true
}
