package skill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The kinds of JSON values.
const (
	nullKind = iota
	boolKind
	numberKind
	stringKind
	arrayKind
	objectKind
)

// A value is a JSON value that keeps the order of an object's members, which
// servers put the important ones first in.
type value struct {
	kind  int
	text  string         // of a string; of a number or boolean as it was written
	items []*value       // of an array; of an object's members
	names []string       // of an object's members, in their order
	index map[string]int // where a name's last member lies in items
}

// maxNesting is how deep values are read. No schema of a tool comes near it.
const maxNesting = 64

// errNesting is what parseValue gives for values that are nested deeper.
var errNesting = errors.New("nested too deeply")

// parseValue reads one JSON text.
func parseValue(raw []byte) (*value, error) {
	if !json.Valid(raw) {
		return nil, errors.New("not JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return readValue(dec, maxNesting)
}

// readValue reads the next value, with at most depth levels within.
func readValue(dec *json.Decoder, depth int) (*value, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case string:
		return &value{kind: stringKind, text: t}, nil
	case json.Number:
		return &value{kind: numberKind, text: t.String()}, nil
	case bool:
		return &value{kind: boolKind, text: fmt.Sprint(t)}, nil
	case json.Delim:
		if depth == 0 {
			return nil, errNesting
		}
		return readContainer(dec, t, depth)
	default:
		return &value{kind: nullKind, text: "null"}, nil
	}
}

// readContainer reads the rest of an array or object.
func readContainer(dec *json.Decoder, open json.Delim, depth int) (*value, error) {
	v := &value{kind: arrayKind}
	if open == '{' {
		v.kind, v.index = objectKind, map[string]int{}
	}
	for dec.More() {
		if v.kind == objectKind {
			token, err := dec.Token()
			if err != nil {
				return nil, err
			}
			name, _ := token.(string)
			v.index[name] = len(v.items)
			v.names = append(v.names, name)
		}
		item, err := readValue(dec, depth-1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
	}
	_, err := dec.Token()
	return v, err
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
	if v == nil || v.kind != stringKind {
		return ""
	}
	return v.text
}

// list returns the items of an array, none of everything else.
func (v *value) list() []*value {
	if v == nil || v.kind != arrayKind {
		return nil
	}
	return v.items
}

// isTrue says whether v is true.
func (v *value) isTrue() bool { return v != nil && v.kind == boolKind && v.text == "true" }

// json returns v as compact JSON in which nothing is hidden, or what of it a
// little more than limit bytes hold, and whether that is all.
func (v *value) json(limit int) (text string, whole bool) {
	var b strings.Builder
	whole = v.write(&b, limit)
	return b.String(), whole
}

// write appends v to b until that has limit bytes, and says whether v ended
// before.
func (v *value) write(b *strings.Builder, limit int) bool {
	switch v.kind {
	case stringKind:
		if len(v.text) > limit {
			b.WriteString(quoteJSON(strings.ToValidUTF8(v.text[:limit], "")))
			return false
		}
		b.WriteString(quoteJSON(v.text))
	case arrayKind, objectKind:
		open, end := "[", "]"
		if v.kind == objectKind {
			open, end = "{", "}"
		}
		b.WriteString(open)
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			if v.kind == objectKind {
				name := value{kind: stringKind, text: v.names[i]}
				if !name.write(b, limit) {
					return false
				}
				b.WriteByte(':')
			}
			if !item.write(b, limit) {
				return false
			}
		}
		b.WriteString(end)
	default:
		b.WriteString(v.text[:min(len(v.text), limit)])
	}
	return b.Len() <= limit
}
