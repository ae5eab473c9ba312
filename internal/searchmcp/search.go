package searchmcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
	"github.com/knowhow-mcp/knowhow/internal/search"

	"github.com/google/jsonschema-go/jsonschema"
)

const digestRunes = 200

func (t *Tools) addSearch(s *mcpserver.Server) {
	tool := t.tool("search", "Search documents", t.choose(
		"Search the knowledge domain for documents matching a query. Use it first for every question about this "+
			"domain. "+
			"A hit has doc_id, title, url, digest (an excerpt) and score. Read its text with "+
			""+t.toolName("read_content")+
			". Next page: start = nextStart.",
		"Search the documents of these folders. Use it first for every question about them: "+
			"the passages of the hits usually contain the answer. Read on with "+
			""+t.toolName("read_content")+". Next page: start = nextStart."))
	tool.Adjust = func(input *jsonschema.Schema) {
		p := input.Properties
		p["query"].Description = t.choose(`Words (all must occur), "a phrase", OR, NOT, title:word, word*`,
			`A question, as a person would ask it, or words; "a phrase", OR, NOT, title:word, word*, filetype:pdf`)
		p["pageSize"].Maximum = jsonschema.Ptr(float64(t.maxPageSize))
		p["pageSize"].Default = json.RawMessage(strconv.Itoa(t.pageSize))
		p["sort"].Description = t.choose("field.asc or field.desc, comma-separated, of "+
			""+strings.Join(search.SortFields[:], ", ")+". Default: relevance",
			"Such as timestamp.desc, newest first")
		p["facets"].Properties["field"].Description = "Any of " + strings.Join(t.backend.FacetFields(), ", ")
		p["includeFields"].Description = t.choose("Fields to return instead of the default ones: title, url, digest, "+
			"score, created, "+
			"last_modified, timestamp, content_length, filename, filetype, mimetype, host, label, lang and more",
			"Such as title, url, timestamp, filetype, lang")
		if t.wording == OfFolders { // files have no location
			delete(p, "geo")
		} else {
			delete(p, "maxChars")
		}
	}
	if t.wording == OfFolders {
		tool.Brief = func(input *jsonschema.Schema) {
			p := input.Properties
			p["facets"] = &jsonschema.Schema{Type: "object",
				Description: `Counts of all matches: {"field":["filetype"]}; fields ` +
					strings.Join(t.backend.FacetFields(), ", ")}
			p["start"].Description = ""
		}
	}
	mcpserver.AddTool(s, tool, t.search)
}

// SearchArgs are the arguments of the search tool. PageSize must be set.
type SearchArgs struct {
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

// search is the search tool.
func (t *Tools) search(ctx context.Context, in SearchArgs) (any, error) {
	r, err := t.request(in)
	if err != nil {
		return nil, err
	}
	return t.callSearch(ctx, func(ctx context.Context) (any, error) {
		if err := r.run(ctx); err != nil {
			return nil, err
		}
		if r.Indexing == nil {
			return r.object(), nil
		}
		return &mcpserver.Result{Value: r.object(), Meta: map[string]any{"indexing": r.Indexing}}, nil
	})
}

// callSearch is call for searches, which become jobs only over a Fess server.
func (t *Tools) callSearch(ctx context.Context, run func(ctx context.Context) (any, error)) (any, error) {
	if t.wording == OfFess {
		return t.call(ctx, run)
	}
	answer, err := run(ctx)
	return answer, t.explained(err)
}

// Search searches as the search tool does.
func (t *Tools) Search(ctx context.Context, in SearchArgs) (*SearchResult, error) {
	r, err := t.request(in)
	if err == nil {
		err = r.run(ctx)
	}
	return r, t.explained(err)
}

// A SearchResult is the result of a search. The texts of its hits are cleaned and
// shortened. Its JSON is that of the search tool.
type SearchResult struct {
	*search.Page
	Query      search.Query
	NextStart  int // of the next page; 0 if there is none
	Indexing   *Indexing
	Incomplete []search.Unfinished // sources that lack documents and are not being indexed
	Hint       string              // advice; "" for none
	Advice     string              // the end of Hint: what other queries find more

	tools  *Tools
	fields []string // of hits in JSON; nil means the default ones
}

// Indexing is the progress of indexing, in documents.
type Indexing struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// run searches and cleans what is found.
func (r *SearchResult) run(ctx context.Context) (err error) {
	t, q := r.tools, r.Query
	if r.Page, r.Indexing, err = t.findPage(ctx, q); err != nil {
		return err
	}
	r.Page = cleanPage(r.Page)
	r.Relaxed = r.Relaxed || q.Text.Relaxed()
	r.NextStart = nextStart(q, r.Page)
	if r.Incomplete, err = t.incomplete(ctx); err != nil {
		return err
	}
	t.log.Debug("search", "start", q.Start, "num", q.Num, "hits", len(r.Hits), "total", r.Total, "relaxed", r.Relaxed)
	return t.advise(ctx, r)
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
func (t *Tools) findPage(ctx context.Context, q search.Query) (*search.Page, *Indexing, error) {
	for begin := time.Now(); ; {
		// Read the progress before the search. Otherwise a document that is
		// indexed between the two calls could be missing from the page without
		// notice.
		progress := t.progress(ctx)
		page, err := search.Relax(ctx, t.backend, q)
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

// MarshalJSON implements [json.Marshaler].
func (r *SearchResult) MarshalJSON() ([]byte, error) { return r.object().Bytes(), nil }

// object returns the result of the search tool.
func (r *SearchResult) object() *compact.Object {
	hits, size := make([]*compact.Object, len(r.Hits)), hitSize
	for i := range r.Hits {
		hits[i] = r.tools.newHit(&r.Hits[i], r.fields)
		size += hits[i].Len()
	}
	o := &compact.Object{}
	o.Grow(size)
	o.Add("total", r.Total)
	o.Add("start", r.Query.Start)
	o.Add("pageSize", r.Query.Num) // as requested, not the number of hits
	o.Add("results", hits)
	if r.NextStart > 0 {
		o.Add("nextStart", r.NextStart)
	}
	if r.Query.Facets != nil {
		o.Add("facets", facets(r.Facets))
	}
	if r.Relaxed {
		o.Add("relaxed", true)
	}
	if len(r.DidYouMean) > 0 {
		o.Add("didYouMean", r.DidYouMean)
	}
	if r.Staged {
		o.Add("allWords", r.AllWords)
	}
	if r.Partial || len(r.Incomplete) > 0 {
		o.Add("partial", true)
	}
	if r.AtLeast {
		o.Add("totalIsLowerBound", true)
	}
	if len(r.Failed) > 0 {
		failed := make([]*compact.Object, len(r.Failed))
		for i, f := range r.Failed {
			failed[i] = &compact.Object{}
			failed[i].Add("source", f.Label)
			failed[i].Add("message", digest(errkind.Message(f.Err), failureRunes))
		}
		o.Add("failed", failed)
	}
	if r.Hint != "" {
		o.Add("hint", r.Hint)
	}
	if len(r.Incomplete) > 0 {
		var list []*compact.Object
		for _, u := range r.Incomplete {
			source := &compact.Object{}
			source.Add("source", u.Label)
			source.Add("done", u.Done)
			source.Add("total", u.Total) // 0 if the documents were not counted
			source.Add("reason", string(u.Stop))
			list = append(list, source)
		}
		o.Add("incomplete", list)
	}
	if r.Indexing != nil {
		o.Add("indexing", r.Indexing)
	}
	return o
}

// request returns the query for the arguments, as a result to be filled.
func (t *Tools) request(in SearchArgs) (*SearchResult, error) {
	q, err := t.query(in)
	if err != nil {
		return nil, err
	}
	fields, err := hitFields(in.IncludeFields)
	return &SearchResult{Query: q, tools: t, fields: fields}, err
}

// query returns the query of the domain for the arguments.
func (t *Tools) query(in SearchArgs) (q search.Query, err error) {
	q = search.Query{Labels: t.labels, Start: in.Start, Num: in.PageSize}
	if t.wording == OfFolders {
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
	return q, q.Validate(t.backend.FacetFields())
}

// nextStart returns the start of the next page, or 0 if there is none or it is
// beyond the window.
func nextStart(q search.Query, p *search.Page) int {
	next := q.Start + len(p.Hits)
	more := next < p.Total || p.AtLeast && len(p.Hits) == q.Num
	if len(p.Hits) == 0 || !more || next+q.Num > search.Window || p.Window > 0 && next >= p.Window {
		return 0
	}
	return next
}

// partialHint is the advice for a partial page.
const partialHint = "Not all documents were searched: there was not enough time, or a part of the index is being " +
	"built again. " +
	"Use fewer words, or more letters before a wildcard, or search again in a few seconds."

// failureRunes limits the message about a source that a search could not ask.
const failureRunes = 500

// labelsOf returns the labels of the sources that a search could not ask.
func labelsOf(failed []search.Failure) []string {
	out := make([]string, len(failed))
	for i, f := range failed {
		out[i] = word(f.Label)
	}
	return out
}

// advise sets the hint of a result.
func (t *Tools) advise(ctx context.Context, r *SearchResult) error {
	switch {
	case len(r.Failed) > 0 && len(r.Hits) > 0:
		r.Hint = "Not searched, or not completely: " + strings.Join(labelsOf(r.Failed), ", ") +
			". The hits are those of the other sources."
		return nil
	case len(r.Failed) > 0:
		r.Hint = "Nothing found, but not all sources were searched: " + strings.Join(labelsOf(r.Failed), ", ") +
			". Search again later."
		return nil
	case r.Partial:
		r.Hint = partialHint
		return nil
	case len(r.Incomplete) > 0:
		r.Hint = incompleteHint(r.Incomplete)
		return nil
	case len(r.Hits) > 0:
		if list := r.Missing[:min(len(r.Missing), hintWords)]; len(list) > 0 {
			r.Hint = fmt.Sprintf("No document has: %s. The hits are those of the other words.", strings.Join(list, ", "))
		}
		return nil
	case r.Total > 0:
		r.Hint = fmt.Sprintf("No hits from start %d on: there are %d in all.", r.Query.Start, r.Total)
		if r.Window > 0 && r.Window < r.Total {
			r.Hint = fmt.Sprintf("No hits from start %d on: of %d, the first %d can be shown, and the same text is shown once.",
				r.Query.Start, r.Total, r.Window)
		}
		return nil
	}
	switch q := r.Query; {
	case r.Indexing != nil:
	case q.Geo != nil:
		r.Advice = " Leaving out lang and geo finds more."
	case q.Langs != nil:
		r.Advice = " Leaving out lang finds more."
	}
	ready, err := t.readyByMeaning(ctx)
	r.Advice += ready + t.valuesHint(ctx, r.Query)
	r.Hint = "Nothing found so far: the documents are still being indexed. Search again in a few seconds."
	if r.Indexing == nil {
		where := "the whole index"
		if t.domain.Label != "" {
			where = "label " + t.domain.Label
		}
		r.Hint = "Nothing found in domain " + t.domain.ID + t.choose(" ("+where+")", "") + ". Try fewer or other words"
		if t.offers(FessTools) {
			r.Hint += ", or " + t.toolName("suggest")
		}
		r.Hint += "."
	}
	r.Hint += r.Advice
	return err
}

// hintWords is how many words of a query are named in advice.
const hintWords = 5

// hintValues is how many values of a field are named in advice.
const hintValues = 20

// valuesHint returns advice for a query that finds nothing because of a condition on
// a field with few values: a sentence, with a blank before it, that lists the values
// which the documents have. It returns "" if there is no such condition.
func (t *Tools) valuesHint(ctx context.Context, q search.Query) string {
	for _, c := range q.Text.Conditions() {
		few := c.Field == "filetype" || c.Field == "mimetype" || c.Field == "lang" ||
			c.Field == "label" && t.wording == OfFolders
		if !few || !slices.Contains(t.backend.FacetFields(), c.Field) {
			continue
		}
		all, err := t.backend.Search(ctx, search.Query{Labels: t.labels,
			Facets: &search.Facets{Fields: []string{c.Field}, Size: hintValues}})
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

// incomplete returns the sources that lack documents and are not being indexed.
func (t *Tools) incomplete(ctx context.Context) ([]search.Unfinished, error) {
	x, ok := t.backend.(search.Indexer)
	if !ok {
		return nil, nil
	}
	list, err := x.Unfinished(ctx, t.labels)
	return slices.DeleteFunc(slices.Clone(list), func(u search.Unfinished) bool {
		return u.Earlier && u.Total == 0 // the source cannot be read now, and its documents are there
	}), err
}

// incompleteHint is the advice for a page while sources lack documents.
func incompleteHint(missing []search.Unfinished) string {
	var parts []string
	for _, u := range missing {
		part := "the documents of " + u.Label + " have not been counted"
		if u.Total > 0 {
			part = fmt.Sprintf("of %s, %d of %d are indexed", u.Label, u.Done, u.Total)
		}
		parts = append(parts, part)
	}
	return "Documents are missing: " + strings.Join(parts, "; ") +
		". Indexing has stopped; ask the user to look at: knowhow status"
}

// readyByMeaning describes for a page without hits how far searching by meaning is
// ready, unless it is.
func (t *Tools) readyByMeaning(ctx context.Context) (string, error) {
	x, ok := t.backend.(search.Indexer)
	if !ok {
		return "", nil
	}
	done, total, err := x.Embedding(ctx, t.labels)
	if err != nil || done >= total {
		return "", err
	}
	percent := 100 * done / total
	return fmt.Sprintf(" Searching by meaning is %d %% ready: the same question may find more later.", percent), nil
}

// progress returns the progress of indexing, or nil if nothing is being indexed
// or the backend does not index.
func (t *Tools) progress(ctx context.Context) *Indexing {
	if x, ok := t.backend.(search.Indexer); ok {
		if done, total, busy := x.Indexing(ctx, nil); busy {
			return &Indexing{done, total}
		}
	}
	return nil
}
