// Package schema derives the JSON Schema of a tool's arguments from the struct
// that receives them, and checks the arguments of calls against it.
package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A Schema is the JSON Schema of the arguments of a tool. It is limited to what
// every client understands: each value has one type, and there are no unions.
type Schema struct {
	root      *jsonschema.Schema
	oneOrMany map[*jsonschema.Schema]bool // lists for which a single string is accepted
}

// limits lists the words that a limits tag may contain, by type: keywords of JSON
// Schema that [Schema.Check] checks, and oneOrMany.
var limits = map[string][]string{
	"string":  {"minLength", "maxLength", "enum", "default"},
	"integer": {"minimum", "maximum", "default"},
	"number":  {"minimum", "maximum", "default"},
	"boolean": {"default"},
	"array":   {"maxItems", "oneOrMany"},
}

// For returns the schema of the arguments that a T receives. T must be a struct.
// Types are translated as by [jsonschema.For], but without null. Each exported
// field is a property with the name in its json tag. It is required unless the
// tag has omitempty or omitzero. Two more tags describe it:
//
//	Size int `json:"size,omitempty" jsonschema:"Hits on a page" limits:"minimum=1 maximum=100 default=20"`
//
// The jsonschema tag is the description. The limits tag contains words separated
// by blanks: minLength, maxLength (in characters), enum (values separated by |),
// minimum, maximum, maxItems and default, and oneOrMany for a list for which a
// single string is accepted. An error describes an invalid tag or type.
//
// adjust changes the parts of the schema that depend on more than T; nil changes
// nothing. It may set the keywords of limits, descriptions and Required, and
// delete properties.
func For[T any](adjust func(*jsonschema.Schema)) (*Schema, error) {
	root, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, err
	}
	s := &Schema{root: root, oneOrMany: map[*jsonschema.Schema]bool{}}
	if err := s.complete(root, reflect.TypeFor[T]()); err != nil {
		return nil, err
	}
	if root.Type != "object" {
		return nil, fmt.Errorf("arguments of type %s are not an object", root.Type)
	}
	if root.Properties == nil {
		root.Properties = map[string]*jsonschema.Schema{}
	}
	if adjust != nil {
		adjust(root)
	}
	return s, nil
}

// complete removes the unions with null from n, the schema of t, and applies the
// limits tags of its fields.
func (s *Schema) complete(n *jsonschema.Schema, t reflect.Type) error {
	if n.Types != nil {
		n.Type, n.Types = n.Types[1], nil // of "null" and another
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice:
		return s.complete(n.Items, t.Elem())
	case reflect.Map:
		return s.complete(n.AdditionalProperties, t.Elem())
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			name = cmp.Or(name, f.Name)
			p := n.Properties[name]
			if p == nil || f.Anonymous {
				continue
			}
			if err := s.complete(p, f.Type); err != nil {
				return err
			}
			if err := s.limit(p, name, f.Tag.Get("limits")); err != nil {
				return fmt.Errorf("limits of argument %q: %w", name, err)
			}
		}
	}
	return nil
}

// limit applies the limits tag of the property that is called name.
func (s *Schema) limit(n *jsonschema.Schema, name, tag string) error {
	for word := range strings.FieldsSeq(tag) {
		keyword, value, _ := strings.Cut(word, "=")
		if !slices.Contains(limits[n.Type], keyword) {
			return fmt.Errorf("a value of type %q cannot have %q", n.Type, keyword)
		}
		switch {
		case keyword == "oneOrMany":
			s.oneOrMany[n] = true
			continue
		case keyword == "enum":
			value = `["` + strings.ReplaceAll(value, "|", `","`) + `"]`
		case n.Type == "string" && keyword == "default":
			value = `"` + value + `"`
		}
		if err := json.Unmarshal([]byte(`{"`+keyword+`":`+value+`}`), n); err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	if n.Default == nil {
		return nil
	}
	def, err := decode(n.Default)
	if err == nil {
		_, err = s.check(n, name, def)
	}
	return err
}

// MarshalJSON returns the schema as JSON Schema, with the properties in the
// order of the fields. An object forbids members that it does not list.
func (s *Schema) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(s.root)
	return []byte(unescape.Replace(string(b))), err
}

// unescape reverses the escapes that only HTML needs, which jsonschema writes.
// An escaped backslash stays, whatever follows it.
var unescape = strings.NewReplacer(`\\`, `\\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&")
