package segment

import "math/bits"

// Bits is a set of small numbers, such as the documents of a segment. Bit i of
// word i/64 is set if i is in the set. Numbers must be below the size that the
// set was made for.
type Bits []uint64

// NewBits returns an empty set for the numbers from 0 to n-1.
func NewBits(n int) Bits { return make(Bits, (n+63)/64) }

// Set adds i to the set.
func (b Bits) Set(i int) { b[i>>6] |= 1 << (i & 63) }

// Has reports whether i is in the set.
func (b Bits) Has(i int) bool { return b[i>>6]&(1<<(i&63)) != 0 }

// Count returns the number of members.
func (b Bits) Count() (n int) {
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// Or adds the members of o, a set of the same size.
func (b Bits) Or(o Bits) {
	for i := range b {
		b[i] |= o[i]
	}
}

// And removes the members that are not in o, a set of the same size.
func (b Bits) And(o Bits) {
	for i := range b {
		b[i] &= o[i]
	}
}

// AndNot removes the members of o, a set of the same size.
func (b Bits) AndNot(o Bits) {
	for i := range b {
		b[i] &^= o[i]
	}
}

// Includes reports whether all members of o, a set of the same size, are in the
// set.
func (b Bits) Includes(o Bits) bool {
	for i := range b {
		if o[i]&^b[i] != 0 {
			return false
		}
	}
	return true
}

// Keep removes the members for which f returns false.
func (b Bits) Keep(f func(i int) bool) {
	for i := b.Next(0); i >= 0; i = b.Next(i + 1) {
		if !f(i) {
			b[i>>6] &^= 1 << (i & 63)
		}
	}
}

// Next returns the first member that is at least i, or -1 if there is none.
func (b Bits) Next(i int) int {
	w := i >> 6
	if w >= len(b) {
		return -1
	}
	if x := b[w] >> (i & 63); x != 0 {
		return i + bits.TrailingZeros64(x)
	}
	for w++; w < len(b); w++ {
		if b[w] != 0 {
			return w<<6 + bits.TrailingZeros64(b[w])
		}
	}
	return -1
}

// fill adds the numbers from 0 to n-1.
func (b Bits) fill(n int) {
	for i := range b {
		b[i] = ^uint64(0)
	}
	if n&63 != 0 {
		b[len(b)-1] = 1<<(n&63) - 1
	}
}
