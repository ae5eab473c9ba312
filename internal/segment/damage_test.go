package segment

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// small returns the bytes of a segment of n documents. If they are 12, it has terms
// of more than one block and sets of documents.
func small(t testing.TB, rnd *rand.Rand, n int) []byte {
	words := []string{"a", "ab", "abc", "b", "検索", "x1", "x2", "x3"}
	tokens := func(n int) (out []string) {
		for range n {
			out = append(out, words[min(rnd.IntN(len(words)), rnd.IntN(len(words)))])
		}
		return out
	}
	var docs []testDoc
	for i := range n {
		d := testDoc{row: int64(3 * i), title: tokens(i % 3), name: tokens(i % 2),
			words: map[string]bool{"Word": i%4 == 0}}
		for range 1 + 2*i {
			d.chunks = append(d.chunks, testChunk{tokens(i % 2), tokens(rnd.IntN(6))})
			if text := &d.chunks[len(d.chunks)-1].text; rnd.IntN(8) > 0 {
				*text = append(*text, "a")
			}
		}
		for _, w := range tokens(4) {
			d.words[w+string(rune('a'+rnd.IntN(9)))] = rnd.IntN(2) == 0
		}
		docs = append(docs, d)
	}
	return build(t, docs)
}

// isDamage reports whether err is a Damage of one of the segments, or of one
// that could not be opened.
func isDamage(err error, segments ...*Segment) bool {
	var d *Damage
	return errors.As(err, &d) && errors.Is(err, errkind.Corrupt) &&
		(d.Segment == nil && segments == nil || slices.Contains(segments, d.Segment))
}

func TestTruncated(t *testing.T) {
	data := small(t, rand.New(rand.NewPCG(1, 2)), 12)
	for n := range data {
		if _, err := Open(data[:n:n]); !isDamage(err) {
			t.Fatalf("Open of the first %d bytes of %d: %v", n, len(data), err)
		}
		if _, err := Open(data[n+1:]); !isDamage(err) {
			t.Fatalf("Open of the last %d bytes of %d: %v", len(data)-n-1, len(data), err)
		}
	}
}

func TestFlippedBytes(t *testing.T) {
	data := small(t, rand.New(rand.NewPCG(1, 2)), 12)
	open(t, data)
	for i := range data {
		for _, bit := range []byte{1, 0x80, 0xff} {
			data[i] ^= bit
			s, err := Open(data)
			if err != nil && !isDamage(err) || err == nil && !isDamage(s.Verify(), s) {
				t.Errorf("the bits %#x of byte %d of %d are flipped: Open returned %v, Verify no damage", bit, i,
					len(data), err)
			}
			data[i] ^= bit
		}
	}
}

// repair sets the checksums of a segment to those of its bytes, if its footer
// is there. It leaves the checksums of sections that are outside the segment.
func repair(data []byte) {
	if len(data) < footerSize+len(magic) {
		return
	}
	copy(data, magic)
	copy(data[len(data)-len(magic):], magic)
	footer := data[len(data)-footerSize:]
	for i := range sectionCount {
		off, size := le.Uint64(footer[20*i:]), le.Uint64(footer[20*i+8:])
		if off <= uint64(len(data)) && size <= uint64(len(data))-off {
			le.PutUint32(footer[20*i+16:], crc32.Checksum(data[off:off+size], castagnoli))
		}
	}
	end := len(footer) - len(magic) - 4
	le.PutUint32(footer[end:], crc32.Checksum(footer[:end], castagnoli))
}

// limited is a spool and a writer that fails if it gets too much.
type limited struct {
	bytes.Buffer
	t    testing.TB
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		l.t.Fatal("too much is written")
	}
	return l.Buffer.Write(b)
}

func (l *limited) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(l.Bytes())
	return int64(n), err
}

// exercise calls everything that reads a segment which may be damaged. The
// segment is searched alone and with another one.
func exercise(t testing.TB, data []byte, other *Segment) {
	s, err := Open(data)
	if err != nil {
		if !isDamage(err) {
			t.Fatalf("Open: %v", err)
		}
		return
	}
	ctx := context.Background()
	damage := false
	check := func(name string, err error) {
		t.Helper()
		if err == nil {
			return
		}
		if damage = true; !isDamage(err, s) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	check("Verify", s.Verify())
	pair := []*Segment{other, s}
	none := []Bits{nil, nil}
	c := NewCollection(pair, none)
	some := NewBits(s.Docs())
	for d := 0; d < s.Docs(); d += 3 {
		some.Set(d)
	}
	for _, prefix := range []string{"", "a", "x", "検"} {
		n := 0
		check("WordsWith", c.WordsWith(ctx, prefix, func(w Word) bool { n += len(w.Text); return n < 1<<20 }))
	}
	for _, word := range []string{"ab", "x1", "検索", ""} {
		_, err := c.WordsNear(ctx, word, 1, 10)
		check("WordsNear", err)
		d, err := c.WordDocs(word, false)
		if check("WordDocs", err); err == nil {
			_, err = c.RowsOf(d)
			check("RowsOf", err)
		}
	}
	_, err = c.Rows([]int64{0, 1, 3, 6, 9, 1 << 40})
	check("Rows", err)
	_, err = c.RowsOf(c.All())
	check("RowsOf", err)
	all := searches(t, c, nil, check)
	searches(t, NewCollection(pair, []Bits{nil, some}), all, check)

	if _, err := Merge(ctx, &limited{t: t, left: 64*len(data) + 1<<20},
		func() Spool { return &limited{t: t, left: 64*len(data) + 1<<20} }, []*Segment{s}, none[:1]); err != nil {
		check("Merge", err)
	}
	var out bytes.Buffer
	_, err = Merge(ctx, &out, InMemory, pair, []Bits{nil, some})
	if check("Merge", err); err != nil {
		return
	}
	// What Merge accepts it writes well: everything can read it.
	m, err := Open(out.Bytes())
	if err != nil {
		t.Fatalf("Open of a merged segment: %v", err)
	}
	if err := m.Verify(); err != nil {
		t.Fatalf("Verify of a merged segment: %v", err)
	}
	if !damage {
		searches(t, NewCollection([]*Segment{m}, none[:1]), nil, func(name string, err error) {
			if err != nil {
				t.Fatalf("%s of a merged segment: %v", name, err)
			}
		})
	}
}

// searches runs a query of every kind and calls check with the errors. It
// returns the documents of one.
func searches(t testing.TB, c *Collection, within Docs, check func(name string, err error)) Docs {
	ctx := context.Background()
	s := c.Begin()
	defer s.End()
	one := func(token string) Pattern { return Pattern{Tokens: []string{token}} }
	var found Docs
	for _, query := range [][][]Pattern{
		{{one("a")}},
		{{one("a")}, {one("b")}, {one("x1")}, {one("検索")}},
		{{one("a"), one("ab")}},
		{{{Tokens: []string{"a"}, Prefix: true}}, {one("a")}},
		{{{Tokens: []string{""}, Prefix: true}}},
		{{{Tokens: []string{"a", "a"}}}, {{Tokens: []string{"a", "b"}}}},
		{{{Tokens: []string{"a", "ab", "a"}, Slop: 3}}},
		{{{Tokens: []string{"a", ""}, Prefix: true}, one("x1")}},
	} {
		for _, fields := range []Fields{AllFields, Only(Title), Only(Text)} {
			var leaves []*Leaf
			for _, patterns := range query {
				l, err := s.Leaf(ctx, fields, patterns...)
				if check("Leaf", err); err != nil {
					continue
				}
				leaves = append(leaves, l)
				d, err := s.Docs(ctx, l)
				if check("Docs", err); err == nil {
					found = d
					_, err = c.RowsOf(d)
					check("RowsOf", err)
				}
			}
			for _, k := range []int{1, 1000} {
				hits, err := s.Top(ctx, leaves, within, k)
				check("Top", err)
				if len(hits) > k {
					t.Fatalf("%d hits, want %d at most", len(hits), k)
				}
			}
		}
	}
	return found
}

// TestDamagedNumbers changes bytes of a segment whose checksums are right.
// FuzzSegment does the same with more bytes.
func TestDamagedNumbers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds under the race detector, and has one goroutine")
	}
	data := small(t, rand.New(rand.NewPCG(1, 2)), 12)
	other := open(t, small(t, rand.New(rand.NewPCG(3, 4)), 12))
	rnd := rand.New(rand.NewPCG(5, 6))
	exercise(t, data, other)
	for i := 0; i < len(data); i += 1 + rnd.IntN(120) {
		changed := bytes.Clone(data)
		changed[i] ^= byte(1 + rnd.IntN(255))
		repair(changed)
		exercise(t, changed, other)
	}
}

// TestInconsistent changes single numbers of a segment whose checksums are
// right, so that they contradict others.
func TestInconsistent(t *testing.T) {
	original := small(t, rand.New(rand.NewPCG(1, 2)), 12)
	// postings returns the postings of "a", which has several blocks.
	postings := func(s *Segment) []byte {
		e, ok := s.terms.find("a")
		if !ok || e.df <= blockSize || e.df > 2*blockSize {
			t.Fatalf("the term has %d postings", e.df)
		}
		return s.postings[e.post:]
	}
	merge := func(s *Segment) error {
		_, err := Merge(t.Context(), io.Discard, InMemory, []*Segment{s}, []Bits{nil})
		return err
	}
	top := func(s *Segment) error {
		some := NewBits(s.Docs())
		some.Set(0)
		search := NewCollection([]*Segment{s}, []Bits{some}).Begin()
		defer search.End()
		l, err := search.Leaf(t.Context(), AllFields, Pattern{Tokens: []string{"a"}})
		if err == nil {
			_, err = search.Top(t.Context(), []*Leaf{l}, nil, 1)
		}
		return err
	}
	words := func(s *Segment) error {
		return NewCollection([]*Segment{s}, []Bits{nil}).WordsWith(t.Context(), "", func(Word) bool { return true })
	}
	for _, tt := range []struct {
		name   string
		change func(s *Segment, footer []byte)
		do     func(s *Segment) error
	}{
		{"the first document does not begin with the first chunk",
			func(s *Segment, _ []byte) { le.PutUint32(s.starts, 1) }, merge},
		{"a document begins before the one before", func(s *Segment, _ []byte) { le.PutUint32(s.starts[4*3:], 0) },
			merge},
		{"a document begins behind all chunks", func(s *Segment, _ []byte) { le.PutUint32(s.starts[4*1:], noChunk) },
			top},
		{"the documents end before the chunks", func(s *Segment, _ []byte) { le.PutUint32(s.starts[4*s.docs:], uint32(s.start(s.docs)-1)) }, merge},
		{"rows do not rise", func(s *Segment, _ []byte) { le.PutUint64(s.rows[8*2:], uint64(s.row(1))) }, merge},
		{"a row is negative", func(s *Segment, _ []byte) { le.PutUint64(s.rows, 1<<63) }, merge},
		{"the last block has another last chunk", func(s *Segment, _ []byte) {
			p := postings(s)
			le.PutUint32(p[skipEntry:], le.Uint32(p[skipEntry:])-1)
		}, top},
		{"chunks of a block do not rise", func(s *Segment,
			_ []byte) { // a gap that leads back, and one that leads ahead
			p := postings(s)
			block := p[2*skipEntry:]
			block[0] = 32
			le.PutUint32(block[5:], noChunk-1)
		}, merge},
		{"a frequency does not match the positions", func(s *Segment, _ []byte) {
			block := postings(s)[2*skipEntry:]
			if block[1]&0x7f < 2 {
				t.Fatal("the frequencies have less than two bits")
			}
			at := 2 + packedSize(blockSize, uint(block[0]))
			if block[1]&0x80 != 0 {
				at += 3
			}
			block[at] = 0
		}, merge},
		{"positions of a block begin elsewhere", func(s *Segment, _ []byte) {
			p := postings(s)[skipEntry+8:]
			le.PutUint32(p, le.Uint32(p)-1)
		}, merge},
		{"postings of a block of terms overlap others",
			func(s *Segment, _ []byte) { le.PutUint64(s.words.index[indexEntry+8:], 0) }, words},
		{"terms are not sorted", func(s *Segment, _ []byte) { // the second term of one letter
			s.terms.data[2] = 'z'
		}, merge},
		{"words are not sorted", func(s *Segment, _ []byte) { s.words.data[2] = 'z' }, words},
		{"a term shares more than there is", func(s *Segment, _ []byte) { s.words.data[0] = 9 }, words},
		{"a word has more documents than there are", func(s *Segment, _ []byte) {
			_, n := uvarint(s.words.data)
			size, b := uvarint(n)
			b[size] = 0x7e
		}, words},
		{"two sections are one", func(_ *Segment, footer []byte) { copy(footer[20*secPositions:], footer[20*secPostings:][:16]) }, nil},
		{"a section begins late", func(_ *Segment, footer []byte) {
			f := footer[20*secWordDocs:]
			le.PutUint64(f, le.Uint64(f)+1)
			le.PutUint64(f[8:], le.Uint64(f[8:])-1)
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := bytes.Clone(original)
			tt.change(open(t, data), data[len(data)-footerSize:])
			repair(data)
			s, err := Open(data)
			if tt.do == nil {
				if !isDamage(err) {
					t.Errorf("Open: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- tt.do(s) }()
			select {
			case err := <-done:
				if !isDamage(err, s) {
					t.Errorf("no damage is reported, but %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Error("it does not end")
			}
		})
	}
}
