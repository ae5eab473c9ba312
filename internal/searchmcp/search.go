package searchmcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"knowhow/internal/compact"
	"knowhow/internal/errkind"
	"knowhow/internal/job"
	"knowhow/internal/mcpserver"
	"knowhow/internal/query"
	"knowhow/internal/sanitize"
	"knowhow/internal/search"

	"github.com/google/jsonschema-go/jsonschema"
)

const digestRunes = 200

func (b *bridge) addSearch(s *mcpserver.Server) {
	t := b.tool("search", "Search documents", b.choose(
		"Search the knowledge domain for documents matching a query. Use it first for every question about this domain. "+
			"A hit has doc_id, title, url, digest (an excerpt) and score. Read its text with "+b.toolName("read_content")+
			". Next page: start = nextStart.",
		"Search the documents of these folders. Use it first for every question about them: "+
			"the passages of the hits usually contain the answer. Read on with "+b.toolName("read_content")+". Next page: start = nextStart."))
	t.Adjust = func(input *jsonschema.Schema) {
		p := input.Properties
		p["query"].Description = b.choose(`Words (all must occur), "a phrase", OR, NOT, title:word, word*`,
			`A question, as a person would ask it, or words; "a phrase", OR, NOT, title:word, word*`)
		p["pageSize"].Maximum = jsonschema.Ptr(float64(b.maxPageSize))
		p["pageSize"].Default = json.RawMessage(strconv.Itoa(b.pageSize))
		p["sort"].Description = b.choose("field.asc or field.desc, comma-separated, of "+strings.Join(search.SortFields[:], ", ")+". Default: relevance",
			"Such as timestamp.desc, newest first")
		p["facets"].Properties["field"].Description = "Any of " + strings.Join(b.backend.FacetFields(), ", ")
		p["includeFields"].Description = b.choose("Fields to return instead of the default ones: title, url, digest, score, created, "+
			"last_modified, timestamp, content_length, filename, filetype, mimetype, host, label, lang and more",
			"Such as title, url, timestamp, filetype, lang")
		if b.wording == OfFolders { // files have no location
			delete(p, "geo")
		} else {
			delete(p, "maxChars")
		}
	}
	if b.wording == OfFolders {
		t.Brief = func(input *jsonschema.Schema) {
			p := input.Properties
			p["facets"] = &jsonschema.Schema{Type: "object", Description: `Counts of all matches: {"field":["filetype"]}; fields ` +
				strings.Join(b.backend.FacetFields(), ", ")}
			p["start"].Description = ""
		}
	}
	mcpserver.AddTool(s, t, b.search)
}

// searchArgs are the arguments of the search tool, after the check against its
// schema and with its defaults.
type searchArgs struct {
	Query         string     `json:"query" limits:"minLength=1"`
	PageSize      int        `json:"pageSize,omitempty" limits:"minimum=1"`
	MaxChars      int        `json:"maxChars,omitempty" jsonschema:"Characters of all passages together" limits:"minimum=0 maximum=100000 default=6000"`
	Start         int        `json:"start,omitempty" jsonschema:"Index of the first hit" limits:"minimum=0 maximum=9999 default=0"`
	Sort          string     `json:"sort,omitempty"`
	Lang          string     `json:"lang,omitempty" jsonschema:"For example en or en,ja"`
	Facets        *facetArgs `json:"facets,omitempty" jsonschema:"Count all matches by fields or queries"`
	Geo           *geoArgs   `json:"geo,omitempty" jsonschema:"Only documents near a point"`
	IncludeFields []string   `json:"includeFields,omitempty"`
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
	return b.do(ctx, work{run: func(ctx context.Context, _ job.Report) (any, error) {
		page, progress, err := b.findPage(ctx, q)
		if err != nil {
			return nil, err
		}
		missing, err := b.incomplete(ctx)
		if err != nil {
			return nil, err
		}
		ready, err := b.readyByMeaning(ctx, page)
		if err != nil {
			return nil, err
		}
		page.Relaxed = page.Relaxed || q.Text.Relaxed()
		b.log.Debug("search", "start", q.Start, "num", q.Num, "hits", len(page.Hits), "total", page.Total, "relaxed", page.Relaxed)
		r := b.searchResult(q, page, fields, progress, missing, ready+b.valuesHint(ctx, q, page))
		if progress == nil {
			return r, nil
		}
		return &mcpserver.Result{Value: r, Meta: map[string]any{"indexing": progress}}, nil
	}})
}

// While documents are being indexed, a search that finds nothing is repeated
// every emptyStep for emptyWait, because a client often searches as soon as the
// server has started.
const (
	emptyWait = 500 * time.Millisecond
	emptyStep = 20 * time.Millisecond
)

// findPage searches. It returns the page and the progress of indexing, or nil if
// nothing was being indexed when the search began.
func (b *bridge) findPage(ctx context.Context, q search.Query) (*search.Page, *indexing, error) {
	for begin := time.Now(); ; {
		// Read the progress before the search. Otherwise a document that is
		// indexed between the two calls could be missing from the page without
		// notice.
		progress := b.progress(ctx)
		page, err := search.Relax(b.backend).Search(ctx, q)
		if err != nil || page.Total > 0 || progress == nil || time.Since(begin) >= emptyWait {
			return page, progress, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(emptyStep):
		}
	}
}

// searchResult returns the result of the search tool: a page of hits with the
// given fields, the progress of indexing unless it is nil, and the sources that are
// not completely indexed. advice ends the hint of a page without hits.
func (b *bridge) searchResult(q search.Query, page *search.Page, fields []string, progress *indexing, missing []incomplete, advice string) *compact.Object {
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
	if len(page.DidYouMean) > 0 {
		r.Add("didYouMean", words(page.DidYouMean))
	}
	if page.Staged {
		r.Add("allWords", page.AllWords)
	}
	if page.Partial || len(missing) > 0 {
		r.Add("partial", true)
	}
	if page.AtLeast {
		r.Add("totalIsLowerBound", true)
	}
	switch {
	case page.Partial:
		r.Add("hint", partialHint)
	case len(missing) > 0:
		r.Add("hint", incompleteHint(missing))
	case len(page.Hits) == 0:
		r.Add("hint", b.emptyHint(q, page, progress)+advice)
	}
	if len(missing) > 0 {
		r.Add("incomplete", missing)
	}
	if progress != nil {
		r.Add("indexing", progress)
	}
	return r
}

// query returns the query of the domain for the arguments.
func (b *bridge) query(in searchArgs) (q search.Query, err error) {
	q = search.Query{Labels: b.labels, Start: in.Start, Num: in.PageSize}
	if b.wording == OfFolders {
		q.Passages, q.Distinct = in.MaxChars, true
	}
	if q.Text, err = query.Read(in.Query); err != nil {
		return q, &errkind.Argument{Name: "query", Value: in.Query, Want: "at least one word"}
	}
	if q.Sort, err = parseSort(in.Sort); err != nil {
		return q, err
	}
	if q.Langs, err = parseLangs(in.Lang); err != nil {
		return q, err
	}
	if q.Facets, err = in.Facets.parse(); err != nil {
		return q, err
	}
	q.Geo = (*search.Geo)(in.Geo)
	return q, q.Validate(b.backend.FacetFields())
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

// partialHint is the advice for a partial page.
const partialHint = "Not all documents were searched: there was not enough time, or a part of the index is being built again. " +
	"Use fewer words, or more letters before a wildcard, or search again in a few seconds."

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

// hintValues is how many values of a field are named in advice.
const hintValues = 20

// valuesHint returns advice for a query that finds nothing because of a condition on
// a field with few values: a sentence, with a blank before it, that lists the values
// which the documents have. It returns "" if there is no such condition.
func (b *bridge) valuesHint(ctx context.Context, q search.Query, page *search.Page) string {
	if page.Total > 0 || page.Partial {
		return ""
	}
	for _, c := range q.Text.Conditions() {
		few := c.Field == "filetype" || c.Field == "mimetype" || c.Field == "lang" || c.Field == "label" && b.wording == OfFolders
		if !few || !slices.Contains(b.backend.FacetFields(), c.Field) {
			continue
		}
		all, err := b.backend.Search(ctx, search.Query{Labels: b.labels, Facets: &search.Facets{Fields: []string{c.Field}, Size: hintValues}})
		if err != nil || all.Facets == nil || len(all.Facets.Fields) == 0 {
			return "" // advice is no reason to fail
		}
		var values []string
		for _, v := range all.Facets.Fields[0].Counts {
			values = append(values, sanitize.Line(v.Value))
		}
		asked := c.Text
		if c.Field == "filetype" {
			asked = query.FileType(asked)
		}
		if len(values) == 0 || slices.Contains(values, asked) {
			continue
		}
		hint := " The values of " + c.Field + " are " + strings.Join(values, ", ")
		if len(values) == hintValues {
			hint += " and more"
		}
		if c.Field == "filetype" && !slices.Contains([]string{"word", "excel", "powerpoint", "others"}, asked) {
			hint += ". For the ending of a file's name, write filename:*." + sanitize.Line(asked)
		}
		return hint + "."
	}
	return ""
}

// indexing is the progress of indexing, in documents.
type indexing struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// An incomplete is a source whose last indexing ended before all documents were
// indexed.
type incomplete struct {
	Source string      `json:"source"`
	Done   int         `json:"done"`
	Total  int         `json:"total"` // 0 if the documents were not counted
	Reason search.Stop `json:"reason"`
}

// incomplete returns the sources that lack documents and are not being indexed.
func (b *bridge) incomplete(ctx context.Context) ([]incomplete, error) {
	x, ok := b.backend.(search.Indexer)
	if !ok {
		return nil, nil
	}
	var missing []incomplete
	list, err := x.Unfinished(ctx, b.labels)
	for _, u := range list {
		if !u.Earlier || u.Total > 0 { // otherwise the source cannot be read now, and its documents are there
			missing = append(missing, incomplete{u.Label, u.Done, u.Total, u.Stop})
		}
	}
	return missing, err
}

// incompleteHint is the advice for a page while sources lack documents.
func incompleteHint(missing []incomplete) string {
	var parts []string
	for _, m := range missing {
		part := "the documents of " + m.Source + " have not been counted"
		if m.Total > 0 {
			part = fmt.Sprintf("of %s, %d of %d are indexed", m.Source, m.Done, m.Total)
		}
		parts = append(parts, part)
	}
	return "Documents are missing: " + strings.Join(parts, "; ") + ". Indexing has stopped; ask the user to look at: knowhow status"
}

// readyByMeaning describes for a page without hits how far searching by meaning is
// ready, unless it is.
func (b *bridge) readyByMeaning(ctx context.Context, page *search.Page) (string, error) {
	x, ok := b.backend.(search.Indexer)
	if !ok || page.Total > 0 {
		return "", nil
	}
	done, total, err := x.Embedding(ctx, b.labels)
	if err != nil || done >= total {
		return "", err
	}
	return fmt.Sprintf(" Searching by meaning is %d %% ready: the same question may find more later.", 100*done/total), nil
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
