package skill

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	maxLayers   = 24 // maximum number of schemas that are merged: a schema, its $ref, its allOf
	maxVariants = 24 // maximum number of variants of anyOf and oneOf
)

// maxSteps limits the work on one document: the number of schemas, properties
// and types that are processed. References may form cycles.
const maxSteps = 200_000

// A document is an input schema whose references are followed.
type document struct {
	root  *value
	steps int  // number of steps so far
	first bool // merge the first variant of a choice, as for an example
}

// A shape is a schema whose references are resolved and whose allOf is merged.
// A choice between one schema and null is replaced by that schema.
type shape struct {
	layers   []*value // the merged schemas, the schema itself first
	types    []string // permitted types, without null; empty if all are permitted
	nullable bool
	variants []*value // of a choice between several, without null
	never    bool     // the schema false
	names    []string // of the properties, in order
	schemas  map[string]*value
	required map[string]bool
}

// shape returns the shape of a schema, which may be nil.
func (d *document) shape(schema *value) *shape {
	s := &shape{schemas: map[string]*value{}, required: map[string]bool{}}
	queue := []*value{schema}
	for len(queue) > 0 && len(s.layers) < maxLayers && d.steps < maxSteps {
		layer := queue[0]
		queue = queue[1:]
		if layer == nil || slices.Contains(s.layers, layer) {
			continue
		}
		s.layers = append(s.layers, layer)
		if layer.raw == "false" {
			s.never = true
		}
		queue = append(queue, d.resolve(layer.get("$ref").str()))
		queue = append(queue, bounded(layer.get("allOf").list())...)
		queue = append(queue, s.choice(layer, d.first)...)
		d.steps += 1 + s.addProperties(layer, d.first)
	}
	s.findTypes()
	return s
}

// bounded limits the number of schemas.
func bounded(schemas []*value) []*value { return schemas[:min(len(schemas), maxVariants)] }

// choice records the variants of anyOf and oneOf. If only one of them is not
// null, or with first the first one, it is returned instead.
func (s *shape) choice(layer *value, first bool) []*value {
	for _, word := range []string{"anyOf", "oneOf"} {
		var variants []*value
		all := layer.get(word).list()
		for _, v := range all[:min(len(all), 2*maxVariants)] {
			if v.get("type").str() == "null" {
				s.nullable = true
				continue
			}
			variants = append(variants, v)
		}
		if len(variants) == 1 || first && len(variants) > 0 {
			return variants[:1]
		}
		if s.variants == nil {
			s.variants = bounded(variants)
		}
	}
	return nil
}

// addProperties merges the properties of a layer. Earlier layers take
// precedence, or with last later ones, as a variant is more specific. It returns
// the number of processed properties.
func (s *shape) addProperties(layer *value, last bool) (steps int) {
	if p := layer.get("properties"); p != nil && p.kind == "object" {
		for _, name := range p.names {
			_, known := s.schemas[name]
			if !known {
				s.names = append(s.names, name)
			}
			if !known || last {
				s.schemas[name] = p.get(name)
			}
		}
		steps = len(p.names)
	}
	required := layer.get("required").list()
	for _, r := range required {
		if r.kind == "string" {
			s.required[r.text] = true
		}
	}
	return steps + len(required)
}

// findTypes reads the types, or infers them from other keywords.
func (s *shape) findTypes() {
	if t := s.keyword("type"); t != nil {
		types := append([]*value{t}, t.list()...)
		for _, t := range types[:min(len(types), 10)] {
			switch {
			case t.str() == "null":
				s.nullable = true
			case t.str() != "" && !slices.Contains(s.types, t.text):
				s.types = append(s.types, cleanLine(t.text, 40))
			}
		}
	}
	if s.keyword("nullable").isTrue() {
		s.nullable = true
	}
	if len(s.types) > 0 || len(s.variants) > 0 {
		return
	}
	values := s.keyword("enum").list()
	values = values[:min(len(values), 100)]
	if c := s.keyword("const"); c != nil {
		values = []*value{c}
	}
	for _, v := range values {
		if v.kind == "null" {
			s.nullable = true
		} else if !slices.Contains(s.types, v.kind) {
			s.types = append(s.types, v.kind)
		}
	}
	switch {
	case len(s.types) > 0:
	case len(s.names) > 0 || s.keyword("additionalProperties") != nil:
		s.types = []string{"object"}
	case s.keyword("items") != nil:
		s.types = []string{"array"}
	}
}

// keyword returns the first value of a keyword in the layers, or nil if there
// is none.
func (s *shape) keyword(name string) *value {
	for _, layer := range s.layers {
		if v := layer.get(name); v != nil {
			return v
		}
	}
	return nil
}

// is reports whether a type is permitted. An integer is a number.
func (s *shape) is(name string) bool {
	return slices.Contains(s.types, name) || name == "integer" && slices.Contains(s.types, "number")
}

// items returns the schema of an array's items, or nil if there is none. For a
// tuple, it returns the schema of the first item.
func (s *shape) items() *value {
	for _, word := range []string{"prefixItems", "items"} {
		v := s.keyword(word)
		if v != nil && v.kind != "array" {
			return v
		}
		if list := v.list(); len(list) > 0 {
			return list[0]
		}
	}
	return nil
}

// constants returns the values of a choice between constants.
func (s *shape) constants() []*value {
	var constants []*value
	for _, v := range s.variants {
		c := v.get("const")
		if c == nil {
			return nil
		}
		constants = append(constants, c)
	}
	return constants
}

// number returns the value of a keyword that is a number.
func (s *shape) number(name string) (n float64, ok bool) {
	v := s.keyword(name)
	if v == nil || v.kind != "integer" && v.kind != "number" {
		return 0, false
	}
	n, err := strconv.ParseFloat(v.raw, 64)
	return n, err == nil
}

// resolve resolves a reference within the document. It returns nil if there is
// no target or the target is outside of the document; nothing is fetched.
func (d *document) resolve(ref string) *value {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	if unescaped, err := url.PathUnescape(pointer); err == nil {
		pointer = unescaped
	}
	if pointer == "" {
		return d.root
	}
	at := d.root
	steps := strings.Split(pointer, "/")
	if steps[0] != "" || len(steps) > maxNesting {
		return nil
	}
	for _, step := range steps[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		if list := at.list(); list != nil {
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(list) {
				return nil
			}
			at = list[i]
			continue
		}
		at = at.get(step)
	}
	return at
}
