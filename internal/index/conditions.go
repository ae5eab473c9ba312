package index

import "encoding/json"

// conditions let through only documents with one of the labels and one of the
// languages; nil means any.
type conditions struct{ labels, langs []string }

// none reports whether the conditions let everything through.
func (c conditions) none() bool { return c.labels == nil && c.langs == nil }

// key names the conditions unmistakably.
func (c conditions) key() string {
	b, _ := json.Marshal([2][]string{c.labels, c.langs}) // strings always marshal
	return string(b)
}

// where returns the conditions as an SQL expression over the table docs, which
// the statement names d, and its arguments.
func (c conditions) where() (where string, args []any) {
	where = "1"
	for _, s := range []struct {
		column string
		values []string
	}{{"label", c.labels}, {"lang", c.langs}} {
		switch {
		case s.values == nil:
		case len(s.values) == 1: // lets an index give the order too
			where += " AND d." + s.column + "=?"
			args = append(args, s.values[0])
		default:
			list, _ := json.Marshal(s.values)
			where += " AND d." + s.column + " IN (SELECT value FROM json_each(?))"
			args = append(args, string(list))
		}
	}
	return where, args
}
