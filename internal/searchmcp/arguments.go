package searchmcp

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Limits on arguments, in addition to those of package search.
const (
	maxFacetQueries = 20
	maxFacetQuery   = 1000 // bytes
	maxLangs        = 10
	maxWordFields   = 10
	maxNameBytes    = 100
	maxFieldName    = 64 // bytes
)

// fieldPattern matches the name of a field, which has at most maxFieldName
// bytes.
var fieldPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// parseSort parses "field[.asc|.desc],...". A field without a direction is
// ascending, as in Fess, but score is descending.
func parseSort(s string) ([]search.SortKey, error) {
	if s == "" {
		return nil, nil
	}
	var keys []search.SortKey
	for part := range strings.SplitSeq(s, ",") {
		field, order, given := strings.Cut(strings.TrimSpace(part), ".")
		if given && order != "asc" && order != "desc" {
			return nil, &errkind.Argument{Name: "sort", Value: s,
				Want: "field.asc or field.desc, comma-separated, with fields " +
					strings.Join(search.SortFields[:], ", ")}
		}
		keys = append(keys, search.SortKey{Field: field, Desc: order == "desc" || !given && field == "score"})
	}
	return keys, nil
}

// parseLangs parses one language code, or several separated by commas.
func parseLangs(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	langs := strings.Split(s, ",")
	if len(langs) > maxLangs {
		return nil, &errkind.Argument{Name: "lang", Value: s,
			Want: fmt.Sprintf("a language code such as en or ja, or up to %d with commas between", maxLangs)}
	}
	for i, l := range langs {
		langs[i] = strings.TrimSpace(l)
	}
	return langs, nil
}

// facetArgs are the search tool's facets. A nil pointer means none.
type facetArgs struct {
	Field       []string `json:"field,omitempty" limits:"oneOrMany"`
	Query       []string `json:"query,omitempty" limits:"oneOrMany"`
	Size        int      `json:"size,omitempty" jsonschema:"Counts per field" limits:"minimum=1 maximum=1000 default=10"`
	MinDocCount int      `json:"minDocCount,omitempty" limits:"minimum=0 maximum=2147483647"`
	Sort        string   `json:"sort,omitempty" limits:"enum=count.desc|count.asc|term.asc|term.desc"`
	Missing     string   `json:"missing,omitempty" jsonschema:"Name for documents without the field"`
}

func (f *facetArgs) parse() (*search.Facets, error) {
	if f == nil {
		return nil, nil
	}
	if len(f.Field)+len(f.Query) == 0 {
		return nil, &errkind.Argument{Name: "facets", Want: "a field or a query to count by"}
	}
	for _, q := range f.Query {
		if strings.TrimSpace(q) == "" || len(q) > maxFacetQuery || len(f.Query) > maxFacetQueries {
			return nil, &errkind.Argument{Name: "facets.query", Value: q, Want: fmt.Sprintf(
				"at most %d queries, each with at least one word and at most %d bytes", maxFacetQueries, maxFacetQuery)}
		}
	}
	if len(f.Missing) > maxNameBytes {
		return nil, &errkind.Argument{Name: "facets.missing", Value: f.Missing,
			Want: fmt.Sprintf("at most %d bytes", maxNameBytes)}
	}
	return &search.Facets{Fields: f.Field, Queries: f.Query, Size: f.Size, MinDocCount: f.MinDocCount,
		Sort: f.Sort, Missing: f.Missing}, nil
}

// geoArgs are the search tool's location. A nil pointer means anywhere.
type geoArgs struct {
	Point    string `json:"point" jsonschema:"lat,lon"`
	Distance string `json:"distance" jsonschema:"For example 10km"`
}
