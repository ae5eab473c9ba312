package mcpserver

import (
	"bytes"
	"encoding/json"
	"slices"
)

// A Schema describes one value in a tool's arguments or result. It is the part
// of JSON Schema that every client understands: one type a value, no unions.
// The zero value of a bound means that there is none.
type Schema struct {
	Type        string     // object, string, integer, number, boolean or array
	Description string     // what the value is for, read by models
	Properties  []Property // of an object, in the order shown
	Items       *Schema    // of an array; nil accepts anything
	Minimum     *float64   // of an integer or a number
	Maximum     *float64
	MinLength   int      // of a string, in characters
	MaxLength   int      // of a string, in characters
	MaxItems    int      // of an array
	Enum        []string // of a string
	Default     any      // filled in where the argument is missing
	OneOrMany   bool     // of an array: a single value is taken for a list of one
}

// A Property is one member of an object.
type Property struct {
	Name     string
	Required bool
	Schema   Schema
}

// render returns the schema as JSON Schema, with the properties in their
// order. A closed object forbids members that it does not list, as the
// argument check does; an object that lists none is open unless it is the root.
func (s *Schema) render(closed bool) json.RawMessage {
	return s.renderObject(closed, closed)
}

func (s *Schema) renderObject(closed, root bool) json.RawMessage {
	w := &members{}
	w.add("type", s.Type)
	if s.Description != "" {
		w.add("description", s.Description)
	}
	if s.Type == "object" && (root || len(s.Properties) > 0) {
		props, required := &members{}, []string{}
		for _, p := range s.Properties {
			props.add(p.Name, p.Schema.renderObject(closed, false))
			if p.Required {
				required = append(required, p.Name)
			}
		}
		w.add("properties", props.bytes())
		if len(required) > 0 {
			w.add("required", required)
		}
		if closed {
			w.add("additionalProperties", false)
		}
	}
	if s.Items != nil {
		w.add("items", s.Items.renderObject(closed, false))
	}
	s.renderBounds(w)
	if s.Default != nil {
		w.add("default", s.Default)
	}
	return w.bytes()
}

func (s *Schema) renderBounds(w *members) {
	if s.Minimum != nil {
		w.add("minimum", *s.Minimum)
	}
	if s.Maximum != nil {
		w.add("maximum", *s.Maximum)
	}
	for _, b := range []struct {
		name  string
		value int
	}{{"minLength", s.MinLength}, {"maxLength", s.MaxLength}, {"maxItems", s.MaxItems}} {
		if b.value > 0 {
			w.add(b.name, b.value)
		}
	}
	if len(s.Enum) > 0 {
		w.add("enum", s.Enum)
	}
}

// property returns the property of that name, nil if there is none.
func (s *Schema) property(name string) *Property {
	i := slices.IndexFunc(s.Properties, func(p Property) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Properties[i]
}

// members writes a JSON object whose members keep the order they came in.
type members struct{ buf bytes.Buffer }

// add appends a member. A value that JSON cannot hold is left out.
func (m *members) add(name string, v any) {
	value, err := compactJSON(v)
	if err != nil {
		return
	}
	key, err := compactJSON(name)
	if err != nil {
		return
	}
	if m.buf.Len() > 0 {
		m.buf.WriteByte(',')
	}
	m.buf.Write(key)
	m.buf.WriteByte(':')
	m.buf.Write(value)
}

func (m *members) bytes() json.RawMessage {
	return slices.Concat([]byte("{"), m.buf.Bytes(), []byte("}"))
}

// compactJSON is json.Marshal without the escaping of <, > and &, which would
// make texts longer and harder to read for a model.
func compactJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
