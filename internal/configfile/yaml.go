package configfile

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A yamlFile is a YAML file with one document.
type yamlFile struct {
	data  []byte
	root  *yaml.Node // nil if the document has no value
	lines []int      // where each line starts; the last one is the end of the document
}

// parseYAML parses YAML.
func parseYAML(data []byte) (node, editor, error) {
	y := &yamlFile{data: data, lines: yamlLines(data)}
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	switch err := decoder.Decode(&document); {
	case err == io.EOF || err == nil && len(document.Content) == 0:
		return node{kind: nothing}, y, nil
	case err != nil:
		return node{}, nil, y.syntaxError(err)
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return node{}, nil, y.errorAt(&second, "the file has more than one document; change it with an editor")
	case err != io.EOF:
		return node{}, nil, y.syntaxError(err)
	}
	y.root = document.Content[0]
	n, err := y.node(y.root, 0)
	if err != nil {
		return node{}, nil, err
	}
	switch {
	case y.root.Kind == yaml.ScalarNode && n.kind == null && y.root.Value == "":
		y.root = nil
		return node{kind: nothing}, y, nil
	case y.root.Style&yaml.FlowStyle != 0 && len(y.root.Content) > 0:
		// JSON is YAML as well.
		if _, j, err := parseJSON(data); err == nil {
			return n, j, nil
		}
	}
	return n, y, nil
}

// yamlLines returns where the lines of data start, up to the end of the document.
// They end with what the parser takes for a line end.
func yamlLines(data []byte) []int {
	lines := []int{0}
	for i := 0; i < len(data); {
		n := 0
		switch {
		case bytes.HasPrefix(data[i:], []byte("\r\n")):
			n = 2
		case data[i] == '\r' || data[i] == '\n':
			n = 1
		case bytes.HasPrefix(data[i:], []byte("\u0085")):
			n = 2
		case bytes.HasPrefix(data[i:], []byte("\u2028")), bytes.HasPrefix(data[i:], []byte("\u2029")):
			n = 3
		}
		i += max(n, 1)
		if n == 0 {
			continue
		}
		if rest := data[i:]; bytes.HasPrefix(rest, []byte("...")) && (len(rest) == 3 || rest[3] <= ' ') {
			return append(lines, i)
		}
		if i < len(data) {
			lines = append(lines, i)
		}
	}
	return append(lines, len(data))
}

// yamlLine matches the line in an error of the parser.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// syntaxError returns the error for an error of the parser.
func (y *yamlFile) syntaxError(err error) error {
	line, what := 1, "the line cannot be read"
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ = strconv.Atoi(m[1])
		// The quoted text may be a secret.
		if text, _, _ := strings.Cut(m[2], "'"); strings.TrimSpace(text) != "" && len(text) < 100 {
			what = strings.TrimSpace(text)
		}
	}
	return &Error{Line: max(line, 1), Column: 1, Reason: "invalid YAML: " + what + "; correct it with an editor"}
}

// errorAt returns the error at a node.
func (y *yamlFile) errorAt(n *yaml.Node, format string, args ...any) error {
	return &Error{Line: n.Line, Column: n.Column, Reason: fmt.Sprintf(format, args...)}
}

// node returns the node of a value.
func (y *yamlFile) node(v *yaml.Node, depth int) (node, error) {
	if depth > maxDepth {
		return node{}, y.errorAt(v, "values are nested more than %d deep; change the file with an editor", maxDepth)
	}
	n := node{kind: other, text: v.Value, mark: v.Anchor}
	if v.Style&yaml.TaggedStyle != 0 {
		n.mark += "!" + v.Tag
	}
	switch v.Kind {
	case yaml.MappingNode:
		n.kind = object
		for i := 0; i+1 < len(v.Content); i += 2 {
			name, err := y.node(v.Content[i], depth+1)
			if err != nil {
				return node{}, err
			}
			value, err := y.node(v.Content[i+1], depth+1)
			if err != nil {
				return node{}, err
			}
			n.members = append(n.members, member{name, value})
		}
	case yaml.SequenceNode:
		n.kind = list
		for _, e := range v.Content {
			item, err := y.node(e, depth+1)
			if err != nil {
				return node{}, err
			}
			n.items = append(n.items, item)
		}
	case yaml.ScalarNode:
		switch v.ShortTag() {
		case "!!str":
			n.kind = text
		case "!!int", "!!float":
			n.kind = number
		case "!!bool":
			n.kind, n.text = boolean, strings.ToLower(v.Value)
		case "!!null":
			n.kind = null
		}
	}
	return n, nil
}

// lookup returns the index of the name of a member of a mapping, or -1.
func (y *yamlFile) lookup(mapping *yaml.Node, name string) (int, error) {
	found := -1
	merged := false
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		merged = merged || key.ShortTag() == "!!merge"
		switch {
		case key.Kind != yaml.ScalarNode || key.Value != name:
			continue
		case key.ShortTag() != "!!str":
			return 0, y.errorAt(key, "%q is a key that is not a string; write it in quotation marks, without a tag", name)
		case found >= 0:
			return 0, y.errorAt(key, "%q is there twice; remove one of them", name)
		}
		found = i
	}
	if found < 0 && merged {
		return 0, y.errorAt(mapping, "%q may come from a merge key (<<); write it out", name)
	}
	return found, nil
}

// item returns the index of the element of a sequence with this name, or -1.
func (y *yamlFile) item(sequence *yaml.Node, name string) (int, error) {
	found := -1
	for i, e := range sequence.Content {
		if e.Kind != yaml.MappingNode {
			continue
		}
		at, err := y.lookup(e, "name")
		if err != nil {
			return 0, err
		}
		if at < 0 || e.Content[at+1].Kind != yaml.ScalarNode || e.Content[at+1].Value != name {
			continue
		}
		if found >= 0 {
			return 0, y.errorAt(e, "the list has %q twice; remove one of them", name)
		}
		found = i
	}
	return found, nil
}

// isEmpty reports whether a value is missing, as in "key:".
func isEmpty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.ShortTag() == "!!null" && n.Style&yaml.TaggedStyle == 0
}

// check implements editor.
func (y *yamlFile) check(place Place) error {
	if y.root == nil {
		return nil
	}
	n, path := y.root, "the file"
	for i := 0; ; i++ {
		want, name := yaml.MappingNode, "a mapping"
		isList := place.List && i == len(place.Keys)
		if isList {
			want, name = yaml.SequenceNode, "a list"
		}
		switch {
		case n.Anchor != "":
			return y.errorAt(n, "%s has an anchor, so other parts of the file could change as well; "+
				"change it with an editor", path)
		case isEmpty(n):
			return nil
		case n.Kind != want:
			return y.errorAt(n, "%s is not %s; correct it with an editor", path, name)
		}
		if isList {
			_, err := y.item(n, place.Name)
			return err
		}
		if i == len(place.Keys) {
			_, err := y.lookup(n, place.Name)
			return err
		}
		at, err := y.lookup(n, place.Keys[i])
		if err != nil || at < 0 {
			return err
		}
		n, path = n.Content[at+1], strconv.Quote(place.Keys[i])
	}
}

// A yamlParent is the collection that has the entries, or the innermost one on
// the way to it.
type yamlParent struct {
	key     *yaml.Node // nil for the root
	value   *yaml.Node
	missing []string
	end     int // the line of what follows the collection
}

// parent returns the parent of an entry.
func (y *yamlFile) parent(keys []string) yamlParent {
	p := yamlParent{value: y.root, missing: keys, end: len(y.lines) - 1}
	for len(p.missing) > 0 && p.value.Kind == yaml.MappingNode {
		at, _ := y.lookup(p.value, p.missing[0])
		if at < 0 {
			break
		}
		if at+2 < len(p.value.Content) {
			p.end = p.value.Content[at+2].Line - 1
		}
		p.key, p.value, p.missing = p.value.Content[at], p.value.Content[at+1], p.missing[1:]
	}
	return p
}

// set implements editor.
func (y *yamlFile) set(place Place, entry []Member) ([]edit, error) {
	s := y.style()
	if y.root == nil {
		added := nested(place, place.Keys, entry)
		end := len(y.lines) - 1
		for end > 0 && y.blank(end-1) {
			end--
		}
		return y.insert(end, s.members(nil, added, 0)), nil
	}
	p := y.parent(place.Keys)
	if p.value.Style&yaml.FlowStyle != 0 && len(p.value.Content) > 0 {
		return nil, y.flowError(p.value)
	}
	if len(p.value.Content) == 0 {
		return y.insertFirst(p, place, entry, s)
	}
	indent := p.value.Column - 1
	var text []byte
	found := -1
	switch {
	case p.value.Kind == yaml.SequenceNode:
		text = s.item(nil, entry, indent)
		found, _ = y.item(p.value, place.Name)
	case len(p.missing) > 0:
		text = s.members(nil, nested(place, p.missing, entry), indent)
	default:
		text = s.members(nil, []Member{{place.Name, entry}}, indent)
		if found, _ = y.lookup(p.value, place.Name); found > 0 {
			found /= 2
		}
	}
	if found >= 0 {
		start, end := y.extent(p, found)
		if y.lines[end] == len(y.data) && !y.endsWithLine() {
			text = bytes.TrimSuffix(text, []byte(s.newline))
		}
		return []edit{{y.lines[start], y.lines[end], string(text)}}, nil
	}
	_, end := y.extent(p, y.count(p)-1)
	return y.insert(y.comments(end, p.end, indent), text), nil
}

// nested returns the members that an entry becomes if its parents with these
// keys are missing.
func nested(place Place, keys []string, entry []Member) []Member {
	added := []Member{{place.Name, entry}}
	if place.List {
		if len(keys) == 0 {
			return nil
		}
		added = []Member{{keys[len(keys)-1], [][]Member{entry}}}
		keys = keys[:len(keys)-1]
	}
	for _, k := range slices.Backward(keys) {
		added = []Member{{k, added}}
	}
	return added
}

// insertFirst returns the edits that add an entry to a collection without any.
func (y *yamlFile) insertFirst(p yamlParent, place Place, entry []Member, s yamlStyle) ([]edit, error) {
	at, end := y.offset(p.value), y.offset(p.value)
	if !isEmpty(p.value) {
		if end = closing(y.data, at); end < 0 {
			return nil, y.flowError(p.value)
		}
	}
	if p.key == nil {
		text := bytes.TrimSuffix(s.members(nil, nested(place, p.missing, entry), 0), []byte(s.newline))
		return []edit{{at, end, string(text)}}, nil
	}
	line := p.key.Line
	indent := p.key.Column - 1
	if rest := bytes.TrimSpace(y.data[y.colon(p.key):y.lines[line]]); end == at && len(rest) > 0 && rest[0] != '#' {
		return nil, y.errorAt(p.value, "%q has something that is not a value; correct it with an editor", p.key.Value)
	}
	var text []byte
	if place.List && len(p.missing) == 0 {
		text = s.item(nil, entry, indent+s.list)
	} else {
		text = s.members(nil, nested(place, p.missing, entry), indent+s.unit)
	}
	edits := y.insert(line, text)
	if end > at {
		if p.value.Line != p.key.Line || len(p.value.Content) > 0 {
			return nil, y.flowError(p.value)
		}
		start := len(bytes.TrimRight(y.data[:at], " \t"))
		edits = append([]edit{{start, end, ""}}, edits...)
	}
	return edits, nil
}

// closing returns the end of the empty collection in braces or brackets at the
// byte at, or -1.
func closing(data []byte, at int) int {
	if at >= len(data) {
		return -1
	}
	end := at + 1 + blank(data[at+1:])
	if end == len(data) || string([]byte{data[at], data[end]}) != "{}" && string([]byte{data[at], data[end]}) != "[]" {
		return -1
	}
	return end + 1
}

// flowError returns the error for a collection in braces.
func (y *yamlFile) flowError(n *yaml.Node) error {
	return y.errorAt(n, "the entries are written in braces or brackets; write each on lines of its own")
}

// remove implements editor.
func (y *yamlFile) remove(place Place) ([]edit, error) {
	p := y.parent(place.Keys)
	if p.value.Style&yaml.FlowStyle != 0 {
		return nil, y.flowError(p.value)
	}
	var found int
	empty := " {}"
	if place.List {
		found, _ = y.item(p.value, place.Name)
		empty = " []"
	} else {
		found, _ = y.lookup(p.value, place.Name)
		found /= 2
	}
	first, last := y.extent(p, found)
	start, end := y.lines[first], y.lines[last]
	if end == len(y.data) && !y.endsWithLine() {
		start = len(bytes.TrimSuffix(y.data[:start], []byte("\n")))
		start = len(bytes.TrimSuffix(y.data[:start], []byte("\r")))
	}
	edits := []edit{{start, end, ""}}
	if y.count(p) == 1 {
		if p.key == nil {
			return nil, y.errorAt(p.value, "the file would have nothing but the entry; change it with an editor")
		}
		at := y.colon(p.key)
		edits = append([]edit{{at, at, empty}}, edits...)
	}
	return edits, nil
}

// colon returns the end of the colon after a key.
func (y *yamlFile) colon(key *yaml.Node) int {
	at := y.offset(key)
	line := y.data[at:y.lines[key.Line]]
	i := 0
	if len(line) > 0 && (line[0] == '"' || line[0] == '\'') {
		for i = 1; i < len(line) && line[i] != line[0]; i++ {
			if line[i] == '\\' && line[0] == '"' {
				i++
			}
		}
	}
	for ; i < len(line); i++ {
		if line[i] == ':' && (i+1 == len(line) || line[i+1] <= ' ') {
			return at + i + 1
		}
	}
	return at
}

// count returns the number of entries of a collection.
func (y *yamlFile) count(p yamlParent) int {
	if p.value.Kind == yaml.MappingNode {
		return len(p.value.Content) / 2
	}
	return len(p.value.Content)
}

// extent returns the first line of an entry and the line after its last one.
func (y *yamlFile) extent(p yamlParent, i int) (start, end int) {
	v := p.value
	end = p.end
	if v.Kind == yaml.MappingNode {
		if 2*i+2 < len(v.Content) {
			end = v.Content[2*i+2].Line - 1
		}
		return v.Content[2*i].Line - 1, y.content(v.Content[2*i+1], v.Content[2*i].Line-1, end)
	}
	if i+1 < len(v.Content) {
		end = y.dash(v, v.Content[i+1])
	}
	start = y.dash(v, v.Content[i])
	return start, y.content(v.Content[i], start, end)
}

// dash returns the line with the dash of an element of a sequence.
func (y *yamlFile) dash(sequence, element *yaml.Node) int {
	for line := element.Line - 1; line >= sequence.Line-1; line-- {
		at := y.lines[line] + sequence.Column - 1
		if at < y.lines[line+1] && y.data[at] == '-' && len(bytes.TrimSpace(y.data[y.lines[line]:at])) == 0 {
			return line
		}
	}
	return element.Line - 1
}

// content returns the line after the last one of a value, which has been reached
// at end. Blank lines and comments that follow are not part of the value.
func (y *yamlFile) content(v *yaml.Node, start, end int) int {
	for len(v.Content) > 0 {
		v = v.Content[len(v.Content)-1]
	}
	if v.Kind == yaml.ScalarNode && v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && v.Line <= end {
		return y.block(v, end)
	}
	for end > start+1 && (y.blank(end-1) || y.comment(end-1)) {
		end--
	}
	return end
}

// block returns the line after the last one of a block scalar.
func (y *yamlFile) block(v *yaml.Node, end int) int {
	header := y.data[y.offset(v):y.lines[v.Line]]
	header, _, _ = bytes.Cut(header, []byte("#"))
	keep := bytes.ContainsRune(header, '+')
	last, indent := v.Line, -1
	if bytes.ContainsAny(header, "123456789") { // the first line may be indented more
		indent = blank(y.data[y.lines[v.Line-1]:]) + 1
	}
	for line := v.Line; line < end; line++ {
		if y.blank(line) {
			if keep {
				last = line + 1
			}
			continue
		}
		n := blank(y.data[y.lines[line]:])
		if indent < 0 {
			indent = n
		}
		if n < indent || n == 0 {
			break
		}
		last = line + 1
	}
	return last
}

// comments returns the line after the comments that begin at a line and belong to
// a collection with this indentation, which ends at end.
func (y *yamlFile) comments(line, end, indent int) int {
	stop := line
	for stop < end && y.comment(stop) {
		stop++
	}
	if stop == end && end < len(y.lines)-1 { // they may belong to what follows
		indent = max(indent, blank(y.data[y.lines[end]:])+1)
	}
	for line < stop && blank(y.data[y.lines[line]:]) >= indent {
		line++
	}
	return line
}

// insert returns the edit that inserts lines before a line.
func (y *yamlFile) insert(line int, text []byte) []edit {
	at := y.lines[line]
	if at == len(y.data) && at > 0 && !y.endsWithLine() {
		end := newline(y.data)
		text = append([]byte(end), bytes.TrimSuffix(text, []byte(end))...)
	}
	return []edit{{at, at, string(text)}}
}

// endsWithLine reports whether the last line of the file ends with a line end.
func (y *yamlFile) endsWithLine() bool {
	return bytes.HasSuffix(y.data, []byte("\n")) || bytes.HasSuffix(y.data, []byte("\r"))
}

// blank reports whether a line has only white space.
func (y *yamlFile) blank(line int) bool {
	return len(bytes.TrimSpace(y.data[y.lines[line]:y.lines[line+1]])) == 0
}

// comment reports whether a line has only a comment.
func (y *yamlFile) comment(line int) bool {
	return bytes.HasPrefix(bytes.TrimLeft(y.data[y.lines[line]:y.lines[line+1]], " \t"), []byte("#"))
}

// offset returns the position of a node, in bytes.
func (y *yamlFile) offset(n *yaml.Node) int {
	at := y.lines[min(max(n.Line-1, 0), len(y.lines)-1)]
	for range n.Column - 1 {
		if at < len(y.data) {
			at++
		}
		for at < len(y.data) && y.data[at]&0xc0 == 0x80 {
			at++
		}
	}
	return at
}

// A yamlStyle says how values are written.
type yamlStyle struct {
	newline string
	unit    int // of indentation
	list    int // the indentation of a list in a mapping
}

// style returns the style of the file.
func (y *yamlFile) style() yamlStyle {
	s := yamlStyle{newline: newline(y.data), unit: 2, list: 2}
	unit, list := false, false
	var walk func(*yaml.Node)
	walk = func(n *yaml.Node) {
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			v := n.Content[i+1]
			indent := v.Column - n.Column
			if v.Style&yaml.FlowStyle != 0 || len(v.Content) == 0 || indent < 0 || indent > 8 {
				continue
			}
			switch {
			case v.Kind == yaml.MappingNode && !unit && indent > 0:
				s.unit, unit = indent, true
			case v.Kind == yaml.SequenceNode && !list:
				s.list, list = indent, true
			}
		}
		for _, v := range n.Content {
			if !unit || !list {
				walk(v)
			}
		}
	}
	if y.root != nil {
		walk(y.root)
	}
	return s
}

// members appends the members of a mapping.
func (s yamlStyle) members(b []byte, members []Member, indent int) []byte {
	for _, m := range members {
		b = append(b, strings.Repeat(" ", indent)...)
		b = append(append(b, yamlScalar(m.Name)...), ':')
		switch v := m.Value.(type) {
		case string:
			b = append(append(append(b, ' '), yamlScalar(v)...), s.newline...)
		case []string:
			if len(v) == 0 {
				b = append(append(b, " []"...), s.newline...)
				continue
			}
			b = append(b, s.newline...)
			for _, e := range v {
				b = append(b, strings.Repeat(" ", indent+s.list)...)
				b = append(append(append(b, "- "...), yamlScalar(e)...), s.newline...)
			}
		case []Member:
			if len(v) == 0 {
				b = append(append(b, " {}"...), s.newline...)
				continue
			}
			b = s.members(append(b, s.newline...), v, indent+s.unit)
		case [][]Member:
			b = append(b, s.newline...)
			for _, e := range v {
				b = s.item(b, e, indent+s.list)
			}
		default:
			b = append(append(append(b, ' '), valueNode(v).text...), s.newline...)
		}
	}
	return b
}

// item appends an element of a list.
func (s yamlStyle) item(b []byte, members []Member, indent int) []byte {
	start := len(b)
	b = s.members(b, members, indent+2)
	copy(b[start+indent:], "- ")
	return b
}

var (
	// plainScalar matches strings that need no quotation marks, unless they
	// match notString.
	plainScalar = regexp.MustCompile(`^[A-Za-z_/]([A-Za-z0-9_./@:+-]*[A-Za-z0-9_./@+-])?$`)
	notString   = regexp.MustCompile(`(?i)^(true|false|null|yes|no|on|off|y|n)$`)
)

// yamlScalar returns a string as a scalar.
func yamlScalar(s string) string {
	if plainScalar.MatchString(s) && !notString.MatchString(s) {
		return s
	}
	return quote(s)
}
