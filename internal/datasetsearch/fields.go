package datasetsearch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// facetFields are the fields that documents can be counted by.
var facetFields = [...]string{"label", "host", "filetype", "mimetype", "filename", "url", "content_length"}

// checkedDocs is how many documents are looked at between two looks at the context.
const checkedDocs = 256

// value returns the value of a field of a document, "" if it has none.
func (e *evaluator) value(t *table, doc int, field string) string {
	switch field {
	case "label":
		return e.s.label
	case "segment":
		return t.set.ID()
	case "doc_id":
		return string(t.ids[doc][:])
	case "content_length":
		return strconv.FormatInt(t.sizeOf(doc), 10)
	}
	_, where, _ := t.name(doc)
	f := factsOf(where)
	switch field {
	case "url":
		return f.url
	case "host":
		return f.host
	case "filename":
		return f.filename
	case "filetype":
		return f.fileType
	case "mimetype":
		return f.mimeType
	}
	return ""
}

// each calls f with the documents of a set.
func (e *evaluator) each(ctx context.Context, docs segment.Docs, f func(table, doc int)) error {
	n := 0
	for i, b := range docs {
		for d := b.Next(0); d >= 0; d = b.Next(d + 1) {
			if n++; n%checkedDocs == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			f(i, d)
		}
	}
	return nil
}

// selected returns the documents with a value of a field for which f is true.
func (e *evaluator) selected(ctx context.Context, field string, f func(value string) bool) (segment.Docs, error) {
	all := e.c.words.All()
	if field == "label" {
		if f(e.s.label) {
			return all, nil
		}
		return e.c.words.None(), nil
	}
	out := e.c.words.None()
	for i, t := range e.c.tables {
		out[i] = segment.NewBits(t.set.Originals())
	}
	err := e.each(ctx, all, func(i, d int) {
		if v := e.value(e.c.tables[i], d, field); v != "" && f(v) {
			out[i].Set(d)
		}
	})
	return out, err
}

// isText reports whether a field holds one text that is not tokenized.
func isText(field string) bool {
	switch field {
	case "label", "filetype", "mimetype", "host", "filename", "url", "doc_id", "segment":
		return true
	}
	return false
}

// site returns an address without its scheme, as Fess has it.
func site(url string) string {
	if _, after, ok := strings.Cut(url, "://"); ok {
		return after
	}
	return url
}

// Field implements [match.Fields]. A field that no document has matches nothing.
func (e *evaluator) Field(ctx context.Context, n query.Node, field, text string) (segment.Docs, error) {
	of := func(value string) string { return value }
	switch field {
	case "timestamp", "last_modified", "content_length":
		return e.InRange(ctx, query.Range{Field: field, Low: text, High: text})
	case "inurl":
		if _, ok := n.(query.Wildcard); !ok {
			return e.selected(ctx, "url", func(url string) bool { return strings.Contains(url, text) })
		}
		field, text = "url", "*"+text+"*"
	case "site":
		if _, ok := n.(query.Wildcard); !ok {
			return e.selected(ctx, "url", func(url string) bool { return strings.HasPrefix(site(url), text) })
		}
		field, of = "url", site
	}
	known := isText(field)
	switch n.(type) {
	case query.Prefix:
		if known {
			return e.selected(ctx, field, func(value string) bool { return strings.HasPrefix(value, text) })
		}
	case query.Wildcard:
		glob, err := query.ParseGlob(text)
		if err != nil {
			return nil, err
		}
		if known {
			return e.selected(ctx, field, func(value string) bool { return glob.Match(of(value)) })
		}
	}
	if !known {
		return e.c.words.None(), nil
	}
	if field == "doc_id" {
		return e.withID(text), nil
	}
	if field == "filetype" {
		text = query.FileType(text)
	}
	return e.selected(ctx, field, func(value string) bool { return value == text })
}

// withID returns the document with an ID.
func (e *evaluator) withID(id string) segment.Docs {
	docs := e.c.words.None()
	for i, t := range e.c.tables {
		if d, ok := t.find(id); ok {
			docs[i] = segment.NewBits(t.set.Originals())
			docs[i].Set(d)
		}
	}
	return docs
}

// InRange implements [match.Fields]. No document has a time.
func (e *evaluator) InRange(ctx context.Context, r query.Range) (segment.Docs, error) {
	switch r.Field {
	case "timestamp", "last_modified":
		_, err := query.Between(r, func(s string) (from int64, beyond *int64, err error) {
			_, _, err = query.DateSpan(s, e.now)
			return 0, nil, err
		})
		return e.c.words.None(), err
	case "content_length":
		within, err := query.Between(r, sizeBound)
		if err != nil {
			return nil, err
		}
		return e.selected(ctx, r.Field, func(value string) bool {
			n, _ := strconv.ParseInt(value, 10, 64) // it is a number
			return within(n)
		})
	case "", "title", "content":
		return nil, fmt.Errorf("a range needs a field whose values have an order, "+
			"for example content_length:[1000 TO *]: %w", errkind.Invalid)
	}
	if !isText(r.Field) {
		return e.c.words.None(), nil
	}
	within, err := query.Between(r, func(s string) (string, *string, error) { return s, nil, nil })
	if err != nil {
		return nil, err
	}
	return e.selected(ctx, r.Field, within)
}

// sizeBound parses a number of bytes.
func sizeBound(s string) (from int64, beyond *int64, err error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, nil, fmt.Errorf("content_length needs a whole number of bytes, got %q: %w",
			document.Truncate(s, 40), errkind.Invalid)
	}
	return n, nil, nil
}

// A member is a document of a set, with its values of the fields that it is ordered by.
type member struct {
	table, doc int
	row        int64
	values     []value
}

// A value is a text or a number, or neither if it is not known.
type value struct {
	known  bool
	text   string
	number int64
}

// sorted returns the first n documents that match, ordered by fields. Documents without
// a value come last. order is all of them by relevance, if a sort key needs it.
func (e *evaluator) sorted(ctx context.Context, docs segment.Docs, keys []search.SortKey, order []segment.Hit, n int) (
	[]member, error) {
	rank := make(map[int64]int, len(order))
	for i, h := range order {
		rank[h.Row] = i
	}
	keys = slices.DeleteFunc(slices.Clone(keys), func(k search.SortKey) bool {
		return k.Field != "filename" && k.Field != "content_length" && (k.Field != "score" || len(order) == 0)
	})
	var all []member
	err := e.each(ctx, docs, func(i, d int) {
		t := e.c.tables[i]
		m := member{table: i, doc: d, row: t.base + int64(d)}
		for _, k := range keys {
			v := value{known: true}
			switch k.Field {
			case "filename":
				v.text = e.value(t, d, k.Field)
				v.known = v.text != ""
			case "content_length":
				v.number = t.sizeOf(d)
			case "score":
				place, ok := rank[m.row]
				v.number, v.known = int64(len(order)-place), ok
			}
			m.values = append(m.values, v)
		}
		all = append(all, m)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b member) int {
		for i, k := range keys {
			x, y := a.values[i], b.values[i]
			switch {
			case x.known != y.known && x.known:
				return -1
			case x.known != y.known:
				return 1
			}
			c := cmp.Or(strings.Compare(x.text, y.text), cmp.Compare(x.number, y.number))
			if k.Desc {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return cmp.Compare(a.row, b.row)
	})
	return all[:min(len(all), n)], nil
}

// facetSize is how many values of a field are counted if the query does not set a size.
const facetSize = 10

// facets counts the documents of a set.
func (e *evaluator) facets(ctx context.Context, docs segment.Docs, f *search.Facets) (*search.FacetCounts, error) {
	out := &search.FacetCounts{}
	for _, name := range f.Fields {
		counts, err := e.countField(ctx, name, docs, f)
		if err != nil {
			return nil, err
		}
		out.Fields = append(out.Fields, search.FieldCounts{Name: name, Counts: counts})
	}
	for _, text := range f.Queries {
		n, err := e.countQuery(ctx, text, docs)
		if errors.Is(err, errkind.Invalid) {
			return nil, &errkind.Argument{Name: "facets.query", Value: text, Want: fmt.Sprintf("a query (%v)", err)}
		}
		if err != nil {
			return nil, err
		}
		out.Queries = append(out.Queries, search.Count{Value: text, Count: n})
	}
	return out, nil
}

// countField counts documents by the values of a field.
func (e *evaluator) countField(ctx context.Context, name string, docs segment.Docs, f *search.Facets) (
	[]search.Count, error) {
	byText := map[string]int{}
	err := e.each(ctx, docs, func(i, d int) { byText[cmp.Or(e.value(e.c.tables[i], d, name), f.Missing)]++ })
	if err != nil {
		return nil, err
	}
	var counts []search.Count
	for text, n := range byText {
		if text != "" && n >= max(f.MinDocCount, 1) {
			counts = append(counts, search.Count{Value: text, Count: n})
		}
	}
	slices.SortFunc(counts, f.Compare)
	return counts[:min(len(counts), cmp.Or(f.Size, facetSize))], nil
}

// countQuery returns how many documents of a set match a query.
func (e *evaluator) countQuery(ctx context.Context, text string, docs segment.Docs) (int, error) {
	t, err := query.Parse(text)
	if err != nil {
		return 0, err
	}
	m, err := e.matcher.Eval(ctx, t.Tree())
	if err != nil || m.Void {
		return 0, err
	}
	m.Docs.And(docs)
	return m.Docs.Count(), nil
}
