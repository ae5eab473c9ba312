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
	"knowhow/internal/schema"
	"knowhow/internal/search"
)

const digestRunes = 200

func (b *bridge) addSearch(s *mcpserver.Server) {
	mcpserver.AddTool(s, b.searchTool(), b.search)
}

func (b *bridge) searchTool() mcpserver.Tool {
	query := text(`Words (all must occur), "a phrase", OR, NOT, title:word, word*`)
	query.MinLength = 1
	t := b.tool("search", "Search documents",
		"Search the knowledge domain for documents matching a query. Use it first for every question about this domain. "+
			"A hit is doc_id, title, url, digest (an excerpt) and score; read its text with "+b.toolName("read_content")+
			". Next page: start = nextStart.",
		schema.Schema{Properties: []schema.Property{
			{Name: "query", Required: true, Schema: query},
			{Name: "pageSize", Schema: integer("", 1, b.maxPageSize, min(defaultPageSize, b.maxPageSize))},
			{Name: "start", Schema: integer("Index of the first hit", 0, window-1, 0)},
			{Name: "sort", Schema: text("field.asc or field.desc, comma-separated, of " +
				strings.Join(search.SortFields[:], ", ") + ". Default: relevance")},
			{Name: "lang", Schema: text("For example en or en,ja")},
			{Name: "facets", Schema: facetSchema(b.facetFields())},
			{Name: "geo", Schema: geoSchema()},
			{Name: "includeFields", Schema: textList("Fields of a hit in place of the default ones: title, url, digest, score, created, " +
				"last_modified, timestamp, content_length, filename, filetype, mimetype, host, label, lang and more")},
		}})
	return t
}

// facetFields are the fields that the service counts hits by.
func (b *bridge) facetFields() []string {
	if f, ok := b.backend.(search.Faceter); ok {
		return f.FacetFields()
	}
	return search.FacetFields[:]
}

func facetSchema(fields []string) schema.Schema {
	field, query, order := textList("Of "+strings.Join(fields, ", ")), textList(""), text("")
	field.OneOrMany, query.OneOrMany = true, true
	order.Enum = []string{"count.desc", "count.asc", "term.asc", "term.desc"}
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

// searchArgs are the arguments of the search tool, as its schema allows them and
// with the defaults filled in.
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
	q, err := b.query(in)
	if err != nil {
		return nil, err
	}
	fields, err := hitFields(in.IncludeFields)
	if err != nil {
		return nil, err
	}
	answer, err := b.do(ctx, work{run: func(ctx context.Context, _ job.Report) (any, error) {
		page, err := b.backend.Search(ctx, q)
		if err != nil {
			return nil, err
		}
		b.log.Debug("search", "start", q.Start, "num", q.Num, "hits", len(page.Hits), "total", page.Total, "relaxed", page.Relaxed)
		return b.searchResult(q, page, fields), nil
	}})
	if r, ok := answer.(*compact.Object); ok {
		return b.withProgress(ctx, r), nil
	}
	return answer, err
}

// searchResult is the search tool's answer: a page of hits, with the given fields.
func (b *bridge) searchResult(q search.Query, page *search.Page, fields []string) *compact.Object {
	hits, size := make([]*compact.Object, len(page.Hits)), hitSize
	for i := range page.Hits {
		hits[i] = newHit(&page.Hits[i], fields)
		size += hits[i].Len()
	}
	r := &compact.Object{}
	r.Grow(size)
	r.Add("total", page.Total)
	r.Add("start", q.Start)
	r.Add("pageSize", q.Num) // as asked for, not the number of hits
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
		r.Add("hint", b.emptyHint(q, page))
	}
	return r
}

// query turns the arguments into a query of the domain.
func (b *bridge) query(in searchArgs) (search.Query, error) {
	q := search.Query{Text: in.Query, Labels: b.labels, Start: in.Start, Num: in.PageSize}
	if strings.TrimSpace(in.Query) == "" || len(in.Query) > maxQueryBytes {
		return q, &errkind.Argument{Name: "query", Value: in.Query,
			Want: fmt.Sprintf("at least one word and at most %d bytes", maxQueryBytes)}
	}
	if q.Start+q.Num > window {
		return q, &errkind.Argument{Name: "start", Value: q.Start,
			Want: fmt.Sprintf("start + pageSize of at most %d; narrow the query to see what lies beyond", window)}
	}
	var err error
	if q.Sort, err = parseSort(in.Sort); err != nil {
		return q, err
	}
	if q.Langs, err = parseLangs(in.Lang); err != nil {
		return q, err
	}
	if q.Facets, err = in.Facets.parse(b.facetFields()); err != nil {
		return q, err
	}
	q.Geo, err = in.Geo.parse()
	return q, err
}

// nextStart is where the next page begins; 0 if there is none, or none that
// the same page size can reach.
func nextStart(q search.Query, p *search.Page) int {
	next := q.Start + len(p.Hits)
	more := next < p.Total || p.AtLeast && len(p.Hits) == q.Num
	if len(p.Hits) == 0 || !more || next+q.Num > window {
		return 0
	}
	return next
}

// emptyHint says where was searched and what to try, for a page without hits.
func (b *bridge) emptyHint(q search.Query, p *search.Page) string {
	if p.Total > 0 {
		return fmt.Sprintf("No hits from start %d on: there are %d in all.", q.Start, p.Total)
	}
	where := "the whole index"
	if b.domain.Label != "" {
		where = "label " + b.domain.Label
	}
	hint := fmt.Sprintf("Nothing found in domain %s (%s). Try fewer or other words, or %s.", b.domain.ID, where, b.toolName("suggest"))
	if q.Langs != nil || q.Geo != nil {
		hint += " Leaving out lang and geo finds more."
	}
	return hint
}

// indexing is how far indexing has come, for _meta.indexing.
type indexing struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// withProgress adds to a result how far indexing has come, while it goes on.
func (b *bridge) withProgress(ctx context.Context, r *compact.Object) any {
	if x, ok := b.backend.(search.Indexer); ok {
		if done, total, busy := x.Indexing(ctx); busy {
			return &mcpserver.Result{Value: r, Meta: map[string]any{"indexing": indexing{done, total}}}
		}
	}
	return r
}
