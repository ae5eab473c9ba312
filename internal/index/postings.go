package index

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"

	"knowhow/internal/analysis"
	"knowhow/internal/document"
	"knowhow/internal/segment"
)

// A posting is a document whose words are added to a segment at the end of a
// transaction.
type posting struct {
	stored
	text   string
	chunks []document.Chunk
}

// A labelSegments is the segments of one label, as a transaction changes them.
type labelSegments struct {
	stored []*storedSegment
	added  []posting
}

// A storedSegment is a segment that existed before the transaction.
type storedSegment struct {
	row     segmentRow
	h       *handle      // nil until it is needed; see poster.open
	deleted segment.Bits // nil if no document is deleted
	changed bool
}

// segments returns the segments of a label.
func (p *poster) segments(ctx context.Context, label string) (*labelSegments, error) {
	if s := p.labels[label]; s != nil {
		return s, nil
	}
	rows, err := segmentRows(ctx, p.hot, []string{label})
	if err != nil {
		return nil, err
	}
	s := &labelSegments{}
	p.labels[label] = s
	for _, r := range rows {
		if r.format != segment.Version {
			continue
		}
		if p.x.condemned(r.id) { // Maintain indexes its documents again
			if err := dropSegment(ctx, p.hot, r.id); err != nil {
				return nil, err
			}
			continue
		}
		s.stored = append(s.stored, &storedSegment{row: r})
	}
	return s, nil
}

// open opens a stored segment, unless it is open.
func (p *poster) open(ctx context.Context, g *storedSegment) (err error) {
	if g.h != nil {
		return nil
	}
	if g.deleted, err = deletions(ctx, p.hot, g.row); err != nil {
		return err
	}
	g.h, err = p.x.openSegment(ctx, p.hot, g.row)
	return err
}

// close releases the segments.
func (p *poster) close() {
	for _, s := range p.labels {
		for _, g := range s.stored {
			if g.h != nil {
				p.x.release(g.h)
			}
		}
	}
	p.labels = nil
}

// post adds a document's words under its label.
func (p *poster) post(ctx context.Context, a posting) error {
	s, err := p.segments(ctx, a.label)
	if err == nil {
		s.added = append(s.added, a)
	}
	return err
}

// unpost removes a document's words under a label.
func (p *poster) unpost(ctx context.Context, id int64, label string) error {
	s, err := p.segments(ctx, label)
	if err != nil {
		return err
	}
	s.added = slices.DeleteFunc(s.added, func(a posting) bool { return a.id == id })
	for _, g := range s.stored {
		if err := p.open(ctx, g); err != nil {
			return err
		}
		d, err := g.h.seg.Find(id)
		if err != nil {
			return &damagedSegment{row: g.row, err: err}
		}
		if d < 0 || g.deleted != nil && g.deleted.Has(d) {
			continue
		}
		if g.deleted == nil {
			g.deleted = segment.NewBits(g.row.docs)
		}
		g.deleted.Set(d)
		g.row.removed++
		g.changed = true
	}
	return nil
}

// finish writes the collected changes.
func (p *poster) finish(ctx context.Context) error {
	for _, label := range slices.Sorted(maps.Keys(p.labels)) {
		s := p.labels[label]
		if err := p.writeSegments(ctx, label, s); err != nil {
			return err
		}
	}
	return nextGeneration(ctx, p.hot)
}

func (p *poster) writeSegments(ctx context.Context, label string, s *labelSegments) error {
	var rows []segmentRow
	for _, g := range s.stored {
		switch {
		case g.row.removed == g.row.docs:
			if err := dropSegment(ctx, p.hot, g.row.id); err != nil {
				return err
			}
			continue
		case g.changed:
			if err := writeDeletions(ctx, p.hot, g.row.id, g.deleted); err != nil {
				return err
			}
		}
		if g.row.analyzer == analysis.Version {
			rows = append(rows, g.row)
		}
	}
	if len(s.added) > 0 {
		r, err := p.addSegment(ctx, label, s, rows)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	p.mergeSoon = p.mergeSoon || len(mergeable(rows)) > 0
	return nil
}

// addSegment stores a segment of the added documents. If it fills a tier of
// small segments, they become one.
func (p *poster) addSegment(ctx context.Context, label string, s *labelSegments, rows []segmentRow) (r segmentRow, err error) {
	slices.SortFunc(s.added, func(a, b posting) int { return cmp.Compare(a.id, b.id) })
	built, err := p.built(ctx, label, s.added)
	if err != nil {
		return r, err
	}
	data, docs := built.data, len(s.added)
	if built.file != "" {
		r = newSegmentRow(label, docs, built.size)
		r.file = built.file
		return r, insertSegment(ctx, p.hot, &r, nil)
	}
	due := mergeable(append(slices.Clone(rows), segmentRow{docs: docs, size: int64(len(data))}))
	if len(due) < tierLength || sizeOf(due) > inlineSize {
		return p.x.storeSegment(ctx, p.hot, label, docs, data)
	}
	fresh, err := segment.Open(data)
	if err != nil {
		return r, err
	}
	segments, deleted := []*segment.Segment{fresh}, []segment.Bits{nil}
	for _, g := range s.stored {
		if !slices.ContainsFunc(due, func(r segmentRow) bool { return r.id == g.row.id }) {
			continue
		}
		if err := p.open(ctx, g); err != nil {
			return r, err
		}
		if err := g.h.verify(); err != nil { // or the merged segment would be wrong, with right checksums
			return r, &damagedSegment{row: g.row, err: err}
		}
		segments, deleted = append(segments, g.h.seg), append(deleted, g.deleted)
		docs += g.row.docs - g.row.removed
		if err := dropSegment(ctx, p.hot, g.row.id); err != nil {
			return r, err
		}
	}
	if data, err = mergeInMemory(ctx, segments, deleted); err != nil {
		return r, err
	}
	return p.x.storeSegment(ctx, p.hot, label, docs, data)
}

// build adds the document to a segment. The error is that of ctx.
func (a posting) build(ctx context.Context, b *segment.Builder) error {
	language := analysis.LanguageOf(a.lang)
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
	title := document.Truncate(a.title, titleSize)
	d := segment.Document{Row: a.id, Name: tokensOf(a.filename, language)}
	var words []string
	var beside []segment.Token // of the title
	for x := range analysis.Analyze(title, language) {
		switch {
		case x.Beside:
			beside = append(beside, segment.Token{Text: x.Token, Beside: true})
		case x.Token != "":
			d.Title = append(d.Title, x.Token)
		}
		if word := counted(x.Word); word != "" {
			words = append(words, word)
		}
	}
	b.Document(d)
	for _, w := range words {
		b.Word(w, true)
	}
	for _, c := range a.chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		// What stands beside the words of the title counts as a heading, so that the
		// title has only its words, as in Titled.
		b.Chunk(func(yield func(segment.Token) bool) {
			for t := range indexed(document.Truncate(c.Heading, titleSize), language, func(string) string { return "" }) {
				if !yield(t) {
					return
				}
			}
			for _, t := range beside {
				if !yield(t) {
					return
				}
			}
		}, indexed(analysis.Overlapped(a.text, c.Offset, c.Offset+c.Length), language, counted))
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

// tokens returns the tokens of a text in a language.
func tokens(text string, l analysis.Language) iter.Seq[string] {
	return func(yield func(string) bool) {
		for t := range analysis.Tokens(text, l) {
			if !yield(t.Text) {
				return
			}
		}
	}
}

func tokensOf(text string, l analysis.Language) []string { return slices.Collect(tokens(text, l)) }

// mergeInMemory merges small segments.
func mergeInMemory(ctx context.Context, segments []*segment.Segment, deleted []segment.Bits) ([]byte, error) {
	var out bytes.Buffer
	_, err := segment.Merge(ctx, &out, segment.InMemory, segments, deleted)
	return out.Bytes(), err
}
