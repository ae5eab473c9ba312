package invoke

import (
	"bytes"
	"encoding/json"
	"iter"
)

// A member is one of a JSON object.
type member struct {
	name           string
	start, nameLen int    // where its name stands in the object, quotes included
	value          []byte // as written, without the white space around
}

// members walks over the members of a JSON object, in their order. The object
// must be valid JSON (encoding/json says so), which makes this fast: nothing is
// decoded but names.
func members(object []byte) iter.Seq[member] {
	return func(yield func(member) bool) {
		i := skipSpace(object, firstSign(object)+1)
		for object[i] != '}' {
			end := stringEnd(object, i)
			m := member{name: unquote(object[i:end]), start: i, nameLen: end - i}
			from := skipSpace(object, skipSpace(object, end)+1) // behind the colon
			end = valueEnd(object, from)
			m.value = object[from:end]
			if !yield(m) {
				return
			}
			if i = skipSpace(object, end); object[i] == ',' {
				i = skipSpace(object, i+1)
			}
		}
	}
}

// unquote returns what a JSON string says.
func unquote(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // the string is valid
	return s
}

// firstSign returns the index of the first byte that is not white space.
func firstSign(b []byte) int { return skipSpace(b, 0) }

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// stringEnd returns the index behind the string that starts at i.
func stringEnd(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd returns the index behind the value that starts at i.
func valueEnd(b []byte, i int) int {
	for depth := 0; ; i++ {
		switch b[i] {
		case '"':
			i = stringEnd(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		default:
			if depth == 0 {
				return literalEnd(b, i)
			}
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
}

// literalEnd returns the index behind the number or word that starts at i.
func literalEnd(b []byte, i int) int {
	for i < len(b) && bytes.IndexByte([]byte(",]} \t\r\n"), b[i]) < 0 {
		i++
	}
	return i
}
