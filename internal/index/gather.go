package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"

	"knowhow/internal/document"
	"knowhow/internal/segment"
)

// A gathered is the words of documents of one label. They are gathered before
// the transaction that stores the documents, so that the transaction is short.
type gathered struct {
	postings []posting // as in builder; their ids are those before the transaction
	builder  *segment.Builder
}

// gather gathers the words of the documents that changes put, by label. The
// caller must call dropGathered.
func (x *Index) gather(ctx context.Context, changes []document.Change) (map[string]*gathered, error) {
	all := map[string]*gathered{}
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
		g.builder = x.builders.Get().(*segment.Builder)
		for _, a := range g.postings {
			if err := ctx.Err(); err != nil {
				x.dropGathered(all)
				return nil, err
			}
			a.build(g.builder)
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

// dropGathered ends the use of what gather returned.
func (x *Index) dropGathered(all map[string]*gathered) {
	for _, g := range all {
		if g.builder != nil {
			x.putBuilder(g.builder)
			g.builder = nil
		}
	}
}

func (x *Index) putBuilder(b *segment.Builder) {
	b.Reset()
	x.builders.Put(b)
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

// builderOf returns a builder of the documents of a label that were added. The
// caller must call putBuilder.
func (p *poster) builderOf(ctx context.Context, label string, added []posting) (*segment.Builder, error) {
	if g := p.gathered[label]; g != nil && g.builder != nil && slices.EqualFunc(g.postings, added, posting.sameWords) {
		rows := make([]int64, len(added))
		for i, a := range added {
			rows[i] = a.id
		}
		b := g.builder
		g.builder = nil // it can be used once
		b.SetRows(rows)
		return b, nil
	}
	b := p.x.builders.Get().(*segment.Builder)
	for _, a := range added {
		if err := ctx.Err(); err != nil {
			p.x.putBuilder(b)
			return nil, err
		}
		a.build(b)
	}
	return b, nil
}

// sameWords reports whether two postings have the same words.
func (a posting) sameWords(b posting) bool {
	return a.title == b.title && a.filename == b.filename && a.lang == b.lang && a.text == b.text && slices.Equal(a.chunks, b.chunks)
}
