package skill

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"knowhow/internal/sanitize"
)

const (
	maxExampleDepth = 8        // nesting levels of values in an example
	maxExampleNodes = 400      // values in an example
	maxExample      = 16 << 10 // bytes of an example's JSON
	maxGiven        = 1000     // bytes of a value from a schema's default or examples
)

// An exampler generates valid arguments for a tool.
type exampler struct {
	*document
	nodes int // number of generated values
	size  int // of the values and names, in bytes
}

// An argument is a member of the example's arguments.
type argument struct{ name, json string }

// arguments returns an example of every required argument in the order of the
// properties, up to 16 KiB.
func (d *document) arguments() []argument {
	d.steps = 0
	e := exampler{document: d}
	var args []argument
	top := e.pick(d.shape(d.root))
	for _, name := range e.wanted(top) {
		if e.size += len(name); e.size > maxExample {
			break
		}
		args = append(args, argument{name, e.value(e.shape(top.schemas[name]), hint{name: name}, 1)})
	}
	return args
}

// pick merges the first variant of a choice into a shape that has one.
func (e *exampler) pick(s *shape) *shape {
	if len(s.variants) == 0 {
		return s
	}
	first := e.shape(s.variants[0])
	merged := &shape{
		layers: append(slices.Clone(s.layers), first.layers...), types: s.types, variants: first.variants,
		names: slices.Clone(s.names), schemas: maps.Clone(s.schemas), required: maps.Clone(s.required),
	}
	if len(merged.types) == 0 {
		merged.types = first.types
	}
	for _, name := range first.names {
		if _, ok := merged.schemas[name]; !ok {
			merged.names = append(merged.names, name)
		}
	}
	maps.Copy(merged.schemas, first.schemas) // the schema of the variant takes precedence, because it is more specific
	maps.Copy(merged.required, first.required)
	return merged
}

// wanted returns the properties of an example: the required ones, and as many
// others as minProperties requires.
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

// A hint contains information about the meaning of a value besides its type.
type hint struct{ name, description string }

// value returns an example for a shape as JSON.
func (e *exampler) value(s *shape, h hint, depth int) string {
	e.nodes++
	if d := s.keyword("description").str(); d != "" {
		h.description = cleanLine(d, maxArgText)
	}
	if given := e.given(s); given != "" {
		e.size += len(given)
		return given
	}
	if depth > maxExampleDepth || e.nodes > maxExampleNodes {
		s.variants = nil
	}
	if len(s.variants) > 0 {
		return e.value(e.pick(s), h, depth+1)
	}
	kind := ""
	if len(s.types) > 0 {
		kind = s.types[0]
	}
	switch kind {
	case "object":
		return e.object(s, depth)
	case "array":
		return e.array(s, h, depth)
	case "integer", "number":
		return exampleNumber(s, h, kind == "integer")
	case "boolean":
		return "false"
	case "":
		if s.nullable && s.keyword("type") != nil {
			return "null"
		}
	}
	return sanitize.QuoteJSON(exampleString(s, h))
}

// given returns a value that the schema itself contains and that has its type,
// or "" if there is none.
func (e *exampler) given(s *shape) string {
	var candidates []*value
	candidates = append(candidates, s.keyword("default"))
	candidates = append(candidates, bounded(s.keyword("examples").list())...)
	candidates = append(candidates, s.keyword("example"))
	candidates = append(candidates, bounded(s.keyword("enum").list())...)
	candidates = append(candidates, s.keyword("const"))
	for _, v := range candidates {
		if v == nil || v.kind == "null" || len(s.types) > 0 && !s.is(v.kind) {
			continue
		}
		if len(v.raw) <= maxGiven {
			return v.raw
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
		members = append(members, sanitize.QuoteJSON(name)+":"+e.value(e.shape(s.schemas[name]), hint{name: name}, depth+1))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// array returns an example with one item, or the required number of items.
func (e *exampler) array(s *shape, h hint, depth int) string {
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
		text := e.value(item, h, depth+1)
		switch {
		case i > 0 && i < len(choices):
			if choice := choices[i].raw; len(choice) <= maxGiven {
				text = choice
			}
		case i > 0 && strings.HasPrefix(text, `"`) && len(choices) == 0 && item.keyword("format") == nil && item.keyword("pattern") == nil:
			text = text[:len(text)-1] + " " + strconv.Itoa(i+1) + `"`
		}
		items = append(items, text)
	}
	return "[" + strings.Join(items, ",") + "]"
}

// exampleNumber returns a number within the limits that fits the hint.
func exampleNumber(s *shape, h hint, integer bool) string {
	low, hasLow := s.number("minimum")
	high, hasHigh := s.number("maximum")
	above, hasAbove := s.number("exclusiveMinimum")
	below, hasBelow := s.number("exclusiveMaximum")
	step, _ := s.number("multipleOf")
	fits := func(n float64) bool {
		return !(hasLow && n < low || hasHigh && n > high || hasAbove && n <= above || hasBelow && n >= below ||
			integer && n != float64(int64(n)))
	}
	guess := namedNumber(h)
	if hasHigh {
		guess = min(guess, high)
	}
	candidates := []float64{guess, 1, low, above + 1, high, below - 1, (low + high) / 2, (above + below) / 2, 0}
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

// exampleString returns a text of a permitted length for the pattern, format,
// description and name.
func exampleString(s *shape, h hint) string {
	const longest = 200 // a longer minimum is not met: the example shows the form of the call
	least, _ := s.number("minLength")
	most, hasMost := s.number("maxLength")
	if !hasMost {
		most = longest
	}
	text := cmp.Or(formatted(s.keyword("format").str()), quoted(h.description), named(h), "example")
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

// Example values that several formats and names share.
const (
	exampleDate = "2026-01-31"
	exampleTime = "2026-01-31T12:00:00Z"
	exampleURL  = "https://example.com/"
	exampleMail = "user@example.com"
	exampleUUID = "123e4567-e89b-12d3-a456-426614174000"
	exampleFile = "/path/to/file"
	exampleDir  = "/path/to/folder"
)

// formatted returns an example of a JSON Schema format, or "" for other
// formats.
func formatted(format string) string {
	switch format {
	case "date":
		return exampleDate
	case "time":
		return "12:00:00Z"
	case "date-time":
		return exampleTime
	case "duration":
		return "PT1H"
	case "email", "idn-email":
		return exampleMail
	case "hostname", "idn-hostname":
		return "example.com"
	case "ipv4":
		return "192.0.2.1"
	case "ipv6":
		return "2001:db8::1"
	case "uri", "url", "iri", "uri-reference", "iri-reference":
		return exampleURL
	case "uuid":
		return exampleUUID
	case "byte":
		return "ZXhhbXBsZQ=="
	case "regex":
		return "^example$"
	case "json-pointer":
		return "/example"
	}
	return ""
}

var (
	// quotedExample finds an example in a description: e.g. "main".
	quotedExample = lazily(`(?i)(?:\be\.?g\.|\bsuch as|\bfor example|\bin the format|\bexamples?\b[^:."'` + "`" + `]{0,40}:)[,:]?\s*` +
		`(?:"([^"]{1,80})"|'([^']{1,80})'|` + "`([^`]{1,80})`)")

	// listedExample finds one without quotes: examples of kinds are: Pod, Service.
	listedExample = lazily(`(?i)\bexamples?\b[^:."'` + "`" + `]{0,40}:\s*(\w[\w./@-]*\w)(?:[,;) ]|\.?$)`)
)

// lazily returns a function that compiles a pattern when it is first called.
// Compiling a pattern with counts takes time, which would slow the start of every
// program.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// quoted returns an example from a description, or "" if it contains none.
func quoted(description string) string {
	if m := quotedExample().FindStringSubmatch(description); m != nil {
		return m[1] + m[2] + m[3]
	}
	if m := listedExample().FindStringSubmatch(description); m != nil {
		return m[1]
	}
	return ""
}

// named guesses an example from a property's name, whose last word is the most
// specific, and from its description. It returns "" if there is no guess.
func named(h hint) string {
	description := strings.ToLower(h.description)
	mentions := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(description, w) })
	}
	words := strings.Split(slug(h.name), "-")
	for _, word := range slices.Backward(words) {
		switch strings.TrimSuffix(word, "s") {
		case "url", "uri", "link", "href", "website", "webpage":
			return exampleURL
		case "email", "mail":
			return exampleMail
		case "path", "file", "filepath":
			switch {
			case slices.Contains(words, "repo") || slices.Contains(words, "repository"):
				return "/path/to/repository"
			case mentions("folder", "director") && !mentions("file"):
				return exampleDir
			}
			return exampleFile
		case "source", "destination", "src", "dest", "dst":
			if description == "" || mentions("path", "file", "folder", "director") {
				return exampleFile
			}
		case "filename":
			return "file.txt"
		case "directory", "directorie", "dir", "folder", "cwd":
			return exampleDir
		case "query", "search", "q", "keyword", "term":
			if mentions("sql") {
				return "SELECT 1"
			}
			return "words to find"
		case "sql":
			return "SELECT 1"
		case "date", "day", "since", "until", "deadline":
			if mentions("iso 8601", "iso-8601", "rfc 3339", "rfc3339", "timestamp", "date-time", "datetime") {
				return exampleTime
			}
			return exampleDate
		case "time", "datetime", "timestamp":
			return exampleTime
		case "timezone", "tz":
			return "UTC"
		case "uuid", "guid":
			return exampleUUID
		case "id", "uid":
			if mentions("uuid") {
				return exampleUUID
			}
			return "123"
		case "message", "text", "content", "body", "comment", "reply":
			return "Hello"
		case "title", "subject":
			return "A title"
		case "question":
			return "What is new?"
		case "owner", "user", "username", "login", "author":
			return "user"
		case "repo", "repository":
			return "repository"
		case "branch":
			return "main"
		case "host", "hostname", "domain":
			return "example.com"
		case "ip":
			return "192.0.2.1"
		case "language", "lang", "locale":
			return "en"
		case "city", "location":
			return "Berlin"
		case "country":
			return "DE"
		case "currency":
			return "EUR"
		case "phone":
			return "+15550100"
		case "color", "colour":
			return "#336699"
		case "version":
			return "1.0.0"
		case "namespace":
			return "default"
		}
	}
	switch {
	case mentions("uuid"):
		return exampleUUID
	case mentions("iso 8601", "iso-8601", "rfc 3339", "rfc3339"):
		return exampleTime
	case mentions("yyyy-mm-dd"):
		return exampleDate
	case mentions("url ", "uri ") || strings.HasSuffix(description, "url"):
		return exampleURL
	case mentions("email address", "e-mail address"):
		return exampleMail
	case mentions("path to", "path of", "file path", "file name"):
		return exampleFile
	case mentions("name of the branch", "branch name"):
		return "main"
	}
	return ""
}

// namedNumber guesses a number from a property's name.
func namedNumber(h hint) float64 {
	words := strings.Split(slug(h.name), "-")
	for _, word := range slices.Backward(words) {
		switch word {
		case "limit", "count", "max", "top", "size", "results", "k":
			return 10
		case "offset", "start", "skip", "cursor":
			return 0
		case "port":
			return 8080
		case "year":
			return 2026
		case "timeout":
			if d := strings.ToLower(h.description); slices.Contains(words, "ms") || strings.Contains(d, "millisecond") || strings.Contains(d, "(ms") {
				return 30_000
			}
			return 30
		case "width":
			return 1280
		case "height":
			return 720
		case "latitude", "lat":
			return 52.5
		case "longitude", "lon", "lng":
			return 13.4
		case "percent", "percentage", "quality":
			return 50
		}
	}
	return 1
}
