package skill

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// A value is a JSON value that keeps the order of an object's members, because
// servers list the important ones first.
type value struct {
	kind  string         // its type in JSON Schema's terms; "integer" for a number that is written as an integer
	raw   string         // compact JSON, in which no member is omitted
	text  string         // of a string
	items []*value       // of an array; of an object's members
	names []string       // of an object's members, in order
	index map[string]int // index of the last member with a name in items
}

// maxNesting is the maximum nesting depth of values. Schemas of tools are far
// below it.
const maxNesting = 64

// parseValue parses one JSON text.
func parseValue(raw []byte) (*value, error) {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return nil, errors.New("not JSON")
	}
	r := valueReader{text: string(sanitize.ShowJSON(b.Bytes()))}
	r.dec = json.NewDecoder(strings.NewReader(r.text))
	r.dec.UseNumber()
	return r.read(maxNesting)
}

// A valueReader reads the values of a compact JSON text.
type valueReader struct {
	text string
	dec  *json.Decoder
}

// read reads the next value, with at most depth nested levels.
func (r *valueReader) read(depth int) (*value, error) {
	start := int(r.dec.InputOffset())
	if start < len(r.text) && (r.text[start] == ',' || r.text[start] == ':') {
		start++
	}
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	v := &value{kind: "null"}
	switch t := token.(type) {
	case string:
		v.kind, v.text = "string", t
	case bool:
		v.kind = "boolean"
	case json.Number:
		if v.kind = "integer"; strings.ContainsAny(t.String(), ".eE") {
			v.kind = "number"
		}
	case json.Delim:
		if v.kind = "array"; t == '{' {
			v.kind, v.index = "object", map[string]int{}
		}
		if depth == 0 {
			return nil, errors.New("nested too deeply")
		}
		err = r.readItems(v, depth-1)
	}
	v.raw = r.text[start:r.dec.InputOffset()]
	return v, err
}

// readItems reads the rest of an array or object.
func (r *valueReader) readItems(v *value, depth int) error {
	for r.dec.More() {
		if v.index != nil {
			token, err := r.dec.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string)
			v.index[name] = len(v.items)
			v.names = append(v.names, name)
		}
		item, err := r.read(depth)
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
	_, err := r.dec.Token()
	return err
}

// get returns an object's member, or nil if v is not an object or has no such
// member. If there are several, it is the last, as in encoding/json.
func (v *value) get(name string) *value {
	if v == nil {
		return nil
	}
	if i, ok := v.index[name]; ok {
		return v.items[i]
	}
	return nil
}

// str returns the text of a string, or "" for another value.
func (v *value) str() string {
	if v == nil {
		return ""
	}
	return v.text
}

// list returns the items of an array, or nil for another value.
func (v *value) list() []*value {
	if v == nil || v.kind != "array" {
		return nil
	}
	return v.items
}

// isTrue reports whether v is true.
func (v *value) isTrue() bool { return v != nil && v.raw == "true" }
