package configfile

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Get returns the entry at place, and reports whether there is one. Strings,
// booleans and integers are a string, a bool and an int, other numbers a
// float64, lists a []any and objects a map[string]any. An entry that is not an
// object is found, and nil. An entry of a list is returned without its name.
func Get(format Format, data []byte, place Place) (entry map[string]any, found bool, err error) {
	f, err := parse(format, data)
	if err != nil {
		return nil, false, err
	}
	n, found, err := f.find(place)
	if err != nil || !found || n.kind != object {
		return nil, found, err
	}
	entry = n.plain().(map[string]any)
	if place.List {
		delete(entry, "name")
	}
	return entry, true, nil
}

// Equal reports whether an entry that Get returned has these members and no
// others. Their order is ignored.
func Equal(entry map[string]any, members []Member) bool {
	return entry != nil && reflect.DeepEqual(any(entry), entryNode(members).plain())
}

// Set returns data with the entry at place added or replaced. It returns data
// itself if the entry is there already. Data without a value is an empty file.
func Set(format Format, data []byte, place Place, entry []Member) ([]byte, error) {
	f, err := parse(format, data)
	if err != nil {
		return nil, err
	}
	if place.List {
		members := slices.DeleteFunc(slices.Clone(entry), func(m Member) bool { return m.Name == "name" })
		entry = append([]Member{{"name", place.Name}}, members...)
	}
	old, found, err := f.find(place)
	if err != nil {
		return nil, err
	}
	value := entryNode(entry)
	if found && reflect.DeepEqual(old.plain(), value.plain()) {
		return data, nil
	}
	edits, err := f.editor.set(place, entry)
	if err != nil {
		return nil, err
	}
	return f.apply(edits, place, f.root.with(place, value))
}

// Remove returns data without the entry at place, or data itself if there is
// none. The object that had the entry stays, even if it is empty then.
func Remove(format Format, data []byte, place Place) ([]byte, error) {
	f, err := parse(format, data)
	if err != nil {
		return nil, err
	}
	if _, found, err := f.find(place); err != nil || !found {
		return data, err
	}
	edits, err := f.editor.remove(place)
	if err != nil {
		return nil, err
	}
	return f.apply(edits, place, f.root.without(place))
}

// Undo returns data without the entry at place, like Remove. The objects on the way to
// the entry go, too, if they are empty then and the file as it was before, which backup
// (from [Backup]) has, does not have them. If nothing else has changed since, Undo
// returns the bytes of that file, or nil if there was none.
func Undo(format Format, data, backup []byte, place Place) ([]byte, error) {
	removed, err := Remove(format, data, place)
	if err != nil || backup == nil || bytes.Equal(removed, data) || bytes.Equal(backup, data) {
		return removed, err
	}
	if none, _ := isMissing(backup); none {
		backup = nil
	}
	was, err := parse(format, backup)
	if err != nil {
		return removed, nil // someone has changed the backup
	}
	if without, err := bare(format, backup, place); err == nil && bytes.Equal(without, removed) {
		return backup, nil
	}
	for keys := place.Keys; len(keys) > 0; keys = keys[:len(keys)-1] {
		if _, had := was.root.parent(keys); had {
			break
		}
		f, err := parse(format, removed)
		if err != nil {
			break
		}
		if n, ok := f.root.parent(keys); !ok || len(n.members)+len(n.items) > 0 {
			break
		}
		without, err := Remove(format, removed, Place{Keys: keys[:len(keys)-1], Name: keys[len(keys)-1]})
		if err != nil {
			break
		}
		removed = without
	}
	return removed, nil
}

// bare returns data with the parents of the entry at place, but without the
// entry. It makes files equal that differ in an empty object or a missing one.
func bare(format Format, data []byte, place Place) ([]byte, error) {
	data, err := Set(format, data, place, []Member{{"command", "any"}})
	if err != nil {
		return nil, err
	}
	return Remove(format, data, place)
}

// A file is a parsed file.
type file struct {
	format Format
	mark   []byte // the byte order mark, or empty
	data   []byte // what follows it
	root   node
	editor editor
}

// An editor finds what to change in the bytes of a file.
type editor interface {
	// check returns an error if the file does not allow an entry at place.
	check(place Place) error
	// set returns the edits that add or replace an entry.
	set(place Place, entry []Member) ([]edit, error)
	// remove returns the edits that remove an entry, which must be there.
	remove(place Place) ([]edit, error)
}

// An edit replaces the bytes from start to end by text.
type edit struct {
	start, end int
	text       string
}

// tooLarge is the error for a file of more than MaxSize bytes.
var tooLarge = fmt.Sprintf("the file is larger than %d MiB; change it with an editor", MaxSize>>20)

// byteOrderMark is that of UTF-8.
var byteOrderMark = []byte("\ufeff")

// parse parses a file.
func parse(format Format, data []byte) (*file, error) {
	if len(data) > MaxSize {
		return nil, &Error{Reason: tooLarge}
	}
	f := &file{format: format, data: data}
	if bytes.HasPrefix(data, byteOrderMark) {
		f.mark, f.data = data[:3], data[3:]
	}
	if err := checkText(f.data); err != nil {
		return nil, err
	}
	var err error
	switch format {
	case JSON:
		f.root, f.editor, err = parseJSON(f.data)
	case TOML:
		f.root, f.editor, err = parseTOML(f.data)
	case YAML:
		f.root, f.editor, err = parseYAML(f.data)
	default:
		return nil, fmt.Errorf("changing a file of format %q: %w", format, errkind.Unsupported)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// checkText returns an error if data is not UTF-8 or has a NUL byte, which no
// format permits.
func checkText(data []byte) error {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return errorAt(data, 0, "the file is UTF-16; save it as UTF-8")
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return errorAt(data, i, "the file is not UTF-8; save it with that encoding")
		case r == 0:
			return errorAt(data, i, "the file has a NUL byte; restore it from a backup or remove the byte")
		}
		i += n
	}
	return nil
}

// find returns the entry at place.
func (f *file) find(place Place) (node, bool, error) {
	if err := f.editor.check(place); err != nil {
		return node{}, false, err
	}
	n, found := f.root.find(place)
	return n, found, nil
}

// apply returns the file with the edits, which must result in the values of want.
func (f *file) apply(edits []edit, place Place, want node) ([]byte, error) {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	out := slices.Clone(f.mark)
	at := 0
	for _, e := range edits {
		if e.start < at || e.end < e.start || e.end > len(f.data) {
			return nil, f.cannot(e.start)
		}
		out = append(append(out, f.data[at:e.start]...), e.text...)
		at = e.end
	}
	out = append(out, f.data[at:]...)
	changed, err := parse(f.format, out)
	if err != nil || !changed.has(want, place.Keys) {
		at := 0
		if len(edits) > 0 {
			at = edits[0].start
		}
		return nil, f.cannot(at)
	}
	return out, nil
}

// has reports whether the file has the values of want. In a TOML file, tables
// without members on the way to the entries may be missing.
func (f *file) has(want node, keys []string) bool {
	if f.format != TOML {
		return f.root.equal(want)
	}
	want = want.sorted()
	for ; ; keys = keys[:len(keys)-1] {
		if f.root.equal(want) {
			return true
		}
		if len(keys) == 0 {
			return false
		}
		if n, ok := want.parent(keys); ok && n.kind == object && len(n.members) == 0 {
			want = want.without(Place{Keys: keys[:len(keys)-1], Name: keys[len(keys)-1]})
		}
	}
}

// cannot returns the error for a file that is valid but is written in a way that
// the editors do not support.
func (f *file) cannot(at int) error {
	return errorAt(f.data, at, "the entry cannot be changed without changing other parts of the file; "+
		"change it with an editor")
}

// newline returns the line end that data uses.
func newline(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// blank returns the length of the spaces and tabs at the start of data.
func blank(data []byte) int {
	return len(data) - len(bytes.TrimLeft(data, " \t"))
}
