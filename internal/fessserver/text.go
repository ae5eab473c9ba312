package fessserver

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"knowhow/internal/query"
)

// maxLength is the length beyond which Fess takes no part of a query, in
// characters (query.max.length).
const maxLength = 1000

// A sentence collects the conditions of a request that are texts of the query
// language. Each condition is a query by itself: none can reach into another.
type sentence struct {
	prefix string   // "", "allintitle:" or "allinurl:"
	texts  []string // conditions as they are searched for, to be joined by AND
	echo   []string // conditions as Fess writes them, for search_query
}

// add takes a condition and how Fess writes it.
func (s *sentence) add(text, echo string) {
	s.texts, s.echo = append(s.texts, text), append(s.echo, echo)
}

// query returns the conditions as one query. A text of several words only is
// put into parentheses: it means AND, and a backend may do more for a text that
// has no operator.
func (s *sentence) query() string {
	texts := slices.DeleteFunc(slices.Clone(s.texts), func(t string) bool { return strings.TrimSpace(t) == "" })
	switch {
	case len(texts) == 0:
		return ""
	case len(texts) > 1:
		// The blank keeps a sign at the end from meeting the parenthesis.
		return s.prefix + "(" + strings.Join(texts, " ) AND (") + " )"
	case s.prefix == "" && query.Plain(texts[0]) && len(query.Words(texts[0])) > 1:
		return "(" + texts[0] + ")"
	}
	return s.prefix + texts[0]
}

// text takes the user's own text. As Fess does, it takes one with an error of
// syntax as words, with its reserved characters escaped, and one with OR in
// parentheses (or false: without).
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
		return &refusal{"Invalid query: " + query.Quote(cut(rest)) + " is no query by itself"}
	}
	s.add(text, s.prefix+text)
	return nil
}

// condition takes a condition that Fess appends as it stands.
func (s *sentence) condition(text string) error {
	if !whole(text) {
		return &refusal{"Invalid query: " + query.Quote(cut(text)) + " is no query by itself"}
	}
	s.add(text, text)
	return nil
}

// advanced takes the parameters as.* (Fess 15.4,
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
		words := query.AnyOf(query.Words(v))
		s.add(words, words)
	}
	for _, v := range values("nq") {
		for _, w := range query.Words(v) {
			if !query.Plain(w) {
				w = query.Quote(w)
			}
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

// fieldName is what the name of a field can look like.
var fieldName = regexp.MustCompile(`^[a-z_]{1,64}$`)

// field takes a condition on a field, any of the values. What is no search
// field is text for Fess.
func (s *sentence) field(name string, values ...string) {
	var texts, echo []string
	for _, v := range values {
		echo = append(echo, name+`:"`+v+`"`)
		if fieldName.MatchString(name) {
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

// whole reports whether q can be read as it stands, without the second try in
// which all its reserved characters are text, and is a query by itself: more
// conditions can stand before and behind it. They do so here: if all is well the
// one that matches everything is one of the query's own then, and otherwise it is
// text too.
func whole(q string) bool {
	for _, probe := range [...]string{"*:* " + q, q + " *:*"} {
		n, err := query.Parse(probe)
		if err != nil || !hasAll(n) {
			return false
		}
	}
	return true
}

// hasAll reports whether a tree holds an All.
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
// Constants.RESERVED; quotes are not among them).
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `+`, `\+`, `-`, `\-`, `&&`, `\&\&`, `||`, `\|\|`, `!`, `\!`, `(`, `\(`, `)`, `\)`,
		`{`, `\{`, `}`, `\}`, `[`, `\[`, `]`, `\]`, `^`, `\^`, `~`, `\~`, `*`, `\*`, `?`, `\?`, `;`, `\;`, `:`, `\:`, `/`, `\/`).Replace(s)
}
