package fessserver

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// Limits of Fess.
const (
	defaultNum = 10 // paging.search.page.size
	maxOffset  = 100_000
	maxValues  = 100  // values of one parameter (api.v2.param.max.array.size)
	maxFacets  = 1000 // counts of one field
)

// A question is a request for a search.
type question struct {
	q      *string // the parameter as sent; nil if absent
	asked  search.Query
	echo   string // search_query
	empty  bool   // the request has no condition; Fess does not search then
	totals int    // maximum exact count of hits
	points int    // number of locations; asked.Geo is the first
}

// question reads the parameters of a search. strict refuses the values that API
// v2 refuses and v1 clamps or ignores.
func (c *call) question(strict bool) (*question, error) {
	if err := c.checkSizes(strict); err != nil {
		return nil, err
	}
	x := &question{totals: search.Window}
	if c.params.Has(wire.Query) {
		q := c.params.Get(wire.Query)
		x.q = &q
	}
	if err := c.window(x, strict); err != nil {
		return nil, err
	}
	if err := c.conditions(x); err != nil {
		return nil, err
	}
	if x.empty {
		return x, nil
	}
	var err error
	if x.asked.Facets, err = c.facets(); err != nil {
		return nil, err
	}
	if err = c.geo(x); err != nil {
		return nil, err
	}
	if len(c.list("sdh")) > 0 {
		// No document here is marked as a near copy of another one.
		x.asked.Labels = []string{}
	}
	switch n, err := strconv.Atoi(c.params.Get("track_total_hits")); {
	case c.params.Get("track_total_hits") == "true":
		x.totals = math.MaxInt
	case err == nil && n > 0:
		x.totals = n
	}
	return x, nil
}

// checkSizes limits the number and the length of parameter values.
func (c *call) checkSizes(strict bool) error {
	for _, name := range slices.Sorted(maps.Keys(c.params)) {
		values := c.list(name)
		if len(values) > maxValues {
			return &refusal{fmt.Sprintf("%s exceeds the maximum number of values: %d", name, maxValues)}
		}
		if strict && (name == wire.Query || name == wire.Sort || name == wire.ExtraQuery ||
			strings.HasPrefix(name, "fields.")) {
			for _, v := range values {
				if utf8.RuneCountInString(v) > maxLength {
					return &refusal{fmt.Sprintf("%s exceeds the maximum length of %d", name, maxLength)}
				}
			}
		}
	}
	return nil
}

// window reads start and num.
func (c *call) window(x *question, strict bool) error {
	num, start := wire.Int(c.params, wire.Num, defaultNum), wire.Int(c.params, wire.Start, 0)
	switch {
	case strict && num <= 0:
		return &refusal{fmt.Sprintf("num must be positive, got: %d", num)}
	case start < 0:
		return &refusal{fmt.Sprintf("start must be non-negative, got: %d", start)}
	case strict && wire.Int(c.params, "offset", 0) < 0:
		return &refusal{fmt.Sprintf("offset must be non-negative, got: %d", wire.Int(c.params, "offset", 0))}
	case num <= 0 || num > search.MaxNum:
		num = search.MaxNum
	}
	if start > maxOffset || start+num > search.Window {
		return &refusal{"The number of result size is exceeded."}
	}
	x.asked.Start, x.asked.Num = start, num
	return nil
}

// conditions reads the query, its conditions and its order. The parameter lang
// only chooses among the fields of Fess's index; it excludes no document.
func (c *call) conditions(x *question) error {
	var s sentence
	advanced, err := s.advanced(c.list)
	if err == nil && !advanced {
		err = s.text(c.params.Get(wire.Query), true)
	}
	if err != nil {
		return err
	}
	for _, v := range c.list(wire.ExtraQuery) {
		if utf8.RuneCountInString(v) > maxLength {
			continue
		}
		if err := s.condition(v); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.params)) {
		field, ok := strings.CutPrefix(name, "fields.")
		values := c.list(name)
		if !ok || len(values) == 0 {
			continue
		}
		s.field(field, values...)
		if field == "label" {
			s.texts = s.texts[:len(s.texts)-1]
			x.asked.Labels = values
		}
	}
	if x.asked.Text, err = s.query(); err != nil {
		return &refusal{"Invalid query: " + strings.TrimPrefix(err.Error(), "query, ")}
	}
	x.echo = strings.Join(s.echo, " ")
	if order := c.params.Get(wire.Sort); strings.TrimSpace(order) != "" {
		if x.asked.Sort, err = sortKeys(order); err != nil {
			return err
		}
		x.echo += " sort:" + order
	}
	x.empty = x.echo == ""
	return nil
}

// sortKeys reads an order such as "created.desc,score.desc".
func sortKeys(order string) ([]search.SortKey, error) {
	var keys []search.SortKey
	for part := range strings.SplitSeq(order, ",") {
		field, direction, given := strings.Cut(strings.TrimSpace(part), ".")
		if !slices.Contains(search.SortFields[:], field) {
			return nil, &refusal{"Unsupported sort field: sort:" + order}
		}
		if given && direction != "asc" && direction != "desc" {
			return nil, &refusal{"Invalid sort order: sort:" + order}
		}
		keys = append(keys, search.SortKey{Field: field, Desc: direction == "desc"})
	}
	return keys, nil
}

// facets reads the parameters of facets, or returns nil if there are none.
func (c *call) facets() (*search.Facets, error) {
	f := &search.Facets{Fields: c.list(wire.FacetField), Queries: c.list(wire.FacetQuery),
		Missing: c.params.Get(wire.FacetMissing)}
	if len(f.Fields)+len(f.Queries) == 0 {
		return nil, nil
	}
	for _, q := range f.Queries {
		if !whole(q) {
			return nil, &refusal{"Invalid query: facet.query takes only well-formed queries"}
		}
	}
	var err error
	if f.Size, err = c.natural(wire.FacetSize, 1); err != nil {
		return nil, err
	}
	f.Size = min(f.Size, maxFacets)
	if f.MinDocCount, err = c.natural(wire.FacetMinimum, 0); err != nil {
		return nil, err
	}
	order := strings.Replace(c.params.Get(wire.FacetSort), "key.", "term.", 1)
	if slices.Contains(search.FacetSorts[:], order) {
		f.Sort = order
	}
	return f, nil
}

// natural reads a number that is at least least; 0 if the parameter is absent.
func (c *call) natural(name string, least int) (int, error) {
	v := c.params.Get(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || int(n) < least {
		return 0, &refusal{fmt.Sprintf("%s must be an integer from %d, got: %s", name, least, cut(v))}
	}
	return int(n), nil
}

// geo reads the locations. Fess ignores a point without a distance, and a distance
// without a unit is in metres.
func (c *call) geo(x *question) error {
	points, distance := c.list(wire.GeoPoint), strings.Join(strings.Fields(c.params.Get(wire.GeoDistance)), "")
	if len(points) == 0 || distance == "" {
		return nil
	}
	if last := distance[len(distance)-1]; '0' <= last && last <= '9' {
		distance += "m"
	}
	for _, p := range points {
		g := search.Geo{Point: p, Distance: distance}
		if a, bad := errors.AsType[*errkind.Argument]((search.Query{Geo: &g}).Validate(nil)); bad {
			return &refusal{fmt.Sprintf("Invalid %s: %s", strings.Replace(a.Name, ".", " ", 1),
				cut(fmt.Sprint(a.Value)))}
		}
	}
	x.asked.Geo, x.points = &search.Geo{Point: points[0], Distance: distance}, len(points)
	return nil
}
