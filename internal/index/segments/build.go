package segments

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/edsrzf/mmap-go"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/relevance"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

const (
	titleSize   = 1 << 10 // bytes of a title or a heading that are indexed
	maxSurfaces = 50_000  // words of a text that can be suggested
)

// Words are the words of documents by label. They are gathered before the
// transaction that stores the documents, so that the transaction is short.
type Words map[string]*gathered

// A gathered is the words of documents of one label.
type gathered struct {
	docs  []Document // as in built; their numbers are those before the transaction
	built *built
	used  bool // by the last transaction
}

// A built is a segment of documents whose numbers are not known yet. It is in memory
// or in a file.
type built struct {
	data []byte
	file string // its name; "" for a segment in memory
	size int64
}

// Gather gathers the words of documents that a [Change] will add. Those with a label
// are in the order of the numbers that they will have. The caller must call Drop.
func (s *Store) Gather(ctx context.Context, docs []Document) (all Words, err error) {
	all = Words{}
	for _, d := range docs {
		if all[d.Label] == nil {
			all[d.Label] = &gathered{}
		}
		all[d.Label].docs = append(all[d.Label].docs, d.clean())
	}
	for _, w := range all {
		if w.built, err = s.build(ctx, w.docs); err != nil {
			s.Drop(all, false)
			return nil, err
		}
	}
	return all, nil
}

// Drop ends the use of words. stored reports whether the transaction was committed.
func (s *Store) Drop(all Words, stored bool) {
	for _, w := range all {
		if w.built != nil && w.built.file != "" && !(w.used && stored) {
			os.Remove(s.path(w.built.file)) // otherwise Sweep does
		}
	}
}

// clean returns a document whose names are valid UTF-8.
func (d Document) clean() Document {
	d.Title, d.Filename = strings.ToValidUTF8(d.Title, " "), strings.ToValidUTF8(d.Filename, " ")
	return d
}

// sameWords reports whether two documents have the same words.
func (d Document) sameWords(o Document) bool {
	return d.Title == o.Title && d.Filename == o.Filename && d.Language == o.Language && d.Text == o.Text &&
		slices.Equal(d.Chunks, o.Chunks)
}

// build returns a segment of documents. Parts of it are in files while it is built
// if they take much memory.
func (s *Store) build(ctx context.Context, docs []Document) (_ *built, err error) {
	parts := segmentParts{s: s}
	defer func() { parts.close() }()
	b := s.builders.Get().(*segment.Builder)
	b.Store, b.Limit = parts.store, s.o.BuildLimit
	defer func() {
		b.Reset()
		s.builders.Put(b)
	}()
	for _, d := range docs {
		if err := d.build(ctx, b); err != nil {
			return nil, err
		}
	}
	if !b.Stored() {
		var data bytes.Buffer
		n, err := b.Write(ctx, &data, segment.InMemory)
		return &built{data: data.Bytes(), size: n}, err
	}
	out := &built{}
	out.file, out.size, err = s.writeFile(parts.mapped, func(w io.Writer, spool func() segment.Spool) error {
		_, err := b.Write(ctx, w, spool)
		return err
	})
	return out, err
}

// setRows sets the numbers of the documents of a segment.
func (s *Store) setRows(b *built, numbers []int64) error {
	if b.file == "" {
		return segment.SetRows(memoryFile(b.data), b.size, numbers)
	}
	f, err := os.OpenFile(s.path(b.file), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("writing a segment: %w", err)
	}
	return errors.Join(segment.SetRows(f, b.size, numbers), f.Sync(), f.Close())
}

// A memoryFile is a file in memory.
type memoryFile []byte

func (m memoryFile) ReadAt(p []byte, off int64) (int, error)  { return copy(p, m[off:]), nil }
func (m memoryFile) WriteAt(p []byte, off int64) (int, error) { return copy(m[off:], p), nil }

// segmentParts are parts of a segment that is built, in files that nobody else
// needs.
type segmentParts struct {
	s      *Store
	files  []string
	mapped []mmap.MMap
}

// store stores a part.
func (p *segmentParts) store(write func(io.Writer) error) ([]byte, error) {
	f, err := p.s.createTemporary("part")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p.files = append(p.files, f.Name())
	buffered := bufio.NewWriterSize(f, fileBuffer)
	if err := cmp.Or(write(buffered), buffered.Flush()); err != nil {
		return nil, fmt.Errorf("writing a segment: %w", err)
	}
	m, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil { // for example on a network drive
		return os.ReadFile(f.Name())
	}
	p.mapped = append(p.mapped, m)
	os.Remove(f.Name()) // Windows keeps it until close, and Sweep removes it after a crash
	return m, nil
}

// close removes the parts.
func (p *segmentParts) close() {
	for _, m := range p.mapped {
		if err := m.Unmap(); err != nil {
			p.s.o.Log.Debug("closing a part of a segment", "error", err)
		}
	}
	for _, name := range p.files {
		os.Remove(name)
	}
}

// build adds the document to a segment. The error is that of ctx.
func (d Document) build(ctx context.Context, b *segment.Builder) error {
	language := analysis.LanguageOf(d.Language)
	left := maxSurfaces
	counted := func(word string) string {
		if word != "" {
			left--
		}
		if left < 0 {
			return ""
		}
		return word
	}
	title := document.Truncate(d.Title, titleSize)
	words := segment.Document{Row: d.Number, Name: tokensOf(d.Filename, language)}
	var written []string
	var beside []segment.Token // of the title
	for x := range analysis.Analyze(title, language) {
		switch {
		case x.Beside:
			beside = append(beside, segment.Token{Text: x.Token, Beside: true})
		case x.Token != "":
			words.Title = append(words.Title, x.Token)
		}
		if word := counted(x.Word); word != "" {
			written = append(written, word)
		}
	}
	b.Document(words)
	for _, w := range written {
		b.Word(w, true)
	}
	for _, c := range d.Chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		times := 1
		if c.Offset > 0 && analysis.IsListing(d.Text[c.Offset:c.Offset+c.Length], d.Language) {
			times = relevance.ListingTimes
		}
		// What stands beside the words of the title counts as a heading, so that the
		// title has only its words, as in Titled.
		b.Chunk(func(yield func(segment.Token) bool) {
			for t := range indexed(document.Truncate(c.Heading, titleSize), language,
				func(string) string { return "" }) {
				if !yield(t) {
					return
				}
			}
			for _, t := range beside {
				if !yield(t) {
					return
				}
			}
		}, indexed(analysis.Overlapped(d.Text, c.Offset, c.Offset+c.Length), language, counted), times)
	}
	return ctx.Err()
}

// indexed returns the tokens of a text for a segment, with the words for which
// written does not return "".
func indexed(text string, l analysis.Language, written func(string) string) iter.Seq[segment.Token] {
	return func(yield func(segment.Token) bool) {
		for x := range analysis.Analyze(text, l) {
			t := segment.Token{Text: x.Token, Word: written(x.Word), Beside: x.Beside}
			if (t.Text != "" || t.Word != "") && !yield(t) {
				return
			}
		}
	}
}

// tokensOf returns the tokens of a text in a language.
func tokensOf(text string, l analysis.Language) (tokens []string) {
	for t := range analysis.Tokens(text, l) {
		tokens = append(tokens, t.Text)
	}
	return tokens
}
