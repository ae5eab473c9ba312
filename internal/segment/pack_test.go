package segment

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for width := uint(0); width <= 32; width++ {
		for n := 1; n <= blockSize; n++ {
			v := make([]uint32, n)
			for i := range v {
				v[i] = uint32(uint64(rnd.Uint32()) & (1<<width - 1))
			}
			v[rnd.IntN(n)] = uint32(uint64(1)<<width - 1)
			if w := widthOf(v); w != width {
				t.Fatalf("widthOf(%v) = %d, want %d", v, w, width)
			}
			p := pack([]byte{1, 2, 3}, v, width)[3:]
			if len(p) != packedSize(n, width) {
				t.Fatalf("%d values of %d bits take %d bytes, want %d", n, width, len(p), packedSize(n, width))
			}
			for i := range readAhead { // what follows does not matter
				p = append(p, byte(0x55+i))
			}
			var got [blockSize]uint32
			for i := range got {
				got[i] = rnd.Uint32()
			}
			after := slices.Clone(got[n:])
			unpack(&got, p[:len(p):len(p)], n, width)
			if !slices.Equal(got[:n], v) || !slices.Equal(got[n:], after) {
				t.Fatalf("%d values of %d bits: %v, want %v", n, width, got, v)
			}
		}
	}
}

func TestSkipVarints(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var b []byte
		ends := []int{0}
		for range rnd.IntN(60) {
			b = binary.AppendUvarint(b, rnd.Uint64()>>rnd.IntN(64))
			ends = append(ends, len(b))
		}
		for n, end := range ends {
			if got := skipVarints(b, n); got != end {
				t.Fatalf("skipVarints(%x, %d) = %d, want %d", b, n, got, end)
			}
		}
		rest := b
		for i := range len(ends) - 1 {
			want, _ := binary.Uvarint(b[ends[i]:])
			var got int
			if got, rest = uvarint(rest); got != int(want) || len(rest) != len(b)-ends[i+1] {
				t.Fatalf("uvarint(%x) = %d, want %d", b[ends[i]:], got, want)
			}
		}
	}
}

// TestBadVarints checks that a number that does not end is never read.
func TestBadVarints(t *testing.T) {
	for _, b := range [][]byte{nil, {0x80}, {0xff, 0xff},
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("uvarint(%x) does not panic", b)
				}
			}()
			uvarint(b)
		}()
	}
	defer func() {
		if recover() == nil {
			t.Error("skipVarints does not panic")
		}
	}()
	skipVarints([]byte{1, 0x80, 0x80}, 2)
}

func TestBits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 63, 64, 65, 127, 128, 200} {
		full := NewBits(n)
		full.fill(n)
		made := func() (b Bits, has []bool) {
			b, has = NewBits(n), make([]bool, n)
			for i := range has {
				if rnd.IntN(9) == 0 {
					b.Set(i)
					has[i] = true
				}
			}
			return b, has
		}
		check := func(name string, b Bits, want func(i int) bool) {
			t.Helper()
			count, next := 0, -1
			for i := n - 1; i >= 0; i-- {
				if want(i) {
					count, next = count+1, i
				}
				if b.Has(i) != want(i) || b.Next(i) != next {
					t.Errorf("%s of %d: Has(%d) = %v, Next = %d, want %v, %d", name, n, i, b.Has(i), b.Next(i), want(i),
						next)
				}
			}
			if b.Count() != count || b.Next(n) != -1 || b.Next(n+100) != -1 {
				t.Errorf("%s of %d: Count = %d, want %d; Next(%d) = %d", name, n, b.Count(), count, n, b.Next(n))
			}
		}
		check("fill", full, func(int) bool { return true })
		for range 20 {
			a, inA := made()
			b, inB := made()
			check("Set", a, func(i int) bool { return inA[i] })
			or, and, not := slices.Clone(a), slices.Clone(a), slices.Clone(a)
			or.Or(b)
			and.And(b)
			not.AndNot(b)
			check("Or", or, func(i int) bool { return inA[i] || inB[i] })
			check("And", and, func(i int) bool { return inA[i] && inB[i] })
			check("AndNot", not, func(i int) bool { return inA[i] && !inB[i] })
		}
	}
}
