package configfile

import (
	"bytes"
	"slices"

	"github.com/BurntSushi/toml"
)

// A scanner finds the statements of a TOML file. It expects a valid file. Of
// others it finds something, but it ends.
type scanner struct {
	data []byte
	deep int // the position of a value that is nested too deep
}

// statements returns the statements.
func (s *scanner) statements() []statement {
	var found []statement
	var table []string
	for at := 0; at < len(s.data); {
		i := at + blank(s.data[at:])
		st := statement{start: at}
		switch {
		case i == len(s.data) || bytes.IndexByte([]byte("#\r\n"), s.data[i]) >= 0:
			at = s.line(i)
			continue
		case s.data[i] == '[':
			i++
			if i < len(s.data) && s.data[i] == '[' {
				i++
			}
			table, i = s.key(i)
			st.path, st.header = table, true
		default:
			var key []string
			key, i = s.key(i)
			st.path = slices.Concat(table, key)
			st.value, st.stop = s.assigned(i)
			i = st.stop
		}
		at = s.line(i)
		st.end = at
		found = append(found, st)
	}
	return found
}

// members returns the members of the inline table that begins at the byte at.
func (s *scanner) members(at int) []statement {
	var found []statement
	for i := at + 1; ; {
		i = s.space(i)
		if i >= len(s.data) || s.data[i] == '}' {
			return found
		}
		st := statement{start: i}
		st.path, i = s.key(i)
		st.value, st.stop = s.assigned(i)
		st.end = st.stop
		if len(st.path) == 0 || st.stop <= st.start {
			return found
		}
		found = append(found, st)
		if i = s.space(st.stop); i < len(s.data) && s.data[i] == ',' {
			i++
		}
	}
}

// line returns the start of the line after the one with the byte at.
func (s *scanner) line(at int) int {
	if i := bytes.IndexByte(s.data[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(s.data)
}

// space returns the end of the white space and the comments that begin at the
// byte at.
func (s *scanner) space(at int) int {
	for at < len(s.data) {
		switch s.data[at] {
		case ' ', '\t', '\r', '\n':
			at++
		case '#':
			at = s.line(at)
		default:
			return at
		}
	}
	return at
}

// key returns the parts of the key at the byte at, and its end.
func (s *scanner) key(at int) (parts []string, end int) {
	for {
		at += blank(s.data[at:])
		start := at
		for at < len(s.data) && isBare(s.data[at]) {
			at++
		}
		part := string(s.data[start:at])
		if at == start && at < len(s.data) && (s.data[at] == '"' || s.data[at] == '\'') {
			at = s.quoted(at)
			part = unquote(string(s.data[start:at]))
		}
		parts = append(parts, part)
		if len(parts) == maxDepth && s.deep < 0 {
			s.deep = start
		}
		at += blank(s.data[at:])
		if at == len(s.data) || s.data[at] != '.' {
			return parts, at
		}
		at++
	}
}

// isBare reports whether c may be part of a key without quotation marks.
func isBare(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// unquote returns the text of a string of one line.
func unquote(quoted string) string {
	var v struct{ Key string }
	if _, err := toml.Decode("Key = "+quoted, &v); err != nil {
		return quoted
	}
	return v.Key
}

// assigned returns the start and the end of the value after the equals sign at
// the byte at.
func (s *scanner) assigned(at int) (start, end int) {
	if at < len(s.data) && s.data[at] == '=' {
		at++
	}
	at += blank(s.data[at:])
	return at, s.value(at)
}

// value returns the end of the value that begins at the byte at.
func (s *scanner) value(at int) int {
	depth := 0
	start := at
	for at < len(s.data) {
		switch c := s.data[at]; {
		case c == '"' || c == '\'':
			at = s.quoted(at)
			if depth == 0 {
				return at
			}
			continue
		case c == '#' && depth > 0:
			at = s.line(at)
			continue
		case c == '[' || c == '{':
			if depth++; depth > maxDepth && s.deep < 0 {
				s.deep = at
			}
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return at + 1
			}
		}
		if depth <= 0 && bytes.IndexByte([]byte("#\r\n,]}"), s.data[at]) >= 0 {
			return start + len(bytes.TrimRight(s.data[start:at], " \t"))
		}
		at++
	}
	return start + len(bytes.TrimRight(s.data[start:], " \t"))
}

// quoted returns the end of the string that begins at the byte at.
func (s *scanner) quoted(at int) int {
	quote := s.data[at : at+1]
	if long := bytes.Repeat(quote, 3); bytes.HasPrefix(s.data[at:], long) {
		quote = long
	}
	for i := at + len(quote); i < len(s.data); i++ {
		switch {
		case s.data[i] == '\\' && quote[0] == '"':
			i++
		case s.data[i] == '\n' && len(quote) == 1:
			return i // the string does not end
		case bytes.HasPrefix(s.data[i:], quote):
			i += len(quote)
			for n := 0; n < 2 && len(quote) == 3 && i < len(s.data) && s.data[i] == quote[0]; n++ {
				i++ // quotation marks at the end of the text
			}
			return i
		}
	}
	return len(s.data)
}
