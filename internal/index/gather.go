package index

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/edsrzf/mmap-go"

	"knowhow/internal/document"
	"knowhow/internal/segment"
)

// A gathered is the words of documents of one label. They are gathered before
// the transaction that stores the documents, so that the transaction is short.
type gathered struct {
	postings []posting // as in built; their ids are those before the transaction
	built    *built
	used     bool // by the last transaction
}

// A built is a segment of documents whose rows are not known yet. It is in memory
// or in a file.
type built struct {
	data []byte
	file string // its name; "" for a segment in memory
	size int64
}

// gatherLimit is how many bytes of memory, by an estimate, the words of documents
// may take before a part of them is stored in a file. The documents of an ordinary
// batch take a fifth of it.
const gatherLimit = 32 << 20

// gather gathers the words of the documents that changes put, by label. The
// caller must call dropGathered.
func (x *Index) gather(ctx context.Context, changes []document.Change) (all map[string]*gathered, err error) {
	all = map[string]*gathered{}
	var several bool // documents of one label, whose order is that of their ids
	for _, c := range changes {
		if c.Put == nil {
			continue
		}
		g := all[c.Put.Label]
		if g == nil {
			g = &gathered{}
			all[c.Put.Label] = g
		}
		g.postings = append(g.postings, postingOf(c.Put))
		several = several || len(g.postings) > 1
	}
	if several {
		if err := x.read(ctx, "finding documents", func(tx *sql.Tx) error { return x.order(ctx, tx, all, changes) }); err != nil {
			return nil, err
		}
	}
	for _, g := range all {
		if g.built, err = x.build(ctx, g.postings); err != nil {
			x.dropGathered(all, false)
			return nil, err
		}
	}
	return all, nil
}

// order sorts the postings by the ids that their documents have or will get.
func (x *Index) order(ctx context.Context, tx *sql.Tx, all map[string]*gathered, changes []document.Change) error {
	q := x.prepared(tx)
	next := map[string]int{}
	for _, c := range changes {
		if c.Put == nil {
			continue
		}
		label := c.Put.Label
		id := int64(math.MaxInt64) // new documents follow the others, in the order of the changes
		err := q.QueryRowContext(ctx, `SELECT id FROM docs WHERE label=? AND path=?`, label, c.Put.Path).Scan(&id)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		all[label].postings[next[label]].id = id
		next[label]++
	}
	for _, g := range all {
		slices.SortStableFunc(g.postings, func(a, b posting) int { return cmp.Compare(a.id, b.id) })
	}
	return nil
}

// dropGathered ends the use of what gather returned. stored reports whether the
// transaction was committed.
func (x *Index) dropGathered(all map[string]*gathered, stored bool) {
	for _, g := range all {
		if g.built != nil && g.built.file != "" && !(g.used && stored) {
			os.Remove(x.segmentPath(g.built.file)) // otherwise removeOrphans does
		}
	}
}

// build returns a segment of postings. Parts of it are in files while it is built
// if they take much memory.
func (x *Index) build(ctx context.Context, postings []posting) (_ *built, err error) {
	parts := segmentParts{x: x}
	defer func() { parts.close() }()
	b := x.builders.Get().(*segment.Builder)
	b.Store, b.Limit = parts.store, x.gatherLimit
	defer func() {
		b.Reset()
		x.builders.Put(b)
	}()
	for _, a := range postings {
		if err := a.build(ctx, b); err != nil {
			return nil, err
		}
	}
	if !b.Stored() {
		var out bytes.Buffer
		n, err := b.Write(ctx, &out, segment.InMemory)
		return &built{data: out.Bytes(), size: n}, err
	}
	s := &built{}
	s.file, s.size, err = x.writeSegmentFile(parts.mapped, func(w io.Writer, spool func() segment.Spool) error {
		_, err := b.Write(ctx, w, spool)
		return err
	})
	return s, err
}

// setRows sets the rows of the documents of a segment.
func (x *Index) setRows(s *built, rows []int64) error {
	if s.file == "" {
		return segment.SetRows(memoryFile(s.data), s.size, rows)
	}
	f, err := os.OpenFile(x.segmentPath(s.file), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("writing a segment: %w", err)
	}
	return errors.Join(segment.SetRows(f, s.size, rows), f.Sync(), f.Close())
}

// A memoryFile is a file in memory.
type memoryFile []byte

func (m memoryFile) ReadAt(p []byte, off int64) (int, error)  { return copy(p, m[off:]), nil }
func (m memoryFile) WriteAt(p []byte, off int64) (int, error) { return copy(m[off:], p), nil }

// segmentParts are parts of a segment that is built, in files that nobody else
// needs.
type segmentParts struct {
	x      *Index
	files  []string
	mapped []mmap.MMap
}

// store stores a part.
func (p *segmentParts) store(write func(io.Writer) error) ([]byte, error) {
	f, err := p.x.createTemporary("part")
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
	os.Remove(f.Name()) // Windows keeps it until close, and removeOrphans removes it after a crash
	return m, nil
}

// close removes the parts.
func (p *segmentParts) close() {
	for _, m := range p.mapped {
		if err := m.Unmap(); err != nil {
			p.x.log.Debug("closing a part of a segment", "error", err)
		}
	}
	for _, name := range p.files {
		os.Remove(name)
	}
}

// postingOf returns the posting of a document without its number.
func postingOf(d *document.Document) posting {
	return posting{
		stored: stored{label: d.Label, title: strings.ToValidUTF8(d.Title, " "), filename: strings.ToValidUTF8(d.Filename, " "), lang: d.Lang},
		text:   d.Text, chunks: chunksOf(d),
	}
}

// chunksOf returns the chunks of a document, at least one: a document without
// text can be found by its title.
func chunksOf(d *document.Document) []document.Chunk {
	if len(d.Chunks) == 0 {
		return []document.Chunk{{Length: len(d.Text)}}
	}
	return d.Chunks
}

// built returns a segment of the documents of a label that were added.
func (p *poster) built(ctx context.Context, label string, added []posting) (s *built, err error) {
	if g := p.gathered[label]; g != nil && slices.EqualFunc(g.postings, added, posting.sameWords) {
		s, g.used = g.built, true
	} else if s, err = p.x.build(ctx, added); err != nil {
		return nil, err
	}
	rows := make([]int64, len(added))
	for i, a := range added {
		rows[i] = a.id
	}
	return s, p.x.setRows(s, rows)
}

// sameWords reports whether two postings have the same words.
func (a posting) sameWords(b posting) bool {
	return a.title == b.title && a.filename == b.filename && a.lang == b.lang && a.text == b.text && slices.Equal(a.chunks, b.chunks)
}
