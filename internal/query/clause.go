package query

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of the numbers in a query.
const (
	maxSlop  = 1000
	maxBoost = 1e6
)

// clause parses one clause: an optional field, and a group or a term. It
// returns nil for an empty clause.
func (p *parser) clause(field string, depth int) (Node, error) {
	if p.clauses++; p.clauses > maxClauses {
		return nil, &limitError{fmt.Sprintf("it has more than %d clauses", maxClauses)}
	}
	if t := p.peek(); (t.kind == tokTerm || t.kind == tokStar) && p.toks[p.i+1].kind == tokColon {
		name, err := p.unescape(t, t.text)
		if err != nil {
			return nil, err
		}
		field = name
		p.take()
		p.take()
	}
	if !p.accept(tokLParen) {
		return p.term(field)
	}
	n, err := p.query(field, depth+1)
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != tokRParen {
		if t.kind == tokEOF {
			return nil, p.fail(t, `a parenthesis is never closed; close it, or put a backslash before "("`)
		}
		return nil, p.unexpected(t)
	}
	p.take()
	return p.boosted(n), nil
}

// term parses a word, a phrase or a range with its modifiers.
func (p *parser) term(field string) (Node, error) {
	t := p.take()
	switch t.kind {
	case tokQuoted:
		return p.phrase(field, t)
	case tokRangeIn, tokRangeEx:
		return p.rangeTerm(field, t)
	case tokRegexp:
		return nil, p.fail(t, "regular expressions are not supported; put the word in quotes")
	case tokTerm, tokStar, tokPrefix, tokWild, tokBareOper:
	default:
		if t.kind != tokEOF {
			p.i--
		}
		return nil, p.unexpected(t)
	}
	caret := p.number()
	var fuzzy *token
	if f := p.peek(); f.kind == tokFuzzy {
		p.take()
		fuzzy = &f
		if caret == nil {
			caret = p.number()
		}
	}
	n, err := p.word(field, t, fuzzy)
	if err != nil || n == nil {
		return nil, err
	}
	return boost(n, caret), nil
}

// word returns the node of a word.
func (p *parser) word(field string, t token, fuzzy *token) (Node, error) {
	name, prefix := target(field)
	if field == "sort" {
		_, err := p.unescape(t, t.text)
		return nil, err
	}
	switch t.kind {
	case tokBareOper:
		return Term{name, prefix + t.text[:1]}, nil
	case tokStar:
		if field == "*" || name == "" && prefix == "" {
			return All{}, nil
		}
		return Wildcard{name, prefix + "*"}, nil
	case tokWild:
		if prefix != "" {
			return Wildcard{name, escape(prefix) + t.text}, nil
		}
		return Wildcard{name, t.text}, nil
	}
	text, err := p.unescape(t, t.text)
	switch {
	case err != nil:
		return nil, err
	case t.kind == tokPrefix:
		return Prefix{name, prefix + strings.TrimSuffix(text, "*")}, nil
	case fuzzy != nil:
		n, err := p.edits(*fuzzy, utf8.RuneCountInString(text))
		return Fuzzy{name, prefix + text, n}, err
	case len(text) > 1 && strings.HasSuffix(text, "*"):
		// In Fess, an escaped asterisk also makes a prefix
		// (query.replace.term.with.prefix.query).
		return Prefix{name, prefix + strings.TrimSuffix(text, "*")}, nil
	}
	return Term{name, prefix + text}, nil
}

// target returns the field to search in and the text to put before the value.
// An unknown field is part of the text.
func target(field string) (name, prefix string) {
	switch {
	case field == "" || isField(field):
		return field, ""
	}
	return "", field + ":"
}

// phrase returns the node of a quoted text.
func (p *parser) phrase(field string, t token) (Node, error) {
	slop := 0
	if f := p.peek(); f.kind == tokFuzzy {
		p.take()
		if x, err := strconv.ParseFloat(f.text[1:], 64); err == nil && x > 0 {
			slop = int(min(x, maxSlop))
		}
	}
	caret := p.number()
	text, err := p.unescape(t, t.text[1:len(t.text)-1])
	if err != nil {
		return nil, err
	}
	name, prefix := target(field)
	if strings.TrimSpace(text) == "" || field == "sort" {
		return nil, nil
	}
	return boost(Phrase{name, prefix + text, slop}, caret), nil
}

// rangeTerm returns the node of a range after its opening bracket.
func (p *parser) rangeTerm(field string, open token) (Node, error) {
	first := p.i
	var bounds []string // with the TO between them
	for p.peek().kind != tokRangeEnd && p.peek().kind != tokRangeOut {
		t := p.take()
		text := t.text
		switch len(bounds) {
		case 0, 2:
			if t.kind == tokGoopQuoted {
				text = text[1 : len(text)-1]
			}
		case 1:
			if t.kind != tokRangeTo {
				return nil, p.fail(t, `"TO" is missing between the bounds of a range; write [LOW TO HIGH]`)
			}
		default:
			return nil, p.fail(t, `a range has two bounds; write [LOW TO HIGH]`)
		}
		text, err := p.unescape(t, text)
		if err != nil {
			return nil, err
		}
		bounds = append(bounds, text)
	}
	end := p.take()
	if len(bounds) < 3 {
		return nil, p.fail(end, `a range has two bounds; write [LOW TO HIGH]`)
	}
	caret := p.number()
	if !isField(field) { // Fess searches for the range as text
		return boost(Term{"", open.text + strings.Join(bounds, " ") + end.text}, caret), nil
	}
	for i := range bounds {
		if t := p.toks[first+i]; t.kind == tokGoop && t.text == "*" {
			bounds[i] = "" // open
		}
	}
	r := Range{Field: field, Low: bounds[0], High: bounds[2], LowExcl: open.kind == tokRangeEx,
		HighExcl: end.kind == tokRangeOut}
	return boost(r, caret), nil
}

// edits returns how many edits a fuzzy word of n runes allows (Lucene,
// FuzzyQuery.floatToEdits).
func (p *parser) edits(t token, n int) (int, error) {
	x, err := strconv.ParseFloat(t.text[1:], 64)
	switch {
	case err != nil:
		return 2, nil
	case x >= 1 && x != float64(int(min(x, 1e9))):
		return 0, p.fail(t, `"~" takes 0, 1 or 2 edits`)
	case x >= 1:
		return int(min(x, 2)), nil
	case x > 0:
		return min(int((1-x)*float64(n)), 2), nil
	}
	return 0, nil
}

// number reads a caret and its number. It returns nil if there is no caret.
func (p *parser) number() *float64 {
	if !p.accept(tokCaret) {
		return nil
	}
	// The lexer returns no caret without a number. ParseFloat returns infinity
	// for a number that is too large for a float64.
	x, _ := strconv.ParseFloat(p.take().text, 64)
	x = min(x, maxBoost)
	return &x
}

// boosted reads an optional boost and applies it to a node, which may be nil.
func (p *parser) boosted(n Node) Node {
	caret := p.number()
	if n == nil {
		return nil
	}
	return boost(n, caret)
}

// boost returns a node with a boost. A factor of nil or 1 is no boost.
func boost(n Node, factor *float64) Node {
	if factor == nil || *factor == 1 {
		return n
	}
	return Boost{n, *factor}
}

// unescape removes the backslashes of text, a part of token t, and decodes
// \uXXXX (Lucene, QueryParserBase.discardEscapeChar).
func (p *parser) unescape(t token, text string) (string, error) {
	if !strings.Contains(text, `\`) {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			return "", p.fail(t, "a backslash must not be the last character; double it")
		}
		if text[i] != 'u' {
			b.WriteByte(text[i])
			continue
		}
		if i+5 > len(text) {
			return "", p.fail(t, `"\u" needs four hexadecimal digits`)
		}
		x, err := strconv.ParseUint(text[i+1:i+5], 16, 16)
		if err != nil {
			return "", p.fail(t, `"\u" needs four hexadecimal digits`)
		}
		b.WriteRune(rune(x))
		i += 4
	}
	return b.String(), nil
}
