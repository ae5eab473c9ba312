package skill

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

const (
	maxExampleDepth = 8        // nesting levels of values in an example
	maxExample      = 16 << 10 // bytes of an example's JSON, of which every value uses at least 40
	maxGiven        = 1000     // bytes of a value from a schema's default, enum or examples
)

// An exampler generates valid arguments for a tool: the values that the schema
// contains, or else placeholders of their types.
type exampler struct {
	*document
	left int // bytes that the example may still have
}

// An argument is a member of the example's arguments.
type argument struct{ name, json string }

// arguments returns an example of every required argument in the order of the
// properties, up to 16 KiB.
func (d *document) arguments() []argument {
	e := exampler{document: &document{root: d.root, first: true}, left: maxExample}
	return e.members(e.shape(d.root), 1)
}

// members returns examples of the properties of an object.
func (e *exampler) members(s *shape, depth int) []argument {
	var members []argument
	for _, name := range e.wanted(s) {
		if e.left -= len(name); e.left <= 0 {
			break
		}
		members = append(members, argument{name, e.value(e.shape(s.schemas[name]), depth)})
	}
	return members
}

// wanted returns the properties of an example: the required ones, and as many
// others as minProperties requires.
func (e *exampler) wanted(s *shape) []string {
	var names, unnamed []string
	for _, name := range s.names {
		if s.required[name] {
			names = append(names, name)
		}
	}
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
	return names
}

// value returns an example for a shape as JSON.
func (e *exampler) value(s *shape, depth int) string {
	given := given(s)
	e.left -= max(40, len(given))
	if given != "" {
		return given
	}
	ended := depth > maxExampleDepth || e.left <= 0
	kind := ""
	if len(s.types) > 0 {
		kind = s.types[0]
	}
	switch {
	case kind == "object" && ended:
		return "{}"
	case kind == "object":
		return objectJSON(e.members(s, depth+1))
	case kind == "array" && ended:
		return "[]"
	case kind == "array":
		return e.array(s, depth)
	case kind == "integer", kind == "number":
		return exampleNumber(s, kind == "integer")
	case kind == "boolean":
		return "false"
	case kind == "" && s.nullable && s.keyword("type") != nil:
		return "null"
	}
	return sanitize.QuoteJSON(exampleString(s))
}

// given returns the first value that the schema itself contains and that has
// its type, or "" if there is none.
func given(s *shape) string {
	candidates := slices.Concat(
		[]*value{s.keyword("default"), s.keyword("const")}, bounded(s.keyword("enum").list()),
		bounded(s.keyword("examples").list()), []*value{s.keyword("example")})
	for _, v := range candidates {
		if v != nil && v.kind != "null" && (len(s.types) == 0 || s.is(v.kind)) && len(v.raw) <= maxGiven {
			return v.raw
		}
	}
	return ""
}

// array returns an example with one item, or the required number of items.
func (e *exampler) array(s *shape, depth int) string {
	n := 1.0
	if least, ok := s.number("minItems"); ok {
		n = min(max(n, least), 16)
	}
	if most, ok := s.number("maxItems"); ok {
		n = min(n, most)
	}
	item := e.shape(s.items())
	choices := item.keyword("enum").list()
	var items []string
	for float64(len(items)) < n && e.left > 0 {
		text := e.value(item, depth+1)
		// Items may have to differ.
		switch i := len(items); {
		case i > 0 && i < len(choices) && len(choices[i].raw) <= maxGiven:
			text = choices[i].raw
		case i > 0 && text == `"example"`:
			text = `"example ` + strconv.Itoa(i+1) + `"`
		}
		items = append(items, text)
	}
	return "[" + strings.Join(items, ",") + "]"
}

// exampleNumber returns the number 1, or another one within the limits.
func exampleNumber(s *shape, integer bool) string {
	limit := func(name string, otherwise float64) float64 {
		if n, ok := s.number(name); ok {
			return n
		}
		return otherwise
	}
	low, high := limit("minimum", math.Inf(-1)), limit("maximum", math.Inf(1))
	above, below := limit("exclusiveMinimum", math.Inf(-1)), limit("exclusiveMaximum", math.Inf(1))
	step := limit("multipleOf", 1)
	from, to := max(low, above), min(high, below)
	first, last := math.Ceil(from/step)*step, math.Floor(to/step)*step
	for _, n := range []float64{step, first, first + step, last, last - step, low, high, (from + to) / 2} {
		if n >= low && n <= high && n > above && n < below && math.Abs(n) < 1e15 && (!integer || n == math.Trunc(n)) {
			return strconv.FormatFloat(n, 'f', -1, 64)
		}
	}
	return "1"
}

// exampleString returns a text of a permitted length for the format or pattern.
func exampleString(s *shape) string {
	const longest = 200 // a longer minimum is not met: the example shows the form of the call
	text := cmp.Or(formats[s.keyword("format").str()], "example")
	if s.keyword("contentEncoding").str() == "base64" {
		text = formats["byte"]
	}
	if pattern := s.keyword("pattern").str(); pattern != "" {
		return matching(pattern, text)
	}
	if least, ok := s.number("minLength"); ok {
		text += strings.Repeat("x", max(0, int(min(least, longest))-utf8.RuneCountInString(text)))
	}
	if most, ok := s.number("maxLength"); ok && most >= 0 && most < float64(utf8.RuneCountInString(text)) {
		text = string([]rune(text)[:int(most)])
	}
	return text
}

// formats are examples of the formats of JSON Schema.
var formats = map[string]string{
	"date":          "2026-01-31",
	"time":          "12:00:00Z",
	"date-time":     "2026-01-31T12:00:00Z",
	"duration":      "PT1H",
	"email":         "user@example.com",
	"idn-email":     "user@example.com",
	"hostname":      "example.com",
	"idn-hostname":  "example.com",
	"ipv4":          "192.0.2.1",
	"ipv6":          "2001:db8::1",
	"uri":           "https://example.com/",
	"url":           "https://example.com/",
	"iri":           "https://example.com/",
	"uri-reference": "https://example.com/",
	"iri-reference": "https://example.com/",
	"uuid":          "123e4567-e89b-12d3-a456-426614174000",
	"byte":          "ZXhhbXBsZQ==",
	"regex":         "^example$",
	"json-pointer":  "/example",
}
