package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/knowhow-mcp/knowhow/internal/relevance"
)

// A Spool keeps bytes until they are written elsewhere, in memory (such as a
// bytes.Buffer) or in a temporary file.
type Spool interface {
	io.Writer
	io.WriterTo
}

// InMemory returns an empty Spool in memory.
func InMemory() Spool { return &bytes.Buffer{} }

// Constants of BM25F that the bounds in a segment depend on: the weight of each
// field, and how much its length counts.
var (
	fieldWeight = [fieldCount]float32{Title: relevance.TitleWeight, Name: relevance.NameWeight,
		Heading: relevance.HeadingWeight, Text: relevance.TextWeight}
	fieldB = [fieldCount]float32{Title: relevance.ShortB, Name: relevance.ShortB, Heading: relevance.ShortB,
		Text: relevance.TextB}
)

// norms is what the frequency of a term in a field is multiplied with, by the
// length of the field.
type norms [fieldCount][maxLength + 1]float32

func newNorms(avg [fieldCount]float32) *norms {
	var n norms
	for f := range n {
		for l := range n[f] {
			n[f][l] = fieldWeight[f] / (1 - fieldB[f] + fieldB[f]*float32(l)/avg[f])
		}
	}
	return &n
}

// of returns the factor for a field of a chunk with the given lengths.
func (n *norms) of(f Field, lengths uint64) float32 {
	return n[f][lengths>>(16*f)&maxLength]
}

// A list is the decoded postings of one term: the chunks that have it, how
// often in each field, and the positions.
type list struct {
	chunks    []uint32
	tf        [fieldCount][]uint32
	positions []byte
}

func (l *list) reset() {
	l.chunks, l.positions = l.chunks[:0], l.positions[:0]
	for f := range l.tf {
		l.tf[f] = l.tf[f][:0]
	}
}

// count returns how often the term is in posting i.
func (l *list) count(i int) (n int) {
	for f := range l.tf {
		n += int(l.tf[f][i])
	}
	return n
}

// A writer writes a segment: first the documents, then the terms and the words
// in order.
type writer struct {
	out     io.Writer
	written int
	start   int    // of the current section
	sum     uint32 // its checksum
	table   []byte // of sections, for the footer
	err     error  // the first one

	// Columns.
	rows, starts, titles, docOf, lengths []byte
	docs, chunks                         int
	sums                                 [fieldCount]uint64
	docOfChunk                           []uint32
	lengthsOf                            []uint64
	norms                                *norms

	positions, sets, wordDocs Spool
	terms, words              dictionaryWriter

	set          Bits // scratch, as what follows
	skip, blocks []byte
	bytes        []byte
	gaps         [blockSize]uint32
}

// to sets where the segment is written. spool returns an empty Spool. The
// sections that follow the postings are kept in Spools.
func (w *writer) to(out io.Writer, spool func() Spool) {
	w.out = out
	w.positions, w.sets, w.wordDocs = spool(), spool(), spool()
	w.terms.data, w.terms.index, w.words.data, w.words.index = spool(), spool(), spool(), spool()
}

// document begins a document.
func (w *writer) document(row int64, title uint64) {
	w.rows = le.AppendUint64(w.rows, uint64(row))
	w.titles = le.AppendUint64(w.titles, title)
	w.starts = le.AppendUint32(w.starts, uint32(w.chunks))
	w.docs++
}

// chunk adds a chunk to the last document.
func (w *writer) chunk(lengths [fieldCount]int) {
	var packed uint64
	for f, n := range lengths {
		n = min(n, maxLength)
		w.sums[f] += uint64(n)
		packed |= uint64(n) << (16 * f)
	}
	w.docOfChunk = append(w.docOfChunk, uint32(w.docs-1))
	w.lengthsOf = append(w.lengthsOf, packed)
	w.chunks++
}

// columns writes the documents and begins the postings.
func (w *writer) columns() {
	w.starts = le.AppendUint32(w.starts, uint32(w.chunks))
	for i, d := range w.docOfChunk {
		w.docOf = le.AppendUint32(w.docOf, d)
		w.lengths = le.AppendUint64(w.lengths, w.lengthsOf[i])
	}
	w.write([]byte(magic))
	for _, b := range [][]byte{w.rows, w.starts, w.titles, w.docOf, w.lengths} { // in the order of the sections
		w.section(b)
	}
	w.rows, w.starts, w.titles, w.docOf, w.lengths = nil, nil, nil, nil, nil
	w.set = NewBits(w.docs)
	w.begin()
}

// term adds a term. The layout of its postings is: if there is more than one
// block, 16 bytes for each block (last chunk, offset of the block, offset of
// its positions, and the greatest weighed frequency in it); then the blocks. A
// block has the number of bits of a gap, that of a frequency in the text with
// 0x80 if there are frequencies in other fields, in this case those of the
// other fields; then the packed gaps and frequencies.
func (w *writer) term(name []byte, l *list) {
	df := len(l.chunks)
	blocks := (df + blockSize - 1) / blockSize
	w.skip, w.blocks = w.skip[:0], w.blocks[:0]
	before, at := -1, 0
	for lo := 0; lo < df; lo += blockSize {
		hi := min(lo+blockSize, df)
		offset, positions, most := len(w.blocks), at, float32(0)
		for i := lo; i < hi; i++ {
			c := l.chunks[i]
			w.gaps[i-lo] = uint32(int(c) - before - 1)
			before = int(c)
			if blocks > 1 {
				if w.norms == nil { // a small segment needs none
					w.norms = newNorms(averages(w.sums, w.chunks))
				}
				tf := float32(0)
				for f := range l.tf {
					tf += float32(l.tf[f][i]) * w.norms.of(Field(f), w.lengthsOf[c])
				}
				most = max(most, tf)
				at += skipVarints(l.positions[at:], l.count(i))
			}
		}
		w.block(l, lo, hi)
		if blocks > 1 {
			w.skip = le.AppendUint32(w.skip, l.chunks[hi-1])
			w.skip = le.AppendUint32(w.skip, uint32(offset))
			w.skip = le.AppendUint32(w.skip, uint32(positions))
			w.skip = le.AppendUint32(w.skip, math.Float32bits(most))
		}
	}
	if len(l.positions) > math.MaxUint32 {
		w.fail(fmt.Errorf("a term has more than %d bytes of positions", uint32(math.MaxUint32)))
	}
	set := w.keepSet(l.chunks)
	w.keep(w.terms.add(name, df, set, len(w.skip)+len(w.blocks), len(l.positions)))
	w.stream(w.skip)
	w.stream(w.blocks)
	w.keep(w.positions.Write(l.positions))
}

// keep records the error of writing to a Spool.
func (w *writer) keep(_ int, err error) {
	if err != nil {
		w.fail(err)
	}
}

// block packs the postings from lo to hi-1.
func (w *writer) block(l *list, lo, hi int) {
	gaps := w.gaps[:hi-lo]
	var widths [fieldCount]uint
	var others uint
	for f := range l.tf {
		widths[f] = widthOf(l.tf[f][lo:hi])
		if Field(f) != Text {
			others |= widths[f]
		}
	}
	wide := widthOf(gaps)
	w.blocks = append(w.blocks, byte(wide), byte(widths[Text]))
	if others != 0 {
		w.blocks[len(w.blocks)-1] |= 0x80
		w.blocks = append(w.blocks, byte(widths[Title]), byte(widths[Name]), byte(widths[Heading]))
	}
	w.blocks = pack(w.blocks, gaps, wide)
	w.blocks = pack(w.blocks, l.tf[Text][lo:hi], widths[Text])
	if others != 0 {
		for _, f := range []Field{Title, Name, Heading} {
			w.blocks = pack(w.blocks, l.tf[f][lo:hi], widths[f])
		}
	}
}

// setShare is the part of the documents, one in setShare, that must have a term
// for its set of documents to be stored.
const setShare = 16

// keepSet stores the set of documents of a frequent term, and reports whether
// it did.
func (w *writer) keepSet(chunks []uint32) bool {
	if len(chunks) <= blockSize || len(chunks) < w.docs/setShare {
		return false
	}
	clear(w.set)
	n, last := 0, -1
	for _, c := range chunks {
		if d := int(w.docOfChunk[c]); d != last {
			w.set.Set(d)
			n, last = n+1, d
		}
	}
	if n < w.docs/setShare {
		return false
	}
	w.bytes = w.bytes[:0]
	for _, word := range w.set {
		w.bytes = le.AppendUint64(w.bytes, word)
	}
	w.keep(w.sets.Write(w.bytes))
	return true
}

// word adds a word as written: its documents in order, each number doubled,
// and one added if the word is in the title.
func (w *writer) word(name []byte, docs []uint32) {
	w.bytes = w.bytes[:0]
	before := uint32(0)
	for _, d := range docs {
		w.bytes = binary.AppendUvarint(w.bytes, uint64(d>>1-before)<<1|uint64(d&1))
		before = d >> 1
	}
	w.keep(w.wordDocs.Write(w.bytes))
	w.keep(w.words.add(name, len(docs), false, len(w.bytes), 0))
}

// finish writes the rest of the segment.
func (w *writer) finish() error {
	w.end() // of the postings
	w.spooled(w.positions)
	w.spooled(w.sets)
	for _, d := range []*dictionaryWriter{&w.terms, &w.words} {
		w.spooled(d.data)
		w.spooled(d.index)
	}
	w.spooled(w.wordDocs)
	footer := w.table
	for _, n := range []int{w.docs, w.chunks, w.terms.n, w.words.n} {
		footer = le.AppendUint32(footer, uint32(n))
	}
	for _, sum := range w.sums {
		footer = le.AppendUint64(footer, sum)
	}
	footer = le.AppendUint32(footer, crc32.Checksum(footer, castagnoli))
	w.write(append(footer, magic...))
	return w.err
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.out.Write(b)
	w.written += n
	if err != nil {
		w.fail(err)
	}
}

// begin begins a section, stream adds to it, and end ends it.
func (w *writer) begin() { w.start, w.sum = w.written, 0 }

func (w *writer) stream(b []byte) {
	w.sum = crc32.Update(w.sum, castagnoli, b)
	w.write(b)
}

func (w *writer) end() {
	w.table = le.AppendUint64(w.table, uint64(w.start))
	w.table = le.AppendUint64(w.table, uint64(w.written-w.start))
	w.table = le.AppendUint32(w.table, w.sum)
	var zeros [padding + align]byte
	w.write(zeros[:gapAfter(w.written)])
}

// section writes a whole section.
func (w *writer) section(b []byte) {
	w.begin()
	w.stream(b)
	w.end()
}

// spooled writes a section that is in a Spool.
func (w *writer) spooled(s Spool) {
	w.begin()
	if _, err := s.WriteTo(sectionWriter{w}); err != nil {
		w.fail(err)
	}
	w.end()
}

// A sectionWriter adds to the current section.
type sectionWriter struct{ w *writer }

func (s sectionWriter) Write(b []byte) (int, error) {
	s.w.stream(b)
	return len(b), s.w.err
}

// A dictionaryWriter makes a dictionary; see there.
type dictionaryWriter struct {
	data, index     Spool
	size            int // of data
	n               int
	sets, post, pos int // before the next term
	last            []byte
	entry           []byte // scratch
}

// add adds a term with its number of chunks or documents, whether it has a set
// of documents, and the sizes of its postings and positions. It returns the result
// of writing to the Spools.
func (d *dictionaryWriter) add(name []byte, df int, set bool, post, pos int) (int, error) {
	if d.n%termsInBlock == 0 {
		d.entry = le.AppendUint32(d.entry[:0], uint32(d.size))
		d.entry = le.AppendUint32(d.entry, uint32(d.sets))
		d.entry = le.AppendUint64(d.entry, uint64(d.post))
		d.entry = le.AppendUint64(d.entry, uint64(d.pos))
		if n, err := d.index.Write(d.entry); err != nil {
			return n, err
		}
		d.last = d.last[:0]
	}
	shared := 0
	for shared < min(len(d.last), len(name)) && d.last[shared] == name[shared] {
		shared++
	}
	d.entry = d.entry[:0]
	number := func(n int) { d.entry = binary.AppendUvarint(d.entry, uint64(n)) }
	number(shared)
	number(len(name) - shared)
	d.entry = append(d.entry, name[shared:]...)
	if set {
		number(df<<1 | 1)
		d.sets++
	} else {
		number(df << 1)
	}
	number(post)
	number(pos)
	d.post += post
	d.pos += pos
	d.n++
	d.last = append(d.last[:0], name...)
	d.size += len(d.entry)
	return d.data.Write(d.entry)
}
