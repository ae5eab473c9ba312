package index

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index/database"
	"github.com/knowhow-mcp/knowhow/internal/index/segments"
	"github.com/knowhow-mcp/knowhow/internal/retrieval"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// duplicates are the documents of a view whose texts other documents of the index have
// or once had. Documents without text are none.
type duplicates struct {
	docs  segment.Docs
	group map[int64]int // by row; documents of a group have the same text
	order map[int64]int // by row; that of the paths
}

// duplicates returns the documents with equal texts. They are read once for a view.
func (e *evaluator) duplicates(ctx context.Context, labels []string) (*duplicates, error) {
	return segments.Remember(&e.view.Memo, "duplicates", func() (*duplicates, error) {
		t := &duplicates{group: map[int64]int{}, order: map[int64]int{}}
		where, args := conditions{labels: labels}.where()
		where += ` AND d.text_size>0`
		numbers := map[string]int{}
		var rows []int64
		err := database.Collect(ctx, e.tx, func(r *sql.Rows) error {
			var id int64
			var hash string
			err := r.Scan(&id, &hash)
			if _, ok := numbers[hash]; !ok {
				numbers[hash] = len(numbers)
			}
			t.group[id], t.order[id] = numbers[hash], len(rows)
			rows = append(rows, id)
			return err
		}, `SELECT d.id, d.hash FROM twins t CROSS JOIN docs d ON d.hash=t.hash WHERE `+where+`
			ORDER BY d.path, d.label`, args...)
		if err != nil {
			return nil, err
		}
		slices.Sort(rows)
		t.docs, err = e.view.Rows(rows)
		return t, err
	})
}

// collapse keeps, of the documents that match and have the same text, one: one
// with all words that count if there is one, and the first by path. It remembers
// the others in m.also.
func (e *evaluator) collapse(ctx context.Context, m *matched, labels []string) error {
	t, err := e.duplicates(ctx, labels)
	if err != nil || len(t.group) == 0 {
		return err
	}
	both := t.docs.Clone()
	both.And(m.Docs)
	rows, err := e.view.RowsOf(both)
	if err != nil {
		return err
	}
	slices.SortFunc(rows, func(a, b int64) int { return cmp.Compare(t.order[a], t.order[b]) })
	if m.Complete != nil {
		both.And(m.Complete)
		complete, err := e.view.RowsOf(both)
		if err != nil {
			return err
		}
		slices.SortStableFunc(rows, func(a, b int64) int {
			_, inA := slices.BinarySearch(complete, a)
			_, inB := slices.BinarySearch(complete, b)
			if inA == inB {
				return 0
			}
			return map[bool]int{true: -1, false: 1}[inA]
		})
	}
	kept := map[int]int64{} // by group
	m.also = map[int64][]int64{}
	var dropped []int64
	for _, row := range rows {
		first, ok := kept[t.group[row]]
		if !ok {
			kept[t.group[row]] = row
			continue
		}
		dropped = append(dropped, row)
		m.also[first] = append(m.also[first], row)
	}
	if len(dropped) == 0 {
		return nil
	}
	slices.Sort(dropped)
	gone, err := e.view.Rows(dropped)
	if err != nil {
		return err
	}
	m.Docs.AndNot(gone)
	m.Count = m.Docs.Count()
	if m.Complete != nil {
		m.Complete.AndNot(gone)
		m.CompleteCount = m.Complete.Count()
	}
	return nil
}

// maxAlso is how many other documents with the text of a hit are named.
const maxAlso = 20

// addAlso adds the paths of the other documents with the text of each hit.
func (e *evaluator) addAlso(
	ctx context.Context, hits []search.Hit, list []retrieval.Document, also map[int64][]int64,
) error {
	for i, d := range list {
		if len(also[d.Number]) == 0 {
			continue
		}
		err := database.Collect(ctx, e.tx, func(rows *sql.Rows) error {
			var path, sourcePath, title string
			err := rows.Scan(&path, &sourcePath, &title)
			hits[i].Also = append(hits[i].Also, document.ResultPath(path, sourcePath, title))
			return err
		}, `SELECT d.path, d.source_path, d.title FROM json_each(?) j CROSS JOIN docs d ON d.id=j.value
			ORDER BY d.path, d.id LIMIT ?`, database.List(also[d.Number]), maxAlso)
		if err != nil {
			return err
		}
	}
	return nil
}
