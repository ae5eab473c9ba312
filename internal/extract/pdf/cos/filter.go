package cos

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"errors"
	"io"
)

// maxStream is the largest size of a decoded stream in bytes.
const MaxStream = 64 << 20

var (
	errFilter = errors.New("filter that gives no text")
	errDamage = errors.New("damaged stream")
)

// Decode returns the bytes of a stream after its filters; of a damaged stream
// what could be decoded. It fails where that is nothing, or where a filter
// gives no text (pictures).
func (f *File) Decode(s *Stream) ([]byte, error) {
	data := s.raw
	filters, parms := f.List(first(s.Dict, "Filter", "F")), f.List(first(s.Dict, "DecodeParms", "DP"))
	if f.crypt != nil && s.id != (Ref{}) {
		own := len(filters) > 0 && f.Name(filters[0]) == "Crypt" // always /Identity in practice
		if !own && !(s.Dict["Type"] == Name("Metadata") && f.crypt.plainMetadata) {
			data = f.crypt.stream(s.id, data)
			f.Budget.Spend(len(data))
		}
	}
	if len(filters) > 8 {
		return nil, errFilter
	}
	for i, o := range filters {
		var p Dict
		if i < len(parms) {
			p = f.Dict(parms[i])
		}
		if !f.Budget.Spend(len(data)) {
			return nil, errDamage
		}
		out, err := f.apply(f.Name(o), p, data)
		if !f.Budget.Spend(len(out)) {
			return nil, errDamage
		}
		if err != nil && len(out) == 0 {
			return nil, err
		}
		data = out
	}
	return data, nil
}

func first(d Dict, keys ...Name) Object {
	for _, k := range keys {
		if o, ok := d[k]; ok {
			return o
		}
	}
	return nil
}

// List returns an array, or an array of the one object that o is.
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

// apply runs one filter (ISO 32000-1, 7.4).
func (f *File) apply(filter Name, p Dict, data []byte) ([]byte, error) {
	switch filter {
	case "FlateDecode", "Fl":
		out, err := inflate(data)
		return f.predict(p, out), err
	case "LZWDecode", "LZW":
		return f.predict(p, unLZW(data, f.Number(p["EarlyChange"], 1) != 0)), nil
	case "ASCIIHexDecode", "AHx":
		data, _, _ = bytes.Cut(data, []byte(">"))
		return unhex(data), nil
	case "ASCII85Decode", "A85":
		return unASCII85(data), nil
	case "RunLengthDecode", "RL":
		return unRunLength(data), nil
	case "Crypt":
		return data, nil
	}
	return nil, errFilter
}

// inflate decodes zlib data; a damaged head or end costs only what it hides.
func inflate(data []byte) ([]byte, error) {
	var r io.Reader
	zr, err := zlib.NewReader(bytes.NewReader(data))
	if r = zr; err != nil {
		for len(data) > 0 && IsSpace(data[0]) { // a line end too many
			data = data[1:]
		}
		if len(data) < 2 {
			return nil, errDamage
		}
		if data[0]&0x0f == 8 {
			data = data[2:]
		}
		r = flate.NewReader(bytes.NewReader(data))
	}
	var out bytes.Buffer
	out.Grow(min(4*len(data), 1<<20))
	if _, err := io.Copy(&out, io.LimitReader(r, MaxStream)); err != nil {
		return out.Bytes(), errDamage
	}
	return out.Bytes(), nil
}

// unLZW decodes the LZW of PDF, which is that of TIFF: codes of 9 to 12 bits,
// high bit first, 256 clears, 257 ends.
func unLZW(data []byte, early bool) []byte {
	type link struct {
		prefix int16
		last   byte
		length int32
	}
	var table [4096]link
	for i := range 256 {
		table[i] = link{-1, byte(i), 1}
	}
	var out []byte
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
			return out
		case code == 256:
			width, next, prev = 9, 258, -1
			continue
		case code > next || code == next && prev < 0 || prev < 0 && code > 255:
			return out
		}
		if prev >= 0 && next < 4096 {
			src := code
			if code == next {
				src = prev
			}
			for table[src].prefix >= 0 {
				src = int(table[src].prefix)
			}
			table[next] = link{int16(prev), table[src].last, table[prev].length + 1}
			next++
		}
		if code >= next || len(out)+int(table[code].length) > MaxStream {
			return out
		}
		n := int(table[code].length)
		out = append(out, make([]byte, n)...)
		for i, k := len(out)-1, code; n > 0; i, n = i-1, n-1 {
			out[i] = table[k].last
			k = int(table[k].prefix)
		}
		prev = code
		if next+change >= 1<<width && width < 12 {
			width++
		}
	}
	return out
}

func unASCII85(data []byte) []byte {
	data = bytes.TrimPrefix(bytes.TrimLeft(data, " \r\n\t"), []byte("<~"))
	out := make([]byte, 0, len(data)*4/5+4)
	var v uint32
	n := 0
	for _, c := range data {
		switch {
		case c == '~':
			goto end
		case c == 'z' && n == 0:
			out = append(out, 0, 0, 0, 0)
		case c >= '!' && c <= 'u':
			v = v*85 + uint32(c-'!')
			if n++; n == 5 {
				out = append(out, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
				v, n = 0, 0
			}
		}
	}
end:
	if n > 1 {
		for range 5 - n {
			v = v*85 + 84
		}
		tail := [4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
		out = append(out, tail[:n-1]...)
	}
	return out
}

func unRunLength(data []byte) []byte {
	var out []byte
	for len(data) > 1 && data[0] != 128 && len(out) < MaxStream {
		n := int(data[0])
		if n < 128 {
			n = min(n+1, len(data)-1)
			out = append(out, data[1:1+n]...)
			data = data[1+n:]
			continue
		}
		out = append(out, bytes.Repeat(data[1:2], 257-n)...)
		data = data[2:]
	}
	return out
}

// predict undoes the predictors of PNG and TIFF (ISO 32000-1, 7.4.4.4).
func (f *File) predict(p Dict, data []byte) []byte {
	kind := int(f.Number(p["Predictor"], 1))
	if kind < 2 {
		return data
	}
	get := func(key Name, def int) int { return int(max(1, min(f.Number(p[key], float64(def)), 1<<20))) }
	colors, bits, columns := get("Colors", 1), get("BitsPerComponent", 8), get("Columns", 1)
	pixel := max(1, min(colors, 64)*min(bits, 32)/8)
	row := (min(colors, 64)*min(bits, 32)*columns + 7) / 8
	if kind == 2 {
		for i := 0; bits == 8 && i < len(data); i++ {
			if i%row >= pixel {
				data[i] += data[i-pixel]
			}
		}
		return data
	}
	out := make([]byte, 0, len(data))
	prev := make([]byte, min(row, len(data)))
	for len(data) > 1 {
		n := min(row, len(data)-1)
		cur := data[1 : 1+n]
		unfilter(data[0], cur, prev[:n], pixel)
		out = append(out, cur...)
		copy(prev, cur)
		data = data[1+n:]
	}
	return out
}

// unfilter undoes one of the PNG filters on a row (PNG 9.2).
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
