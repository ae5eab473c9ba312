package fesstest

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// A tokenKind is a kind of token in Lucene's classic grammar.
type tokenKind int

const (
	tokEOF tokenKind = iota
	tokAnd
	tokOr
	tokNot
	tokPlus
	tokMinus
	tokBareOperator // + - ! before a blank, which is a word
	tokOpen
	tokClose
	tokColon
	tokStar
	tokBoost
	tokQuoted
	tokTerm
	tokFuzzy
	tokPrefix
	tokWildcard
	tokRegexp
	tokRange
)

// A token is one token of a query. A whole range is one token, because it has
// its own grammar inside.
type token struct {
	kind tokenKind
	text string
	high string
	open [2]bool
}

// blanks are the characters that Lucene treats as white space.
const blanks = " \t\n\r\u3000"

// The regular parts of the grammar.
var (
	boostForm = regexp.MustCompile(`^\^[0-9]+(\.[0-9]+)?`)
	fuzzyForm = regexp.MustCompile(`^~[\p{L}\p{N}.]*`) // anything but a number means the default
	rangeForm = regexp.MustCompile(`^([\[{]) *("(?:[^"\\]|\\.)*"|[^ \]}]+) +TO +("(?:[^"\\]|\\.)*"|[^ \]}]+) *([\]}])`)
)

// lex returns the first token of s and the rest of s.
func lex(s string) (token, string, error) {
	s = strings.TrimLeft(s, blanks)
	if s == "" {
		return token{}, "", nil
	}
	one := func(k tokenKind) (token, string, error) { return token{kind: k, text: s[:1]}, s[1:], nil }
	switch s[0] {
	case '(':
		return one(tokOpen)
	case ')':
		return one(tokClose)
	case ':':
		return one(tokColon)
	case '+', '-', '!':
		if strings.TrimLeft(s[1:], blanks) != s[1:] {
			return one(tokBareOperator)
		}
		return one(map[byte]tokenKind{'+': tokPlus, '-': tokMinus, '!': tokNot}[s[0]])
	case '^':
		return match(tokBoost, boostForm, s)
	case '~':
		return match(tokFuzzy, fuzzyForm, s)
	case '"':
		return lexQuoted(s)
	case '[', '{':
		m := rangeForm.FindStringSubmatch(s)
		if m == nil {
			return token{}, "", errSyntax
		}
		t := token{kind: tokRange, text: strings.Trim(m[2], `"`), high: strings.Trim(m[3], `"`),
			open: [2]bool{m[1] == "{", m[4] == "}"}}
		return t, s[len(m[0]):], nil
	case '/':
		if i := strings.IndexByte(s[1:], '/'); i >= 0 {
			return token{kind: tokRegexp}, s[i+2:], nil
		}
		return token{}, "", errSyntax
	case ']', '}':
		return token{}, "", errSyntax
	}
	return lexWord(s)
}

func match(k tokenKind, form *regexp.Regexp, s string) (token, string, error) {
	m := form.FindString(s)
	if m == "" {
		return token{}, "", errSyntax
	}
	return token{kind: k, text: m}, s[len(m):], nil
}

func lexQuoted(s string) (token, string, error) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return token{kind: tokQuoted, text: s[1:i]}, s[i+1:], nil
		}
	}
	return token{}, "", errSyntax
}

// lexWord reads a term, an operator that is spelled as a word, a prefix or a
// wildcard.
func lexWord(s string) (token, string, error) {
	i, wild := 0, false
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\\' {
			if i+1 == len(s) {
				return token{}, "", errSyntax
			}
			_, n = utf8.DecodeRuneInString(s[i+1:])
			i += n + 1
			continue
		}
		if strings.ContainsRune(blanks, r) || strings.ContainsRune(`!():^[]"{}~/`, r) || i == 0 &&
			(r == '+' || r == '-') {
			break
		}
		wild = wild || r == '*' || r == '?'
		i += n
	}
	if i == 0 {
		return token{}, "", errSyntax
	}
	t := token{kind: tokTerm, text: s[:i]}
	switch {
	case t.text == "AND" || t.text == "&&":
		t.kind = tokAnd
	case t.text == "OR" || t.text == "||":
		t.kind = tokOr
	case t.text == "NOT":
		t.kind = tokNot
	case t.text == "*":
		t.kind = tokStar
	case wild && prefixForm.MatchString(t.text):
		t.kind = tokPrefix
	case wild:
		t.kind = tokWildcard
	}
	return t, s[i:], nil
}

// prefixForm matches a word whose only wildcard is an asterisk at its end.
var prefixForm = regexp.MustCompile(`^(?:[^*?\\]|\\.)+\*$`)
