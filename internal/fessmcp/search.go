package fessmcp

import (
	"context"
	"fmt"
	"math"
	"strings"

	"knowhow/internal/compact"
	"knowhow/internal/errkind"
	"knowhow/internal/job"
	"knowhow/internal/mcpserver"
	"knowhow/internal/query"
	"knowhow/internal/schema"
	"knowhow/internal/search"
)

const digestRunes = 200

func (b *bridge) addSearch(s *mcpserver.Server) {
	query := text(b.choose(`Words (all must occur), "a phrase", OR, NOT, title:word, word*`,
		`A question or words; "a phrase", OR, NOT, title:word, word*`))
	query.MinLength = 1
	properties := []schema.Property{
		{Name: "query", Required: true, Schema: query},
		{Name: "pageSize", Schema: integer("", 1, b.maxPageSize, b.pageSize)},
		{Name: "start", Schema: integer("Index of the first hit", 0, search.Window-1, 0)},
		{Name: "sort", Schema: text(b.choose("field.asc or field.desc, comma-separated, of "+strings.Join(search.SortFields[:], ", ")+". Default: relevance",
			"timestamp.desc: newest first. Also score, filename, created, content_length"))},
		{Name: "lang", Schema: text("For example en or en,ja")},
		{Name: "facets", Schema: facetSchema(b.backend.FacetFields())},
	}
	if b.wording == OfFess { // files have no location
		properties = append(properties, schema.Property{Name: "geo", Schema: geoSchema()})
	}
	properties = append(properties, schema.Property{Name: "includeFields", Schema: textList(b.choose(
		"Fields of a hit in place of the default ones: title, url, digest, score, created, "+
			"last_modified, timestamp, content_length, filename, filetype, mimetype, host, label, lang and more",
		"Fields of a hit: title, url, digest, score, timestamp, content_length, filetype, lang and more"))})
	mcpserver.AddTool(s, b.tool("search", "Search documents", b.choose(
		"Search the knowledge domain for documents matching a query. Use it first for every question about this domain. "+
			"A hit is doc_id, title, url, digest (an excerpt) and score; read its text with "+b.toolName("read_content")+
			". Next page: start = nextStart.",
		"Search the documents of these folders. Use it first for every question about them. "+
			"Read a hit with "+b.toolName("read_content")+". Next page: start = nextStart."),
		schema.Schema{Properties: properties}), b.search)
}

func facetSchema(fields []string) schema.Schema {
	field, query, order := textList("Of "+strings.Join(fields, ", ")), textList(""), text("")
	field.OneOrMany, query.OneOrMany = true, true
	order.Enum = search.FacetSorts[:]
	return schema.Schema{Type: "object", Description: "Count all matches by fields or queries", Properties: []schema.Property{
		{Name: "field", Schema: field},
		{Name: "query", Schema: query},
		{Name: "size", Schema: integer("Counts a field", 1, maxFacetSize, 10)},
		{Name: "minDocCount", Schema: integer("", 0, math.MaxInt32, nil)},
		{Name: "sort", Schema: order},
		{Name: "missing", Schema: text("Name for documents without the field")},
	}}
}

func geoSchema() schema.Schema {
	return schema.Schema{Type: "object", Description: "Only documents near a point", Properties: []schema.Property{
		{Name: "point", Required: true, Schema: text("lat,lon")},
		{Name: "distance", Required: true, Schema: text("For example 10km")},
	}}
}

// searchArgs are the arguments of the search tool, after the check against its
// schema and with its defaults.
type searchArgs struct {
	Query         string     `json:"query"`
	PageSize      int        `json:"pageSize"`
	Start         int        `json:"start"`
	Sort          string     `json:"sort"`
	Lang          string     `json:"lang"`
	Facets        *facetArgs `json:"facets"`
	Geo           *geoArgs   `json:"geo"`
	IncludeFields []string   `json:"includeFields"`
}

func (b *bridge) search(ctx context.Context, in searchArgs) (any, error) {
	q, relaxed, err := b.query(in)
	if err != nil {
		return nil, err
	}
	fields, err := hitFields(in.IncludeFields)
	if err != nil {
		return nil, err
	}
	return b.do(ctx, work{run: func(ctx context.Context, _ job.Report) (any, error) {
		// Read the progress before the search. Otherwise a document that is
		// indexed between the two calls could be missing from the page without
		// notice.
		progress := b.progress(ctx)
		page, err := search.Relax(b.backend).Search(ctx, q)
		if err != nil {
			return nil, err
		}
		page.Relaxed = page.Relaxed || relaxed
		b.log.Debug("search", "start", q.Start, "num", q.Num, "hits", len(page.Hits), "total", page.Total, "relaxed", page.Relaxed)
		r := b.searchResult(q, page, fields, progress)
		if progress == nil {
			return r, nil
		}
		return &mcpserver.Result{Value: r, Meta: map[string]any{"indexing": progress}}, nil
	}})
}

// searchResult returns the result of the search tool: a page of hits with the
// given fields, and the progress of indexing unless it is nil.
func (b *bridge) searchResult(q search.Query, page *search.Page, fields []string, progress *indexing) *compact.Object {
	hits, size := make([]*compact.Object, len(page.Hits)), hitSize
	for i := range page.Hits {
		hits[i] = b.newHit(&page.Hits[i], fields)
		size += hits[i].Len()
	}
	r := &compact.Object{}
	r.Grow(size)
	r.Add("total", page.Total)
	r.Add("start", q.Start)
	r.Add("pageSize", q.Num) // as requested, not the number of hits
	r.Add("results", hits)
	if next := nextStart(q, page); next > 0 {
		r.Add("nextStart", next)
	}
	if q.Facets != nil {
		r.Add("facets", newFacetResult(page.Facets))
	}
	if page.Relaxed {
		r.Add("relaxed", true)
	}
	if page.Staged {
		r.Add("allWords", page.AllWords)
	}
	if page.AtLeast {
		r.Add("totalIsLowerBound", true)
	}
	if len(page.Hits) == 0 {
		r.Add("hint", b.emptyHint(q, page, progress))
	}
	if progress != nil {
		r.Add("indexing", progress)
	}
	return r
}

// query returns the query of the domain for the arguments. It also reports
// whether the text could not be parsed and is searched for as plain words.
func (b *bridge) query(in searchArgs) (q search.Query, relaxed bool, err error) {
	q = search.Query{Labels: b.labels, Start: in.Start, Num: in.PageSize}
	r, err := query.Read(in.Query)
	if err != nil || strings.TrimSpace(in.Query) == "" || len(in.Query) > maxQueryBytes {
		return q, false, &errkind.Argument{Name: "query", Value: in.Query,
			Want: fmt.Sprintf("at least one word and at most %d bytes", maxQueryBytes)}
	}
	q.Text = r.Text
	if q.Sort, err = parseSort(in.Sort); err != nil {
		return q, false, err
	}
	if q.Langs, err = parseLangs(in.Lang); err != nil {
		return q, false, err
	}
	if q.Facets, err = in.Facets.parse(); err != nil {
		return q, false, err
	}
	q.Geo = (*search.Geo)(in.Geo)
	return q, r.Relaxed, q.Validate(b.backend.FacetFields())
}

// nextStart returns the start of the next page, or 0 if there is none or it is
// beyond the window.
func nextStart(q search.Query, p *search.Page) int {
	next := q.Start + len(p.Hits)
	more := next < p.Total || p.AtLeast && len(p.Hits) == q.Num
	if len(p.Hits) == 0 || !more || next+q.Num > search.Window {
		return 0
	}
	return next
}

// emptyHint returns advice for a page without hits.
func (b *bridge) emptyHint(q search.Query, p *search.Page, progress *indexing) string {
	switch {
	case p.Total > 0:
		return fmt.Sprintf("No hits from start %d on: there are %d in all.", q.Start, p.Total)
	case progress != nil:
		return "Nothing found so far: the documents are still being indexed. Search again in a few seconds."
	}
	where := "the whole index"
	if b.domain.Label != "" {
		where = "label " + b.domain.Label
	}
	hint := "Nothing found in domain " + b.domain.ID + b.choose(" ("+where+")", "") + ". Try fewer or other words"
	if b.offers(FessTools) {
		hint += ", or " + b.toolName("suggest")
	}
	hint += "."
	switch {
	case q.Geo != nil:
		hint += " Leaving out lang and geo finds more."
	case q.Langs != nil:
		hint += " Leaving out lang finds more."
	}
	return hint
}

// indexing is the progress of indexing, in documents.
type indexing struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// progress returns the progress of indexing, or nil if nothing is being indexed
// or the backend does not index.
func (b *bridge) progress(ctx context.Context) *indexing {
	if x, ok := b.backend.(search.Indexer); ok {
		if done, total, busy := x.Indexing(ctx, nil); busy {
			return &indexing{done, total}
		}
	}
	return nil
}
