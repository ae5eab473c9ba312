package segment

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A testDoc is a document as the tests see it.
type testDoc struct {
	row         int64
	title, name []string
	chunks      []testChunk
	words       map[string]bool // as written; true for those in the title
}

type testChunk struct{ heading, text []string }

// field returns the tokens of a field of a chunk.
func (d *testDoc) field(chunk int, f Field) []string {
	return [fieldCount][]string{Title: d.title, Name: d.name, Heading: d.chunks[chunk].heading,
		Text: d.chunks[chunk].text}[f]
}

// vocabulary returns a function that returns made-up tokens: a few of them
// often, most of them rarely.
func vocabulary(rnd *rand.Rand) func() string {
	zipf := rand.NewZipf(rnd, 1.15, 2, 3000)
	return func() string {
		x := zipf.Uint64()
		if x%17 == 3 {
			return fmt.Sprintf("検%c", rune(0x4e00+x))
		}
		return fmt.Sprintf("w%x", x*x)
	}
}

// madeUp returns n documents with rising rows. Their texts become longer, so
// that the average lengths of segments differ.
func madeUp(rnd *rand.Rand, n int) []testDoc {
	word := vocabulary(rnd)
	tokens := func(n int) []string {
		t := make([]string, n)
		for i := range t {
			t[i] = word()
		}
		return t
	}
	docs := make([]testDoc, n)
	row := int64(0)
	for i := range docs {
		d := &docs[i]
		row += 1 + rnd.Int64N(3)
		d.row, d.title, d.name, d.words = row, tokens(rnd.IntN(2+6*i/n)), tokens(rnd.IntN(3)), map[string]bool{}
		for range rnd.IntN(6) * rnd.IntN(2) {
			d.chunks = append(d.chunks, testChunk{tokens(rnd.IntN(4)), tokens(rnd.IntN(20 + 60*i/n))})
		}
		if i%50 > 0 { // a few documents have no chunk
			d.chunks = append(d.chunks, testChunk{tokens(rnd.IntN(3)), tokens(rnd.IntN(20 + 60*i/n))})
		}
		for range 5 {
			d.words[strings.ToUpper(word())] = false
		}
		for _, t := range d.title {
			d.words[strings.ToUpper(t)] = true
		}
	}
	docs[n/2].chunks = []testChunk{{tokens(2), tokens(maxLength + 900)}} // longer than the ranking distinguishes
	return docs
}

// tokens returns tokens with some texts. Those that begin with + stand beside the
// token before them.
func tokens(texts []string) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		for _, s := range texts {
			text, beside := strings.CutPrefix(s, "+")
			if !yield(Token{Text: text, Beside: beside}) {
				return
			}
		}
	}
}

// add adds documents to a builder.
func add(b *Builder, docs []testDoc) {
	for i := range docs {
		d := &docs[i]
		b.Document(Document{Row: d.row, Title: d.title, Name: d.name})
		for w, inTitle := range d.words {
			b.Word(w, false)
			b.Word(w, inTitle)
		}
		for _, c := range d.chunks {
			b.Chunk(tokens(c.heading), tokens(c.text), 1)
		}
	}
}

// build returns the bytes of a segment of documents.
func build(t testing.TB, docs []testDoc) []byte {
	t.Helper()
	var b Builder
	add(&b, docs)
	var out bytes.Buffer
	n, err := b.WriteTo(&out)
	if err != nil || int(n) != out.Len() {
		t.Fatalf("WriteTo: %d bytes, %v; %d were written", n, err, out.Len())
	}
	return out.Bytes()
}

// open opens and verifies a segment.
func open(t testing.TB, data []byte) *Segment {
	t.Helper()
	s, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(); err != nil {
		t.Fatal(err)
	}
	return s
}

// split divides documents into n runs.
func split(docs []testDoc, n int) (parts [][]testDoc) {
	for i := range n {
		parts = append(parts, docs[len(docs)*i/n:len(docs)*(i+1)/n])
	}
	return parts
}

// collect makes a collection with a segment of each part. Documents whose rows
// are in gone are deleted.
func collect(t testing.TB, parts [][]testDoc, gone map[int64]bool) (c *Collection, segments []*Segment,
	deleted []Bits) {
	t.Helper()
	for _, part := range parts {
		s := open(t, build(t, part))
		var del Bits
		for i := range part {
			if gone[part[i].row] {
				if del == nil {
					del = NewBits(s.Docs())
				}
				del.Set(i)
			}
		}
		segments, deleted = append(segments, s), append(deleted, del)
	}
	return NewCollection(segments, deleted), segments, deleted
}

// A testLeaf has the arguments of [Search.Leaf].
type testLeaf struct {
	weight   float32
	fields   Fields
	patterns []Pattern
}

type testQuery struct {
	leaves []testLeaf
	within map[int64]bool // nil for all
	k      int
}

// counts has how often a leaf is in each field of a chunk.
type counts [fieldCount]int

// countTokens returns how often the patterns of one token are in a field.
// A token counts once, even if several patterns mean it.
func countTokens(field []string, patterns []Pattern) (n int) {
	for _, t := range field {
		for _, p := range patterns {
			if len(p.Tokens) == 1 && (t == p.Tokens[0] || p.Prefix && strings.HasPrefix(t, p.Tokens[0])) {
				n++
				break
			}
		}
	}
	return n
}

// countPhrase returns how often a phrase is in a field.
func countPhrase(field []string, p Pattern) (n int) {
	last := len(p.Tokens) - 1
	ends := map[string]bool{p.Tokens[last]: true}
	if p.Prefix {
		ends = map[string]bool{}
		for _, t := range field {
			if strings.HasPrefix(t, p.Tokens[last]) {
				ends[t] = true
			}
		}
	}
	for end := range ends {
		tokens := append(slices.Clone(p.Tokens[:last]), end)
		if p.Slop > 0 {
			n += countSloppy(field, tokens, p.Slop)
			continue
		}
		for i := 0; i+len(tokens) <= len(field); i++ {
			if slices.Equal(field[i:i+len(tokens)], tokens) {
				n++
			}
		}
	}
	return n
}

// countSloppy counts the occurrences of a phrase whose tokens may be moved: in
// the order of positions less places in the phrase, each occurrence ends as
// early as it can, and begins behind the one before. Each token has a position
// of its own.
func countSloppy(field, tokens []string, slop int) (n int) {
	type place struct{ at, token int }
	var all []place
	for at := -len(tokens); at < len(field); at++ {
		for i, t := range tokens {
			if at+i >= 0 && at+i < len(field) && field[at+i] == t {
				all = append(all, place{at, i})
			}
		}
	}
	begin := 0
	for end := range all {
		positions := make([][]int, len(tokens))
		for _, p := range all[begin : end+1] {
			if all[end].at-p.at <= slop {
				positions[p.token] = append(positions[p.token], p.at+p.token)
			}
		}
		if differ(positions, map[int]bool{}) {
			n, begin = n+1, end+1
		}
	}
	return n
}

// differ reports whether one position of each list can be chosen so that all
// differ from each other and from used ones.
func differ(positions [][]int, used map[int]bool) bool {
	if len(positions) == 0 {
		return true
	}
	for _, p := range positions[0] {
		if !used[p] {
			used[p] = true
			if differ(positions[1:], used) {
				return true
			}
			delete(used, p)
		}
	}
	return false
}

// A counted has the occurrences of a leaf in one chunk, found by brute force.
type counted struct {
	tf  counts // in the wanted fields
	has bool   // the chunk counts in the document frequency of the leaf
}

// brute finds a leaf in every chunk of every document.
func brute(docs []testDoc, l testLeaf) (found [][]counted) {
	single := len(l.patterns) == 1 && len(l.patterns[0].Tokens) == 1 && !l.patterns[0].Prefix
	for i := range docs {
		d := &docs[i]
		found = append(found, make([]counted, len(d.chunks)))
		for c := range d.chunks {
			k := &found[i][c]
			for f := range fieldCount {
				if l.fields&Only(f) == 0 && !single {
					continue
				}
				field := d.field(c, f)
				n := countTokens(field, l.patterns)
				for _, p := range l.patterns {
					if len(p.Tokens) > 1 {
						n += countPhrase(field, p)
					}
				}
				if l.fields&Only(f) != 0 {
					k.tf[f] = n
				}
				k.has = k.has || n > 0 // the document frequency of a single term is that in all fields
			}
		}
	}
	return found
}

// A chunkPlace names a chunk.
type chunkPlace struct {
	row   int64
	chunk int
}

// bruteTop returns the scores of all chunks that meet a leaf, and the documents
// of each leaf. Only the documents for which stats returns true count.
func bruteTop(docs []testDoc, q testQuery, leaves [][][]counted,
	stats func(row int64) bool) (scores map[chunkPlace]float64, found []map[int64]bool) {
	var sums [fieldCount]float64
	chunks := 0
	for i := range docs {
		for c := range docs[i].chunks {
			if stats(docs[i].row) {
				chunks++
				for f := range fieldCount {
					sums[f] += float64(min(len(docs[i].field(c, f)), maxLength))
				}
			}
		}
	}
	scores = map[chunkPlace]float64{}
	for j, l := range q.leaves {
		df := 0
		for i := range docs {
			for c := range docs[i].chunks {
				if stats(docs[i].row) && leaves[j][i][c].has {
					df++
				}
			}
		}
		idf := math.Log(1 + (float64(chunks)-float64(df)+0.5)/(float64(df)+0.5))
		rows := map[int64]bool{}
		for i := range docs {
			for c, n := range leaves[j][i] {
				weighed := 0.0
				for f := range fieldCount {
					if n.tf[f] == 0 {
						continue
					}
					b := float64(fieldB[f])
					weighed += float64(n.tf[f]) * float64(fieldWeight[f]) / (1 - b +
						b*float64(min(len(docs[i].field(c, f)), maxLength))/max(sums[f]/float64(chunks), 1))
				}
				if weighed > 0 && stats(docs[i].row) {
					rows[docs[i].row] = true
					scores[chunkPlace{docs[i].row, c}] += float64(l.weight) * idf * (k1 + 1) * weighed / (k1 + weighed)
				}
			}
		}
		found = append(found, rows)
	}
	return scores, found
}

// compare runs a query in a collection, and compares the answer with that of
// brute force.
func compare(t *testing.T, c *Collection, q testQuery, gone map[int64]bool, scores map[chunkPlace]float64,
	found []map[int64]bool) {
	t.Helper()
	ctx := t.Context()
	s := c.Begin()
	defer s.End()
	var leaves []*Leaf
	for _, l := range q.leaves {
		leaf, err := s.Leaf(ctx, l.fields, l.patterns...)
		if err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		leaf.Weight = l.weight
		leaves = append(leaves, leaf)
	}
	docs := func() {
		t.Helper()
		for i, l := range q.leaves {
			d, err := s.Docs(ctx, leaves[i])
			if err != nil {
				t.Fatalf("%+v: %v", l, err)
			}
			rows, err := c.RowsOf(d)
			if want := slices.Sorted(maps.Keys(found[i])); err != nil || !slices.Equal(rows, want) ||
				d.Count() != len(want) {
				t.Fatalf("%+v: %d documents, want %d (%v)", l, len(rows), len(want), err)
			}
		}
	}
	docs()
	var within Docs
	if q.within != nil {
		within = c.None()
		for i, s := range c.segments { // deleted documents included
			within[i] = NewBits(s.Docs())
			for d := range s.Docs() {
				if q.within[s.row(d)] {
					within[i].Set(d)
				}
			}
		}
	}
	hits, err := s.Top(ctx, leaves, within, q.k)
	if err != nil {
		t.Fatalf("%+v: %v", q.leaves, err)
	}
	best := map[int64]float64{}
	for p, score := range scores {
		if !gone[p.row] && (q.within == nil || q.within[p.row]) {
			best[p.row] = max(best[p.row], score)
		}
	}
	want := slices.SortedFunc(maps.Values(best), func(a, b float64) int { return cmp.Compare(b, a) })
	want = want[:min(len(want), q.k)]
	if len(hits) != len(want) {
		t.Fatalf("%+v: %d hits, want %d", q.leaves, len(hits), len(want))
	}
	near := func(a float32, b float64) bool { return math.Abs(float64(a)-b) <= 1e-4*math.Abs(b) }
	seen := map[int64]bool{}
	for i, h := range hits {
		if own := scores[chunkPlace{h.Row, h.Chunk}]; seen[h.Row] || gone[h.Row] || !near(h.Score, want[i]) ||
			!near(h.Score, own) || !near(h.Score, best[h.Row]) {
			t.Fatalf("%+v: hit %d is %+v; by brute force the chunk has %v, its document %v, hit %d %v", q.leaves, i, h,
				own, best[h.Row], i, want[i])
		}
		if i > 0 && h.Score > hits[i-1].Score {
			t.Fatalf("%+v: the hits are not sorted", q.leaves)
		}
		seen[h.Row] = true
	}
	chunks, err := s.TopChunks(ctx, leaves, within, q.k)
	if err != nil {
		t.Fatalf("%+v: TopChunks: %v", q.leaves, err)
	}
	want = want[:0]
	for p, score := range scores {
		if score > 0 && !gone[p.row] && (q.within == nil || q.within[p.row]) {
			want = append(want, score)
		}
	}
	slices.SortFunc(want, func(a, b float64) int { return cmp.Compare(b, a) })
	if want = want[:min(len(want), q.k)]; len(chunks) != len(want) {
		t.Fatalf("%+v: TopChunks returns %d chunks, want %d", q.leaves, len(chunks), len(want))
	}
	for i, h := range chunks {
		if own := scores[chunkPlace{h.Row, h.Chunk}]; !near(h.Score, want[i]) || !near(h.Score, own) {
			t.Fatalf("%+v: chunk %d is %+v; by brute force it has %v, chunk %d %v", q.leaves, i, h, own, i, want[i])
		}
	}
	docs() // still the same
	again, err := s.Top(ctx, leaves, within, q.k)
	if err != nil || !slices.Equal(again, hits) {
		t.Fatalf("%+v: other hits the second time (%v)", q.leaves, err)
	}
}

// madeUpQueries returns queries of every kind, most of them with words that
// stand in the documents.
func madeUpQueries(rnd *rand.Rand, docs []testDoc, n int) (queries []testQuery) {
	word := vocabulary(rnd)
	sequence := func(n int) []string {
		for {
			d := &docs[rnd.IntN(len(docs))]
			if len(d.chunks) == 0 {
				continue
			}
			field := d.field(rnd.IntN(len(d.chunks)), Field(rnd.IntN(4)))
			if rnd.IntN(3) > 0 {
				field = d.chunks[0].text
			}
			if len(field) >= n {
				at := rnd.IntN(len(field) - n + 1)
				return field[at : at+n]
			}
		}
	}
	prefix := func(token string) string {
		r := []rune(token)
		return string(r[:min(len(r), 1+rnd.IntN(3))])
	}
	fields := []Fields{AllFields, AllFields, Only(Title), Only(Text), Only(Text) | Only(Heading), Only(Name)}
	for i := range n {
		leaf := func(patterns ...Pattern) testLeaf {
			return testLeaf{weight: 1, fields: fields[rnd.IntN(len(fields))], patterns: patterns}
		}
		term := func() Pattern { return Pattern{Tokens: []string{word()}} }
		phrase := func() Pattern {
			p := Pattern{Tokens: slices.Clone(sequence(2 + rnd.IntN(2)))}
			switch rnd.IntN(4) {
			case 0:
				p.Slop = 1 + rnd.IntN(4)
				rnd.Shuffle(len(p.Tokens), func(i, j int) { p.Tokens[i], p.Tokens[j] = p.Tokens[j], p.Tokens[i] })
			case 1:
				p.Prefix, p.Slop = true, rnd.IntN(2)
				last := &p.Tokens[len(p.Tokens)-1]
				if !strings.HasPrefix(*last, "w") { // 検 has few completions
					*last = prefix(*last)
				} else { // w alone has many completions
					*last = (*last)[:min(len(*last), 2+rnd.IntN(2))]
				}
			}
			return p
		}
		begin := func() Pattern { return Pattern{Tokens: []string{prefix(word())}, Prefix: true} }
		var q testQuery
		switch i % 8 {
		case 0:
			q.leaves = append(q.leaves, leaf(term()))
		case 1: // the most frequent terms, too
			for range 2 + rnd.IntN(7) {
				l := leaf(term())
				l.weight, l.fields = rnd.Float32()*2+0.1, AllFields
				q.leaves = append(q.leaves, l)
			}
		case 2:
			q.leaves = append(q.leaves, leaf(term(), term(), begin()), leaf(term()))
		case 3:
			q.leaves = append(q.leaves, leaf(begin()))
		case 4:
			q.leaves = append(q.leaves, leaf(phrase()))
		case 5:
			q.leaves = append(q.leaves, leaf(phrase(), phrase(), term()), leaf(phrase()))
		case 6:
			q.leaves = append(q.leaves, leaf(phrase()), leaf(term()), leaf(begin()),
				leaf(Pattern{Tokens: []string{"absent"}}), leaf(Pattern{}), leaf())
		case 7: // the same token twice
			p := phrase()
			if p.Tokens = append(p.Tokens, p.Tokens[0]); rnd.IntN(2) == 0 {
				p.Tokens = []string{p.Tokens[0], p.Tokens[0]}
			}
			q.leaves = append(q.leaves, leaf(p), leaf(term(), term()))
		}
		q.k = []int{1, 10, 1000}[rnd.IntN(3)]
		if rnd.IntN(3) == 0 {
			q.within = map[int64]bool{}
			share := rnd.IntN(100)
			for i := range docs {
				if rnd.IntN(100) < share {
					q.within[docs[i].row] = true
				}
			}
		}
		queries = append(queries, q)
	}
	return queries
}

// TestQueries compares every kind of query with brute force.
func TestQueries(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute under the race detector, and has one goroutine")
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	docs := madeUp(rnd, 1000)
	gone := map[int64]bool{}
	for i := range docs {
		if rnd.IntN(5) == 0 {
			gone[docs[i].row] = true
		}
	}
	queries := madeUpQueries(rnd, docs, 120)
	type answer struct {
		scores map[chunkPlace]float64
		found  []map[int64]bool
	}
	leaves := make([][][][]counted, len(queries))
	for i, q := range queries {
		for _, l := range q.leaves {
			leaves[i] = append(leaves[i], brute(docs, l))
		}
	}
	answers := func(stats func(row int64) bool) (out []answer) {
		for i, q := range queries {
			scores, found := bruteTop(docs, q, leaves[i], stats)
			out = append(out, answer{scores, found})
		}
		return out
	}
	all := answers(func(int64) bool { return true })
	live := answers(func(row int64) bool { return !gone[row] })
	for _, n := range []int{1, 3, 40} {
		check := func(c *Collection, gone map[int64]bool, want []answer) func(*testing.T) {
			return func(t *testing.T) {
				for i, q := range queries {
					compare(t, c, q, gone, want[i].scores, want[i].found)
				}
			}
		}
		whole, _, _ := collect(t, split(docs, n), nil)
		t.Run(fmt.Sprintf("%d segments", n), check(whole, nil, all))
		some, segments, deleted := collect(t, split(docs, n), gone)
		t.Run(fmt.Sprintf("%d segments with deleted documents", n), check(some, gone, all))
		s := open(t, merge(t, segments, deleted))
		t.Run(fmt.Sprintf("%d segments merged", n), check(NewCollection([]*Segment{s}, []Bits{nil}), nil, live))
	}
}

// merge returns the bytes of a merged segment.
func merge(t testing.TB, segments []*Segment, deleted []Bits) []byte {
	t.Helper()
	var out bytes.Buffer
	n, err := Merge(t.Context(), &out, InMemory, segments, deleted)
	if err != nil || int(n) != out.Len() {
		t.Fatalf("Merge: %d bytes, %v; %d were written", n, err, out.Len())
	}
	return out.Bytes()
}

// TestMerge checks that a merged segment has the same bytes as one that was
// built of the same documents.
func TestMerge(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	docs := madeUp(rnd, 600)
	alternating := make([][]testDoc, 7)
	for _, d := range docs {
		i := rnd.IntN(len(alternating) - 1) // the last is empty
		alternating[i] = append(alternating[i], d)
	}
	some, none := map[int64]bool{}, map[int64]bool{}
	for i, d := range docs {
		if none[d.row] = true; rnd.IntN(3) == 0 || i > 540 {
			some[d.row] = true
		}
	}
	for _, tt := range []struct {
		name  string
		parts [][]testDoc
		gone  map[int64]bool
	}{
		{"one segment", split(docs, 1), nil},
		{"3 segments", split(docs, 3), nil},
		{"3 segments with deleted documents", split(docs, 3), some},
		{"40 segments with deleted documents", split(docs, 40), some},
		{"alternating rows", alternating, nil},
		{"alternating rows with deleted documents", alternating, some},
		{"nothing left", split(docs, 3), none},
		{"no segment", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, segments, deleted := collect(t, tt.parts, tt.gone)
			var left []testDoc
			for _, d := range docs {
				if !tt.gone[d.row] && tt.parts != nil {
					left = append(left, d)
				}
			}
			got, want := merge(t, segments, deleted), build(t, left)
			if !bytes.Equal(got, want) {
				t.Fatalf("%d bytes differ from %d that were built", len(got), len(want))
			}
			open(t, got)
		})
	}
}

// TestPruning checks that the best hits are the same as in a ranking of all
// documents, where no chunk can be left out. The texts of one segment are much
// longer than those of the others, so that its averages differ from those of
// the collection.
func TestPruning(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var parts [][]testDoc
	row := int64(0)
	for _, part := range []struct{ docs, length int }{{12000, 6}, {7000, 3}, {4000, 60}} {
		var docs []testDoc
		for range part.docs {
			row++
			d := testDoc{row: row, chunks: []testChunk{{}}}
			if rnd.IntN(9) == 0 {
				d.title = []string{fmt.Sprint("w", rnd.IntN(40))}
			}
			for range rnd.IntN(2 * part.length) {
				x := rnd.IntN(200)
				d.chunks[0].text = append(d.chunks[0].text, fmt.Sprint("w", x*x/200))
			}
			docs = append(docs, d)
		}
		parts = append(parts, docs)
	}
	c, _, _ := collect(t, parts, nil)
	s := c.Begin()
	defer s.End()
	for range 40 {
		var leaves []*Leaf
		for range 1 + rnd.IntN(5) {
			p := []Pattern{{Tokens: []string{fmt.Sprint("w", rnd.IntN(200))}}}
			if rnd.IntN(5) == 0 { // a union
				p = append(p, Pattern{Tokens: []string{fmt.Sprint("w", rnd.IntN(100))}})
			}
			l, err := s.Leaf(t.Context(), AllFields, p...)
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, l)
		}
		all, err := s.Top(t.Context(), leaves, nil, int(row))
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []int{1, 10, 100} {
			hits, err := s.Top(t.Context(), leaves, nil, k)
			if err != nil || len(hits) != min(k, len(all)) {
				t.Fatalf("%d hits, want %d (%v)", len(hits), min(k, len(all)), err)
			}
			for i, h := range hits {
				if want := all[i].Score; math.Abs(float64(h.Score-want)) > 1e-4*float64(want) {
					t.Fatalf("hit %d of %d is %+v, want score %v", i, k, h, want)
				}
			}
		}
	}
}

// TestSlop shows what the distance of a phrase means.
func TestSlop(t *testing.T) {
	for _, tt := range []struct {
		phrase, text string
		least        int // slop with which the phrase is found
	}{
		{"a b", "a b", 0},
		{"a b", "a x b", 1},
		{"a b", "a x x b", 2},
		{"a b", "b a", 2},
		{"a b", "b x a", 3},
		{"a b c", "a x b c", 1},
		{"a b c", "a x b x c", 2},
		{"a b c", "b a c", 2},
		{"a a", "a a", 0},
		{"a a", "a x a", 1},
		{"a b a", "a b x a", 1},
		{"a a", "a", 100},
		{"a b a", "a b", 100},
		{"a b", "a x", 100},
	} {
		s := open(t, build(t, []testDoc{{chunks: []testChunk{{text: strings.Fields(tt.text)}}}}))
		search := NewCollection([]*Segment{s}, []Bits{nil}).Begin()
		for slop := range min(tt.least+3, 20) {
			l, err := search.Leaf(t.Context(), AllFields, Pattern{Tokens: strings.Fields(tt.phrase), Slop: slop})
			if err != nil {
				t.Fatal(err)
			}
			d, err := search.Docs(t.Context(), l)
			if found := d.Count() == 1; err != nil || found != (slop >= tt.least) {
				t.Errorf("%q with slop %d in %q: found = %v (%v)", tt.phrase, slop, tt.text, found, err)
			}
		}
		search.End()
	}
}

// TestCanceled checks that searches and merges end with the error of the
// context, and that a search that was interrupted leaves nothing behind.
func TestCanceled(t *testing.T) {
	docs := madeUp(rand.New(rand.NewPCG(7, 8)), 300)
	c, segments, deleted := collect(t, split(docs, 2), nil)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	s := c.Begin()
	defer s.End()
	prefix := Pattern{Tokens: []string{"w"}, Prefix: true}
	leaf := func(patterns ...Pattern) *Leaf {
		l, err := s.Leaf(t.Context(), AllFields, patterns...)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	want, err := s.Top(t.Context(), []*Leaf{leaf(prefix)}, nil, 10)
	if err != nil || len(want) != 10 {
		t.Fatalf("%d hits, %v", len(want), err)
	}
	l := leaf(prefix)
	for name, do := range map[string]func() error{
		"Leaf":   func() error { _, err := s.Leaf(canceled, AllFields, prefix); return err },
		"phrase": func() error { _, err := s.Leaf(canceled, AllFields, Pattern{Tokens: []string{"w0", "w1"}}); return err },
		"Docs":   func() error { _, err := s.Docs(canceled, l); return err },
		"Top":    func() error { _, err := s.Top(canceled, []*Leaf{l}, nil, 10); return err },
		"Top, term": func() error {
			_, err := s.Top(canceled, []*Leaf{leaf(Pattern{Tokens: []string{"w0"}})}, nil, 10)
			return err
		},
		"WordsWith": func() error { return c.WordsWith(canceled, "", func(Word) bool { return true }) },
		"WordsNear": func() error { _, err := c.WordsNear(canceled, docs[0].title[0], 2, 10); return err },
		"Merge": func() error {
			_, err := Merge(canceled, &bytes.Buffer{}, InMemory, segments, deleted)
			return err
		},
	} {
		if err := do(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	hits, err := s.Top(t.Context(), []*Leaf{l}, nil, 10)
	if err != nil || !slices.Equal(hits, want) {
		t.Errorf("hits after an interrupted search: %v (%v), want %v", hits, err, want)
	}
}

// TestConcurrent runs searches of one collection at the same time.
func TestConcurrent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	docs := madeUp(rnd, 200)
	c, _, _ := collect(t, split(docs, 3), map[int64]bool{docs[7].row: true})
	queries := madeUpQueries(rnd, docs, 40)
	run := func() (all [][]Hit, err error) {
		for _, q := range queries {
			s := c.Begin()
			var leaves []*Leaf
			for _, l := range q.leaves {
				leaf, err := s.Leaf(t.Context(), l.fields, l.patterns...)
				if err != nil {
					return nil, err
				}
				leaves = append(leaves, leaf)
			}
			hits, err := s.Top(t.Context(), leaves, nil, q.k)
			if err != nil {
				return nil, err
			}
			s.End()
			all = append(all, hits)
		}
		return all, nil
	}
	want, err := run()
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if got, err := run(); err != nil || !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("other hits than before (%v)", err)
			}
		})
	}
	group.Wait()
}

// TestRows compares sets of documents with maps.
func TestRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	parts := make([][]testDoc, 5) // one is empty
	gone := map[int64]bool{}
	live := map[int64]bool{}
	for row := range int64(400) {
		if rnd.IntN(3) == 0 {
			continue
		}
		i := rnd.IntN(4)
		parts[i] = append(parts[i], testDoc{row: row})
		if live[row] = true; i < 3 && rnd.IntN(5) == 0 {
			gone[row] = true
			delete(live, row)
		}
	}
	c, _, _ := collect(t, parts, gone)
	check := func(name string, d Docs, want func(row int64) bool) {
		t.Helper()
		rows, err := c.RowsOf(d)
		var wanted []int64
		for row := range int64(400) {
			if want(row) {
				wanted = append(wanted, row)
			}
		}
		if err != nil || !slices.Equal(rows, wanted) || d.Count() != len(wanted) {
			t.Errorf("%s: %v (%v), want %v", name, rows, err, wanted)
		}
		for i, s := range c.segments {
			for n := range s.Docs() {
				if d.Has(i, n) != slices.Contains(wanted, s.row(n)) {
					t.Errorf("%s: Has(%d, %d) = %v", name, i, n, d.Has(i, n))
				}
			}
		}
	}
	made := func() (Docs, map[int64]bool) {
		var rows []int64
		in := map[int64]bool{}
		share := rnd.IntN(30)
		for row := int64(-5); row < 410; row++ {
			for rnd.IntN(30) < share { // some twice
				rows = append(rows, row)
				in[row] = live[row]
			}
		}
		d, err := c.Rows(rows)
		if err != nil {
			t.Fatal(err)
		}
		return d, in
	}
	check("All", c.All(), func(row int64) bool { return live[row] })
	check("None", c.None(), func(int64) bool { return false })
	for range 20 {
		a, inA := made()
		b, inB := made()
		check("Rows", a, func(row int64) bool { return inA[row] })
		or, and, not := a.Clone(), a.Clone(), a.Clone()
		or.Or(b.Clone())
		and.And(b)
		not.AndNot(b)
		check("Or", or, func(row int64) bool { return inA[row] || inB[row] })
		check("And", and, func(row int64) bool { return inA[row] && inB[row] })
		check("AndNot", not, func(row int64) bool { return inA[row] && !inB[row] })
		none := c.None()
		none.And(a)
		none.AndNot(a)
		check("None and", none, func(int64) bool { return false })
		none.Or(a)
		none.Or(c.None())
		check("None or", none, func(row int64) bool { return inA[row] })
		none.And(c.None())
		check("and None", none, func(int64) bool { return false })
	}
}

// TestFirstHits checks that the first hits do not depend on how many are asked
// for, where many have the same score.
func TestFirstHits(t *testing.T) {
	var segments []*Segment
	row := int64(0)
	for _, docs := range []int{3, 40, 7, 40} {
		var b Builder
		for range docs {
			row++
			b.Document(Document{Row: row})
			b.Chunk(tokens(nil), tokens([]string{"same"}), 1)
		}
		var out bytes.Buffer
		if _, err := b.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		s, err := Open(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		segments = append(segments, s)
	}
	search := NewCollection(segments, make([]Bits, len(segments))).Begin()
	defer search.End()
	top := func(k int) (rows []int64) {
		l, err := search.Leaf(t.Context(), AllFields, Pattern{Tokens: []string{"same"}})
		if err != nil {
			t.Fatal(err)
		}
		hits, err := search.Top(t.Context(), []*Leaf{l}, nil, k)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hits {
			rows = append(rows, h.Row)
		}
		return rows
	}
	all := top(90)
	for k := range all {
		if got := top(k + 1); !slices.Equal(got, all[:k+1]) {
			t.Fatalf("Top(%d) = %v, want the first of %v", k+1, got, all)
		}
	}
}

// Tokens that stand beside others have their positions, do not lengthen the text,
// and stand there once.
func TestTokensBeside(t *testing.T) {
	c := NewCollection([]*Segment{open(t, build(t, []testDoc{
		{row: 1, chunks: []testChunk{{text: strings.Fields("call printall +print +all +print now +=:: after")}}},
		{row: 2, chunks: []testChunk{{text: strings.Fields("+=-- print it all")}}},
		{row: 3, chunks: []testChunk{{text: strings.Fields("call printall now after")}}},
	}))}, []Bits{nil})
	s := c.Begin()
	defer s.End()
	for _, tt := range []struct {
		tokens string
		want   []int64
	}{
		{"call printall now after", []int64{1, 3}},
		{"call print now", []int64{1}},
		{"all now", []int64{1}},
		{"print all", nil},
		{"=::", []int64{1}},
		{"=--", []int64{2}},
	} {
		l, err := s.Leaf(t.Context(), AllFields, Pattern{Tokens: strings.Fields(tt.tokens)})
		if err != nil {
			t.Fatal(err)
		}
		docs, err := s.Docs(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if rows, err := c.RowsOf(docs); err != nil || !slices.Equal(rows, tt.want) {
			t.Errorf("documents with %q = %v, %v, want %v", tt.tokens, rows, err, tt.want)
		}
	}
	leaf, err := s.Leaf(t.Context(), AllFields, Pattern{Tokens: []string{"after"}})
	if err != nil {
		t.Fatal(err)
	}
	hits, err := s.Top(t.Context(), []*Leaf{leaf}, nil, 2)
	if err != nil || len(hits) != 2 || hits[0].Score != hits[1].Score {
		t.Errorf("Top = %v, %v, want two equal scores", hits, err)
	}
}

// TestResetReleasesMemory checks that a builder that has written a large segment
// does not clear its tables again after each small one.
func TestResetReleasesMemory(t *testing.T) {
	var b Builder
	add := func(names int) {
		title := make([]string, names)
		for i := range title {
			title[i] = fmt.Sprint(i)
		}
		b.Document(Document{Title: title})
		b.Reset()
	}
	add(10_000)
	add(8_000)
	if n := cap(b.names); n < 8_000 {
		t.Errorf("memory for %d names is left after a large segment, want it to be used again", n)
	}
	add(10)
	if n := cap(b.names); n > 1_000 {
		t.Errorf("memory for %d names is left after a small segment, want less", n)
	}
}
