package fessserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// search answers a question. hit converts a hit to a row.
func (c *call) search(ctx context.Context, x *question, hit func(search.Hit, bool) wire.Row) (*wire.Page, error) {
	began := time.Now()
	page := &search.Page{AtLeast: true}
	if !x.empty {
		var err error
		if page, err = c.ask(ctx, x); err != nil {
			return nil, err
		}
	}
	text, err := c.content(ctx, x, page)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	total, relation := page.Total, wire.Text(wire.Exact)
	if page.AtLeast || total > x.totals {
		relation = wire.AtLeast
	}
	d := &wire.Page{
		Q: x.q, QueryID: randomHex(16),
		ExecTime:            json.Number(strconv.FormatFloat(took.Seconds(), 'f', 2, 64)),
		RequestedTime:       began.UnixMilli(),
		RecordCountRelation: relation,
		SearchQuery:         x.echo,
		Partial:             page.Partial,
		HighlightParams:     x.highlights(),
		RelatedQuery:        []string{}, RelatedContents: []string{}, Data: wire.Rows{},
	}
	if !x.empty {
		// Rounded up, because clients of Fess treat 0 as a failed search.
		d.QueryTime = milliseconds(took)
	}
	d.Paginate(min(total, x.totals), x.asked.Start, x.asked.Num)
	byScore := len(x.asked.Sort) == 0 || x.asked.Sort[0].Field == "score"
	for _, h := range page.Hits {
		row := hit(h, byScore)
		if text != nil {
			row["content"] = text.Window
		}
		d.Data = append(d.Data, row)
	}
	if x.asked.Facets != nil && page.Facets != nil {
		d.FacetFields, d.FacetQueries = []wire.Facet{}, counts(page.Facets.Queries)
		for _, f := range page.Facets.Fields {
			d.FacetFields = append(d.FacetFields, wire.Facet{Name: wire.Text(f.Name), Result: counts(f.Counts)})
		}
	}
	return d, nil
}

// milliseconds returns a duration, rounded up.
func milliseconds(d time.Duration) wire.Number { return wire.Number(d/time.Millisecond) + 1 }

// counts converts counts to Fess's form.
func counts(list []search.Count) []wire.Count {
	all := make([]wire.Count, len(list))
	for i, n := range list {
		all[i] = wire.Count{Value: wire.Text(n.Value), Count: wire.Number(n.Count)}
	}
	return all
}

// highlights returns highlight_params, the terms to be marked in documents, or
// nil if there are none.
func (x *question) highlights() *string {
	if x.empty {
		return nil
	}
	var b strings.Builder
	seen := map[string]bool{}
	add := func(term string) {
		if term != "" && !seen[term] {
			seen[term] = true
			// The encoding of Java's URLEncoder.
			b.WriteString("&hq=" + strings.NewReplacer("%2A", "*", "~", "%7E").Replace(url.QueryEscape(term)))
		}
	}
	eachTerm(x.asked.Text.Tree(), add)
	for _, l := range x.asked.Labels {
		add(l)
	}
	s := b.String()
	return &s
}

// eachTerm calls f with every term of a tree.
func eachTerm(n query.Node, f func(string)) {
	switch n := n.(type) {
	case query.And:
		for _, m := range n.Nodes {
			eachTerm(m, f)
		}
		for _, m := range n.Optional {
			eachTerm(m, f)
		}
	case query.Or:
		for _, m := range n.Nodes {
			eachTerm(m, f)
		}
	case query.Not:
		eachTerm(n.Node, f)
	case query.Boost:
		eachTerm(n.Node, f)
	case query.Term:
		f(n.Text)
	case query.Phrase:
		if n.Field != "" && n.Field != "title" && n.Field != "content" {
			f(n.Text)
			return
		}
		for _, w := range query.Fields(n.Text) {
			f(w)
		}
	case query.Prefix:
		f(n.Text)
	case query.Wildcard:
		f(strings.Trim(n.Pattern, "*"))
	case query.Fuzzy:
		f(n.Text)
	}
}

// rowV1 converts a hit to a row of API v1 (Fess 15.4, QueryFieldConfig). Fess
// does not send label, lang and content in it.
func rowV1(h search.Hit, byScore bool) wire.Row {
	title := h.TitleExcerpt
	if title.Text == "" {
		title.Text = h.Title
	}
	row := wire.Row{
		"doc_id":              h.ID,
		"title":               h.Title,
		"content_title":       wire.Mark(title),
		"content_description": wire.Mark(h.Digest),
		"boost":               1.0, // no document is preferred
	}
	if h.Size >= 0 {
		row["content_length"] = h.Size
	}
	if byScore {
		row["score"] = finite(h.Score)
	}
	for name, t := range map[string]time.Time{"created": h.Created, "last_modified": h.Modified,
		"timestamp": h.Timestamp} {
		if !t.IsZero() {
			row[name] = t.UTC().Format(wire.TimeForm)
		}
	}
	for name, s := range map[string]string{"url": h.URL, "digest": strings.TrimSpace(h.Digest.Text), "host": h.Host,
		"mimetype": h.MIMEType, "filename": h.Filename, "filetype": h.FileType} {
		if s != "" {
			row[name] = s
		}
	}
	extra := h.Extra
	if extra == nil {
		extra = derived(h.URL)
	}
	pass(row, extra, "site_path", "url_link", "_id", "boost", "site")
	return row
}

// derived returns the fields that Fess derives from a document's URL.
func derived(address string) map[string]any {
	sum := sha256.Sum256([]byte(address))
	link := address
	if strings.HasPrefix(address, "file:") {
		if decoded, err := url.PathUnescape(address); err == nil {
			link = decoded
		}
	}
	extra := map[string]any{"_id": hex.EncodeToString(sum[:]), "url_link": link}
	if _, site, _ := strings.Cut(address, "://"); site != "" {
		extra["site"], extra["site_path"] = site, site
	}
	return extra
}

// rowV2 converts a hit to a row of API v2 (Fess 15.7, QueryFieldConfig).
func rowV2(h search.Hit, byScore bool) wire.Row {
	row := rowV1(h, byScore)
	row["click_count"], row["favorite_count"] = 0, 0 // they are not counted
	pass(row, h.Extra, "thumbnail", "click_count", "favorite_count", "similar_docs_count", "similar_docs_hash")
	if h.TextHash != "" {
		row["has_cache"] = "true"
	}
	return row
}

// pass copies fields with a text or a number.
func pass(row wire.Row, extra map[string]any, names ...string) {
	for _, name := range names {
		switch v := extra[name].(type) {
		case string, int64:
			row[name] = v
		case float64:
			row[name] = finite(v)
		}
	}
}

// finite returns f, or 0 if JSON cannot express it.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}
