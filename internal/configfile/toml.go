package configfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// A tomlFile is a TOML file.
type tomlFile struct {
	data       []byte
	root       node
	statements []statement
}

// A statement is a header of a table, or a key with its value. Between statements
// are only comments and white space.
type statement struct {
	start, end  int // with the white space before and the line end; of a member of an inline table, without
	path        []string
	header      bool // [path] or [[path]]
	value, stop int  // where the value starts and stops
}

// parseTOML parses TOML.
func parseTOML(data []byte) (node, editor, error) {
	statements, values, err := scanTOML(data)
	if err != nil {
		return node{}, nil, advise(err)
	}
	t := &tomlFile{data: data, root: tomlNode(values), statements: statements}
	return t.root, t, nil
}

// ParseTOML parses TOML. Errors are of type [Error]; they do not quote what can be a
// secret.
func ParseTOML(data []byte) (map[string]any, error) {
	_, values, err := scanTOML(data)
	return values, err
}

// scanTOML returns the statements and the values of a file.
func scanTOML(data []byte) ([]statement, map[string]any, error) {
	s := scanner{data: data, deep: -1}
	statements := s.statements()
	if s.deep >= 0 {
		return nil, nil, errorAt(data, s.deep, "%s", tooDeep)
	}
	var values map[string]any
	if _, err := toml.Decode(string(data), &values); err != nil {
		return nil, nil, tomlError(data, err)
	}
	return statements, values, nil
}

// tomlError returns the error for an error of the parser.
func tomlError(data []byte, err error) error {
	var parse toml.ParseError
	if !errors.As(err, &parse) {
		return errorAt(data, 0, "invalid TOML")
	}
	// The quoted text may be a secret.
	what, _, _ := strings.Cut(parse.Message, `"`)
	what = strings.TrimRight(what, " :.")
	if what == "" || strings.ContainsFunc(what, func(r rune) bool { return r < ' ' }) {
		what = "the line cannot be read"
	}
	return errorAt(data, parse.Position.Start, "invalid TOML: %s", what)
}

// tomlNode returns the node of a value. The members of objects are sorted.
func tomlNode(value any) node {
	switch v := value.(type) {
	case map[string]any:
		n := node{kind: object}
		for name, value := range v {
			n.members = append(n.members, member{node{kind: text, text: name}, tomlNode(value)})
		}
		n.sort()
		return n
	case []map[string]any:
		n := node{kind: list}
		for _, e := range v {
			n.items = append(n.items, tomlNode(e))
		}
		return n
	case []any:
		n := node{kind: list}
		for _, e := range v {
			n.items = append(n.items, tomlNode(e))
		}
		return n
	case string:
		return node{kind: text, text: v}
	case bool:
		return node{kind: boolean, text: strconv.FormatBool(v)}
	case int64:
		return node{kind: number, text: strconv.FormatInt(v, 10)}
	case float64: // never written like an integer
		return node{kind: number, text: strconv.FormatFloat(v, 'e', -1, 64)}
	case time.Time:
		return node{kind: other, text: v.Format(time.RFC3339Nano) + v.Location().String()}
	}
	return node{kind: other}
}

// sort sorts the members of an object by name.
func (n *node) sort() {
	slices.SortFunc(n.members, func(a, b member) int { return cmp.Compare(a.name.text, b.name.text) })
}

// sorted returns the node with all members sorted.
func (n node) sorted() node {
	n.members = slices.Clone(n.members)
	for i, m := range n.members {
		n.members[i].value = m.value.sorted()
	}
	n.sort()
	return n
}

// check implements editor.
func (t *tomlFile) check(place Place) error {
	if place.List {
		return errorAt(t.data, 0, "the entries are a list in TOML; write them as tables")
	}
	n := t.root
	for i, name := range place.Keys {
		at := n.get(name)
		if at < 0 {
			return nil
		}
		if n = n.members[at].value; n.kind != object {
			return errorAt(t.data, t.position(place.Keys[:i+1]), "%q is %s, want a table; correct it with an editor",
				name, n.kind)
		}
	}
	inline, ok := t.inline(append(slices.Clone(place.Keys), place.Name))
	for _, s := range t.statements {
		// The parser accepts some of these, but the programs do not.
		if ok && s.start != inline.start && hasPrefix(s.path, inline.path) {
			return errorAt(t.data, s.start, "%q is there twice; remove one of them", inline.path[len(inline.path)-1])
		}
	}
	return nil
}

// position returns the position of the first statement at path or below it.
func (t *tomlFile) position(path []string) int {
	for _, s := range t.statements {
		if hasPrefix(s.path, path) {
			return s.start + blank(t.data[s.start:])
		}
	}
	return 0
}

// hasPrefix reports whether path begins with prefix.
func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

// inline returns the statement whose inline table has the entry at path.
func (t *tomlFile) inline(path []string) (statement, bool) {
	for _, s := range t.statements {
		if !s.header && len(s.path) < len(path) && hasPrefix(path, s.path) {
			return s, true
		}
	}
	return statement{}, false
}

// isSpace reports whether the bytes from start to end are white space.
func (t *tomlFile) isSpace(start, end int) bool { return len(bytes.TrimSpace(t.data[start:end])) == 0 }

// A section is what a file has of an entry in one place: tables with their
// headers, or a key with its value.
type section struct {
	first, last int // indexes of statements
}

// sections returns the sections of the entry at path.
func (t *tomlFile) sections(path []string) []section {
	var found []section
	for i := 0; i < len(t.statements); i++ {
		if !hasPrefix(t.statements[i].path, path) {
			continue
		}
		s := section{i, i}
		for t.statements[i].header && s.last+1 < len(t.statements) && !t.statements[s.last+1].header {
			s.last++
		}
		i = s.last
		if n := len(found); n > 0 && found[n-1].last == s.first-1 && t.statements[s.first].header &&
			t.statements[found[n-1].first].header && t.isSpace(t.statements[s.first-1].end, t.statements[s.first].start) {
			found[n-1].last = s.last
			continue
		}
		found = append(found, s)
	}
	return found
}

// set implements editor.
func (t *tomlFile) set(place Place, entry []Member) ([]edit, error) {
	path := append(slices.Clone(place.Keys), place.Name)
	if s, ok := t.inline(path); ok {
		return t.setInline(s, path[len(s.path):], entry)
	}
	style := tomlStyle{newline: newline(t.data)}
	old := t.sections(path)
	if len(old) == 1 {
		if s := t.statements[old[0].first]; !s.header && len(s.path) == len(path) {
			return []edit{{s.value, s.stop, style.value(entry)}}, nil
		}
	}
	var edits []edit
	replaced := false
	for _, o := range old {
		first := t.statements[o.first]
		if !replaced && first.header && len(first.path) == len(path) {
			replaced = true
			style.indent = string(t.data[first.start:][:blank(t.data[first.start:])])
			end := t.statements[o.last].end
			value := style.table(path, entry)
			if !bytes.HasSuffix(t.data[:end], []byte("\n")) {
				value = strings.TrimSuffix(value, style.newline)
			}
			edits = append(edits, edit{first.start, end, value})
			continue
		}
		edits = append(edits, t.delete(o))
	}
	if replaced {
		return edits, nil
	}
	return append(edits, t.insert(place.Keys, path, entry, style)), nil
}

// insert returns the edit that adds a table after the last one that is at keys or
// below, or at the end of the file.
func (t *tomlFile) insert(keys, path []string, entry []Member, style tomlStyle) edit {
	at := len(bytes.TrimRight(t.data, " \t\r\n"))
	if i := bytes.IndexByte(t.data[at:], '\n'); i >= 0 && at > 0 {
		at += i + 1
	} else {
		at = len(t.data)
	}
	for i, s := range slices.Backward(t.statements) {
		if len(keys) == 0 || !s.header || !hasPrefix(s.path, keys) || hasPrefix(s.path, path) {
			continue
		}
		style.indent = string(t.data[s.start:][:blank(t.data[s.start:])])
		for i+1 < len(t.statements) && !t.statements[i+1].header {
			i++
		}
		if i+1 < len(t.statements) {
			at = t.comments(t.statements[i].end, t.statements[i+1].start)
		}
		break
	}
	value := style.table(path, entry)
	switch {
	case len(bytes.TrimSpace(t.data[:at])) == 0:
	case bytes.HasSuffix(t.data[:at], []byte("\n")):
		value = style.newline + value
	default:
		value = style.newline + style.newline + strings.TrimSuffix(value, style.newline)
	}
	return edit{at, at, value}
}

// comments returns the end of the comments that begin at the byte at, if a blank
// line separates them from the next statement. Otherwise they belong to it, and
// comments returns at.
func (t *tomlFile) comments(at, next int) int {
	for end := at; end < next; {
		line, _, _ := bytes.Cut(t.data[end:next], []byte("\n"))
		if len(bytes.TrimSpace(line)) == 0 {
			return end
		}
		end += len(line) + 1
	}
	return at
}

// remove implements editor.
func (t *tomlFile) remove(place Place) ([]edit, error) {
	path := append(slices.Clone(place.Keys), place.Name)
	if s, ok := t.inline(path); ok {
		return t.removeInline(s, path[len(s.path):])
	}
	var edits []edit
	for _, s := range t.sections(path) {
		edits = append(edits, t.delete(s))
	}
	return edits, nil
}

// delete returns the edit that removes a section, and the blank line before a
// table.
func (t *tomlFile) delete(s section) edit {
	start, end := t.statements[s.first].start, t.statements[s.last].end
	if t.statements[s.first].header {
		switch before, after := t.data[:start], t.data[end:]; {
		case bytes.HasSuffix(before, []byte("\n\r\n")), string(before) == "\r\n":
			start -= 2
		case bytes.HasSuffix(before, []byte("\n\n")), string(before) == "\n":
			start--
		case start == 0 && bytes.HasPrefix(after, []byte("\r\n")):
			end += 2
		case start == 0 && bytes.HasPrefix(after, []byte("\n")):
			end++
		}
	}
	if end == len(t.data) && !bytes.HasSuffix(t.data, []byte("\n")) {
		start = len(bytes.TrimSuffix(t.data[:start], []byte("\n")))
		start = len(bytes.TrimSuffix(t.data[:start], []byte("\r")))
	}
	return edit{start, end, ""}
}

// setInline returns the edits that add or replace the entry at path, which begins
// in the inline table of a statement.
func (t *tomlFile) setInline(s statement, path []string, entry []Member) ([]edit, error) {
	members, at, err := t.inlineMembers(s, path)
	if err != nil {
		return nil, err
	}
	if at >= 0 && len(path) == 1 {
		return []edit{{members[at].value, members[at].stop, tomlStyle{}.value(entry)}}, nil
	}
	if at >= 0 {
		return t.setInline(members[at], path[1:], entry)
	}
	added := Member{path[len(path)-1], entry}
	for _, k := range slices.Backward(path[:len(path)-1]) {
		added = Member{k, []Member{added}}
	}
	text := tomlKey(added.Name) + " = " + tomlStyle{}.value(added.Value)
	if len(members) > 0 {
		end := members[len(members)-1].end
		return []edit{{end, end, ", " + text}}, nil
	}
	return []edit{{s.value + 1, s.stop - 1, " " + text + " "}}, nil
}

// removeInline returns the edits that remove the entry at path, which begins in
// the inline table of a statement.
func (t *tomlFile) removeInline(s statement, path []string) ([]edit, error) {
	members, at, err := t.inlineMembers(s, path)
	switch {
	case err != nil:
		return nil, err
	case at < 0:
		return nil, t.inlineError(s)
	case len(path) > 1:
		return t.removeInline(members[at], path[1:])
	case at < len(members)-1:
		return []edit{{members[at].start, members[at+1].start, ""}}, nil
	case at > 0:
		return []edit{{members[at-1].end, members[at].end, ""}}, nil
	}
	return []edit{{s.value + 1, s.stop - 1, ""}}, nil
}

// inlineMembers returns the members of the inline table of s, and the index of
// the one that has the first name of path, or -1.
func (t *tomlFile) inlineMembers(s statement, path []string) ([]statement, int, error) {
	if t.data[s.value] != '{' {
		return nil, 0, t.inlineError(s)
	}
	members := (&scanner{data: t.data[:s.stop]}).members(s.value)
	found := -1
	for i, m := range members {
		if m.path[0] != path[0] {
			continue
		}
		if len(m.path) > 1 || found >= 0 {
			return nil, 0, t.inlineError(s)
		}
		found = i
	}
	return members, found, nil
}

// inlineError returns the error for an entry in an inline table that cannot be
// changed.
func (t *tomlFile) inlineError(s statement) error {
	return errorAt(t.data, s.value, "the entry is part of a value that cannot be changed here; "+
		"write it as a table with a header of its own")
}

// A tomlStyle says how tables are written.
type tomlStyle struct {
	newline, indent string
}

// table returns a table and those of its members that are tables.
func (s tomlStyle) table(path []string, entry []Member) string {
	keys := make([]string, 0, len(path))
	for _, name := range path {
		keys = append(keys, tomlKey(name))
	}
	var b, tables strings.Builder
	fmt.Fprintf(&b, "%s[%s]%s", s.indent, strings.Join(keys, "."), s.newline)
	for _, m := range entry {
		if sub, ok := m.Value.([]Member); ok && len(sub) > 0 {
			tables.WriteString(s.newline + s.table(append(slices.Clone(path), m.Name), sub))
			continue
		}
		fmt.Fprintf(&b, "%s%s = %s%s", s.indent, tomlKey(m.Name), s.value(m.Value), s.newline)
	}
	return b.String() + tables.String()
}

// value returns a value on one line.
func (s tomlStyle) value(value any) string {
	var parts []string
	switch v := value.(type) {
	case string:
		return quote(v)
	case []string:
		for _, e := range v {
			parts = append(parts, quote(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []Member:
		for _, m := range v {
			parts = append(parts, tomlKey(m.Name)+" = "+s.value(m.Value))
		}
		if len(parts) == 0 {
			return "{}"
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return valueNode(value).text
}

// tomlKey returns a name as a key.
func tomlKey(name string) string {
	if name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r > 127 || !isBare(byte(r)) }) {
		return name
	}
	return quote(name)
}
