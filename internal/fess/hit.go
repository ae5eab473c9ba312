package fess

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"knowhow/internal/search"
)

// documents is the answer to a search, as far as it is of use here.
type documents struct {
	RecordCount         number
	RecordCountRelation text
	PageSize            number
	QueryTime           number
	Partial             bool
	Data                []*row // those that have a doc_id, maxNum of them at most
	FacetField          []facet
	FacetQuery          []count
}

// A facet is the counts of a field.
type facet struct {
	Name   text    `json:"name"`
	Result []count `json:"result"`
}

// A count is one value of a facet.
type count struct {
	Value text   `json:"value"`
	Count number `json:"count"`
}

// read implements [reader].
func (a *documents) read(s *scanner) bool {
	counted, listed := false, false
	ok := s.object(func(name []byte) bool {
		switch string(name) {
		case "data":
			listed = true
			return a.readRows(s)
		case "record_count":
			counted = true
			return s.into(&a.RecordCount)
		case "record_count_relation":
			return s.into(&a.RecordCountRelation)
		case "page_size":
			return s.into(&a.PageSize)
		case "query_time":
			return s.into(&a.QueryTime)
		case "partial":
			return s.into(&a.Partial)
		case "facet_field":
			return s.into(&a.FacetField) && !slices.ContainsFunc(a.FacetField, func(f facet) bool { return f.Result == nil })
		case "facet_query":
			return s.into(&a.FacetQuery)
		}
		return s.skip()
	})
	// All answers that were seen have both, those to questions without an
	// answer too.
	return ok && counted && listed
}

// readRows reads the list of hits.
func (a *documents) readRows(s *scanner) bool {
	return s.array(func() bool {
		r, ok := readRow(s)
		// A document without an ID could never be read.
		if ok && len(a.Data) < maxNum && r.text("doc_id") != "" {
			a.Data = append(a.Data, r)
		}
		return ok
	})
}

// readRow reads one hit.
func readRow(s *scanner) (*row, bool) {
	s.space()
	start := s.at
	var fields [len(row{})]struct{ from, to int }
	if !s.object(func(name []byte) bool {
		s.space()
		from := s.at
		ok := s.skip()
		if i, known := rowFields[string(name)]; known {
			fields[i].from, fields[i].to = from-start, s.at-start
		}
		return ok
	}) {
		return nil, false
	}
	// One string for all of them: most are parts of it for ever.
	text, r := string(s.data[start:s.at]), &row{}
	for i, f := range fields {
		r[i] = text[f.from:f.to]
	}
	return r, true
}

// A row is one hit of an answer: the JSON values of the fields in
// [search.HitFields], in that order, "" for those that Fess did not send.
type row [len(search.HitFields)]string

// rowFields are the places of a row's fields.
var rowFields = func() map[string]int {
	places := map[string]int{}
	for i, name := range search.HitFields {
		places[name] = i
	}
	return places
}()

// text returns a field that is a string, a number or a boolean as a string, ""
// for all else. The field must be one of [search.HitFields].
func (r *row) text(name string) string {
	s, _ := scalar(r[rowFields[name]])
	return s
}

// page turns the answer into what was asked for.
func (a *documents) page(q search.Query) *search.Page {
	total := int(a.RecordCount)
	p := &search.Page{
		Total:   total,
		AtLeast: total > 0 && a.RecordCountRelation == "GREATER_THAN_OR_EQUAL_TO" || a.Partial,
		Hits:    make([]search.Hit, 0, min(len(a.Data), q.Num)),
	}
	for _, row := range a.Data {
		if len(p.Hits) == q.Num {
			break
		}
		p.Hits = append(p.Hits, row.hit())
	}
	if q.Facets != nil {
		p.Facets = a.counts(q.Facets)
	}
	return p
}

// counts brings the counts into the order of the question: Fess gives them in
// one of its own.
func (a *documents) counts(f *search.Facets) *search.FacetCounts {
	all := &search.FacetCounts{}
	seen := map[string]bool{}
	for _, name := range f.Fields {
		if seen[name] {
			continue
		}
		seen[name] = true
		field := search.FieldCounts{Name: name, Counts: []search.Count{}}
		for _, got := range a.FacetField {
			if string(got.Name) != name {
				continue
			}
			for _, c := range got.Result {
				field.Counts = append(field.Counts, search.Count{Value: string(c.Value), Count: int(c.Count)})
			}
		}
		all.Fields = append(all.Fields, field)
	}
	byQuery := map[string]int{}
	for _, c := range a.FacetQuery {
		byQuery[string(c.Value)] = int(c.Count)
	}
	for _, text := range f.Queries {
		all.Queries = append(all.Queries, search.Count{Value: text, Count: byQuery[text]})
	}
	return all
}

// sent returns how many fields there are.
func (r *row) sent() int {
	n := 0
	for _, raw := range r {
		if raw != "" {
			n++
		}
	}
	return n
}

// hit makes a hit of the row.
func (r *row) hit() search.Hit {
	h := search.Hit{
		ID:     r.text("doc_id"),
		URL:    cmp.Or(r.text("url"), r.text("url_link")),
		Digest: plain(cmp.Or(r.text("digest"), r.text("content_description"))),
		Fields: make(map[string]any, r.sent()),
	}
	h.Title = cmp.Or(strings.TrimSpace(r.text("title")), r.text("filename"), h.URL)
	h.Score, _ = strconv.ParseFloat(r.text("score"), 64)
	if math.IsNaN(h.Score) || math.IsInf(h.Score, 0) {
		h.Score = 0
	}
	for i, name := range search.HitFields {
		switch name {
		case "doc_id", "title", "url", "digest", "score":
			continue
		}
		if r[i] == "" {
			continue
		}
		if v := value(name, r[i]); v != nil {
			h.Fields[name] = v
		}
	}
	if whole, ok := r.wholeText(); ok {
		h.TextHash = hash(whole)
	}
	return h
}

// value gives one field the type that package search promises, nil where that
// cannot be.
func value(name, raw string) any {
	if name == "label" || name == "lang" {
		if l := stringList(raw); l != nil {
			return l
		}
		return nil
	}
	s, ok := scalar(raw)
	if !ok {
		return nil
	}
	switch name {
	case "content_length", "click_count", "favorite_count", "similar_docs_count":
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.Abs(f) >= 1<<62 {
			return nil
		}
		return int64(f)
	case "boost":
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil
		}
		return f
	case "content_description", "content_title":
		return plain(s)
	}
	return s
}

// wholeText returns the text of a document if the row holds all of it: in the
// field content, which Fess sends only where it is set up to, or in a digest
// that is no shorter than the original.
func (r *row) wholeText() (string, bool) {
	if raw := r[rowFields["content"]]; len(raw) > 0 && raw[0] == '"' {
		return unquote(raw), true
	}
	raw := r[rowFields["digest"]]
	if len(raw) <= len(`""`) || raw[0] != '"' {
		return "", false
	}
	digest := unquote(raw)
	// A character takes a byte or more in every encoding, so that a text
	// of no more bytes than the digest has characters was not cut.
	length, ok := value("content_length", r[rowFields["content_length"]]).(int64)
	if !ok || length <= 0 || length > int64(utf8.RuneCountInString(digest)) {
		return "", false
	}
	return digest, true
}

// hash names a text by what it says.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}
