package skill

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxExampleDepth = 8        // levels of values in an example
	maxExampleNodes = 400      // values in an example
	maxExample      = 16 << 10 // bytes of an example's JSON
	maxGiven        = 1000     // bytes of a value that a schema gives as default or example
)

// An exampler makes up arguments that a tool may be called with.
type exampler struct {
	*document
	nodes int // that were made
	size  int // of them and of the names, in bytes
}

// An argument is one member of an example's arguments.
type argument struct {
	name, json string
	text       bool // the parameter takes strings and nothing else
	maybeText  bool // it may take strings
}

// arguments returns an example of every required argument in the order of the
// properties; of as many as 16 KiB hold, should there be more.
func (d *document) arguments() []argument {
	d.steps = 0
	e := exampler{document: d}
	var args []argument
	top := e.pick(d.shape(d.root))
	for _, name := range e.wanted(top) {
		if e.size += len(name); e.size > maxExample {
			break
		}
		s := e.shape(top.schemas[name])
		a := argument{name: name, json: e.value(s, name, 1)}
		a.text = len(s.types) == 1 && s.types[0] == "string" && len(s.variants) == 0 && !s.nullable
		a.maybeText = len(s.types) == 0 || s.is("string")
		args = append(args, a)
	}
	return args
}

// pick adds the first variant of a choice to a shape that has one.
func (e *exampler) pick(s *shape) *shape {
	if len(s.variants) == 0 {
		return s
	}
	first := e.shape(s.variants[0])
	merged := &shape{
		layers:   append(slices.Clone(s.layers), first.layers...),
		types:    s.types,
		names:    slices.Clone(s.names),
		schemas:  map[string]*value{},
		required: map[string]bool{},
	}
	if len(merged.types) == 0 {
		merged.types = first.types
	}
	for name, schema := range s.schemas {
		merged.schemas[name] = schema
	}
	for _, name := range first.names {
		// The variant knows better: it tells the kinds apart.
		if _, ok := merged.schemas[name]; !ok {
			merged.names = append(merged.names, name)
		}
		merged.schemas[name] = first.schemas[name]
	}
	for _, required := range []map[string]bool{s.required, first.required} {
		for name := range required {
			merged.required[name] = true
		}
	}
	merged.variants = first.variants
	return merged
}

// wanted lists the properties of an example: the required ones, and as many
// others as minProperties asks for.
func (e *exampler) wanted(s *shape) []string {
	var names []string
	for _, name := range s.names {
		if s.required[name] {
			names = append(names, name)
		}
	}
	var unnamed []string
	for name := range s.required {
		if _, ok := s.schemas[name]; !ok {
			unnamed = append(unnamed, name)
		}
	}
	slices.Sort(unnamed)
	names = append(names, unnamed...)
	atLeast, _ := s.number("minProperties")
	for _, name := range s.names {
		if float64(len(names)) < atLeast && !s.required[name] {
			names = append(names, name)
		}
	}
	return names[:min(len(names), maxExampleNodes)]
}

// value returns an example for a shape as JSON. The name is that of the
// property, which may tell what kind of text it is.
func (e *exampler) value(s *shape, name string, depth int) string {
	e.nodes++
	if given := e.given(s); given != "" {
		e.size += len(given)
		return given
	}
	if depth > maxExampleDepth || e.nodes > maxExampleNodes {
		s.variants = nil
	}
	if len(s.variants) > 0 {
		return e.value(e.pick(s), name, depth+1)
	}
	kind := ""
	if len(s.types) > 0 {
		kind = s.types[0]
	}
	switch kind {
	case "object":
		return e.object(s, depth)
	case "array":
		return e.array(s, name, depth)
	case "integer", "number":
		return exampleNumber(s, kind == "integer")
	case "boolean":
		return "false"
	case "":
		if s.nullable && s.keyword("type") != nil {
			return "null"
		}
	}
	return quoteJSON(exampleString(s, name))
}

// given returns a value that the schema itself gives and that has its type, ""
// if there is none.
func (e *exampler) given(s *shape) string {
	var candidates []*value
	candidates = append(candidates, s.keyword("default"))
	candidates = append(candidates, bounded(s.keyword("examples").list())...)
	candidates = append(candidates, s.keyword("example"))
	candidates = append(candidates, bounded(s.keyword("enum").list())...)
	candidates = append(candidates, s.keyword("const"))
	for _, v := range candidates {
		if v == nil || v.kind == nullKind || len(s.types) > 0 && !s.is(typeOf(v)) {
			continue
		}
		if text, whole := v.json(maxGiven); whole {
			return text
		}
	}
	return ""
}

// object returns an example with the required properties.
func (e *exampler) object(s *shape, depth int) string {
	if depth > maxExampleDepth || e.nodes > maxExampleNodes {
		return "{}"
	}
	var members []string
	for _, name := range e.wanted(s) {
		if e.size += len(name); e.size > maxExample {
			break
		}
		members = append(members, quoteJSON(name)+":"+e.value(e.shape(s.schemas[name]), name, depth+1))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// array returns an example with one item, or as many as there must be.
func (e *exampler) array(s *shape, name string, depth int) string {
	const maxItems = 16
	n := 1
	if least, ok := s.number("minItems"); ok && least > 1 {
		n = int(min(least, maxItems))
	}
	if most, ok := s.number("maxItems"); ok && most < 1 {
		n = 0
	}
	if depth > maxExampleDepth || e.nodes > maxExampleNodes {
		n = 0
	}
	item := e.shape(s.items())
	choices := item.keyword("enum").list()
	var items []string
	for i := range n {
		if e.nodes > maxExampleNodes || e.size > maxExample {
			break
		}
		text := e.value(item, name, depth+1)
		switch {
		case i > 0 && i < len(choices):
			if choice, whole := choices[i].json(maxGiven); whole {
				text = choice
			}
		case i > 0 && strings.HasPrefix(text, `"`) && len(choices) == 0 && item.keyword("format") == nil && item.keyword("pattern") == nil:
			text = text[:len(text)-1] + " " + strconv.Itoa(i+1) + `"`
		}
		items = append(items, text)
	}
	return "[" + strings.Join(items, ",") + "]"
}

// exampleNumber returns a small number within the bounds.
func exampleNumber(s *shape, integer bool) string {
	low, hasLow := s.number("minimum")
	high, hasHigh := s.number("maximum")
	above, hasAbove := s.number("exclusiveMinimum")
	below, hasBelow := s.number("exclusiveMaximum")
	step, _ := s.number("multipleOf")
	fits := func(n float64) bool {
		return !(hasLow && n < low || hasHigh && n > high || hasAbove && n <= above || hasBelow && n >= below ||
			integer && n != float64(int64(n)))
	}
	candidates := []float64{1, low, above + 1, high, below - 1, (low + high) / 2, (above + below) / 2, 0}
	if step > 0 {
		first := float64(int64(max(low, above)/step)) * step
		candidates = append([]float64{step, first, first + step}, candidates...)
	}
	for _, n := range candidates {
		if n > -1e15 && n < 1e15 && fits(n) {
			return strconv.FormatFloat(n, 'f', -1, 64)
		}
	}
	return "1"
}

// exampleString returns a text by pattern, format and name, of a length that is
// allowed.
func exampleString(s *shape, name string) string {
	const longest = 200 // a longer minimum is not met: the example shows the call, not the text
	least, _ := s.number("minLength")
	most, hasMost := s.number("maxLength")
	if !hasMost {
		most = longest
	}
	text := formatted(s.keyword("format").str())
	if text == "" {
		text = named(name)
	}
	if s.keyword("contentEncoding").str() == "base64" {
		text = "ZXhhbXBsZQ=="
	}
	if pattern := s.keyword("pattern").str(); pattern != "" {
		return matching(pattern, text)
	}
	for float64(utf8.RuneCountInString(text)) < min(least, longest) {
		text += "x"
	}
	if runes := []rune(text); most >= 0 && float64(len(runes)) > most {
		text = string(runes[:int(most)])
	}
	return text
}

// formatted returns an example of a JSON Schema format, "" of others.
func formatted(format string) string {
	switch format {
	case "date":
		return "2026-01-31"
	case "time":
		return "12:00:00Z"
	case "date-time":
		return "2026-01-31T12:00:00Z"
	case "duration":
		return "PT1H"
	case "email", "idn-email":
		return "user@example.com"
	case "hostname", "idn-hostname":
		return "example.com"
	case "ipv4":
		return "192.0.2.1"
	case "ipv6":
		return "2001:db8::1"
	case "uri", "url", "iri", "uri-reference", "iri-reference":
		return "https://example.com/"
	case "uuid":
		return "123e4567-e89b-12d3-a456-426614174000"
	case "byte":
		return "ZXhhbXBsZQ=="
	case "regex":
		return "^example$"
	case "json-pointer":
		return "/example"
	}
	return ""
}

// named guesses an example from a property's name.
func named(name string) string {
	name = slug(name)
	for _, guess := range []struct{ part, text string }{
		{"url", "https://example.com/"}, {"uri", "https://example.com/"},
		{"email", "user@example.com"},
		{"path", "/path/to/file"}, {"file", "/path/to/file"}, {"directory", "/path/to"},
		{"query", "words to find"}, {"search", "words to find"},
		{"date", "2026-01-31"},
		{"message", "Hello"}, {"text", "Hello"},
	} {
		if name == guess.part || strings.HasSuffix(name, "-"+guess.part) || strings.HasPrefix(name, guess.part+"-") {
			return guess.text
		}
	}
	return "example"
}
