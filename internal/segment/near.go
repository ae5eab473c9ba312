package segment

import (
	"cmp"
	"slices"
)

// Constants of the bonus for terms that stand close together.
const (
	nearBonus    = 0.5 // part of the lesser weight, for two terms next to each other
	nearDistance = 8   // positions
	nearReversed = 0.5 // part of the bonus for terms in the other order
)

// PreferNear raises the scores of those of the hits in whose chunks leaves that
// follow each other in the query stand close together in the text, and sorts
// the hits. Only leaves of one term, or of [Search.Variants], count. The hits must come from Top with the
// same leaves.
func (s *Search) PreferNear(hits []Hit, leaves []*Leaf) (err error) {
	if len(leaves) < 2 {
		return nil
	}
	defer catch(&s.current, &err)
	defer faults()()
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(a.segment, b.segment), cmp.Compare(a.chunk, b.chunk))
	})
	cursors := make([][]*cursor, len(leaves)) // of the terms of each leaf
	defer func() {
		for _, c := range cursors {
			s.free(c...)
		}
	}()
	for i := range hits {
		h := &hits[i]
		if i == 0 || hits[i-1].segment != h.segment {
			s.current = s.c.segments[h.segment]
			for j, l := range leaves {
				s.free(cursors[j]...)
				cursors[j] = cursors[j][:0]
				terms := l.parts[h.segment].terms
				if len(terms) > 1 && !l.apart {
					continue
				}
				for _, e := range terms {
					c := s.cursor()
					cursors[j] = append(cursors[j], c)
					c.open(s.current, e, l.fields)
					c.weight = l.Weight * s.c.idf(l.df)
				}
			}
		}
		h.Score += s.nearness(cursors, h.chunk)
	}
	slices.SortFunc(hits, compareHits)
	return nil
}

// WeightOf returns the weight of a leaf in the ranking, which is higher for rare
// terms.
func (s *Search) WeightOf(l *Leaf) float32 { return l.Weight * s.c.idf(l.df) }

// Prefer raises the scores of the hits that are in a set of documents by a part
// of them, and sorts the hits.
func Prefer(hits []Hit, docs Docs, part float32) {
	for i := range hits {
		if h := &hits[i]; docs.Has(h.segment, h.doc) {
			h.Score *= 1 + part
		}
	}
	slices.SortFunc(hits, compareHits)
}

// Constants of the scores of whole documents (BM25).
const (
	documentK1    = 1.2
	documentB     = 0.75
	titleTimes    = 5 // occurrences in a text that one in the title counts as
	headingsTimes = 3
)

// PreferDocuments raises the scores of hits by part of the scores (BM25) of their
// whole documents, and sorts the hits. Only leaves of one term, or of
// [Search.NewVariants], count. The hits must come from Top with the same leaves.
func (s *Search) PreferDocuments(hits []Hit, leaves []*Leaf, part float32) (err error) {
	defer catch(&s.current, &err)
	defer faults()()
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(a.segment, b.segment), cmp.Compare(a.chunk, b.chunk))
	})
	var cursors []*cursor
	defer func() { s.free(cursors...) }()
	for i := range hits {
		h := &hits[i]
		if i == 0 || hits[i-1].segment != h.segment {
			s.current = s.c.segments[h.segment]
			s.free(cursors...)
			cursors = cursors[:0]
			for _, l := range leaves {
				terms := l.parts[h.segment].terms
				if len(terms) > 1 && !l.apart {
					continue
				}
				for _, e := range terms {
					c := s.cursor()
					cursors = append(cursors, c)
					c.open(s.current, e, l.fields)
					c.weight = l.Weight * s.c.idf(l.df)
				}
			}
		}
		from, to := s.current.start(h.doc), s.current.chunks
		if h.doc+1 < s.current.docs {
			to = s.current.start(h.doc + 1)
		}
		if to > s.current.chunks {
			panic(damaged("a document begins behind the last chunk"))
		}
		length := 0
		for chunk := from; chunk < to; chunk++ {
			length += s.current.length(uint32(chunk), Text)
		}
		half := documentK1 * (1 - documentB + documentB*float32(length)/s.c.documentLength)
		for _, c := range cursors {
			if tf := c.inDocument(uint32(from), uint32(to)); tf > 0 {
				h.Score += part * c.weight * (documentK1 + 1) * tf / (tf + half)
			}
		}
	}
	slices.SortFunc(hits, compareHits)
	return nil
}

// inDocument returns how often the term is in the chunks from from to to-1, which
// are a document. It goes to the first posting behind them.
func (c *cursor) inDocument(from, to uint32) (n float32) {
	title := uint32(0) // each chunk has the title
	for c.advance(from); c.chunk < to; c.next() {
		c.count()
		n += float32(c.tf[Text][c.i] + headingsTimes*c.tf[Heading][c.i])
		title = max(title, c.tf[Title][c.i])
	}
	return n + float32(titleTimes*title)
}

// nearness returns the bonus of a chunk.
func (s *Search) nearness(cursors [][]*cursor, chunk uint32) (bonus float32) {
	before, weight := s.buf[0][:0], float32(0)
	for _, variants := range cursors {
		var c *cursor
		for _, v := range variants {
			if v.advance(chunk); v.chunk == chunk {
				c = v
				break
			}
		}
		if c == nil {
			before = before[:0]
			continue
		}
		var begin [fieldCount + 1]int
		s.buf[1], begin = c.positions(s.buf[1])
		here := s.buf[1][begin[Text]:begin[Text+1]]
		if gap, part := closest(before, here); gap > 0 {
			bonus += nearBonus * part * min(weight, c.weight) / float32(gap)
		}
		before = append(before[:0], here...)
		weight = c.weight
	}
	s.buf[0] = before
	return bonus
}

// closest returns the least distance between positions of two terms that is at
// most nearDistance, 0 if there is none, and the part of the bonus that it
// gives. Both lists are sorted.
func closest(a, b []uint32) (gap int, part float32) {
	i := 0
	for _, p := range b {
		for i < len(a) && a[i] < p {
			i++
		}
		if i > 0 && int(p-a[i-1]) <= nearDistance { // a before b
			if d := int(p - a[i-1]); gap == 0 || float32(1)/float32(d) > part/float32(gap) {
				gap, part = d, 1
			}
		}
		if i < len(a) && a[i] > p && int(a[i]-p) <= nearDistance {
			if d := int(a[i] - p); gap == 0 || nearReversed/float32(d) > part/float32(gap) {
				gap, part = d, nearReversed
			}
		}
	}
	return gap, part
}

// Titled returns those of some documents whose title consists of exactly the
// tokens of one of some titles.
func (c *Collection) Titled(within Docs, titles ...[]string) (d Docs, err error) {
	var current *Segment
	defer catch(&current, &err)
	defer faults()()
	d = c.None()
	var hashes []uint64
	for _, tokens := range titles {
		if h := hashTokens(tokens); !slices.Contains(hashes, h) {
			hashes = append(hashes, h)
		}
	}
	for i, s := range c.segments {
		current = s
		for doc := within[i].Next(0); doc >= 0; doc = within[i].Next(doc + 1) {
			if slices.Contains(hashes, s.titleHash(doc)) {
				if d[i] == nil {
					d[i] = NewBits(s.docs)
				}
				d[i].Set(doc)
			}
		}
	}
	return d, nil
}
