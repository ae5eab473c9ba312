package schema

import (
	"fmt"
	"strconv"
	"strings"

	"knowhow/internal/compact"
	"knowhow/internal/errkind"
	"knowhow/internal/spell"
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
func (s *Schema) mismatch(path string, v any) error {
	want := s.want()
	return &Error{Argument: path, Message: fmt.Sprintf("argument %q: got %s, want %s", path, shown(v), want), Want: want}
}

// unknownArgument returns the error for a member of the object at path that the
// schema does not have.
func (s *Schema) unknownArgument(path, name string) error {
	var known []string
	for _, p := range s.Properties {
		known = append(known, p.Name)
	}
	full, want := join(path, name), "no such argument"
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
func (s *Schema) want() string {
	switch s.Type {
	case "string":
		return s.wantText()
	case "integer":
		return "an integer" + s.wantRange()
	case "number":
		return "a number" + s.wantRange()
	case "boolean":
		return "true or false"
	case "array":
		w := "a list"
		if s.MaxItems > 0 {
			w += fmt.Sprintf(" of at most %d items", s.MaxItems)
		}
		return w
	}
	return "an object"
}

func (s *Schema) wantText() string {
	switch {
	case len(s.Enum) > 0:
		return "one of " + spell.List(s.Enum)
	case s.MinLength > 1 && s.MaxLength > 0:
		return fmt.Sprintf("a string of %d to %d characters", s.MinLength, s.MaxLength)
	case s.MinLength > 1:
		return fmt.Sprintf("a string of at least %d characters", s.MinLength)
	case s.MinLength == 1 && s.MaxLength > 0:
		return fmt.Sprintf("a string of 1 to %d characters", s.MaxLength)
	case s.MinLength == 1:
		return "a string that is not empty"
	case s.MaxLength > 0:
		return fmt.Sprintf("a string of at most %d characters", s.MaxLength)
	}
	return "a string"
}

func (s *Schema) wantRange() string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return " from " + number(*s.Minimum) + " to " + number(*s.Maximum)
	case s.Minimum != nil:
		return " of at least " + number(*s.Minimum)
	case s.Maximum != nil:
		return " of at most " + number(*s.Maximum)
	}
	return ""
}
