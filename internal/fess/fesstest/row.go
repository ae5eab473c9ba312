package fesstest

import (
	"cmp"
	"crypto/sha512"
	"encoding/hex"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// row returns a document as a hit.
func (h *Handler) row(d doc, f *found) map[string]any {
	sum := sha512.Sum512([]byte(d.URL))
	site, _ := d.keyword("site")
	limit := 200
	if d.FileType == "html" {
		limit = 120
	}
	digest := abbreviate(strings.Join(strings.Fields(d.Text), " "), limit)
	terms := words(f.tree, nil)
	row := map[string]any{
		"_id": hex.EncodeToString(sum[:]), "doc_id": d.ID, "url": d.URL, "url_link": d.URL, "title": d.Title,
		"content_title":       emphasise(html.EscapeString(abbreviate(d.Title, 50)), terms),
		"content_description": emphasise(html.EscapeString(digest), terms),
		"site":                site, "site_path": site, "mimetype": d.MIMEType, "filetype": d.FileType, "filename": d.Filename,
		// Strings, as for a document that was crawled. Documents with a host or
		// with Loaded get numbers below.
		"content_length": strconv.FormatInt(d.Size, 10), "boost": "1.0",
		"created": stamp(d.Modified), "timestamp": stamp(d.Modified), "last_modified": stamp(d.Modified),
	}
	if link, err := url.PathUnescape(d.URL); err == nil && strings.HasPrefix(d.URL, "file:") {
		row["url_link"] = link
	}
	if digest != "" {
		row["digest"] = digest
	}
	if d.Host != "" {
		row["host"] = d.Host
	}
	if d.Host != "" || d.more.Loaded {
		row["content_length"], row["boost"] = d.Size, 1.0
	}
	if f.scored {
		row["score"] = d.score(f.tree)
	}
	if h.o.SendContent {
		row["content"] = d.Text
	}
	if h.o.OmitColon || h.o.API != "" && h.o.API != "v1" { // Fess 15.7 or later
		h.addNew(row, d)
	}
	return row
}

// addNew adds the fields that hits have since Fess 15.7.
func (h *Handler) addNew(row map[string]any, d doc) {
	row["click_count"], row["favorite_count"] = 0, 0
	if d.more.Copy != "" {
		row["has_cache"] = "true"
	}
}

// abbreviate cuts a text to n characters, of which the last three are then
// dots.
func abbreviate(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-3]) + "..."
}

// words appends to all the words that a query searches for.
func words(n node, all []string) []string {
	for _, c := range n.clauses {
		if c.occur != mustNot {
			all = words(c.node, all)
		}
	}
	if n.kind == term && n.text != "" {
		all = append(all, n.text)
	}
	return all
}

// emphasise marks terms in an HTML text.
func emphasise(s string, terms []string) string {
	var quoted []string
	for _, t := range terms {
		if t = strings.ToValidUTF8(t, ""); t != "" {
			quoted = append(quoted, regexp.QuoteMeta(html.EscapeString(t)))
		}
	}
	if quoted == nil {
		return s
	}
	return regexp.MustCompile("(?i)("+strings.Join(quoted, "|")+")").ReplaceAllString(s, "<strong>$1</strong>")
}

// score returns the number of leaves of the query that match; matches in the
// title count twice.
func (d doc) score(n node) float64 {
	if n.kind != group {
		if !d.matchesLeaf(n) {
			return 0
		}
		if n.field == "" && matchesWords(n, d.title) {
			return 2
		}
		return 1
	}
	sum := 0.0
	for _, c := range n.clauses {
		if c.occur != mustNot {
			sum += d.score(c.node)
		}
	}
	return sum
}

// facetFields are the fields that Fess 15.4 counts by. The engine rejects title
// and content.
var facetFields = [...]string{"url", "host", "title", "content", "content_length", "last_modified", "timestamp", "mimetype",
	"filename", "filetype", "label", "segment"}

// count counts what was found as the request asks.
func (f *found) count(values url.Values) error {
	names, queries := nonblank(values["facet.field"]), nonblank(values["facet.query"])
	if len(names)+len(queries) == 0 {
		return nil
	}
	f.facets, f.counts = &[]fieldCounts{}, &[]valueCount{}
	for _, text := range queries {
		tree, err := parse(text) // Fess does not try the escaped form here
		if err != nil {
			return errInvalid
		}
		n := 0
		for _, d := range f.docs {
			if d.matches(tree) {
				n++
			}
		}
		// The order differs from that of the request.
		*f.counts = slices.Insert(*f.counts, 0, valueCount{text, n})
	}
	size, least := number(values.Get("facet.size"), 10), number(values.Get("facet.minDocCount"), 1)
	for _, name := range names {
		switch {
		case !slices.Contains(facetFields[:], name), size <= 0:
			return errNoHits
		case name == "title", name == "content":
			return errInvalid
		}
		counts := countField(f.docs, name, values.Get("facet.missing"))
		counts = slices.DeleteFunc(counts, func(c valueCount) bool { return c.Count < least })
		sortCounts(counts, values.Get("facet.sort"))
		*f.facets = append(*f.facets, fieldCounts{name, counts[:min(size, len(counts))]})
	}
	return nil
}

// nonblank returns values without blank and repeated ones.
func nonblank(values []string) []string {
	var all []string
	for _, v := range values {
		if strings.TrimSpace(v) != "" && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// countField counts documents by the values of a field. missing is the name of
// a count for documents without a value; with "" they are not counted.
func countField(docs []doc, name, missing string) []valueCount {
	counts := []valueCount{}
	for _, d := range docs {
		value, _ := d.keyword(name)
		values := []string{value}
		if name == "label" {
			values = d.labels()
		}
		for _, value := range values {
			if value = cmp.Or(value, missing); value == "" {
				continue
			}
			i := slices.IndexFunc(counts, func(c valueCount) bool { return c.Value == value })
			if i < 0 {
				i = len(counts)
				counts = append(counts, valueCount{Value: value})
			}
			counts[i].Count++
		}
	}
	return counts
}

// sortCounts sorts counts. An unknown order means the default order.
func sortCounts(counts []valueCount, order string) {
	slices.SortStableFunc(counts, func(a, b valueCount) int {
		switch order {
		case "count.asc":
			return cmp.Or(cmp.Compare(a.Count, b.Count), cmp.Compare(a.Value, b.Value))
		case "term.asc":
			return cmp.Compare(a.Value, b.Value)
		case "term.desc":
			return cmp.Compare(b.Value, a.Value)
		}
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	})
}
