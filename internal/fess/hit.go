package fess

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"html"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"knowhow/internal/search"
)

// documents is the answer to a search, as far as it is of use here.
type documents struct {
	RecordCount         number           `json:"record_count"`
	RecordCountRelation text             `json:"record_count_relation"`
	PageSize            number           `json:"page_size"`
	QueryTime           number           `json:"query_time"`
	Partial             text             `json:"partial"`
	Data                []map[string]any `json:"data"`
	FacetField          []struct {
		Name   text    `json:"name"`
		Result []count `json:"result"`
	} `json:"facet_field"`
	FacetQuery []count `json:"facet_query"`
}

// A count is one value of a facet.
type count struct {
	Value text   `json:"value"`
	Count number `json:"count"`
}

// page turns the answer into what was asked for.
func (a *documents) page(q search.Query) *search.Page {
	total := max(int(a.RecordCount), 0)
	p := &search.Page{
		Total:   total,
		AtLeast: total > 0 && a.RecordCountRelation == "GREATER_THAN_OR_EQUAL_TO" || a.Partial == "true",
		Hits:    []search.Hit{},
	}
	for _, row := range a.Data {
		if len(p.Hits) == q.Num {
			break
		}
		// A document without an ID could never be read.
		if h := hit(row); h.ID != "" {
			p.Hits = append(p.Hits, h)
		}
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

// hit makes a hit of a row of an answer. Fields that Fess did not send are
// absent.
func hit(row map[string]any) search.Hit {
	get := func(name string) string {
		s, _ := scalar(row[name])
		return s
	}
	h := search.Hit{
		ID:     get("doc_id"),
		URL:    cmp.Or(get("url"), get("url_link")),
		Digest: plain(cmp.Or(get("digest"), get("content_description"))),
		Fields: map[string]any{},
	}
	h.Title = cmp.Or(strings.TrimSpace(get("title")), get("filename"), h.URL)
	h.Score, _ = strconv.ParseFloat(get("score"), 64)
	if math.IsNaN(h.Score) || math.IsInf(h.Score, 0) {
		h.Score = 0
	}
	for _, name := range search.HitFields {
		if v := row[name]; v != nil {
			if v := value(name, v); v != nil {
				h.Fields[name] = v
			}
		}
	}
	for _, own := range []string{"doc_id", "title", "url", "digest", "score"} {
		delete(h.Fields, own)
	}
	if whole, ok := wholeText(row); ok {
		h.TextHash = hash(whole)
	}
	return h
}

// value gives one field the type that package search promises, nil where that
// cannot be.
func value(name string, v any) any {
	if name == "label" || name == "lang" {
		if l := stringList(v); l != nil {
			return l
		}
		return nil
	}
	s, ok := scalar(v)
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

// tag is the mark-up that Fess puts around matches, and the elements that an
// excerpt of a page may have kept. Other words between angle brackets are text,
// for example the type parameters of a program.
var tag = regexp.MustCompile(`(?i)</?(a|b|br|code|dd|div|dl|dt|em|font|h[1-6]|hr|i|img|li|mark|ol|p|pre|small|span|strong|sub|sup|` +
	`table|tbody|td|th|thead|tr|u|ul)(\s[^<>]*)?/?>`)

// plain turns an excerpt as Fess prepares it for an HTML page into text.
func plain(s string) string {
	if strings.Contains(s, "<") { // a regular expression costs more than all the rest of a hit
		s = tag.ReplaceAllString(s, "")
	}
	return strings.TrimSpace(html.UnescapeString(s))
}

// wholeText returns the text of a document if the row holds all of it: in the
// field content, which Fess sends only where it is set up to, or in a digest
// that is no shorter than the original.
func wholeText(row map[string]any) (string, bool) {
	if s, ok := row["content"].(string); ok {
		return s, true
	}
	digest, ok := row["digest"].(string)
	if !ok || digest == "" {
		return "", false
	}
	// A character takes a byte or more in every encoding, so that a text
	// of no more bytes than the digest has characters was not cut.
	length, ok := value("content_length", row["content_length"]).(int64)
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
