package fess

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"knowhow/internal/errkind"
	"knowhow/internal/query"
	"knowhow/internal/search"
)

// Bounds of Fess's own.
const (
	maxNum    = 100    // hits a page (paging.search.page.max.size); more is clamped without a word
	maxWindow = 10_000 // hits that can be paged to (OpenSearch's index.max_result_window)
)

// maxLabel bounds a label's value, in bytes.
const maxLabel = 100

// isName says whether s is made of letters of ASCII, digits and the given signs,
// of at least one of them and at most the given number. Labels are put into Fess's
// query between quotes, without any escape.
func isName(s string, most int, signs string) bool {
	return 0 < len(s) && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || '9' < r) && (r < 'A' || 'Z' < r) && (r < 'a' || 'z' < r) && !strings.ContainsRune(signs, r)
	})
}

// labelParams makes one parameter of each label; several mean any of them.
func labelParams(name string, labels []string) ([]param, error) {
	var params []param
	for _, l := range labels {
		if !isName(l, maxLabel, "_.-") {
			return nil, &errkind.Argument{Name: "labels", Value: l, Want: "letters of ASCII, digits and the signs _ . -"}
		}
		params = append(params, param{name, l})
	}
	return params, nil
}

// textParams makes the parameters that say what to look for, and where.
func textParams(text string, labels []string) ([]param, error) {
	where, err := labelParams("fields.label", labels)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		if len(where) > 0 {
			return where, nil // Fess lists the whole label
		}
		return []param{{"q", "*:*"}}, nil
	}
	guarded, err := query.Guard(text)
	if err != nil {
		return nil, err
	}
	params := append([]param{{"q", guarded.Q}}, where...)
	if guarded.Extra != "" {
		params = append(params, param{"ex_q", guarded.Extra})
	}
	return params, nil
}

// plainWords returns the words of a query that is words alone, else nil.
func plainWords(text string) []string {
	if !query.Plain(text) {
		return nil
	}
	return query.Words(text)
}

// conditions makes the parameters other than text, labels, start and num. It
// refuses what Fess would clamp, ignore, or answer with an empty page.
func conditions(q search.Query) ([]param, error) {
	switch {
	case q.Num < 0 || q.Num > maxNum:
		return nil, &errkind.Argument{Name: "num", Value: q.Num, Want: fmt.Sprintf("an integer from 0 to %d", maxNum)}
	case q.Start < 0:
		return nil, &errkind.Argument{Name: "start", Value: q.Start, Want: "an integer from 0"}
	case q.Start > maxWindow || q.Start+max(q.Num, 1) > maxWindow:
		return nil, &errkind.Argument{Name: "start", Value: q.Start,
			Want: fmt.Sprintf("start and page size of at most %d together, because Fess shows no more; narrow the query instead", maxWindow)}
	case len(q.Tags) > 0:
		return nil, fmt.Errorf("tags: documents of a Fess server have none, leave them out: %w", errkind.Unsupported)
	}
	sort, err := sortParams(q.Sort)
	if err != nil {
		return nil, err
	}
	lang, err := langParams(q.Langs)
	if err != nil {
		return nil, err
	}
	facets, err := facetParams(q.Facets)
	if err != nil {
		return nil, err
	}
	geo, err := geoParams(q.Geo)
	if err != nil {
		return nil, err
	}
	return slices.Concat(sort, lang, facets, geo), nil
}

// sortParams makes the sort parameter. Fess appends it to the query unescaped,
// so that nothing but known names may get into it.
func sortParams(keys []search.SortKey) ([]param, error) {
	var list []string
	for _, k := range keys {
		if !slices.Contains(search.SortFields[:], k.Field) {
			return nil, &errkind.Argument{Name: "sort", Value: k.Field, Want: "one of " + strings.Join(search.SortFields[:], ", ")}
		}
		order := ".asc"
		if k.Desc {
			order = ".desc"
		}
		list = append(list, k.Field+order)
	}
	if list == nil {
		return nil, nil
	}
	return []param{{"sort", strings.Join(list, ",")}}, nil
}

// langForm is that of a language tag such as ja or zh_CN.
var langForm = regexp.MustCompile(`^[A-Za-z]{2,8}([_-][A-Za-z0-9]{2,8})?$`)

// langParams makes one parameter of each language.
func langParams(langs []string) ([]param, error) {
	for _, l := range langs {
		if !langForm.MatchString(l) {
			return nil, &errkind.Argument{Name: "lang", Value: l, Want: "a language code such as en or ja"}
		}
	}
	return repeat("lang", langs), nil
}

// The forms of a place.
var (
	pointForm    = regexp.MustCompile(`^\s*(-?\d{1,3}(?:\.\d+)?)\s*,\s*(-?\d{1,3}(?:\.\d+)?)\s*$`)
	distanceForm = regexp.MustCompile(`^\d{1,9}(\.\d{1,9})?(mm|cm|m|km|in|ft|yd|mi|nmi|NM)$`)
)

// geoParams makes the parameters of a place. Fess ignores a point without a
// distance.
func geoParams(g *search.Geo) ([]param, error) {
	if g == nil {
		return nil, nil
	}
	bad := &errkind.Argument{Name: "geo.point", Value: g.Point, Want: `"latitude,longitude" in degrees, for example "35.68,139.77"`}
	m := pointForm.FindStringSubmatch(g.Point)
	if m == nil {
		return nil, bad
	}
	for i, bound := range []float64{90, 180} {
		if x, err := strconv.ParseFloat(m[i+1], 64); err != nil || x < -bound || x > bound {
			return nil, bad
		}
	}
	if !distanceForm.MatchString(g.Distance) {
		return nil, &errkind.Argument{Name: "geo.distance", Value: g.Distance, Want: `a number and a unit, for example "10km"`}
	}
	return []param{{"geo.location.point", m[1] + "," + m[2]}, {"geo.location.distance", g.Distance}}, nil
}

// facetSorts are the orders of counts that Fess knows; it ignores others.
var facetSorts = [...]string{"count.desc", "count.asc", "term.asc", "term.desc"}

// FacetFields implements [search.Faceter]: Fess counts all fields but lang.
func (c *Client) FacetFields() []string { return facetFields() }

func facetFields() []string {
	return slices.DeleteFunc(slices.Clone(search.FacetFields[:]), func(name string) bool { return name == "lang" })
}

// facetParams makes the parameters of counts. Fess answers a field or a number
// that it does not take with an empty page.
func facetParams(f *search.Facets) ([]param, error) {
	if f == nil {
		return nil, nil
	}
	for _, name := range f.Fields {
		if !slices.Contains(facetFields(), name) {
			return nil, &errkind.Argument{Name: "facets.field", Value: name,
				Want: "one of " + strings.Join(facetFields(), ", ")}
		}
	}
	for _, text := range f.Queries {
		if _, err := query.Parse(text); err != nil || strings.TrimSpace(text) == "" {
			return nil, &errkind.Argument{Name: "facets.query", Value: text, Want: "a query, for example filetype:pdf"}
		}
	}
	if f.Size < 0 {
		return nil, &errkind.Argument{Name: "facets.size", Value: f.Size, Want: "an integer from 1"}
	}
	if f.MinDocCount < 0 {
		return nil, &errkind.Argument{Name: "facets.minDocCount", Value: f.MinDocCount, Want: "an integer from 1"}
	}
	if f.Sort != "" && !slices.Contains(facetSorts[:], f.Sort) {
		return nil, &errkind.Argument{Name: "facets.sort", Value: f.Sort, Want: "one of " + strings.Join(facetSorts[:], ", ")}
	}
	params := append(repeat("facet.field", f.Fields), repeat("facet.query", f.Queries)...)
	if len(params) == 0 {
		return nil, nil
	}
	if f.Size > 0 {
		params = append(params, param{"facet.size", strconv.Itoa(f.Size)})
	}
	if f.MinDocCount > 0 {
		params = append(params, param{"facet.minDocCount", strconv.Itoa(f.MinDocCount)})
	}
	params = append(params, repeat("facet.sort", []string{f.Sort})...)
	return append(params, repeat("facet.missing", []string{f.Missing})...), nil
}
