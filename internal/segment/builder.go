package segment

import (
	"bytes"
	"encoding/binary"
	"io"
	"iter"
	"slices"
	"strings"
)

// A Document is what a [Builder] needs of a document besides its chunks.
type Document struct {
	Row   int64    // a number that no other document has; not negative
	Title []string // tokens of the title
	Name  []string // tokens of the file name
}

// A Builder gathers documents in memory and writes a segment of them. Documents
// come in the order of their rows. Each is followed by its words and its
// chunks. The zero Builder is ready for use; it must be used once.
type Builder struct {
	w     writer
	ids   map[string]uint32
	terms []gathered

	wordIDs map[string]uint32
	words   []gatheredWord

	title, name []uint32 // tokens of the current document
}

// A gathered is what a Builder has of one term.
type gathered struct {
	name                string
	postings, positions []byte // varints
	chunk               uint32 // number of the current posting plus one, 0 for none
	before              uint32 // chunk of the posting before
	tf                  [fieldCount]uint32
	at                  uint32 // last position in the current field
}

type gatheredWord struct {
	name string
	docs []uint32 // each number doubled, plus one if the word is in the title
}

// Chunks returns the number of chunks.
func (b *Builder) Chunks() int { return b.w.chunks }

// Document begins a document.
func (b *Builder) Document(d Document) {
	if b.ids == nil {
		b.ids, b.wordIDs = map[string]uint32{}, map[string]uint32{}
	}
	b.w.document(d.Row, hashTokens(d.Title))
	b.title, b.name = b.title[:0], b.name[:0]
	for _, t := range d.Title {
		b.title = append(b.title, b.id(t))
	}
	for _, t := range d.Name {
		b.name = append(b.name, b.id(t))
	}
}

// Word records that the current document has a word as people write it, for
// [Collection.Complete]. A word may be recorded more than once.
func (b *Builder) Word(word string, inTitle bool) {
	id, ok := b.wordIDs[word]
	if !ok {
		id = uint32(len(b.words))
		word = strings.Clone(word)
		b.wordIDs[word] = id
		b.words = append(b.words, gatheredWord{name: word})
	}
	doc := uint32(b.w.docs-1) << 1
	if inTitle {
		doc |= 1
	}
	w := &b.words[id]
	if n := len(w.docs); n > 0 && w.docs[n-1]>>1 == doc>>1 {
		w.docs[n-1] |= doc
		return
	}
	w.docs = append(w.docs, doc)
}

// Chunk adds a chunk to the current document: the tokens of the headings above
// it and of its text.
func (b *Builder) Chunk(heading, text iter.Seq[string]) {
	var lengths [fieldCount]int
	for _, id := range b.title {
		b.token(id, Title, lengths[Title])
		lengths[Title]++
	}
	for _, id := range b.name {
		b.token(id, Name, lengths[Name])
		lengths[Name]++
	}
	for t := range heading {
		b.token(b.id(t), Heading, lengths[Heading])
		lengths[Heading]++
	}
	for t := range text {
		b.token(b.id(t), Text, lengths[Text])
		lengths[Text]++
	}
	b.w.chunk(lengths)
}

// id returns the number of a token.
func (b *Builder) id(token string) uint32 {
	id, ok := b.ids[token]
	if !ok {
		id = uint32(len(b.terms))
		token = strings.Clone(token)
		b.ids[token] = id
		b.terms = append(b.terms, gathered{name: token})
	}
	return id
}

// token adds a token at a position of a field. The fields of a chunk come in
// order.
func (b *Builder) token(id uint32, f Field, position int) {
	g := &b.terms[id]
	if chunk := uint32(b.w.chunks) + 1; g.chunk != chunk {
		g.flush()
		g.chunk = chunk
	}
	if g.tf[f] == 0 {
		g.at = 0
	}
	g.tf[f]++
	g.positions = binary.AppendUvarint(g.positions, uint64(uint32(position)-g.at))
	g.at = uint32(position)
}

// flush ends the current posting.
func (g *gathered) flush() {
	if g.chunk == 0 {
		return
	}
	g.postings = binary.AppendUvarint(g.postings, uint64(g.chunk-g.before))
	for _, n := range g.tf {
		g.postings = binary.AppendUvarint(g.postings, uint64(n))
	}
	g.before, g.tf = g.chunk, [fieldCount]uint32{}
}

// list decodes the postings into l.
func (g *gathered) list(l *list) {
	g.flush()
	l.reset()
	last := uint32(0)
	for p := g.postings; len(p) > 0; {
		var n int
		n, p = uvarint(p)
		last += uint32(n)
		l.chunks = append(l.chunks, last-1)
		for f := range l.tf {
			n, p = uvarint(p)
			l.tf[f] = append(l.tf[f], uint32(n))
		}
	}
	l.positions = append(l.positions, g.positions...)
}

// WriteTo writes the segment. The Builder must not be used after it.
func (b *Builder) WriteTo(out io.Writer) (int64, error) {
	w := &b.w
	w.out, w.spool = out, &bytes.Buffer{}
	w.columns()
	slices.SortFunc(b.terms, func(x, y gathered) int { return strings.Compare(x.name, y.name) })
	var l list
	for i := range b.terms {
		g := &b.terms[i]
		if g.list(&l); len(l.chunks) > 0 { // a term of a title may have no chunk
			w.term([]byte(g.name), &l)
		}
		g.postings, g.positions = nil, nil
	}
	slices.SortFunc(b.words, func(x, y gatheredWord) int { return strings.Compare(x.name, y.name) })
	for _, word := range b.words {
		w.word([]byte(word.name), word.docs)
	}
	err := w.finish()
	return int64(w.written), err
}
