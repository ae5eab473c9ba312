package query_test

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// This file is a second implementation of the query language, which follows
// Lucene's grammar file (QueryParser.jj: longest match, first rule on a tie).
// It shares no code with the package and is used to check it.

// errSyntax is any error of Lucene's parser.
var errSyntax = errors.New("syntax error")

const (
	wsClass   = ` \t\n\r\x{3000}`
	termStart = `(?:[^` + wsClass + `+\-!():^\[\]"{}~*?\\/]|\\(?s:.))`
	termChar  = `(?:` + termStart + `|[-+])`
)

// A rule is one token of the grammar in one lexical state.
type rule struct {
	name string
	re   *regexp.Regexp
	next string // state to go to, "" to stay
}

func rules(defs ...string) []rule {
	var rs []rule
	for i := 0; i < len(defs); i += 3 {
		re := regexp.MustCompile(`\A(?:` + defs[i+1] + `)`)
		re.Longest()
		rs = append(rs, rule{defs[i], re, defs[i+2]})
	}
	return rs
}

var grammar = map[string][]rule{
	"default": rules(
		"SKIP", `[`+wsClass+`]`, "",
		"AND", `AND|&&`, "", "OR", `OR|\|\|`, "", "NOT", `NOT|!`, "", "PLUS", `\+`, "", "MINUS", `-`, "",
		"BAREOPER", `[-+!][`+wsClass+`]`, "", "(", `\(`, "", ")", `\)`, "", ":", `:`, "", "*", `\*`, "", "^", `\^`,
		"boost",
		"QUOTED", `"(?:[^"\\]|\\(?s:.))*"`, "", "TERM", termStart+termChar+`*`, "", "FUZZY", `~`+termChar+`*`, "",
		"PREFIX", `\*|`+termStart+termChar+`*\*`, "", "WILD", `(?:`+termStart+`|[*?])(?:`+termChar+`|[*?])*`, "",
		"REGEXP", `/(?:[^/]|\\/)*/`, "", "[", `\[`, "range", "{", `\{`, "range"),
	"boost": rules("NUMBER", `[0-9]+(?:\.[0-9]+)?`, "default"),
	"range": rules("SKIP", `[`+wsClass+`]`, "", "TO", `TO`, "", "]", `\]`, "default", "}", `\}`, "default",
		"RQUOTED", `"(?:[^"]|\\")+"`, "", "GOOP", `[^ \]}]+`, ""),
}

// A piece is a token.
type piece struct{ name, text string }

// pieces splits a query into tokens.
func pieces(s string) ([]piece, error) {
	var ps []piece
	state := "default"
	for s != "" {
		var best rule
		n := 0
		for _, r := range grammar[state] {
			if m := r.re.FindString(s); len(m) > n {
				best, n = r, len(m)
			}
		}
		if n == 0 {
			return nil, errSyntax
		}
		if best.name != "SKIP" {
			ps = append(ps, piece{best.name, s[:n]})
		}
		if best.next != "" {
			state = best.next
		}
		s = s[n:]
	}
	return append(ps, piece{name: "EOF"}), nil
}

// A doc is a document to match.
type doc struct {
	words string // with a blank before and after each
	label string
}

// A matcher is a parsed query. nil is an empty one.
type matcher func(doc) bool

// A lucene is a parser.
type lucene struct {
	ps []piece
	i  int
}

func (l *lucene) at(name string) bool { return l.ps[l.i].name == name }

func (l *lucene) eat(name string) bool {
	if !l.at(name) {
		return false
	}
	l.i++
	return true
}

// luceneParse parses a query with a default field.
func luceneParse(s, field string) (matcher, error) {
	ps, err := pieces(s)
	if err != nil {
		return nil, err
	}
	if len(ps) == 1 {
		return nil, nil
	}
	l := lucene{ps: ps}
	m, err := l.query(field)
	if err == nil && !l.at("EOF") {
		err = errSyntax
	}
	return m, err
}

// query implements the rule Query with the method addClause, and, for the
// meaning of the clauses, the boolean query of Fess's engine.
func (l *lucene) query(field string) (matcher, error) {
	type clause struct {
		occur byte // '+', '-' or ' '
		m     matcher
	}
	var cs []clause
	for first := true; first || slices.Contains([]string{"AND", "OR", "NOT", "PLUS", "MINUS", "BAREOPER", "(", "*",
		"QUOTED",
		"TERM", "PREFIX", "WILD", "REGEXP", "[", "{"}, l.ps[l.i].name); first = false {
		and, or := !first && l.eat("AND"), false
		if !and {
			or = !first && l.eat("OR")
		}
		not := false
		if !l.eat("PLUS") {
			not = l.eat("MINUS") || l.eat("NOT")
		}
		m, err := l.clause(field)
		if err != nil {
			return nil, err
		}
		if n := len(cs); n > 0 && cs[n-1].occur != '-' {
			if and {
				cs[n-1].occur = '+'
			} else if or {
				cs[n-1].occur = ' '
			}
		}
		if m == nil {
			continue
		}
		c := clause{'+', m}
		if not {
			c.occur = '-'
		} else if or {
			c.occur = ' '
		}
		cs = append(cs, c)
	}
	if len(cs) == 0 {
		return nil, nil
	}
	return func(d doc) bool {
		musts, shoulds, hit := 0, 0, false
		for _, c := range cs {
			ok := c.m(d)
			switch {
			case c.occur == '+' && !ok, c.occur == '-' && ok:
				return false
			case c.occur == '+':
				musts++
			case c.occur == ' ':
				shoulds++
				hit = hit || ok
			}
		}
		return hit || musts > 0 || shoulds == 0
	}, nil
}

// clause implements the rule Clause.
func (l *lucene) clause(field string) (matcher, error) {
	if (l.at("TERM") || l.at("*")) && l.ps[l.i+1].name == ":" {
		name, err := discardEscapes(l.ps[l.i].text)
		if err != nil {
			return nil, err
		}
		field = name
		l.i += 2
	}
	if !l.eat("(") {
		return l.term(field)
	}
	m, err := l.query(field)
	if err != nil {
		return nil, err
	}
	if !l.eat(")") {
		return nil, errSyntax
	}
	return m, l.boost()
}

// boost reads a caret, which must be followed by a number.
func (l *lucene) boost() error {
	if l.eat("^") && !l.eat("NUMBER") {
		return errSyntax
	}
	return nil
}

// term implements the rule Term.
func (l *lucene) term(field string) (matcher, error) {
	p := l.ps[l.i]
	if p.name == "EOF" {
		return nil, errSyntax
	}
	l.i++
	fuzzy := ""
	suffix := func() error {
		before := l.at("^")
		if err := l.boost(); err != nil {
			return err
		}
		if l.at("FUZZY") {
			fuzzy = l.ps[l.i].text
			l.i++
			if !before {
				if err := l.boost(); err != nil {
					return err
				}
			}
		}
		if x, err := strconv.ParseFloat(strings.TrimPrefix(fuzzy, "~"), 64); p.name == "TERM" && err == nil && x > 1 &&
			x != float64(int(x)) {
			return errSyntax
		}
		return nil
	}
	switch p.name {
	case "TERM", "PREFIX", "WILD", "*", "BAREOPER":
		if err := suffix(); err != nil {
			return nil, err
		}
		if p.name == "BAREOPER" {
			p.text = p.text[:1]
		}
		return leaf(p.name, field, p.text)
	case "REGEXP":
		return nil, errSyntax // Fess: an invalid query
	case "QUOTED":
		// A slop comes before a boost.
		l.eat("FUZZY")
		if err := l.boost(); err != nil {
			return nil, err
		}
		return leaf("QUOTED", field, p.text[1:len(p.text)-1])
	case "[", "{":
		return l.bounds(field)
	}
	return nil, errSyntax
}

// bounds implements the part of the rule Term that parses a range.
func (l *lucene) bounds(field string) (matcher, error) {
	for _, want := range []string{"", "TO", ""} {
		q := l.ps[l.i]
		ok := q.name == "TO" || want == "" && (q.name == "GOOP" || q.name == "RQUOTED")
		if !ok {
			return nil, errSyntax
		}
		text := q.text
		if q.name == "RQUOTED" {
			text = text[1 : len(text)-1]
		}
		if _, err := discardEscapes(text); err != nil {
			return nil, err
		}
		l.i++
	}
	if !l.eat("]") && !l.eat("}") {
		return nil, errSyntax
	}
	return func(doc) bool { return field == "content_length" }, l.boost()
}

// discardEscapes implements QueryParserBase.discardEscapeChar.
func discardEscapes(s string) (string, error) {
	rs := []rune(s)
	var out []rune
	for i := 0; i < len(rs); i++ {
		if rs[i] != '\\' {
			out = append(out, rs[i])
			continue
		}
		if i++; i == len(rs) {
			return "", errSyntax
		}
		if rs[i] != 'u' {
			out = append(out, rs[i])
			continue
		}
		if len(rs) < i+5 {
			return "", errSyntax
		}
		x, err := strconv.ParseUint(string(rs[i+1:i+5]), 16, 16)
		if err != nil {
			return "", errSyntax
		}
		out = append(out, rune(x))
		i += 4
	}
	return string(out), nil
}
