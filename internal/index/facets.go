package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"knowhow/internal/errkind"
	"knowhow/internal/query"
	"knowhow/internal/search"
	"knowhow/internal/segment"
)

// facetFields are the fields that documents can be counted by.
var facetFields = [...]string{"label", "host", "filetype", "mimetype", "lang", "filename"}

// FacetFields returns the fields that hits can be counted by; see
// [search.Service].
func (x *Index) FacetFields() []string { return slices.Clone(facetFields[:]) }

// facetSize is how many values of a field are counted if the query does not set
// a size.
const facetSize = 10

// facets counts the documents that match. If there is an error, the result is
// nil or the counts made before.
func (e *evaluator) facets(ctx context.Context, m *matched, q search.Query) (*search.FacetCounts, error) {
	c := conditionsOf(q)
	var ids []int64
	docs := m.docs
	var err error
	if m.all {
		docs, err = e.every(ctx, c)
	} else {
		ids, err = e.view.RowsOf(docs)
	}
	if err != nil {
		return nil, err
	}
	out := &search.FacetCounts{}
	for _, name := range q.Facets.Fields {
		counts, err := e.countField(ctx, name, m.all, ids, c, q.Facets)
		if err != nil {
			return out, err
		}
		out.Fields = append(out.Fields, search.FieldCounts{Name: name, Counts: counts})
	}
	for _, text := range q.Facets.Queries {
		n, err := e.countQuery(ctx, text, docs)
		if errors.Is(err, errkind.Invalid) {
			return nil, &errkind.Argument{Name: "facets.query", Value: text, Want: fmt.Sprintf("a query (%v)", err)}
		}
		if err != nil {
			return out, err
		}
		out.Queries = append(out.Queries, search.Count{Value: text, Count: n})
	}
	return out, nil
}

// countField counts documents by the values of a field.
func (e *evaluator) countField(ctx context.Context, name string, all bool, ids []int64, c conditions, f *search.Facets) ([]search.Count, error) {
	from, args := e.source(all, ids, c)
	var counts []search.Count
	err := collect(ctx, e.tx, func(rows *sql.Rows) error {
		var n search.Count
		if err := rows.Scan(&n.Value, &n.Count); err != nil {
			return err
		}
		if n.Value == "" {
			n.Value = f.Missing
		}
		if n.Value != "" && n.Count >= max(f.MinDocCount, 1) {
			counts = append(counts, n)
		}
		return nil
	}, `SELECT d.`+name+`, count(*) `+from+` GROUP BY 1`, args...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(counts, func(a, b search.Count) int {
		term := strings.Compare(a.Value, b.Value)
		switch f.Sort {
		case "count.asc":
			return cmp.Or(cmp.Compare(a.Count, b.Count), term)
		case "term.asc":
			return term
		case "term.desc":
			return -term
		}
		return cmp.Or(cmp.Compare(b.Count, a.Count), term)
	})
	size := f.Size
	if size == 0 {
		size = facetSize
	}
	return counts[:min(len(counts), size)], nil
}

// countQuery returns how many documents of a set match a query.
func (e *evaluator) countQuery(ctx context.Context, text string, docs segment.Docs) (int, error) {
	node, err := query.Parse(text)
	if err != nil {
		return 0, err
	}
	f, err := e.eval(ctx, node)
	if err != nil || f.void {
		return 0, err
	}
	f.docs.And(docs)
	return f.docs.Count(), nil
}
