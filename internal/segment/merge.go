package segment

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
)

// Merge writes one segment of several, without deleted documents. A set of
// deleted documents may be nil. The rows of the documents of all segments must
// differ, those that are deleted excepted. Merge keeps the columns in memory, and
// the postings of one term at a time. spool returns an empty [Spool] for the rest.
func Merge(ctx context.Context, out io.Writer, spool func() Spool, segments []*Segment, deleted []Bits) (size int64,
	err error) {
	return mergeParts(ctx, out, spool, segments, deleted, nil)
}

// mergeParts is Merge. If rows is not nil, the row of a document is an index in rows,
// and documents with the same row are parts of one document: its chunks are in the
// order of the segments.
func mergeParts(ctx context.Context, out io.Writer, spool func() Spool, segments []*Segment, deleted []Bits,
	rows []int64) (size int64, err error) {
	m := merger{segments: segments, rows: rows}
	m.w.to(out, spool)
	defer catch(&m.current, &err)
	defer faults()()
	m.documents(deleted)
	m.w.columns()
	if err := m.terms(ctx); err != nil {
		return 0, err
	}
	if err := m.words(ctx); err != nil {
		return 0, err
	}
	err = m.w.finish()
	return int64(m.w.written), err
}

// A merger is the state of one call of Merge.
type merger struct {
	w        writer
	segments []*Segment
	rows     []int64    // see mergeParts
	current  *Segment   // the segment that is being read
	chunks   [][]uint32 // new numbers of the chunks of each segment, noChunk for deleted ones
	docs     [][]uint32 // new numbers of the documents, noChunk for deleted ones
}

// documents writes the documents that are not deleted, in the order of their
// rows.
func (m *merger) documents(deleted []Bits) {
	next := make([]int, len(m.segments)) // document of each segment
	last := int64(-1)                    // row of the document that was written last
	for i, s := range m.segments {
		m.current = s
		s.checkDocuments()
		m.chunks = append(m.chunks, make([]uint32, s.chunks))
		m.docs = append(m.docs, make([]uint32, s.docs))
		next[i] = m.skipDeleted(i, 0, deleted[i])
	}
	for {
		least := -1
		for i, s := range m.segments {
			m.current = s
			if next[i] < s.docs && (least < 0 || s.row(next[i]) < m.segments[least].row(next[least])) {
				least = i
			}
		}
		if least < 0 {
			return
		}
		s, d := m.segments[least], next[least]
		m.current = s
		row := s.row(d)
		switch {
		case m.rows == nil:
			m.w.document(row, s.titleHash(d))
		case row != last:
			m.w.document(m.rows[row], s.titleHash(d))
		}
		last = row
		m.docs[least][d] = uint32(m.w.docs - 1)
		for c := s.start(d); c < s.start(d+1); c++ {
			m.chunks[least][c] = uint32(m.w.chunks)
			var lengths [fieldCount]int
			for f := range lengths {
				lengths[f] = s.length(uint32(c), Field(f))
			}
			m.w.chunk(lengths)
		}
		next[least] = m.skipDeleted(least, d+1, deleted[least])
	}
}

// checkDocuments panics if the chunks of the documents do not follow each other,
// or the rows do not rise. Otherwise a merged segment would be wrong as well,
// with checksums that are right.
func (s *Segment) checkDocuments() {
	row, chunk := int64(-1), 0
	for d := range s.docs {
		if s.row(d) <= row {
			panic(damaged("the rows of its documents do not rise"))
		}
		if s.start(d) != chunk || s.start(d+1) < chunk || s.start(d+1) > s.chunks {
			panic(damaged("the chunks of its documents do not follow each other"))
		}
		for row = s.row(d); chunk < s.start(d+1); chunk++ {
			if s.doc(uint32(chunk)) != d {
				panic(damaged("a chunk has another document"))
			}
		}
	}
	if s.start(s.docs) != s.chunks || chunk != s.chunks {
		panic(damaged("a chunk has no document"))
	}
}

// skipDeleted returns the first document of a segment from d on that is not
// deleted.
func (m *merger) skipDeleted(segment, d int, deleted Bits) int {
	s := m.segments[segment]
	m.current = s
	for ; deleted != nil && d < s.docs && deleted.Has(d); d++ {
		m.docs[segment][d] = noChunk
		for c := s.start(d); c < s.start(d+1); c++ {
			m.chunks[segment][c] = noChunk
		}
	}
	return d
}

// A merged walks over dictionaries of several segments as one.
type merged struct {
	walkers []*walker
	heads   []uint64 // of their terms; see head
	order   []int    // the walkers that have a term, as a heap with the least term first
	name    []byte
}

// walk returns a walk over one of the dictionaries of each segment.
func (m *merger) walk(of func(s *Segment) *dictionary) *merged {
	walk := &merged{}
	for _, s := range m.segments {
		m.current = s
		w := of(s).walk()
		w.next()
		walk.add(w)
	}
	return walk
}

// add adds a walker, which is at its first term.
func (m *merged) add(w *walker) {
	m.walkers = append(m.walkers, w)
	m.heads = append(m.heads, head(w.name))
	if !w.ok {
		return
	}
	m.order = append(m.order, len(m.walkers)-1)
	for i := len(m.order) - 1; i > 0 && m.less(m.order[i], m.order[(i-1)/2]); i = (i - 1) / 2 {
		m.order[i], m.order[(i-1)/2] = m.order[(i-1)/2], m.order[i]
	}
}

// less reports whether walker i comes before walker j: its term is less, or it was
// added before.
func (m *merged) less(i, j int) bool {
	if m.heads[i] != m.heads[j] {
		return m.heads[i] < m.heads[j]
	}
	if c := bytes.Compare(m.walkers[i].name, m.walkers[j].name); c != 0 {
		return c < 0
	}
	return i < j
}

// next finds the next term and calls f with each walker that is at it, in the
// order in which they were added.
func (m *merged) next(f func(segment int, w *walker)) bool {
	if len(m.order) == 0 {
		return false
	}
	m.name = append(m.name[:0], m.walkers[m.order[0]].name...)
	h := m.heads[m.order[0]]
	for len(m.order) > 0 {
		i := m.order[0]
		w := m.walkers[i]
		if m.heads[i] != h || string(w.name) != string(m.name) {
			break
		}
		f(i, w)
		if w.next() {
			m.heads[i] = head(w.name)
		} else {
			last := len(m.order) - 1
			m.order[0] = m.order[last]
			m.order = m.order[:last]
		}
		m.sink()
	}
	return true
}

// sink moves the first walker of the heap to its place.
func (m *merged) sink() {
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.order); child++ {
			if m.less(m.order[child], m.order[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.order[i], m.order[least] = m.order[least], m.order[i]
		i = least
	}
}

// mergedTerms is how many terms are merged between two looks at the context.
const mergedTerms = 1000

// terms writes the terms. A chunk's new number is greater than those of the
// chunks before it in its segment, but chunks of several segments alternate, so
// the postings of a term are sorted.
func (m *merger) terms(ctx context.Context) error {
	walk := m.walk(func(s *Segment) *dictionary { return &s.terms })
	parts := make([]*list, len(m.segments))
	for i := range parts {
		parts[i] = &list{}
	}
	var l list
	var c cursor
	var of []int // segments that have the term
	for n := 0; ; n++ {
		if n%mergedTerms == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		of = of[:0]
		more := walk.next(func(i int, w *walker) {
			m.current = m.segments[i]
			m.read(i, w.entry, &c, parts[i])
			of = append(of, i)
		})
		if !more {
			return m.w.err
		}
		joined := &l
		if len(of) == 1 {
			joined = parts[of[0]]
		} else {
			l.reset()
			join(&l, parts, of)
		}
		if len(joined.chunks) > 0 {
			m.w.term(walk.name, joined)
		}
	}
}

// read decodes the postings of a term of one segment, without those of deleted
// documents and with the new numbers.
func (m *merger) read(segment int, e entry, c *cursor, l *list) {
	s := m.segments[segment]
	l.reset()
	all := s.positions[e.pos : e.pos+e.posSize]
	positions := all
	for c.open(s, e, AllFields); c.chunk != noChunk; c.load(c.block + 1) {
		if c.posAt != len(all)-len(positions) {
			panic(damaged("the positions of a term do not match its frequencies"))
		}
		c.count()
		for i := range c.n {
			n := 0
			for f := range c.tf {
				n += int(c.tf[f][i])
			}
			size := skipVarints(positions, n)
			if to := m.chunks[segment][c.chunks[i]]; to != noChunk {
				l.chunks = append(l.chunks, to)
				for f := range c.tf {
					l.tf[f] = append(l.tf[f], c.tf[f][i])
				}
				l.positions = append(l.positions, positions[:size]...)
			}
			positions = positions[size:]
		}
	}
	if len(positions) > 0 {
		panic(damaged("the positions of a term do not match its frequencies"))
	}
}

// join merges the postings of one term from several segments into l. It sorts
// of, the segments that have the term.
func join(l *list, parts []*list, of []int) {
	of = slices.DeleteFunc(of, func(part int) bool { return len(parts[part].chunks) == 0 })
	slices.SortFunc(of, func(a, b int) int { return cmp.Compare(parts[a].chunks[0], parts[b].chunks[0]) })
	follow := true // the segments follow each other, as they do unless documents were replaced
	for i := 1; i < len(of); i++ {
		before := parts[of[i-1]].chunks
		follow = follow && before[len(before)-1] < parts[of[i]].chunks[0]
	}
	if follow {
		for _, part := range of {
			p := parts[part]
			l.chunks = append(l.chunks, p.chunks...)
			for f := range l.tf {
				l.tf[f] = append(l.tf[f], p.tf[f]...)
			}
			l.positions = append(l.positions, p.positions...)
		}
		return
	}
	type place struct{ i, pos int }
	at := make([]place, len(of))
	for {
		least := -1
		for j, part := range of {
			p := parts[part]
			if at[j].i < len(p.chunks) && (least < 0 || p.chunks[at[j].i] < parts[of[least]].chunks[at[least].i]) {
				least = j
			}
		}
		if least < 0 {
			return
		}
		p, a := parts[of[least]], &at[least]
		l.chunks = append(l.chunks, p.chunks[a.i])
		for f := range l.tf {
			l.tf[f] = append(l.tf[f], p.tf[f][a.i])
		}
		size := skipVarints(p.positions[a.pos:], p.count(a.i))
		l.positions = append(l.positions, p.positions[a.pos:a.pos+size]...)
		a.i, a.pos = a.i+1, a.pos+size
	}
}

// words writes the words as written.
func (m *merger) words(ctx context.Context) error {
	walk := m.walk(func(s *Segment) *dictionary { return &s.words })
	var docs []uint32
	for n := 0; ; n++ {
		if n%mergedTerms == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		docs = docs[:0]
		more := walk.next(func(i int, w *walker) {
			m.current = m.segments[i]
			m.segments[i].wordDocuments(w.entry, func(d int, inTitle bool) {
				if to := m.docs[i][d]; to != noChunk {
					to <<= 1
					if inTitle {
						to |= 1
					}
					docs = append(docs, to)
				}
			})
		})
		if !more {
			return m.w.err
		}
		if len(docs) > 0 {
			slices.Sort(docs)
			m.w.word(walk.name, once(docs))
		}
	}
}

// once returns sorted documents of a word without those that are there twice,
// because their parts are in several segments.
func once(docs []uint32) []uint32 {
	n := 0
	for _, d := range docs {
		if n > 0 && docs[n-1]>>1 == d>>1 {
			docs[n-1] = d // in the title if one of the two is
			continue
		}
		docs[n] = d
		n++
	}
	return docs[:n]
}
