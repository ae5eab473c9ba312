package index

import (
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

// Field implements [match.Fields]. A field that no document of this index has matches
// nothing.
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
	if !isText(field) {
		return e.view.None(), nil
	}
	switch n.(type) {
	case query.Prefix:
		return e.selected(ctx, field, func(value string) bool { return strings.HasPrefix(value, text) })
	case query.Wildcard:
		glob, err := query.ParseGlob(text)
		if err != nil {
			return nil, err
		}
		return e.selected(ctx, field, func(value string) bool { return glob.Match(of(value)) })
	}
	if field == "doc_id" {
		return e.docs(ctx, `SELECT id FROM docs WHERE doc_id=?`, text)
	}
	if field == "filetype" {
		text = query.FileType(text)
	}
	return e.selected(ctx, field, func(value string) bool { return value == text })
}

// InRange implements [match.Fields].
func (e *evaluator) InRange(ctx context.Context, r query.Range) (segment.Docs, error) {
	switch r.Field {
	case "timestamp", "last_modified":
		within, err := query.Between(r, e.dateBound)
		if err != nil {
			return nil, err
		}
		return e.selectedNumbers(ctx, "modified", within)
	case "content_length":
		within, err := query.Between(r, sizeBound)
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

// dateBound parses a date; see [query.DateSpan].
func (e *evaluator) dateBound(s string) (from int64, beyond *int64, err error) {
	a, b, err := query.DateSpan(s, e.now)
	if err != nil {
		return 0, nil, err
	}
	after := b.UnixMilli()
	return a.UnixMilli(), &after, nil
}
