package segment

import (
	"cmp"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/relevance"
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

// In reports whether the document of a hit is in a set.
func (h *Hit) In(docs Docs) bool { return docs.Has(h.segment, h.doc) }

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
		bonus += relevance.Near(before, here, min(weight, c.weight))
		before = append(before[:0], here...)
		weight = c.weight
	}
	s.buf[0] = before
	return bonus
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
