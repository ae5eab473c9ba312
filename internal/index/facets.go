package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/segment"
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
	out := &search.FacetCounts{}
	for _, name := range q.Facets.Fields {
		counts, err := e.countField(ctx, name, m.Docs, q.Facets)
		if err != nil {
			return out, err
		}
		out.Fields = append(out.Fields, search.FieldCounts{Name: name, Counts: counts})
	}
	for _, text := range q.Facets.Queries {
		n, err := e.matcher.Count(ctx, text, m.Docs)
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
func (e *evaluator) countField(
	ctx context.Context, name string, docs segment.Docs, f *search.Facets,
) ([]search.Count, error) {
	columns, err := e.column(ctx, name)
	if err != nil {
		return nil, err
	}
	byText := map[string]int{}
	for i, c := range columns {
		counts := make([]int, len(c.texts))
		for d := docs[i].Next(0); d >= 0; d = docs[i].Next(d + 1) {
			counts[c.codes[d]]++
		}
		for code, n := range counts {
			byText[c.texts[code]] += n
		}
	}
	values := func(yield func(search.Count) bool) {
		for text, n := range byText {
			if text == "" {
				text = f.Missing
			}
			if text != "" && n >= max(f.MinDocCount, 1) && !yield(search.Count{Value: text, Count: n}) {
				return
			}
		}
	}
	return best(values, cmp.Or(f.Size, facetSize), f.Compare), nil
}
