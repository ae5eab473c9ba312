package index

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// isText reports whether a field holds one text that is not tokenized. Its
// column in table docs has the same name.
func isText(field string) bool {
	switch field {
	case "label", "filetype", "mimetype", "host", "filename", "lang", "url", "doc_id":
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

// field returns the documents that match a condition on such a field. A field
// that no document of this index has matches nothing.
func (e *evaluator) field(ctx context.Context, n query.Node, field, text string) (segment.Docs, error) {
	of := func(value string) string { return value }
	switch field {
	case "timestamp", "last_modified", "content_length":
		return e.inRange(ctx, query.Range{Field: field, Low: text, High: text})
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
	if !isText(field) {
		return e.view.None(), nil
	}
	switch n.(type) {
	case query.Prefix:
		return e.selected(ctx, field, func(value string) bool { return strings.HasPrefix(value, text) })
	case query.Wildcard:
		glob, err := newGlob(text)
		if err != nil {
			return nil, err
		}
		return e.selected(ctx, field, func(value string) bool { return glob.match(of(value)) })
	}
	if field == "doc_id" {
		return e.docs(ctx, `SELECT id FROM docs WHERE doc_id=?`, text)
	}
	if field == "filetype" {
		text = query.FileType(text)
	}
	return e.selected(ctx, field, func(value string) bool { return value == text })
}

// inRange returns the documents whose field is in a range.
func (e *evaluator) inRange(ctx context.Context, r query.Range) (segment.Docs, error) {
	switch r.Field {
	case "timestamp", "last_modified":
		within, err := between(r, e.dateBound)
		if err != nil {
			return nil, err
		}
		return e.selectedNumbers(ctx, "modified", within)
	case "content_length":
		within, err := between(r, sizeBound)
		if err != nil {
			return nil, err
		}
		return e.selectedNumbers(ctx, "size", within)
	case "", "title", "content":
		return nil, fmt.Errorf("a range needs a field whose values have an order, "+
			"for example timestamp:[now/d-7d TO *]: %w", errkind.Invalid)
	}
	if !isText(r.Field) {
		return e.view.None(), nil
	}
	within, err := between(r, func(s string) (string, *string, error) { return s, nil, nil })
	if err != nil {
		return nil, err
	}
	return e.selected(ctx, r.Field, within)
}

// between returns a function that reports whether a value is in a range. bound
// parses one end of the range: from is the least value that the end stands for
// and beyond the least value above those, nil if the end stands for a single
// value. An end that stands for several values, such as a day, is in the range as
// a whole or not at all.
func between[T cmp.Ordered](r query.Range, bound func(string) (from T, beyond *T, err error)) (func(T) bool, error) {
	above, below := func(T) bool { return true }, func(T) bool { return true }
	if r.Low != "" && r.Low != "*" {
		from, beyond, err := bound(r.Low)
		if err != nil {
			return nil, err
		}
		switch {
		case r.LowExcl && beyond != nil:
			above = func(v T) bool { return v >= *beyond }
		case r.LowExcl:
			above = func(v T) bool { return v > from }
		default:
			above = func(v T) bool { return v >= from }
		}
	}
	if r.High != "" && r.High != "*" {
		from, beyond, err := bound(r.High)
		if err != nil {
			return nil, err
		}
		switch {
		case r.HighExcl:
			below = func(v T) bool { return v < from }
		case beyond != nil:
			below = func(v T) bool { return v < *beyond }
		default:
			below = func(v T) bool { return v <= from }
		}
	}
	return func(v T) bool { return above(v) && below(v) }, nil
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

// dateBound parses a date; see [query.DateSpan].
func (e *evaluator) dateBound(s string) (from int64, beyond *int64, err error) {
	a, b, err := query.DateSpan(s, e.now)
	if err != nil {
		return 0, nil, err
	}
	after := b.UnixMilli()
	return a.UnixMilli(), &after, nil
}
