package mcpsettings

import (
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// A kind is the kind of a value, as named in messages.
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
	at      int    // its position in the file, in bytes; -1 for TOML, where it is unknown
	text    string // of a string; a number as written
	truth   bool
	items   []node   // of a list
	members []member // of an object, in the order of the file
}

// A member is a key of an object and its value.
type member struct {
	name  string
	at    int
	value node
}

// get returns the value of the key with this name.
func (n node) get(name string) (node, bool) {
	for _, m := range n.members {
		if m.name == name {
			return m.value, true
		}
	}
	return node{}, false
}

// key returns the path of a key below path, in the notation of JavaScript. The
// key is foreign text.
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

// isWord reports whether c may be part of the name of a variable.
func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// bad returns the first character in s that is a control character or in more,
// quoted; "" if there is none.
func bad(s, more string) string {
	for _, r := range s {
		if r < ' ' || 0x7f <= r && r < 0xa0 || strings.ContainsRune(more, r) {
			return strconv.QuoteRune(r)
		}
	}
	return ""
}
