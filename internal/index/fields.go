package index

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"knowhow/internal/document"
	"knowhow/internal/errkind"
	"knowhow/internal/query"
	"knowhow/internal/segment"
)

// keyword returns the column of a field that holds one value and is not
// tokenized. ok is false if the field is none of these.
func keyword(field string) (column string, ok bool) {
	switch field {
	case "label", "filetype", "mimetype", "host", "filename", "lang", "url", "doc_id":
		return "d." + field, true
	}
	return "", false
}

// site is a document's address without its scheme, as Fess has it.
const site = `substr(d.url, instr(d.url, '://')+3)`

// field returns the documents that match a condition on such a field. A field
// that no document of this index has matches nothing.
func (e *evaluator) field(ctx context.Context, n query.Node, field, text string) (segment.Docs, error) {
	switch field {
	case "timestamp", "last_modified", "content_length":
		return e.inRange(ctx, query.Range{Field: field, Low: text, High: text})
	case "inurl":
		if _, ok := n.(query.Wildcard); ok {
			return e.glob(ctx, "d.url", "*"+text+"*")
		}
		return e.docs(ctx, `instr(d.url, ?)>0`, text)
	case "site":
		if _, ok := n.(query.Wildcard); ok {
			return e.glob(ctx, site, text)
		}
		return e.docs(ctx, `substr(`+site+`, 1, length(?))=?`, text, text)
	}
	column, ok := keyword(field)
	if !ok {
		return e.view.None(), nil
	}
	switch n.(type) {
	case query.Prefix:
		return e.docs(ctx, `substr(`+column+`, 1, length(?))=?`, text, text)
	case query.Wildcard:
		return e.glob(ctx, column, text)
	}
	return e.docs(ctx, column+`=?`, text)
}

// docs returns the documents for which an SQL condition over docs d holds.
func (e *evaluator) docs(ctx context.Context, where string, args ...any) (segment.Docs, error) {
	var rows []int64
	err := collect(ctx, e.tx, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		rows = append(rows, id)
		return err
	}, `SELECT d.id FROM docs d WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	slices.Sort(rows)
	return e.view.Rows(rows)
}

// globOf translates a wildcard pattern of a query into a GLOB pattern of
// SQLite, in which [ is special and the backslash is not.
func globOf(pattern string) (string, error) {
	if err := query.CheckGlob(pattern); err != nil {
		return "", err
	}
	var b strings.Builder
	escaped := false
	for _, r := range pattern {
		switch {
		case r == '\\' && !escaped:
			escaped = true
			continue
		case r == '[' || escaped && (r == '*' || r == '?'):
			b.WriteString("[" + string(r) + "]")
		default:
			b.WriteRune(r)
		}
		escaped = false
	}
	return b.String(), nil
}

// glob returns the documents for which an SQL expression matches a wildcard
// pattern.
func (e *evaluator) glob(ctx context.Context, expr, pattern string) (segment.Docs, error) {
	g, err := globOf(pattern)
	if err != nil {
		return nil, err
	}
	return e.docs(ctx, expr+` GLOB ?`, g)
}

// inRange returns the documents whose field is in a range.
func (e *evaluator) inRange(ctx context.Context, r query.Range) (segment.Docs, error) {
	switch r.Field {
	case "timestamp", "last_modified":
		return e.between(ctx, "d.modified", r, e.dateBound)
	case "content_length":
		return e.between(ctx, "d.size", r, sizeBound)
	case "", "title", "content":
		return nil, fmt.Errorf("a range needs a field whose values have an order, for example timestamp:[now/d-7d TO *]: %w", errkind.Invalid)
	}
	column, ok := keyword(r.Field)
	if !ok {
		return e.view.None(), nil
	}
	return e.between(ctx, column, r, func(s string) (any, any, error) { return s, nil, nil })
}

// between returns the documents for which column is in a range. bound parses
// one end of the range: from is the least value that the end stands for and
// beyond the least value above those, nil if the end stands for a single value.
// An end that stands for several values, such as a day, is in the range as a
// whole or not at all.
func (e *evaluator) between(ctx context.Context, column string, r query.Range, bound func(string) (from, beyond any, err error)) (segment.Docs, error) {
	where := column + ` IS NOT NULL`
	var args []any
	if r.Low != "" && r.Low != "*" {
		from, beyond, err := bound(r.Low)
		if err != nil {
			return nil, err
		}
		op, v := ">=", from
		if r.LowExcl && beyond != nil {
			v = beyond
		} else if r.LowExcl {
			op = ">"
		}
		where, args = where+` AND `+column+op+`?`, append(args, v)
	}
	if r.High != "" && r.High != "*" {
		from, beyond, err := bound(r.High)
		if err != nil {
			return nil, err
		}
		op, v := "<", from
		if !r.HighExcl && beyond != nil {
			v = beyond
		} else if !r.HighExcl {
			op = "<="
		}
		where, args = where+` AND `+column+op+`?`, append(args, v)
	}
	return e.docs(ctx, where, args...)
}

// sizeBound parses a number of bytes.
func sizeBound(s string) (from, beyond any, err error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return nil, nil, fmt.Errorf("content_length needs a whole number of bytes, got %q: %w", document.Truncate(s, 40), errkind.Invalid)
	}
	return n, nil, nil
}

// dateBound parses a date; see [query.DateSpan].
func (e *evaluator) dateBound(s string) (from, beyond any, err error) {
	a, b, err := query.DateSpan(s, e.now)
	if err != nil {
		return nil, nil, err
	}
	return a.UnixMilli(), b.UnixMilli(), nil
}
