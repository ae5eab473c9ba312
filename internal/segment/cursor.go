package segment

import (
	"math"
	"slices"
)

// skipEntry is the size of what is stored for a block; see writer.term.
const skipEntry = 16

// A cursor goes over the postings of one term of one segment. It decodes one
// block at a time. It is reused for other terms with open.
type cursor struct {
	s      *Segment
	e      entry
	fields Fields // others are not counted
	blocks int
	skip   []byte // nil if there is one block
	data   []byte // the blocks

	block   int
	n, i    int    // postings of the block, and the current one
	chunk   uint32 // the current one, or noChunk
	counted bool   // tf is decoded
	others  bool   // the block has frequencies in fields other than Text
	widths  [fieldCount]uint
	counts  []byte // packed frequencies
	posI    int    // posting of the block whose positions begin at posAt
	posAt   int

	chunks [blockSize]uint32
	tf     [fieldCount][blockSize]uint32

	// For the ranking.
	r       *ranking
	weight  float32 // inverse document frequency and weight of the leaf
	bound   float32 // no score is greater, if there is one block
	shallow int     // block that limit looked at last
}

// open goes to the first posting of a term.
func (c *cursor) open(s *Segment, e entry, fields Fields) {
	c.s, c.e, c.fields = s, e, fields
	c.blocks = (e.df + blockSize - 1) / blockSize
	c.data = s.postings[e.post : e.post+e.postSize+readAhead]
	c.skip = nil
	if c.blocks > 1 {
		c.skip, c.data = c.data[:c.blocks*skipEntry], c.data[c.blocks*skipEntry:]
	}
	c.shallow = 0
	c.load(0)
}

// lastOf returns the last chunk of a block, if there are several.
func (c *cursor) lastOf(block int) uint32 {
	return le.Uint32(c.skip[block*skipEntry:])
}

// mostOf returns the greatest weighed frequency in a block, if there are
// several.
func (c *cursor) mostOf(block int) float32 {
	return math.Float32frombits(le.Uint32(c.skip[block*skipEntry+12:]))
}

// load decodes the chunks of a block and goes to the first.
func (c *cursor) load(block int) {
	c.block, c.i, c.counted = block, 0, false
	if block >= c.blocks {
		c.chunk, c.n = noChunk, 0
		return
	}
	b, next := c.data, uint64(0) // the least number that the next chunk can have
	c.n, c.posI, c.posAt = c.e.df, 0, 0
	if c.skip != nil {
		c.n = min(blockSize, c.e.df-block*blockSize)
		b = b[le.Uint32(c.skip[block*skipEntry+4:]):]
		c.posAt = int(le.Uint32(c.skip[block*skipEntry+8:]))
		if block > 0 {
			next = uint64(c.lastOf(block-1)) + 1
		}
	}
	wide := uint(b[0])
	c.widths = [fieldCount]uint{Text: uint(b[1] &^ 0x80)}
	c.others = b[1]&0x80 != 0
	b = b[2:]
	if c.others {
		c.widths[Title], c.widths[Name], c.widths[Heading] = uint(b[0]), uint(b[1]), uint(b[2])
		b = b[3:]
	}
	unpack(&c.chunks, b, c.n, wide)
	for i := range c.chunks[:c.n] {
		next += uint64(c.chunks[i])
		c.chunks[i] = uint32(next)
		next++
	}
	if next > uint64(c.s.chunks) { // then the numbers before are right, too: next only grows
		panic(damaged("a posting has a chunk that does not exist"))
	}
	if c.skip != nil && c.lastOf(block) != c.chunks[c.n-1] {
		panic(damaged("a block of postings does not end with its last chunk"))
	}
	c.counts = b[packedSize(c.n, wide):]
	c.chunk = c.chunks[0]
}

// count decodes the frequencies of the block.
func (c *cursor) count() {
	if c.counted {
		return
	}
	c.counted = true
	b := c.counts
	unpack(&c.tf[Text], b, c.n, c.widths[Text])
	if !c.others {
		for _, f := range [...]Field{Title, Name, Heading} {
			clear(c.tf[f][:c.n])
		}
		return
	}
	b = b[packedSize(c.n, c.widths[Text]):]
	for _, f := range [...]Field{Title, Name, Heading} {
		unpack(&c.tf[f], b, c.n, c.widths[f])
		b = b[packedSize(c.n, c.widths[f]):]
	}
}

// weigh returns the weighed frequency of posting i in the wanted fields, 0 if
// none of them has the term. The frequencies must be decoded.
func (c *cursor) weigh(n *norms, i int) (tf float32) {
	lengths := c.s.lengthsOf(c.chunks[i])
	if c.fields&Only(Text) != 0 {
		tf = float32(c.tf[Text][i]) * n.of(Text, lengths)
	}
	if c.others {
		for _, f := range [...]Field{Title, Name, Heading} {
			if t := c.tf[f][i]; t > 0 && c.fields&Only(f) != 0 {
				tf += float32(t) * n.of(f, lengths)
			}
		}
	}
	return tf
}

// in reports whether the current chunk has the term in a wanted field.
func (c *cursor) in() bool {
	if c.fields == AllFields {
		return true
	}
	c.count()
	for f := range c.tf {
		if c.fields&Only(Field(f)) != 0 && c.tf[f][c.i] > 0 {
			return true
		}
	}
	return false
}

// frequency returns how often the term is in the current chunk.
func (c *cursor) frequency() int {
	c.count()
	return c.sum(c.i, c.i+1)
}

// sum returns how often the term is in the chunks of the postings from from to
// to-1 of the block. The frequencies must be decoded.
func (c *cursor) sum(from, to int) (n int) {
	for _, tf := range c.tf[Text][from:to] {
		n += int(tf)
	}
	if c.others {
		for _, f := range [...]Field{Title, Name, Heading} {
			for _, tf := range c.tf[f][from:to] {
				n += int(tf)
			}
		}
	}
	return n
}

// next goes to the next posting.
func (c *cursor) next() {
	if c.i++; c.i < c.n {
		c.chunk = c.chunks[c.i]
		return
	}
	c.load(c.block + 1)
}

// advance goes to the first posting whose chunk is not less than target.
func (c *cursor) advance(target uint32) {
	if c.chunk >= target {
		return
	}
	if target > c.chunks[c.n-1] {
		if c.load(c.seekBlock(target)); c.chunk >= target {
			return
		}
	}
	// Double the steps, then halve them: the posting is mostly near.
	lo, step := c.i, 1
	for lo+step < c.n && c.chunks[lo+step] < target {
		lo += step
		step *= 2
	}
	hi := min(lo+step, c.n-1)
	for lo+1 < hi {
		if m := (lo + hi) / 2; c.chunks[m] < target {
			lo = m
		} else {
			hi = m
		}
	}
	c.i, c.chunk = hi, c.chunks[hi]
}

// seekBlock returns the first block after the current one whose last chunk is
// not less than target.
func (c *cursor) seekBlock(target uint32) int {
	if c.skip == nil {
		return c.blocks
	}
	lo, step := c.block, 1
	for lo+step < c.blocks && c.lastOf(lo+step) < target {
		lo += step
		step *= 2
	}
	hi := min(lo+step, c.blocks)
	for lo+1 < hi {
		if m := (lo + hi) / 2; c.lastOf(m) < target {
			lo = m
		} else {
			hi = m
		}
	}
	return hi
}

// positions decodes the positions of the term in the current chunk into buf,
// those of each field after those of the one before. It returns the numbers of
// positions before each field.
func (c *cursor) positions(buf []uint32) (all []uint32, begin [fieldCount + 1]int) {
	c.count()
	b := c.s.positions[c.e.pos : c.e.pos+c.e.posSize][c.posAt:]
	if c.posI < c.i {
		n := c.sum(c.posI, c.i)
		c.posI = c.i
		size := skipVarints(b, n)
		b = b[size:]
		c.posAt += size
	}
	for f := range c.tf {
		begin[f+1] = begin[f] + int(c.tf[f][c.i])
	}
	n := begin[fieldCount]
	if n > len(b) {
		panic(damaged("a term has fewer positions than its frequency"))
	}
	buf = slices.Grow(buf[:0], n)[:n]
	o := 0
	for f := range fieldCount {
		at := uint32(0)
		for i := begin[f]; i < begin[f+1]; i++ {
			d := uint32(b[o])
			if o++; d >= 0x80 {
				d &= 0x7f
				for shift := 7; ; shift += 7 {
					x := uint32(b[o])
					d |= x & 0x7f << shift
					if o++; x < 0x80 {
						break
					}
				}
			}
			at += d
			buf[i] = at
		}
	}
	return buf, begin
}
