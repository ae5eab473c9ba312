package fessserver

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/query"
)

// maxLength is the maximum length of a part of a query, in characters
// (query.max.length).
const maxLength = 1000

// A sentence collects the conditions of a request that are in the query
// language. Each condition is a complete query and cannot change the meaning of
// another one.
type sentence struct {
	prefix string   // "", "allintitle:" or "allinurl:"
	texts  []string // conditions in the form for the search, joined by AND
	echo   []string // conditions in Fess's form, for search_query
}

// add adds a condition and its form in Fess.
func (s *sentence) add(text, echo string) {
	s.texts, s.echo = append(s.texts, text), append(s.echo, echo)
}

// query returns the conditions as one query. A condition of several plain words
// is put into parentheses, which means AND, because a backend may treat a plain
// query in another way.
func (s *sentence) query() (query.Text, error) {
	texts := slices.DeleteFunc(slices.Clone(s.texts), func(t string) bool { return strings.TrimSpace(t) == "" })
	switch {
	case len(texts) == 0:
		return query.Text{}, nil
	case len(texts) > 1:
		// The blank separates a final operator character from the parenthesis.
		return query.Parse(s.prefix + "(" + strings.Join(texts, " ) AND (") + " )")
	}
	text, err := query.Parse(s.prefix + texts[0])
	if err == nil && isSeveral(text.Words()) {
		text, err = query.Parse("(" + text.String() + ")")
	}
	return text, err
}

// isSeveral reports whether the words of a plain query are several ones, or one that
// a backend may divide.
func isSeveral(words []string) bool {
	parts, _ := query.Divide(words)
	return len(words) > 1 || !slices.Equal(parts, words)
}

// text adds the user's own text. As in Fess, a text with a syntax error is read
// as words, with its reserved characters escaped. If or is set, a text with OR
// is put into parentheses.
func (s *sentence) text(q string, or bool) error {
	rest := strings.TrimSpace(q)
	if rest == "" {
		return nil
	}
	for _, p := range [...]string{"allintitle:", "allinurl:"} {
		if after, ok := strings.CutPrefix(rest, p); ok {
			s.prefix, rest = p, after
		}
	}
	enclose := func(text string) string {
		if or && (strings.Contains(text, " OR ") || strings.Contains(text, " || ")) {
			return "(" + text + ")"
		}
		return text
	}
	text := enclose(rest)
	if _, err := query.Parse(text); err != nil {
		return &refusal{"Invalid query: " + strings.TrimPrefix(err.Error(), "query, ")}
	}
	if !whole(text) {
		text = enclose(escape(rest))
	}
	if !whole(text) {
		return &refusal{"Invalid query: " + query.Quote(cut(rest)) + " is not a complete query"}
	}
	s.add(text, s.prefix+text)
	return nil
}

// condition adds a condition that Fess appends unchanged.
func (s *sentence) condition(text string) error {
	if !whole(text) {
		return &refusal{"Invalid query: " + query.Quote(cut(text)) + " is not a complete query"}
	}
	s.add(text, text)
	return nil
}

// advanced adds the conditions of the parameters as.* (Fess 15.4,
// QueryStringBuilder.appendConditions). It reports whether there are any.
func (s *sentence) advanced(get func(name string) []string) (bool, error) {
	values := func(name string) []string {
		return slices.DeleteFunc(get("as."+name), func(v string) bool { return utf8.RuneCountInString(v) > maxLength })
	}
	given := false
	for _, name := range [...]string{"q", "epq", "oq", "nq", "filetype", "sitesearch", "timestamp"} {
		given = given || len(get("as."+name)) > 0
	}
	if !given {
		return false, nil
	}
	for _, v := range values("q") {
		if err := s.text(v, false); err != nil {
			return true, err
		}
	}
	for _, v := range values("epq") {
		s.add(query.Quote(v), query.Quote(v))
	}
	for _, v := range values("oq") {
		words := query.AnyOf(query.Fields(v)).String()
		s.add(words, words)
	}
	for _, v := range values("nq") {
		for _, w := range query.Fields(v) {
			w = query.Literal(w)
			s.add("NOT "+w, "NOT "+w)
		}
	}
	for _, v := range values("filetype") {
		s.field("filetype", v)
	}
	for _, v := range values("sitesearch") {
		s.add("site:"+query.Quote(v), "site:"+strings.TrimSpace(v))
	}
	for _, v := range values("timestamp") {
		if err := s.condition("timestamp:" + strings.TrimSpace(v)); err != nil {
			return true, err
		}
	}
	for _, v := range values("occt") {
		if v == "allintitle" || v == "allinurl" {
			s.prefix = v + ":"
			s.echo = append([]string{s.prefix}, s.echo...)
			break
		}
	}
	return true, nil
}

// fieldName matches the name of a field, which has at most maxFieldName bytes.
var fieldName = regexp.MustCompile(`^[a-z_]+$`)

const maxFieldName = 64

// field adds the condition that a field has one of the values. In Fess, a name
// that is not a search field is text.
func (s *sentence) field(name string, values ...string) {
	var texts, echo []string
	for _, v := range values {
		echo = append(echo, name+`:"`+v+`"`)
		if len(name) <= maxFieldName && fieldName.MatchString(name) {
			texts = append(texts, name+":"+query.Quote(v))
		} else {
			texts = append(texts, query.Quote(name+":"+v))
		}
	}
	if len(values) == 1 {
		s.add(texts[0], echo[0])
		return
	}
	s.add("("+strings.Join(texts, " OR ")+")", "("+strings.Join(echo, " OR ")+")")
}

// whole reports whether q is a complete query, to which other conditions can be
// added at both ends, without reading its reserved characters as text. It adds
// *:* for the test: if q is complete, that is a node of the tree, otherwise it
// becomes text.
func whole(q string) bool {
	for _, probe := range [...]string{"*:* " + q, q + " *:*"} {
		t, err := query.Parse(probe)
		if err != nil || !hasAll(t.Tree()) {
			return false
		}
	}
	return true
}

// hasAll reports whether a tree contains an All.
func hasAll(n query.Node) bool {
	switch n := n.(type) {
	case query.All:
		return true
	case query.And:
		return slices.ContainsFunc(n.Nodes, hasAll) || slices.ContainsFunc(n.Optional, hasAll)
	case query.Or:
		return slices.ContainsFunc(n.Nodes, hasAll)
	case query.Not:
		return hasAll(n.Node)
	case query.Boost:
		return hasAll(n.Node)
	}
	return false
}

// escape puts a backslash before every reserved character (Fess 15.4,
// Constants.RESERVED, which does not contain quotes).
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `+`, `\+`, `-`, `\-`, `&&`, `\&\&`, `||`, `\|\|`, `!`, `\!`, `(`, `\(`,
		`)`, `\)`, `{`, `\{`, `}`, `\}`, `[`, `\[`, `]`, `\]`, `^`, `\^`, `~`, `\~`, `*`, `\*`, `?`, `\?`,
		`;`, `\;`, `:`, `\:`, `/`, `\/`).Replace(s)
}
