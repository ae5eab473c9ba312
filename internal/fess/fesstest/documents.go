package fesstest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/fess/wire"
)

// Failures of a search.
var (
	errInvalid = errors.New("invalid search") // invalid query or sort order: status 400
	errNoHits  = errors.New("failed search")  // any other failure: status 200 without hits
)

// A found is the result of a search before it is cut into pages.
type found struct {
	docs   []doc
	tree   node
	scored bool
	facets []wire.Facet // nil unless requested
	counts []wire.Count
}

// documents serves a search of API v1.
func (h *Handler) documents(w http.ResponseWriter, values url.Values, caller roles) {
	if r := h.find(values, caller); r != nil {
		writeV1(w, http.StatusOK, r)
	} else {
		h.fail(w, http.StatusBadRequest)
	}
}

// find returns the answer to a search, or nil if Fess would reject it.
func (h *Handler) find(values url.Values, caller roles) *wire.Page {
	num, start := wire.Int(values, wire.Num, 10), wire.Int(values, wire.Start, 0)
	if num <= 0 || num > h.o.MaxPageSize {
		num = h.o.MaxPageSize
	}
	if max(start, 0)+num > 10_000 {
		return nil
	}
	r := &wire.Page{QueryID: "bd60f9579a494dfd8c03db7c8aa905b0", ExecTime: 0.0, RequestedTime: 1763611200000,
		RecordCountRelation: wire.Exact, SearchQuery: "", RelatedQuery: []string{}, RelatedContents: []string{},
		Data: wire.Rows{}}
	if values.Has(wire.Query) {
		r.Q = values.Get(wire.Query)
	}
	f, err := h.search(values, r, caller)
	switch {
	case errors.Is(err, errInvalid):
		return nil
	case err != nil:
		f = &found{}
	case r.SearchQuery != any(""):
		r.ExecTime, r.QueryTime = 0.01, 7
	}
	r.Paginate(len(f.docs), max(start, 0), num)
	for _, d := range f.docs[min(max(start, 0), len(f.docs)):min(max(start, 0)+num, len(f.docs))] {
		r.Data = append(r.Data, h.row(d, f))
	}
	r.FacetFields, r.FacetQueries = f.facets, f.counts
	return r
}

// numeric matches a number as Fess accepts it.
var numeric = regexp.MustCompile(`^-?[0-9]{1,9}$`)

// search returns the documents that match, with counts if the request asks for
// them.
func (h *Handler) search(values url.Values, r *wire.Page, caller roles) (*found, error) {
	q := values.Get(wire.Query)
	conditions, listed := requestConditions(values)
	if strings.Trim(q, blanks) == "" && !listed {
		r.RecordCountRelation = wire.AtLeast // Fess does not search at all
		return &found{}, nil
	}
	for _, name := range []string{wire.FacetSize, wire.FacetMinimum} {
		if v := values.Get(name); v != "" && !numeric.MatchString(v) {
			return nil, errNoHits
		}
	}
	tree, text, order, err := parseRequest(q, conditions)
	if err != nil {
		return nil, err
	}
	r.SearchQuery = text
	r.HighlightParams = "&hq=" + url.QueryEscape(q)
	if h.engineState() == "down" || wire.Int(values, wire.Start, 0) < 0 {
		return nil, errNoHits
	}
	near, err := place(values)
	if err != nil {
		return nil, err
	}
	f := &found{tree: tree, scored: order == nil || order[0].field == "score"}
	for _, d := range h.docs {
		if caller.canSee(d) && near(d) && d.matches(tree) {
			f.docs = append(f.docs, d)
		}
	}
	if order == nil {
		order = []sortKey{{"score", true}}
	}
	slices.SortStableFunc(f.docs, func(a, b doc) int {
		for _, k := range order {
			if c := k.compare(a, b, tree); c != 0 {
				return c
			}
		}
		return 0
	})
	return f, f.count(values)
}

// requestConditions returns the conditions of a request as text that is
// appended to the query (QueryStringBuilder, 15.4). It reports whether a
// request with these conditions needs no query.
func requestConditions(values url.Values) (string, bool) {
	var b strings.Builder
	for _, extra := range values[wire.ExtraQuery] {
		if len([]rune(extra)) <= 1000 {
			b.WriteString(" " + extra)
		}
	}
	fields := false
	for _, name := range slices.Sorted(maps.Keys(values)) {
		field, ok := strings.CutPrefix(name, "fields.")
		if !ok {
			continue
		}
		var all []string
		for _, v := range values[name] {
			if strings.TrimSpace(v) != "" {
				all = append(all, field+`:"`+v+`"`)
			}
		}
		switch len(all) {
		case 0:
			continue
		case 1:
			b.WriteString(" " + all[0])
		default:
			b.WriteString(" (" + strings.Join(all, " OR ") + ")")
		}
		fields = true
	}
	if sort := values.Get(wire.Sort); sort != "" {
		b.WriteString(" sort:" + sort)
		fields = true
	}
	return b.String(), fields
}

// reserved escapes the characters that Fess escapes in a query that does not
// parse.
var reserved = strings.NewReplacer(`\`, `\\`, "+", `\+`, "-", `\-`, "&&", `\&&`, "||", `\||`, "!", `\!`, "(", `\(`,
	")", `\)`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`, "^", `\^`, "~", `\~`, "*", `\*`, "?", `\?`, ";", `\;`,
	":", `\:`, "/", `\/`)

// parseRequest parses a query followed by its conditions. If that fails, it
// escapes the reserved characters of the query and tries again (SearchHelper,
// 15.4).
func parseRequest(q, conditions string) (tree node, text string, order []sortKey, err error) {
	for _, q := range []string{q, reserved.Replace(q)} {
		if strings.Contains(q, " OR ") || strings.Contains(q, " || ") {
			q = "(" + q + ")"
		}
		text = strings.Trim(q+conditions, blanks)
		rest, field := text, ""
		for name, f := range map[string]string{"allintitle:": "title", "allinurl:": "inurl"} {
			if after, ok := strings.CutPrefix(text, name); ok {
				rest, field = after, f
			}
		}
		tree, err = parse(rest)
		if err == nil {
			tree, order, err = check(tree, field)
		}
		if err == nil {
			return tree, text, order, nil
		}
	}
	return node{}, text, nil, errInvalid
}

// A sortKey is one key of a sort order.
type sortKey struct {
	field string
	desc  bool
}

// sortFields are the fields that Fess 15.4 sorts by.
var sortFields = [...]string{"score", "filename", "created", "content_length", "last_modified", "timestamp",
	"click_count", "favorite_count"}

// compare orders two documents by the key.
func (k sortKey) compare(a, b doc, tree node) int {
	if k.desc {
		a, b = b, a
	}
	if k.field == "score" {
		return cmp.Compare(a.score(tree), b.score(tree))
	}
	x, _ := a.keyword(k.field)
	y, _ := b.keyword(k.field)
	return cmp.Compare(sortable(k.field, x), sortable(k.field, y))
}

// check removes the sort order from a tree and returns it, sets the field of
// leaves without one, and returns an error for what Fess's query commands
// reject.
func check(n node, field string) (node, []sortKey, error) {
	if n.kind != group {
		if n.field == "" {
			n.field = field
		}
		switch {
		case n.kind == interval:
			_, _, err := bounds(n, time.Unix(0, 0))
			return n, nil, err
		case n.kind == term && n.field == "content_length":
			_, err := strconv.Atoi(n.text)
			return n, nil, err
		}
		return n, nil, nil
	}
	var order []sortKey
	kept := []clause{}
	for _, c := range n.clauses {
		if c.node.kind == term && c.node.field == "sort" {
			keys, err := readSort(c.node.text)
			if err != nil {
				return n, nil, err
			}
			order = append(order, keys...)
			continue
		}
		sub, keys, err := check(c.node, field)
		if err != nil {
			return n, nil, err
		}
		order = append(order, keys...)
		kept = append(kept, clause{c.occur, sub})
	}
	n.clauses = kept
	return n, order, nil
}

// readSort parses "field.order,field.order". The default order is ascending.
func readSort(s string) ([]sortKey, error) {
	var keys []sortKey
	for one := range strings.SplitSeq(s, ",") {
		field, order, given := strings.Cut(one, ".")
		if !slices.Contains(sortFields[:], field) || given && order != "asc" && order != "desc" {
			return nil, fmt.Errorf("unsupported sort field %q", one)
		}
		keys = append(keys, sortKey{field, order == "desc"})
	}
	return keys, nil
}
