package skill

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

const (
	maxListDepth = 4        // nesting levels in the list of arguments
	maxList      = 16 << 10 // bytes after which the list ends
	maxArgText   = 600      // characters of an argument's description
	maxChoices   = 20       // values of an enum in the list
)

// A lister writes a schema as a nested Markdown list.
type lister struct {
	*document
	b    strings.Builder
	full bool // the list has reached its limit; nothing more is written
}

// list returns the arguments as a Markdown list, or "" if there are none.
func (d *document) list() string {
	d.steps = 0
	l := &lister{document: d}
	l.children(d.shape(d.root), 0)
	return l.b.String()
}

// item writes one line of the list, unless the limit is reached.
func (l *lister) item(depth int, text string) {
	if l.full {
		return
	}
	if l.b.Len()+len(text) > maxList {
		l.full = true
		depth, text = 0, "… more in the exact schema"
	}
	fmt.Fprintf(&l.b, "%s- %s\n", strings.Repeat("  ", depth), text)
}

// children writes the contents of a schema: properties, those of an array's
// items, and variants.
func (l *lister) children(s *shape, depth int) {
	if l.full || depth >= maxListDepth {
		return
	}
	for range maxListDepth {
		items := s.items()
		if items == nil || s.is("object") {
			break
		}
		s = l.shape(items)
	}
	for _, name := range s.names {
		if l.full {
			return
		}
		l.property(codeSpan(name), s.schemas[name], s.required[name], depth)
	}
	if more := s.keyword("additionalProperties"); more != nil && (more.kind == "object" || more.isTrue()) {
		l.property("any other name", more, false, depth)
	}
	if patterns := s.keyword("patternProperties"); patterns != nil {
		for i, pattern := range patterns.names {
			l.property("names that match "+codeSpan(pattern), patterns.items[i], false, depth)
		}
	}
	l.alternatives(s, depth)
}

// property writes a property and its contents.
func (l *lister) property(label string, schema *value, required bool, depth int) {
	s := l.shape(schema)
	l.write(label, s, required, s.about(), depth)
}

// write writes a line about a value, and its contents.
func (l *lister) write(label string, s *shape, required bool, about string, depth int) {
	facts := []string{l.typeName(s, 0)}
	if required {
		facts = append(facts, "required")
	}
	text := label + " (" + strings.Join(append(facts, l.facts(s)...), "; ") + ")"
	if about != "" {
		text += ": " + about
	}
	l.item(depth, text)
	l.children(s, depth+1)
}

// about returns the description of a value, or else its title.
func (s *shape) about() string {
	return cmp.Or(cleanLine(s.keyword("description").str(), maxArgText),
		cleanLine(s.keyword("title").str(), maxArgText))
}

// alternatives writes the variants of a choice, if they consist of more than
// their types.
func (l *lister) alternatives(s *shape, depth int) {
	if len(s.constants()) > 0 {
		return // they are written as choices
	}
	for i, v := range s.variants {
		if l.full || depth >= maxListDepth {
			return
		}
		variant := l.shape(v)
		text := variant.about()
		if names := requiredOnly(variant); text == "" && names != "" {
			text = "with " + names
		}
		inner := len(variant.names) > 0 || variant.items() != nil && len(l.shape(variant.items()).names) > 0
		if text != "" || inner || len(l.facts(variant)) > 0 {
			l.write(fmt.Sprintf("variant %d", i+1), variant, false, text, depth)
		}
	}
}

// requiredOnly names the properties that a variant without its own properties
// requires.
func requiredOnly(s *shape) string {
	if len(s.names) > 0 {
		return ""
	}
	var names []string
	for _, r := range bounded(s.keyword("required").list()) {
		names = append(names, codeSpan(r.str()))
	}
	return strings.Join(names, ", ")
}

// typeName returns the type of a value: "array of string", "integer or null".
func (l *lister) typeName(s *shape, depth int) string {
	const maxNames = 6
	var names []string
	add := func(name string) {
		if len(names) == maxNames {
			name = "…"
		}
		if len(names) <= maxNames && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, t := range s.types {
		if items := s.items(); t == "array" && items != nil && depth < maxListDepth {
			t += " of " + l.typeName(l.shape(items), depth+1)
		}
		add(t)
	}
	if len(names) == 0 && depth < maxListDepth {
		for _, v := range s.variants {
			add(l.typeName(l.shape(v), depth+1))
		}
	}
	switch {
	case s.never:
		return "nothing"
	case len(names) == 0 && s.nullable && s.keyword("type") != nil:
		return "null"
	case len(names) == 0:
		return "any"
	case s.nullable:
		add("null")
	}
	return strings.Join(names, " or ")
}

// facts returns the constraints of a value: choices, default, limits.
func (l *lister) facts(s *shape) []string {
	var facts []string
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	if items := s.items(); items != nil {
		if choices := choices(l.shape(items)); choices != "" {
			add("each %s", choices)
		}
	}
	if choices := choices(s); choices != "" {
		facts = append(facts, choices)
	}
	if c := s.keyword("const"); c != nil {
		add("always %s", shortValue(c))
	}
	if d := s.keyword("default"); d != nil {
		add("default %s", shortValue(d))
	}
	if format := cleanLine(s.keyword("format").str(), 40); format != "" {
		add("format %s", format)
	}
	if pattern := s.keyword("pattern").str(); pattern != "" && len(pattern) <= 60 {
		add("matches %s", codeSpan(pattern))
	}
	for _, limit := range []struct{ word, text string }{
		{"minimum", "at least"}, {"exclusiveMinimum", "more than"},
		{"maximum", "at most"}, {"exclusiveMaximum", "less than"},
		{"minLength", "characters at least"}, {"maxLength", "characters at most"},
		{"minItems", "items at least"}, {"maxItems", "items at most"},
	} {
		n, ok := s.number(limit.word)
		// The limits of exact integers in JavaScript are omitted, and so is 0.
		if ok && n < 1<<53-1 && n > -(1<<53-1) && (n != 0 || !strings.HasPrefix(limit.word, "min") ||
			limit.word == "minimum") {
			add("%s %s", limit.text, strconv.FormatFloat(n, 'f', -1, 64))
		}
	}
	return facts
}

// choices returns the values of an enum or of a choice between constants, or ""
// if there are none.
func choices(s *shape) string {
	enum := s.keyword("enum").list()
	if len(enum) == 0 {
		enum = s.constants()
	}
	if len(enum) == 0 {
		return ""
	}
	var shown []string
	for _, v := range enum[:min(len(enum), maxChoices)] {
		shown = append(shown, shortValue(v))
	}
	text := "one of " + strings.Join(shown, ", ")
	if n := len(enum); n > maxChoices {
		text += fmt.Sprintf(" … (%d in all)", n)
	}
	return text
}

// shortValue returns a value for reading: a word unchanged, everything else as
// JSON.
func shortValue(v *value) string {
	if v.text != "" && QuoteShell(v.text) == v.text {
		return sanitize.Cut(v.text, 80, 320)
	}
	const most = 400 // bytes, of which 80 characters are shown
	return sanitize.Cut(cleanLine(v.raw[:min(len(v.raw), most)], most), 80, 320)
}
