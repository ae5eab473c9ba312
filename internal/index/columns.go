package index

import (
	"context"
	"database/sql"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// A column is the values of one field of the documents of a segment, for
// conditions, sorting and counting. It is immutable. The values of the documents
// that are not known are undefined.
//
// A document of a segment has the same values for as long as it is not deleted
// there, because a document that is stored again moves to another segment. So a
// column is read once for a segment, and again only for a search of an earlier
// state that has documents which were deleted meanwhile.
type column struct {
	known   segment.Bits
	numbers []int64  // by document; noNumber if it has none; nil if the values are texts
	codes   []uint32 // by document: index in texts
	texts   []string // different values, at least one
}

// noNumber is the number of a document without a value. It is less than all
// numbers.
const noNumber = math.MinInt64

// isNumber reports whether the values of a field of table docs are numbers.
func isNumber(field string) bool {
	return field == "modified" || field == "created" || field == "size"
}

// text returns the text of document d.
func (c *column) text(d int) string { return c.texts[c.codes[d]] }

// columns are the columns of a segment that were read, by field.
type columns struct {
	mu sync.Mutex
	of map[string]*column
}

// column returns the column of a field of table docs for each segment of the
// view.
func (e *evaluator) column(ctx context.Context, field string) ([]*column, error) {
	all := make([]*column, len(e.view.Segments))
	for i, live := range e.view.All() {
		g := e.view.Segments[i]
		read, err := segments.Remember(&g.Memo, "columns", func() (*columns, error) {
			return &columns{of: map[string]*column{}}, nil
		})
		if err != nil {
			return nil, err
		}
		read.mu.Lock()
		c := read.of[field]
		read.mu.Unlock()
		if c == nil || !c.known.Includes(live) {
			if c, err = e.readColumn(ctx, g, field, live); err != nil {
				return nil, err
			}
			read.mu.Lock()
			read.of[field] = c
			read.mu.Unlock()
		}
		all[i] = c
	}
	return all, nil
}

// readColumn reads the values of a field of some documents of a segment.
func (e *evaluator) readColumn(
	ctx context.Context, g *segments.Segment, field string, docs segment.Bits,
) (*column, error) {
	c := &column{known: docs}
	if isNumber(field) {
		c.numbers = make([]int64, g.Docs())
	} else {
		c.codes = make([]uint32, g.Docs())
	}
	if field == "label" {
		c.texts = []string{g.Label}
		return c, nil
	}
	rows, err := g.Numbers()
	if err != nil {
		return nil, err
	}
	var numbers []int // of the documents
	var wanted []int64
	for d := docs.Next(0); d >= 0; d = docs.Next(d + 1) {
		numbers, wanted = append(numbers, d), append(wanted, rows[d])
	}
	codes := map[string]uint32{"": 0}
	c.texts = []string{""}
	add := func(d int, text string) {
		code, ok := codes[text]
		if !ok {
			code = uint32(len(c.texts))
			codes[text] = code
			c.texts = append(c.texts, text)
		}
		c.codes[d] = code
	}
	err = database.Collect(ctx, e.tx, func(r *sql.Rows) error {
		var i int
		if c.numbers != nil {
			n := sql.NullInt64{}
			if err := r.Scan(&i, &n); err != nil {
				return err
			}
			if !n.Valid {
				n.Int64 = noNumber
			}
			c.numbers[numbers[i]] = n.Int64
			return nil
		}
		var text sql.RawBytes
		if err := r.Scan(&i, &text); err != nil {
			return err
		}
		add(numbers[i], string(text))
		return nil
	}, columnQuery(field), database.List(wanted))
	return c, err
}

// columnQuery returns the statement that reads a field of documents.
func columnQuery(field string) string {
	return `SELECT j.key, d.` + field + ` FROM json_each(?) j LEFT JOIN docs d ON d.id=j.value`
}

// selected returns the documents of the view for whose values f is true.
func (e *evaluator) selected(ctx context.Context, field string, f func(text string) bool) (segment.Docs, error) {
	all, err := e.column(ctx, field)
	if err != nil {
		return nil, err
	}
	docs := e.view.All()
	for i, c := range all {
		var yes []bool // by code
		n := 0
		for _, text := range c.texts {
			ok := f(text)
			yes = append(yes, ok)
			if ok {
				n++
			}
		}
		switch n {
		case len(yes):
		case 0:
			docs[i] = nil
		default:
			docs[i].Keep(func(d int) bool { return yes[c.codes[d]] })
		}
	}
	return docs, nil
}

// selectedNumbers is selected for a field of numbers. Documents without a value
// are not selected.
func (e *evaluator) selectedNumbers(ctx context.Context, field string, f func(n int64) bool) (segment.Docs, error) {
	all, err := e.column(ctx, field)
	if err != nil {
		return nil, err
	}
	docs := e.view.All()
	for i, c := range all {
		docs[i].Keep(func(d int) bool { return c.numbers[d] != noNumber && f(c.numbers[d]) })
	}
	return docs, nil
}

// best returns the first n of some values in the order of compare.
func best[T any](values iter.Seq[T], n int, compare func(a, b T) int) []T {
	var out []T // once it has n values, a heap: none comes after its parent, at (i-1)/2
	down := func(i int) {
		for {
			last := i
			for c := 2*i + 1; c <= 2*i+2 && c < len(out); c++ {
				if compare(out[c], out[last]) > 0 {
					last = c
				}
			}
			if last == i {
				return
			}
			out[i], out[last] = out[last], out[i]
			i = last
		}
	}
	for v := range values {
		switch {
		case len(out) < n:
			if out = append(out, v); len(out) == n {
				for i := n/2 - 1; i >= 0; i-- {
					down(i)
				}
			}
		case n > 0 && compare(v, out[0]) < 0:
			out[0] = v
			down(0)
		}
	}
	slices.SortFunc(out, compare)
	return out
}
