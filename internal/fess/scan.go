package fess

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep the values of an answer are nested. Fess's are five
// deep.
const maxDepth = 1000

// A scanner reads one JSON text from left to right, in one pass, and builds
// nothing but what it is asked for: most of what Fess says of a hit interests
// nobody, and package encoding/json goes over all of it twice. It takes and
// refuses what that package does, up to maxDepth. Its methods return false where
// the text is no JSON, or not what was expected; what they read then is of no use.
type scanner struct {
	data  []byte
	at    int // the next byte
	depth int
}

// space skips white space and returns the byte behind it, 0 at the end.
func (s *scanner) space() byte {
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// ended says that nothing but white space is left.
func (s *scanner) ended() bool {
	s.space()
	return s.at == len(s.data)
}

// token skips white space and the byte c.
func (s *scanner) token(c byte) bool {
	if s.space() != c {
		return false
	}
	s.at++
	return true
}

// object reads an object. member is called with the name of each member, behind
// which it must read the value.
func (s *scanner) object(member func(name []byte) bool) bool {
	return s.list('{', '}', func() bool {
		s.space()
		start := s.at
		if !s.text() {
			return false
		}
		name := s.data[start+1 : s.at-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = []byte(unquote(string(s.data[start:s.at])))
		}
		return s.token(':') && member(name)
	})
}

// array reads an array. element must read one value.
func (s *scanner) array(element func() bool) bool { return s.list('[', ']', element) }

// list reads what stands between two brackets, with commas.
func (s *scanner) list(opening, closing byte, element func() bool) bool {
	if !s.token(opening) || s.depth == maxDepth {
		return false
	}
	s.depth++
	defer func() { s.depth-- }()
	if s.token(closing) {
		return true
	}
	for element() {
		if s.token(closing) {
			return true
		}
		if !s.token(',') {
			return false
		}
	}
	return false
}

// value reads a value and returns it as it is written.
func (s *scanner) value() ([]byte, bool) {
	s.space()
	start := s.at
	ok := s.skip()
	return s.data[start:s.at:s.at], ok
}

// A reader reads itself from a scanner. The others are decoded by their tags.
type reader interface{ read(s *scanner) bool }

// into reads a value into v, which is a [reader] or a pointer that package
// encoding/json can fill.
func (s *scanner) into(v any) bool {
	if r, ok := v.(reader); ok {
		return r.read(s)
	}
	raw, ok := s.value()
	return ok && json.Unmarshal(raw, v) == nil
}

// skip reads a value.
func (s *scanner) skip() bool {
	switch s.space() {
	case '{':
		return s.object(func([]byte) bool { return s.skip() })
	case '[':
		return s.array(s.skip)
	case '"':
		return s.text()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

// word reads a word that must be there.
func (s *scanner) word(w string) bool {
	if !bytes.HasPrefix(s.data[s.at:], []byte(w)) {
		return false
	}
	s.at += len(w)
	return true
}

// text reads a string.
func (s *scanner) text() bool {
	if s.at == len(s.data) || s.data[s.at] != '"' {
		return false
	}
	for i := s.at + 1; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.at = i + 1
			return true
		case c < ' ':
			return false
		case c == '\\':
			n := escape(s.data[i:])
			if n == 0 {
				return false
			}
			i += n - 1
		}
	}
	return false
}

// escape returns the length of the escape sequence that b begins with, 0 if it is
// none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b); ok {
			return 6
		}
	}
	return 0
}

// hex4 returns the code unit that b begins with, as in \u00e9.
func hex4[T string | []byte](b T) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for i := 2; i < 6; i++ {
		c := b[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// number reads a number.
func (s *scanner) number() bool {
	if s.at < len(s.data) && s.data[s.at] == '-' {
		s.at++
	}
	if zero := s.at < len(s.data) && s.data[s.at] == '0'; zero {
		s.at++
	} else if !s.digits() {
		return false
	}
	if s.at < len(s.data) && s.data[s.at] == '.' {
		s.at++
		if !s.digits() {
			return false
		}
	}
	if s.at < len(s.data) && s.data[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.data) && (s.data[s.at] == '+' || s.data[s.at] == '-') {
			s.at++
		}
		return s.digits()
	}
	return true
}

// digits reads one digit or more.
func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}

// unquote returns what a JSON string says, raw being one that was scanned. Bytes
// that are no UTF-8 become U+FFFD each.
func unquote(raw string) string {
	raw = raw[1 : len(raw)-1]
	if i := strings.IndexByte(raw, '\\'); i >= 0 {
		out := make([]byte, 0, len(raw))
		for ; i >= 0; i = strings.IndexByte(raw, '\\') {
			out = append(out, raw[:i]...)
			r, n := unescape(raw[i:])
			out, raw = utf8.AppendRune(out, r), raw[i+n:]
		}
		raw = string(append(out, raw...))
	}
	if !utf8.ValidString(raw) {
		return string([]rune(raw))
	}
	return raw
}

// unescape returns the character of the escape sequence that b begins with, and
// the length of that. Half a pair of surrogates stands for U+FFFD.
func unescape(b string) (rune, int) {
	switch c := b[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
	default:
		return rune(c), 2
	}
	r, _ := hex4(b)
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	low, _ := hex4(b[6:])
	if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
		return r, 12
	}
	return utf8.RuneError, 6
}

// scalar returns a string, number or boolean as a string. raw is a value that was
// scanned; "" is none.
func scalar(raw string) (string, bool) {
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '"':
		return unquote(raw), true
	case 't':
		return strconv.FormatBool(true), true
	case 'f':
		return strconv.FormatBool(false), true
	case 'n', '{', '[':
		return "", false
	}
	return raw, true
}

// stringList returns a list's scalars, or one scalar as a list, nil where there
// are none.
func stringList(raw string) []string {
	if s, ok := scalar(raw); ok {
		return []string{s}
	}
	var all []string
	s := scanner{data: []byte(raw)}
	s.array(func() bool {
		v, ok := s.value()
		if text, is := scalar(string(v)); is {
			all = append(all, text)
		}
		return ok
	})
	return all
}
