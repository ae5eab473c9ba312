package fesstest

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// This file implements Lucene's classic query parser with AND as the default
// operator, as Fess 15.4 uses it. It follows Lucene's grammar and shares no code
// with package query, so that each can be used to check the other.

// An occur is how a clause counts in its group.
type occur int

const (
	must occur = iota
	should
	mustNot
)

// A clause is a node and how it counts.
type clause struct {
	occur occur
	node  node
}

// A node is a group (clauses set) or a leaf.
type node struct {
	clauses []clause

	kind  leafKind
	field string // "" is the default field
	text  string
	high  string // of a range; text is its low end
	open  [2]bool
	boost float64 // of a leaf; 0 if it has none, which counts as 1
}

// A leafKind is a kind of leaf.
type leafKind int

const (
	group leafKind = iota
	term
	phrase
	prefix
	wildcard
	fuzzy
	interval
	everything
)

var errSyntax = errors.New("cannot parse the query")

// A conjunction stands between two clauses.
type conjunction int

const (
	noConj conjunction = iota
	andConj
	orConj
)

// A parser reads tokens with one token of lookahead.
type parser struct {
	in    string
	tok   token
	next  token
	depth int
}

// maxDepth is the maximum nesting of groups.
const maxDepth = 500

// parse parses a whole query.
func parse(s string) (node, error) {
	p := &parser{in: s}
	if err := p.advance(); err != nil {
		return node{}, err
	}
	if err := p.advance(); err != nil {
		return node{}, err
	}
	n, err := p.query("")
	if err != nil {
		return node{}, err
	}
	if p.tok.kind != tokEOF {
		return node{}, errSyntax
	}
	return n, nil
}

func (p *parser) advance() error {
	p.tok = p.next
	var err error
	p.next, p.in, err = lex(p.in)
	return err
}

// query parses clauses up to a closing parenthesis or the end. It follows
// QueryParserBase.addClause.
func (p *parser) query(field string) (node, error) {
	if p.depth++; p.depth > maxDepth {
		return node{}, errSyntax
	}
	defer func() { p.depth-- }()
	var clauses []clause
	for first := true; first || p.tok.kind != tokEOF && p.tok.kind != tokClose; first = false {
		conj := noConj
		if !first {
			switch p.tok.kind {
			case tokAnd:
				conj = andConj
			case tokOr:
				conj = orConj
			}
			if conj != noConj {
				if err := p.advance(); err != nil {
					return node{}, err
				}
			}
		}
		prohibited := false
		switch p.tok.kind {
		case tokPlus, tokMinus, tokNot:
			prohibited = p.tok.kind != tokPlus
			if err := p.advance(); err != nil {
				return node{}, err
			}
		}
		n, err := p.clause(field)
		if err != nil {
			return node{}, err
		}
		if last := len(clauses) - 1; last >= 0 && clauses[last].occur != mustNot {
			switch conj {
			case andConj:
				clauses[last].occur = must
			case orConj:
				clauses[last].occur = should
			}
		}
		c := clause{must, n}
		if prohibited {
			c.occur = mustNot
		} else if conj == orConj {
			c.occur = should
		}
		clauses = append(clauses, c)
	}
	return node{clauses: clauses}, nil
}

// clause parses a leaf or a group, with its field and its boost.
func (p *parser) clause(field string) (node, error) {
	if (p.tok.kind == tokTerm || p.tok.kind == tokStar) && p.next.kind == tokColon {
		field = unescape(p.tok.text)
		for range 2 {
			if err := p.advance(); err != nil {
				return node{}, err
			}
		}
	}
	if p.tok.kind == tokOpen {
		if err := p.advance(); err != nil {
			return node{}, err
		}
		n, err := p.query(field)
		if err != nil {
			return node{}, err
		}
		if p.tok.kind != tokClose {
			return node{}, errSyntax
		}
		if err := p.advance(); err != nil {
			return node{}, err
		}
		return n, p.boost(&n) // of a group, without an effect
	}
	return p.leaf(field)
}

// leaf parses a term, a phrase or a range.
func (p *parser) leaf(field string) (node, error) {
	n := node{field: field, text: p.tok.text}
	switch p.tok.kind {
	case tokTerm:
		n.kind, n.text = term, unescape(p.tok.text)
	case tokBareOperator:
		n.kind = term
	case tokQuoted:
		n.kind, n.text = phrase, unescape(p.tok.text)
	case tokPrefix:
		n.kind, n.text = prefix, unescape(strings.TrimSuffix(p.tok.text, "*"))
	case tokWildcard:
		n.kind = wildcard
	case tokStar:
		n.kind, n.text = wildcard, "*"
		if field == "*" {
			n.kind = everything
		}
	case tokRange:
		n.kind, n.text, n.high, n.open = interval, p.tok.text, p.tok.high, p.tok.open
	default: // operators, closing brackets, regular expressions (Fess rejects these), the end
		return node{}, errSyntax
	}
	isTerm := n.kind == term
	if err := p.advance(); err != nil {
		return node{}, err
	}
	for range 2 { // ^ and ~ in either order
		if p.tok.kind == tokFuzzy {
			if isTerm {
				n.kind = fuzzy
			}
			if err := p.advance(); err != nil {
				return node{}, err
			}
		}
		if err := p.boost(&n); err != nil {
			return node{}, err
		}
	}
	return n, nil
}

// boost reads an optional boost of a node.
func (p *parser) boost(n *node) (err error) {
	if p.tok.kind != tokBoost {
		return nil
	}
	if n.boost, err = strconv.ParseFloat(p.tok.text[1:], 64); err != nil {
		return err
	}
	return p.advance()
}

// unescape removes backslashes that are not escaped themselves.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		b.WriteString(s[i : i+n])
		i += n
	}
	return b.String()
}
