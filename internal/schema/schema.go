// Package schema describes the arguments of tools. A [Schema] is shown to
// clients as JSON Schema, and the arguments of a call are checked against it.
// Tools declare schemas; package mcpserver renders and checks them.
package schema

import (
	"encoding/json"
	"slices"

	"knowhow/internal/compact"
)

// A Schema describes one value in a tool's arguments. It is a subset of JSON
// Schema that every client understands: each value has one type, and there are
// no unions. The zero value of a bound means that there is no bound.
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
	Default     any      // filled in if the argument is missing
	OneOrMany   bool     // of an array: a single value means a list of one element
}

// A Property is one member of an object.
type Property struct {
	Name     string
	Required bool
	Schema   Schema
}

// Render returns the schema as JSON Schema, with the properties in their order.
// An object forbids members that it does not list, as [Schema.Check] does. An
// object without properties allows any members unless it is the root.
func (s *Schema) Render() json.RawMessage { return s.render(true) }

func (s *Schema) render(root bool) json.RawMessage {
	w := &compact.Object{}
	w.Add("type", s.Type)
	if s.Description != "" {
		w.Add("description", s.Description)
	}
	if s.Type == "object" && (root || len(s.Properties) > 0) {
		props, required := &compact.Object{}, []string{}
		for _, p := range s.Properties {
			props.Add(p.Name, p.Schema.render(false))
			if p.Required {
				required = append(required, p.Name)
			}
		}
		w.Add("properties", props.Bytes())
		if len(required) > 0 {
			w.Add("required", required)
		}
		w.Add("additionalProperties", false)
	}
	if s.Items != nil {
		w.Add("items", s.Items.render(false))
	}
	s.renderBounds(w)
	if s.Default != nil {
		w.Add("default", s.Default)
	}
	return w.Bytes()
}

func (s *Schema) renderBounds(w *compact.Object) {
	if s.Minimum != nil {
		w.Add("minimum", *s.Minimum)
	}
	if s.Maximum != nil {
		w.Add("maximum", *s.Maximum)
	}
	for _, b := range []struct {
		name  string
		value int
	}{{"minLength", s.MinLength}, {"maxLength", s.MaxLength}, {"maxItems", s.MaxItems}} {
		if b.value > 0 {
			w.Add(b.name, b.value)
		}
	}
	if len(s.Enum) > 0 {
		w.Add("enum", s.Enum)
	}
}

// property returns the property with a name, or nil.
func (s *Schema) property(name string) *Property {
	i := slices.IndexFunc(s.Properties, func(p Property) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Properties[i]
}
