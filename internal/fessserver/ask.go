package fessserver

import (
	"context"
	"errors"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// maxContent is the maximum length of a text that is sent with a hit, in bytes.
// In JSON it takes up to six times as much, and clients limit the size of
// answers.
const maxContent = 2 << 20

// ask sends a question to the backend. If the backend has no locations, no
// document is near any point. If it cannot count by a field, no document has a
// value in it.
func (c *call) ask(ctx context.Context, x *question) (*search.Page, error) {
	q := x.asked
	if q.Facets != nil {
		q.Facets = c.countable(q.Facets)
	}
	page, err := c.backend.Search(ctx, q)
	switch {
	case q.Geo == nil:
	case errors.Is(err, errkind.Unsupported):
		q.Geo, q.Labels = nil, []string{}
		page, err = c.backend.Search(ctx, q)
	case err == nil && x.points > 1:
		return nil, &refusal{"geo.location.point takes one point here"}
	}
	if err != nil {
		return nil, err
	}
	if x.asked.Facets != nil {
		page.Facets = inOrder(x.asked.Facets.Fields, page.Facets)
	}
	return page, nil
}

// countable removes the fields that Fess counts by and the backend does not. It
// returns nil if none are left. Fields that Fess does not count by are kept, so
// that the backend refuses them.
func (c *call) countable(f *search.Facets) *search.Facets {
	left, known := *f, c.backend.FacetFields()
	left.Fields = slices.DeleteFunc(slices.Clone(f.Fields), func(name string) bool {
		return slices.Contains(search.FacetFields[:], name) && !slices.Contains(known, name)
	})
	if len(left.Fields)+len(left.Queries) == 0 {
		return nil
	}
	return &left
}

// inOrder returns counts in the order of the requested fields. Fields that were
// not counted have none.
func inOrder(fields []string, f *search.FacetCounts) *search.FacetCounts {
	all := &search.FacetCounts{}
	if f != nil {
		all.Queries = f.Queries
	}
	for _, name := range fields {
		field := search.FieldCounts{Name: name}
		if f != nil {
			if i := slices.IndexFunc(f.Fields, func(got search.FieldCounts) bool { return got.Name == name }); i >= 0 {
				field = f.Fields[i]
			}
		}
		all.Fields = append(all.Fields, field)
	}
	return all
}

// content returns the text of the document that a query requests by its ID. It
// returns nil for other queries and for a long text, which can be read as a
// cached copy. A Fess server that is configured to send the field content sends
// it with every hit; here only a request for one document returns it.
func (c *call) content(ctx context.Context, x *question, page *search.Page) (*search.Text, error) {
	if len(page.Hits) != 1 || !byID(x.asked.Text.Tree()) {
		return nil, nil
	}
	text, err := c.backend.ReadText(ctx, page.Hits[0].ID, x.asked.Labels, 0, maxContent)
	switch {
	case errors.Is(err, errkind.Unsupported), errors.Is(err, errkind.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case text.Size > maxContent:
		return nil, nil
	}
	return text, nil
}

// byID reports whether a query consists only of an ID.
func byID(n query.Node) bool {
	switch n := n.(type) {
	case query.Term:
		return n.Field == "doc_id"
	case query.Phrase:
		return n.Field == "doc_id"
	}
	return false
}
