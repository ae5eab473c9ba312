package fessserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"html"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"knowhow/internal/query"
	"knowhow/internal/search"
)

// documents is the answer to a search, in Fess's order.
type documents struct {
	Q                   *string          `json:"q"`
	QueryID             string           `json:"query_id"`
	ExecTime            any              `json:"exec_time"` // seconds: v1 a number, v2 a string
	QueryTime           int64            `json:"query_time"`
	PageSize            int              `json:"page_size"`
	PageNumber          int              `json:"page_number"`
	RecordCount         int              `json:"record_count"`
	RecordCountRelation string           `json:"record_count_relation"`
	PageCount           int              `json:"page_count"`
	HighlightParams     *string          `json:"highlight_params"`
	NextPage            bool             `json:"next_page"`
	PrevPage            bool             `json:"prev_page"`
	StartRecordNumber   int              `json:"start_record_number"`
	EndRecordNumber     int              `json:"end_record_number"`
	PageNumbers         []string         `json:"page_numbers"`
	Partial             bool             `json:"partial"`
	SearchQuery         string           `json:"search_query"`
	RequestedTime       int64            `json:"requested_time"`
	RelatedQuery        []string         `json:"related_query"`
	RelatedContents     []string         `json:"related_contents"`
	Data                []map[string]any `json:"data"`
	FacetField          *[]facetField    `json:"facet_field,omitempty"`
	FacetQuery          *[]facetCount    `json:"facet_query,omitempty"`
}

// A facetField contains the counts of one field.
type facetField struct {
	Name   string       `json:"name"`
	Result []facetCount `json:"result"`
}

// A facetCount is one count.
type facetCount struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// search answers a question. hit converts a hit to a row.
func (c *call) search(ctx context.Context, x *question, hit func(search.Hit, bool) map[string]any) (*documents, error) {
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
	d := &documents{
		Q: x.q, QueryID: randomHex(16),
		ExecTime:        json.Number(strconv.FormatFloat(took.Seconds(), 'f', 2, 64)),
		RequestedTime:   began.UnixMilli(),
		SearchQuery:     x.echo,
		Partial:         page.Partial,
		HighlightParams: x.highlights(),
		PageNumbers:     []string{}, RelatedQuery: []string{}, RelatedContents: []string{}, Data: []map[string]any{},
	}
	if !x.empty {
		// Rounded up, because clients of Fess treat 0 as a failed search.
		d.QueryTime = int64(took/time.Millisecond) + 1
	}
	d.paginate(x, page)
	byScore := len(x.asked.Sort) == 0 || x.asked.Sort[0].Field == "score"
	for _, h := range page.Hits {
		row := hit(h, byScore)
		if text != nil {
			row["content"] = text.Window
		}
		d.Data = append(d.Data, row)
	}
	if x.asked.Facets != nil && page.Facets != nil {
		d.count(page.Facets)
	}
	return d, nil
}

// paginate sets the fields about pages (Fess 15.4, QueryResponseList).
func (d *documents) paginate(x *question, page *search.Page) {
	total, start, num := page.Total, x.asked.Start, x.asked.Num
	d.RecordCountRelation = "EQUAL_TO"
	if page.AtLeast || total > x.totals {
		d.RecordCountRelation = "GREATER_THAN_OR_EQUAL_TO"
	}
	total = min(total, x.totals)
	d.RecordCount, d.PageSize = total, num
	// As in Fess, without a hit the division gives one page, or none if a page
	// has one hit.
	d.PageCount = (total-1)/num + 1
	d.PageNumber = start/num + 1
	d.PrevPage, d.NextPage = start > 0, start < (d.PageCount-1)*num
	if total > 0 {
		d.StartRecordNumber, d.EndRecordNumber = start+1, min(start+num, total)
	}
	const around = 5
	for n := max(d.PageNumber-around, 1); n <= min(d.PageNumber+around, d.PageCount); n++ {
		d.PageNumbers = append(d.PageNumbers, strconv.Itoa(n))
	}
}

// count sets the counts.
func (d *documents) count(f *search.FacetCounts) {
	fields, queries := []facetField{}, []facetCount{}
	for _, field := range f.Fields {
		fields = append(fields, facetField{field.Name, counts(field.Counts)})
	}
	queries = append(queries, counts(f.Queries)...)
	d.FacetField, d.FacetQuery = &fields, &queries
}

// counts converts counts to Fess's form.
func counts(list []search.Count) []facetCount {
	all := []facetCount{}
	for _, n := range list {
		all = append(all, facetCount{n.Value, n.Count})
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

// timeForm is Fess's form of times, in UTC.
const timeForm = "2006-01-02T15:04:05.000Z"

// rowV1 converts a hit to a row of API v1 (Fess 15.4, QueryFieldConfig). Fess
// does not send label, lang and content in it.
func rowV1(h search.Hit, byScore bool) map[string]any {
	title := h.TitleExcerpt
	if title.Text == "" {
		title.Text = h.Title
	}
	row := map[string]any{
		"doc_id":              h.ID,
		"title":               h.Title,
		"content_title":       marked(title),
		"content_description": marked(h.Digest),
		"boost":               1.0, // no document is preferred
	}
	if h.Size >= 0 {
		row["content_length"] = h.Size
	}
	if byScore {
		row["score"] = finite(h.Score)
	}
	for name, t := range map[string]time.Time{"created": h.Created, "last_modified": h.Modified, "timestamp": h.Timestamp} {
		if !t.IsZero() {
			row[name] = t.UTC().Format(timeForm)
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
func rowV2(h search.Hit, byScore bool) map[string]any {
	row := rowV1(h, byScore)
	row["click_count"], row["favorite_count"] = 0, 0 // they are not counted
	pass(row, h.Extra, "thumbnail", "click_count", "favorite_count", "similar_docs_count", "similar_docs_hash")
	if h.TextHash != "" {
		row["has_cache"] = "true"
	}
	return row
}

// pass copies fields with a text or a number.
func pass(row, extra map[string]any, names ...string) {
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

// marked returns an excerpt as Fess writes it: HTML, with <strong> around the
// matches.
func marked(x search.Excerpt) string {
	var b strings.Builder
	at := 0
	for _, m := range x.Matches {
		b.WriteString(escapeHTML(x.Text[at:m.Start]) + "<strong>" + escapeHTML(x.Text[m.Start:m.End]) + "</strong>")
		at = m.End
	}
	b.WriteString(escapeHTML(x.Text[at:]))
	return b.String()
}

// escapeHTML escapes a text for HTML with Fess's numbers for quotes.
func escapeHTML(s string) string { return fessQuotes.Replace(html.EscapeString(s)) }

var fessQuotes = strings.NewReplacer("&#34;", "&#034;", "&#39;", "&#039;")
