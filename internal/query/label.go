package query

import (
	"strconv"
	"strings"
)

// WithLabel returns a text for documents that all have one label and no other: it
// has no conditions on labels, because each is met by all of these documents or by
// none. IDs of documents (the field doc_id) are replaced by those that the function id
// returns; it returns "" for an ID that none of these documents has. A text without
// such conditions is returned as it is. ok is false if no document can match t. The
// error is of kind errkind.Invalid.
func (t Text) WithLabel(label string, id func(string) string) (u Text, ok bool, err error) {
	return t.resolved(&resolver{label: label, id: id})
}

// WithLabels returns a text in which the condition on a label is met by documents with
// any of other labels. A text without such a condition is returned as it is. ok is false
// if no document can match t. The error is of kind errkind.Invalid.
func (t Text) WithLabels(label string, others []string) (u Text, ok bool, err error) {
	return t.resolved(&resolver{label: label, others: others, several: true})
}

// resolved returns the text that a resolver makes of t.
func (t Text) resolved(r *resolver) (u Text, ok bool, err error) {
	conditions := t.Tree()
	if t.filter.tree != nil { // words are no conditions on labels
		conditions = t.filter.tree
	}
	n := r.resolve(conditions)
	switch {
	case !r.found:
		return t, true, nil
	case n == nil:
		return Text{}, false, nil
	}
	var b strings.Builder
	switch _, all := n.(All); {
	case t.filter.tree == nil:
		writeNode(&b, n)
		u, err = Parse(b.String())
	case all:
		u, err = Parse(t.Plain())
	default:
		writeGroup(&b, n)
		u, err = withFilter(t.words, b.String())
	}
	if err != nil {
		return Text{}, false, err // the text is too long in this form
	}
	u.typed, u.filter.typed, u.options, u.relaxed = t.typed, t.filter.typed, t.options, t.relaxed
	return u, true, nil
}

// A resolver replaces the conditions on labels in a tree.
type resolver struct {
	label string
	id    func(string) string
	found bool // there are such conditions

	// If several is true, only conditions on exactly this label are replaced, by
	// conditions on others.
	several bool
	others  []string
}

// resolve returns a node without conditions on labels, or nil if it matches nothing.
// The result is All, or contains All only where it matters.
func (r *resolver) resolve(n Node) Node {
	switch n := n.(type) {
	case And:
		return r.and(n)
	case Or:
		return r.or(n)
	case Not:
		switch inner := r.resolve(n.Node).(type) {
		case nil:
			return All{}
		case All:
			return nil
		default:
			return Not{inner}
		}
	case Boost:
		switch inner := r.resolve(n.Node).(type) {
		case nil, All:
			return inner
		default:
			return Boost{inner, n.Factor}
		}
	case Term:
		if n.Field == "doc_id" {
			return r.document(n.Text)
		}
		return r.condition(n.Field, n, func() bool { return n.Text == r.label })
	case Phrase:
		if n.Field == "doc_id" {
			return r.document(n.Text)
		}
		return r.condition(n.Field, n, func() bool { return n.Text == r.label })
	case Fuzzy:
		return r.condition(n.Field, n, func() bool { return n.Text == r.label })
	case Prefix:
		return r.condition(n.Field, n, func() bool { return strings.HasPrefix(r.label, n.Text) })
	case Wildcard:
		return r.condition(n.Field, n, func() bool {
			g, err := ParseGlob(n.Pattern)
			return err == nil && g.Match(r.label)
		})
	case Range:
		return r.condition(n.Field, n, func() bool {
			in, err := Between(n, func(s string) (string, *string, error) { return s, nil, nil })
			return err == nil && in(r.label)
		})
	}
	return n
}

// document returns the condition on a document, or nil if there is none with the ID.
func (r *resolver) document(id string) Node {
	if r.several {
		return Term{Field: "doc_id", Text: id}
	}
	r.found = true
	if id = r.id(id); id == "" {
		return nil
	}
	return Term{Field: "doc_id", Text: id}
}

// condition returns a condition on a field. That on labels is All if it is met, and
// nil if it is not.
func (r *resolver) condition(field string, n Node, met func() bool) Node {
	if field != "label" {
		return n
	}
	if r.several {
		return r.anyOfOthers(n, met)
	}
	r.found = true
	if met() {
		return All{}
	}
	return nil
}

// anyOfOthers returns the condition on the other labels in place of one on the label.
func (r *resolver) anyOfOthers(n Node, met func() bool) Node {
	switch n.(type) {
	case Term, Phrase:
	default:
		return n
	}
	if !met() {
		return n
	}
	r.found = true
	var or Or
	for _, label := range r.others {
		or.Nodes = append(or.Nodes, Phrase{Field: "label", Text: label})
	}
	switch len(or.Nodes) {
	case 0:
		return nil
	case 1:
		return or.Nodes[0]
	}
	return or
}

func (r *resolver) and(n And) Node {
	var and And
	matches := true
	for _, m := range n.Nodes {
		switch m := r.resolve(m).(type) {
		case nil:
			matches = false // the others may have conditions on labels, too
		case All:
		default:
			and.Nodes = append(and.Nodes, m)
		}
	}
	for _, m := range n.Optional {
		switch m := r.resolve(m).(type) {
		case nil, All:
		default:
			and.Optional = append(and.Optional, m)
		}
	}
	switch {
	case !matches:
		return nil
	case len(and.Nodes) == 0 && and.Optional == nil:
		return All{}
	case len(and.Nodes) == 0:
		and.Nodes = []Node{All{}}
	case len(and.Nodes) == 1 && and.Optional == nil:
		return and.Nodes[0]
	}
	return and
}

func (r *resolver) or(n Or) Node {
	var or Or
	all := false
	for _, m := range n.Nodes {
		switch m := r.resolve(m).(type) {
		case nil:
		case All:
			all = true
		default:
			or.Nodes = append(or.Nodes, m)
		}
	}
	switch {
	case all && or.Nodes == nil:
		return All{}
	case all: // the other conditions still raise the rank
		return And{Nodes: []Node{All{}}, Optional: or.Nodes}
	case or.Nodes == nil:
		return nil
	case len(or.Nodes) == 1:
		return or.Nodes[0]
	}
	return or
}

// writeNode appends a node in the query language.
func writeNode(b *strings.Builder, n Node) {
	switch n := n.(type) {
	case And:
		writeAnd(b, n)
	case Or:
		for i, m := range n.Nodes {
			if i > 0 {
				b.WriteString(" OR ")
			}
			writeGroup(b, m)
		}
	case Not:
		b.WriteString("NOT ")
		writeGroup(b, n.Node)
	case Boost:
		writeGroup(b, n.Node)
		b.WriteString("^" + strconv.FormatFloat(n.Factor, 'f', -1, 64))
	case Term:
		b.WriteString(fieldPrefix(n.Field) + escapeWord(n.Text))
	case Phrase:
		b.WriteString(fieldPrefix(n.Field) + `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(n.Text) + `"`)
		if n.Slop > 0 {
			b.WriteString("~" + strconv.Itoa(n.Slop))
		}
	case Prefix:
		b.WriteString(fieldPrefix(n.Field) + escapeWord(n.Text) + "*")
	case Wildcard:
		b.WriteString(fieldPrefix(n.Field) + escapePattern(n.Pattern))
	case Fuzzy:
		b.WriteString(fieldPrefix(n.Field) + escapeWord(n.Text) + "~" + strconv.Itoa(n.Edits))
	case Range:
		b.WriteString(n.Field + ":" + opening(n.LowExcl) + rangeEnd(n.Low) + " TO " + rangeEnd(n.High) +
			closing(n.HighExcl))
	case All:
		b.WriteString("*:*")
	}
}

// writeAnd appends an And. Lucene's parser makes the clauses before the last OR
// optional if AND follows them.
func writeAnd(b *strings.Builder, n And) {
	required := n.Nodes
	if n.Optional != nil {
		for _, m := range n.Optional {
			writeGroup(b, m)
			b.WriteString(" OR ")
		}
		if _, ok := required[0].(Not); ok || len(required) == 1 {
			required = append([]Node{All{}}, required...)
		}
	}
	for i, m := range required {
		if i > 0 {
			b.WriteString(" AND ")
		}
		if not, ok := m.(Not); ok {
			writeNode(b, not)
		} else {
			writeGroup(b, m)
		}
	}
}

// writeGroup appends a node, in parentheses if it has operators.
func writeGroup(b *strings.Builder, n Node) {
	switch n.(type) {
	case And, Or, Not, Boost:
		b.WriteByte('(')
		writeNode(b, n)
		b.WriteByte(')')
	default:
		writeNode(b, n)
	}
}

func fieldPrefix(field string) string {
	if field == "" {
		return ""
	}
	return field + ":"
}

func opening(exclusive bool) string {
	if exclusive {
		return "{"
	}
	return "["
}

func closing(exclusive bool) string {
	if exclusive {
		return "}"
	}
	return "]"
}

// rangeEnd returns one end of a range; "" means open.
func rangeEnd(s string) string {
	switch {
	case s == "":
		return "*"
	case s != "*" && s != "TO" && !strings.ContainsFunc(s, func(r rune) bool {
		return r == '"' || r == '\\' || r == ']' || r == '}' || isBlank(r)
	}):
		return s
	}
	// A quoted end has no escaped quote that Lucene reads as one.
	return `"` + strings.NewReplacer(`\`, `\u005c`, `"`, `\u0022`).Replace(s) + `"`
}

// escapeWord returns a text as one word without operators.
func escapeWord(s string) string {
	switch s {
	case "AND", "OR", "NOT", "TO":
		return `\` + s
	}
	var b strings.Builder
	for _, r := range s {
		if isReserved(r) || r == '\\' || r == '*' || r == '?' {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// escapePattern returns the pattern of a Wildcard as one word without operators. What
// has a backslash before it keeps that.
func escapePattern(s string) string {
	var b strings.Builder
	escaped := false
	for _, r := range s {
		if isReserved(r) && !escaped {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		escaped = r == '\\' && !escaped
	}
	return b.String()
}

// isReserved reports whether r may be an operator or separate words, except a wildcard
// and a backslash.
func isReserved(r rune) bool {
	return strings.ContainsRune(`+-!(){}[]^"~:/&|;`, r) || isBlank(r)
}
