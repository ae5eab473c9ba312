package query

import (
	"strings"
	"unicode/utf8"
)

// A kind is a kind of token in Lucene's classic query grammar (QueryParser.jj).
type kind int

const (
	tokEOF kind = iota
	tokAnd
	tokOr
	tokNot
	tokPlus
	tokMinus
	tokBareOper // an operator character before a blank, which is a word
	tokLParen
	tokRParen
	tokColon
	tokStar
	tokCaret
	tokQuoted
	tokTerm
	tokFuzzy
	tokPrefix
	tokWild
	tokRegexp
	tokRangeIn  // [
	tokRangeEx  // {
	tokRangeTo  // TO
	tokRangeEnd // ]
	tokRangeOut // }
	tokGoop     // a bound
	tokGoopQuoted
	tokNumber
)

// A token is a token of a query.
type token struct {
	kind kind
	text string // as written in the query
	pos  int    // byte offset
}

// A lexer splits a query into tokens.
type lexer struct {
	s    string
	i    int
	toks []token
}

// lex returns the tokens of s, of which the last has kind tokEOF. The error is
// a *syntaxError.
func lex(s string) ([]token, error) {
	l := lexer{s: s}
	for {
		l.i += blanks(l.s[l.i:])
		if l.i == len(l.s) {
			l.add(tokEOF, 0)
			return l.toks, nil
		}
		if err := l.next(); err != nil {
			return nil, err
		}
	}
}

// add adds the next n bytes as a token.
func (l *lexer) add(k kind, n int) {
	l.toks = append(l.toks, token{kind: k, text: l.s[l.i : l.i+n], pos: l.i})
	l.i += n
}

// fail returns an error at byte offset pos.
func (l *lexer) fail(pos int, msg string) error {
	return &syntaxError{char: utf8.RuneCountInString(l.s[:pos]) + 1, msg: msg}
}

// next reads the token at l.i, which is not a blank.
func (l *lexer) next() error {
	switch c := l.s[l.i]; c {
	case '(':
		l.add(tokLParen, 1)
	case ')':
		l.add(tokRParen, 1)
	case ':':
		l.add(tokColon, 1)
	case '+', '-', '!':
		l.operator(c)
	case '^':
		return l.boost()
	case '"':
		return l.quoted()
	case '[':
		l.add(tokRangeIn, 1)
		return l.rangeBody(l.i - 1)
	case '{':
		l.add(tokRangeEx, 1)
		return l.rangeBody(l.i - 1)
	case '~':
		n, err := l.word(l.i+1, false)
		if err != nil {
			return err
		}
		l.add(tokFuzzy, 1+n)
	case '/':
		end := regexpEnd(l.s[l.i:])
		if end < 0 {
			return l.fail(l.i, `"/" begins a regular expression that does not end; put a backslash before it or quote the word`)
		}
		l.add(tokRegexp, end)
	case ']', '}':
		return l.fail(l.i, `"`+string(c)+`" closes no range; put a backslash before it`)
	default:
		return l.term()
	}
	return nil
}

// operator reads an operator character and the blank after it, if any.
func (l *lexer) operator(c byte) {
	if n := blank(l.s[l.i+1:]); n > 0 {
		l.add(tokBareOper, 1+n)
		return
	}
	switch c {
	case '+':
		l.add(tokPlus, 1)
	case '-':
		l.add(tokMinus, 1)
	default:
		l.add(tokNot, 1)
	}
}

// boost reads a caret and the number after it.
func (l *lexer) boost() error {
	at := l.i
	l.add(tokCaret, 1)
	n := digits(l.s[l.i:])
	if n > 0 && strings.HasPrefix(l.s[l.i+n:], ".") {
		if f := digits(l.s[l.i+n+1:]); f > 0 {
			n += 1 + f
		}
	}
	if n == 0 {
		return l.fail(at, `"^" needs a number right behind it, for example foo^2`)
	}
	l.add(tokNumber, n)
	return nil
}

// quoted reads a phrase with its quotes.
func (l *lexer) quoted() error {
	for j := l.i + 1; j < len(l.s); j++ {
		switch l.s[j] {
		case '\\':
			j++
		case '"':
			l.add(tokQuoted, j+1-l.i)
			return nil
		}
	}
	return l.fail(l.i, `the quote that opens here is never closed; close it, or put a backslash before it`)
}

// term reads a word, which may have wildcards, or an operator that is spelled
// as a word.
func (l *lexer) term() error {
	n, err := l.word(l.i, true)
	if err != nil {
		return err
	}
	text := l.s[l.i : l.i+n]
	switch text {
	case "AND", "&&":
		l.add(tokAnd, n)
	case "OR", "||":
		l.add(tokOr, n)
	case "NOT":
		l.add(tokNot, n)
	case "*":
		l.add(tokStar, n)
	default:
		switch wild := wildcards(text); {
		case wild == 0:
			l.add(tokTerm, n)
		case wild == 1 && text[n-1] == '*':
			l.add(tokPrefix, n)
		default:
			l.add(tokWild, n)
		}
	}
	return nil
}

// word returns the length of the run of characters from i that may be inside a
// word.
func (l *lexer) word(i int, wild bool) (int, error) {
	j := i
	for j < len(l.s) {
		switch c := l.s[j]; c {
		case '\\':
			_, n := utf8.DecodeRuneInString(l.s[j+1:])
			if n == 0 {
				return 0, l.fail(j, "a backslash must not be the last character; double it")
			}
			j += 1 + n
			continue
		case '(', ')', ':', '^', '[', ']', '"', '{', '}', '~', '!', '/':
			return j - i, nil
		case '*', '?':
			if !wild {
				return j - i, nil
			}
		default:
			if blank(l.s[j:]) > 0 {
				return j - i, nil
			}
		}
		j++
	}
	return j - i, nil
}

// rangeBody reads the bounds and the closing bracket of a range that begins at
// offset open.
func (l *lexer) rangeBody(open int) error {
	for {
		l.i += blanks(l.s[l.i:])
		if l.i == len(l.s) {
			return l.fail(open, `the range that opens here is never closed; write [LOW TO HIGH], or put a backslash before it`)
		}
		switch l.s[l.i] {
		case ']':
			l.add(tokRangeEnd, 1)
			return nil
		case '}':
			l.add(tokRangeOut, 1)
			return nil
		}
		n := strings.IndexAny(l.s[l.i:], " ]}")
		if n < 0 {
			n = len(l.s) - l.i
		}
		switch q := goopQuoted(l.s[l.i:]); {
		case q >= n && q > 0:
			l.add(tokGoopQuoted, q)
		case l.s[l.i:l.i+n] == "TO":
			l.add(tokRangeTo, n)
		default:
			l.add(tokGoop, n)
		}
	}
}

// goopQuoted returns the length of the quoted bound at the beginning of s, 0 if
// there is none.
func goopQuoted(s string) int {
	if s[0] != '"' {
		return 0
	}
	end := 0
	for j := 1; j < len(s); j++ {
		if s[j] != '"' || j == 1 {
			if s[j] == '"' {
				return 0
			}
			continue
		}
		end = j + 1
		if s[j-1] != '\\' {
			break
		}
	}
	return end
}

// regexpEnd returns the length of the regular expression at the beginning of s,
// -1 if it has no end.
func regexpEnd(s string) int {
	for j := 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			if strings.HasPrefix(s[j+1:], "/") {
				j++
			}
		case '/':
			return j + 1
		}
	}
	return -1
}

// wildcards returns the number of asterisks and question marks in s that are
// not escaped.
func wildcards(s string) int {
	n := 0
	for j := 0; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case '*', '?':
			n++
		}
	}
	return n
}

// blank returns the length of the blank at the beginning of s, 0 if there is
// none.
func blank(s string) int {
	switch {
	case s == "":
		return 0
	case s[0] == ' ' || s[0] == '\t' || s[0] == '\n' || s[0] == '\r':
		return 1
	case strings.HasPrefix(s, "\u3000"):
		return len("\u3000")
	}
	return 0
}

// blanks returns the length of the run of blanks at the beginning of s.
func blanks(s string) int {
	n := 0
	for {
		w := blank(s[n:])
		if w == 0 {
			return n
		}
		n += w
	}
}

// digits returns the length of the run of digits at the beginning of s.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
