package search_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

func TestValidate(t *testing.T) {
	facets := func(f search.Facets) search.Query { return search.Query{Facets: &f} }
	place := func(point, distance string) search.Query {
		return search.Query{Geo: &search.Geo{Point: point, Distance: distance}}
	}
	tests := []struct {
		argument string // that the error is about; "" if the query is valid
		q        search.Query
	}{
		{"", search.Query{}},
		{"", search.Query{Text: query.MustParse(`a "b"`), Start: 9_900, Num: 100,
			Sort:  []search.SortKey{{Field: "score"}, {Field: "created", Desc: true}},
			Langs: []string{"en", "zh_CN", "zh-Hant-TW"}}},
		{"", facets(search.Facets{})},
		{"", facets(search.Facets{Fields: []string{"label", "host"}, Queries: []string{"a OR b"}, Size: 5,
			MinDocCount: 2, Sort: "term.asc", Missing: "none"})},
		{"", place("35.68, -139.77", "1.5km")},
		{"num", search.Query{Num: 101}},
		{"num", search.Query{Num: -1}},
		{"start", search.Query{Start: -1, Num: 1}},
		{"start", search.Query{Start: 9_991, Num: 10}},
		{"start", search.Query{Start: 10_000}},
		{"start", search.Query{Start: math.MaxInt, Num: 100}},
		{"sort", search.Query{Sort: []search.SortKey{{Field: "title"}}}},
		{"sort", search.Query{Sort: make([]search.SortKey, 1)}},
		{"sort", search.Query{Sort: []search.SortKey{{Field: "score"}, {Field: "score"}, {Field: "score"},
			{Field: "score"}, {Field: "score"},
			{Field: "score"}, {Field: "score"}, {Field: "score"}, {Field: "score"}}}},
		{"lang", search.Query{Langs: []string{"en&q=x"}}},
		{"lang", search.Query{Langs: []string{""}}},
		{"facets.field", facets(search.Facets{Fields: []string{"title"}})},
		{"facets.field", facets(search.Facets{Fields: []string{"lang"}})},
		{"facets.field", facets(search.Facets{Fields: []string{"host", "host", "host"}})},
		{"facets.query", facets(search.Facets{Queries: []string{`"a`}})},
		{"facets.query", facets(search.Facets{Queries: []string{" "}})},
		{"facets.size", facets(search.Facets{Size: -1})},
		{"facets.minDocCount", facets(search.Facets{MinDocCount: -1})},
		{"facets.sort", facets(search.Facets{Sort: "count"})},
		{"geo.point", place("", "10km")},
		{"geo.point", place("91,0", "10km")},
		{"geo.point", place("0,-180.5", "10km")},
		{"geo.point", place("1,2,3", "10km")},
		{"geo.point", place("NaN,0", "10km")},
		{"geo.distance", place("1,2", "")},
		{"geo.distance", place("1,2", "10")},
		{"geo.distance", place("1,2", "0.0km")},
		{"geo.distance", place("1,2", "-1km")},
		{"geo.distance", place("1,2", "10 parsecs")},
	}
	for _, test := range tests {
		err := test.q.Validate([]string{"label", "host"})
		if a, _ := errors.AsType[*errkind.Argument](err); test.argument == "" && err != nil || test.argument != "" &&
			(a == nil || a.Name != test.argument) {
			t.Errorf("Validate(%+v) = %v, want an error about %q", test.q, err, test.argument)
		}
	}
}

func TestValidateSuggest(t *testing.T) {
	for argument, q := range map[string]search.SuggestQuery{
		"":       {Num: 100, Prefix: strings.Repeat("a", 1000), Langs: []string{"en"}},
		"num":    {Num: 101},
		"prefix": {Num: 1, Prefix: strings.Repeat("a", 1001)},
		"lang":   {Num: 1, Langs: []string{"?"}},
	} {
		err := q.Validate()
		if a, _ := errors.AsType[*errkind.Argument](err); argument == "" && err != nil || argument != "" &&
			(a == nil || a.Name != argument) {
			t.Errorf("Validate(%+v) = %v, want an error about %q", q, err, argument)
		}
	}
}
