package datasetsearch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
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

// Texts implements [match.Fields].
func (e *evaluator) Texts(ctx context.Context, field string, f func(value string) bool) (segment.Docs, error) {
	if !isText(field) {
		return e.c.words.None(), nil
	}
	return e.selected(ctx, field, f)
}

// Numbers implements [match.Fields]. No document has a time.
func (e *evaluator) Numbers(ctx context.Context, field string, f func(value int64) bool) (segment.Docs, error) {
	if field == "timestamp" {
		return e.c.words.None(), nil
	}
	return e.selected(ctx, field, func(value string) bool {
		n, _ := strconv.ParseInt(value, 10, 64) // it is a number
		return f(n)
	})
}

// WithID implements [match.Fields].
func (e *evaluator) WithID(_ context.Context, id string) (segment.Docs, error) {
	docs := e.c.words.None()
	for i, t := range e.c.tables {
		if d, ok := t.find(id); ok {
			docs[i] = segment.NewBits(t.set.Originals())
			docs[i].Set(d)
		}
	}
	return docs, nil
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
		n, err := e.matcher.Count(ctx, text, docs)
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
