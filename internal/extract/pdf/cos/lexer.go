package cos

import "bytes"

// A TokenKind is the kind of a [Token].
type TokenKind uint8

// Kinds of tokens. A token of no other kind is a keyword.
const (
	TokEOF TokenKind = iota
	TokNumber
	TokString
	TokName
	TokKeyword
	TokOpenArray
	tokCloseArray
	TokOpenDict
	tokCloseDict
)

// A Token is a lexical unit (ISO 32000-1, 7.2). Its Text may alias the source.
type Token struct {
	Kind  TokenKind
	Whole bool    // a number without a decimal point
	Num   float64 // of numbers, finite
	Text  []byte  // of keywords, and of strings and names decoded
}

// tokenSteps is the number of steps for a token, in addition to its bytes.
const tokenSteps = 2

// maxName is the number of significant bytes of a name. The format permits 127
// (ISO 32000-1, Annex C).
const maxName = 1000

// A Lexer splits bytes into tokens. It never fails: invalid input is a keyword.
// When its budget is exhausted, it returns TokEOF.
type Lexer struct {
	Src []byte
	Pos int // position of the next token
	mem Share
}

// NewLexer returns a lexer that begins at a position of src. The work is taken
// from a budget, and so is the memory of its tokens and objects, until Free is
// called.
func NewLexer(src []byte, pos int, b *Budget) *Lexer {
	return &Lexer{Src: src, Pos: pos, mem: b.Share()}
}

// Free releases the memory of all tokens and objects so far.
func (l *Lexer) Free() { l.mem.Free() }

// alloc reserves memory and spends the steps to fill it.
func (l *Lexer) alloc(n int) bool { return l.mem.Alloc(n) && l.mem.b.Spend(n/8) }

// IsSpace reports whether c separates tokens (ISO 32000-1, table 1).
func IsSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func isDelimiter(c byte) bool {
	switch c {
	case '(', ')', '<', '>', '[', ']', '{', '}', '/', '%':
		return true
	}
	return false
}

func isRegular(c byte) bool { return !IsSpace(c) && !isDelimiter(c) }

// skipSpace moves to the next byte that is neither blank nor in a comment.
func (l *Lexer) skipSpace() {
	for l.Pos < len(l.Src) {
		switch c := l.Src[l.Pos]; {
		case IsSpace(c):
			l.Pos++
		case c == '%':
			for l.Pos < len(l.Src) && l.Src[l.Pos] != '\n' && l.Src[l.Pos] != '\r' {
				l.Pos++
			}
		default:
			return
		}
	}
}

// Next returns the next token, TokEOF at the end.
func (l *Lexer) Next() Token {
	start := l.Pos
	t := l.next()
	if !l.mem.b.Spend(tokenSteps + l.Pos - start) {
		return Token{Kind: TokEOF}
	}
	return t
}

func (l *Lexer) next() Token {
	l.skipSpace()
	if l.Pos >= len(l.Src) {
		return Token{Kind: TokEOF}
	}
	c := l.Src[l.Pos]
	switch {
	case c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.':
		return l.number()
	case c == '(':
		return l.literalString()
	case c == '/':
		return l.name()
	case c == '<':
		if l.peekAt(1) == '<' {
			l.Pos += 2
			return Token{Kind: TokOpenDict}
		}
		return l.hexString()
	case c == '>' && l.peekAt(1) == '>':
		l.Pos += 2
		return Token{Kind: tokCloseDict}
	case c == '[':
		l.Pos++
		return Token{Kind: TokOpenArray}
	case c == ']':
		l.Pos++
		return Token{Kind: tokCloseArray}
	}
	start := l.Pos
	l.Pos++
	if isRegular(c) {
		for l.Pos < len(l.Src) && isRegular(l.Src[l.Pos]) {
			l.Pos++
		}
	}
	return Token{Kind: TokKeyword, Text: l.Src[start:l.Pos]}
}

func (l *Lexer) peekAt(n int) byte {
	if l.Pos+n < len(l.Src) {
		return l.Src[l.Pos+n]
	}
	return 0
}

// number reads a number. It tolerates frequent errors: several signs, a sign in
// the middle (which ends the number), and letters after it.
func (l *Lexer) number() Token {
	t := Token{Kind: TokNumber, Whole: true}
	start, digits, scale := l.Pos, 0, 1.0
	sign := 1.0
	for ; l.Pos < len(l.Src); l.Pos++ {
		c := l.Src[l.Pos]
		switch {
		case c >= '0' && c <= '9':
			if digits++; digits > 40 {
				continue
			}
			if t.Whole {
				t.Num = t.Num*10 + float64(c-'0')
			} else {
				scale /= 10
				t.Num += float64(c-'0') * scale
			}
			continue
		case c == '.' && t.Whole:
			t.Whole = false
			continue
		case c == '-' && digits == 0:
			sign = -1
			continue
		case (c == '-' || c == '+') && (digits == 0 || t.Num == 0):
			continue
		}
		break
	}
	if digits > 0 || !t.Whole {
		for l.Pos < len(l.Src) && l.Src[l.Pos] == '-' { // "12-34", as one producer writes it
			for l.Pos++; l.Pos < len(l.Src) && isRegular(l.Src[l.Pos]); l.Pos++ {
			}
		}
		t.Num *= sign
		return t
	}
	for l.Pos < len(l.Src) && isRegular(l.Src[l.Pos]) {
		l.Pos++
	}
	return Token{Kind: TokKeyword, Text: l.Src[start:l.Pos]}
}

// name reads a name and its #xx escapes.
func (l *Lexer) name() Token {
	l.Pos++
	start := l.Pos
	for l.Pos < len(l.Src) && isRegular(l.Src[l.Pos]) {
		l.Pos++
	}
	text := l.Src[start:min(l.Pos, start+maxName)]
	if bytes.IndexByte(text, '#') >= 0 && l.alloc(len(text)) {
		out := make([]byte, 0, len(text))
		for i := 0; i < len(text); i++ {
			if text[i] == '#' && i+2 < len(text) && hexValue(text[i+1]) >= 0 && hexValue(text[i+2]) >= 0 {
				out = append(out, byte(hexValue(text[i+1])<<4|hexValue(text[i+2])))
				i += 2
				continue
			}
			out = append(out, text[i])
		}
		text = out
	}
	return Token{Kind: TokName, Text: text}
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// hexString reads <...>; an odd last digit is followed by an implied 0.
func (l *Lexer) hexString() Token {
	l.Pos++
	end := bytes.IndexByte(l.Src[l.Pos:], '>')
	if end < 0 {
		end = len(l.Src) - l.Pos
	}
	digits := l.Src[l.Pos : l.Pos+end]
	l.Pos = min(l.Pos+end+1, len(l.Src))
	if !l.alloc(len(digits)/2 + 1) {
		return Token{Kind: TokEOF}
	}
	return Token{Kind: TokString, Text: unhex(make([]byte, 0, len(digits)/2+1), digits, l.mem.b)}
}

// unhex appends the bytes of pairs of hexadecimal digits, at most
// len(digits)/2+1 bytes, and skips other characters.
func unhex(out, digits []byte, b *Budget) []byte {
	high := -1
	for i, c := range digits {
		if i%checkEvery == checkEvery-1 && !b.Spend(checkEvery) {
			break
		}
		v := hexValue(c)
		switch {
		case v < 0:
		case high < 0:
			high = v
		default:
			out = append(out, byte(high<<4|v))
			high = -1
		}
	}
	if high >= 0 {
		out = append(out, byte(high<<4))
	}
	return out
}

// literalString reads (...) with balanced parentheses and escapes.
func (l *Lexer) literalString() Token {
	l.Pos++
	start, depth, plain := l.Pos, 1, true
	for checked := start; l.Pos < len(l.Src); {
		if l.Pos-checked >= checkEvery {
			if checked = l.Pos; !l.mem.b.Spend(checkEvery) {
				return Token{Kind: TokEOF}
			}
		}
		switch l.Src[l.Pos] {
		case '\\':
			plain = false
			l.Pos++
		case '\r':
			plain = false
		case '(':
			depth++
		case ')':
			depth--
		}
		l.Pos++
		if depth == 0 {
			break
		}
	}
	l.Pos = min(l.Pos, len(l.Src))
	text := l.Src[start:l.Pos]
	if depth == 0 {
		text = text[:len(text)-1]
	}
	if !plain {
		if !l.alloc(len(text)) {
			return Token{Kind: TokEOF}
		}
		text = unescape(text, l.mem.b)
	}
	return Token{Kind: TokString, Text: text}
}

// unescape decodes the content of a literal string (ISO 32000-1, 7.3.4.2).
func unescape(s []byte, b *Budget) []byte {
	out := make([]byte, 0, len(s))
	for i, checked := 0, 0; i < len(s); i++ {
		if i-checked >= checkEvery {
			if checked = i; !b.Spend(checkEvery) {
				break
			}
		}
		c := s[i]
		if c == '\r' {
			if i+1 < len(s) && s[i+1] == '\n' {
				i++
			}
			out = append(out, '\n')
			continue
		}
		if c != '\\' || i+1 >= len(s) {
			out = append(out, c)
			continue
		}
		i++
		switch c = s[i]; c {
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case '\n':
		case '\r':
			if i+1 < len(s) && s[i+1] == '\n' {
				i++
			}
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v := 0
			for n := 0; n < 3 && i < len(s) && s[i] >= '0' && s[i] <= '7'; n++ {
				v = v<<3 | int(s[i]-'0')
				i++
			}
			i--
			out = append(out, byte(v))
		default:
			out = append(out, c)
		}
	}
	return out
}
