package segment

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
)

// A Pattern is a sequence of tokens.
type Pattern struct {
	Tokens []string // none finds nothing
	Prefix bool     // the last token stands for all that begin with it

	// Slop is how far the tokens may be moved, in positions, until they are
	// in sequence (as in Lucene: 1 allows another token between two, and 2
	// the other order). 0 is a phrase.
	Slop int

	// Segments are the numbers of the segments that are looked at, nil for
	// all. The others are known not to have the tokens.
	Segments Bits
}

// A Leaf is a condition on the tokens of a chunk: any of several patterns, in
// some fields. It counts as one term in the ranking.
type Leaf struct {
	Weight float32 // in the ranking; 1 is usual

	fields   Fields
	apart    bool   // no two terms occur in one document; see NewVariants
	parts    []part // of each segment
	patterns int
	counted  bool
	df       int  // chunks; only known when it is ranked unless terms is true
	terms    bool // every part has no phrase, and at most one term unless apart is true, and df is that of the terms
}

// A part is the result of a leaf in one segment.
type part struct {
	terms   []entry
	first   [1]entry      // where terms begins
	many    Bits          // numbers of the terms in the dictionary, once there are more than maxEntries; terms is empty then
	phrases []frequencies // in the order in which they were found
	docs    Bits          // documents of phrases
	all     *frequencies  // terms and phrases, once a leaf that has more than a term is ranked
}

// none reports whether the part finds nothing.
func (p *part) none() bool { return len(p.terms) == 0 && p.many == nil && p.docs == nil }

// add adds a term of a segment.
func (p *part) add(s *Segment, e entry) {
	if p.many != nil {
		p.many.Set(e.number)
		return
	}
	if p.terms == nil {
		p.terms = p.first[:0]
	}
	if p.terms = append(p.terms, e); len(p.terms) > maxEntries {
		p.many = NewBits(s.terms.n)
		for _, e := range p.terms {
			p.many.Set(e.number)
		}
		p.terms = nil
	}
}

// each calls f with the terms, in the order of the dictionary unless the leaf is
// not complete.
func (p *part) each(s *Segment, f func(e entry) error) error {
	if p.many != nil {
		return s.terms.each(p.many, f)
	}
	for _, e := range p.terms {
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

// A frequencies is a list of chunks and the weighed frequency of a leaf in each.
type frequencies struct {
	chunks []uint32
	tf     []float32
	most   float32 // the greatest of tf
}

// A Search answers one query. It keeps memory that searches reuse. It is not
// safe for concurrent use.
type Search struct {
	c       *Collection
	current *Segment // that is being read, for Damage
	kept    int      // postings that are held in founds
	done    int      // postings looked at since the last look at the context

	cursors []*cursor // free ones
	scores  []float32 // of a window, or weighed frequencies of the chunks of a segment; zero between calls
	marks   Bits      // of scores; empty between calls
	buf     [2][]uint32
	starts  [2][]uint32
	ranking ranking // of the call of Top
}

// Limits on the memory of one search.
const (
	maxKept    = 1 << 22 // postings in founds: 8 bytes each
	maxEntries = 256     // of a part; more terms are kept as a set of numbers
)

// Begin begins a search. End must be called at the end.
func (c *Collection) Begin() *Search {
	s := c.searches.Get().(*Search)
	s.kept = 0
	return s
}

// End releases the memory of the search. Its leaves must not be used after it.
func (s *Search) End() {
	clear(s.scores)
	clear(s.marks)
	s.c.searches.Put(s)
}

// cursor returns a free cursor. The caller gives it back with free.
func (s *Search) cursor() *cursor {
	if n := len(s.cursors); n > 0 {
		c := s.cursors[n-1]
		s.cursors = s.cursors[:n-1]
		return c
	}
	return &cursor{}
}

func (s *Search) free(c ...*cursor) { s.cursors = append(s.cursors, c...) }

// Leaf returns the condition that a chunk has one of the patterns in one of the
// fields. The error is that of ctx, or a Damage.
func (s *Search) Leaf(ctx context.Context, fields Fields, patterns ...Pattern) (*Leaf, error) {
	l := s.NewLeaf(fields)
	for _, p := range patterns {
		if err := s.Add(ctx, l, p); err != nil {
			return nil, err
		}
	}
	return l, s.count(ctx, l)
}

// NewLeaf returns a condition without patterns, which no chunk meets.
func (s *Search) NewLeaf(fields Fields) *Leaf {
	return &Leaf{Weight: 1, fields: fields, parts: make([]part, len(s.c.segments)), terms: true}
}

// NewVariants is like NewLeaf for single tokens no two of which occur in the same
// document, such as the stems of a word in several languages. As long as no
// other patterns are added, it ranks as fast as a leaf of one token.
func (s *Search) NewVariants(fields Fields) *Leaf {
	l := s.NewLeaf(fields)
	l.apart = true
	return l
}

// Add adds a pattern to a condition that Docs was not called with. Its memory
// does not grow with the number of patterns of one token, or of terms that they
// stand for, beyond a bit for each term of the index. The error is that of ctx,
// or a Damage; then a part of the pattern may have been added.
func (s *Search) Add(ctx context.Context, l *Leaf, p Pattern) (err error) {
	defer catch(&s.current, &err)
	defer faults()()
	s.done = 0
	l.patterns++
	if len(p.Tokens) != 1 || p.Prefix {
		l.apart = false
	}
	// In some of the fields, a union has another document frequency than its
	// terms, even in a segment that has only one of them.
	if l.fields != AllFields && !l.apart && (l.patterns > 1 || len(p.Tokens) != 1 || p.Prefix) {
		l.terms = false
	}
	for i, seg := range s.c.segments {
		if p.Segments != nil && !p.Segments.Has(i) {
			continue
		}
		s.current = seg
		if err := s.pattern(ctx, &l.parts[i], p, l.fields); err != nil {
			return err
		}
	}
	return nil
}

// count removes terms that were added twice, and computes the number of chunks
// with the terms.
func (s *Search) count(ctx context.Context, l *Leaf) (err error) {
	defer catch(&s.current, &err)
	defer faults()()
	if s.done = 0; l.counted {
		return nil
	}
	l.df = 0
	for i := range l.parts {
		p := &l.parts[i]
		s.current = s.c.segments[i]
		if len(p.terms) > 1 {
			slices.SortFunc(p.terms, func(a, b entry) int { return cmp.Compare(a.number, b.number) })
			p.terms = slices.Compact(p.terms)
		}
		err := p.each(s.current, func(e entry) error {
			l.df += e.df
			return s.spend(ctx, 1)
		})
		if err != nil {
			return err
		}
		if len(p.terms) > 1 && !l.apart || p.many != nil || p.docs != nil {
			l.terms = false
		}
	}
	l.counted = true
	return nil
}

// checkedPostings is how many postings are looked at between two looks at the
// context.
const checkedPostings = 1 << 14

// spend records that n postings are looked at. The error is that of ctx.
func (s *Search) spend(ctx context.Context, n int) error {
	if s.done -= n; s.done > 0 {
		return nil
	}
	s.done = checkedPostings
	return ctx.Err()
}

// pattern adds what a pattern finds in the current segment.
func (s *Search) pattern(ctx context.Context, p *part, pattern Pattern, fields Fields) error {
	tokens := pattern.Tokens
	if len(tokens) == 0 {
		return nil
	}
	first, last := tokens[:len(tokens)-1], tokens[len(tokens)-1]
	var entries []entry
	for _, t := range first {
		e, ok := s.current.terms.find(t)
		if !ok {
			return nil
		}
		entries = append(entries, e)
	}
	if !pattern.Prefix {
		e, ok := s.current.terms.find(last)
		switch {
		case !ok:
			return nil
		case len(tokens) == 1:
			p.add(s.current, e)
			return s.spend(ctx, 1)
		}
		return s.phrase(ctx, p, append(entries, e), pattern.Slop, fields)
	}
	w := s.current.terms.walk()
	for ok := w.seek([]byte(last)); ok && w.under([]byte(last)); ok = w.next() {
		if err := s.spend(ctx, 1); err != nil {
			return err
		}
		if len(tokens) == 1 {
			p.add(s.current, w.entry)
			continue
		}
		if err := s.phrase(ctx, p, append(entries, w.entry), pattern.Slop, fields); err != nil {
			return err
		}
	}
	return nil
}

// phrase adds the chunks of the current segment in which the terms stand in
// sequence.
func (s *Search) phrase(ctx context.Context, p *part, terms []entry, slop int, fields Fields) error {
	inOrder := make([]*cursor, len(terms))
	for i, e := range terms {
		c := s.cursor()
		c.open(s.current, e, fields)
		inOrder[i] = c
	}
	defer s.free(inOrder...)
	byDF := slices.Clone(inOrder)
	slices.SortFunc(byDF, func(a, b *cursor) int { return cmp.Compare(a.e.df, b.e.df) })
	lead := byDF[0]
	var l frequencies
search:
	for lead.chunk != noChunk {
		if err := s.spend(ctx, 1); err != nil {
			return err
		}
		for _, c := range byDF[1:] {
			if c.advance(lead.chunk); c.chunk != lead.chunk {
				if c.chunk == noChunk {
					break search
				}
				lead.advance(c.chunk)
				continue search
			}
		}
		if tf := s.occurrences(inOrder, slop); tf > 0 {
			l.chunks = append(l.chunks, lead.chunk)
			l.tf = append(l.tf, tf)
		}
		lead.next()
	}
	if len(l.chunks) == 0 {
		return nil
	}
	if p.docs == nil {
		p.docs = NewBits(s.current.docs)
	}
	for _, c := range l.chunks {
		p.docs.Set(s.current.doc(c))
	}
	if s.kept += len(l.chunks); s.kept <= maxKept { // otherwise it is found, but not ranked
		p.phrases = append(p.phrases, l)
	}
	return nil
}

// occurrences returns the weighed frequency of the phrase in the current chunk
// of the cursors, 0 if it does not occur.
func (s *Search) occurrences(cursors []*cursor, slop int) (tf float32) {
	if slop > 0 {
		return s.sloppy(cursors, slop)
	}
	// Begin with the rarest, and read no more positions than necessary.
	var few [8]struct{ frequency, token int }
	order := few[:0]
	for i, c := range cursors {
		order = append(order, struct{ frequency, token int }{c.frequency(), i})
		for j := i; j > 0 && order[j].frequency < order[j-1].frequency; j-- {
			order[j], order[j-1] = order[j-1], order[j]
		}
	}
	lengths := s.current.lengthsOf(cursors[0].chunk)
	var begin [fieldCount + 1]int
	starts, at := s.starts[0][:0], [fieldCount + 1]int{}
	for n := range order {
		i := order[n].token
		s.buf[0], begin = cursors[i].positions(s.buf[0])
		if n == 0 {
			for f := range fieldCount {
				for _, p := range s.buf[0][begin[f]:begin[f+1]] {
					if p >= uint32(i) && cursors[0].fields&Only(Field(f)) != 0 {
						starts = append(starts, p-uint32(i))
					}
				}
				at[f+1] = len(starts)
			}
		} else {
			starts, at = follow(starts, at, s.buf[0], begin, uint32(i))
		}
		if len(starts) == 0 {
			break
		}
	}
	s.starts[0] = starts
	for f := range fieldCount {
		if n := at[f+1] - at[f]; n > 0 {
			tf += float32(n) * s.c.norms.of(Field(f), lengths)
		}
	}
	return tf
}

// follow keeps the starts of phrases whose token number i is at one of the
// positions. Both are divided by fields.
func follow(starts []uint32, at [fieldCount + 1]int, positions []uint32, begin [fieldCount + 1]int, i uint32) ([]uint32,
	[fieldCount + 1]int) {
	kept := starts[:0]
	var out [fieldCount + 1]int
	for f := range fieldCount {
		p := positions[begin[f]:begin[f+1]]
		for _, start := range starts[at[f]:at[f+1]] {
			for len(p) > 0 && p[0] < start+i {
				p = p[1:]
			}
			if len(p) > 0 && p[0] == start+i {
				kept = append(kept, start)
			}
		}
		out[f+1] = len(kept)
	}
	return kept, out
}

// sloppy is occurrences for a phrase whose tokens may be moved. If the position
// of each token, less its place in the phrase, differs by no more than slop
// from that of the others, the phrase occurs. Tokens that are equal have
// different positions.
func (s *Search) sloppy(cursors []*cursor, slop int) (tf float32) {
	lengths := s.current.lengthsOf(cursors[0].chunk)
	var places [fieldCount][]place
	for i, c := range cursors {
		var begin [fieldCount + 1]int
		s.buf[0], begin = c.positions(s.buf[0])
		for f := range fieldCount {
			if cursors[0].fields&Only(Field(f)) == 0 {
				continue
			}
			for _, p := range s.buf[0][begin[f]:begin[f+1]] {
				places[f] = append(places[f], place{int(p) - i, i})
			}
		}
	}
	for f := range places {
		all := places[f]
		slices.SortFunc(all, func(a, b place) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.token, b.token)) })
		n := 0
		count := make([]int, len(cursors))
		have, lo := 0, 0
		for i, p := range all {
			if count[p.token]++; count[p.token] == 1 {
				have++
			}
			for ; p.at-all[lo].at > slop; lo++ {
				if count[all[lo].token]--; count[all[lo].token] == 0 {
					have--
				}
			}
			if have == len(cursors) && apart(cursors, all[lo:i+1]) { // count it, and begin again behind it
				n++
				clear(count)
				have, lo = 0, i+1
			}
		}
		if n > 0 {
			tf += float32(n) * s.c.norms.of(Field(f), lengths)
		}
	}
	return tf
}

// A place is a position of a token of a phrase, less the place of the token in
// the phrase.
type place struct{ at, token int }

// apart reports whether each token of a phrase can have one of the places, and
// equal tokens different positions. The first position that is left is always
// right, because the places of a later token are at later positions.
func apart(cursors []*cursor, places []place) bool {
	chosen := make([]int, len(cursors))
	for i, c := range cursors {
		after := -1
		for j := range i {
			if cursors[j].e.post == c.e.post {
				after = max(after, chosen[j])
			}
		}
		found := slices.IndexFunc(places, func(p place) bool { return p.token == i && p.at+i > after })
		if found < 0 {
			return false
		}
		chosen[i] = places[found].at + i
	}
	return true
}

// Docs returns the documents that have a chunk that meets the leaf. It does not
// leave out deleted documents. If ctx ends, the error is that of ctx, and the
// documents are those found so far.
func (s *Search) Docs(ctx context.Context, l *Leaf) (d Docs, err error) {
	defer catch(&s.current, &err)
	defer faults()()
	d = s.c.None()
	if err := s.count(ctx, l); err != nil {
		return d, err
	}
	c := s.cursor()
	defer s.free(c)
	for i := range l.parts {
		p, seg := &l.parts[i], s.c.segments[i]
		s.current = seg
		if p.none() {
			continue
		}
		d[i] = NewBits(seg.docs)
		if p.docs != nil {
			d[i].Or(p.docs)
		}
		err := p.each(seg, func(e entry) error {
			if err := s.spend(ctx, min(e.df, checkedPostings)); err != nil {
				return err
			}
			seg.addDocs(d[i], e, c, l.fields)
			return nil
		})
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

// addDocs adds the documents of a term to a set.
func (s *Segment) addDocs(to Bits, e entry, c *cursor, fields Fields) {
	if e.set >= 0 && fields == AllFields {
		set := s.sets[8*len(to)*e.set:][:8*len(to)]
		for i := range to {
			to[i] |= le.Uint64(set[8*i:])
		}
		return
	}
	if fields == AllFields {
		for c.open(s, e, fields); c.chunk != noChunk; c.load(c.block + 1) {
			for _, chunk := range c.chunks[:c.n] {
				to.Set(s.doc(chunk))
			}
		}
		return
	}
	for c.open(s, e, fields); c.chunk != noChunk; c.next() {
		if c.in() {
			to.Set(s.doc(c.chunk))
		}
	}
}

// gatherTerms makes one list of all terms and phrases of a leaf, in each
// segment that has more than one term of it.
func (s *Search) gatherTerms(ctx context.Context, l *Leaf) error {
	if s.done = 0; l.terms {
		return nil
	}
	l.df = 0
	c := s.cursor()
	defer s.free(c)
	for i := range l.parts {
		p := &l.parts[i]
		s.current = s.c.segments[i]
		switch {
		case p.all != nil:
		case len(p.terms) == 0 && p.many == nil && len(p.phrases) == 0:
			continue
		case len(p.terms) == 0 && p.many == nil && len(p.phrases) == 1:
			p.all = &p.phrases[0]
			p.all.limit()
		default:
			if err := s.gatherPart(ctx, p, c, l.fields); err != nil {
				return err
			}
		}
		l.df += len(p.all.chunks)
	}
	return nil
}

func (s *Search) gatherPart(ctx context.Context, p *part, c *cursor, fields Fields) error {
	s.reserve(s.current.chunks)
	defer func() {
		for w, word := range s.marks { // only if gathering was interrupted
			if word != 0 {
				s.marks[w] = 0
				clear(s.scores[w<<6 : min(w<<6+64, len(s.scores))])
			}
		}
	}()
	n := 0
	add := func(chunk uint32, tf float32) {
		if tf == 0 {
			return
		}
		if !s.marks.Has(int(chunk)) {
			s.marks.Set(int(chunk))
			n++
		}
		s.scores[chunk] += tf
	}
	err := p.each(s.current, func(e entry) error {
		for c.open(s.current, e, fields); c.chunk != noChunk; c.load(c.block + 1) {
			if err := s.spend(ctx, c.n); err != nil {
				return err
			}
			c.count()
			for i, chunk := range c.chunks[:c.n] {
				add(chunk, c.weigh(s.c.norms, i))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, l := range p.phrases {
		for i, chunk := range l.chunks {
			add(chunk, l.tf[i])
		}
	}
	s.kept += n
	l := &frequencies{}
	if s.kept <= maxKept {
		l.chunks, l.tf = make([]uint32, 0, n), make([]float32, 0, n)
	}
	for w, word := range s.marks {
		s.marks[w] = 0
		for ; word != 0; word &= word - 1 {
			chunk := w<<6 + bits.TrailingZeros64(word)
			if s.kept <= maxKept {
				l.chunks, l.tf = append(l.chunks, uint32(chunk)), append(l.tf, s.scores[chunk])
			}
			s.scores[chunk] = 0
		}
	}
	l.limit()
	p.all = l
	return nil
}

// limit computes the greatest frequency.
func (l *frequencies) limit() {
	for _, tf := range l.tf {
		l.most = max(l.most, tf)
	}
}

// reserve allocates space for n scores.
func (s *Search) reserve(n int) {
	if len(s.scores) < n {
		s.scores = make([]float32, n)
		s.marks = NewBits(n)
	}
}

// Chunks returns the number of chunks that meet the leaf, those of deleted
// documents included. It counts a chunk once for each term of a union.
func (l *Leaf) Chunks() int { return l.df }
