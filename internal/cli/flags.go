package cli

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"knowhow/internal/config"
	"knowhow/internal/spell"
)

// newFlags returns an empty set of flags for [invocation.parse].
func (v *invocation) newFlags() *flag.FlagSet {
	return flag.NewFlagSet(v.name, flag.ContinueOnError)
}

// parse sets the flags of fs from args, in any order with the operands, each
// of which it hands to operand as it comes; nil means that the command takes
// none. After "--" everything is an operand. It returns flag.ErrHelp if help
// was asked for, and a [usageError] if args do not fit; the flag package's own
// loop is not used because it stops at the first operand and because its
// messages cannot suggest the flag that was meant.
func (v *invocation) parse(fs *flag.FlagSet, args []string, operand func(string) error) error {
	onlyOperands := false
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--" && !onlyOperands:
			onlyOperands = true
		case strings.HasPrefix(arg, "-") && arg != "-" && !onlyOperands:
			rest, err := v.parseFlag(fs, arg, args)
			if err != nil {
				return err
			}
			args = rest
		case operand == nil:
			return v.usagef("unexpected argument %q", arg)
		default:
			if err := operand(arg); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseFlag sets the flag that arg names, with the value after its "=" or the
// first of args, and returns the rest of args.
func (v *invocation) parseFlag(fs *flag.FlagSet, arg string, args []string) ([]string, error) {
	name, value, hasValue := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
	if name == "help" || name == "h" {
		return nil, flag.ErrHelp
	}
	f := fs.Lookup(name)
	if f == nil {
		return nil, v.unknownFlag(fs, name)
	}
	boolean, _ := f.Value.(interface{ IsBoolFlag() bool })
	switch {
	case hasValue:
	case boolean != nil && boolean.IsBoolFlag():
		value = "true"
	case len(args) == 0:
		return nil, v.usagef("flag --%s needs a value", name)
	default:
		value, args = args[0], args[1:]
	}
	if err := fs.Set(name, value); err != nil {
		if config.Secret(name) {
			return nil, v.usagef("flag --%s: %v", name, err)
		}
		return nil, v.usagef("flag --%s: got %q, %v", name, value, err)
	}
	return args, nil
}

// unknownFlag returns the error for a flag that fs does not have.
func (v *invocation) unknownFlag(fs *flag.FlagSet, name string) error {
	var known []string
	fs.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	e := v.usagef("unknown flag --%s", name)
	if near := spell.Near(name, known, 1); len(near) > 0 {
		e.hint = fmt.Sprintf("Did you mean --%s? ", near[0]) + e.hint
	}
	return e
}

// usagef returns a usageError that points at the command's help.
func (v *invocation) usagef(format string, args ...any) *usageError {
	return &usageError{message: fmt.Sprintf(format, args...), hint: fmt.Sprintf("Run %q for usage.", v.name+" --help")}
}

// A choice is a flag.Value that takes one of a few words. The first is the
// default.
type choice struct {
	words []string
	value string
	given bool // on the command line
}

func newChoice(words ...string) *choice { return &choice{words: words, value: words[0]} }

func (c *choice) String() string { return c.value }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("want %s", strings.Join(c.words, " or "))
	}
	c.value, c.given = s, true
	return nil
}

// A list is a flag.Value that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(s string) error {
	if s == "" {
		return fmt.Errorf("want a value")
	}
	*l = append(*l, s)
	return nil
}

// A token is a flag.Value that takes a bearer token.
type token string

func (t *token) String() string { return string(*t) }

func (t *token) Set(s string) error {
	if !visiblePattern.MatchString(s) {
		return errors.New("want visible ASCII characters without blanks; leave it out to use no token")
	}
	*t = token(s)
	return nil
}

// tokenOr returns the token that a flag gave, or else that of an environment
// variable. A variable that is empty is like one that is not set.
func (v *invocation) tokenOr(given, variable string) (string, error) {
	value := v.get(variable)
	if given != "" || value == "" {
		return given, nil
	}
	if !visiblePattern.MatchString(value) {
		return "", v.usagef("%s: want visible ASCII characters without blanks; unset it to use no token", variable)
	}
	return value, nil
}
