package segment

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// FuzzSegment changes bytes of a small segment, makes its checksums right, and
// calls everything that reads it. Each change is four bytes: the position, what
// to do, and a value.
func FuzzSegment(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	originals := [][]byte{small(f, rnd, 3), small(f, rnd, 12), small(f, rnd, 0)}
	other := open(f, small(f, rnd, 2))
	f.Add(byte(0), []byte{})
	f.Add(byte(1), []byte("9:27"))         // positions that do not match frequencies
	f.Add(byte('+'), []byte("\x82a1\xdf")) // terms that are not sorted
	for i, data := range originals {
		for range 40 {
			var changes []byte
			for range 1 + rnd.IntN(3) {
				at := rnd.IntN(len(data))
				changes = append(changes, byte(at), byte(at>>8), byte(rnd.IntN(6)), byte(rnd.IntN(256)))
			}
			f.Add(byte(i), changes)
		}
	}
	f.Fuzz(func(t *testing.T, original byte, changes []byte) {
		data := bytes.Clone(originals[int(original)%len(originals)])
		for ; len(changes) >= 4; changes = changes[4:] {
			at := int(le.Uint16(changes)) % len(data)
			op, value := changes[2]%6, changes[3]
			switch op {
			case 0:
				data[at] = value
			case 1:
				data[at] += value
			case 2:
				data[at] ^= 1 << (value & 7)
			case 3: // a great number
				for i := at; i < min(at+int(value&7)+1, len(data)); i++ {
					data[i] = 0xff
				}
			case 4: // what is elsewhere
				copy(data[at:min(at+8, len(data))], data[int(value)*len(data)/256:])
			case 5:
				clear(data[at:min(at+int(value&15), len(data))])
			}
		}
		repair(data)
		watchdog := time.AfterFunc(time.Minute, func() { panic("it does not end") })
		defer watchdog.Stop()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		exercise(t, data, other)
		runtime.ReadMemStats(&after)
		// An undamaged segment takes 2 MB, most of it in collections and merges.
		if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
			t.Fatalf("%d bytes are allocated for a segment of %d bytes", n, len(data))
		}
	})
}

// FuzzPack packs numbers and unpacks them, and unpacks bytes.
func FuzzPack(f *testing.F) {
	f.Add([]byte("some bytes that are taken as numbers"), byte(7), byte(128))
	f.Add(bytes.Repeat([]byte{0xff}, 700), byte(32), byte(128))
	f.Add([]byte{}, byte(0), byte(1))
	f.Fuzz(func(t *testing.T, data []byte, width, n byte) {
		w, count := uint(width)%33, 1+int(n)%blockSize
		size := packedSize(count, w)
		data = append(slices.Clone(data), make([]byte, size+readAhead)...)
		var v, again [blockSize]uint32
		unpack(&v, data[:size+readAhead], count, w)
		if widthOf(v[:count]) > w {
			t.Fatalf("%d values of %d bits are too large: %v", count, w, v)
		}
		p := pack(nil, v[:count], w)
		if spare := size*8 - count*int(w); spare > 0 {
			data[size-1] &= 0xff >> spare
		}
		if !bytes.Equal(p, data[:size]) {
			t.Fatalf("%d values of %d bits: %x was unpacked and packed to %x", count, w, data[:size], p)
		}
		unpack(&again, append(p, make([]byte, readAhead)...), count, w)
		if again != v {
			t.Fatalf("%d values of %d bits: %v, want %v", count, w, again, v)
		}
	})
}
