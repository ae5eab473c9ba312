package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// A jsonFile is a JSON file with comments and trailing commas.
type jsonFile struct {
	data []byte
	root hujson.Value // its Value is nil if the file has none
}

// parseJSON parses JSON with comments and trailing commas.
func parseJSON(data []byte) (node, editor, error) {
	j := &jsonFile{data: data}
	if skipExtra(data) == len(data) {
		return node{kind: nothing}, j, nil
	}
	var err error
	if j.root, err = ParseJSON(data); err != nil {
		return node{}, nil, advise(err)
	}
	return jsonNode(j.root), j, nil
}

// ParseJSON parses JSON with comments and trailing commas. Errors are of type [Error];
// they do not quote what can be a secret.
func ParseJSON(data []byte) (hujson.Value, error) {
	if at := tooDeepJSON(data); at >= 0 {
		return hujson.Value{}, errorAt(data, at, "%s", tooDeep)
	}
	// The parser requires a line end after the last comment.
	v, err := hujson.Parse(append(bytes.Clone(data), '\n'))
	if err != nil {
		return hujson.Value{}, syntaxError(data, err)
	}
	return v, nil
}

// syntaxError returns the error for an error of the parser.
func syntaxError(data []byte, err error) error {
	var line, column int
	if _, scan := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); scan != nil {
		return errorAt(data, 0, "invalid JSON")
	}
	at := 0
	for range line - 1 {
		next := bytes.IndexByte(data[at:], '\n')
		if next < 0 { // the line end that was added for the parser
			return errorAt(data, len(data), "invalid JSON: %s", cause(err))
		}
		at += next + 1
	}
	return errorAt(data, at+column-1, "invalid JSON: %s", cause(err))
}

// cause returns what an error of the parser is about.
func cause(err error) string {
	cause := errors.Unwrap(err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the file ends too early"
	case cause == nil, strings.HasPrefix(cause.Error(), "invalid literal"): // which would show a secret
		return "there is a word or a string that is not valid JSON"
	}
	return cause.Error()
}

// tooDeepJSON returns the position of a value that is nested too deep, or -1.
func tooDeepJSON(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '[', '{':
			if depth++; depth > maxDepth {
				return i
			}
		case ']', '}':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			i += max(skipExtra(data[i:])-1, 0)
		}
	}
	return -1
}

// skipExtra returns the length of the white space and the comments at the start
// of data.
func skipExtra(data []byte) int {
	for i := 0; ; {
		i += len(data[i:]) - len(bytes.TrimLeft(data[i:], " \t\r\n"))
		n := comment(data[i:])
		if n == 0 {
			return i
		}
		i += n
	}
}

// comment returns the length of the comment at the start of data, without its
// line end. It is 0 if there is no comment or it does not end.
func comment(data []byte) int {
	switch {
	case bytes.HasPrefix(data, []byte("//")):
		line, _, _ := bytes.Cut(data, []byte("\n"))
		return len(bytes.TrimSuffix(line, []byte("\r")))
	case bytes.HasPrefix(data, []byte("/*")):
		if end := bytes.Index(data[2:], []byte("*/")); end >= 0 {
			return end + 4
		}
	}
	return 0
}

// jsonNode returns the node of a value.
func jsonNode(v hujson.Value) node {
	switch t := v.Value.(type) {
	case *hujson.Object:
		n := node{kind: object}
		for _, m := range t.Members {
			n.members = append(n.members, member{jsonNode(m.Name), jsonNode(m.Value)})
		}
		return n
	case *hujson.Array:
		n := node{kind: list}
		for _, e := range t.Elements {
			n.items = append(n.items, jsonNode(e))
		}
		return n
	case hujson.Literal:
		switch t.Kind() {
		case '"':
			return node{kind: text, text: t.String()}
		case '0':
			return node{kind: number, text: string(t)}
		case 't', 'f':
			return node{kind: boolean, text: string(t)}
		}
	}
	return node{kind: null}
}

// jsonKind returns the kind of a value.
func jsonKind(v hujson.Value) kind {
	switch v.Value.Kind() {
	case '{':
		return object
	case '[':
		return list
	case '"':
		return text
	case '0':
		return number
	case 't', 'f':
		return boolean
	}
	return null
}

// lookup returns the index of the member of obj with a name, or -1. A name that
// is there twice is an error.
func (j *jsonFile) lookup(obj *hujson.Object, name string) (int, error) {
	found := -1
	for i, m := range obj.Members {
		lit, _ := m.Name.Value.(hujson.Literal)
		if lit.String() != name {
			continue
		}
		if found >= 0 {
			return 0, errorAt(j.data, m.Name.StartOffset, "%q is there twice; remove one of them", name)
		}
		found = i
	}
	return found, nil
}

// check implements editor.
func (j *jsonFile) check(place Place) error {
	if place.List {
		return errorAt(j.data, 0, "the entries are a list in JSON; write each on lines of its own, as YAML")
	}
	if j.root.Value == nil {
		return nil
	}
	v := j.root
	path := "the file"
	for _, name := range append(slices.Clone(place.Keys), place.Name) {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return errorAt(j.data, v.StartOffset, "%s is %s, want an object; correct it with an editor", path, jsonKind(v))
		}
		i, err := j.lookup(obj, name)
		if err != nil {
			return err
		}
		if i < 0 {
			return nil
		}
		v, path = obj.Members[i].Value, fmt.Sprintf("%q", name)
	}
	return nil
}

// parent returns the object that has the entries, or the innermost one on the way
// to it, and the keys of those that are missing.
func (j *jsonFile) parent(keys []string) (v hujson.Value, missing []string) {
	v = j.root
	for len(keys) > 0 {
		obj := v.Value.(*hujson.Object)
		i, _ := j.lookup(obj, keys[0])
		if i < 0 {
			break
		}
		v, keys = obj.Members[i].Value, keys[1:]
	}
	return v, keys
}

// set implements editor.
func (j *jsonFile) set(place Place, entry []Member) ([]edit, error) {
	added := Member{place.Name, entry}
	if j.root.Value == nil {
		for _, k := range slices.Backward(place.Keys) {
			added = Member{k, []Member{added}}
		}
		s := jsonStyle{newline: newline(j.data), unit: "  ", colon: ": ", comma: " ", multi: true}
		value := string(s.value(nil, []Member{added}, "")) + s.newline
		if t := bytes.TrimRight(j.data, " \t"); len(bytes.TrimSpace(t)) > 0 && !bytes.HasSuffix(t, []byte("\n")) {
			value = s.newline + value
		}
		return []edit{{len(j.data), len(j.data), value}}, nil
	}
	parent, missing := j.parent(place.Keys)
	if len(missing) > 0 {
		for _, k := range slices.Backward(missing) {
			added = Member{k, []Member{added}}
		}
	}
	obj := parent.Value.(*hujson.Object)
	s := j.style(parent, added.Name)
	if i, _ := j.lookup(obj, added.Name); i >= 0 {
		old := obj.Members[i].Value
		if o, ok := old.Value.(*hujson.Object); ok && len(o.Members) > 0 {
			s.neighbour(j, old)
		}
		text := s.value(nil, added.Value, j.indent(old.StartOffset))
		return []edit{{old.StartOffset, old.EndOffset, string(text)}}, nil
	}
	if len(obj.Members) > 0 {
		return j.insertAfter(obj.Members, added, s), nil
	}
	return j.insertFirst(parent, added, s), nil
}

// insertAfter returns the edits that add a member after others.
func (j *jsonFile) insertAfter(members []hujson.ObjectMember, added Member, s jsonStyle) []edit {
	last := members[len(members)-1]
	before, end := last.Name.BeforeExtra, last.Value.EndOffset
	trailing := last.Value.AfterExtra != nil // a comma, according to the parser
	at := end
	if trailing {
		at += len(last.Value.AfterExtra) + 1
	}
	if i := bytes.LastIndexByte(before, '\n'); i >= 0 {
		// On a line of its own, after a comment that belongs to the last member.
		indent := string(before[i+1:][:blank(before[i+1:])])
		text := s.newline + indent + string(s.member(nil, added, indent))
		line := at + j.restOfLine(at)
		if trailing {
			return []edit{{line, line, text + ","}}
		}
		return []edit{{end, end, ","}, {line, line, text}}
	}
	separator := s.comma
	if len(members) > 1 && len(bytes.TrimSpace(before)) == 0 {
		separator = string(before)
	}
	text := separator + string(s.member(nil, added, j.indent(end)))
	if trailing {
		return []edit{{at, at, text + ","}}
	}
	return []edit{{end, end, "," + text}}
}

// restOfLine returns the length of the comments that begin at the byte at, on the
// same line.
func (j *jsonFile) restOfLine(at int) int {
	end := at
	for i := at; ; end = i {
		i += blank(j.data[i:])
		n := comment(j.data[i:])
		if n == 0 {
			return end - at
		}
		i += n
	}
}

// insertFirst returns the edits that add a member to an object without members.
func (j *jsonFile) insertFirst(parent hujson.Value, added Member, s jsonStyle) []edit {
	start, end := parent.StartOffset+1, parent.EndOffset-1
	extra := bytes.TrimRight(j.data[start:end], " \t\r\n")
	space := j.data[start+len(extra) : end]
	at := start + len(extra)
	if !s.multiline(j) {
		text := s.pad + string(s.member(nil, added, "")) + s.pad
		if len(extra) > 0 {
			text = " " + text
		}
		return []edit{{at, end, text}}
	}
	outer := j.indent(parent.StartOffset)
	indent := outer + s.unit
	text := s.newline + indent + string(s.member(nil, added, indent))
	if bytes.ContainsRune(space, '\n') {
		return []edit{{at, at, text}}
	}
	return []edit{{at, end, text + s.newline + outer}}
}

// remove implements editor.
func (j *jsonFile) remove(place Place) ([]edit, error) {
	parent, _ := j.parent(place.Keys)
	members := parent.Value.(*hujson.Object).Members
	i, _ := j.lookup(parent.Value.(*hujson.Object), place.Name)
	m, isLast := members[i], i == len(members)-1
	start, end := m.Name.StartOffset, m.Value.EndOffset
	comma := !isLast || m.Value.AfterExtra != nil
	if comma {
		end += len(m.Value.AfterExtra) + 1
	}
	before := m.Name.BeforeExtra
	if inner := j.data[end : parent.EndOffset-1]; len(members) == 1 && len(bytes.TrimSpace(before)) == 0 &&
		len(bytes.TrimSpace(m.Value.AfterExtra)) == 0 && len(bytes.TrimSpace(inner)) == 0 {
		return []edit{{parent.StartOffset + 1, parent.EndOffset - 1, ""}}, nil
	}
	space := len(before) - len(bytes.TrimRight(before, " \t")) // before the member, on its line
	line := bytes.HasSuffix(before[:len(before)-space], []byte("\n"))
	after := bytes.TrimLeft(j.data[end:], " \t\r")
	switch {
	case line && (bytes.HasPrefix(after, []byte("\n")) || len(bytes.TrimSpace(before)) == 0 &&
		(bytes.HasPrefix(after, []byte("/")) || bytes.HasPrefix(after, []byte("}")))):
		start -= space + 1
		if start > 0 && j.data[start-1] == '\r' {
			start--
		}
	case !isLast && len(bytes.TrimLeft(members[i+1].Name.BeforeExtra, " \t")) == 0:
		end = members[i+1].Name.StartOffset
	default:
		start -= space
	}
	edits := []edit{{start, end, ""}}
	if !comma && i > 0 {
		at := members[i-1].Value.EndOffset + len(members[i-1].Value.AfterExtra)
		edits = append(edits, edit{at, at + 1, ""})
	}
	return edits, nil
}

// indent returns the white space at the start of the line with the byte at.
func (j *jsonFile) indent(at int) string {
	line := j.data[bytes.LastIndexByte(j.data[:at], '\n')+1 : at]
	return string(line[:blank(line)])
}

// A jsonStyle says how values are written.
type jsonStyle struct {
	newline string
	unit    string // of indentation
	colon   string // with the space around it
	multi   bool   // the members of an object are on lines of their own
	lists   bool   // and so are the elements of lists
	pad     string // after { and before } on one line
	comma   string // the space after a comma on one line
}

// multiline reports whether an object that is empty until now gets lines.
func (s jsonStyle) multiline(j *jsonFile) bool {
	root, _ := j.root.Value.(*hujson.Object)
	return root == nil || len(root.Members) == 0 ||
		bytes.ContainsRune(j.data[j.root.StartOffset:j.root.EndOffset], '\n')
}

// style returns the style of a new member of parent.
func (j *jsonFile) style(parent hujson.Value, name string) jsonStyle {
	s := jsonStyle{newline: newline(j.data), unit: "  ", colon: ": ", comma: " "}
	s.multi = s.multiline(j)
	for v := range j.root.All() {
		if a, ok := v.Value.(*hujson.Array); ok && len(a.Elements) > 0 {
			s.lists = s.multi && bytes.ContainsRune(j.data[v.StartOffset:v.EndOffset], '\n')
			break
		}
	}
	for _, v := range []hujson.Value{j.root, parent} { // the nearer one counts
		s.neighbour(j, v)
	}
	s.multi = s.multiline(j)
	for _, m := range slices.Backward(parent.Value.(*hujson.Object).Members) {
		sibling, ok := m.Value.Value.(*hujson.Object)
		if ok && len(sibling.Members) > 0 && m.Name.Value.(hujson.Literal).String() != name {
			s.neighbour(j, m.Value)
			break
		}
	}
	return s
}

// neighbour sets the style to that of the members of an object.
func (s *jsonStyle) neighbour(j *jsonFile, v hujson.Value) {
	obj := v.Value.(*hujson.Object)
	if len(obj.Members) == 0 {
		return
	}
	first := obj.Members[0]
	s.multi = bytes.ContainsRune(first.Name.BeforeExtra, '\n')
	if i := bytes.LastIndexByte(first.Name.BeforeExtra, '\n'); i >= 0 {
		tail := first.Name.BeforeExtra[i+1:]
		if unit, ok := strings.CutPrefix(string(tail[:blank(tail)]), j.indent(v.StartOffset)); ok {
			s.unit = unit
		}
	}
	colon := j.data[first.Name.EndOffset:first.Value.StartOffset]
	if len(bytes.Trim(colon, " \t")) == 1 {
		s.colon = string(colon)
	}
	if !s.multi {
		s.comma, s.pad = strings.TrimLeft(s.colon, " \t:"), ""
		if s.colon != ":" {
			s.comma = " "
		}
		if len(bytes.Trim(first.Name.BeforeExtra, " ")) == 0 {
			s.pad = string(first.Name.BeforeExtra)
		}
	}
	for _, m := range obj.Members {
		if a, ok := m.Value.Value.(*hujson.Array); ok && len(a.Elements) > 0 {
			s.lists = s.multi && bytes.ContainsRune(a.Elements[0].BeforeExtra, '\n')
			break
		}
	}
}

// member appends a member.
func (s *jsonStyle) member(b []byte, m Member, indent string) []byte {
	b = append(append(b, quote(m.Name)...), s.colon...)
	return s.value(b, m.Value, indent)
}

// value appends a value whose first line has an indentation.
func (s *jsonStyle) value(b []byte, value any, indent string) []byte {
	var parts [][]byte
	open, end, lines, pad := "[", "]", s.lists, ""
	switch v := value.(type) {
	case string:
		return append(b, quote(v)...)
	case []string:
		for _, e := range v {
			parts = append(parts, []byte(quote(e)))
		}
	case []Member:
		open, end, lines, pad = "{", "}", s.multi, s.pad
		for _, m := range v {
			parts = append(parts, s.member(nil, m, indent+s.unit))
		}
	default:
		return fmt.Append(b, valueNode(v).text)
	}
	if len(parts) == 0 {
		return append(append(b, open...), end...)
	}
	b = append(b, open...)
	for i, p := range parts {
		switch {
		case lines:
			b = append(append(append(b, s.newline...), indent...), s.unit...)
		case i > 0:
			b = append(b, s.comma...)
		default:
			b = append(b, pad...)
		}
		b = append(b, p...)
		if i < len(parts)-1 {
			b = append(b, ',')
		}
	}
	if lines {
		b = append(append(b, s.newline...), indent...)
	} else {
		b = append(b, pad...)
	}
	return append(b, end...)
}
