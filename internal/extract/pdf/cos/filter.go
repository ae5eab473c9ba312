package cos

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
)

// MaxStream is the maximum size of a decoded stream in bytes. The rest is left
// out.
const MaxStream = 64 << 20

const (
	maxFilters = 8
	maxRow     = 16 << 20 // bytes of a row of a predictor

	streamSteps = 100 // steps of decoding a stream, in addition to its bytes
)

var (
	errFilter = errors.New("filter without text")
	errDamage = errors.New("damaged stream")
)

// Decode returns the bytes of a stream after its filters. For a damaged stream,
// it returns the bytes that could be decoded. It fails if there are none, or if
// a filter does not result in text (pictures).
//
// The length of the result is taken from the memory of the budget, even if the
// result is a part of the file. The caller must release that memory.
func (f *File) Decode(s *Stream) ([]byte, error) {
	filters, parms := f.List(first(s.Dict, "Filter", "F")), f.List(first(s.Dict, "DecodeParms", "DP"))
	if len(filters) > maxFilters {
		return nil, errFilter
	}
	// References are followed before memory is reserved, because their targets
	// may be in a stream too.
	var fs [maxFilters]filter
	for i, o := range filters {
		fs[i].name = f.Name(o)
		if i < len(parms) {
			fs[i].parms = f.parmsOf(f.Dict(parms[i]))
		}
	}
	data := s.raw[:min(len(s.raw), MaxStream)]
	if !f.Budget.Spend(streamSteps) || !f.Budget.Alloc(len(data)) {
		return nil, errDamage
	}
	if f.crypt != nil && s.id != (Ref{}) {
		own := fs[0].name == "Crypt" // always /Identity in practice
		if !own && !(s.Dict["Type"] == Name("Metadata") && f.crypt.plainMetadata) {
			in := len(data)
			data = f.crypt.stream(s.id, data, f.Budget)
			f.Budget.Free(in)
		}
	}
	for _, filter := range fs[:len(filters)] {
		if filter.name == "Crypt" {
			continue
		}
		out, err := f.apply(filter, data)
		f.Budget.Free(len(data))
		if data = out; err != nil && len(data) == 0 {
			return nil, err
		}
	}
	if f.Budget.Err() != nil {
		f.Budget.Free(len(data))
		return nil, errDamage
	}
	return data, nil
}

// A filter is a filter of a stream with its parameters.
type filter struct {
	name Name
	parms
}

// parms are the parameters of filters that decompress (ISO 32000-1, tables 8
// and 10). A predictor of 0 or 1 means none.
type parms struct {
	predictor, colors, bits, columns int
	lateChange                       bool
}

func (f *File) parmsOf(d Dict) parms {
	get := func(key Name, def int) int { return int(max(1, min(f.Number(d[key], float64(def)), 1<<20))) }
	return parms{get("Predictor", 1), get("Colors", 1), get("BitsPerComponent", 8), get("Columns", 1),
		f.Number(d["EarlyChange"], 1) == 0}
}

func first(d Dict, keys ...Name) Object {
	for _, k := range keys {
		if o, ok := d[k]; ok {
			return o
		}
	}
	return nil
}

// List returns o if it is an array, or an array with o.
func (f *File) List(o Object) Array {
	switch v := f.Resolve(o).(type) {
	case nil:
		return nil
	case Array:
		return v
	default:
		return Array{v}
	}
}

// apply applies one filter (ISO 32000-1, 7.4).
func (f *File) apply(filter filter, data []byte) ([]byte, error) {
	out := output{budget: f.Budget}
	switch filter.name {
	case "FlateDecode", "Fl":
		err := f.inflater.inflate(&out, data)
		out.predict(filter.parms)
		return out.bytes(), err
	case "LZWDecode", "LZW":
		unLZW(&out, data, !filter.lateChange)
		out.predict(filter.parms)
	case "ASCIIHexDecode", "AHx":
		data, _, _ = bytes.Cut(data, []byte(">"))
		if out.reserve(len(data)/2 + 1) {
			out.b = unhex(out.b, data, f.Budget)
		}
	case "ASCII85Decode", "A85":
		unASCII85(&out, data)
	case "RunLengthDecode", "RL":
		unRunLength(&out, data)
	default:
		return nil, errFilter
	}
	return out.bytes(), nil
}

// An output collects the decoded data of a filter, at most MaxStream bytes. Its
// memory is taken from a budget.
type output struct {
	b      []byte
	budget *Budget
}

// reserve makes sure that n more bytes fit. It returns false if they do not, which
// ends the stream.
func (o *output) reserve(n int) bool {
	need := len(o.b) + n
	if need <= cap(o.b) {
		return true
	}
	size := min(max(2*cap(o.b), need, 512), MaxStream)
	if need > size || !o.budget.Alloc(size) || !o.budget.Spend(size/16) {
		return false
	}
	old := o.b
	o.b = append(make([]byte, 0, size), old...)
	o.budget.Free(cap(old))
	return true
}

// bytes returns the collected data, for which len bytes of memory stay
// reserved.
func (o *output) bytes() []byte {
	if slack := cap(o.b) - len(o.b); slack > 1<<16 && slack > len(o.b)/8 && o.budget.Alloc(len(o.b)) {
		old := o.b
		o.b = append(make([]byte, 0, len(old)), old...)
		o.budget.Free(cap(old))
	}
	o.budget.Free(cap(o.b) - len(o.b))
	return o.b
}

// An inflater decodes zlib data. Its reader is reused, because creating one
// costs more than decoding a small stream.
type inflater struct {
	r   io.ReadCloser
	src source
}

// A source is the input of an inflater. Its work is taken from a budget.
type source struct {
	data []byte
	at   int
	out  *output
	seen int // length of out at the last check
}

// ReadByte implements [io.ByteReader].
func (s *source) ReadByte() (byte, error) {
	if s.at >= len(s.data) {
		return 0, io.EOF
	}
	if s.at%sourceCheck == 0 && !s.spend() {
		return 0, errDamage
	}
	c := s.data[s.at]
	s.at++
	return c, nil
}

// Read implements [io.Reader].
func (s *source) Read(p []byte) (int, error) {
	n := copy(p, s.data[s.at:])
	s.at += n
	switch {
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	case !s.out.budget.Spend(n):
		return n, errDamage
	}
	return n, nil
}

// sourceCheck is the number of bytes between two accountings of a source's
// work.
const sourceCheck = 1 << 16

// spend spends the steps of the next bytes. Input without output, because its
// blocks are empty, takes much longer than other input.
func (s *source) spend() bool {
	n := min(sourceCheck, len(s.data)-s.at)
	if s.at > 0 && len(s.out.b)-s.seen < sourceCheck/4 {
		n *= 16
	}
	s.seen = len(s.out.b)
	return s.out.budget.Spend(n)
}

// inflate decodes zlib data. Only the damaged part of damaged data is lost. The
// checksum is not verified.
func (z *inflater) inflate(out *output, data []byte) error {
	if len(data) < 2 || data[0]&0x0f != 8 || (int(data[0])<<8|int(data[1]))%31 != 0 {
		for len(data) > 0 && IsSpace(data[0]) { // a superfluous line end
			data = data[1:]
		}
	}
	if len(data) < 2 {
		return errDamage
	}
	if data[0]&0x0f == 8 {
		data = data[2:]
	}
	z.src = source{data: data, out: out}
	if z.r == nil {
		z.r = flate.NewReader(&z.src)
	} else if err := z.r.(flate.Resetter).Reset(&z.src, nil); err != nil {
		return err
	}
	for size := min(4*len(data)+64, 1<<20); len(out.b) < cap(out.b) || out.reserve(size); size = 1 {
		n, err := z.r.Read(out.b[len(out.b):min(cap(out.b), len(out.b)+checkEvery)])
		out.b = out.b[:len(out.b)+n]
		switch {
		case err == io.EOF:
			return nil
		case err != nil || !out.budget.Spend(n):
			return errDamage
		}
	}
	return nil
}

// unLZW decodes LZW as in TIFF: codes of 9 to 12 bits, high bit first; 256
// clears, 257 ends.
func unLZW(out *output, data []byte, early bool) {
	type link struct {
		prefix int16
		first  byte
		last   byte
		length int32
	}
	var table [4096]link
	for i := range 256 {
		table[i] = link{-1, byte(i), byte(i), 1}
	}
	bits, have, width, next, prev := uint(0), uint(0), uint(9), 258, -1
	change := 0
	if early {
		change = 1
	}
	for _, c := range data {
		bits, have = bits<<8|uint(c), have+8
		if have < width {
			continue
		}
		have -= width
		code := int(bits >> have & (1<<width - 1))
		switch {
		case code == 257:
			return
		case code == 256:
			width, next, prev = 9, 258, -1
			continue
		case code > next || code == next && prev < 0 || prev < 0 && code > 255:
			return
		}
		if prev >= 0 && next < 4096 {
			src := code
			if code == next {
				src = prev
			}
			table[next] = link{int16(prev), table[prev].first, table[src].first, table[prev].length + 1}
			next++
		}
		n := int(table[code].length)
		if code >= next || !out.reserve(n) || !out.budget.Spend(4+n) {
			return
		}
		out.b = out.b[:len(out.b)+n]
		for i, k := len(out.b)-1, code; n > 0; i, n = i-1, n-1 {
			out.b[i] = table[k].last
			k = int(table[k].prefix)
		}
		prev = code
		if next+change >= 1<<width && width < 12 {
			width++
		}
	}
}

func unASCII85(out *output, data []byte) {
	data = bytes.TrimPrefix(bytes.TrimLeft(data, " \r\n\t"), []byte("<~"))
	var v uint32
	n := 0
	for i, c := range data {
		if i%checkEvery == 0 && !out.budget.Spend(min(checkEvery, len(data)-i)) || !out.reserve(4) {
			return
		}
		switch {
		case c == '~':
			goto end
		case c == 'z' && n == 0:
			out.b = append(out.b, 0, 0, 0, 0)
		case c >= '!' && c <= 'u':
			v = v*85 + uint32(c-'!')
			if n++; n == 5 {
				out.b = append(out.b, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
				v, n = 0, 0
			}
		}
	}
end:
	if n > 1 && out.reserve(4) {
		for range 5 - n {
			v = v*85 + 84
		}
		tail := [4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
		out.b = append(out.b, tail[:n-1]...)
	}
}

func unRunLength(out *output, data []byte) {
	for len(data) > 1 && data[0] != 128 && out.budget.Spend(4) {
		n := int(data[0])
		if n < 128 {
			n = min(n+1, len(data)-1)
			if !out.reserve(n) {
				return
			}
			out.b = append(out.b, data[1:1+n]...)
			data = data[1+n:]
			continue
		}
		if n = 257 - n; !out.reserve(n) || !out.budget.Spend(n/8) {
			return
		}
		for range n {
			out.b = append(out.b, data[1])
		}
		data = data[2:]
	}
}

// predict reverses the predictors of PNG and TIFF (ISO 32000-1, 7.4.4.4), in
// place.
func (o *output) predict(p parms) {
	pixel := max(1, min(p.colors, 64)*min(p.bits, 32)/8)
	row := (min(p.colors, 64)*min(p.bits, 32)*p.columns + 7) / 8
	switch {
	case p.predictor < 2:
	case row > maxRow:
		o.b = o.b[:0]
	case p.predictor == 2:
		if p.bits == 8 {
			o.predictTIFF(row, pixel)
		}
	default:
		o.predictPNG(row, pixel)
	}
}

func (o *output) predictTIFF(row, pixel int) {
	for data := o.b; len(data) > 0; {
		n := min(row, len(data))
		if !o.budget.Spend(4 + n) {
			return
		}
		for i := pixel; i < n; i++ {
			data[i] += data[i-pixel]
		}
		data = data[n:]
	}
}

func (o *output) predictPNG(row, pixel int) {
	data := o.b
	o.b = o.b[:0]
	row = min(row, len(data))
	if !o.budget.Alloc(row) {
		return
	}
	defer o.budget.Free(row)
	prev := make([]byte, row)
	for len(data) > 1 && o.budget.Spend(4+row) {
		n := min(row, len(data)-1)
		cur := data[1 : 1+n]
		unfilter(data[0], cur, prev[:n], pixel)
		at := len(o.b)
		o.b = append(o.b, cur...)
		prev = o.b[at:]
		data = data[1+n:]
	}
}

// unfilter reverses one of the PNG filters on a row (PNG 9.2).
func unfilter(kind byte, cur, prev []byte, pixel int) {
	for i := range cur {
		var left, up, corner int
		up = int(prev[i])
		if i >= pixel {
			left, corner = int(cur[i-pixel]), int(prev[i-pixel])
		}
		switch kind {
		case 1:
			cur[i] += byte(left)
		case 2:
			cur[i] += byte(up)
		case 3:
			cur[i] += byte((left + up) / 2)
		case 4:
			a, b, c := abs(up-corner), abs(left-corner), abs(left+up-2*corner)
			switch {
			case a <= b && a <= c:
				cur[i] += byte(left)
			case b <= c:
				cur[i] += byte(up)
			default:
				cur[i] += byte(corner)
			}
		}
	}
}

func abs(n int) int { return max(n, -n) }
