package query

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Limits of a query.
const (
	maxBytes   = 10_000
	maxClauses = 1024 // as Lucene's own limit
	maxDepth   = 64   // of parentheses
)

// A syntaxError describes an error in a query and its position.
type syntaxError struct {
	char int // counted from 1
	msg  string
}

// Error returns the position and the message.
func (e *syntaxError) Error() string { return fmt.Sprintf("query, character %d: %s", e.char, e.msg) }

// Unwrap makes a syntaxError an Invalid error.
func (e *syntaxError) Unwrap() error { return errkind.Invalid }

// A limitError describes the limit that a query exceeds.
type limitError struct{ msg string }

// Error returns the message.
func (e *limitError) Error() string { return "query: " + e.msg }

// Unwrap makes a limitError an Invalid error.
func (e *limitError) Unwrap() error { return errkind.Invalid }

// parseTree returns the tree of a query; see [Parse].
func parseTree(s string) (Node, error) {
	n, err := parseOnce(s)
	if _, ok := err.(*syntaxError); ok {
		field, offset := wholeField(s)
		if n, err := parse(escape(strings.ToValidUTF8(s[offset:], "\uFFFD")), field); err == nil {
			return n, nil
		}
	}
	return n, err
}

// parseOnce is like parseTree, but returns any syntax error.
func parseOnce(s string) (Node, error) {
	if len(s) > maxBytes {
		return nil, tooLong(s)
	}
	field, offset := wholeField(s)
	n, err := parse(strings.ToValidUTF8(s[offset:], "\uFFFD"), field)
	if e, ok := err.(*syntaxError); ok {
		e.char += utf8.RuneCountInString(s[blanks(s):offset])
	}
	return n, err
}

// tooLong returns the error for a query of more than maxBytes bytes.
func tooLong(s string) error {
	return &limitError{fmt.Sprintf("it has %d bytes; %d are allowed", len(s), maxBytes)}
}

// wholeField returns the field that a prefix such as "allintitle:" sets for the
// whole query, or "", and the offset after the prefix and the blanks before it.
func wholeField(s string) (field string, offset int) {
	offset = blanks(s)
	switch {
	case strings.HasPrefix(s[offset:], allInTitle):
		return "title", offset + len(allInTitle)
	case strings.HasPrefix(s[offset:], allInURL):
		return "inurl", offset + len(allInURL)
	}
	return "", offset
}

// parse parses a query without a second attempt. Its errors are *syntaxError
// and *limitError.
func parse(s, field string) (Node, error) {
	toks, err := lex(s)
	if err != nil {
		return nil, err
	}
	p := parser{s: s, toks: toks, field: field}
	if p.peek().kind == tokEOF {
		return All{}, nil
	}
	n, err := p.query(field, 0)
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != tokEOF {
		return nil, p.unexpected(t)
	}
	if n == nil {
		return All{}, nil
	}
	return n, nil
}

// A parser parses the tokens of a query.
type parser struct {
	s       string
	toks    []token
	i       int
	field   string // the field of words without one
	clauses int
}

func (p *parser) peek() token { return p.toks[p.i] }

// take returns the next token and advances, but not beyond the last token.
func (p *parser) take() token {
	t := p.toks[p.i]
	if t.kind != tokEOF {
		p.i++
	}
	return t
}

// accept advances if the next token is of kind k, and reports whether it did.
func (p *parser) accept(k kind) bool {
	if p.peek().kind != k {
		return false
	}
	p.take()
	return true
}

// fail returns an error at a token.
func (p *parser) fail(t token, msg string) error {
	return &syntaxError{char: utf8.RuneCountInString(p.s[:t.pos]) + 1, msg: msg}
}

// unexpected returns the error for a token in a place where it is not allowed.
func (p *parser) unexpected(t token) error {
	const hint = "; to search for it as text, put it in quotes"
	switch t.kind {
	case tokEOF:
		if p.i > 0 {
			if last := p.toks[p.i-1]; last.kind == tokAnd || last.kind == tokOr || last.kind == tokNot {
				return p.fail(last, fmt.Sprintf("%s needs something behind it"+hint, last.text))
			}
		}
		return p.fail(t, "the query ends where something is still missing")
	case tokAnd, tokOr, tokNot:
		return p.fail(t, fmt.Sprintf("%s stands where a word is expected"+hint, t.text))
	case tokRParen:
		return p.fail(t, `")" closes no parenthesis; put a backslash before it`)
	}
	return p.fail(t, fmt.Sprintf("%q is not expected here; put a backslash before it", strings.TrimSpace(t.text)))
}

// An occur is how a clause counts (Lucene's BooleanClause.Occur).
type occur int

const (
	must occur = iota
	should
	mustNot
)

// A clause is a part of a query between operators.
type clause struct {
	node  Node
	occur occur
}

// query parses clauses up to a closing parenthesis or the end. It returns nil
// if all of them are empty.
func (p *parser) query(field string, depth int) (Node, error) {
	if depth > maxDepth {
		return nil, &limitError{fmt.Sprintf("parentheses are nested deeper than %d", maxDepth)}
	}
	var cs []clause
	for first := true; first || p.more(); first = false {
		conj := p.peek().kind
		if !first && (conj == tokAnd || conj == tokOr) {
			p.take()
		} else {
			conj = tokEOF
		}
		not := p.modifier()
		n, err := p.clause(field, depth)
		if err != nil {
			return nil, err
		}
		cs = addClause(cs, conj, not, n)
	}
	return combine(cs), nil
}

// more reports whether another clause follows.
func (p *parser) more() bool {
	switch p.peek().kind {
	case tokEOF, tokRParen, tokColon, tokCaret, tokFuzzy:
		return false
	}
	return true
}

// modifier reads an operator before a clause and reports whether it negates the
// clause.
func (p *parser) modifier() bool {
	switch p.peek().kind {
	case tokPlus:
		p.take()
	case tokMinus, tokNot:
		p.take()
		return true
	}
	return false
}

// addClause appends a clause as Lucene's classic parser does with AND as the
// default operator (QueryParserBase.addClause): AND makes the previous clause a
// must, and OR makes it a should, unless it is negated. n is nil for an empty
// clause.
func addClause(cs []clause, conj kind, not bool, n Node) []clause {
	if len(cs) > 0 && cs[len(cs)-1].occur != mustNot {
		switch conj {
		case tokAnd:
			cs[len(cs)-1].occur = must
		case tokOr:
			cs[len(cs)-1].occur = should
		}
	}
	switch {
	case n == nil:
		return cs
	case not:
		return append(cs, clause{n, mustNot})
	case conj == tokOr:
		return append(cs, clause{n, should})
	}
	return append(cs, clause{n, must})
}

// combine returns one node for clauses, nil if there are none. As in Fess's
// engine, a should is required only if there is no must, and negated clauses
// alone match all other documents.
func combine(cs []clause) Node {
	var and And
	var shoulds, nots []Node
	for _, c := range cs {
		switch c.occur {
		case must:
			and.Nodes = append(and.Nodes, c.node)
		case should:
			shoulds = append(shoulds, c.node)
		case mustNot:
			nots = append(nots, Not{c.node})
		}
	}
	switch {
	case len(and.Nodes) > 0:
		and.Optional = shoulds
	case len(shoulds) == 1:
		and.Nodes = shoulds
	case len(shoulds) > 1:
		and.Nodes = []Node{Or{shoulds}}
	}
	and.Nodes = append(and.Nodes, nots...)
	switch {
	case len(and.Nodes) == 0:
		return nil
	case len(and.Nodes) == 1 && len(and.Optional) == 0:
		return and.Nodes[0]
	}
	return and
}
