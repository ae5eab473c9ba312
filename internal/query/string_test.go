package query

import (
	"strconv"
	"strings"
	"unicode"
)

// String returns a node in a canonical form of the query language. The result is
// always one line. Optional nodes, for which the language has no syntax, are
// marked OPTIONAL.
func String(n Node) string {
	var b strings.Builder
	write(&b, n)
	return b.String()
}

// write appends the canonical form of a node.
func write(b *strings.Builder, n Node) {
	switch n := n.(type) {
	case And:
		b.WriteByte('(')
		writeList(b, n.Nodes, " AND ")
		for _, o := range n.Optional {
			b.WriteString(" OPTIONAL ")
			write(b, o)
		}
		b.WriteByte(')')
	case Or:
		b.WriteByte('(')
		writeList(b, n.Nodes, " OR ")
		b.WriteByte(')')
	case Not:
		b.WriteString("NOT ")
		write(b, n.Node)
	case Term:
		writeField(b, n.Field)
		b.WriteString(printable(escape(n.Text), false))
	case Phrase:
		writeField(b, n.Field)
		b.WriteString(printable(n.Text, true))
		if n.Slop > 0 {
			b.WriteString("~" + strconv.Itoa(n.Slop))
		}
	case Prefix:
		writeField(b, n.Field)
		b.WriteString(printable(escape(n.Text), false) + "*")
	case Wildcard:
		writeField(b, n.Field)
		b.WriteString(printable(n.Pattern, false))
	case Fuzzy:
		writeField(b, n.Field)
		b.WriteString(printable(escape(n.Text), false) + "~" + strconv.Itoa(n.Edits))
	case Range:
		writeRange(b, n)
	case Boost:
		write(b, n.Node)
		b.WriteString("^" + strconv.FormatFloat(n.Factor, 'f', -1, 64))
	case All:
		b.WriteString("*:*")
	}
}

// writeList appends nodes separated by sep.
func writeList(b *strings.Builder, nodes []Node, sep string) {
	for i, n := range nodes {
		if i > 0 {
			b.WriteString(sep)
		}
		write(b, n)
	}
}

// writeField appends a field and its colon.
func writeField(b *strings.Builder, field string) {
	if field != "" {
		b.WriteString(field + ":")
	}
}

// writeRange appends a range.
func writeRange(b *strings.Builder, r Range) {
	writeField(b, r.Field)
	b.WriteByte("[{"[index(r.LowExcl)])
	b.WriteString(bound(r.Low) + " TO " + bound(r.High))
	b.WriteByte("]}"[index(r.HighExcl)])
}

// index returns 1 for true and 0 for false.
func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// bound returns one bound of a range.
func bound(s string) string {
	if s == "" {
		return "*"
	}
	return printable(s, strings.ContainsAny(s, ` "]}`) || s == "TO" || s == "*")
}

// printable returns text on one line, in quotes if quote is true or the text
// needs them.
func printable(s string, quote bool) string {
	plain := strings.IndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '"' }) < 0
	if plain && !quote && s != "" {
		return s
	}
	return strconv.Quote(s)
}
