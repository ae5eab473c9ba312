package fess

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"knowhow/internal/search"
)

// documents is the answer to a search, without the parts that are not used.
type documents struct {
	RecordCount         number
	RecordCountRelation text
	PageSize            number
	QueryTime           number
	Partial             bool
	Data                []*row // those with a doc_id, at most search.MaxNum
	FacetField          []facet
	FacetQuery          []count
}

// A facet contains the counts of a field.
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
func (a *documents) read(d *json.Decoder) error {
	counted, listed := false, false
	err := members(d, func(name string) error {
		switch name {
		case "data":
			listed = true
			return elements(d, func() error { return a.readRow(d) })
		case "record_count":
			counted = true
			return d.Decode(&a.RecordCount)
		case "record_count_relation":
			return d.Decode(&a.RecordCountRelation)
		case "page_size":
			return d.Decode(&a.PageSize)
		case "query_time":
			return d.Decode(&a.QueryTime)
		case "partial":
			return d.Decode(&a.Partial)
		case "facet_field":
			if err := d.Decode(&a.FacetField); err != nil || slices.ContainsFunc(a.FacetField, func(f facet) bool { return f.Result == nil }) {
				return errShape
			}
			return nil
		case "facet_query":
			return d.Decode(&a.FacetQuery)
		}
		return skip(d)
	})
	// All recorded answers contain both, including those without hits.
	if err == nil && !(counted && listed) {
		return errShape
	}
	return err
}

// readRow decodes one hit. A document without an ID could not be read.
func (a *documents) readRow(d *json.Decoder) error {
	var r *row
	if err := d.Decode(&r); err != nil || r == nil {
		return errShape
	}
	if len(a.Data) < search.MaxNum && scalar(r.DocID) != "" {
		a.Data = append(a.Data, r)
	}
	return nil
}

// A row is one hit in an answer (Fess 15.4 and 15.7, QueryFieldConfig; content,
// label and lang if a server is configured to send them). Servers differ in the
// values that they send as strings, so every value may have any type.
type row struct {
	DocID              any `json:"doc_id"`
	Title              any `json:"title"`
	URL                any `json:"url"`
	URLLink            any `json:"url_link"`
	Digest             any `json:"digest"`
	Score              any `json:"score"`
	Content            any `json:"content"`
	ContentTitle       any `json:"content_title"`
	ContentDescription any `json:"content_description"`
	ContentLength      any `json:"content_length"`
	Created            any `json:"created"`
	LastModified       any `json:"last_modified"`
	Timestamp          any `json:"timestamp"`
	Filename           any `json:"filename"`
	FileType           any `json:"filetype"`
	MIMEType           any `json:"mimetype"`
	Host               any `json:"host"`
	Label              any `json:"label"`
	Lang               any `json:"lang"`
	HasCache           any `json:"has_cache"`
	InternalID         any `json:"_id"`
	Boost              any `json:"boost"`
	ClickCount         any `json:"click_count"`
	FavoriteCount      any `json:"favorite_count"`
	SimilarDocsCount   any `json:"similar_docs_count"`
	SimilarDocsHash    any `json:"similar_docs_hash"`
	Site               any `json:"site"`
	SitePath           any `json:"site_path"`
	Thumbnail          any `json:"thumbnail"`
}

// page returns the answer as a page of at most q.Num hits.
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

// counts returns the counts in the order of the question. Fess sends them in a
// different order.
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

// hit returns the row as a hit.
func (r *row) hit() search.Hit {
	h := search.Hit{
		ID:           scalar(r.DocID),
		URL:          cmp.Or(scalar(r.URL), scalar(r.URLLink)),
		Digest:       search.Excerpt{Text: plain(cmp.Or(scalar(r.Digest), scalar(r.ContentDescription)))},
		TitleExcerpt: search.Excerpt{Text: plain(scalar(r.ContentTitle))},
		Created:      instant(r.Created),
		Modified:     instant(r.LastModified),
		Timestamp:    instant(r.Timestamp),
		Size:         -1,
		Filename:     scalar(r.Filename),
		FileType:     scalar(r.FileType),
		MIMEType:     scalar(r.MIMEType),
		Host:         scalar(r.Host),
		Labels:       scalars(r.Label),
		Langs:        scalars(r.Lang),
		Extra:        r.extra(),
	}
	h.Score, _ = float(r.Score)
	h.Title = cmp.Or(strings.TrimSpace(scalar(r.Title)), h.Filename, h.URL)
	if n, ok := integer(r.ContentLength); ok {
		h.Size = n
	}
	if whole, ok := r.wholeText(); ok {
		h.TextHash = hash(whole)
	}
	return h
}

// extra returns the fields that have no field in search.Hit.
func (r *row) extra() map[string]any {
	extra := make(map[string]any, 16)
	text := func(name string, v any) {
		switch v.(type) {
		case string, json.Number, bool:
			extra[name] = scalar(v)
		}
	}
	count := func(name string, v any) {
		if n, ok := integer(v); ok {
			extra[name] = n
		}
	}
	text("_id", r.InternalID)
	text("content", r.Content)
	if s, ok := r.ContentDescription.(string); ok {
		extra["content_description"] = plain(s)
	}
	text("has_cache", r.HasCache)
	text("similar_docs_hash", r.SimilarDocsHash)
	text("site", r.Site)
	text("site_path", r.SitePath)
	text("thumbnail", r.Thumbnail)
	text("url_link", r.URLLink)
	count("click_count", r.ClickCount)
	count("favorite_count", r.FavoriteCount)
	count("similar_docs_count", r.SimilarDocsCount)
	if f, ok := float(r.Boost); ok {
		extra["boost"] = f
	}
	return extra
}

// scalar returns a string, a number or a boolean as a string, and "" for any
// other value.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// scalars returns the scalars in a list, or a single scalar as a list, or nil
// if there are none.
func scalars(v any) []string {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var all []string
	for _, v := range list {
		if s := scalar(v); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// float returns a finite number.
func float(v any) (f float64, ok bool) {
	f, err := strconv.ParseFloat(scalar(v), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// integer returns a number without its fraction.
func integer(v any) (n int64, ok bool) {
	f, ok := float(v)
	return int64(f), ok && math.Abs(f) < 1<<62
}

// instant returns a time, or the zero time if v is not a time. Fess writes
// "2006-01-02T15:04:05.000Z".
func instant(v any) time.Time {
	t, err := time.Parse(time.RFC3339, scalar(v))
	if err != nil {
		return time.Time{}
	}
	return t
}

// wholeText returns the text of a document if the row contains all of it: in
// the field content, which Fess sends only if it is configured to, or in a
// digest that is not shorter than the original.
func (r *row) wholeText() (string, bool) {
	if s, ok := r.Content.(string); ok {
		return s, true
	}
	// In every encoding a character has at least one byte. So a text with at
	// most as many bytes as the digest has characters was not cut.
	digest, _ := r.Digest.(string)
	length, ok := integer(r.ContentLength)
	return digest, ok && 0 < length && length <= int64(utf8.RuneCountInString(digest))
}

// hash returns the hash of a text in the form of package search.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}
