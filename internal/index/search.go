package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// searching calls f with an evaluator for a search under some labels (nil: all),
// within the time that a search may take.
func (x *Index) searching(ctx context.Context, text string, labels []string, f func(e *evaluator) error) error {
	until := time.Now().Add(x.searchTime)
	waiting, cancel := context.WithTimeout(ctx, x.waitTime)
	defer cancel()
	if isExpensive(text) {
		select {
		case x.expensive <- struct{}{}:
			defer func() { <-x.expensive }()
		case <-waiting.Done():
			return cmp.Or(ctx.Err(), errWaited)
		}
	}
	conn, err := x.db.Conn(waiting)
	if err != nil {
		if waiting.Err() != nil {
			err = errWaited
		}
		return cmp.Or(ctx.Err(), err)
	}
	defer conn.Close()
	return x.segments.Retry(ctx, func() error {
		return x.db.ReadIn(ctx, conn, "searching", func(tx *sql.Tx) error {
			return x.evaluate(ctx, x.db.Prepared(tx), labels, func(e *evaluator) error {
				e.until = until
				return f(e)
			})
		})
	})
}

// Find returns one document; see [search.Service]. Its digest is the beginning
// of the text.
func (x *Index) Find(ctx context.Context, id string, labels []string) (*search.Hit, error) {
	var h *search.Hit
	err := x.db.Read(ctx, "finding a document", func(tx *sql.Tx) error {
		var doc int64
		var label string
		err := tx.QueryRowContext(ctx, `SELECT id, label FROM docs WHERE doc_id=?`, id).Scan(&doc, &label)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !admits(labels, label) {
			return document.Missing(id)
		}
		if err != nil {
			return err
		}
		e := &evaluator{x: x, tx: x.db.Prepared(tx), m: &matched{}}
		hits, err := retrieval.Read(ctx, e, &retrieval.Request{},
			[]retrieval.Document{{Number: doc, Chunk: -1, NearChunk: -1}})
		if err == nil {
			h = &hits[0]
		}
		return err
	})
	return h, err
}

// errWaited is the error of a search that other searches have kept waiting for
// the whole time that it may take.
var errWaited = fmt.Errorf("too many searches with many words or wildcards are running: "+
	"try again in a few seconds: %w", errkind.Busy)

// Bounds of a query that does not wait for other expensive queries.
const (
	cheapWildcards = 8
	cheapWords     = 100
	cheapPrefix    = 2 // bytes before the first wildcard of a word
)

// isExpensive reports whether a query may take so long that it should not run
// beside many others like it.
func isExpensive(text string) bool {
	for w := range strings.FieldsSeq(text) {
		w = w[strings.LastIndexByte(w, ':')+1:] // without a field
		if i := strings.IndexAny(w, "*?"); i >= 0 && i < cheapPrefix && len(w) > 1 {
			return true
		}
	}
	return strings.Count(text, "*")+strings.Count(text, "?")+strings.Count(text, "~") > cheapWildcards ||
		strings.Count(text, " ") > cheapWords
}

// within removes the documents that are deleted or do not meet the conditions,
// and returns how many are left.
func (e *evaluator) within(ctx context.Context, docs segment.Docs, c conditions) (int, error) {
	for i := range docs {
		if live := e.view.Live(i); live != nil && docs[i] != nil {
			docs[i].And(live)
		}
	}
	if c.beyondLabels() {
		allowed, err := e.every(ctx, c)
		if err != nil {
			return 0, err
		}
		docs.And(allowed)
	}
	return docs.Count(), nil
}

// A member is a document of a set.
type member struct {
	segment, doc int
	row          int64
}

// members returns the documents of a set. rows are those of the documents of each
// segment.
func members(docs segment.Docs, rows [][]int64) iter.Seq[member] {
	return func(yield func(member) bool) {
		for i, b := range docs {
			for d := b.Next(0); d >= 0; d = b.Next(d + 1) {
				if !yield(member{i, d, rows[i][d]}) {
					return
				}
			}
		}
	}
}

// sorted returns the first n documents that match, ordered by fields. order is all
// of them by relevance, if a sort key needs it.
func (e *evaluator) sorted(
	ctx context.Context, m *matched, keys []search.SortKey, order []segment.Hit, n int,
) ([]retrieval.Document, error) {
	rank := make(map[int64]int, len(order))
	for i, h := range order {
		rank[h.Row] = i
	}
	var by []func(a, b member) int
	for _, k := range keys {
		compare, err := e.comparison(ctx, k.Field, rank)
		switch {
		case err != nil:
			return nil, err
		case compare == nil:
		case k.Desc != (k.Field == "score"): // the best document is the first of order
			by = append(by, func(a, b member) int { return compare(b, a) })
		default:
			by = append(by, compare)
		}
	}
	// The document number breaks ties.
	last := func(a, b member) int { return cmp.Compare(a.row, b.row) }
	if len(keys) > 0 && keys[0].Desc {
		last = func(a, b member) int { return cmp.Compare(b.row, a.row) }
	}
	by = append(by, last)
	rows := make([][]int64, len(m.Docs))
	for i, g := range e.view.Segments {
		var err error
		if rows[i], err = g.Numbers(); err != nil {
			return nil, err
		}
	}
	var out []retrieval.Document
	for _, p := range best(members(m.Docs, rows), n, func(a, b member) int {
		for _, compare := range by {
			if c := compare(a, b); c != 0 {
				return c
			}
		}
		return 0
	}) {
		d := retrieval.Document{Number: p.row, Chunk: -1, NearChunk: -1}
		if i, ok := rank[p.row]; ok {
			d.Score = float64(order[i].Score)
		}
		out = append(out, d)
	}
	return out, nil
}

// comparison returns a function that compares documents by a field of
// [search.SortFields], nil if all documents are equal. rank is the place of each
// document by relevance, empty if it is not known.
func (e *evaluator) comparison(ctx context.Context, field string, rank map[int64]int) (func(a, b member) int, error) {
	switch field {
	case "score":
		if len(rank) == 0 {
			return nil, nil
		}
		place := func(m member) int {
			if i, ok := rank[m.row]; ok {
				return i
			}
			return len(rank) // it matches without one of its chunks
		}
		return func(a, b member) int { return cmp.Compare(place(a), place(b)) }, nil
	case "filename", "created":
	case "content_length":
		field = "size"
	case "last_modified", "timestamp":
		field = "modified"
	default:
		return nil, nil
	}
	columns, err := e.column(ctx, field)
	if err != nil {
		return nil, err
	}
	if isNumber(field) {
		return func(a, b member) int {
			return cmp.Compare(columns[a.segment].numbers[a.doc], columns[b.segment].numbers[b.doc])
		}, nil
	}
	return func(a, b member) int {
		return strings.Compare(columns[a.segment].text(a.doc), columns[b.segment].text(b.doc))
	}, nil
}
