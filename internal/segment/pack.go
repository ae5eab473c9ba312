package segment

import (
	"encoding/binary"
	"math/bits"
)

// blockSize is the number of postings that are packed together.
const blockSize = 128

// readAhead is how many bytes unpack may read beyond the packed values.
const readAhead = 8

// widthOf returns the number of bits that the largest of v needs.
func widthOf(v []uint32) uint {
	var or uint32
	for _, x := range v {
		or |= x
	}
	return uint(bits.Len32(or))
}

// packedSize returns the size in bytes of n packed values of w bits.
func packedSize(n int, w uint) int { return (n*int(w) + 7) / 8 }

// pack appends v with w bits for each value.
func pack(dst []byte, v []uint32, w uint) []byte {
	var acc uint64
	var have uint
	for _, x := range v {
		acc |= uint64(x) << have
		for have += w; have >= 8; have -= 8 {
			dst = append(dst, byte(acc))
			acc >>= 8
		}
	}
	if have > 0 {
		dst = append(dst, byte(acc))
	}
	return dst
}

// unpack reads n values of w bits, n at most blockSize and w at most 32. It may
// read up to readAhead bytes beyond them.
func unpack(dst *[blockSize]uint32, src []byte, n int, w uint) {
	le := binary.LittleEndian
	mask := uint32(1)<<w - 1
	switch {
	case w == 0:
		clear(dst[:n])
	case n == blockSize && w <= 8: // eight values are in w bytes
		for i := 0; i < blockSize; i += 8 {
			x := le.Uint64(src)
			src = src[w:]
			d := (*[8]uint32)(dst[i:])
			d[0] = uint32(x) & mask
			d[1] = uint32(x>>w) & mask
			d[2] = uint32(x>>(2*w)) & mask
			d[3] = uint32(x>>(3*w)) & mask
			d[4] = uint32(x>>(4*w)) & mask
			d[5] = uint32(x>>(5*w)) & mask
			d[6] = uint32(x>>(6*w)) & mask
			d[7] = uint32(x>>(7*w)) & mask
		}
	case n == blockSize && w <= 14: // four values and the offset in a byte take at most 63 bits
		for i, bit := 0, uint(0); i < blockSize; i, bit = i+4, bit+4*w {
			x := le.Uint64(src[bit>>3:]) >> (bit & 7)
			d := (*[4]uint32)(dst[i:])
			d[0] = uint32(x) & mask
			d[1] = uint32(x>>w) & mask
			d[2] = uint32(x>>(2*w)) & mask
			d[3] = uint32(x>>(3*w)) & mask
		}
	default:
		wide := uint64(1)<<w - 1
		for i, bit := 0, uint(0); i < n; i, bit = i+1, bit+w {
			dst[i] = uint32(le.Uint64(src[bit>>3:]) >> (bit & 7) & wide)
		}
	}
}

// skipVarints returns the length in bytes of the next n varints of b.
func skipVarints(b []byte, n int) int {
	i := 0
	for n >= 8 && len(b)-i >= 8 { // eight bytes end at most eight varints
		n -= bits.OnesCount64(^binary.LittleEndian.Uint64(b[i:]) & 0x8080808080808080)
		i += 8
	}
	for ; n > 0; i++ {
		if b[i] < 0x80 {
			n--
		}
	}
	return i
}

// uvarint reads a number. It panics if b ends before the number does, or the
// number has more than 64 bits.
func uvarint(b []byte) (int, []byte) {
	if b[0] < 0x80 {
		return int(b[0]), b[1:]
	}
	x, n := binary.Uvarint(b)
	if n <= 0 {
		panic(damaged("a number does not end"))
	}
	return int(x), b[n:]
}
