package search

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
)

// Limits of queries. Fess clamps or ignores most values beyond them, or returns
// an empty page.
const (
	MaxNum    = 100    // hits on a page (Fess: paging.search.page.max.size)
	Window    = 10_000 // hits that can be paged to (OpenSearch: index.max_result_window)
	maxPrefix = 1000   // bytes of a word to complete
)

// FacetSorts are the permitted orders of counts.
var FacetSorts = [...]string{"count.desc", "count.asc", "term.asc", "term.desc"}

var (
	langForm     = lazily(`^[A-Za-z]{2,8}([_-][A-Za-z0-9]{2,8})*$`)
	pointForm    = lazily(`^\s*(-?\d{1,3}(?:\.\d{1,15})?)\s*,\s*(-?\d{1,3}(?:\.\d{1,15})?)\s*$`)
	distanceForm = lazily(`^(\d{1,9}(?:\.\d{1,9})?)(?:mm|cm|m|km|in|ft|yd|mi|nmi|NM)$`)
)

// lazily returns a function that compiles a pattern when it is first called.
// Compiling a pattern with counts takes time, which would slow the start of every
// program.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// Validate checks everything in a query except Text, Labels and Tags.
// facetFields are the fields that the service counts by. The error is an
// *errkind.Argument with a name as in the tools: "start", "num", "sort",
// "lang", "facets.field", "geo.point" and so on.
func (q Query) Validate(facetFields []string) error {
	switch {
	case q.Num < 0 || q.Num > MaxNum:
		return &errkind.Argument{Name: "num", Value: q.Num, Want: fmt.Sprintf("an integer from 0 to %d", MaxNum)}
	case q.Start < 0:
		return &errkind.Argument{Name: "start", Value: q.Start, Want: "an integer from 0"}
	case q.Start > Window-max(q.Num, 1):
		return &errkind.Argument{Name: "start", Value: q.Start,
			Want: fmt.Sprintf("start and page size of at most %d together; narrow the query to see what lies beyond",
				Window)}
	}
	for _, k := range q.Sort {
		if !slices.Contains(SortFields[:], k.Field) || len(q.Sort) > len(SortFields) {
			return &errkind.Argument{Name: "sort", Value: k.Field,
				Want: "field.asc or field.desc, comma-separated, with fields " + strings.Join(SortFields[:], ", ")}
		}
	}
	if err := validLangs(q.Langs); err != nil {
		return err
	}
	if err := q.Facets.validate(facetFields); err != nil {
		return err
	}
	return q.Geo.validate()
}

// validLangs checks language codes.
func validLangs(langs []string) error {
	for _, l := range langs {
		if !langForm().MatchString(l) {
			return &errkind.Argument{Name: "lang", Value: l, Want: "a language code such as en or ja"}
		}
	}
	return nil
}

// validate checks facets. nil is valid.
func (f *Facets) validate(fields []string) error {
	if f == nil {
		return nil
	}
	for _, name := range f.Fields {
		if !slices.Contains(fields, name) || len(f.Fields) > len(fields) {
			return &errkind.Argument{Name: "facets.field", Value: name, Want: "one of " + strings.Join(fields, ", ")}
		}
	}
	for _, text := range f.Queries {
		if _, err := query.Parse(text); err != nil || strings.TrimSpace(text) == "" {
			return &errkind.Argument{Name: "facets.query", Value: text,
				Want: "a query with at least one word, for example filetype:pdf"}
		}
	}
	switch {
	case f.Size < 0:
		return &errkind.Argument{Name: "facets.size", Value: f.Size, Want: "an integer from 1, or 0 for the default"}
	case f.MinDocCount < 0:
		return &errkind.Argument{Name: "facets.minDocCount", Value: f.MinDocCount,
			Want: "an integer from 1, or 0 for the default"}
	case f.Sort != "" && !slices.Contains(FacetSorts[:], f.Sort):
		return &errkind.Argument{Name: "facets.sort", Value: f.Sort,
			Want: "one of " + strings.Join(FacetSorts[:], ", ")}
	}
	return nil
}

// validate checks a location. nil is valid. Fess ignores a point without a
// distance.
func (g *Geo) validate() error {
	if g == nil {
		return nil
	}
	p := pointForm().FindStringSubmatch(g.Point)
	if p == nil || !within(p[1], 90) || !within(p[2], 180) {
		return &errkind.Argument{Name: "geo.point", Value: g.Point,
			Want: `"lat,lon" with lat from -90 to 90 and lon from -180 to 180, for example "35.68,139.77"`}
	}
	d := distanceForm().FindStringSubmatch(g.Distance)
	if d == nil || strings.Trim(d[1], "0.") == "" {
		return &errkind.Argument{Name: "geo.distance", Value: g.Distance,
			Want: `a number above 0 and a unit (mm, cm, m, km, in, ft, yd, mi, nmi), for example "10km"`}
	}
	return nil
}

// within reports whether a number is between -bound and bound.
func within(number string, bound float64) bool {
	v, err := strconv.ParseFloat(number, 64)
	return err == nil && -bound <= v && v <= bound
}

// Validate checks everything in a query except Labels and Fields. The error is
// an *errkind.Argument named "num", "prefix" or "lang".
func (q SuggestQuery) Validate() error {
	switch {
	case q.Num < 1 || q.Num > MaxNum:
		return &errkind.Argument{Name: "num", Value: q.Num, Want: fmt.Sprintf("an integer from 1 to %d", MaxNum)}
	case len(q.Prefix) > maxPrefix:
		return &errkind.Argument{Name: "prefix", Value: q.Prefix,
			Want: fmt.Sprintf("the beginning of a word, at most %d bytes", maxPrefix)}
	}
	return validLangs(q.Langs)
}
