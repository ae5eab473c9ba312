package fess

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// pageOf returns an answer as a page of at most q.Num hits.
func pageOf(a *wire.Page, q search.Query) *search.Page {
	total := int(a.RecordCount)
	p := &search.Page{
		Total:   total,
		AtLeast: total > 0 && a.RecordCountRelation == wire.AtLeast || a.Partial,
		Hits:    make([]search.Hit, 0, min(len(a.Data), q.Num)),
	}
	for _, row := range a.Data[:min(len(a.Data), q.Num)] {
		p.Hits = append(p.Hits, hitOf(row))
	}
	if q.Facets != nil {
		p.Facets = countsOf(a, q.Facets)
	}
	return p
}

// countsOf returns the counts in the order of the question. Fess sends them in a
// different order.
func countsOf(a *wire.Page, f *search.Facets) *search.FacetCounts {
	all := &search.FacetCounts{}
	seen := map[string]bool{}
	for _, name := range f.Fields {
		if seen[name] {
			continue
		}
		seen[name] = true
		field := search.FieldCounts{Name: name, Counts: []search.Count{}}
		for _, got := range a.FacetFields {
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
	for _, c := range a.FacetQueries {
		byQuery[string(c.Value)] = int(c.Count)
	}
	for _, text := range f.Queries {
		all.Queries = append(all.Queries, search.Count{Value: text, Count: byQuery[text]})
	}
	return all
}

// hitOf returns a row as a hit (Fess 15.4 and 15.7, QueryFieldConfig; content, label
// and lang if a server is configured to send them).
func hitOf(r wire.Row) search.Hit {
	text := func(name string) string { return scalar(r[name]) }
	h := search.Hit{
		ID:           text("doc_id"),
		URL:          cmp.Or(text("url"), text("url_link")),
		Digest:       search.Excerpt{Text: wire.Unmark(cmp.Or(text("digest"), text("content_description")))},
		TitleExcerpt: search.Excerpt{Text: wire.Unmark(text("content_title"))},
		Created:      instant(r["created"]),
		Modified:     instant(r["last_modified"]),
		Timestamp:    instant(r["timestamp"]),
		Size:         -1,
		Filename:     text("filename"),
		FileType:     text("filetype"),
		MIMEType:     text("mimetype"),
		Host:         text("host"),
		Labels:       scalars(r["label"]),
		Langs:        scalars(r["lang"]),
		Extra:        extra(r),
	}
	h.Score, _ = float(r["score"])
	h.Title = cmp.Or(strings.TrimSpace(text("title")), h.Filename, h.URL)
	if n, ok := integer(r["content_length"]); ok {
		h.Size = n
	}
	if whole, ok := wholeText(r); ok {
		h.TextHash = hash(whole)
	}
	return h
}

// extra returns the fields that have no field in search.Hit.
func extra(r wire.Row) map[string]any {
	extra := make(map[string]any, 16)
	for _, name := range [...]string{"_id", "content", "has_cache", "similar_docs_hash", "site", "site_path",
		"thumbnail", "url_link"} {
		switch v := r[name].(type) {
		case string, json.Number, bool:
			extra[name] = scalar(v)
		}
	}
	if s, ok := r["content_description"].(string); ok {
		extra["content_description"] = wire.Unmark(s)
	}
	for _, name := range [...]string{"click_count", "favorite_count", "similar_docs_count"} {
		if n, ok := integer(r[name]); ok {
			extra[name] = n
		}
	}
	if f, ok := float(r["boost"]); ok {
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
func wholeText(r wire.Row) (string, bool) {
	if s, ok := r["content"].(string); ok {
		return s, true
	}
	// In every encoding a character has at least one byte. So a text with at
	// most as many bytes as the digest has characters was not cut.
	digest, _ := r["digest"].(string)
	length, ok := integer(r["content_length"])
	return digest, ok && 0 < length && length <= int64(utf8.RuneCountInString(digest))
}

// hash returns the hash of a text in the form of package search.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}
