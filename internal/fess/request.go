package fess

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// maxLabel is the maximum length of a label's value, in bytes.
const maxLabel = 100

// isName reports whether s has at most most characters and at least one, all of
// them ASCII letters, digits or the given characters. Fess writes labels into
// its query between quotes, without escaping them.
func isName(s string, most int, signs string) bool {
	return 0 < len(s) && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || '9' < r) && (r < 'A' || 'Z' < r) && (r < 'a' || 'z' < r) && !strings.ContainsRune(signs, r)
	})
}

// labelParams returns one parameter for each label. Documents with any of the
// labels match.
func labelParams(name string, labels []string) ([]param, error) {
	var params []param
	for _, l := range labels {
		if !isName(l, maxLabel, "_.-") {
			return nil, &errkind.Argument{Name: "labels", Value: l,
				Want: "ASCII letters, digits and the characters _ . -"}
		}
		params = append(params, param{name, l})
	}
	return params, nil
}

// textParams returns the parameters for the text and the labels of a query.
func textParams(text string, labels []string) ([]param, error) {
	where, err := labelParams(wire.FieldLabel, labels)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		if len(where) > 0 {
			return where, nil // without a text, Fess lists the whole label
		}
		return []param{{wire.Query, "*:*"}}, nil
	}
	guarded, err := query.Guard(text)
	if err != nil {
		return nil, err
	}
	params := append([]param{{wire.Query, guarded.Q}}, where...)
	if guarded.Extra != "" {
		params = append(params, param{wire.ExtraQuery, guarded.Extra})
	}
	return params, nil
}

// conditions returns the parameters other than text, labels, start and num. It
// refuses values that Fess would clamp or ignore, or answer with an empty page.
func conditions(q search.Query) ([]param, error) {
	if err := q.Validate(facetFields()); err != nil {
		return nil, err
	}
	if len(q.Tags) > 0 {
		return nil, fmt.Errorf("tags: documents of a Fess server have none, leave them out: %w", errkind.Unsupported)
	}
	return slices.Concat(sortParams(q.Sort), repeat(wire.Lang, q.Langs), facetParams(q.Facets), geoParams(q.Geo)), nil
}

// sortParams returns the sort parameter. Fess appends it to the query
// unescaped, so only known names are permitted.
func sortParams(keys []search.SortKey) []param {
	var list []string
	for _, k := range keys {
		order := ".asc"
		if k.Desc {
			order = ".desc"
		}
		list = append(list, k.Field+order)
	}
	return repeat(wire.Sort, []string{strings.Join(list, ",")})
}

// geoParams returns the parameters of a location.
func geoParams(g *search.Geo) []param {
	if g == nil {
		return nil
	}
	return []param{{wire.GeoPoint, strings.Join(strings.Fields(g.Point), "")}, {wire.GeoDistance, g.Distance}}
}

// FacetFields implements [search.Service]: Fess counts by all fields except
// lang.
func (c *Client) FacetFields() []string { return facetFields() }

func facetFields() []string {
	return slices.DeleteFunc(slices.Clone(search.FacetFields[:]), func(name string) bool { return name == "lang" })
}

// facetParams returns the parameters of facets.
func facetParams(f *search.Facets) []param {
	if f == nil || len(f.Fields)+len(f.Queries) == 0 {
		return nil
	}
	params := append(repeat(wire.FacetField, f.Fields), repeat(wire.FacetQuery, f.Queries)...)
	if f.Size > 0 {
		params = append(params, param{wire.FacetSize, strconv.Itoa(f.Size)})
	}
	// With a minimum of 0, the engine would also list values that only documents of other
	// labels have.
	if f.MinDocCount > 0 {
		params = append(params, param{wire.FacetMinimum, strconv.Itoa(f.MinDocCount)})
	}
	params = append(params, repeat(wire.FacetSort, []string{f.Sort})...)
	return append(params, repeat(wire.FacetMissing, []string{f.Missing})...)
}
