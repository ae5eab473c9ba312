// Package segment implements immutable pieces of a full-text index.
//
// A [Builder] gathers documents in memory and writes a segment of them; [Merge]
// makes one segment of several. An open [Segment] reads from one byte slice,
// which may be a mapped file. A [Collection] searches several segments as one.
//
// A document consists of chunks, which are what a search ranks. A chunk has
// tokens in four fields. The ranking is BM25F: the frequencies of a term in the
// fields of a chunk are weighed, divided by the relative lengths of the fields,
// and summed.
//
// The bytes of a segment are not trusted. A segment that is damaged gives an
// error of kind Corrupt (see [Damage]), even where the damage is found in the
// middle of a search.
package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"runtime"
	"runtime/debug"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Version is the version of the file format. It is incremented whenever the
// format or a constant of the ranking that is part of it changes. A segment of
// another version cannot be opened.
const Version = 1

// A Field is a part of a chunk.
type Field int

// The fields. Title and Name belong to the document and are the same for all
// of its chunks.
const (
	Title   Field = iota
	Name          // of the file
	Heading       // path of the headings above the chunk
	Text
	fieldCount
)

// Fields is a set of fields: bit f is set if field f is in the set.
type Fields uint8

// AllFields has every field.
const AllFields Fields = 1<<fieldCount - 1

// Only returns the set of one field.
func Only(f Field) Fields { return 1 << f }

// maxLength is the greatest length of a field that the ranking distinguishes.
const maxLength = 4095

// The sections of a segment. Numbers are little-endian.
const (
	secRows      = iota // 8 bytes a document: its row
	secStarts           // 4 bytes a document, and 4 more: its first chunk
	secTitles           // 8 bytes a document: hash of the tokens of its title
	secDocOf            // 4 bytes a chunk: its document
	secLengths          // 4 times 2 bytes a chunk: tokens in each field
	secPostings         // of each term: see writer.term
	secPositions        // of each term: varints
	secSets             // the documents of frequent terms, as bits
	secTerms            // dictionary of the tokens
	secTermIndex        // where the blocks of the dictionary begin
	secWords            // dictionary of the words as written
	secWordIndex
	secWordDocs // documents of each word
	sectionCount
)

// A segment begins with magic, and ends with a footer that has a fixed size:
// offset, size and checksum of each section, the numbers of documents, chunks,
// tokens and words, the sums of the lengths of the fields, the checksum of the
// footer, and magic.
const (
	magic      = "KHsegm\x00\x01"
	footerSize = sectionCount*20 + 4*4 + int(fieldCount)*8 + 4 + len(magic)
	padding    = readAhead // zeros after each section, at least; see gapAfter
	align      = 8
)

var le = binary.LittleEndian

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Segment is an open segment. It is immutable and safe for concurrent use.
type Segment struct {
	data   []byte
	docs   int
	chunks int
	sums   [fieldCount]uint64

	// avg are the averages of the lengths that the bounds of the scores of
	// this segment were computed with.
	avg [fieldCount]float32

	rows, starts, titles, docOf, lengths []byte
	postings, positions                  []byte // up to the end of the data: unpack reads ahead
	sets                                 []byte
	terms, words                         dictionary
	wordDocs                             []byte
}

// Damage is an error of kind Corrupt about one segment.
type Damage struct {
	Segment *Segment // nil if the segment could not be opened
	Reason  string
}

// Error returns a message with the reason.
func (e *Damage) Error() string { return "the search segment is damaged: " + e.Reason }

// Unwrap makes a Damage an error of kind Corrupt.
func (e *Damage) Unwrap() error { return errkind.Corrupt }

// A damaged is the value that functions of this package panic with if they read values
// that cannot be right. Catch turns it into a Damage.
type damaged string

// catch turns a failed bounds check, or a fault in mapped memory, into damage
// of the segment that *s points to. A search sets debug.SetPanicOnFault.
func catch(s **Segment, err *error) {
	switch r := recover().(type) {
	case nil:
	case runtime.Error:
		*err = &Damage{Segment: *s, Reason: r.Error()}
	case damaged:
		*err = &Damage{Segment: *s, Reason: string(r)}
	default:
		panic(r)
	}
}

// faults makes faults in mapped memory panic until the returned function is
// called.
func faults() (restore func()) {
	old := debug.SetPanicOnFault(true)
	return func() { debug.SetPanicOnFault(old) }
}

// Open returns the segment in data, which must not change while the segment is
// used. It checks the footer; [Segment.Verify] checks the rest.
func Open(data []byte) (s *Segment, err error) {
	var none *Segment
	defer catch(&none, &err)
	defer faults()()
	bad := func(format string, args ...any) (*Segment, error) {
		return nil, &Damage{Reason: fmt.Sprintf(format, args...)}
	}
	if len(data) < len(magic)+footerSize || string(data[:len(magic)]) != magic ||
		string(data[len(data)-len(magic):]) != magic {
		return bad("it is truncated, or not a segment of version %d", Version)
	}
	footer := data[len(data)-footerSize : len(data)-len(magic)]
	sum := footer[len(footer)-4:]
	footer = footer[:len(footer)-4]
	if crc32.Checksum(footer, castagnoli) != le.Uint32(sum) {
		return bad("the checksum of the footer is wrong")
	}
	s = &Segment{data: data}
	var sec [sectionCount][]byte
	at, end := len(magic), len(data)-footerSize
	for i := range sec {
		off, size := le.Uint64(footer[20*i:]), le.Uint64(footer[20*i+8:])
		if off != uint64(at) || size > uint64(end-at) || int(size)+gapAfter(at+int(size)) > end-at {
			return bad("section %d is not where it should be", i)
		}
		sec[i] = data[at : at+int(size)]
		at += int(size) + gapAfter(at+int(size))
	}
	if at != end {
		return bad("there are %d bytes behind the sections", end-at)
	}
	counts := footer[20*sectionCount:]
	s.docs, s.chunks = int(le.Uint32(counts)), int(le.Uint32(counts[4:]))
	for f := range s.sums {
		s.sums[f] = le.Uint64(counts[16+8*f:])
	}
	s.avg = averages(s.sums, s.chunks)
	s.rows, s.starts, s.titles, s.docOf, s.lengths = sec[secRows], sec[secStarts], sec[secTitles], sec[secDocOf],
		sec[secLengths]
	s.postings = data[le.Uint64(footer[20*secPostings:]):]
	s.positions = sec[secPositions]
	s.sets, s.wordDocs = sec[secSets], sec[secWordDocs]
	s.terms = dictionary{data: sec[secTerms], index: sec[secTermIndex], n: int(le.Uint32(counts[8:])), most: s.chunks}
	s.words = dictionary{data: sec[secWords], index: sec[secWordIndex], n: int(le.Uint32(counts[12:])), most: s.docs}
	if len(s.rows) != 8*s.docs || len(s.titles) != 8*s.docs || len(s.starts) != 4*s.docs+4 ||
		len(s.docOf) != 4*s.chunks || len(s.lengths) != 8*s.chunks ||
		!s.terms.plausible() || !s.words.plausible() {
		return bad("its numbers of documents, chunks and terms do not match its sections")
	}
	return s, nil
}

// averages returns the average lengths of the fields, at least 1 each.
func averages(sums [fieldCount]uint64, chunks int) (avg [fieldCount]float32) {
	for f := range avg {
		avg[f] = max(float32(float64(sums[f])/float64(max(chunks, 1))), 1)
	}
	return avg
}

// gapAfter returns the number of zeros between a section that ends at a
// position and the next section.
func gapAfter(end int) int { return padding + (align-end%align)%align }

// verifiedPiece is how many bytes VerifyPieces reads at once.
const verifiedPiece = 8 << 20

// Verify compares the checksums of the footer and of all sections, and the bytes
// between them. The bytes may have changed since Open.
func (s *Segment) Verify() error { return s.VerifyPieces(func() {}) }

// VerifyPieces is Verify. It calls f after each few megabytes that it has read.
func (s *Segment) VerifyPieces(f func()) (err error) {
	defer catch(&s, &err)
	defer faults()()
	if _, err := Open(s.data); err != nil {
		if d, ok := errors.AsType[*Damage](err); ok {
			d.Segment = s
		}
		return err
	}
	footer := s.data[len(s.data)-footerSize:]
	for i := range sectionCount {
		off, size := le.Uint64(footer[20*i:]), le.Uint64(footer[20*i+8:])
		sum := uint32(0)
		for rest := s.data[off : off+size]; len(rest) > 0; {
			piece := rest[:min(len(rest), verifiedPiece)]
			sum, rest = crc32.Update(sum, castagnoli, piece), rest[len(piece):]
			f()
		}
		if sum != le.Uint32(footer[20*i+16:]) {
			return &Damage{Segment: s, Reason: fmt.Sprintf("the checksum of section %d is wrong", i)}
		}
		for _, b := range s.data[off+size:][:gapAfter(int(off+size))] {
			if b != 0 {
				return &Damage{Segment: s, Reason: fmt.Sprintf("section %d is not followed by zeros", i)}
			}
		}
	}
	return nil
}

// Docs returns the number of documents, those that were deleted since included.
func (s *Segment) Docs() int { return s.docs }

// Chunks returns the number of chunks.
func (s *Segment) Chunks() int { return s.chunks }

// Size returns the size in bytes.
func (s *Segment) Size() int { return len(s.data) }

// Rows calls f with the documents, numbers from 0, and their rows, which rise.
// The error is a Damage.
func (s *Segment) Rows(f func(d int, row int64)) (err error) {
	defer catch(&s, &err)
	defer faults()()
	for d := range s.docs {
		f(d, s.row(d))
	}
	return nil
}

// HasPrefix reports whether a token begins with prefix. The error is a Damage.
func (s *Segment) HasPrefix(prefix string) (ok bool, err error) {
	defer catch(&s, &err)
	defer faults()()
	w := s.terms.walk()
	w.seek([]byte(prefix))
	return w.under([]byte(prefix)), nil
}

// Find returns the document with a row, -1 if there is none. The error is a
// Damage.
func (s *Segment) Find(row int64) (d int, err error) {
	defer catch(&s, &err)
	defer faults()()
	if d, ok := s.docOfRow(row); ok {
		return d, nil
	}
	return -1, nil
}

// row returns the row of document d.
func (s *Segment) row(d int) int64 { return int64(le.Uint64(s.rows[8*d:])) }

// docOfRow returns the document with a row.
func (s *Segment) docOfRow(row int64) (d int, ok bool) {
	lo, hi := 0, s.docs
	for lo < hi {
		if m := (lo + hi) / 2; s.row(m) < row {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo, lo < s.docs && s.row(lo) == row
}

// start returns the first chunk of document d.
func (s *Segment) start(d int) int { return int(le.Uint32(s.starts[4*d:])) }

// doc returns the document of a chunk.
func (s *Segment) doc(chunk uint32) int { return int(le.Uint32(s.docOf[4*chunk:])) }

// lengthsOf returns the lengths of the fields of a chunk, 16 bits for each.
func (s *Segment) lengthsOf(chunk uint32) uint64 {
	return le.Uint64(s.lengths[8*chunk:])
}

// length returns the length of a field of a chunk.
func (s *Segment) length(chunk uint32, f Field) int {
	return int(le.Uint16(s.lengths[8*int(chunk)+2*int(f):]))
}

// titleHash returns the hash of the tokens of the title of document d.
func (s *Segment) titleHash(d int) uint64 { return le.Uint64(s.titles[8*d:]) }

// hashTokens returns a hash of a sequence of tokens, 0 for none (FNV-1a).
func hashTokens(tokens []string) uint64 {
	if len(tokens) == 0 {
		return 0
	}
	h := uint64(14695981039346656037)
	for _, t := range tokens {
		for i := range len(t) {
			h = (h ^ uint64(t[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	return max(h, 1)
}

// noChunk is behind the last chunk.
const noChunk = math.MaxUint32
