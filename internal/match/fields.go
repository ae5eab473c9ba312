package match

import (
	"context"
	"fmt"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/segment"
)

// Fields finds documents by the values of their fields beside the title and the text.
// The documents that it returns may be changed.
type Fields interface {
	// Texts returns the documents with a value of a field for which f is true. A field
	// that the documents do not have, or whose values are no texts, has no values.
	Texts(ctx context.Context, field string, f func(value string) bool) (segment.Docs, error)

	// Numbers is like Texts for the fields "timestamp", in milliseconds since 1970, and
	// "content_length", in bytes.
	Numbers(ctx context.Context, field string, f func(value int64) bool) (segment.Docs, error)

	// WithID returns the document with an ID.
	WithID(ctx context.Context, id string) (segment.Docs, error)
}

// site returns an address without its scheme, as Fess has it.
func site(url string) string {
	if _, after, ok := strings.Cut(url, "://"); ok {
		return after
	}
	return url
}

// field returns the documents that meet a condition on a field. text is the text or the
// pattern of the condition, a Term, Phrase, Prefix, Wildcard or Fuzzy.
func (x *Matcher) field(ctx context.Context, n query.Node, field, text string) (segment.Docs, error) {
	_, isPattern := n.(query.Wildcard)
	of := func(value string) string { return value }
	switch field {
	case "timestamp", "last_modified", "content_length":
		return x.inRange(ctx, query.Range{Field: field, Low: text, High: text})
	case "inurl":
		if !isPattern {
			return x.Fields.Texts(ctx, "url", func(url string) bool { return strings.Contains(url, text) })
		}
		field, text = "url", "*"+text+"*"
	case "site":
		if !isPattern {
			return x.Fields.Texts(ctx, "url", func(url string) bool { return strings.HasPrefix(site(url), text) })
		}
		field, of = "url", site
	}
	if isPattern {
		glob, err := query.ParseGlob(text)
		if err != nil {
			return nil, err
		}
		return x.Fields.Texts(ctx, field, func(value string) bool { return glob.Match(of(value)) })
	}
	if _, ok := n.(query.Prefix); ok {
		return x.Fields.Texts(ctx, field, func(value string) bool { return strings.HasPrefix(value, text) })
	}
	switch field {
	case "doc_id":
		return x.Fields.WithID(ctx, text)
	case "filetype":
		text = query.FileType(text)
	}
	return x.Fields.Texts(ctx, field, func(value string) bool { return value == text })
}

// inRange returns the documents whose field is in a range.
func (x *Matcher) inRange(ctx context.Context, r query.Range) (segment.Docs, error) {
	switch r.Field {
	case "timestamp", "last_modified":
		within, err := query.Between(r, x.dateBound)
		if err != nil {
			return nil, err
		}
		return x.Fields.Numbers(ctx, "timestamp", within)
	case "content_length":
		within, err := query.Between(r, query.SizeBound)
		if err != nil {
			return nil, err
		}
		return x.Fields.Numbers(ctx, "content_length", within)
	case "", "title", "content":
		return nil, fmt.Errorf("a range needs a field whose values have an order, "+
			"for example timestamp:[now/d-7d TO *]: %w", errkind.Invalid)
	}
	within, err := query.Between(r, func(s string) (string, *string, error) { return s, nil, nil })
	if err != nil {
		return nil, err
	}
	return x.Fields.Texts(ctx, r.Field, within)
}

// dateBound parses a date; see [query.DateSpan].
func (x *Matcher) dateBound(s string) (from int64, beyond *int64, err error) {
	a, b, err := query.DateSpan(s, x.Now)
	if err != nil {
		return 0, nil, err
	}
	after := b.UnixMilli()
	return a.UnixMilli(), &after, nil
}

// Count returns how many of some documents match a query in the language of
// [query.Parse]. The error is of kind Invalid if it cannot be evaluated.
func (x *Matcher) Count(ctx context.Context, text string, docs segment.Docs) (int, error) {
	t, err := query.Parse(text)
	if err != nil {
		return 0, err
	}
	m, err := x.Eval(ctx, t.Tree())
	if err != nil || m.Void {
		return 0, err
	}
	m.Docs.And(docs)
	return m.Docs.Count(), nil
}
