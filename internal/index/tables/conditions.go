package tables

import "encoding/json"

// Conditions let through only documents with one of the labels and one of the
// languages; nil means any.
type Conditions struct{ Labels, Langs []string }

// None reports whether the conditions let everything through.
func (c Conditions) None() bool { return c.Labels == nil && c.Langs == nil }

// Key names the conditions unmistakably.
func (c Conditions) Key() string {
	b, _ := json.Marshal([2][]string{c.Labels, c.Langs}) // strings always marshal
	return string(b)
}

// Where returns the conditions as an SQL expression over the table docs, which
// the statement names d, and its arguments.
func (c Conditions) Where() (where string, args []any) {
	where = "1"
	for _, s := range []struct {
		column string
		values []string
	}{{"label", c.Labels}, {"lang", c.Langs}} {
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
