package skill

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"knowhow/internal/sanitize"
)

// A value is a JSON value that keeps the order of an object's members, of which
// servers put the important ones first.
type value struct {
	kind  string         // its type in JSON Schema's words; of a number "integer" where it is written as one
	raw   string         // compact JSON, in which nothing is hidden
	text  string         // of a string
	items []*value       // of an array; of an object's members
	names []string       // of an object's members, in their order
	index map[string]int // where a name's last member lies in items
}

// maxNesting is how deep values are read. No schema of a tool comes near it.
const maxNesting = 64

// parseValue reads one JSON text.
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

// read reads the next value, with at most depth levels within.
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

// get returns an object's member, nil if v is no object or has none of that
// name. Of several it is the last, as in encoding/json.
func (v *value) get(name string) *value {
	if v == nil {
		return nil
	}
	if i, ok := v.index[name]; ok {
		return v.items[i]
	}
	return nil
}

// str returns the text of a string, "" of everything else.
func (v *value) str() string {
	if v == nil {
		return ""
	}
	return v.text
}

// list returns the items of an array, none of everything else.
func (v *value) list() []*value {
	if v == nil || v.kind != "array" {
		return nil
	}
	return v.items
}

// isTrue reports whether v is true.
func (v *value) isTrue() bool { return v != nil && v.raw == "true" }
