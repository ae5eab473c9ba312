package faiss

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// allocated calls f and returns the bytes that it allocated.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestTruncated cuts the fixtures anywhere.
func TestTruncated(t *testing.T) {
	for _, f := range fixtures(t) {
		if strings.HasPrefix(f.File, "unsupported") {
			continue
		}
		data := readFile(t, f.File)
		step := 1
		for n := 0; n < len(data); n += step {
			if n > 300 && n < len(data)-50 {
				step = 41
			} else {
				step = 1
			}
			if x, err := read(data[:n], Options{}); !errors.Is(err, errkind.Corrupt) || x != nil {
				t.Fatalf("%s: the first %d bytes: got %v, want Corrupt", f.File, n, err)
			}
			// A file that became shorter while it is read.
			if n%17 == 0 {
				if _, err := Read(t.Context(), bytes.NewReader(data[:n]), int64(len(data)), Options{}); !errors.Is(err,
					errkind.Corrupt) {
					t.Fatalf("%s: shortened to %d bytes: got %v, want Corrupt", f.File, n, err)
				}
			}
		}
		if _, err := read(append(data, "rest"...), Options{}); err != nil {
			t.Errorf("%s: bytes after the index: %v", f.File, err)
		}
	}
}

// file concatenates the fields of a file: strings as they are, numbers in
// little-endian byte order.
func file(fields ...any) []byte {
	var b []byte
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			b = append(b, f...)
		case []byte:
			b = append(b, f...)
		case bool:
			b = append(b, 0)
			if f {
				b[len(b)-1] = 1
			}
		case int: // int32
			b = le.AppendUint32(b, uint32(int32(f)))
		case int64:
			b = le.AppendUint64(b, uint64(f))
		case uint64:
			b = le.AppendUint64(b, f)
		case float32:
			b = le.AppendUint32(b, math.Float32bits(f))
		default:
			panic("unknown type of field")
		}
	}
	return b
}

// head returns the header of an index.
func head(fourcc string, dim int, n int64) []byte {
	return file(fourcc, dim, n, int64(1<<20), int64(1<<20), true, 1)
}

const zero = uint64(0)

// TestHostile reads files that claim to be large, that contradict themselves or
// that are nested deeply. They must give an error with little memory.
func TestHostile(t *testing.T) {
	graph := file(zero, zero, zero, zero, zero, 0, 0, 0, 0, 0)
	var nested []byte
	for range 1000 {
		nested = append(nested, head("IHNf", 1, 0)...)
		nested = append(nested, graph...)
	}
	var doubled []byte
	for range 1000 {
		doubled = append(doubled, head("IxRF", 1, 0)...)
	}
	one := file(head("IxF2", 1, 1), uint64(1), float32(1))
	empty := file(head("IxF2", 1, 0), zero)
	lists := func(kind string, sizes ...any) []byte {
		return file(head("IwFl", 1, 1), uint64(4), uint64(1), empty, "\x00", zero, "ilar", uint64(4), uint64(4), kind,
			file(sizes...), make([]byte, 100))
	}
	pq := func(d, m, bits, n uint64) []byte {
		return file(head("IxPq", int(d), 1), d, m, bits, n, make([]byte, 4*min(n, 5000)), uint64(1), "\x00", 0, true, 0)
	}
	transformed := func(fields ...any) []byte {
		return file(head("IxPT", 2, 0), 1, file(fields...), head("IxF2", 2, 0), zero)
	}
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"empty file":            {nil, errkind.Corrupt},
		"another file":          {[]byte("PK\x03\x04 and so on"), errkind.Corrupt},
		"text":                  {[]byte("{\"a\": 1} is not an index of FAISS"), errkind.Unsupported},
		"name across two types": {file(head("FI I", 1, 1), make([]byte, 100)), errkind.Unsupported},
		"dimension 0":           {file(head("IxFI", 0, 1), zero), errkind.Corrupt},
		"dimension -1":          {file(head("IxFI", -1, 1), zero), errkind.Corrupt},
		"dimension 2^31-1": {file(head("IxFI", math.MaxInt32, 1<<33), uint64(math.MaxInt32)<<33),
			errkind.Corrupt},
		"dimension 2^31-1, empty": {file(head("IxFI", math.MaxInt32, 0), zero), errkind.Corrupt},
		"2^40 vectors":            {file(head("IxFI", 1, 1<<40), uint64(1<<40)), errkind.Corrupt},
		"2^39 vectors":            {file(head("IxFI", 1, 1<<39), uint64(1<<39)), errkind.Corrupt},
		"-1 vectors":              {file(head("IxFI", 1, -1), uint64(math.MaxUint64)), errkind.Corrupt},
		"overflow of 64 bits":     {file(head("IxFI", 1<<20, 1<<44), zero), errkind.Corrupt},
		"2^62 floats": {file(head("IxFI", 1<<20, 1<<39), uint64(1<<62), make([]byte, 100)),
			errkind.Corrupt},
		"fewer floats":             {file(head("IxFI", 2, 2), uint64(2), make([]byte, 8)), errkind.Corrupt},
		"more floats":              {file(head("IxFI", 2, 2), uint64(6), make([]byte, 24)), errkind.Corrupt},
		"nested graphs":            {nested, errkind.Corrupt},
		"nested in pairs":          {doubled, errkind.Corrupt},
		"graph without vectors":    {file(head("IHNf", 1, 1), graph, "null"), errkind.Unsupported},
		"graph of other dimension": {file(head("IHNf", 2, 1), graph, one), errkind.Corrupt},
		"graph of other length":    {file(head("IHNf", 1, 2), graph, one), errkind.Corrupt},
		"long vector in a graph":   {file(head("IHNf", 1, 1), uint64(1)<<39, one), errkind.Corrupt},
		"too few ids":              {file(head("IxMp", 1, 1), one, zero), errkind.Corrupt},
		"too many ids":             {file(head("IxMp", 1, 1), one, uint64(2), make([]byte, 16)), errkind.Corrupt},
		"id of an id out of bounds": {file(head("IxMp", 1, 1), head("IxMp", 1, 1), one, uint64(1), int64(-3), uint64(1),
			int64(5)), errkind.Corrupt},
		"2^39 ids": {file(head("IxMp", 1, 1), one, uint64(1)<<39), errkind.Corrupt},
		"2^39 inverted lists": {file(head("IwFl", 1, 0), uint64(1)<<39, uint64(1), empty, "\x00", zero, "ilar",
			uint64(1)<<39, uint64(4), "full", uint64(1)<<39),
			errkind.Corrupt},
		"inverted list longer than the file": {lists("full", uint64(4), uint64(1)<<39, zero, zero, zero),
			errkind.Corrupt},
		"inverted list of length -1": {lists("full", uint64(4), uint64(math.MaxUint64), uint64(2), zero, zero),
			errkind.Corrupt},
		"other number of inverted lists": {lists("full", uint64(3), uint64(1), zero, zero), errkind.Corrupt},
		"too many vectors in lists":      {lists("full", uint64(4), uint64(1), uint64(1), zero, zero), errkind.Corrupt},
		"too few vectors in lists":       {lists("full", uint64(4), zero, zero, zero, zero), errkind.Corrupt},
		"sparse list out of bounds":      {lists("sprs", uint64(2), uint64(4), uint64(1)), errkind.Corrupt},
		"sparse lists out of order": {lists("sprs", uint64(4), uint64(1), uint64(1), uint64(1), zero),
			errkind.Corrupt},
		"sparse list without size": {lists("sprs", uint64(1), uint64(1)), errkind.Corrupt},
		"unknown kind of sizes":    {lists("what"), errkind.Corrupt},
		"lists on disk": {file(head("IwFl", 1, 1), uint64(4), uint64(1), empty, "\x00", zero, "ilod"),
			errkind.Unsupported},
		"lists elsewhere": {file(head("IwFl", 1, 1), uint64(4), uint64(1), empty, "\x00", zero, "il00"),
			errkind.Unsupported},
		"unknown direct map": {file(head("IwFl", 1, 1), uint64(4), uint64(1), empty, "\x07", zero, "il00"),
			errkind.Corrupt},
		"residuals without centroids": {file(head("IwPQ", 1, 0), uint64(4), uint64(1), empty, "\x00", zero, true,
			uint64(1), uint64(1), uint64(1), uint64(8), uint64(256), make([]byte, 1024),
			"ilar", uint64(4), uint64(1), "full", uint64(4), zero, zero, zero, zero), errkind.Corrupt},
		"product quantizer of 0 parts":    {pq(4, 0, 8, 1024), errkind.Corrupt},
		"product quantizer of 3 parts":    {pq(4, 3, 8, 1024), errkind.Corrupt},
		"product quantizer of 2^63 parts": {pq(4, 1<<63, 8, 1024), errkind.Corrupt},
		"product quantizer of 0 bits":     {pq(4, 1, 0, 4), errkind.Corrupt},
		"product quantizer of 62 bits":    {pq(4, 1, 62, 0), errkind.Corrupt},
		"product quantizer of 64 bits":    {pq(4, 1, 64, 0), errkind.Corrupt},
		"scalar quantizer of other codes": {file(head("IxSQ", 2, 1), 0, 0, float32(0), uint64(2), uint64(1), uint64(4),
			make([]byte, 16), uint64(2), "xx"), errkind.Corrupt},
		"scalar quantizer without ranges": {file(head("IxSQ", 2, 1), 0, 0, float32(0), uint64(2), uint64(2), zero,
			uint64(2), "xx"), errkind.Corrupt},
		"unknown scalar quantizer": {file(head("IxSQ", 2, 1), 99, 0, float32(0), uint64(2), uint64(2), zero,
			uint64(2), "xx"), errkind.Unsupported},
		"negative scalar quantizer": {file(head("IxSQ", 2, 1), -1, 0, float32(0), uint64(2), uint64(2), zero,
			uint64(2), "xx"), errkind.Unsupported},
		"2^31-1 transformations": {file(head("IxPT", 2, 0), math.MaxInt32), errkind.Corrupt},
		"-1 transformations":     {file(head("IxPT", 2, 0), -1), errkind.Corrupt},
		"unknown transformation": {transformed("HRot"), errkind.Unsupported},
		"transformation to 2^20": {transformed("LTra", false, zero, zero, 2, 1<<20, true), errkind.Corrupt},
		"transformation to -1":   {transformed("LTra", false, zero, zero, 2, -1, true), errkind.Corrupt},
		"transformation from 3": {transformed("LTra", false, uint64(6), make([]byte, 24), zero, 3, 2, true),
			errkind.Corrupt},
		"transformation without offset": {transformed("LTra", true, uint64(4), make([]byte, 16), zero, 2, 2, true),
			errkind.Corrupt},
		"norm L1":                     {transformed("VNrm", float32(1), 2, 2, true), errkind.Unsupported},
		"norm to another dimension":   {transformed("VNrm", float32(2), 2, 3, true), errkind.Corrupt},
		"dimension that is not there": {transformed("RmDT", uint64(2), 0, 2, 2, 2, true), errkind.Corrupt},
		"dimension -2":                {transformed("RmDT", uint64(2), 0, -2, 2, 2, true), errkind.Corrupt},
		"center of another dimension": {transformed("VCnt", uint64(1), float32(0), 2, 2, true), errkind.Corrupt},
		"sub-index of other dimension": {file(head("IxPT", 2, 0), 1, "LTra", false, uint64(2), make([]byte, 8), zero, 2,
			1, true,
			head("IxF2", 2, 0), zero), errkind.Corrupt},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			bytes := allocated(func() { _, err = read(c.data, Options{MaxBytes: 1 << 20}) })
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if limit := int64(2*len(c.data) + 64<<10); bytes > limit {
				t.Errorf("allocated %d bytes for a file of %d", bytes, len(c.data))
			}
		})
	}
}

// TestMaxBytes checks the limit for a small file that stands for many values.
func TestMaxBytes(t *testing.T) {
	const dim, n = 1 << 14, 1000 // 64 MB in 129 KB
	data := file(head("IxPq", dim, n), uint64(dim), uint64(1), uint64(1), uint64(2*dim), make([]byte, 8*dim), uint64(n),
		make([]byte, n), 0, true, 0)
	var err error
	bytes := allocated(func() { _, err = read(data, Options{MaxBytes: 1 << 20}) })
	if !errors.Is(err, errkind.TooLarge) {
		t.Errorf("got %v, want TooLarge", err)
	}
	if bytes > 1<<20 {
		t.Errorf("allocated %d bytes", bytes)
	}
	x, err := read(data, Options{})
	if err != nil || len(x.Vectors) != dim*n {
		t.Errorf("without a limit: %v", err)
	}
	// Nested indexes share the limit: the quantizer and the index itself, with the
	// centroids of its codes, the sizes of its lists and its ids.
	data = readFile(t, "ivf_pq_l2_IwPQ.index")
	const least = 4*16*64 + 8*16*4 + 4*16<<8 + 8*8 + 8*64
	if _, err := read(data, Options{MaxBytes: least}); err != nil {
		t.Error(err)
	}
	if _, err := read(data, Options{MaxBytes: least - 1}); !errors.Is(err, errkind.TooLarge) {
		t.Errorf("got %v, want TooLarge", err)
	}
}

// TestHoles checks the limits for a file whose bytes are zeros, which takes no
// space on a disk.
func TestHoles(t *testing.T) {
	const dim, n = 16, 1 << 25
	for name, c := range map[string]struct {
		fields  []any
		options Options
	}{
		"vectors": {[]any{head("IxFI", dim, n), uint64(dim * n)}, Options{MaxCount: 1000}},
		"vectors in an index": {[]any{head("IxMp", dim, 64), head("IxFI", dim, n), uint64(dim * n)},
			Options{MaxCount: 1000}},
		"centroids": {[]any{head("IwPQ", dim, 64), uint64(n), uint64(1), head("IxFI", dim, n), uint64(dim * n)},
			Options{MaxCount: 1000, MaxBytes: 1 << 20}},
		"sizes of lists": {[]any{head("IwFl", dim, 64), uint64(n), uint64(1), head("IxFI", dim, 0), uint64(0), "\x00",
			uint64(0),
			"ilar", uint64(n), uint64(4 * dim), "full", uint64(n)}, Options{MaxBytes: 1 << 20}},
		"values of a quantizer": {[]any{head("IxPq", dim, 64), uint64(dim), uint64(1), uint64(24), uint64(dim << 24)},
			Options{MaxBytes: 1 << 20}},
	} {
		start := file(c.fields...)
		var err error
		bytes := allocated(func() { _, err = Read(t.Context(), holes{start}, 4<<30, c.options) })
		if !errors.Is(err, errkind.TooLarge) || bytes > 1<<20 {
			t.Errorf("%s: %d bytes were allocated, error %v", name, bytes, err)
		}
	}
}

// holes are bytes with any number of zeros after them.
type holes struct{ start []byte }

func (h holes) ReadAt(b []byte, off int64) (int, error) {
	clear(b)
	if off < int64(len(h.start)) {
		copy(b, h.start[off:])
	}
	return len(b), nil
}

// TestNoVectors reads indexes of no vectors, and indexes in indexes.
func TestNoVectors(t *testing.T) {
	for name, data := range map[string][]byte{
		"transformed": file(head("IxPT", 2, 0), 1, "VNrm", float32(2), 2, 2, true, head("IxF2", 2, 0), zero),
		"mapped":      file(head("IxMp", 2, 0), head("IxF2", 2, 0), zero, zero),
		"no lists":    file(head("IwFl", 2, 0), uint64(1), uint64(1), head("IxF2", 2, 0), zero, "\x00", zero, "il00"),
	} {
		x, err := read(data, Options{})
		if err != nil || len(x.Vectors) != 0 || x.Count != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestChains applies transformations in a chain, and in nested indexes.
func TestChains(t *testing.T) {
	data := file(head("IxPT", 2, 1), 3,
		"VCnt", uint64(2), float32(1), float32(2), 2, 2, true,
		"RmDT", uint64(3), 1, -1, 0, 2, 3, true,
		"LTra", true, uint64(6), float32(1), float32(0), float32(0), float32(0), float32(5), float32(2), uint64(2),
		float32(10), float32(20), 3, 2, true,
		head("IxPT", 2, 1), 1, "VNrm", float32(2), 2, 2, true,
		head("IxF2", 2, 1), uint64(2), float32(7), float32(8))
	x, err := read(data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// (4, 6) - (1, 2) = (3, 4) -> (4, 0, 3) -> (4+10, 6+20) -> unit length
	got, err := x.Query([]float32{4, 6})
	length := math.Hypot(14, 26)
	if err != nil || math.Abs(float64(got[0])-14/length) > 1e-6 || math.Abs(float64(got[1])-26/length) > 1e-6 {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := x.Query([]float32{-13, 2}); err != nil || len(got) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
}

type failingReader struct{ err error }

func (r failingReader) ReadAt([]byte, int64) (int, error) { return 0, r.err }

func TestReaderFails(t *testing.T) {
	broken := errors.New("the disk is broken")
	if _, err := Read(t.Context(), failingReader{broken}, 1000, Options{}); !errors.Is(err, broken) ||
		errors.Is(err, errkind.Corrupt) {
		t.Errorf("got %v, want the error of the reader", err)
	}
	if _, err := Read(t.Context(), failingReader{io.EOF}, 1000, Options{}); !errors.Is(err, errkind.Corrupt) {
		t.Errorf("got %v, want Corrupt", err)
	}
}

// FuzzRead changes bytes of the fixtures: at each of some positions, one byte is
// replaced.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.index"))
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	var originals [][]byte
	for i, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		originals = append(originals, data)
		f.Add(byte(i), []byte{})
		for at := 0; at < min(len(data), 160); at += 4 {
			f.Add(byte(i), []byte{byte(at), 0, data[at] ^ 0x81})
		}
		for at := 160; at < len(data); at += 2011 {
			f.Add(byte(i), []byte{byte(at), byte(at >> 8), 0xff})
		}
	}
	f.Fuzz(func(t *testing.T, original byte, changes []byte) {
		data := bytes.Clone(originals[int(original)%len(originals)])
		for ; len(changes) >= 3; changes = changes[3:] {
			data[int(le.Uint16(changes))%len(data)] = changes[2]
		}
		const limit = 1 << 20
		var x *Index
		var err error
		bytes := allocated(func() { x, err = read(data, Options{MaxBytes: limit}) })
		if most := int64(limit + 4*len(data) + 1<<20); bytes > most {
			t.Fatalf("allocated %d bytes for a file of %d", bytes, len(data))
		}
		if err != nil {
			if !errors.Is(err, errkind.Corrupt) && !errors.Is(err, errkind.Unsupported) &&
				!errors.Is(err, errkind.TooLarge) {
				t.Fatalf("%v has no kind", err)
			}
			return
		}
		if len(x.Vectors) != x.Count*x.Stored || x.IDs != nil && len(x.IDs) != x.Count {
			t.Fatalf("%d values of %d vectors of dimension %d with %d ids", len(x.Vectors), x.Count, x.Stored,
				len(x.IDs))
		}
		q, err := x.Query(make([]float32, x.Dim))
		if err != nil || len(q) != x.Stored {
			t.Fatalf("a query of dimension %d, want %d: %v", len(q), x.Stored, err)
		}
	})
}
