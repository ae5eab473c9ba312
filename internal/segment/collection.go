package segment

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/relevance"
)

// A Collection is several segments that are searched as one. The document
// frequencies and the average lengths that the ranking uses are sums over the
// segments of the collection, deleted documents included. A Collection is
// immutable and safe for concurrent use.
type Collection struct {
	segments []*Segment
	live     []Bits // nil if no document is deleted
	chunks   int
	norms    *norms
	grow     []float32 // of each segment: bounds of frequencies are multiplied with it
	searches sync.Pool // of *Search
}

// NewCollection returns a collection of segments. A set of deleted documents
// may be nil. The sets must not change while the collection is used.
func NewCollection(segments []*Segment, deleted []Bits) *Collection {
	c := &Collection{segments: segments}
	var sums [fieldCount]uint64
	for i, s := range segments {
		c.chunks += s.chunks
		for f := range sums {
			sums[f] += s.sums[f]
		}
		var live Bits
		if deleted[i] != nil {
			live = NewBits(s.docs)
			live.fill(s.docs)
			live.AndNot(deleted[i])
		}
		c.live = append(c.live, live)
	}
	avg := averages(sums, c.chunks)
	c.norms = newNorms(avg)
	for _, s := range segments {
		// The bounds in a segment were computed with its own averages. Other
		// averages can raise a frequency by no more than their ratio.
		grow := float32(1)
		for f := range avg {
			grow = max(grow, avg[f]/s.avg[f])
		}
		c.grow = append(c.grow, grow*(1+1e-5))
	}
	c.searches.New = func() any { return &Search{c: c} }
	return c
}

// Len returns the number of segments.
func (c *Collection) Len() int { return len(c.segments) }

// Segment returns segment i.
func (c *Collection) Segment(i int) *Segment { return c.segments[i] }

// Chunks returns the number of chunks, those of deleted documents included.
func (c *Collection) Chunks() int { return c.chunks }

// Live returns the documents of segment i that are not deleted, nil if none is
// deleted. The set must not be changed.
func (c *Collection) Live(i int) Bits { return c.live[i] }

// idf returns the weight of a term that df chunks have (BM25).
func (c *Collection) idf(df int) float32 {
	return float32(relevance.IDF(c.chunks, df))
}

// Docs is a set of documents of a collection: one set for each segment. The
// zero Docs is empty.
type Docs []Bits

// None returns an empty set.
func (c *Collection) None() Docs { return make(Docs, len(c.segments)) }

// All returns the set of all documents that are not deleted.
func (c *Collection) All() Docs {
	d := c.None()
	for i, s := range c.segments {
		d[i] = NewBits(s.docs)
		if d[i].fill(s.docs); c.live[i] != nil {
			d[i].And(c.live[i])
		}
	}
	return d
}

// Rows returns the set of the documents with some rows, which are sorted. Rows
// that the collection does not have, and rows of deleted documents, are ignored.
func (c *Collection) Rows(rows []int64) (d Docs, err error) {
	var current *Segment
	defer catch(&current, &err)
	defer faults()()
	d = c.None()
	for i, s := range c.segments {
		current = s
		if s.docs == 0 {
			continue
		}
		d[i] = NewBits(s.docs)
		from, _ := slices.BinarySearch(rows, s.row(0))
		last := s.row(s.docs - 1)
		for _, row := range rows[from:] {
			if row > last {
				break
			}
			if doc, ok := s.docOfRow(row); ok && (c.live[i] == nil || c.live[i].Has(doc)) {
				d[i].Set(doc)
			}
		}
	}
	return d, nil
}

// Count returns the number of documents.
func (d Docs) Count() (n int) {
	for _, b := range d {
		n += b.Count()
	}
	return n
}

// Or adds the documents of o. The sets that d is made of may be shared with o
// afterwards.
func (d Docs) Or(o Docs) {
	for i := range d {
		switch {
		case o[i] == nil:
		case d[i] == nil:
			d[i] = o[i]
		default:
			d[i].Or(o[i])
		}
	}
}

// And removes the documents that are not in o.
func (d Docs) And(o Docs) {
	for i := range d {
		switch {
		case d[i] == nil:
		case o[i] == nil:
			d[i] = nil
		default:
			d[i].And(o[i])
		}
	}
}

// AndNot removes the documents of o.
func (d Docs) AndNot(o Docs) {
	for i := range d {
		if d[i] != nil && o[i] != nil {
			d[i].AndNot(o[i])
		}
	}
}

// Clone returns a copy.
func (d Docs) Clone() Docs {
	out := make(Docs, len(d))
	for i := range d {
		out[i] = slices.Clone(d[i])
	}
	return out
}

// Has reports whether document doc of a segment is in the set.
func (d Docs) Has(segment, doc int) bool { return d[segment] != nil && d[segment].Has(doc) }

// RowsOf returns the rows of the documents in a set, sorted.
func (c *Collection) RowsOf(d Docs) (rows []int64, err error) {
	var current *Segment
	defer catch(&current, &err)
	defer faults()()
	rows = make([]int64, 0, d.Count())
	for i, b := range d {
		current = c.segments[i]
		for doc := b.Next(0); doc >= 0; doc = b.Next(doc + 1) {
			rows = append(rows, current.row(doc))
		}
	}
	slices.Sort(rows)
	return rows, nil
}

// A Word is a word as people write it, and the number of documents that have
// it, deleted documents included.
type Word struct {
	Text string
	Docs int
}

// WordsWith calls f with the words that begin with prefix, in order, until f
// returns false.
func (c *Collection) WordsWith(ctx context.Context, prefix string, f func(Word) bool) (err error) {
	var current *Segment
	defer catch(&current, &err)
	defer faults()()
	m := merged{}
	for _, s := range c.segments {
		current = s
		w := s.words.walk()
		w.seek([]byte(prefix))
		m.add(w)
	}
	for n := 0; ; n++ {
		if n%mergedTerms == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		docs := 0
		if !m.next(func(i int, w *walker) { current = c.segments[i]; docs += w.df }) {
			return nil
		}
		if len(m.name) < len(prefix) || string(m.name[:len(prefix)]) != prefix || !f(Word{string(m.name), docs}) {
			return nil
		}
	}
}

// WordsNear returns up to most words (0: all) at a distance of at most edits from word:
// the nearest first, of those the words of the most documents. The distance
// counts inserted, deleted and replaced characters and swapped neighbours. Words
// with a character of a script with thousands of characters, such as Han, are
// only found if word has one, too.
func (c *Collection) WordsNear(ctx context.Context, word string, edits, most int) (words []Word, err error) {
	var current *Segment
	defer catch(&current, &err)
	defer faults()()
	type near struct{ distance, docs int }
	found := map[string]near{}
	for _, s := range c.segments {
		current = s
		s.words.near(word, edits, func(w *walker, distance int) bool {
			found[string(w.name)] = near{distance, found[string(w.name)].docs + w.df}
			return ctx.Err() == nil
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	for text, n := range found {
		words = append(words, Word{text, n.docs})
	}
	slices.SortFunc(words, func(a, b Word) int {
		return cmp.Or(cmp.Compare(found[a.Text].distance, found[b.Text].distance), cmp.Compare(b.Docs, a.Docs),
			cmp.Compare(a.Text, b.Text))
	})
	if most == 0 {
		return words, nil
	}
	return words[:min(len(words), most)], nil
}

// WordDocs returns the documents that have a word as written, those that have
// it in the title if inTitle is true.
func (c *Collection) WordDocs(word string, inTitle bool) (d Docs, err error) {
	var current *Segment
	defer catch(&current, &err)
	defer faults()()
	d = c.None()
	for i, s := range c.segments {
		current = s
		e, ok := s.words.find(word)
		if !ok {
			continue
		}
		d[i] = NewBits(s.docs)
		s.wordDocuments(e, func(doc int, title bool) {
			if title || !inTitle {
				d[i].Set(doc)
			}
		})
		if c.live[i] != nil {
			d[i].And(c.live[i])
		}
	}
	return d, nil
}

// wordDocuments calls f with the documents of a word.
func (s *Segment) wordDocuments(e entry, f func(d int, inTitle bool)) {
	b := s.wordDocs[e.post : e.post+e.postSize]
	d := 0
	for i := range e.df {
		var n int
		n, b = uvarint(b)
		if n>>1 == 0 && i > 0 || n>>1 >= s.docs-d {
			panic(damaged("a word has a document that does not exist, or has it twice"))
		}
		d += n >> 1
		f(d, n&1 != 0)
	}
}
