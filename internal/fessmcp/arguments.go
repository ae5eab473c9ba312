package fessmcp

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"knowhow/internal/errkind"
	"knowhow/internal/search"
)

// Bounds of arguments. Fess clamps or swallows most of what is out of its
// bounds and then answers with zero hits, so the check is ours.
const (
	maxQueryBytes   = 10_000
	maxFacetSize    = 1000
	maxFacetQueries = 20
	maxFacetQuery   = 1000 // bytes
	maxLangs        = 10
	maxWordFields   = 10
	maxNameBytes    = 100
)

var (
	langPattern     = regexp.MustCompile(`^[A-Za-z]{2,3}([_-][A-Za-z0-9]{2,8})*$`)
	pointPattern    = regexp.MustCompile(`^\s*([+-]?\d{1,3}(?:\.\d{1,15})?)\s*,\s*([+-]?\d{1,3}(?:\.\d{1,15})?)\s*$`)
	distancePattern = regexp.MustCompile(`^(\d{1,9}(?:\.\d{1,9})?)(?:mm|cm|m|km|in|ft|yd|mi|nmi|NM)$`)
	fieldPattern    = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
)

// parseSort reads "field[.asc|.desc],...". A bare field is ascending, as in
// Fess, but a bare score is descending: nobody wants the worst first.
func parseSort(s string) ([]search.SortKey, error) {
	if s == "" {
		return nil, nil
	}
	var keys []search.SortKey
	for part := range strings.SplitSeq(s, ",") {
		field, order, given := strings.Cut(strings.TrimSpace(part), ".")
		known := slices.Contains(search.SortFields[:], field)
		if !known || given && order != "asc" && order != "desc" || len(keys) == len(search.SortFields) {
			return nil, &errkind.Argument{Name: "sort", Value: s, Want: "field.asc or field.desc, comma-separated, with fields " +
				strings.Join(search.SortFields[:], ", ")}
		}
		keys = append(keys, search.SortKey{Field: field, Desc: order == "desc" || !given && field == "score"})
	}
	return keys, nil
}

// parseLangs reads one language code or several with commas between.
func parseLangs(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	var langs []string
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if !langPattern.MatchString(part) || len(langs) == maxLangs {
			return nil, &errkind.Argument{Name: "lang", Value: s,
				Want: fmt.Sprintf("a language code such as en or ja, or up to %d with commas between", maxLangs)}
		}
		langs = append(langs, part)
	}
	return langs, nil
}

// facetArgs are the search tool's facets. A nil pointer asks for none.
type facetArgs struct {
	Field       []string `json:"field"`
	Query       []string `json:"query"`
	Size        int      `json:"size"`
	MinDocCount int      `json:"minDocCount"`
	Sort        string   `json:"sort"`
	Missing     string   `json:"missing"`
}

func (f *facetArgs) parse(fields []string) (*search.Facets, error) {
	if f == nil {
		return nil, nil
	}
	if len(f.Field)+len(f.Query) == 0 {
		return nil, &errkind.Argument{Name: "facets", Want: "a field or a query to count by"}
	}
	for _, name := range f.Field {
		if !slices.Contains(fields, name) || len(f.Field) > len(fields) {
			return nil, &errkind.Argument{Name: "facets.field", Value: name, Want: oneOf(fields)}
		}
	}
	for _, q := range f.Query {
		if strings.TrimSpace(q) == "" || len(q) > maxFacetQuery || len(f.Query) > maxFacetQueries {
			return nil, &errkind.Argument{Name: "facets.query", Value: q, Want: fmt.Sprintf(
				"at most %d queries, each with at least one word and at most %d bytes", maxFacetQueries, maxFacetQuery)}
		}
	}
	if len(f.Missing) > maxNameBytes {
		return nil, &errkind.Argument{Name: "facets.missing", Value: f.Missing, Want: fmt.Sprintf("at most %d bytes", maxNameBytes)}
	}
	return &search.Facets{Fields: f.Field, Queries: f.Query, Size: f.Size, MinDocCount: f.MinDocCount,
		Sort: f.Sort, Missing: f.Missing}, nil
}

// geoArgs are the search tool's place. A nil pointer means anywhere. Fess
// ignores a point without a distance, which would look like a match.
type geoArgs struct {
	Point    string `json:"point"`
	Distance string `json:"distance"`
}

func (g *geoArgs) parse() (*search.Geo, error) {
	if g == nil {
		return nil, nil
	}
	p := pointPattern.FindStringSubmatch(g.Point)
	if p == nil || !within(p[1], 90) || !within(p[2], 180) {
		return nil, &errkind.Argument{Name: "geo.point", Value: g.Point,
			Want: `"lat,lon" with lat from -90 to 90 and lon from -180 to 180, for example "35.68,139.77"`}
	}
	d := distancePattern.FindStringSubmatch(g.Distance)
	if d == nil || strings.Trim(d[1], "0.") == "" {
		return nil, &errkind.Argument{Name: "geo.distance", Value: g.Distance,
			Want: `a number above 0 and a unit (mm, cm, m, km, in, ft, yd, mi, nmi), for example "10km"`}
	}
	return &search.Geo{Point: p[1] + "," + p[2], Distance: g.Distance}, nil
}

// within reports whether number, which pointPattern has matched, lies between
// -bound and bound.
func within(number string, bound float64) bool {
	v, err := strconv.ParseFloat(number, 64)
	return err == nil && -bound <= v && v <= bound
}

func oneOf(names []string) string { return "one of " + strings.Join(names, ", ") }
