package segment

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/relevance"
)

// A Hit is a document and its best chunk.
type Hit struct {
	Row   int64
	Chunk int // number of the chunk in the document, from 0
	Score float32

	segment int
	rank    int    // place of the segment in the order of ranking
	chunk   uint32 // number of the chunk in the segment
	doc     int
}

// Constants of the ranking.
const (
	k1 = relevance.K1

	// window is how many chunks are looked at together.
	window = 2048
)

// saturate returns the part of a term's weight that a weighed frequency gives.
func saturate(tf float32) float32 { return (k1 + 1) * tf / (k1 + tf) }

// A ranking is the state of one call of Top.
type ranking struct {
	s      *Search
	k      int
	within Docs // nil for all
	chunks bool // rank chunks, not documents by their best chunk
	top    hitHeap
	floor  float32 // a score must be greater to be among the best

	rank int // place of the current segment in the order of ranking

	// The best chunk of the document that is being scored.
	best    Hit
	bestDoc int

	scores  [window]float32
	touched [window / 64]uint64
	below   []float32

	// Of the current segment.
	list    []ranked
	cursors []*cursor
}

// A scorer goes over the chunks that have one leaf.
type scorer interface {
	// limit returns a bound of the scores from chunk from to chunk to-1.
	// The bounds of from never decrease from call to call.
	limit(from, to uint32) float32
	// add adds the scores from the current chunk to chunk to-1 to
	// r.scores, which begins at chunk from.
	add(r *ranking, from, to uint32)
	// seek goes to the first chunk that is not less than target, and returns
	// it.
	seek(target uint32) uint32
	// seekAbove is seek, but may skip chunks below to whose scores and below
	// together are not above floor.
	seekAbove(target, to uint32, below, floor float32) uint32
	// score returns the score of the current chunk, 0 if it does not have
	// the leaf in the wanted fields.
	score() float32
}

// A ranked is a leaf in the segment that is being scored.
type ranked struct {
	scorer
	most float32 // limit in the current window
}

// Top returns up to k documents with the best scores, of those that meet a leaf
// and are in within (nil: all) and not deleted. The score of a document is that
// of its best chunk. The first hits do not depend on k. If ctx
// ends, the error is that of ctx, and the hits are the best so far.
func (s *Search) Top(ctx context.Context, leaves []*Leaf, within Docs, k int) (hits []Hit, err error) {
	return s.top(ctx, leaves, within, k, false)
}

// TopChunks is like Top, but returns up to k chunks. A document may have several
// of them.
func (s *Search) TopChunks(ctx context.Context, leaves []*Leaf, within Docs, k int) (hits []Hit, err error) {
	return s.top(ctx, leaves, within, k, true)
}

func (s *Search) top(ctx context.Context, leaves []*Leaf, within Docs, k int, chunks bool) (hits []Hit, err error) {
	defer catch(&s.current, &err)
	defer faults()()
	if k <= 0 {
		return nil, ctx.Err()
	}
	r := &s.ranking
	*r = ranking{s: s, k: k, within: within, chunks: chunks, top: make(hitHeap, 0, min(k, maxReserved)), below: r.below,
		list: r.list, cursors: r.cursors}
	defer func() { r.within, r.top = nil, nil }()
	for _, l := range leaves {
		if err := s.gatherTerms(ctx, l); err != nil {
			return nil, err
		}
	}
	// The largest segments come first, because they raise the floor.
	order := make([]int, len(s.c.segments))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.c.segments[b].chunks, s.c.segments[a].chunks) })
	for rank, i := range order {
		r.rank = rank
		if err = r.segment(ctx, i, leaves); err != nil {
			break
		}
	}
	slices.SortFunc(r.top, compareHits)
	for i := range r.top {
		h := &r.top[i]
		s.current = s.c.segments[h.segment]
		d := s.current.doc(h.chunk)
		h.doc, h.Row, h.Chunk = d, s.current.row(d), int(h.chunk)-s.current.start(d)
	}
	return r.top, err
}

// maxReserved is for how many hits Top allocates space at the beginning.
const maxReserved = 128

// compareHits orders hits by score, and hits with equal scores in the order in
// which they were ranked, so that the first k hits do not depend on k.
func compareHits(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.rank, b.rank), cmp.Compare(a.chunk, b.chunk))
}

// A hitHeap has the worst hit at the root: the children of hit i are hits 2i+1
// and 2i+2, and neither is worse than hit i.
type hitHeap []Hit

func (h *hitHeap) push(x Hit) {
	i := len(*h)
	*h = append(*h, x)
	for ; i > 0 && compareHits(x, (*h)[(i-1)/2]) > 0; i = (i - 1) / 2 {
		(*h)[i] = (*h)[(i-1)/2]
	}
	(*h)[i] = x
}

// replaceWorst puts a hit in place of the worst one.
func (h hitHeap) replaceWorst(x Hit) {
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(h) && compareHits(h[child+1], h[child]) > 0 {
			child++
		}
		if child >= len(h) || compareHits(h[child], x) <= 0 {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = x
}

// offer is called with the chunks whose scores are above the floor, in order.
func (r *ranking) offer(segment int, chunk uint32, score float32) {
	doc := r.s.current.doc(chunk)
	if doc == r.bestDoc && !r.chunks {
		if score > r.best.Score {
			r.best.chunk, r.best.Score = chunk, score
		}
		return
	}
	r.keep()
	r.bestDoc, r.best = doc, Hit{segment: segment, rank: r.rank, chunk: chunk, Score: score}
}

// keep adds the best chunk of the last document to the best hits.
func (r *ranking) keep() {
	if r.bestDoc < 0 || r.best.Score <= r.floor {
		return
	}
	if len(r.top) < r.k {
		r.top.push(r.best)
	} else if compareHits(r.best, r.top[0]) < 0 {
		r.top.replaceWorst(r.best)
	}
	if len(r.top) == r.k {
		r.floor = r.top[0].Score
	}
}

// segment scores the chunks of a segment: MaxScore over windows, with the
// bounds of blocks. Leaves whose bounds together cannot raise a chunk above the
// floor are only looked up for chunks that other leaves find.
func (r *ranking) segment(ctx context.Context, i int, leaves []*Leaf) error {
	s := r.s.c.segments[i]
	r.s.current = s
	accept := r.s.c.live[i]
	if r.within != nil {
		if r.within[i] == nil {
			return nil
		}
		if accept == nil {
			accept = r.within[i]
		} else {
			accept = slices.Clone(accept)
			accept.And(r.within[i])
		}
	}
	if accept != nil && accept.Next(0) < 0 {
		return nil
	}
	list, cursors := r.list[:0], r.cursors[:0]
	defer func() {
		r.s.free(cursors...)
		clear(list) // it refers to lists of postings
		r.list, r.cursors = list, cursors
	}()
	for _, l := range leaves {
		p := &l.parts[i]
		weight := l.Weight * r.s.c.idf(l.df)
		switch {
		case p.all != nil && len(p.all.chunks) > 0:
			list = append(list, ranked{scorer: &frequencyScorer{frequencies: p.all, weight: weight}})
		case p.all == nil: // terms of which a chunk has only one
			for _, e := range p.terms {
				c := r.s.cursor()
				cursors = append(cursors, c)
				c.open(s, e, l.fields)
				c.prepare(r, weight, r.s.c.grow[i])
				list = append(list, ranked{scorer: c})
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	if cap(r.below) < len(list)+1 {
		r.below = make([]float32, len(list)+1)
	}
	r.below = r.below[:len(list)+1]
	r.bestDoc = -1
	for n, from := 0, uint32(0); from < uint32(s.chunks); n++ {
		if n%64 == 0 && ctx.Err() != nil {
			r.keep()
			return ctx.Err()
		}
		if accept != nil {
			d := accept.Next(s.doc(from))
			if d < 0 {
				break
			}
			start := s.start(d)
			if start > s.chunks {
				panic(damaged("a document begins behind the last chunk"))
			}
			from = max(from, uint32(start))
		}
		to := min(from+window, uint32(s.chunks))
		r.window(i, list, accept, from, to)
		from = to
	}
	r.keep()
	return nil
}

// window scores the chunks from from to to-1.
func (r *ranking) window(segment int, list []ranked, accept Bits, from, to uint32) {
	s := r.s.current
	for i := range list {
		list[i].most = list[i].limit(from, to)
	}
	slices.SortFunc(list, func(a, b ranked) int { return cmp.Compare(a.most, b.most) })
	weak := 0 // leaves that are not enough without others
	for i := range list {
		r.below[i+1] = r.below[i] + list[i].most
		if r.below[i+1] <= r.floor {
			weak = i + 1
		}
	}
	switch weak {
	case len(list):
		return
	case len(list) - 1:
		l, below := list[weak], r.below[weak]
		for chunk := l.seekAbove(from, to, below, r.floor); chunk < to; chunk = l.seekAbove(chunk+1, to, below,
			r.floor) {
			if accept != nil && !accept.Has(s.doc(chunk)) {
				continue
			}
			if score := l.score(); score > 0 && score+below > r.floor {
				r.refine(segment, chunk, score, list[:weak])
			}
		}
		return
	}
	for _, l := range list[weak:] {
		l.seek(from)
		l.add(r, from, to)
	}
	for i, word := range r.touched {
		r.touched[i] = 0
		for ; word != 0; word &= word - 1 {
			o := i<<6 + bits.TrailingZeros64(word)
			score, chunk := r.scores[o], from+uint32(o)
			r.scores[o] = 0
			if score+r.below[weak] > r.floor && score > 0 && (accept == nil || accept.Has(s.doc(chunk))) {
				r.refine(segment, chunk, score, list[:weak])
			}
		}
	}
}

// refine adds the scores of the weak leaves to that of a chunk, as long as it
// can rise above the floor.
func (r *ranking) refine(segment int, chunk uint32, score float32, weak []ranked) {
	for i := len(weak) - 1; i >= 0; i-- {
		if score+r.below[i+1] <= r.floor {
			return
		}
		if weak[i].seek(chunk) == chunk {
			score += weak[i].score()
		}
	}
	if score > r.floor {
		r.offer(segment, chunk, score)
	}
}

// prepare makes an open cursor a scorer.
func (c *cursor) prepare(r *ranking, weight, grow float32) {
	c.r, c.weight = r, weight
	if c.skip != nil {
		c.bound = grow
		return
	}
	most := float32(0)
	c.count()
	for i := range c.n {
		most = max(most, c.weigh(r.s.c.norms, i))
	}
	c.bound = weight * saturate(most) * (1 + 1e-5)
}

func (c *cursor) limit(from, to uint32) float32 {
	if c.skip == nil {
		if c.chunk == noChunk || c.chunks[c.n-1] < from || c.chunks[0] >= to {
			return 0
		}
		return c.bound
	}
	for c.shallow < c.blocks && c.lastOf(c.shallow) < from {
		c.shallow++
	}
	most := float32(0)
	for b := c.shallow; b < c.blocks && (b == 0 || c.lastOf(b-1)+1 < to); b++ {
		most = max(most, c.mostOf(b))
	}
	return c.boundOf(most)
}

func (c *cursor) add(r *ranking, from, to uint32) {
	norms := r.s.c.norms
	for c.chunk < to {
		c.count()
		i := c.i
		for ; i < c.n && c.chunks[i] < to; i++ {
			if tf := c.weigh(norms, i); tf > 0 {
				o := (c.chunks[i] - from) % window
				r.scores[o] += c.weight * saturate(tf)
				r.touched[o>>6] |= 1 << (o & 63)
			}
		}
		if i == c.n {
			c.load(c.block + 1)
		} else {
			c.i, c.chunk = i, c.chunks[i]
		}
	}
}

func (c *cursor) seek(target uint32) uint32 {
	c.advance(target)
	return c.chunk
}

func (c *cursor) seekAbove(target, to uint32, below, floor float32) uint32 {
	if c.skip != nil && c.chunk < target && c.chunks[c.n-1] < target {
		block := c.seekBlock(target)
		for block < c.blocks && c.lastOf(block) < to && c.boundOf(c.mostOf(block))+below <= floor {
			block++
		}
		if c.load(block); c.chunk >= target {
			return c.chunk
		}
	}
	c.advance(target)
	return c.chunk
}

// boundOf returns a bound of the scores of chunks with at most a weighed
// frequency, if there are several blocks.
func (c *cursor) boundOf(most float32) float32 { return c.weight * saturate(most*c.bound) }

func (c *cursor) score() float32 {
	c.count()
	return c.weight * saturate(c.weigh(c.r.s.c.norms, c.i))
}

// A frequencyScorer is a scorer over a list in memory.
type frequencyScorer struct {
	*frequencies
	weight float32
	i      int
}

func (l *frequencyScorer) limit(from, to uint32) float32 {
	i := l.i
	if i < len(l.chunks) && l.chunks[i] < from {
		n, _ := slices.BinarySearch(l.chunks[i:], from)
		i += n
	}
	if i == len(l.chunks) || l.chunks[i] >= to {
		return 0
	}
	return l.weight * saturate(l.most) * (1 + 1e-5)
}

func (l *frequencyScorer) add(r *ranking, from, to uint32) {
	for ; l.i < len(l.chunks) && l.chunks[l.i] < to; l.i++ {
		o := (l.chunks[l.i] - from) % window
		r.scores[o] += l.weight * saturate(l.tf[l.i])
		r.touched[o>>6] |= 1 << (o & 63)
	}
}

func (l *frequencyScorer) seek(target uint32) uint32 {
	if l.i < len(l.chunks) && l.chunks[l.i] < target {
		if l.i+1 < len(l.chunks) && l.chunks[l.i+1] >= target {
			l.i++
		} else {
			n, _ := slices.BinarySearch(l.chunks[l.i:], target)
			l.i += n
		}
	}
	if l.i == len(l.chunks) {
		return noChunk
	}
	return l.chunks[l.i]
}

func (l *frequencyScorer) seekAbove(target, _ uint32, _, _ float32) uint32 { return l.seek(target) }

func (l *frequencyScorer) score() float32 { return l.weight * saturate(l.tf[l.i]) }
