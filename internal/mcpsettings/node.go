package mcpsettings

import (
	"strconv"
	"strings"

	"knowhow/internal/spell"
)

// A kind is that of a value, named as messages name it.
type kind string

const (
	null    kind = "null"
	boolean kind = "true or false"
	number  kind = "a number"
	text    kind = "a string"
	list    kind = "a list"
	object  kind = "an object"
	date    kind = "a date"
)

// A node is a value of a JSON or TOML file.
type node struct {
	kind    kind
	at      int    // where it begins in the file, in bytes; -1 for TOML, which does not tell
	text    string // of a string; a number as it is written
	truth   bool
	items   []node   // of a list
	members []member // of an object, as the file orders them
}

// A member is a key of an object and its value.
type member struct {
	name  string
	at    int
	value node
}

// get returns the value of the key name.
func (n node) get(name string) (node, bool) {
	for _, m := range n.members {
		if m.name == name {
			return m.value, true
		}
	}
	return node{}, false
}

// key returns the path of a key below path, in the manner of JavaScript. The
// key is foreign.
func key(path, name string) string {
	plain := name != "" && len(name) <= 80
	for i := range len(name) {
		plain = plain && (isWord(name[i]) || name[i] == '-' || name[i] == '$')
	}
	switch {
	case !plain:
		return path + "[" + spell.Quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// item returns the path of an element of the list at path.
func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// isWord reports whether c may be part of a variable's name.
func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// bad returns the first character in s that is a control character or in more,
// quoted; "" where there is none.
func bad(s, more string) string {
	for _, r := range s {
		if r < ' ' || 0x7f <= r && r < 0xa0 || strings.ContainsRune(more, r) {
			return strconv.QuoteRune(r)
		}
	}
	return ""
}
