package index

import (
	"encoding/json"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// conditions restrict a search to documents with one of the labels, one of the
// languages, all of the tags and all of the options ([search.Query]), which match the
// filter ([query.Text.Filter]). A nil list or filter is no condition. Of the labels in
// written, only documents that users wrote meet the conditions.
type conditions struct {
	labels, langs, tags, written, options []string
	filter                                query.Node
}

// conditionsOf returns the conditions of a query.
func conditionsOf(q search.Query) conditions {
	return conditions{labels: q.Labels, langs: q.Langs, tags: q.Tags, written: q.Written, options: q.Text.Options(),
		filter: q.Text.Filter()}
}

// key returns a text that differs for different conditions beside the filter.
func (c conditions) key() string {
	b, _ := json.Marshal([5][]string{c.labels, c.langs, c.tags, c.written, c.options}) // strings always marshal
	return string(b)
}

// beyondLabels reports whether there are conditions beside the labels.
func (c conditions) beyondLabels() bool {
	return c.langs != nil || len(c.tags) > 0 || len(c.written) > 0 || len(c.options) > 0 ||
		c.filter != nil
}

// where returns the conditions except options and filter as an SQL expression over the table docs, which
// must have the alias d, and the arguments of the expression.
func (c conditions) where() (where string, args []any) {
	where = "1"
	for _, s := range []struct {
		column string
		values []string
	}{{"label", c.labels}, {"lang", c.langs}} {
		switch {
		case s.values == nil:
		case len(s.values) == 1: // SQLite can then use an index on the column for the order, too
			where += " AND d." + s.column + "=?"
			args = append(args, s.values[0])
		default:
			list, _ := json.Marshal(s.values)
			where += " AND d." + s.column + " IN (SELECT value FROM json_each(?))"
			args = append(args, string(list))
		}
	}
	if len(c.written) > 0 {
		list, _ := json.Marshal(c.written)
		where += " AND NOT (d.from_source AND d.label IN (SELECT value FROM json_each(?)))"
		args = append(args, string(list))
	}
	for _, tag := range c.tags {
		if label, ok := document.TagLabel(tag); ok {
			where += " AND d.label=?"
			args = append(args, label)
			continue
		}
		where += " AND d.id IN (SELECT dt.doc FROM doc_tags dt JOIN tags t ON t.id=dt.tag" +
			" WHERE t.kind='" + tagUser + "' AND t.name=?)"
		args = append(args, tag)
	}
	return where, args
}
