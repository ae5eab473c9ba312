package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/compact"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/spell"

	"github.com/google/jsonschema-go/jsonschema"
)

// An Error describes invalid arguments. It is of kind errkind.Invalid. The
// parts of the arguments that it contains are cut and quoted.
type Error struct {
	Argument string // the invalid argument, for example "facets.size" or "fields[1]"; cut if it is long
	Message  string // a sentence that names the argument, its value and what is allowed
	Want     string // what is allowed, for programs; "" if the error is not about one argument
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap makes an Error an errkind.Invalid error.
func (e *Error) Unwrap() error { return errkind.Invalid }

// mismatch returns the error for a value that the schema does not allow.
func mismatch(n *jsonschema.Schema, path string, v any) error {
	want := want(n)
	return &Error{Argument: path, Message: fmt.Sprintf("argument %q: got %s, want %s", path, shown(v), want),
		Want: want}
}

// unknownArgument returns the error for a member of the object at path that the
// schema does not have.
func unknownArgument(n *jsonschema.Schema, path, name string) error {
	known, full, want := names(n), join(path, name), "no such argument"
	message := fmt.Sprintf("there is no argument %s", spell.Quote(full))
	switch near := spell.Near(name, known, 1); {
	case len(near) > 0:
		want = join(path, near[0])
		message += fmt.Sprintf(", did you mean %q?", want)
	case len(known) > 0:
		message += ", there are " + strings.Join(known, ", ")
	}
	return &Error{Argument: spell.Cut(full), Message: message, Want: want}
}

// shown returns a value from outside as JSON, cut for use in a sentence.
func shown(v any) string {
	text, err := compact.Marshal(v)
	if err != nil {
		return "something else"
	}
	return spell.Cut(string(text))
}

// want describes what the schema allows, for use in a sentence.
func want(n *jsonschema.Schema) string {
	switch n.Type {
	case "string":
		return wantText(n)
	case "integer":
		return "an integer" + wantRange(n)
	case "number":
		return "a number" + wantRange(n)
	case "boolean":
		return "true or false"
	case "array":
		if n.MaxItems != nil {
			return fmt.Sprintf("a list of at most %d items", *n.MaxItems)
		}
		return "a list"
	case "object":
		return "an object"
	}
	return "a value"
}

func wantText(n *jsonschema.Schema) string {
	switch least, most := n.MinLength, n.MaxLength; {
	case n.Enum != nil:
		var values []string
		for _, v := range n.Enum {
			values = append(values, fmt.Sprint(v))
		}
		return "one of " + spell.List(values)
	case least != nil && most != nil:
		return fmt.Sprintf("a string of %d to %d characters", *least, *most)
	case least != nil && *least == 1:
		return "a string that is not empty"
	case least != nil:
		return fmt.Sprintf("a string of at least %d characters", *least)
	case most != nil:
		return fmt.Sprintf("a string of at most %d characters", *most)
	}
	return "a string"
}

func wantRange(n *jsonschema.Schema) string {
	number := func(f *float64) string { return strconv.FormatFloat(*f, 'f', -1, 64) }
	switch {
	case n.Minimum != nil && n.Maximum != nil:
		return " from " + number(n.Minimum) + " to " + number(n.Maximum)
	case n.Minimum != nil:
		return " of at least " + number(n.Minimum)
	case n.Maximum != nil:
		return " of at most " + number(n.Maximum)
	}
	return ""
}
