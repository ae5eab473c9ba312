package segments

import (
	"cmp"
	"context"
	"io"
	"maps"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// A Change is the documents that one transaction adds and removes. At the end of
// the transaction, the words of those that were added become a segment for each
// label.
type Change struct {
	s         *Store
	tx        *database.Prepared
	labels    map[string]*labelChange
	words     Words
	mergeSoon bool // segments should be merged in the background
}

// A labelChange is the segments of one label, as a transaction changes them.
type labelChange struct {
	stored []*storedSegment
	added  []Document
}

// A storedSegment is a segment that existed before the transaction.
type storedSegment struct {
	row     row
	g       *Segment     // nil until it is needed; see Change.open
	deleted segment.Bits // nil if no document is deleted
	changed bool
}

// Change runs f in a durable transaction. If a segment is damaged, f is called
// again in another transaction. words are those of documents that f adds, as far as
// they are gathered; nil if none are.
func (s *Store) Change(
	ctx context.Context, op string, words Words, f func(tx *database.Prepared, c *Change) error,
) error {
	soon := false
	err := s.Retry(ctx, func() error {
		return s.o.DB.WritePrepared(ctx, op, func(tx *database.Prepared) error {
			for _, w := range words {
				w.used = false
			}
			c := &Change{s: s, tx: tx, labels: map[string]*labelChange{}, words: words}
			defer c.close()
			if err := f(tx, c); err != nil {
				return err
			}
			err := c.finish(ctx)
			soon = c.mergeSoon
			return err
		})
	})
	if err == nil && soon {
		signal(s.mergeSoon)
	}
	return err
}

// Add adds the words of a document. Documents with a greater number than the others
// are added fastest.
func (c *Change) Add(ctx context.Context, d Document) error {
	l, err := c.label(ctx, d.Label)
	if err == nil {
		l.added = append(l.added, d.clean())
	}
	return err
}

// Remove removes the words of the document with a number under a label.
func (c *Change) Remove(ctx context.Context, number int64, label string) error {
	l, err := c.label(ctx, label)
	if err != nil {
		return err
	}
	l.added = slices.DeleteFunc(l.added, func(d Document) bool { return d.Number == number })
	for _, o := range l.stored {
		place, err := c.find(ctx, o, number)
		if err != nil {
			return err
		}
		if place < 0 {
			continue
		}
		if o.deleted == nil {
			o.deleted = segment.NewBits(o.row.docs)
		}
		o.deleted.Set(place)
		o.row.removed++
		o.changed = true
	}
	return nil
}

// has reports whether a current segment of a label has a document.
func (c *Change) has(ctx context.Context, number int64, label string) (bool, error) {
	l, err := c.label(ctx, label)
	if err != nil {
		return false, err
	}
	for _, o := range l.stored {
		if !o.row.current() {
			continue
		}
		if place, err := c.find(ctx, o, number); err != nil || place >= 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// find returns the place of a document in a segment, or -1 if it is deleted or not
// there.
func (c *Change) find(ctx context.Context, o *storedSegment, number int64) (place int, err error) {
	if err := c.open(ctx, o); err != nil {
		return -1, err
	}
	place, err = o.g.Find(number)
	if err != nil {
		return -1, &damaged{row: o.row, err: err}
	}
	if place >= 0 && o.deleted != nil && o.deleted.Has(place) {
		return -1, nil
	}
	return place, nil
}

// label returns the segments of a label.
func (c *Change) label(ctx context.Context, label string) (*labelChange, error) {
	if l := c.labels[label]; l != nil {
		return l, nil
	}
	rows, err := rowsOf(ctx, c.tx, []string{label})
	if err != nil {
		return nil, err
	}
	l := &labelChange{}
	c.labels[label] = l
	for _, r := range rows {
		switch {
		case c.s.isLeftOut(r.id):
			if err := dropDamaged(ctx, c.tx, r.id); err != nil {
				return nil, err
			}
		case r.format == segment.Version: // Maintain indexes the documents of the others again
			l.stored = append(l.stored, &storedSegment{row: r})
		}
	}
	return l, nil
}

// open opens a stored segment, unless it is open.
func (c *Change) open(ctx context.Context, o *storedSegment) (err error) {
	if o.g != nil {
		return nil
	}
	if o.deleted, err = deletions(ctx, c.tx, o.row); err != nil {
		return err
	}
	left := c.s.o.VerifiedSize
	o.g, err = c.s.acquire(ctx, c.tx, o.row, &left)
	return err
}

// close releases the segments.
func (c *Change) close() {
	for _, l := range c.labels {
		for _, o := range l.stored {
			if o.g != nil {
				c.s.release(o.g)
			}
		}
	}
}

// finish writes the change.
func (c *Change) finish(ctx context.Context) error {
	for _, label := range slices.Sorted(maps.Keys(c.labels)) {
		if err := c.write(ctx, label, c.labels[label]); err != nil {
			return err
		}
	}
	return nextGeneration(ctx, c.tx)
}

func (c *Change) write(ctx context.Context, label string, l *labelChange) error {
	var rows []row
	for _, o := range l.stored {
		switch {
		case o.row.removed == o.row.docs:
			if err := drop(ctx, c.tx, o.row.id); err != nil {
				return err
			}
			continue
		case o.changed:
			if err := writeDeletions(ctx, c.tx, o.row.id, o.deleted); err != nil {
				return err
			}
		}
		if o.row.current() {
			rows = append(rows, o.row)
		}
	}
	if len(l.added) > 0 {
		r, err := c.addSegment(ctx, label, l, rows)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	c.mergeSoon = c.mergeSoon || len(mergeable(rows)) > 0
	return nil
}

// addSegment stores a segment of the added documents. If it fills a tier of
// small segments, they become one.
func (c *Change) addSegment(ctx context.Context, label string, l *labelChange, rows []row) (r row, err error) {
	slices.SortFunc(l.added, func(a, b Document) int { return cmp.Compare(a.Number, b.Number) })
	b, err := c.built(ctx, label, l.added)
	if err != nil {
		return r, err
	}
	r = newRow(label, len(l.added), b.size)
	if b.file != "" {
		r.file = b.file
		return r, insert(ctx, c.tx, &r, nil)
	}
	data := b.data
	due := mergeable(append(slices.Clone(rows), r))
	if len(due) >= tierLength && sizeOf(due) <= inlineSize {
		fresh, err := segment.Open(data)
		if err != nil {
			return r, err
		}
		segments, deleted := []*segment.Segment{fresh}, []segment.Bits{nil}
		for _, o := range l.stored {
			if !slices.ContainsFunc(due, func(r row) bool { return r.id == o.row.id }) {
				continue
			}
			if err := c.open(ctx, o); err != nil {
				return r, err
			}
			if err := o.g.verify(); err != nil { // or the merged segment would be wrong, with right checksums
				return r, &damaged{row: o.row, err: err}
			}
			segments, deleted = append(segments, o.g.Segment), append(deleted, o.deleted)
			r.docs += o.row.docs - o.row.removed
			if err := drop(ctx, c.tx, o.row.id); err != nil {
				return r, err
			}
		}
		if data, err = mergeInMemory(ctx, segments, deleted); err != nil {
			return r, err
		}
		r.size = int64(len(data))
	}
	if r.size <= maxBody {
		return r, insert(ctx, c.tx, &r, data)
	}
	r.file, r.size, err = c.s.writeFile(nil, func(w io.Writer, _ func() segment.Spool) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return r, err
	}
	return r, insert(ctx, c.tx, &r, nil)
}

// built returns a segment of the documents of a label that were added.
func (c *Change) built(ctx context.Context, label string, added []Document) (b *built, err error) {
	if w := c.words[label]; w != nil && slices.EqualFunc(w.docs, added, Document.sameWords) {
		b, w.used = w.built, true
	} else {
		if w != nil {
			c.s.o.Log.Debug("words that were gathered are not those of the documents", "label", label)
		}
		if b, err = c.s.build(ctx, added); err != nil {
			return nil, err
		}
	}
	numbers := make([]int64, len(added))
	for i, d := range added {
		numbers[i] = d.Number
	}
	return b, c.s.setRows(b, numbers)
}
