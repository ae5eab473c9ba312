package fessmcp

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"knowhow/internal/compact"
	"knowhow/internal/errkind"
	"knowhow/internal/search"
)

// fieldRunes bounds the strings that includeFields can ask for. A text of a
// document comes through read_content, not twenty at a time.
const fieldRunes = 1000

// hitSize is about how many bytes a hit takes.
const hitSize = 512

// defaultFields are what a hit shows unless includeFields says otherwise;
// url_link goes with them where it says something else than url.
var defaultFields = [...]string{"doc_id", "title", "url", "digest", "score"}

// hitFields returns the names to show in the order of [search.HitFields], and
// nil for the default ones.
func hitFields(asked []string) ([]string, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	for _, name := range asked {
		if !slices.Contains(search.HitFields[:], name) {
			return nil, &errkind.Argument{Name: "includeFields", Value: name, Want: oneOf(search.HitFields[:])}
		}
	}
	var names []string
	for _, name := range search.HitFields {
		if name == "doc_id" || slices.Contains(asked, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// newHit returns h as a JSON object with the given fields in their order, nil for
// the default ones, and of folders with its path and, if there are several, its
// source. What the service did not send is left out.
func (b *bridge) newHit(h *search.Hit, fields []string) *compact.Object {
	names := fields
	if names == nil {
		names = defaultFields[:]
		if otherLink(h) != "" {
			names = append(slices.Clone(names), "url_link")
		}
	}
	out := &compact.Object{}
	out.Grow(hitSize)
	for _, name := range names {
		if v := fieldValue(h, name); v != nil {
			out.Add(name, v)
		}
		if name == "title" || name == "doc_id" && !slices.Contains(names, "title") {
			b.addPlace(out, h)
		}
	}
	return out
}

// addPlace adds where a document of a folder is: the path inside the source, and
// the source if there are several.
func (b *bridge) addPlace(out *compact.Object, h *search.Hit) {
	if b.wording != OfFolders {
		return
	}
	if h.Path != "" {
		out.Add("path", link(h.Path))
	}
	if labels, _ := h.Fields["label"].([]string); b.nameSource && len(labels) == 1 {
		out.Add("source", labels[0])
	}
}

// fieldValue returns a field of h, cleaned, and nil where h lacks it.
func fieldValue(h *search.Hit, name string) any {
	switch name {
	case "doc_id":
		return h.ID
	case "title":
		return title(h.Title)
	case "url":
		return link(h.URL)
	case "digest":
		return digest(h.Digest, digestRunes)
	case "score":
		if h.Score == 0 {
			return nil
		}
		return number(round(h.Score))
	case "url_link", "thumbnail":
		if s := stringField(h, name); s != "" {
			return link(s)
		}
		return nil
	}
	switch v := h.Fields[name].(type) {
	case string:
		return digest(v, fieldRunes)
	case []string:
		out := make([]string, len(v))
		for i, s := range v {
			out[i] = word(s)
		}
		return out
	case float64:
		return number(v)
	case int, int64, bool, json.Number:
		return v
	}
	return nil
}

// round returns v with five significant digits: more say nothing to a reader.
func round(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// number returns v, and nil where JSON has no such number.
func number(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}

func stringField(h *search.Hit, name string) string {
	s, _ := h.Fields[name].(string)
	return s
}

// facetResult is the counts as the search tool shows them. Both lists are
// always there.
type facetResult struct {
	Fields  []fieldCounts `json:"fields"`
	Queries []count       `json:"queries"`
}

type fieldCounts struct {
	Name   string  `json:"name"`
	Result []count `json:"result"`
}

type count struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// newFacetResult returns the counts of f; nil counts nothing.
func newFacetResult(f *search.FacetCounts) *facetResult {
	r := &facetResult{Fields: []fieldCounts{}, Queries: []count{}}
	if f == nil {
		return r
	}
	for _, field := range f.Fields {
		r.Fields = append(r.Fields, fieldCounts{field.Name, counts(field.Counts)})
	}
	r.Queries = counts(f.Queries)
	return r
}

func counts(in []search.Count) []count {
	out := make([]count, 0, len(in))
	for _, c := range in {
		out = append(out, count{digest(c.Value, fieldRunes), c.Count})
	}
	return out
}
