package fesstest

import (
	"cmp"
	"crypto/sha512"
	"encoding/hex"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// row returns a document as a hit.
func (h *Handler) row(d doc, f *found) wire.Row {
	sum := sha512.Sum512([]byte(d.URL))
	site, _ := d.keyword("site")
	limit := 200
	if d.FileType == "html" {
		limit = 120
	}
	digest := abbreviate(strings.Join(strings.Fields(d.Text), " "), limit)
	terms := words(f.tree, nil)
	row := wire.Row{
		"_id": hex.EncodeToString(sum[:]), "doc_id": d.ID, "url": d.URL, "url_link": d.URL, "title": d.Title,
		"content_title":       emphasise(abbreviate(d.Title, 50), terms),
		"content_description": emphasise(digest, terms),
		"site":                site, "site_path": site, "mimetype": d.MIMEType, "filetype": d.FileType,
		"filename": d.Filename,
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
		row["click_count"], row["favorite_count"] = 0, 0
		if d.more.Copy != "" {
			row["has_cache"] = "true"
		}
	}
	return row
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

// emphasise returns a text as HTML, with marks around terms.
func emphasise(s string, terms []string) string {
	x := search.Excerpt{Text: s}
	var quoted []string
	for _, t := range terms {
		if t = strings.ToValidUTF8(t, ""); t != "" {
			quoted = append(quoted, regexp.QuoteMeta(t))
		}
	}
	if quoted != nil {
		for _, m := range regexp.MustCompile("(?i)"+strings.Join(quoted, "|")).FindAllStringIndex(s, -1) {
			x.Matches = append(x.Matches, search.Span{Start: m[0], End: m[1]})
		}
	}
	return wire.Mark(x)
}

// score returns the sum of the boosts of the leaves of the query that match; matches in
// the title count twice.
func (d doc) score(n node) float64 {
	if n.kind != group {
		if !d.matchesLeaf(n) {
			return 0
		}
		score := cmp.Or(n.boost, 1)
		if n.field == "" && matchesWords(n, d.title) {
			score *= 2
		}
		return score
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
var facetFields = [...]string{"url", "host", "title", "content", "content_length", "last_modified", "timestamp",
	"mimetype", "filename", "filetype", "label", "segment"}

// count counts what was found as the request asks.
func (f *found) count(values url.Values) error {
	names, queries := wire.Values(values, wire.FacetField), wire.Values(values, wire.FacetQuery)
	if len(names)+len(queries) == 0 {
		return nil
	}
	f.facets, f.counts = []wire.Facet{}, []wire.Count{}
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
		f.counts = slices.Insert(f.counts, 0, wire.Count{Value: wire.Text(text), Count: wire.Number(n)})
	}
	size, least := wire.Int(values, wire.FacetSize, 10), wire.Int(values, wire.FacetMinimum, 1)
	for _, name := range names {
		switch {
		case !slices.Contains(facetFields[:], name), size <= 0:
			return errNoHits
		case name == "title", name == "content":
			return errInvalid
		}
		counts := countField(f.docs, name, values.Get(wire.FacetMissing))
		counts = slices.DeleteFunc(counts, func(c wire.Count) bool { return int(c.Count) < least })
		sortCounts(counts, values.Get(wire.FacetSort))
		f.facets = append(f.facets, wire.Facet{Name: wire.Text(name), Result: counts[:min(size, len(counts))]})
	}
	return nil
}

// countField counts documents by the values of a field. missing is the name of
// a count for documents without a value; with "" they are not counted.
func countField(docs []doc, name, missing string) []wire.Count {
	counts := []wire.Count{}
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
			i := slices.IndexFunc(counts, func(c wire.Count) bool { return string(c.Value) == value })
			if i < 0 {
				i = len(counts)
				counts = append(counts, wire.Count{Value: wire.Text(value)})
			}
			counts[i].Count++
		}
	}
	return counts
}

// sortCounts sorts counts. An unknown order means the default order.
func sortCounts(counts []wire.Count, order string) {
	slices.SortStableFunc(counts, func(a, b wire.Count) int {
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
