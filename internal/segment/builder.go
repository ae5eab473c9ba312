package segment

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"iter"
	"slices"
	"strings"
)

// A Document has the fields of a document that a [Builder] needs, without its chunks.
type Document struct {
	Row   int64    // a number that no other document has; not negative
	Title []string // tokens of the title
	Name  []string // tokens of the file name
}

// A Builder gathers documents in memory and writes a segment of them. Documents
// come in the order of their rows. Each is followed by its words and its
// chunks. The zero Builder is ready for use. After a segment was written, Reset
// must be called. A Builder refers to the strings that it got until then.
type Builder struct {
	// Store, if not nil, stores what write writes, and returns it until Reset is
	// called. A Builder that needs more than Limit bytes of memory, by an estimate,
	// stores a part of the segment. The parts are merged when the segment is written.
	Store func(write func(io.Writer) error) ([]byte, error)
	Limit int

	parts []*Segment // their rows are indexes in rows
	err   error      // of Store
	rows  []int64    // of all documents
	doc   Document   // the current one

	w     writer
	ids   map[string]uint32
	names []string // of the tokens

	// The tokens of all chunks in order: of their titles, names, headings and
	// texts. A token that stands at the position of the one before it has besideBit.
	tokens []uint32
	ends   [][fieldCount]int // by chunk: where the fields end in tokens

	wordIDs  map[string]uint32
	words    []builtWord
	wordDocs []wordDoc

	stringBytes int // of names and words

	title, name []uint32 // tokens of the current document
}

// A builtWord is a word as people write it.
type builtWord struct {
	name  string
	token uint32 // number plus one of the token that came with it last, 0 for none
	last  int    // place plus one in Builder.wordDocs of its last document
}

// A wordDoc is a document of a word.
type wordDoc struct {
	word uint32
	doc  uint32 // the number doubled, plus one if the word is in the title
}

// besideBit marks a token that stands at the position of the one before it.
const besideBit = 1 << 31

// Reset makes the Builder empty. It keeps memory for the next segment, unless
// the last segment needed little of it: clearing a large map takes long.
func (b *Builder) Reset() {
	b.clear()
	b.parts, b.err, b.rows, b.doc = nil, nil, b.rows[:0], Document{}
}

// clear removes what is in memory.
func (b *Builder) clear() {
	fresh := Builder{Store: b.Store, Limit: b.Limit, parts: b.parts, err: b.err, rows: b.rows, doc: b.doc}
	if len(b.names) >= cap(b.names)/16 {
		clear(b.ids)
		clear(b.wordIDs)
		clear(b.names)
		clear(b.words)
		fresh.ids, fresh.names, fresh.tokens, fresh.ends = b.ids, b.names[:0], b.tokens[:0], b.ends[:0]
		fresh.wordIDs, fresh.words, fresh.wordDocs = b.wordIDs, b.words[:0], b.wordDocs[:0]
		fresh.title, fresh.name = b.title[:0], b.name[:0]
	}
	*b = fresh
}

// Bytes of memory for each of what a Builder has, while it writes a segment:
// slices, maps, what sorting needs, and the segment.
const (
	bytesOfToken   = 16
	bytesOfName    = 140
	bytesOfWord    = 140
	bytesOfWordDoc = 16
	bytesOfChunk   = 100
)

// memory estimates the bytes of memory that writing the segment takes.
func (b *Builder) memory() int {
	return bytesOfToken*len(b.tokens) + bytesOfName*len(b.names) + bytesOfWord*len(b.words) +
		bytesOfWordDoc*len(b.wordDocs) +
		bytesOfChunk*(len(b.ends)+b.w.docs) + b.stringBytes
}

// spill stores a part of the segment if what is in memory is too large. It
// reports whether it did.
func (b *Builder) spill() bool {
	if b.Store == nil || b.memory() <= b.Limit {
		return false
	}
	b.store()
	return true
}

// store stores a part of the segment, unless there was an error before.
func (b *Builder) store() {
	if b.err == nil {
		var data []byte
		if data, b.err = b.Store(func(out io.Writer) error { return b.writeAll(out, InMemory) }); b.err == nil {
			var s *Segment
			if s, b.err = Open(data); b.err == nil {
				b.parts = append(b.parts, s)
			}
		}
	}
	b.clear()
}

// Stored reports whether parts of the segment were stored.
func (b *Builder) Stored() bool { return len(b.parts) > 0 }

// Document begins a document.
func (b *Builder) Document(d Document) {
	b.spill()
	b.rows, b.doc = append(b.rows, d.Row), d
	b.begin()
}

// begin begins the current document, or another part of it.
func (b *Builder) begin() {
	if b.ids == nil {
		b.ids, b.wordIDs = map[string]uint32{}, map[string]uint32{}
	}
	b.w.document(int64(len(b.rows)-1), hashTokens(b.doc.Title))
	b.title, b.name = b.title[:0], b.name[:0]
	for _, t := range b.doc.Title {
		b.title = append(b.title, b.id(t))
	}
	for _, t := range b.doc.Name {
		b.name = append(b.name, b.id(t))
	}
}

// Word records that the current document has a word as people write it, for
// [Collection.WordsWith]. A word may be recorded more than once.
func (b *Builder) Word(word string, inTitle bool) { b.word(word, inTitle) }

// word records a word, and returns it.
func (b *Builder) word(word string, inTitle bool) *builtWord {
	id, ok := b.wordIDs[word]
	if !ok {
		id = uint32(len(b.words))
		b.stringBytes += len(word)
		b.wordIDs[word] = id
		b.words = append(b.words, builtWord{name: word})
	}
	doc := uint32(b.w.docs-1) << 1
	if inTitle {
		doc |= 1
	}
	w := &b.words[id]
	if w.last > 0 && b.wordDocs[w.last-1].doc>>1 == doc>>1 {
		b.wordDocs[w.last-1].doc |= doc
		return w
	}
	b.wordDocs = append(b.wordDocs, wordDoc{id, doc})
	w.last = len(b.wordDocs)
	return w
}

// A Token is a token of a text as it is indexed.
type Token struct {
	Text string // "" if there is only a word
	Word string // the word as people write it, which is recorded as with Word; "" if there is none

	// Beside reports whether the token stands at the position of the one
	// before it, and does not count in the length of the text.
	Beside bool
}

// Chunk adds a chunk to the current document: the tokens of the headings above
// it and of its text, whose length counts times its number of tokens.
func (b *Builder) Chunk(heading, text iter.Seq[Token], times int) {
	if b.spill() {
		b.begin()
	}
	var lengths, ends [fieldCount]int
	add := func(f Field, ids []uint32) {
		b.tokens = append(b.tokens, ids...)
		lengths[f], ends[f] = len(ids), len(b.tokens)
	}
	add(Title, b.title)
	add(Name, b.name)
	tokens := func(f Field, list iter.Seq[Token]) {
		first := len(b.tokens)
		for t := range list {
			if t.Text == "" {
				b.word(t.Word, false)
				continue
			}
			id := b.tokenID(t)
			if !t.Beside {
				b.tokens = append(b.tokens, id)
				lengths[f]++
				continue
			}
			// A term has no position twice. Tokens before the first position are
			// at it, too.
			i := len(b.tokens) - 1
			for i >= first && b.tokens[i]&^besideBit != id && (b.tokens[i]&besideBit != 0 || lengths[f] < 2) {
				i--
			}
			if i < first || b.tokens[i]&^besideBit != id {
				b.tokens = append(b.tokens, id|besideBit)
			}
		}
		ends[f] = len(b.tokens)
	}
	tokens(Heading, heading)
	tokens(Text, text)
	lengths[Text] *= times
	b.ends = append(b.ends, ends)
	b.w.chunk(lengths)
}

// tokenID returns the number of a token, and records its word.
func (b *Builder) tokenID(t Token) uint32 {
	if t.Word == "" {
		return b.id(t.Text)
	}
	// A word mostly comes with the same token.
	w := b.word(t.Word, false)
	if w.token == 0 || b.names[w.token-1] != t.Text {
		w.token = b.id(t.Text) + 1
	}
	return w.token - 1
}

// id returns the number of a token.
func (b *Builder) id(token string) uint32 {
	id, ok := b.ids[token]
	if !ok {
		id = uint32(len(b.names))
		b.stringBytes += len(token)
		b.ids[token] = id
		b.names = append(b.names, token)
	}
	return id
}

// place64 packs the place of a token so that places are in the order of the
// tokens: the chunk, the field and the position.
func place64(chunk int, f Field, position int) uint64 {
	return uint64(chunk)<<32 | uint64(f)<<30 | uint64(position)
}

// of makes l of the places of one token, which are in order.
func (l *list) of(places []uint64) {
	l.reset()
	before := uint64(1<<64 - 1) // chunk and field of the position before
	last := uint32(0)
	for _, p := range places {
		if n := len(l.chunks); n == 0 || l.chunks[n-1] != uint32(p>>32) {
			l.chunks = append(l.chunks, uint32(p>>32))
			for f := range l.tf {
				l.tf[f] = append(l.tf[f], 0)
			}
		}
		if p>>30 != before {
			before, last = p>>30, 0
		}
		l.tf[p>>30&3][len(l.chunks)-1]++
		position := uint32(p & (1<<30 - 1))
		l.positions = binary.AppendUvarint(l.positions, uint64(position-last))
		last = position
	}
}

// byName returns the numbers of names in the order of the names.
func byName(n int, name func(i uint32) string) []uint32 {
	type named struct {
		head uint64 // of the name
		id   uint32
	}
	all := make([]named, n)
	for i := range all {
		all[i] = named{head(name(uint32(i))), uint32(i)}
	}
	slices.SortFunc(all, func(x, y named) int {
		if x.head != y.head {
			return cmp.Compare(x.head, y.head)
		}
		return strings.Compare(name(x.id), name(y.id))
	})
	order := make([]uint32, n)
	for i, x := range all {
		order[i] = x.id
	}
	return order
}

// grouped sorts values by their keys, which are less than n, and keeps the order
// of values with the same key. Those of key k are at starts[k] to starts[k+1].
func grouped[T any](n int, values iter.Seq2[uint32, T]) (sorted []T, starts []int) {
	starts = make([]int, n+2)
	size := 0
	for k := range values {
		starts[k+2]++
		size++
	}
	for k := range n {
		starts[k+2] += starts[k+1]
	}
	sorted = make([]T, size)
	for k, v := range values {
		sorted[starts[k+1]] = v
		starts[k+1]++
	}
	return sorted, starts[:n+1]
}

// places calls yield with each token of the chunks and its place, in order.
func (b *Builder) places(yield func(token uint32, place uint64) bool) {
	i := 0
	for chunk, ends := range b.ends {
		for f, end := range ends {
			place := place64(chunk, Field(f), 0)
			for n := 0; i < end; i++ { // n tokens of the field have a position
				token := b.tokens[i]
				if token&besideBit == 0 {
					n++
				}
				if !yield(token&^besideBit, place+uint64(max(n-1, 0))) {
					return
				}
			}
		}
	}
}

// docsOfWords calls yield with each word and its documents, in order.
func (b *Builder) docsOfWords(yield func(word, doc uint32) bool) {
	for _, d := range b.wordDocs {
		if !yield(d.word, d.doc) {
			return
		}
	}
}

// WriteTo writes the segment. Only Reset may be called after it.
func (b *Builder) WriteTo(out io.Writer) (int64, error) {
	return b.Write(context.Background(), out, InMemory)
}

// Write writes the segment, as [Builder.WriteTo] does, and returns its size. spool
// returns an empty [Spool] for merging parts that were stored.
func (b *Builder) Write(ctx context.Context, out io.Writer, spool func() Spool) (int64, error) {
	if len(b.parts) > 0 && b.w.docs > 0 {
		b.store()
	}
	switch {
	case b.err != nil:
		return 0, b.err
	case len(b.parts) > 0:
		return mergeParts(ctx, out, spool, b.parts, make([]Bits, len(b.parts)), b.rows)
	}
	b.w.rows = b.w.rows[:0]
	for _, row := range b.rows {
		b.w.rows = le.AppendUint64(b.w.rows, uint64(row))
	}
	err := b.writeAll(out, InMemory)
	return int64(b.w.written), err
}

// writeAll writes a segment of what is in memory.
func (b *Builder) writeAll(out io.Writer, spool func() Spool) error {
	w := &b.w
	w.to(out, spool)
	w.columns()
	var l list
	places, starts := grouped(len(b.names), b.places)
	for _, id := range byName(len(b.names), func(i uint32) string { return b.names[i] }) {
		if of := places[starts[id]:starts[id+1]]; len(of) > 0 { // a term of a title may have no chunk
			l.of(of)
			w.term([]byte(b.names[id]), &l)
		}
	}
	docs, starts := grouped(len(b.words), b.docsOfWords)
	for _, id := range byName(len(b.words), func(i uint32) string { return b.words[i].name }) {
		w.word([]byte(b.words[id].name), docs[starts[id]:starts[id+1]])
	}
	return w.finish()
}

// SetRows replaces the rows of the documents of a segment that was written to f
// and has so many bytes, in their order. The segment must not be open.
func SetRows(f interface {
	io.ReaderAt
	io.WriterAt
}, size int64, rows []int64) error {
	column := make([]byte, 0, 8*len(rows))
	for _, row := range rows {
		column = le.AppendUint64(column, uint64(row))
	}
	footer := make([]byte, footerSize)
	at := size - int64(footerSize)
	if _, err := f.ReadAt(footer, max(at, 0)); err != nil || le.Uint64(footer[20*secRows+8:]) != uint64(len(column)) {
		return cmp.Or(err, error(&Damage{Reason: "it has another number of documents than were written"}))
	}
	le.PutUint32(footer[20*secRows+16:], crc32.Checksum(column, castagnoli))
	sum := len(footer) - len(magic) - 4
	le.PutUint32(footer[sum:], crc32.Checksum(footer[:sum], castagnoli))
	if _, err := f.WriteAt(column, int64(le.Uint64(footer[20*secRows:]))); err != nil {
		return err
	}
	_, err := f.WriteAt(footer, at)
	return err
}
